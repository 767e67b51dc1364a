#!/usr/bin/env python3
"""Checks that every #include points downwards in the order of the folders of src/.

A file in src/X may include "Y/..." where Y is X or stands before X in LAYERS, and <anneal/...>.
A public header may include the standard library and <anneal/...> only.
What the core is made of builds without an operating system, threads or LLVM: headers of these are
for src/base/os and for the backends, whose own headers are for nobody else in src/.
Nor does anything above code generation ask which kind of device it is.
The README has a row for every folder of src/.
Prints one line a violation, file:line: message, and exits with 1 when there is any.
"""
import pathlib
import re
import sys

LAYERS = [
    "base", "ir", "rewrite", "symbolic", "tensor", "transform", "target", "body", "schedule", "kernel",
    "codegen", "runtime", "tune", "nn", "optim", "io", "models",
]
# Rooms that CMake's options leave out, each with its backend; "any": where there is a backend.
BACKENDS = {
    "codegen/llvm": "cpu", "runtime/cpu": "cpu", "runtime/webgpu": "webgpu", "runtime/disk": "any",
    "tune": "any",
}
# Libraries, and the one room that may include their headers.
LIBRARIES = {"llvm": "codegen/llvm"}
OS_ROOM = "base/os"
# Files, threads, processes: what a platform without an operating system lacks. <atomic> and
# <chrono> are there.
OS_HEADERS = {
    "filesystem", "fstream", "thread", "mutex", "shared_mutex", "condition_variable", "future",
    "semaphore", "latch", "barrier", "stop_token", "csignal", "signal.h", "random", "iostream",
}
HEADERS_OF_C = re.compile(r"[a-z0-9_]+\.h|(sys|arpa|net|netinet|linux|mach|bits)/.*")
GENERATED = {"anneal_version.h", "codegen_revision.h", "planner_revision.h", "corpus.h"}
SUFFIXES = {".cc", ".h", ".def", ".inc"}

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
STANDARD = re.compile(r"[a-z0-9_]+")


def includes(path):
    """Yields (line number, '"' or '<', included name) for each #include of the file."""
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match[1], match[2]


def room_of(path):
    """The folder that options leave out or that is the operating system's, or the first one."""
    for room in (*BACKENDS, OS_ROOM):
        if path.startswith(room + "/"):
            return room
    return path.split("/")[0]


def check_system(room, name):
    """Says what is wrong with a file of `room` including <`name`>, or returns None."""
    if name.startswith(("anneal/", "fmt/")):
        return None
    if name.split("/")[0] in LIBRARIES:
        only = LIBRARIES[name.split("/")[0]]
        return None if room == only else f"only src/{only} may include <{name}>"
    if STANDARD.fullmatch(name) and name not in OS_HEADERS:
        return None
    if name not in OS_HEADERS and not HEADERS_OF_C.fullmatch(name):
        return f"<{name}> is of no library that src/ uses (tools/check_layers.py)"
    if room == OS_ROOM or room in BACKENDS:
        return None
    return f"only src/{OS_ROOM} and the backends may include <{name}>: the core builds anywhere"


def check_source(path, kind, name):
    """Says what is wrong with src/`path` including `name`, or returns None."""
    room = room_of(path)
    layer = path.split("/")[0]
    if kind == "<":
        return check_system(room, name)
    folder = name.split("/")[0] if "/" in name else None
    if folder in ("cli", "studio", "web"):
        return f'src/ must not include {folder}/: "{name}"'
    if name in GENERATED:
        return None
    if folder not in LAYERS:
        return f'"{name}" does not start with a folder of src/ (write "{layer}/..." for a neighbour)'
    if LAYERS.index(folder) > LAYERS.index(layer):
        return f'{layer}/ must not include {folder}/, which stands above it: "{name}"'
    backend = BACKENDS.get(room_of(name))
    if backend and backend != BACKENDS.get(room) and not (backend == "any" and room in BACKENDS):
        return f'only the backend {backend} may include "{name}": it may not be part of the build'
    return None


def check_public(kind, name):
    """Says what is wrong with a public header including `name`, or returns None."""
    if kind == "<" and name in OS_HEADERS:
        return f"a public header must not include <{name}>: the core builds anywhere"
    if kind == "<" and (STANDARD.fullmatch(name) or name.startswith("anneal/")):
        return None
    return f"a public header includes only the standard library and <anneal/...>, not {name}"


# Above code generation nothing asks whether it is a GPU, under whatever name: target/questions.h has
# questions by the fact that matters. Plans and emission are made for lanes of one kind or the other.
ABOVE_CODEGEN = ["src/tensor", "src/transform", "src/body", "src/schedule", "src/kernel/body", "src/runtime", "cli"]
DEVICES = ["src/runtime/cpu", "src/runtime/webgpu", "src/runtime/cuda"]
IS_A_GPU = re.compile(
    r"\b(?:work)?group_(?:threads|bytes)\s*(?:[<>!=]=?)\s*0\b|\bparallel_threads\s*(?:[<>!=]=?)\s*0\b"
    r"|\bis_(?:large_)?gpu\b|\bExecution::Sim[dt]\b|[!=]=\s*\"(?:cpu|webgpu|cuda)\"")


def device_tests(root):
    """Yields (path, line, message) for each test for a kind of device where none belongs."""
    for folder in ABOVE_CODEGEN:
        for path in sorted(p for p in (root / folder).rglob("*") if p.suffix in SUFFIXES):
            if any(path.is_relative_to(root / device) for device in DEVICES):
                continue
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                if match := IS_A_GPU.search(line):
                    yield path, number, f'asks which kind of device it is: "{match[0]}" (see target/questions.h)'


def violations(root):
    yield from device_tests(root)
    readme = (root / "README.md").read_text()
    for room in LAYERS:
        if f"`src/{room}/`" not in readme:
            yield root / "README.md", 1, f"src/{room}/ is not among the folders"

    def files(folder):
        return sorted(p for p in (root / folder).rglob("*") if p.suffix in SUFFIXES)

    for path in files("src"):
        inside = path.relative_to(root / "src")
        layer = inside.parts[0]
        if layer not in LAYERS:
            yield path, 1, f"src/{layer} is not in the list of layers (tools/check_layers.py)"
            continue
        for line, kind, name in includes(path):
            if message := check_source(inside.as_posix(), kind, name):
                yield path, line, message
    for path in files("include"):
        for line, kind, name in includes(path):
            if message := check_public(kind, name):
                yield path, line, message


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    found = list(violations(root))
    for path, line, message in found:
        print(f"{path.relative_to(root)}:{line}: {message}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
