#!/usr/bin/python3
"""Writes nn_cases.txt, results and gradients of layers, from PyTorch in f64.

Shares no code with anneal. Values of parameters and inputs follow from the case's name and the
path ("linear/up.weight") by the recipe of recipe.py, so that goldens hold results only. A
line is: case ; what ; [shape] numbers. The loss of a case is the sum of its result times weights
of the same recipe ("linear/loss").
"""
import math
import pathlib

import torch
import torch.nn.functional as F

from recipe import draw, seed_of

HERE = pathlib.Path(__file__).parent
CASES = {}


def values(case, path, shape, low=-1.0, high=1.0):
    """On a grid of 1/1024 from low up to high."""
    seed = seed_of(case, path)
    first, count = round(low * 1024), round((high - low) * 1024)
    numbers = [(first + draw(seed, i) % count) / 1024 for i in range(math.prod(shape))]
    return torch.tensor(numbers, dtype=torch.float64).reshape(shape)


def whole(case, path, shape, limit):
    seed = seed_of(case, path)
    numbers = [draw(seed, i) % limit for i in range(math.prod(shape))]
    return torch.tensor(numbers, dtype=torch.int64).reshape(shape)


class Context:
    """Hands out what a case needs and remembers what gradients are wanted of."""

    def __init__(self, name):
        self.name, self.leaves = name, {}

    def __call__(self, path, *shape, low=-1.0, high=1.0):
        if path not in self.leaves:
            tensor = values(self.name, path, shape, low, high).requires_grad_()
            self.leaves[path] = tensor
        return self.leaves[path]

    def whole(self, path, *shape, limit):
        return whole(self.name, path, shape, limit)


def case(function):
    CASES[function.__name__] = function
    return function


# ---- layers -------------------------------------------------------------------------------------

def linear(c, x, path, n_in, n_out, bias=True):
    b = c(path + ".bias", n_out) if bias else None
    return F.linear(x, c(path + ".weight", n_out, n_in), b)


def layer_norm(c, x, path, width):
    return F.layer_norm(x, (width,), c(path + ".weight", width), c(path + ".bias", width), 1e-5)


def rms_norm(c, x, path, width):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * c(path + ".weight", width)


