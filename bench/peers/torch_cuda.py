"""PyTorch on a GPU: work is captured once as a CUDA graph, so that asking for it costs little."""
import torch

REPEATS = 10  # asking for a graph takes longer than a small product


def use_f32():
    """Products of f32 as such, and the fastest convolutions."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True


def captured(work):
    """A function that does the work and answers what it answered, and how it does it: as a graph,
    or as it is where it cannot be captured."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())  # which made what the work reads
    with torch.cuda.stream(stream):
        for _ in range(3):  # memory and algorithms are chosen now
            work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph, stream=stream):
            result = work()
    except RuntimeError:
        return work, "eager"

    def replay():
        graph.replay()
        return result

    return replay, "CUDA graph"


def timed_work(work):
    """A function that does the work and answers how many seconds it took by the GPU's clock, and
    how it does it."""

    def often():
        for _ in range(REPEATS):
            work()

    run, how = captured(often)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def timed():
        begin.record()
        run()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3 / REPEATS

    return timed, how
