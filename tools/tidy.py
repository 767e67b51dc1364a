#!/usr/bin/env python3
"""Runs clang-tidy over src/ and cli/, skipping files that were clean and have not changed.

A file's key is the hash of its compile command, .clang-tidy, the tidy version, its text and the
text of every project header it reaches; where the clone lies is no part of it, so that clones may
share a cache folder. A clean file leaves an empty file of that name there, for a month after its
last use; a file with findings is checked again each time.
usage: tidy.py BUILD_DIR CACHE_DIR   (BUILD_DIR holds compile_commands.json)
"""
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

TIDY = "clang-tidy-19"
ROOT = pathlib.Path(__file__).resolve().parent.parent
CHECKED = ("src", "cli")  # headers of src/, cli/ and include/ are checked through these
INCLUDE_DIRS = (ROOT / "src", ROOT / "include", ROOT)
KEPT_SECONDS = 30 * 24 * 3600
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.M)


@functools.cache
def read(path):
    """The text of a file, its hash and the project files it includes itself."""
    text = path.read_text(errors="replace")
    candidates = (d / name for name in INCLUDE.findall(text) for d in (path.parent, *INCLUDE_DIRS))
    return hashlib.sha256(text.encode()).hexdigest(), [p.resolve() for p in candidates if p.is_file()]


def closure(path):
    """The file and every project file it includes, in an order that does not vary."""
    seen, todo = set(), [path]
    while todo:
        current = todo.pop()
        if current not in seen:
            seen.add(current)
            todo += read(current)[1]
    return sorted(seen)


def key(entry, salt):
    parts = [salt, entry["command"].replace(str(ROOT), ".")]
    parts += [f"{p.relative_to(ROOT)} {read(p)[0]}" for p in closure(pathlib.Path(entry["file"]))]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def check(path, build_dir):
    result = subprocess.run([TIDY, "--quiet", "-p", build_dir, path], capture_output=True, text=True)
    return result.returncode, result.stdout, result.stderr


def main(build_dir, cache_dir):
    cache = pathlib.Path(cache_dir)
    cache.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([TIDY, "--version"], capture_output=True, text=True, check=True).stdout
    salt = version + (ROOT / ".clang-tidy").read_text()
    entries = json.loads((pathlib.Path(build_dir) / "compile_commands.json").read_text())
    prefixes = tuple(f"{ROOT / folder}{os.sep}" for folder in CHECKED)
    keys = {e["file"]: key(e, salt) for e in entries if e["file"].startswith(prefixes)}
    used = set(keys.values())
    for clean in cache.iterdir():
        if clean.name in used:
            clean.touch()
        elif clean.stat().st_mtime < time.time() - KEPT_SECONDS:
            clean.unlink(missing_ok=True)
    todo = sorted(f for f, k in keys.items() if not (cache / k).exists())
    print(f"clang-tidy: {len(todo)} of {len(keys)} files to check", file=sys.stderr, flush=True)

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        runs = {pool.submit(check, f, build_dir): f for f in todo}
        for run in concurrent.futures.as_completed(runs):
            status, out, err = run.result()
            if status == 0:
                (cache / keys[runs[run]]).touch()
                continue
            failed += 1
            # The errors are on stdout; stderr counts suppressed warnings, or says why tidy died.
            print((out or err).rstrip().replace(f"{ROOT}{os.sep}", ""), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