def rotary(x, base=10000.0):
    """The rotation of Llama: halves, not neighbours."""
    size = x.shape[-1]
    frequency = 1.0 / base ** (torch.arange(0, size, 2, dtype=torch.float64) / size)
    angle = torch.outer(torch.arange(x.shape[-2], dtype=torch.float64), frequency)
    angle = torch.cat([angle, angle], -1)
    turned = torch.cat([-x[..., size // 2:], x[..., :size // 2]], -1)
    return x * angle.cos() + turned * angle.sin()


def attention(c, x, path, width, heads, kv_heads=None, causal=True, rope=False, bias=True):
    kv_heads = kv_heads or heads
    size = width // heads
    batch, tokens, _ = x.shape
    qkv = linear(c, x, path + ".qkv", width, (heads + 2 * kv_heads) * size, bias)
    parts = qkv.split([heads * size, kv_heads * size, kv_heads * size], -1)
    q, k, v = (p.reshape(batch, tokens, -1, size).transpose(1, 2) for p in parts)
    if rope:
        q, k = rotary(q), rotary(k)
    k, v = (t.repeat_interleave(heads // kv_heads, 1) for t in (k, v))
    scores = q @ k.transpose(-1, -2) / math.sqrt(size)
    if causal:
        hidden = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, -math.inf)
    mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, tokens, width)
    return linear(c, mixed, path + ".out", width, width, bias)


def mlp(c, x, path, width, hidden):
    up = F.gelu(linear(c, x, path + ".up", width, hidden), approximate="tanh")
    return linear(c, up, path + ".down", hidden, width)


def swiglu(c, x, path, width, hidden):
    gate = F.silu(linear(c, x, path + ".gate", width, hidden, False))
    up = linear(c, x, path + ".up", width, hidden, False)
    return linear(c, gate * up, path + ".down", hidden, width, False)


@case
def linear_bias(c):
    return linear(c, c("x", 2, 3, 5), "m", 5, 4)


@case
def linear_plain(c):
    return linear(c, c("x", 3, 5), "m", 5, 4, bias=False)


@case
def conv1d(c):
    return F.conv1d(c("x", 2, 3, 11), c("m.weight", 4, 3, 3), c("m.bias", 4),
                    stride=2, padding=1)


@case
def conv2d(c):
    return F.conv2d(c("x", 2, 3, 5, 6), c("m.weight", 4, 3, 3, 3), c("m.bias", 4), padding=1)


@case
def conv2d_groups_dilation(c):
    return F.conv2d(c("x", 1, 4, 7, 6), c("m.weight", 6, 2, 3, 2), None,
                    stride=(1, 2), padding=(2, 0), dilation=(2, 1), groups=2)


@case
def embedding(c):
    return F.embedding(c.whole("index", 2, 5, limit=4), c("m.weight", 4, 3))


@case
def layer_norm_affine(c):
    return layer_norm(c, c("x", 2, 3, 6), "m", 6)


@case
def rms_norm_affine(c):
    return rms_norm(c, c("x", 2, 3, 6), "m", 6)


@case
def group_norm(c):
    return F.group_norm(c("x", 2, 6, 4), 3, c("m.weight", 6), c("m.bias", 6), 1e-5)


def batch_norm(c, x, training):
    mean = c("m.running_mean", 3).detach().clone()
    var = c("m.running_var", 3, low=0.5, high=1.5).detach().clone()
    del c.leaves["m.running_mean"], c.leaves["m.running_var"]
    y = F.batch_norm(x, mean, var, c("m.weight", 3), c("m.bias", 3), training, 0.1, 1e-5)
    return y, {"m.running_mean": mean, "m.running_var": var}


@case
def batch_norm_train(c):
    return batch_norm(c, c("x", 4, 3, 2, 2), True)


@case
def batch_norm_eval(c):
    return batch_norm(c, c("x", 4, 3), False)


@case
def attention_causal(c):
    return attention(c, c("x", 2, 5, 8), "m", 8, 2)


@case
def attention_full(c):
    return attention(c, c("x", 2, 4, 6), "m", 6, 3, causal=False, bias=False)


@case
def attention_grouped_rotary(c):
    return attention(c, c("x", 2, 5, 16), "m", 16, 4, kv_heads=2, rope=True)


@case
def mlp_gelu(c):
    return mlp(c, c("x", 2, 3, 4), "m", 4, 8)


@case
def mlp_swiglu(c):
    return swiglu(c, c("x", 2, 3, 4), "m", 4, 6)


def gpt(c, layers, width, heads, vocabulary, block, kv_heads=None, llama=False):
    tokens = c.whole("tokens", 2, 5, limit=vocabulary)
    norm = rms_norm if llama else layer_norm
    x = F.embedding(tokens, c("embedding.weight", vocabulary, width))
    if not llama:
        x = x + c("position.weight", block, width)[:5]
    for i in range(layers):
        path = f"blocks.{i}"
        x = x + attention(c, norm(c, x, path + ".norm1", width), path + ".attn", width, heads,
                          kv_heads, rope=llama, bias=not llama)
        feed = swiglu if llama else mlp
        x = x + feed(c, norm(c, x, path + ".norm2", width), path + ".mlp", width,
                     12 if llama else 4 * width)
    x = norm(c, x, "norm", width)
    head = c("head.weight", vocabulary, width) if llama else c("embedding.weight")
    return x @ head.T


@case
def gpt_small(c):
    return gpt(c, 2, 8, 2, 11, 6)


@case
def llama_small(c):
    return gpt(c, 2, 8, 4, 11, 6, kv_heads=2, llama=True)


def line(name, what, tensor):
    sizes = ",".join(str(size) for size in tensor.shape)
    numbers = " ".join(repr(float(v)) for v in tensor.detach().reshape(-1))
    return f"{name} ; {what} ; [{sizes}] {numbers}\n"


def main():
    text = "# Made by make_nn_goldens.py from PyTorch; do not edit.\n"
    for name, function in CASES.items():
        context = Context(name)
        result = function(context)
        result, extra = result if isinstance(result, tuple) else (result, {})
        loss = (result * values(name, "loss", result.shape)).sum()
        gradients = torch.autograd.grad(loss, list(context.leaves.values()))
        text += line(name, "result", result)
        for path, tensor in extra.items():
            text += line(name, "after " + path, tensor)
        for path, gradient in zip(context.leaves, gradients):
            text += line(name, "grad " + path, gradient)
    (HERE / "nn_cases.txt").write_text(text)


if __name__ == "__main__":
    main()
