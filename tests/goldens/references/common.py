"""The table that every family fills, and functions that several of them use."""
import math
import sys

import numpy as np
import torch



CASES = {}


def case(**functions):
    for name, function in functions.items():
        if name in CASES:
            sys.exit(f"make_goldens: {name} has two functions")
        CASES[name] = function


def i32(x):
    return x.to(torch.int32)


def f32(x):
    return x.to(torch.float32)


def f64(values):
    return np.array(values, dtype=np.float64)


class Narrow:
    """A result in a dtype NumPy does not have: its text and its values as f64."""

    def __init__(self, text, values):
        self.text, self.values = text, np.asarray(values, dtype=np.float64)


def fp8(exponent_bits, mantissa_bits, bias, has_infinity, x):
    """Nearest value of the format, ties to the even code, by search among all positive codes."""
    table = []
    for code in range(128):
        exponent, mantissa = code >> mantissa_bits, code & ((1 << mantissa_bits) - 1)
        top = exponent == (1 << exponent_bits) - 1
        if (has_infinity and top) or code == 127:
            continue
        scale = 2.0 ** (max(exponent, 1) - bias - mantissa_bits)
        table.append((((exponent > 0) << mantissa_bits) + mantissa) * scale)

    def nearest(value):
        best = min(range(len(table)), key=lambda c: (abs(table[c] - abs(value)), c % 2))
        return math.copysign(table[best], value)

    return np.vectorize(nearest)(x.numpy())


def saturate(x, kind):
    info = np.iinfo(kind)
    return np.clip(np.trunc(x.numpy()), info.min, info.max).astype(kind)


def outside_is_zero(x, index, axis):
    """take_along_axis where an index outside the axis reads 0."""
    inside = (index >= 0) & (index < x.shape[axis])
    taken = torch.take_along_dim(x, index.long().clamp(0, x.shape[axis] - 1), axis)
    return torch.where(inside, taken, torch.zeros_like(taken))


def scattered(x, axis, index, values, add=False):
    """By a loop in order, so that the last of equal places wins; outside writes nothing."""
    result, index, values = x.numpy().copy(), index.numpy(), np.asarray(values)
    values = np.broadcast_to(values, index.shape)
    for place in np.ndindex(*index.shape):
        target = list(place)
        target[axis] = int(index[place])
        if not 0 <= target[axis] < result.shape[axis]:
            continue
        if add:
            result[tuple(target)] += values[place]
        else:
            result[tuple(target)] = values[place]
    return result


def stable_order(x, axis, descending=False):
    keys = -x.numpy() if descending else x.numpy()
    return np.argsort(keys, axis=axis, kind="stable").astype(np.int32)


def first_index(x, axis, keep, function):
    index = function(x.numpy(), axis=axis).astype(np.int32)
    return np.expand_dims(index, axis) if keep else index


def python_slice(begin=None, end=None, step=None):
    return lambda x: x.numpy()[begin:end:step]


def split_seed(seed, number):
    key = (seed & 0xFFFFFFFF, ~(seed >> 32 ^ number >> 32) & 0xFFFFFFFF)
    low, high = (threefry((i, number & 0xFFFFFFFF), key) for i in (0, 1))
    return low | high << 32


def threefry(counter, key):
    """threefry2x32-20 of Random123: the first word."""
    rotations = (13, 15, 26, 6, 17, 29, 16, 24)
    m = 0xFFFFFFFF
    keys = (key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA)
    x, y = counter[0] + keys[0] & m, counter[1] + keys[1] & m
    for r in range(20):
        x = x + y & m
        y = (y << rotations[r % 8] | y >> 32 - rotations[r % 8]) & m
        y ^= x
        if r % 4 == 3:
            s = r // 4 + 1
            x = x + keys[s % 3] & m
            y = y + keys[(s + 1) % 3] + s & m
    return x


# The known answers of Random123: zero, and the digits of pi.
assert threefry((0, 0), (0, 0)) == 0x6B200159
assert threefry((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344)) == 0xC4923A9C


def bits(seed, number, shape):
    key = (seed & 0xFFFFFFFF, seed >> 32 ^ number >> 32)
    words = [threefry((i, number & 0xFFFFFFFF), key) for i in range(math.prod(shape))]
    return np.array(words, dtype=np.uint32).reshape(shape)


def unit(seed, number, shape):
    return (bits(seed, number, shape) >> np.uint32(8)).astype(np.float64) / 2**24


def normal(seed, shape):
    u, v = 1 - unit(seed, 0, shape), unit(seed, 1, shape)
    return np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v)


def randint(seed, shape, low, high, kind):
    return (np.floor(bits(seed, 0, shape).astype(np.float64) / 2**32 * (high - low)) + low).astype(kind)
