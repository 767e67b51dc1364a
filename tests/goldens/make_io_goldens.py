#!/usr/bin/python3
"""Writes the files of io/, which the tests of src/io read and write again byte for byte.

The npy files come from NumPy. The safetensors file follows the layout of the Python package by
hand: tensors by dtype (its enum, last first), then by name, compact JSON, blanks up to 8 bytes.
"""
import json
import pathlib
import struct

import numpy as np

HERE = pathlib.Path(__file__).parent / "io"

# The package's order of dtypes, with the NumPy type that has their bytes.
ORDER = [("BOOL", "?"), ("U8", "u1"), ("I8", "i1"), ("F8_E5M2", "u1"), ("F8_E4M3", "u1"),
         ("I16", "<i2"), ("U16", "<u2"), ("F16", "<f2"), ("BF16", "<u2"), ("I32", "<i4"),
         ("U32", "<u4"), ("F32", "<f4"), ("F64", "<f8"), ("I64", "<i8"), ("U64", "<u8")]


def save_safetensors(path, tensors, metadata):
    """tensors: name -> (dtype, array of its bytes)."""
    rank = {name: i for i, (name, _) in enumerate(ORDER)}
    rows = sorted(tensors.items(), key=lambda row: (-rank[row[1][0]], row[0]))
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, (dtype, array) in rows:
        begin, data = len(data), data + array.tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape),
                        "data_offsets": [begin, len(data)]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def main():
    HERE.mkdir(exist_ok=True)
    tensors = {}
    for dtype, kind in ORDER:
        array = (np.arange(6).reshape(2, 3) * 3 + 1).astype(kind)
        if dtype == "BOOL":
            array = (np.arange(6).reshape(2, 3) % 2).astype(kind)
        if dtype == "F8_E5M2" or dtype == "F8_E4M3":
            array = np.array([[0x38, 0x3c, 0x40], [0xb8, 0xbc, 0x00]], dtype=kind)
        if dtype == "BF16":  # 1, 2, 3, -1, -2, 0
            array = np.array([[0x3f80, 0x4000, 0x4040], [0xbf80, 0xc000, 0]], dtype=kind)
        tensors[f"all.{dtype}"] = (dtype, array)
    tensors["scalar"] = ("F32", np.array(2.5, dtype="<f4"))
    tensors["empty"] = ("F32", np.zeros((0, 3), dtype="<f4"))
    tensors['odd "name"\n\\ é'] = ("I64", np.array([7], dtype="<i8"))
    save_safetensors(HERE / "all.safetensors", tensors, {"format": "pt"})

    for kind in ("?", "i1", "<i2", "<i4", "<i8", "u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8"):
        array = (np.arange(12).reshape(3, 4) % (2 if kind == "?" else 100)).astype(kind)
        np.save(HERE / f"{array.dtype.name}.npy", array)
    np.save(HERE / "scalar.npy", np.array(2.5))
    np.save(HERE / "vector.npy", np.arange(5, dtype="<f4"))
    np.save(HERE / "empty.npy", np.zeros((2, 0), dtype="<f4"))
    np.save(HERE / "columns.npy", np.asfortranarray(np.arange(12, dtype="<f4").reshape(3, 4)))
    np.save(HERE / "swapped.npy", np.arange(12, dtype=">f4").reshape(3, 4))


if __name__ == "__main__":
    main()
