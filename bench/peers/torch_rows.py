#!/usr/bin/env python3
"""Times PyTorch for `anneal bench`, which runs it as a process of its own.

Reads lines, each with what to time and for about how long,
  SECONDS rows OP ROWS COLUMNS       an op on tensors of that size
  SECONDS train MODEL BATCH BLOCK    a training step; BLOCK is that of a gpt, else 0
and answers each with one line:
  time SECONDS NAME   the fastest run in about that time
  none REASON         PyTorch is missing, or has no such op
Results go to memory that is there already where an op allows it; for the others the caller sets
malloc to keep its memory (MALLOC_MMAP_MAX_=0 and so on). OMP_NUM_THREADS says how many threads.
"""
import os
import sys
import time

try:
    import torch
    import torch.nn.functional as functional

    import torch_models
except ImportError as error:
    torch, problem = None, str(error)


def operations(rows, columns):
    """Name -> function that does it once, on tensors of rows x columns."""
    x, y = torch.rand(rows, columns), torch.rand(rows, columns)
    out, turned = torch.empty(rows, columns), torch.empty(columns, rows)
    weight, bias = torch.rand(columns), torch.rand(columns)
    return {
        "copy": lambda: out.copy_(x),
        "add": lambda: torch.add(x, y, out=out),
        "exp": lambda: torch.exp(x, out=out),
        "gelu": lambda: functional.gelu(x),
        "softmax": lambda: torch._softmax(x, -1, False, out=out),
        "layernorm": lambda: functional.layer_norm(x, (columns,), weight, bias),
        "sum": lambda: x.sum(),
        "transpose": lambda: turned.copy_(x.t()),
    }


def least_time(run, seconds):
    end, least = time.perf_counter() + seconds, float("inf")
    while True:
        start = time.perf_counter()
        run()
        stop = time.perf_counter()
        least = min(least, stop - start)
        if stop >= end:
            return least


def prepare(kind, what, first, second):
    """A function that does once what a line asks for."""
    if kind == "rows":
        return operations(first, second)[what]
    if kind == "train":
        step = torch_models.training_step(torch_models.make_model(what, second))
        x, y = torch_models.random_batch(what, first, second)
        return lambda: step(x, y)
    raise ValueError(f"PyTorch is not asked for {kind}")


class Peer:
    def __init__(self):
        self.case, self.run = None, None

    def answer(self, line):
        if torch is None:
            return f"none {problem}"
        seconds, kind, what, first, second = line.split()
        with torch.set_grad_enabled(kind == "train"):
            if self.case != (kind, what, first, second):
                self.case, self.run = None, None  # its memory is free for the next
                self.run = prepare(kind, what, int(first), int(second))
                self.case = (kind, what, first, second)
                least_time(self.run, float(seconds))  # to warm up
            return f"time {least_time(self.run, float(seconds))!r} PyTorch {torch.__version__}"


def main():
    peer = Peer()
    if torch is not None:
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    for line in sys.stdin:
        try:
            answer = peer.answer(line)
        except Exception as error:  # the caller shows it as the reason why the row is empty
            answer = f"none {error}"
        print(" ".join(answer.split()), flush=True)


if __name__ == "__main__":
    main()
