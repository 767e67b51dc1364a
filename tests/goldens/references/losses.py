"""References of losses."""
import math

import torch
import torch.nn.functional as F

from references.common import case


def attended(q, k, v, mask, causal=False):
    groups = q.shape[1] // k.shape[1]
    k, v = (t.repeat_interleave(groups, 1) for t in (k, v))
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1).bool(), -math.inf)
    scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    return scores.softmax(-1) @ v


case(
    l1_loss=F.l1_loss,
    l1_loss_sum=lambda a, b: F.l1_loss(a, b, reduction="sum"),
    l1_loss_none=lambda a, b: F.l1_loss(a, b, reduction="none"),
    huber_loss=F.huber_loss,
    huber_loss_delta=lambda a, b: F.huber_loss(a, b, reduction="none", delta=2.5),
    smooth_l1_loss=lambda a, b: F.smooth_l1_loss(a, b, reduction="sum"),
    smooth_l1_loss_beta=lambda a, b: F.smooth_l1_loss(a, b, reduction="none", beta=2.5),
    smooth_l1_loss_straight=lambda a, b: F.smooth_l1_loss(a, b, beta=0),
    kl_div=F.kl_div,
    kl_div_sum=lambda x, t: F.kl_div(x, t, reduction="sum"),
    kl_div_logarithms=lambda x, t: F.kl_div(x, t, reduction="none", log_target=True),
    kl_div_zeros=lambda x, t: F.kl_div(x, t, reduction="none"),
    hinge_loss=lambda x, t: (1 - x * t).clamp(min=0).mean(),
    hinge_loss_margin=lambda x, t: (0.5 - x * t).clamp(min=0),
    hinge_embedding_loss=F.hinge_embedding_loss,
    hinge_embedding_loss_margin=lambda x, t: F.hinge_embedding_loss(x, t, margin=0.5, reduction="none"),
    attention_mask=attended,
    attention_bias=attended,
    attention_bias_heads=attended,
    attention_mask_causal=lambda q, k, v, m: attended(q, k, v, m, causal=True),
    attention_grouped_bias=attended,
    attention_grouped_mask=attended,
)
