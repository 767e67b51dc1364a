"""References of products."""
import numpy as np
import torch
import torch.nn.functional as F

from references.common import Narrow, case

for each in ("matmul", "matmul_inner", "matmul_vectors", "matmul_vector_matrix", "matmul_matrix_vector",
             "matmul_batched", "matmul_batch_broadcast", "matmul_batch_matrix", "matmul_batch_vector",
             "matmul_vector_batch", "matmul_empty_inner"):
    case(**{each: torch.matmul})


def einsum(equation):
    return lambda *x: np.einsum(equation, *(each.numpy() for each in x))


case(
    matmul_transposed=lambda a, b: a @ b.T,
    matmul_itself=lambda x: x @ x,
    matmul_promotes=lambda a, b: a.double() @ b,
    matmul_bf16=lambda a, b: Narrow("bf16", (a.double() @ b.double()).to(torch.bfloat16).double()),
    dot=torch.dot,
    outer=torch.outer,
    einsum_matmul=einsum("ij,jk->ik"),
    einsum_implicit=einsum("ij,jk->ik"),
    einsum_transpose=lambda x: x.T,
    einsum_sum=torch.sum,
    einsum_row_sum=lambda x: x.sum(0),
    einsum_diagonal=torch.diag,
    einsum_trace=torch.trace,
    einsum_outer=torch.outer,
    einsum_batched=torch.bmm,
    einsum_attention=lambda a, b: a @ b.transpose(-1, -2),
    einsum_three=lambda a, b, c: a @ b @ c,
    einsum_elementwise=lambda a, b: a * b,
    einsum_ellipsis=torch.matmul,
    einsum_bilinear=lambda a, w, b: F.bilinear(a, b, w),
)
