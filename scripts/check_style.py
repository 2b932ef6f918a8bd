#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Style rules that no compiler checks. Usage: check_style.py [ROOT]; prints FILE:LINE: RULE, exits 1.

Text files: ASCII, no tabs, no trailing blanks, a newline at the end, at most 800 lines (but for lists, .txt).
All files of tests/data together: at most 40 MB.
C and C++: SPDX line first, 100 columns, no banned calls, TODO only with an issue number: TODO(#12).
Calls are looked for outside comments and strings.
"""
import os
import re
import sys

TEXT = {".c", ".h", ".cpp", ".def", ".S", ".ld", ".py", ".sh", ".cmake", ".txt", ".md", ".yaml", ".proto", ".npt",
        ".nps", ".json", ".html", ".css", ".js"}
SOURCE = {".c", ".h", ".cpp", ".def"}
SKIPPED = {"build", "data", "models", "corpus", "__pycache__", "node_modules"}
DATA_MB = 40
BANNED = [  # calls, where they are allowed, why
    (r"sprintf|strcpy|strcat|gets|vsprintf", None, "writes without a bound"),
    (r"strtok", None, "keeps hidden state"),
    (r"atoi|atol|atoll|atof", None, "hides errors; see runtime/base/text.h"),
    (r"rand|srand|random", None, "is not the same everywhere; seed your own generator"),
    (r"malloc|calloc|realloc|strdup|strndup|asprintf|vasprintf", r"runtime/base/|tests/|examples/",
     "allocates outside runtime/base"),
    (r"printf|fprintf|vprintf|vfprintf|puts|putchar|perror",
     r"runtime/base/status\.c|.*/npuc/|.*/npusim/|.*print\.c$|tests/|examples/|scripts/|.*/port_rv32/",
     "prints outside npuc, npusim and *print.c"),
]


def code_only(text):
    """The text with comments and the insides of strings blanked, line breaks kept."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def check(path, name):
    kind = os.path.splitext(name)[1]
    data = open(path, "rb").read()
    if not data:
        return
    text = data.decode("latin-1")
    lines = text.split("\n")
    if not text.endswith("\n"):
        yield len(lines), "no newline at the end"
    if len(lines) - 1 > 800 and kind != ".txt":
        yield 800, f"{len(lines) - 1} lines, at most 800: split by responsibility"
    for n, line in enumerate(lines, 1):
        if any(c > "~" for c in line):
            yield n, "not ASCII"
        if "\t" in line and os.path.basename(name) != "Makefile":
            yield n, "tab"
        if line != line.rstrip():
            yield n, "trailing blank"
        if kind in SOURCE and re.search(r"\b(TODO|FIXME|XXX)\b(?!\(#\d+\))", line):
            yield n, "TODO without an issue number"
        if kind in (".c", ".h", ".cpp") and len(line) > 100:
            yield n, f"{len(line)} columns, at most 100"
    if kind not in SOURCE:
        return
    if kind != ".def" and not lines[0].startswith("// SPDX-License-Identifier: "):
        yield 1, "the first line is not '// SPDX-License-Identifier: ...'"
    for n, line in enumerate(code_only(text).split("\n"), 1):
        for calls, where, why in BANNED:
            found = re.search(rf"(?<![\w.>])(?:{calls})\s*\(", line)
            if found and not (where and re.match(where, name)):
                yield n, f"{found[0].rstrip(' (')}() {why}"


def size_of(folder):
    return sum(os.path.getsize(os.path.join(place, name)) for place, _, names in os.walk(folder) for name in names)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..")
    files = faults = 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in SKIPPED and not f.startswith("."))
        for base in sorted(names):
            path = os.path.join(folder, base)
            name = os.path.relpath(path, root)
            kind = os.path.splitext(base)[1]
            if kind not in TEXT and not (kind == "" and name.startswith("scripts")) or os.path.islink(path):
                continue
            files += 1
            for line, rule in check(path, name):
                print(f"{name}:{line}: {rule}")
                faults += 1
    data = size_of(os.path.join(root, "tests", "data"))
    if data > DATA_MB * 10**6:
        print(f"tests/data:1: {data} bytes, at most {DATA_MB} MB: make what can be made when it is needed")
        faults += 1
    print(f"check_style: {files} files, {faults} faults")
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
