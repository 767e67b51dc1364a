"""References of functional."""
import math

import torch
import torch.nn.functional as F

from references.common import case


def far(x):
    return torch.stack([torch.sigmoid(x), F.silu(x), torch.logaddexp(x, torch.zeros_like(x)), F.mish(x), F.elu(x), F.gelu(x)])


def rms_norm(x, weight=1, epsilon=1e-6):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + epsilon) * weight


def attention(q, k, v):
    scores = (q @ k.transpose(1, 2) * 0.5).masked_fill(torch.ones(3, 3).triu(1).bool(), -1e4)
    return scores.softmax(-1) @ v


case(
    relu=F.relu,
    leaky_relu=F.leaky_relu,
    leaky_relu_slope=lambda x: F.leaky_relu(x, 0.25),
    elu=F.elu,
    elu_alpha=lambda x: F.elu(x, 0.5),
    gelu=F.gelu,
    gelu_tanh=lambda x: F.gelu(x, approximate="tanh"),
    sigmoid=torch.sigmoid,
    silu=F.silu,
    softplus=lambda x: F.softplus(x, threshold=1e4),
    hardswish=F.hardswish,
    mish=F.mish,
    activations_far=far,
    softmax=lambda x: x.softmax(-1),
    softmax_axis=lambda x: x.softmax(1),
    softmax_masked=lambda x, m: x.masked_fill(~m, -math.inf).softmax(-1),
    softmax_far=lambda x: x.softmax(-1),
    log_softmax=lambda x: x.log_softmax(-1),
    log_softmax_axis=lambda x: x.log_softmax(1),
    log_softmax_far=lambda x: x.log_softmax(-1),
    layer_norm=lambda x: F.layer_norm(x, (4,)),
    layer_norm_affine=lambda x, w, b: F.layer_norm(x, (4,), w, b),
    layer_norm_two_axes=lambda x, w: F.layer_norm(x, (3, 4), w, None, 0.5),
    rms_norm=rms_norm,
    rms_norm_weight=lambda x, w: rms_norm(x, w, 0.25),
    group_norm=lambda x: F.group_norm(x, 2),
    group_norm_affine=lambda x, w, b: F.group_norm(x, 2, w, b, 0.1),
    batch_norm=lambda x: F.batch_norm(x, None, None, training=True),
    batch_norm_affine=lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True, eps=0.1),
    batch_norm_images=lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
    batch_norm_given=lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b),
    batch_norm_given_plain=lambda x, m, v: F.batch_norm(x, m, v),
    conv1d=F.conv1d,
    conv1d_all=lambda x, w, b: F.conv1d(x, w, b, stride=2, padding=1, dilation=2, groups=2),
    conv2d=F.conv2d,
    conv2d_bias=F.conv2d,
    conv2d_stride=lambda x, w: F.conv2d(x, w, stride=(2, 3)),
    conv2d_padding=lambda x, w: F.conv2d(x, w, padding=1),
    conv2d_dilation=lambda x, w: F.conv2d(x, w, dilation=2),
    conv2d_groups=lambda x, w: F.conv2d(x, w, groups=2),
    conv2d_depthwise=lambda x, w: F.conv2d(x, w, padding=1, groups=3),
    conv2d_all=lambda x, w, b: F.conv2d(x, w, b, (2, 1), (1, 2), (2, 1), 2),
    conv3d=lambda x, w, b: F.conv3d(x, w, b, padding=(0, 1, 0)),
    conv_transpose1d=F.conv_transpose1d,
    conv_transpose1d_all=lambda x, w: F.conv_transpose1d(
        x, w, stride=3, padding=1, output_padding=1, groups=2, dilation=2),
    conv_transpose2d=F.conv_transpose2d,
    conv_transpose2d_stride=lambda x, w, b: F.conv_transpose2d(
        x, w, b, stride=2, padding=(1, 0), output_padding=(1, 0)),
    conv_transpose3d=lambda x, w: F.conv_transpose3d(x, w, stride=2),
    max_pool1d=lambda x: F.max_pool1d(x, 2),
    max_pool2d=lambda x: F.max_pool2d(x, 2),
    max_pool2d_all=lambda x: F.max_pool2d(x, (3, 2), (2, 1), (1, 1), (1, 2)),
    max_pool2d_rest=lambda x: F.max_pool2d(x, (2, 3)),
    avg_pool1d=lambda x: F.avg_pool1d(x, 3),
    avg_pool2d=lambda x: F.avg_pool2d(x, 2, 1),
    avg_pool2d_padding=lambda x: F.avg_pool2d(x, 3, 2, 1),
    avg_pool2d_uncounted=lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    avg_pool3d=lambda x: F.avg_pool3d(x, 2),
    adaptive_avg_pool=lambda x: F.adaptive_avg_pool2d(x, (2, 3)),
    adaptive_avg_pool_uneven=lambda x: F.adaptive_avg_pool1d(x, 3),
    adaptive_avg_pool_one=lambda x: F.adaptive_avg_pool2d(x, 1),
    adaptive_max_pool=lambda x: F.adaptive_max_pool2d(x, (2, 3)),
    adaptive_max_pool_uneven=lambda x: F.adaptive_max_pool1d(x, 3),
    unfold=lambda x: F.unfold(x, 2),
    unfold_all=lambda x: F.unfold(x, (2, 3), dilation=(1, 2), padding=(1, 0), stride=(2, 1)),
    cross_entropy=F.cross_entropy,
    cross_entropy_sum=lambda x, t: F.cross_entropy(x, t.long(), reduction="sum"),
    cross_entropy_none=lambda x, t: F.cross_entropy(x, t, reduction="none"),
    cross_entropy_space=F.cross_entropy,
    cross_entropy_smooth=lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1),
    cross_entropy_ignore=lambda x, t: F.cross_entropy(x, t, ignore_index=2),
    cross_entropy_ignore_outside=lambda x, t: F.cross_entropy(x, t, ignore_index=-100),
    cross_entropy_ignore_none=lambda x, t: F.cross_entropy(x, t, ignore_index=-100, reduction="none"),
    cross_entropy_ignore_smooth=lambda x, t: F.cross_entropy(x, t, ignore_index=2, label_smoothing=0.2),
    nll_loss=F.nll_loss,
    nll_loss_space=lambda x, t: F.nll_loss(x, t, reduction="sum"),
    nll_loss_none=lambda x, t: F.nll_loss(x, t, reduction="none"),
    mse_loss=F.mse_loss,
    mse_loss_sum=lambda a, b: F.mse_loss(a, b, reduction="sum"),
    mse_loss_none=lambda a, b: F.mse_loss(a, b, reduction="none"),
    bce_with_logits=F.binary_cross_entropy_with_logits,
    bce_with_logits_sum=lambda x, t: F.binary_cross_entropy_with_logits(x, t, reduction="sum"),
    bce_with_logits_far=lambda x, t: F.binary_cross_entropy_with_logits(x, t, reduction="none"),
    attention=attention,
)
