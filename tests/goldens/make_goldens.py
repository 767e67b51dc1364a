#!/usr/bin/python3
"""Writes op_cases.txt, the expected result of every op case, from NumPy and PyTorch in f64.

Shares no code with anneal. Inputs follow from inputs.txt (written by the C++ test, see
docs/testing.md) by the recipe of tests/op_cases.cc, repeated here. A case without a function here,
or a function without a case, is an error.

A function gets its inputs as torch tensors; its result is a torch tensor or a NumPy array. Where
torch has no such dtype (u16, u32, u64), or follows another convention, NumPy computes.
"""
import math
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F

HERE = pathlib.Path(__file__).parent
MASK = (1 << 64) - 1

NUMPY_TYPES = {
    "bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "f16": np.float16, "bf16": np.float64, "f32": np.float32, "f64": np.float64,
}
TEXTS = {np.dtype(kind): text for text, kind in NUMPY_TYPES.items() if text != "bf16"}


# ---- the recipe of inputs -----------------------------------------------------------------------

def seed_of(name, number):
    value = 0xCBF29CE484222325
    for byte in f"{name}/{number}".encode():
        value = (value ^ byte) * 0x100000001B3 & MASK
    return value


def draw(seed, position):
    z = seed + (position + 1) * 0x9E3779B97F4A7C15 & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return (z ^ z >> 31) >> 32


def on_grid(point, number):
    return (8 * point + (4, 2, 6, 3)[number % 4]) / 8192


