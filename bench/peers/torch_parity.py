#!/usr/bin/env python3
"""Trains a model of torch_models.py from parameters and batches that anneal wrote.

usage: torch_parity.py MODEL BLOCK STEPS IN.safetensors OUT.safetensors
IN holds the parameters by path, "batches.x" and "batches.y", which are used in turns. OUT gets the
"losses". Ends with status 77 and a sentence where PyTorch is not installed.
"""
import json
import struct
import sys

try:
    import torch

    import torch_models
except ImportError as error:
    print(f"no PyTorch: {error}")
    sys.exit(77)

DTYPES = {"F32": torch.float32, "I32": torch.int32}


def load_safetensors(path):
    """Name -> tensor: a length, a header in JSON, bytes."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(length)), bytearray(file.read())
    header.pop("__metadata__", None)
    return {
        name: torch.frombuffer(data, dtype=DTYPES[row["dtype"]], offset=row["data_offsets"][0],
                               count=torch.Size(row["shape"]).numel()).reshape(row["shape"])
        for name, row in header.items()
    }


def save_losses(path, losses):
    data = struct.pack(f"<{len(losses)}f", *losses)
    row = {"dtype": "F32", "shape": [len(losses)], "data_offsets": [0, len(data)]}
    header = json.dumps({"losses": row}).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + data)


def main():
    name, block, steps, start, out = sys.argv[1:]
    torch.set_num_threads(1)
    tensors = load_safetensors(start)
    x, y = tensors.pop("batches.x"), tensors.pop("batches.y").long()
    model = torch_models.make_model(name, int(block))
    model.load_state_dict(tensors)  # an error where names or shapes differ
    if not x.is_floating_point():
        x = x.long()
    step = torch_models.training_step(model)
    save_losses(out, [step(x[i % len(x)], y[i % len(x)]).item() for i in range(int(steps))])


if __name__ == "__main__":
    main()
