#!/usr/bin/env python3
"""Times PyTorch for `anneal bench`, which runs it as a process of its own.

Reads lines "SECONDS rows OP ROWS COLUMNS", answers each with one line:
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


class Peer:
    def __init__(self):
        self.sizes, self.table = None, {}
        self.last = None

    def answer(self, line):
        if torch is None:
            return f"none {problem}"
        words = line.split()
        if len(words) != 5 or words[1] != "rows":
            return "none PyTorch is not asked for that"
        seconds, op, sizes = float(words[0]), words[2], (int(words[3]), int(words[4]))
        if sizes != self.sizes:
            self.sizes, self.table = sizes, operations(*sizes)
        if op not in self.table:
            return f"none there is no op {op}"
        if op != self.last:
            self.last = op
            least_time(self.table[op], 0)  # to warm up
        return f"time {least_time(self.table[op], seconds)!r} PyTorch {torch.__version__}"


def main():
    peer = Peer()
    if torch is not None:
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        torch.set_grad_enabled(False)
    for line in sys.stdin:
        try:
            answer = peer.answer(line)
        except Exception as error:  # the caller shows it as the reason why the row is empty
            answer = f"none {error}"
        print(" ".join(answer.split()), flush=True)


if __name__ == "__main__":
    main()
