# SPDX-License-Identifier: Apache-2.0
"""Rows as Markdown tables, and into docs/benchmarks.md between markers."""
import datetime
import os
import subprocess

COLUMNS = ("model", "dtype", "target", "cycles", "time us", "/ideal", "/mapped", "ideal", "mapped", "MMACs", "DRAM KiB", "SPM peak KiB",
           "bound KiB", "kernels", "compile s", "compile MiB", "run s", "run MiB", "worst error", "allowed")
STEP_COLUMNS = ("model", "dtype", "target", "without", "cycles", "x", "DRAM KiB", "SPM peak KiB", "kernels", "compile s")
WORDS = {"model", "dtype", "target", "without"}
WHOLE = {"cycles", "ideal", "mapped", "DRAM KiB", "SPM peak KiB", "bound KiB", "compile MiB", "run MiB", "kernels"}
DOCUMENT = os.path.join("docs", "benchmarks.md")


def text(column, value):
    if isinstance(value, str):
        return value
    if value is None:
        return "-"
    if column in WHOLE:
        return f"{value:,.0f}"
    if column == "worst error":
        return f"{value:.2g}"
    return f"{value:,.1f}" if column in ("time us", "MMACs") else f"{value:.2f}"


def markdown(columns, rows):
    lines = ["| " + " | ".join(columns) + " |", "|" + "|".join("---" if c in WORDS else "---:" for c in columns) + "|"]
    for row in rows:
        lines.append("| " + " | ".join(text(c, row.get(c)) for c in columns) + " |")
    return lines


def origin(command):
    """Date, revision and host, for above a table."""
    done = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True)
    revision = done.stdout.strip() if done.returncode == 0 else "unknown"
    with open("/proc/cpuinfo") as f:
        model = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), "unknown processor")
    return f"{datetime.date.today()}, revision {revision}, host {os.cpu_count()} x {model}: `{command}`."


def replace(marker, lines):
    """Puts lines between the markers of docs/benchmarks.md."""
    begin, end = f"<!-- {marker}: begin -->", f"<!-- {marker}: end -->"
    with open(DOCUMENT) as f:
        before, rest = f.read().split(begin)
    after = rest.split(end)[1]
    with open(DOCUMENT + ".part", "w") as f:
        f.write(before + begin + "\n" + "\n".join(lines) + "\n" + end + after)
    os.replace(DOCUMENT + ".part", DOCUMENT)