def input_values(name, number, recipe, numbers, count):
    if recipe == "listed":
        return numbers
    seed = seed_of(name, number)
    steps = 1 if recipe == "integers" else 1024
    low, high = (round(end * steps) for end in numbers)
    draws = [draw(seed, i) for i in range(count)]
    if recipe == "integers":
        return [low + d % (high - low + 1) for d in draws]
    if recipe == "uniform":
        return [on_grid(low + d % (high - low), number) for d in draws]
    values = [0.0] * count
    for rank, i in enumerate(sorted(range(count), key=lambda i: draws[i])):
        values[i] = on_grid(low + rank * (high - low) // count, number)
    return values


def shape_of(text):
    return [int(size) for size in text.strip("[]").split(",") if size]


def read_inputs(line):
    name, *specs = line.split(" ; ")
    inputs = []
    for number, spec in enumerate(specs):
        dtype, shape, recipe, *numbers = spec.split()
        shape = shape_of(shape)
        values = input_values(name, number, recipe, [float(n) for n in numbers], math.prod(shape))
        array = np.array(values, dtype=np.float64).astype(NUMPY_TYPES[dtype]).reshape(shape)
        torch_knows = dtype not in ("u16", "u32", "u64")
        inputs.append(torch.from_numpy(array) if torch_knows else array)
    return name.strip(), inputs


# ---- helpers of the references ------------------------------------------------------------------

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


# ---- elementwise --------------------------------------------------------------------------------

for each in ("add", "add_row", "add_column_row", "add_ranks", "add_scalar_tensor", "add_scalars", "add_empty"):
    case(**{each: lambda a, b: a + b})
case(
    add_number=lambda x: x + 3,
    add_number_left=lambda x: 0.5 + x,
    add_itself=lambda x: 2 * x,
    subtract=lambda a, b: a - b,
    subtract_broadcast=lambda a, b: a - b,
    subtract_number_left=lambda x: 1 - x,
    multiply=lambda a, b: a * b,
    multiply_broadcast=lambda a, b: a * b,
    multiply_chain=lambda a, b: a * a * b + 3 * b,
    divide=lambda a, b: a / b,
    divide_broadcast=lambda a, b: a / b,
    divide_number_left=lambda x: 1 / x,
    divide_number=lambda x: x / 4,
    remainder=torch.remainder,
    remainder_negative=torch.remainder,
    negate=lambda x: -x,
    floor_divide=lambda a, b: torch.floor(a / b),
    floor_divide_negative=lambda a, b: torch.floor(a / b),
    pow=torch.pow,
    pow_square=lambda x: x * x,
    pow_cube=lambda x: x * x * x,
    pow_half=torch.sqrt,
    pow_negative=lambda x: x**-1.5,
    pow_number_left=torch.exp2,
    pow_broadcast=torch.pow,
    maximum=torch.maximum,
    maximum_number=lambda x: x.clamp(min=0),
    maximum_broadcast=torch.maximum,
    minimum=torch.minimum,
    minimum_number_left=lambda x: x.clamp(max=1),
    minimum_broadcast=torch.minimum,
    clamp=lambda x: x.clamp(-1, 2),
    where=torch.where,
    where_number=lambda c, x: x * c,
    where_broadcast=torch.where,
    where_compared=lambda a, b: torch.where(a > b, a * 2, b * b),
    less=torch.lt,
    less_equal=torch.le,
    greater=torch.gt,
    greater_equal=torch.ge,
    equal=torch.eq,
    equal_number=lambda x: x == 1,
    not_equal=torch.ne,
    less_number=lambda x: x < 0.5,
    equal_bool=torch.eq,
    less_bool=lambda a, b: ~a & b,
    abs=torch.abs,
    sign=torch.sign,
    sign_zero=torch.sign,
    exp=torch.exp,
    exp2=torch.exp2,
    log=torch.log,
    log2=torch.log2,
    log10=torch.log10,
    log1p=torch.log1p,
    expm1=torch.expm1,
    sin=torch.sin,
    cos=torch.cos,
    tan=torch.tan,
    tanh=torch.tanh,
    erf=torch.erf,
    erfc=torch.erfc,
    asin=torch.asin,
    acos=torch.acos,
    atan=torch.atan,
    sinh=torch.sinh,
    cosh=torch.cosh,
    asinh=torch.asinh,
    acosh=torch.acosh,
    atanh=torch.atanh,
    atan2=torch.atan2,
    atan2_broadcast=torch.atan2,
    logaddexp=torch.logaddexp,
    logaddexp_broadcast=torch.logaddexp,
    logaddexp_equal=lambda x: torch.logaddexp(x, x),
    functions_of_small=lambda x: np.stack([f(x.numpy()) for f in (
        np.log1p, np.expm1, np.sinh, np.arcsinh, np.arctanh, np.arcsin, np.arctan,
        lambda v: np.arccosh(1 + np.abs(v)))]),
    functions_of_large=lambda x: torch.cat([torch.from_numpy(np.stack([f(x.numpy()) for f in (
        np.arcsinh, lambda v: np.arcsinh(-v), np.arccosh, np.arctan, np.log1p, np.log10)])),
        torch.erfc(x / 1e160 + 5)[None]]),
    sqrt=torch.sqrt,
    rsqrt=torch.rsqrt,
    reciprocal=torch.reciprocal,
    square=torch.square,
    floor=torch.floor,
    ceil=torch.ceil,
    trunc=torch.trunc,
    round=torch.round,
    round_halves=torch.round,
    sin_nested=lambda x: torch.sin(torch.exp(x) * x),
    sqrt_integer=lambda x: f32(torch.sqrt(x.double())),
    is_nan=lambda x: x == 0,
    is_inf=lambda x: x == 0,
    is_finite=lambda x: x != 0,
    cast_f32=lambda x: f32(torch.sin(x)),
    cast_f16=lambda x: (torch.sin(x) * 100).numpy().astype(np.float16),
    cast_bf16=lambda x: Narrow("bf16", x.to(torch.bfloat16).double()),
    cast_f8e4m3=lambda x: Narrow("f8e4m3", fp8(4, 3, 7, False, x)),
    cast_f8e5m2=lambda x: Narrow("f8e5m2", fp8(5, 2, 15, True, x)),
    cast_i32=lambda x: saturate(x, np.int32),
    cast_i8_saturates=lambda x: saturate(x, np.int8),
    cast_u8_saturates=lambda x: saturate(x, np.uint8),
    cast_bool=lambda x: x != 0,
    cast_from_i64=lambda x: x.double(),
    cast_from_bool=f32,
    cast_wraps=lambda x: (x.numpy() % 65536).astype(np.uint16),
    cast_there_and_back=lambda x: f32(x.double() ** 2),
    bitcast_f64_u64=lambda x: x.numpy().view(np.uint64),
    bitcast_f32_i32=lambda x: x.numpy().view(np.int32),
    bitcast_i32_f32=lambda x: x.numpy().view(np.float32),
    bitcast_i16_u16=lambda x: x.numpy().view(np.uint16),
    promote_f32_f64=lambda a, b: a.double() * b,
    promote_i32_f64=lambda a, b: a * b,
    promote_f16_bf16=lambda a, b: f32(a.double() + b.double()),
    promote_bool_sum=lambda a, b: a.int() + b.int(),
    contiguous=lambda x: x * 2 + 1,
    pow_zero_base=lambda x: x * x + x * x * x,
    nan_arithmetic=lambda a, b: a * b.unsqueeze(1) + a,
    nan_remainder=lambda a, b: np.remainder(a.numpy(), b.unsqueeze(1).numpy()),
    nan_floor_divide=lambda a, b: np.floor_divide(a.numpy(), b.unsqueeze(1).numpy()),
    remainder_far=lambda a, b: np.remainder(a.numpy(), b.unsqueeze(1).numpy()),
    floor_divide_far=lambda a, b: np.floor_divide(a.numpy(), b.unsqueeze(1).numpy()),
    nan_divide=lambda a, b: a / b.unsqueeze(1),
    nan_maximum=lambda a, b: torch.maximum(a, b.unsqueeze(1)),
    nan_minimum=lambda a, b: torch.minimum(a, b.unsqueeze(1)),
    nan_compare=lambda a, b: a < b.unsqueeze(1),
    nan_equal=lambda a, b: a == b.unsqueeze(1),
    nan_clamp=lambda x: x.clamp(-1, 1),
    nan_relu=F.relu,
    nan_inverse_functions=lambda x: torch.cat([torch.from_numpy(np.stack([f(x.numpy()) for f in (
        np.log1p, np.expm1, np.log10, np.sinh, np.cosh, np.arcsinh, np.arccosh, np.arctanh,
        np.arcsin, np.arccos, np.arctan)])), torch.erfc(x)[None]]),
    nan_atan2=lambda x, y: torch.atan2(x, y[:, None]),
    nan_logaddexp=lambda x, y: np.logaddexp(x.numpy(), y.numpy()[:, None]),
    nan_functions=lambda x: torch.stack([f(x) for f in (torch.sqrt, torch.log, torch.exp, torch.tanh, torch.erf, torch.sin)]),
    nan_sum=lambda x: x.cumsum(0),
    nan_max=lambda x: torch.stack([x.amax(1), x.amin(1)]),
    nan_sort=lambda x: np.sort(x.numpy()),
    nan_sort_descending=lambda x: i32(x.sort(dim=0, descending=True, stable=True).indices),
    nan_argmax=lambda x: np.stack([first_index(x, -1, False, np.argmax), first_index(x, -1, False, np.argmin)]),
    nan_logsumexp=lambda x: torch.logsumexp(x, 1),
    nan_any=lambda x: torch.stack([(x != 0).any(1), (x != 0).all(1)]),
)

# ---- integers -----------------------------------------------------------------------------------

case(
    int_add_wraps=lambda a, b: a.numpy() + b.numpy(),
    int_multiply_wraps=lambda a, b: (a.astype(np.int64) * b % 65536).astype(np.uint16),
    int_subtract_unsigned=lambda a, b: a.numpy() - b.numpy(),
    int_negate_unsigned=lambda x: (-x.astype(np.int64) % 2**32).astype(np.uint32),
    int_abs=lambda x: np.array([-128, 127, 1, 0, 127], dtype=np.int8),
    int_divide=lambda a, b: f32(a.double() / b.double()),
    int_floor_divide=lambda a, b: a.numpy() // b.numpy(),
    int_floor_divide_zero=lambda x: torch.zeros_like(x),
    int_floor_divide_unsigned=lambda a, b: a.numpy() // b.numpy(),
    int_remainder=lambda a, b: a.numpy() % b.numpy(),
    int_remainder_zero=lambda x: torch.zeros_like(x),
    int_remainder_number=lambda x: x.numpy() % np.int16(4),
    int_maximum_mixed=lambda a, b: np.maximum(a.numpy().astype(np.int16), b.numpy().astype(np.int16)),
    int_add_float=lambda x: f32(x + 0.5),
    int_pow=lambda x: x * x,
    int_exp=lambda x: f32(torch.exp(x.double())),
    bit_and=lambda a, b: a & b,
    bit_or=lambda a, b: a | b,
    bit_xor=lambda a, b: a ^ b,
    bit_not=lambda x: ~x,
    bit_not_unsigned=lambda x: ~x,
    shift_left=lambda a, b: a * 2**b,
    shift_left_beyond=lambda a, b: np.array([128, 0, 0, 192], dtype=np.uint8),
    shift_right=lambda a, b: (a.numpy() // 2 ** b.numpy()).astype(np.int32),
    shift_right_number=lambda x: x.numpy() // np.uint8(8),
    logic_and=lambda a, b: a & b,
    logic_or=lambda a, b: a | b,
    logic_xor=lambda a, b: a ^ b,
    logic_not=lambda x: ~x,
    logic_not_number=lambda x: x == 0,
    logic_bit_not=lambda x: ~x,
)

# ---- reductions ---------------------------------------------------------------------------------

case(
    sum=torch.sum,
    sum_first=lambda x: x.sum(0),
    sum_last=lambda x: x.sum(-1),
    sum_two_keep=lambda x: x.sum((0, 2), keepdim=True),
    sum_none=lambda x: x,
    sum_scalar=lambda x: x,
    sum_empty=lambda x: torch.zeros(3, dtype=torch.float64),
    sum_bool=lambda x: i32(x.sum(0)),
    sum_squares=lambda x: (x * x).sum(1, keepdim=True) * x,
    prod=torch.prod,
    prod_last_keep=lambda x: x.prod(-1, keepdim=True),
    prod_one_zero=lambda x: x.prod(1),
    prod_two_zeros=lambda x: x.prod(1),
    prod_empty=lambda x: torch.ones(2, dtype=torch.float64),
    max=torch.max,
    max_axis=lambda x: x.amax(1),
    max_two_keep=lambda x: x.amax((0, 2), keepdim=True),
    max_ties=lambda x: x.amax(0),
    min=torch.min,
    min_axis_keep=lambda x: x.amin(1, keepdim=True),
    mean=torch.mean,
    mean_first_keep=lambda x: x.mean(0, keepdim=True),
    mean_two=lambda x: x.mean((1, 2)),
    mean_integer=lambda x: f32(x.double().mean(1)),
    var=lambda x: x.var(),
    var_last=lambda x: x.var(-1),
    var_population_keep=lambda x: x.var((0, 1), unbiased=False, keepdim=True),
    stddev=lambda x: x.std(),
    stddev_axis=lambda x: x.std(1, unbiased=False, keepdim=True),
    any=lambda x: x.any(1),
    any_all_axes=lambda x: x.any(),
    any_numbers=lambda x: (x != 0).any(-1, keepdim=True),
    any_negative=lambda x: (x != 0).any(1),
    all=lambda x: x.all(1),
    all_numbers=lambda x: (x != 0).all(0, keepdim=True),
    all_empty=lambda x: torch.ones(2, dtype=torch.bool),
    argmax=lambda x: first_index(x, -1, False, np.argmax),
    argmax_first_keep=lambda x: first_index(x, 0, True, np.argmax),
    argmax_ties=lambda x: first_index(x, 1, False, np.argmax),
    argmin=lambda x: first_index(x, 0, False, np.argmin),
    argmin_ties=lambda x: first_index(x, 1, True, np.argmin),
    logsumexp=lambda x: torch.logsumexp(x, (0, 1)),
    logsumexp_keep=lambda x: torch.logsumexp(x, (0, 2), keepdim=True),
    logsumexp_large=lambda x: torch.logsumexp(x, 1),
    cumsum=lambda x: x.cumsum(-1),
    cumsum_first=lambda x: x.cumsum(1),
    cumsum_long=lambda x: x.cumsum(0),
    cumprod=lambda x: x.cumprod(-1),
    cumprod_first=lambda x: x.cumprod(0),
    cumprod_zero=lambda x: x.cumprod(0),
    sort=lambda x: np.sort(x.numpy(), axis=-1),
    sort_indices=lambda x: stable_order(x, -1),
    sort_descending=lambda x: -np.sort(-x.numpy(), axis=0),
    sort_length=lambda x: np.sort(x.numpy()),
    sort_stable=lambda x: stable_order(x, -1),
    sort_stable_descending=lambda x: stable_order(x, 1, descending=True),
    sort_one=lambda x: x,
    topk=lambda x: x.topk(2).values,
    topk_indices=lambda x: i32(x.topk(2).indices),
    topk_smallest=lambda x: x.topk(3, 0, largest=False).values,
    topk_smallest_indices=lambda x: i32(x.topk(3, 0, largest=False).indices),
    topk_all=lambda x: x.topk(4).values,
)

# ---- movement -----------------------------------------------------------------------------------

case(
    reshape=lambda x: x.reshape(6, 4),
    reshape_guess=lambda x: x.reshape(4, 6),
    reshape_split=lambda x: x.reshape(3, 2, 2),
    reshape_scalar=lambda x: x.reshape(()),
    reshape_from_scalar=lambda x: x.reshape(1, 1),
    reshape_transposed=lambda x: x.permute(2, 0, 1).reshape(6, 4),
    permute=lambda x: x.permute(2, 0, 1),
    permute_negative=lambda x: x.permute(2, 1, 0),
    transpose=lambda x: x.T,
    transpose_axes=lambda x: x.transpose(0, 2),
    expand=lambda x: x.expand(3, 4),
    expand_front=lambda x: x.expand(2, 4, 3),
    expand_scalar=lambda x: x.expand(2, 3),
    pad=lambda x: np.pad(x.numpy(), [(1, 2), (0, 1)]),
    pad_value=lambda x: np.pad(x.numpy(), [(1, 0), (2, 1)], constant_values=3),
    pad_reflect=lambda x: np.pad(x.numpy(), [(2, 1), (0, 3)], mode="reflect"),
    pad_replicate=lambda x: np.pad(x.numpy(), [(2, 1), (0, 3)], mode="edge"),
    pad_circular=lambda x: np.pad(x.numpy(), [(2, 1), (0, 3)], mode="wrap"),
    slice=lambda x: x[1:3, 0:2],
    slice_open=lambda x: x[1:, :3],
    slice_negative=lambda x: x[-3:-1, :-2],
    slice_first_axis=lambda x: x[1:3],
    slice_step=lambda x: x[1:6:2, ::3],
    slice_backwards=python_slice(step=-1),
    slice_backwards_step=python_slice(-2, 0, -2),
    slice_backwards_open=python_slice(step=-3),
    slice_empty=lambda x: x[2:2],
    slice_beyond=lambda x: x[2:9],
    slice_to_variable=lambda x: x[1:-1],
    row=lambda x: x[1],
    row_last=lambda x: x[-1][2],
    flip=lambda x: x.flip((0, 1)),
    flip_axis=lambda x: x.flip(1),
    flip_two=lambda x: x.flip((0, 2)),
    squeeze=lambda x: x.squeeze(),
    squeeze_axis=lambda x: x.squeeze(-1),
    unsqueeze=lambda x: x.unsqueeze(1),
    unsqueeze_last=lambda x: x.unsqueeze(-1),
    flatten=torch.flatten,
    flatten_end=lambda x: x.flatten(1),
    flatten_begin=lambda x: x.flatten(0, 1),
    flatten_scalar=torch.flatten,
    split=lambda x: torch.cat([x[2:], x[:2] * 2]),
    split_axis=lambda x: x[:, 1:4],
    chunk=lambda x: x[:, 4:] - x[:, :2],
    chunk_uneven=lambda x: torch.cat(list(reversed(x.chunk(3)))),
    concat=lambda a, b: torch.cat([a, b]),
    concat_last=lambda a, b, c: torch.cat([a, b, c], -1),
    concat_itself=lambda x: torch.cat([x, x]),
    stack=lambda a, b: torch.stack([a, b]),
    stack_last=lambda a, b: torch.stack([a, b], -1),
    repeat=lambda x: x.repeat_interleave(2, 0),
    repeat_last=lambda x: x.repeat_interleave(3, -1),
    tile=lambda x: x.tile(2, 2),
    tile_new_axis=lambda x: x.tile(2, 1, 2),
    roll=lambda x: x.roll(1, 0),
    roll_negative=lambda x: x.roll(-1, -1),
    roll_far=lambda x: x.roll(7, 0),
    tril=torch.tril,
    tril_above=lambda x: x.tril(1),
    triu=torch.triu,
    triu_below=lambda x: x.triu(-1),
    diagonal=torch.diagonal,
    diagonal_above=lambda x: x.diagonal(1, -2, -1),
    diagonal_below=lambda x: x.diagonal(-1),
    move_bool=lambda x: np.pad(x.numpy().T[::-1], [(1, 0), (0, 1)]),
    move_chain=lambda x: np.pad(x.permute(1, 2, 0).numpy(), [(1, 0), (0, 0), (0, 2)])[:, ::-1].swapaxes(0, 2),
)

# ---- indexing -----------------------------------------------------------------------------------

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

# ---- products -----------------------------------------------------------------------------------

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

# ---- functional ---------------------------------------------------------------------------------


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

# ---- structure ----------------------------------------------------------------------------------

case(
    zeros=lambda: np.zeros((2, 3), np.float32),
    ones=lambda: np.ones((2, 3), np.int16),
    full=lambda: np.full((2, 2), 2.5),
    full_bool=lambda: np.ones(2, np.bool_),
    zeros_like=torch.zeros_like,
    ones_like=lambda x: x,
    full_like=lambda x: torch.full_like(x, 3),
    arange=lambda: np.arange(5, dtype=np.int32),
    arange_f64=lambda: f64([0, 0.5, 1, 1.5]),
    arange_step=lambda: f64([1, 3.5, 6]),
    arange_down=lambda: np.array([3, 1, -1], np.int64),
    arange_to_variable=lambda x: torch.arange(3).unsqueeze(1) * x,
    eye=lambda: np.eye(3, dtype=np.float32),
    eye_wide=lambda: np.eye(2, 4),
    eye_variable=lambda x: 2 * x,
    from_dim=lambda x: np.array(7, np.int64),
    from_dim_f64=lambda x: x.mean(0),
    from_data=lambda: 2 * np.arange(1.0, 7.0).reshape(2, 3),
    tensor=lambda: np.array([[11, 18], [13, 24]], np.int32),
    stop_gradient=lambda x: x * x,
    named=lambda x: torch.exp(x) * torch.exp(x),
    custom_gradient=torch.exp,
    custom_gradient_two=lambda a, b: 2 * a * b,
    parameter=lambda: np.full((2, 3), 3.0),
    assign=lambda x: x * 2,
    random_bits=lambda: bits(42, 0, (2, 5)),
    random_bits_draw=lambda: bits(0x123456789ABCDEF0, 7, (5,)),
    random_uniform=lambda: unit(1, 0, (2, 5)) * 4 - 1,
    random_uniform_f32=lambda: unit(2, 0, (7,)).astype(np.float32),
    random_normal=lambda: 2 * normal(3, (3, 3)) + 1,
    random_integers=lambda: randint(4, (12,), -3, 5, np.int32),
    random_rand=lambda: unit(5, 0, (2, 3)),
    random_randn=lambda: normal(6, (4,)),
    random_uniform_thread=lambda: unit(7, 0, (4,)) + 2,
    random_randint=lambda: randint(8, (6,), 10, 100, np.uint8),
    random_keyed_bits=lambda: bits(0x123456789ABCDEF0, 0x500000007, (2, 3)),
    random_keyed_uniform=lambda: unit(10, 0, (5,)) * 4 - 1,
    random_keyed_normal=lambda: 2 * normal(11, (4,)) + 1,
    random_split=lambda: bits(split_seed(12, 3), 0, (3,)),
    random_second_draw=lambda: bits(9, 0, (4,)) ^ bits(9, 1, (4,)),
)

# ---- search -------------------------------------------------------------------------------------


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

# ---- losses -------------------------------------------------------------------------------------


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


# ---- the file -----------------------------------------------------------------------------------

def text_of(value):
    if isinstance(value, (bool, np.bool_)):
        return str(int(value))
    return repr(float(value)) if isinstance(value, (float, np.floating)) else str(int(value))


def line_of(name, result):
    if isinstance(result, Narrow):
        text, array = result.text, result.values
    else:
        array = np.asarray(result)
        text = TEXTS[array.dtype]
    shape = ",".join(str(size) for size in array.shape)
    return " ".join([name, text, f"[{shape}]", *(text_of(v) for v in array.reshape(-1))])


def main():
    lines = (HERE / "inputs.txt").read_text().splitlines()
    names = [line.split()[0] for line in lines]
    missing, extra = set(names) - set(CASES), set(CASES) - set(names)
    if missing or extra:
        sys.exit(f"make_goldens: cases without a function: {sorted(missing)}; "
                 f"functions without a case: {sorted(extra)}")
    results = []
    for line in lines:
        name, inputs = read_inputs(line)
        try:
            results.append(line_of(name, CASES[name](*inputs)))
        except Exception as error:
            sys.exit(f"make_goldens: {name}: {error!r}")
    (HERE / "op_cases.txt").write_text("\n".join(results) + "\n")
    print(f"{len(results)} goldens")


if __name__ == "__main__":
    main()
