#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of check_style.py and check_layers.py: each rule is broken once and must be found, and a clean tree passes."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
STYLE = [  # content of isa/x.c, what must be reported (None: nothing)
    (SPDX + "int x; // snprintf( printf is fine in a comment\nconst char *s = \"malloc(\";\n", None),
    (SPDX + "int x = str_printf(1) + snprintf(2) + a.printf(3) + base_realloc(4);\n", None),
    (SPDX + "// caf\xe9\n", "isa/x.c:2: not ASCII"),
    (SPDX + "\tint x;\n", "isa/x.c:2: tab"),
    (SPDX + "int x; \n", "isa/x.c:2: trailing blank"),
    (SPDX + "int x;", "no newline at the end"),
    (SPDX + "int x;\n" * 800, "801 lines"),
    (SPDX + "// " + "x" * 98 + "\n", "isa/x.c:2: 101 columns"),
    ("int x;\n", "isa/x.c:1: the first line"),
    (SPDX + "// TODO later\n", "isa/x.c:2: TODO"),
    (SPDX + "// TODO(#12) later\n", None),
    (SPDX + "/* two\nlines */ void *p = malloc(1);\n", "isa/x.c:3: malloc()"),
    (SPDX + "int x = atoi(y);\n", "isa/x.c:2: atoi()"),
    (SPDX + "int x = sprintf (y);\n", "isa/x.c:2: sprintf()"),
    (SPDX + "int x = printf(y);\n", "isa/x.c:2: printf()"),
]
LAYERS = [  # file, its include, what must be reported
    ("toolchain/passes/x.c", "toolchain/graph/graph.h", None),
    ("toolchain/graph/ops/x.c", "toolchain/graph/graph.h", None),
    ("toolchain/graph/x.c", "toolchain/tile/tile.h", "toolchain/graph/ may not include toolchain/tile/"),
    ("toolchain/tile/x.c", "simulator/exec/exec.h", "may not include simulator/exec/"),
    ("simulator/units/x.c", "toolchain/graph/graph.h", "may not include toolchain/graph/"),
    ("simulator/exec/x.c", "simulator/kernel/kernel.h", "may not include simulator/kernel/"),
    ("simulator/exec/x.c", "simulator/units/dma.h", "may not include simulator/units/"),
    ("isa/x.c", "runtime/base/str.h", "isa/ may not include runtime/base/"),
    ("firmware/x.c", "runtime/base/str.h", "firmware/ may not include runtime/base/"),
    ("simulator/npusim/x.c", "toolchain/graph/graph.h", None),
    ("runtime/x.c", "npu/npu.h", None),
    ("toolchain/new/x.c", "isa/insn.h", "toolchain/new/ has no row"),
    ("isa/x.c", "insn.h", "is not rooted"),
    ("toolchain/frontend/onnx/x.c", "onnx.pb-c.h", None),
]


def run(script, name, content, size=0):
    with tempfile.TemporaryDirectory() as root:
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path))
        with open(path, "w", encoding="latin-1") as f:
            f.write(content)
            f.truncate(size or len(content))
        done = subprocess.run([sys.executable, os.path.join(HERE, script), root], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def main():
    cases = [("check_style.py", "isa/x.c", content, want) for content, want in STYLE]
    cases += [("check_layers.py", name, f'#include "{inc}"\n', want) for name, inc, want in LAYERS]
    failed = 0
    for script, name, content, want in cases:
        code, output = run(script, name, content)
        if code != (0 if want is None else 1) or (want or "") not in output:
            print(f"{script}: {name} with {content[:90]!r}: wanted {want!r}, exit {code}, got:\n{output}")
            failed += 1
    empty = run("check_style.py", "isa/x.bin", "x")[0]
    if empty == 0:
        print("check_style.py: passes on a tree without files")
        failed += 1
    for size, want in ((40 * 10**6, False), (40 * 10**6 + 1, True)):
        code, output = run("check_style.py", "tests/data/x.c", SPDX, size)
        if ("at most 40 MB" in output) != want or not code:
            print(f"check_style.py: {size} bytes of test data, exit {code}:\n{output}")
            failed += 1
    print(f"check_selftest: {len(cases) + 3} cases, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
