#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of check_style.py, check_layers.py and docs_checks: each rule is broken once and must be found, and a clean tree passes."""
import os
import subprocess
import sys
import tempfile
import types

from docs_checks import commands, links, tables

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

PAGES = [  # a line of docs/x.md, what must be reported
    ("[a](../isa/x.c), [b](#x), `isa/x.c`, `x.c`, `isa/*.c`, `f()`, `g()`, --real", None),
    ("[a](../isa/y.c)", "link to ../isa/y.c: no such file"),
    ("[a](x.md#y)", "link to x.md#y: no such heading"),
    ("`isa/y.c`", "`isa/y.c`: no such file"),
    ("`y.c`", "`y.c`: no such file"),
    ("`isa/y_*.c`", "`isa/y_*.c`: no such file"),
    ("`h()`", "`h()`: no such function"),
    ("npuc --unreal", "--unreal: no such option"),
    ("```c\nint own(int x) {\n    return f(x) + own(x);\n}\n```", None),
    ("```c\nint y = h(1);\n```", "h() in the example: no such function"),
]
RUN = [  # a page, what must be reported
    ("```console\n$ echo a; echo; echo b 12\na\n\nb 12\n$ seq 9\n1\n...\n4\n5\n...\n$ true\n```", None),
    ("```console\n$ echo 12\n13\n```", "the page has  13"),
    ("```console\n$ seq 9\n1\n...\n3\n5\n...\n```", "the page has  5"),
    ("```console\n$ seq 9\n1\n...\n8\n```", "the page has  8"),
    ("```console\n$ seq 3\n1\n2\n```", "it prints     3"),
    ("```console\n$ echo a\n```", "it prints     a"),
    ("```console\n$ echo a; false\na\n```", "status 1"),
    ("```console\na\n```", "starts with a command"),
    ("<!-- varies: \\d+ ms -->\n```console\n$ echo 12 ms\n7 ms\n```", None),
    ("<!-- varies: \\d+ ms -->\ntext\n```console\n$ true\n```", "belongs right before a block"),
    ("<!-- output of: echo $BUILD -->\n```\nbuild/b\n```", None),
    ("<!-- output of: echo $BUILD -->\n```\nc\n```", "the page has  c"),
    ("<!-- needs: nothing -->\n```console\n$ false\n```", None),
    ("<!-- needs: docs -->\n```console\n$ false\n```", "status 1"),
    ("<!-- large: docs -->\n```console\n$ false\n```", "status 1"),
]


def check_pages():
    """How many cases of docs_checks there are and how many fail."""
    failed = 0

    def judge(what, want, got):
        nonlocal failed
        if got != [] if want is None else not any(want in rule for rule in got):
            print(f"docs_checks: {what!r}: wanted {want!r}, got {got}")
            failed += 1
    with tempfile.TemporaryDirectory() as root:
        def put(name, text):
            os.makedirs(os.path.join(root, os.path.dirname(name)), exist_ok=True)
            with open(os.path.join(root, name), "w") as f:
                f.write(text)
        put("isa/x.c", "int f(int x); void g(void);\n")
        put("isa/options.def", 'OPTION(REAL, "real", 0)\n')
        put("isa/x.def", 'ROW(A, "a", "first, of two")\nROW(B, "b", "second")\n')
        for text, want in PAGES:
            put("docs/x.md", "# X\n" + text + "\n")
            judge(text, want, [rule for _, rule in links.check(links.Tree(root), "docs/x.md")])
        put("docs/x.md", "no heading\n")
        judge("no heading", "has a heading", [rule for _, rule in links.check(links.Tree(root), "docs/x.md")])
        for text, want in (("# D\nin `isa/`, `more`\n", None), ("# D\nnothing\n", "about the folder more/")):
            put("docs/README.md", text)
            put("docs/more/x.md", "# X\n")
            judge(text, want, [rule for _, rule in links.check(links.Tree(root), "docs/README.md")])
        for form, want in (("\n{1}: {2}", None), ("{0}={1}", "about ROW(B)")):
            put("docs/x.md", "# X\na: first, of two\nb: second\nA=a\n")
            judge(form, want, [r for _, _, r in tables.check(root, [("docs/x.md", "isa/x.def", "ROW", form, None)])])
        args = types.SimpleNamespace(run=os.path.join(root, "b"), strict=True, all=True, update=False, timeout=60)
        for text, want in RUN:
            put("docs/x.md", text + "\n")
            judge(text, want, [rule for _, _, rule in commands.check(root, ["docs/x.md"], args)])
        args.update = True
        put("docs/x.md", "```console\n$ seq 2; echo a 3\n1\n$ echo a 1; echo b 2\n...\nb 1\n```\n")
        judge("update", None, [rule for _, _, rule in commands.check(root, ["docs/x.md"], args)])
        with open(os.path.join(root, "docs/x.md")) as f:
            judge("updated", "1\n2\na 3\n$ echo a 1; echo b 2\n...\nb 2\n```\n", [f.read()])
    return len(PAGES) + len(RUN) + 7, failed


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
    pages, wrong = check_pages()
    failed += wrong
    print(f"check_selftest: {len(cases) + 3 + pages} cases, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
