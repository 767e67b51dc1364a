"""References of indexing."""
import numpy as np
import torch
import torch.nn.functional as F

from references.common import case, f32, outside_is_zero, scattered

case(
    take_along_axis=lambda x, i: np.take_along_axis(x.numpy(), i.numpy(), 1),
    take_along_axis_first=lambda x, i: np.take_along_axis(x.numpy(), i.numpy(), 0),
    take_along_axis_broadcast=lambda x, i: np.take_along_axis(x.numpy(), i.numpy(), 1),
    take_along_axis_outside=lambda x, i: outside_is_zero(x, i, 1),
    selected_term=lambda x, i: -torch.where(i[:, None] == torch.arange(5), x * 2, 0.0).sum(1),
    selected_terms_under_a_mask=lambda x, i: torch.where(
        (torch.arange(4) == i) & (x < 1), x, 0.0
    ).sum((1, 2)),
    gather=lambda x, i: x.gather(1, i.long()),
    gather_first=lambda x, i: x.gather(0, i),
    gather_u8=lambda x, i: x.gather(1, i.long()),
    index_select=lambda x, i: x[i],
    index_select_matrix=lambda x, i: x[i.long()],
    index_select_axis=lambda x, i: x[:, :, i],
    index_select_scalar=lambda x, i: x[i],
    index_select_outside=lambda x, i: torch.stack([x[0], 0 * x[0], 0 * x[0], x[2], x[1]]) + 0,
    scatter=lambda x, i, v: scattered(x, 0, i, v),
    scatter_last_wins=lambda x, i, v: scattered(x, 1, i, v),
    scatter_outside=lambda x, i, v: scattered(x, 0, i, v),
    scatter_number=lambda x, i: scattered(x, 1, i, 7.0),
    scatter_bool=lambda x, i, v: scattered(x, 0, i, v),
    scatter_add=lambda x, i, v: scattered(x, 1, i, v, add=True),
    scatter_add_first=lambda x, i, v: scattered(x, 0, i, v, add=True),
    scatter_add_outside=lambda x, i, v: scattered(x, 0, i, v, add=True),
    one_hot=lambda i: f32(F.one_hot(i, 3)),
    one_hot_matrix=lambda i: (i.unsqueeze(-1) == torch.arange(5)).double(),
    one_hot_bool=lambda i: F.one_hot(i, 3).bool(),
    masked_fill=lambda x, m: x.masked_fill(m, 5),
    masked_fill_broadcast=lambda x, m: x.masked_fill(m, 0),
    masked_fill_tensor=lambda x, m, v: x.masked_fill(m, v.item()),
    embedding=lambda x, i: F.embedding(i, x).sum(1) * 2,
)
