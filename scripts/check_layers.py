#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks every #include "..." against layers.txt. Usage: check_layers.py [ROOT [LAYERS]].

Prints FILE:LINE: RULE and exits 1 when a folder includes what it may not, when a folder has no row, or when
an include is not rooted at the repository (generated *.pb-c.h and *.inc excepted).
"""
import fnmatch
import os
import re
import sys

TREES = ("isa", "runtime", "toolchain", "simulator", "firmware")


def read_layers(path):
    rows = {}
    for line in open(path):
        words = line.split("#")[0].split()
        if words:
            rows[words[0]] = words[1:]
    return {layer: {r for w in may for r in rows if fnmatch.fnmatchcase(r, w)} | {layer} for layer, may in rows.items()}


def layer_of(folder, layers):
    """The longest row that is the folder or above it; None without one."""
    while folder:
        if folder in layers:
            return folder
        folder = os.path.dirname(folder)
    return None


def check_file(root, name, layers):
    own = layer_of(os.path.dirname(name), layers)
    if own is None:
        yield 1, f"{os.path.dirname(name)}/ has no row in layers.txt"
        return
    for n, line in enumerate(open(os.path.join(root, name), errors="replace"), 1):
        m = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if not m or m[1].endswith((".pb-c.h", ".inc")):
            continue
        # The installed header says "npu/npu.h", as its users do.
        target = "runtime/include/" + m[1] if m[1].startswith("npu/") else m[1]
        if target.split("/")[0] not in TREES or "/" not in target:
            yield n, f'include "{m[1]}" is not rooted at the repository'
            continue
        other = layer_of(os.path.dirname(target), layers)
        if other not in layers[own]:
            yield n, f"{own}/ may not include {other or os.path.dirname(target)}/ (\"{m[1]}\")"


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(here)
    layers = read_layers(sys.argv[2] if len(sys.argv) > 2 else os.path.join(here, "layers.txt"))
    files = faults = 0
    for tree in TREES:
        for folder, folders, names in os.walk(os.path.join(root, tree)):
            folders.sort()
            for base in sorted(names):
                if not base.endswith((".c", ".h", ".cpp", ".def")):
                    continue
                name = os.path.relpath(os.path.join(folder, base), root)
                files += 1
                for line, rule in check_file(root, name, layers):
                    print(f"{name}:{line}: {rule}")
                    faults += 1
    print(f"check_layers: {files} files, {faults} faults")
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
