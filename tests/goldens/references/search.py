"""References of search."""
import math

import numpy as np
import torch
import torch.nn.functional as F

from references.common import case, f64, i32, stable_order


def clamped(x, low, high):
    return torch.minimum(torch.maximum(x, low), high)


def compound(x, y):
    z = x % y
    z = (z << 3) | x
    return ((z & 127) ^ y) >> 1


def quantile(x, q, axes=None, keep=False):
    return np.quantile(x.numpy(), np.asarray(q), axis=axes, keepdims=keep)


def searchsorted(sorted_axis, values, side="left"):
    return i32(torch.searchsorted(sorted_axis, values.to(sorted_axis.dtype), right=side == "right"))


def nonzero(x, size, fill):
    places = torch.nonzero(x)[:size]
    rest = torch.full((size - len(places), x.dim()), fill)
    return i32(torch.cat([places, rest]))


def resized(mode, **options):
    return lambda x: F.interpolate(x, mode=mode, **options)


case(
    linspace=lambda: np.linspace(-1, 2, 7),
    linspace_f32=lambda: np.linspace(0.1, 0.7, 5).astype(np.float32),
    linspace_down=lambda: np.linspace(3, -1, 4),
    linspace_one=lambda: np.linspace(2, 5, 1),
    logspace=lambda: np.logspace(-1, 3, 5),
    logspace_base=lambda: np.logspace(0, 3, 4, base=2),
    meshgrid=lambda x, y: 2 * np.meshgrid(x, y, indexing="ij")[0] + np.meshgrid(x, y, indexing="ij")[1],
    meshgrid_three=lambda *x: np.stack(np.meshgrid(*x, indexing="ij")),
    isnan=lambda x: np.array([[0, 1, 1, 0], [0, 1, 1, 0], [1, 0, 0, 1]], np.bool_),
    clamp_tensors=torch.clamp,
    clamp_crossed=clamped,
    clamp_low=torch.maximum,
    compound_arithmetic=lambda x, y: (x + y - 0.5) * x / y,
    compound_integers=compound,
    cummax=lambda x: x.cummax(-1).values,
    cummax_first=lambda x: x.cummax(0).values,
    cummax_long=lambda x: x.cummax(0).values,
    cummin=lambda x: x.cummin(-1).values,
    cummin_long=lambda x: x.cummin(0).values,
    diff=torch.diff,
    diff_second=lambda x: torch.diff(x, n=2, dim=0),
    diff_too_often=lambda x: np.diff(x.numpy(), n=3),
    norm=torch.linalg.vector_norm,
    norm_rows=lambda x: torch.linalg.vector_norm(x, 1, 1, keepdim=True),
    norm_largest=lambda x: torch.linalg.vector_norm(x, math.inf, 0),
    norm_third=lambda x: torch.linalg.vector_norm(x, 3),
    norm_count=lambda x: torch.linalg.vector_norm(x, 0, 1),
    norm_of_zeros=lambda x: torch.linalg.vector_norm(x, 2, 1),
    argsort=lambda x: stable_order(x, -1),
    argsort_descending=lambda x: stable_order(x, 1, descending=True),
    sort_symbolic=lambda x: x.sort(-1).values,
    sort_symbolic_descending=lambda x: x.sort(0, descending=True).values,
    argsort_symbolic=lambda x: stable_order(x, 0),
    topk_symbolic=lambda x: x.topk(2).values,
    topk_symbolic_indices=lambda x: i32(x.topk(3, 0, largest=False).indices),
    median=lambda x: np.median(x.numpy()),
    median_axis=lambda x: np.median(x.numpy(), 1),
    median_even_keep=lambda x: np.median(x.numpy(), 1, keepdims=True),
    median_integers=lambda x: np.median(x.numpy(), 0).astype(np.float32),
    median_nan=lambda x: np.median(x.numpy(), 1),
    quantile=lambda x: x.quantile(0.3, 1),
    quantile_all=lambda x: x.quantile(0.9),
    quantile_two_keep=lambda x: quantile(x, 0.77, (0, 2), True),
    quantile_ends=lambda x: x.max(0).values - x.min(0).values,
    quantile_several=lambda x, q: x.quantile(q, 1),
    quantile_several_keep=lambda x, q: x.quantile(q, 0, keepdim=True),
    quantile_infinite=lambda x: f64(2),
    searchsorted=searchsorted,
    searchsorted_right=lambda s, v: searchsorted(s, v, "right"),
    searchsorted_rows=lambda s, v: searchsorted(s.sort(-1).values, v),
    searchsorted_integers=lambda s, v: searchsorted(s, v, "right"),
    bincount=lambda x: i32(torch.bincount(x, minlength=7)),
    bincount_outside=lambda x: i32(torch.bincount(x[(x >= 0) & (x < 4)], minlength=4)),
    bincount_weights=lambda x, w: torch.bincount(x, w, minlength=5),
    nonzero=lambda x: nonzero(x, 7, -1),
    nonzero_fewer=lambda x: nonzero(x, 3, 9),
    nonzero_places=lambda x: torch.cat([x[x > 0], torch.zeros(int((x <= 0).sum()), dtype=x.dtype)]),
    interpolate_nearest=resized("nearest", size=(7, 5)),
    interpolate_nearest_scale=resized("nearest", scale_factor=(2.5, 0.7)),
    interpolate_nearest_whole=resized("nearest", scale_factor=(3, 0.5)),
    interpolate_nearest_3d=resized("nearest", scale_factor=2),
    interpolate_nearest_symbolic=resized("nearest", scale_factor=3),
    interpolate_linear=resized("linear", size=8),
    interpolate_bilinear=resized("bilinear", size=(6, 7)),
    interpolate_bilinear_down=resized("bilinear", size=(4, 3)),
    interpolate_bilinear_scale=resized("bilinear", scale_factor=(1.7, 2.3)),
    interpolate_bilinear_corners=resized("bilinear", size=(5, 9), align_corners=True),
    interpolate_bilinear_one=resized("bilinear", size=(1, 3), align_corners=True),
    interpolate_bilinear_symbolic=resized("bilinear", size=(6, 5)),
    interpolate_trilinear=resized("trilinear", scale_factor=2),
)
