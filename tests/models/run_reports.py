#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cases of tests/data/reports: faults that people reported against other compilers, rebuilt small.

    run_reports.py BUILD_DIR [CASE...]

A value case must agree on every machine of TARGETS, in f32 within its own tolerance; in f16 too, within 2e-2, unless its widths
are the point of it. A refusal must end with exit status 3, say every word of must_mention, and leave nothing behind; its
positive half (`bind`) must then work.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

CASES = pathlib.Path(__file__).resolve().parent.parent / "data" / "reports"
TARGETS = ("tiny", "server")
EXACT = ("02", "05")        # only the exact types make sense
HALF = "2e-2"
BAD_INPUT = 3


class Fault(Exception):
    """What was wrong with a case."""


def run(command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)


def must(command):
    done = run(command)
    if done.returncode:
        raise Fault(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}{done.stderr}")


def values(tools, folder, case, work, options=()):
    """Compiles and runs a case on each machine; returns what was run."""
    files = [f"--input={tensor['name']}={folder / tensor['file']}" for tensor in case["inputs"]]
    files += [f"--expect={tensor['name']}={folder / tensor['file']}" for tensor in case["outputs"]]
    halves = [] if folder.name[:2] in EXACT else ["f16"]
    ran = []
    for dtype in ["f32", *halves]:
        rtol, atol = (case["rtol"], case["atol"]) if dtype == "f32" else (HALF, HALF)
        for target in TARGETS:
            program = work / f"{dtype}-{target}.npu"
            must([tools / "npuc", folder / case["model"], "-q", "--target", target, "--dtype", dtype, "-o", program, *options])
            must([tools / "npusim", program, "-q", *files, "--rtol", rtol, "--atol", atol])
            ran.append(f"{dtype} {target}")
    return ran


def refusal(tools, folder, case, work, words):
    program = work / "refused.npu"
    done = run([tools / "npuc", folder / case["model"], "-o", program])
    said = done.stderr + done.stdout
    if done.returncode != BAD_INPUT:
        raise Fault(f"exit status {done.returncode}, expected {BAD_INPUT}\n{said}")
    for word in words:
        if not any(any_of in said for any_of in ([word] if isinstance(word, str) else word)):
            raise Fault(f"the message does not mention {word}:\n{said}")
    for word in ("assertion", "this is a bug", "Traceback"):
        if word in said:
            raise Fault(f"no refusal: {said}")
    if list(work.iterdir()):
        raise Fault(f"left behind: {[path.name for path in work.iterdir()]}")
    return ["refused"]


def check(tools, folder, work):
    case = json.loads((folder / "case.json").read_text())
    if case["kind"] == "refusal":
        ran = refusal(tools, folder, case, work, case["must_mention"])
        if "bind" in case:
            ran += values(tools, folder, case, work, [f"--dim={name}={size}" for name, size in case["bind"].items()])
        return ran
    return values(tools, folder, case, work)


def main():
    tools = pathlib.Path(sys.argv[1]) / "bin"
    folders = [folder for folder in sorted(CASES.iterdir()) if folder.is_dir()]
    if sys.argv[2:]:
        folders = [folder for folder in folders if folder.name.startswith(tuple(sys.argv[2:]))]
    failed = 0
    for folder in folders:
        with tempfile.TemporaryDirectory() as work:
            try:
                print(f"{folder.name:32} {', '.join(check(tools, folder, pathlib.Path(work)))}", flush=True)
            except Fault as fault:
                failed += 1
                print(f"{folder.name:32} FAILED: {fault}", flush=True)
    print(f"{len(folders) - failed} passed, {failed} failed")
    return 1 if failed or not folders else 0


if __name__ == "__main__":
    sys.exit(main())
