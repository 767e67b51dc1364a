"""The inputs of every op case: the recipe of op_cases.cc, repeated."""
import math

import numpy as np
import torch

MASK = (1 << 64) - 1

NUMPY_TYPES = {
    "bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "f16": np.float16, "bf16": np.float64, "f32": np.float32, "f64": np.float64,
}


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
