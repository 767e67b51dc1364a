#!/usr/bin/env python3
"""Checks that no file has more than 600 lines and no C++ function more than 80.

A table is not held to 80 lines: a function that only returns a list, or only defines one, is data.
Prints one line a violation, file:line: message, and exits with 1 when there is any.
"""
import pathlib
import re
import subprocess
import sys

MOST_LINES = 600
MOST_FUNCTION_LINES = 80
SUFFIXES = {".cc", ".h", ".def", ".py", ".sh", ".js", ".ts"}

OPENS = re.compile(r".*[)\w>\]]( const| noexcept| override)* \{$")
TYPE = re.compile(r"^\s*(template.*> )?(class|struct|enum|union|namespace|extern)\b|= *\{$")
TABLE = re.compile(r"^ *(return|static const|const|static constexpr|constexpr)\b.*\{$|^ *struct \w+ \{$")


def code_of(text):
    """The text with the contents of comments and literals blanked, so that braces are code's own."""
    blank = lambda match: re.sub(r"[^\n]", " ", match[0])
    return re.sub(r'R"(\w*)\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(\\.|[^"\\\n])*"|\'(\\.|[^\'\\\n])+\'',
                  blank, text, flags=re.S)


def functions(text):
    """Yields (line of the opening brace, number of lines, first line of the body) of each function,
    lambdas aside."""
    code = code_of(text)
    lines = code.split("\n")
    opened, inside, line = [], 0, 0  # inside: braces of the function that is open
    for at, character in enumerate(code):
        if character == "\n":
            line += 1
        elif character == "{":
            is_function = inside == 0 and OPENS.match(lines[line]) and not TYPE.search(lines[line])
            opened.append(line if is_function else None)
            inside += bool(is_function or inside)
        elif character == "}" and opened:
            first = opened.pop()
            inside -= inside > 0
            if first is not None:
                yield first + 1, line - first + 1, lines[first + 1]


def violations(root):
    listed = subprocess.run(["git", "-c", f"safe.directory={root}", "ls-files", "--cached", "--others",
                             "--exclude-standard"], cwd=root, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        path = root / name
        if path.suffix not in SUFFIXES or not path.is_file():
            continue
        text = path.read_text(errors="replace")
        lines = text.splitlines()
        if len(lines) > MOST_LINES:
            yield name, 1, f"{len(lines)} lines; a file has at most {MOST_LINES}"
        if path.suffix not in {".cc", ".h"}:
            continue
        for first, count, body in functions(text):
            if count > MOST_FUNCTION_LINES and not TABLE.match(body):
                yield name, first, f"{count} lines; a function has at most {MOST_FUNCTION_LINES}"


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    found = list(violations(root))
    for name, line, message in found:
        print(f"{name}:{line}: {message}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
