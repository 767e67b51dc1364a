#!/usr/bin/env python3
"""Runs random programs that anneal wrote with PyTorch, for values and gradients.

usage: torch_programs.py PROGRAMS OUT.safetensors
PROGRAMS has a step a line, [op, dtype, [sources], {attributes}], and an "end" after each program,
which names its results and the inputs it is differentiated by. Floats are computed in f64, and f32
programs in f32 too, which tells how far rounding goes. OUT gets "3.out1", "3.grad0", and "3.out1.f32",
"3.grad0.f32". Integers are i64 that are wrapped to their width after every step, as PyTorch lacks most
unsigned ones. Ends with status 77 and a sentence where PyTorch is not installed.
"""
import json
import struct
import sys

try:
    import torch
    import torch.nn.functional as F
except ImportError as error:
    print(f"no PyTorch: {error}")
    sys.exit(77)

FLOATS = ("f32", "f64")


def wrapped(x, dtype):
    """i64 as an integer of that dtype, in i64; a u64 by its bits."""
    bits = int(dtype[1:])
    if bits == 64:
        return x
    x = x & ((1 << bits) - 1)
    return torch.where(x >= 1 << (bits - 1), x - (1 << bits), x) if dtype[0] == "i" else x


def data(shape, factor):
    count = torch.Size(shape).numel()
    return ((torch.arange(count) * factor % 61 - 30) / 16).reshape(shape)


def float_leaves(real):
    """The same numbers whatever they are computed in: those of the program's dtype."""
    return {
        "zeros": lambda shape: torch.zeros(shape),
        "ones": lambda shape: torch.ones(shape),
        "full": lambda shape, number: torch.full(shape, float(number)),
        "arange": lambda count, step: (torch.arange(count, dtype=torch.float64) * step).to(real),
        "eye": lambda rows, columns: torch.eye(rows, columns),
        "data": data,
    }


INTEGER_LEAVES = {
    "full": lambda shape, number: torch.full(shape, number, dtype=torch.int64),
    "integers": lambda count, factor, low: torch.arange(count) * factor % 120 + low,
}

FLOAT_OPS = {
    "neg": lambda x: -x,
    "abs": torch.abs,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "relu": torch.relu,
    "gelu": F.gelu,
    "silu": F.silu,
    "elu": F.elu,
    "softplus": lambda x: torch.logaddexp(x, torch.zeros_like(x)),
    "sin": torch.sin,
    "cos": torch.cos,
    "square": torch.square,
    "log_one_plus_square": lambda x: torch.log(x * x + 1),
    "sqrt_one_plus_square": lambda x: torch.sqrt(x * x + 1),
    "reciprocal": lambda x: 1 / (x * x + 1),
    "exp_tanh": lambda x: torch.exp(torch.tanh(x)),
    "log1p_square": lambda x: torch.log1p(x * x),
    "log10_one_plus_square": lambda x: torch.log10(x * x + 1),
    "expm1_tanh": lambda x: torch.expm1(torch.tanh(x)),
    "sinh_tanh": lambda x: torch.sinh(torch.tanh(x)),
    "cosh_tanh": lambda x: torch.cosh(torch.tanh(x)),
    "asinh": torch.asinh,
    "acosh_two_plus_square": lambda x: torch.acosh(x * x + 2),
    "atanh_half_tanh": lambda x: torch.atanh(torch.tanh(x) / 2),
    "asin_half_tanh": lambda x: torch.asin(torch.tanh(x) / 2),
    "acos_half_tanh": lambda x: torch.acos(torch.tanh(x) / 2),
    "atan": torch.atan,
    "erfc": torch.erfc,
    "add_number": lambda x, number: x + number,
    "number_sub": lambda x, number: number - x,
    "mul_number": lambda x, number: number * x,
    "div_number": lambda x, number: x / (number * number + 1),
    "number_div": lambda x, number: number / (x * x + 1),
    "maximum_number": lambda x, number: torch.maximum(x, torch.full_like(x, number)),
    "pow_number": lambda x, number: (x * x + 1) ** (number / 8),
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": lambda x, y: x / (y * y + 1),
    "atan2": lambda x, y: torch.atan2(x, y * y + 1),
    "logaddexp": torch.logaddexp,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "sum": lambda x, axis: x.sum(axis),
    "mean": lambda x, axis: x.mean(axis),
    "max": lambda x, axis: x.amax(axis),
    "min": lambda x, axis: x.amin(axis),
    "softmax": torch.softmax,
    "logsumexp": torch.logsumexp,
    "cumsum": torch.cumsum,
    "var": lambda x, axis: x.var(axis, unbiased=False),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "flip": lambda x, axis: x.flip(axis),
    "flatten": lambda x: x.reshape(-1),
    "transpose": lambda x: x.T,
    "concat": lambda x, y, axis: torch.cat([x, y], axis),
    "slice": lambda x, axis, begin: x.narrow(axis, begin, x.shape[axis] - begin),
    "pad": lambda x, axis: F.pad(x.transpose(axis, -1), (2, 1)).transpose(axis, -1),
    "matmul_transposed": lambda x, y: x @ y.T,
    "cross_entropy": lambda x, target: F.cross_entropy(x, target % x.shape[1]),
    "where_less": lambda i, x, number: torch.where(i < number, x, torch.full_like(x, 0.5)),
    "mul_remainder": lambda i, x, number: (i % number) * x,
    "divide_integers": lambda i, number: (i % number) / number,
}

