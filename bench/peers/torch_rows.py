#!/usr/bin/env python3
"""Times PyTorch for `anneal bench`, which runs it as a process of its own.

Reads lines, each with what to time, on which device (cpu or cuda) and for about how long,
  SECONDS DEVICE rows OP ROWS COLUMNS       an op on tensors of that size
  SECONDS DEVICE gemm LAYOUT M N K          a product, as peer.h has it
  SECONDS DEVICE train MODEL BATCH [SIZES]  a training step; SIZES are those of a gpt: its block,
                                            layers, heads and width
and answers each with one line:
  time SECONDS NAME   the fastest run in about that time
  none REASON         PyTorch or the device is missing, or there is no such op
Results go to memory that is there already where an op allows it; for the others the caller sets
malloc to keep its memory (MALLOC_MMAP_MAX_=0 and so on). OMP_NUM_THREADS says how many threads.
"""
import os
import sys
import time

try:
    import torch
    import torch.nn.functional as functional

    import torch_cuda
    import torch_models
except ImportError as error:
    torch, problem = None, str(error)


def operation(name, rows, columns, device):
    """A function that does it once, on tensors of rows x columns."""
    x, y = (torch.rand(rows, columns, device=device) for _ in range(2))
    out, turned = torch.empty_like(x), torch.empty(columns, rows, device=device)
    weight, bias = (torch.rand(columns, device=device) for _ in range(2))
    return {
        "copy": lambda: out.copy_(x),
        "add": lambda: torch.add(x, y, out=out),
        "exp": lambda: torch.exp(x, out=out),
        "gelu": lambda: functional.gelu(x),
        "softmax": lambda: torch._softmax(x, -1, False, out=out),
        "layernorm": lambda: functional.layer_norm(x, (columns,), weight, bias),
        "sum": lambda: x.sum(),
        "transpose": lambda: turned.copy_(x.t()),
        "2x+1": lambda: torch.mul(x, 2, out=out).add_(1),
    }[name]


def product(layout, m, n, k, device):
    a_turned, b_turned = layout == "tn", layout == "nt"
    a = torch.rand((k, m) if a_turned else (m, k), device=device)
    b = torch.rand((n, k) if b_turned else (k, n), device=device)
    a, b = a.t() if a_turned else a, b.t() if b_turned else b
    out = torch.empty(m, n, device=device)
    return lambda: torch.matmul(a, b, out=out)


def timed_by_host(run):
    def timed():
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    return timed


def timed_training(name, sizes, device):
    """Until the loss is known here, whatever the device."""
    model = torch_models.make_model(name, *sizes[1:]).to(device)
    x, y = (tensor.to(device) for tensor in torch_models.random_batch(name, *sizes))
    if device == "cuda":
        step = torch_models.training_step(model, capturable=True, fused=True)
        run, how = torch_cuda.captured(lambda: step(x, y))
        return timed_by_host(lambda: run().item()), how
    step = torch_models.training_step(model)
    return timed_by_host(lambda: step(x, y).item()), ""


def prepare(device, kind, what, sizes):
    """A function that does once what a line asks for and answers how many seconds it took; and how
    it does it, if there is more than one way."""
    if kind == "train":
        return timed_training(what, sizes, device)
    if kind not in ("rows", "gemm"):
        raise ValueError(f"PyTorch is not asked for {kind}")
    work = (operation if kind == "rows" else product)(what, *sizes, device)
    return torch_cuda.timed_work(work) if device == "cuda" else (timed_by_host(work), "")


def least_time(timed, seconds):
    end, least = time.perf_counter() + seconds, float("inf")
    while True:
        least = min(least, timed())
        if time.perf_counter() >= end:
            return least


class Peer:
    def __init__(self):
        self.case, self.timed, self.name = None, None, None

    def answer(self, line):
        if torch is None:
            return f"none {problem}"
        seconds, *case = line.split()
        device, kind, what, *sizes = case
        if device == "cuda" and not torch.cuda.is_available():
            return "none PyTorch sees no CUDA GPU"
        with torch.set_grad_enabled(kind == "train"):
            if self.case != case:
                self.case, self.timed = None, None  # its memory is free for the next
                self.timed, how = prepare(device, kind, what, [int(size) for size in sizes])
                self.case, self.name = case, f"PyTorch {torch.__version__} {how}"
                least_time(self.timed, float(seconds))  # to warm up
            return f"time {least_time(self.timed, float(seconds))!r} {self.name}"


def main():
    peer = Peer()
    if torch is not None:
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        torch_cuda.use_f32()
    for line in sys.stdin:
        try:
            answer = peer.answer(line)
        except Exception as error:  # the caller shows it as the reason why the row is empty
            answer = f"none {error}"
        print(" ".join(answer.split()), flush=True)


if __name__ == "__main__":
    main()
