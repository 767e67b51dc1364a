#!/usr/bin/python3
"""Writes op_cases.txt, the expected result of every op case, from NumPy and PyTorch in f64.

Shares no code with anneal. Inputs follow from inputs.txt (written by the C++ test, see
docs/testing.md) by the recipe of tests/op_cases.cc, repeated in recipe.py. A case without a
function in references/, or a function without a case, is an error.

A function gets its inputs as torch tensors; its result is a torch tensor or a NumPy array. Where
torch has no such dtype (u16, u32, u64), or follows another convention, NumPy computes.
"""
import importlib
import pathlib
import sys

import numpy as np

from recipe import NUMPY_TYPES, read_inputs
from references.common import CASES, Narrow

HERE = pathlib.Path(__file__).parent
TEXTS = {np.dtype(kind): text for text, kind in NUMPY_TYPES.items() if text != "bf16"}

for family in sorted((HERE / "references").glob("[a-z]*.py")):
    importlib.import_module(f"references.{family.stem}")


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