INTEGER_OPS = {
    "add_number": lambda x, number: x + number,
    "mul_number": lambda x, number: x * number,
    "number_sub": lambda x, number: number - x,
    "and_number": lambda x, number: x & number,
    "xor_number": lambda x, number: x ^ number,
    "shl_number": lambda x, number: x << number % 7,
    "shr_number": lambda x, number: x >> number % 7,
    "floor_divide_number": lambda x, number: torch.div(x, number, rounding_mode="floor"),
    "mod_number": torch.remainder,
    "maximum_number": lambda x, number: x.clamp(min=number),
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "and": torch.bitwise_and,
    "or": torch.bitwise_or,
    "sum": lambda x, axis: x.sum(axis),
    "prod": lambda x, axis: x.prod(axis),
    "max": lambda x, axis: x.amax(axis),
    "min": lambda x, axis: x.amin(axis),
}


def run(steps, declared, compute):
    """All values of a program, with its float leaves as what gradients are taken of."""
    leaves, values = float_leaves(declared), []
    torch.set_default_dtype(compute)
    for op, dtype, sources, attributes in steps:
        args = [values[source] for source in sources]
        if not args and dtype in FLOATS:
            value = leaves[op](*attributes.values()).to(declared).to(compute).requires_grad_()
        elif dtype in FLOATS:
            value = FLOAT_OPS[op](*args, *attributes.values()).to(compute)
        else:
            table = INTEGER_OPS if args else INTEGER_LEAVES
            value = wrapped(table[op](*args, *attributes.values()), dtype)
        values.append(value)
    return values


def results(steps, end, compute):
    """Name -> tensor: what nothing uses, and the gradients of the sum of the floats among it."""
    _, declared, outputs, attributes = end
    declared = torch.float32 if declared == "f32" else torch.float64
    values = run(steps, declared, compute)
    found = {f"out{i}": values[output].detach() for i, output in enumerate(outputs)}
    floats = [values[output] for output in outputs if values[output].is_floating_point()]
    inputs = [values[i] for i in attributes["inputs"]]
    gradients = torch.autograd.grad(sum(x.sum() for x in floats), inputs, allow_unused=True)
    for i, (gradient, x) in enumerate(zip(gradients, inputs)):
        found[f"grad{i}"] = torch.zeros_like(x) if gradient is None else gradient
    return found


def save(path, tensors):
    header, chunks, offset = {}, [], 0
    for name, tensor in tensors.items():
        kind = "F64" if tensor.is_floating_point() else "I64"
        flat = tensor.detach().to(torch.float64 if kind == "F64" else torch.int64).contiguous()
        chunk = flat.numpy().tobytes()
        header[name] = {"dtype": kind, "shape": list(tensor.shape),
                        "data_offsets": [offset, offset + len(chunk)]}
        offset += len(chunk)
        chunks.append(chunk)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(chunks))


def main():
    torch.set_num_threads(1)
    tensors, steps, number = {}, [], 0
    with open(sys.argv[1], encoding="ascii") as file:
        for line in file:
            steps.append(json.loads(line))
            if steps[-1][0] != "end":
                continue
            end = steps.pop()
            for name, tensor in results(steps, end, torch.float64).items():
                tensors[f"{number}.{name}"] = tensor
            if end[1] == "f32":
                for name, tensor in results(steps, end, torch.float32).items():
                    tensors[f"{number}.{name}.f32"] = tensor
            steps, number = [], number + 1
    save(sys.argv[2], tensors)


if __name__ == "__main__":
    main()
