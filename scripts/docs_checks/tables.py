# SPDX-License-Identifier: Apache-2.0
"""Pages that explain the rows of a .def table have a line for each of them; README.md has the figures of docs/benchmarks.md."""
import os
import re

# Page, table, its macro, what the page has for a row ({0}, {1}, ... are the row's arguments), the rows (argument, value) or all.
TABLES = [
    ("docs/reading-a-trace.md", "simulator/trace/class.def", "TRACE_CLASS", "\n| {2} | `{1}` | ", None),
    ("docs/reading-a-trace.md", "simulator/trace/view.def", "TRACE_VIEW", "`FILE{1}`", None),
    ("docs/noise.md", "simulator/noise/noise.def", "NOISE_SOURCE", "\n**{1}** (", None),
    ("docs/noise.md", "simulator/noise/stats.def", "NOISE_STAT", "`{2}`", None),
    ("docs/jitter.md", "simulator/noise/noise.def", "NOISE_SOURCE", "\n| `{1}` | ", None),
    ("docs/exit-statuses.md", "runtime/base/status.def", "NPU_CODE", "\n| {1} | {2} | ", None),
    ("docs/hardware-description.md", "isa/hw.def", "HW_PARAM", "`{0}.{1}`", (3, "PROGRAM")),
    ("docs/hardware-description.md", "isa/hw.def", "HW_ENUM", "`{0}.{1}`", (2, "PROGRAM")),
]


# What README.md says of a row of the first table of docs/benchmarks.md, its columns by name.
FIGURES = [
    (("modernbert-base", "f16", "server"), "{million:.2f} million cycles, {/ideal} times the ideal bound, in {kernels} kernels"),
    (("resnet50", "f16", "server"), "ResNet-50 {million:.2f} million, {/ideal} times"),
]


def rows(text, macro):
    """Arguments of each row of a table; those in quotes without them."""
    for line in re.findall(r"^%s\((.*)\)" % macro, text, re.M):
        words = re.findall(r'\s*("(?:[^"\\]|\\.)*"|\{[^}]*\}|[^,]+?)\s*(?:,|$)', line)
        yield [word[1:-1] if word.startswith('"') else word for word in words]


def check_figures(root):
    with open(os.path.join(root, "docs/benchmarks.md")) as f:
        lines = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in f if line.startswith("| ")]
    with open(os.path.join(root, "README.md")) as f:
        text = " ".join(f.read().split())
    for key, form in FIGURES:
        row = next((dict(zip(lines[0], line)) for line in lines if tuple(line[:3]) == key), None)
        if row is None:
            yield "docs/benchmarks.md", 1, f"no row {' '.join(key)}"
            continue
        want = form.format(million=int(row["cycles"].replace(",", "")) / 1e6, **row)
        if want not in text:
            yield "README.md", 1, f"docs/benchmarks.md has {want!r}"


def check(root, tables=None):
    """Yields page, line, rule."""
    if tables is None:
        yield from check_figures(root)
    for page, table, macro, form, only in TABLES if tables is None else tables:
        with open(os.path.join(root, page)) as f:
            text = f.read()
        with open(os.path.join(root, table)) as f:
            found = list(rows(f.read(), macro))
        if not found:
            yield page, 1, f"{table} has no row {macro}"
        for row in found:
            if only and row[only[0]] != only[1]:
                continue
            if form.format(*row) not in text:
                yield page, 1, f"nothing is said about {macro}({row[0]}) of {table}: {form.format(*row).strip()!r}"
