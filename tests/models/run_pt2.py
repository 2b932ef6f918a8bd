#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cases of tests/data/pt2: modules exported by torch, plain and decomposed, against eager's outputs.

    run_pt2.py BUILD_DIR [CASE...]

Every archive must agree on both machines in f32 and, but for cases of integers alone, in f16, and call by call on the first. The case `places` must name layers
and lines in its report, and no folder of whoever exported it.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

from run_reports import Fault, HALF, TARGETS, must

CASES = pathlib.Path(__file__).resolve().parent.parent / "data" / "pt2"
EXACT = ("integers", "wrapping", "in-place", "elementwise", "edges")  # halves round elsewhere: division by what is near 0, rounding to integers


def values(tools, folder, case, model, work):
    files = [f"--input={tensor['name']}={folder / tensor['file']}" for tensor in case["inputs"]]
    files += [f"--expect={tensor['name']}={folder / tensor['file']}" for tensor in case["outputs"]]
    for dtype in ["f32"] if folder.name in EXACT else ["f32", "f16"]:
        rtol, atol = (case["rtol"], case["atol"]) if dtype == "f32" else (HALF, HALF)
        for target, *more in [[target] for target in TARGETS] + [[TARGETS[0], "--eager"]]:
            program = work / f"{dtype}-{target}{''.join(more)}.npu"
            must([tools / "npuc", folder / model, "-q", "--target", target, "--dtype", dtype, "-o", program, *more, *case["options"]])
            must([tools / "npusim", program, "-q", *files, "--rtol", rtol, "--atol", atol])


def places(tools, folder, work):
    report = work / "report.json"
    must([tools / "npuc", folder / "model.pt2", "-q", "-o", work / "p.npu", "--report", report])
    said = report.read_text()
    for text in ("layers.0.0, modeling.py:", "layers.1.1, modeling.py:"):
        if text not in said:
            raise Fault(f"the report does not say {text}:\n{said}")
    if b"/secret" in (work / "p.npu").read_bytes() + said.encode() or b"site-packages" in said.encode():
        raise Fault("a folder of the exporting machine")


def dims(tools, folder, work):
    """Sizes by dimension of an input make the same program as by shape; the name of a Dim is not in the file."""
    for k, options in enumerate((["--shape=x=2,4,8"], ["--dim=x:0=2", "--dim=x:1=4"])):
        must([tools / "npuc", folder / "model.pt2", "-q", "-o", work / f"{k}" / "d.npu", *options])
    listings = []
    for k in "01":
        said = subprocess.run([tools / "npuc", "--disassemble", work / k / "d.npu"], capture_output=True, text=True).stdout
        listings.append([line for line in said.splitlines() if not line.startswith(".option")])
    if not listings[0] or listings[0] != listings[1]:
        raise Fault("--dim INPUT:AXIS and --shape make different programs")
    for option, text in (("batch=2", "a dimension of an input is INPUT:AXIS"), ("x:3=2", "input 'x' has dimensions 0 to 2"),
                         ("x:2=8", "the export fixed that dimension")):
        done = subprocess.run([tools / "npuc", folder / "model.pt2", "-q", "-o", work / "e.npu", "--dim", option], capture_output=True,
                              text=True)
        if done.returncode != 2 or text not in done.stderr:
            raise Fault(f"--dim {option}: status {done.returncode}, {done.stderr}")
    must([tools / "npusim", work / "0" / "d.npu", "-q", "--no-data", "--report", work / "r.json"])
    if json.loads((work / "r.json").read_text())["program"] != "model":
        raise Fault("the program is not called after the file")


def derived(tools, folder, work):
    """A size that cannot be is a usage error with those that can; none at all is the model's fault."""
    for option, status, text in (("--shape=y=8", 2, "expected 4, 9, 16, .. 100"), ("--dim=z:0=8", 2, "expected 5, 7, 9, .. 21"),
                                 ("-q", 3, "dimension 0 of input 'z' is open (5, 7, 9, .. 21, from 's27', 2 to 10)")):
        done = subprocess.run([tools / "npuc", folder / "model.pt2", "-q", "-o", work / "e.npu", option], capture_output=True, text=True)
        if done.returncode != status or text not in done.stderr:
            raise Fault(f"{option}: status {done.returncode}, {done.stderr}")


def check(tools, folder, work):
    case = json.loads((folder / "case.json").read_text())
    for model in case["models"]:
        values(tools, folder, case, model, work)
    if folder.name == "dynamic":
        for k in "01":
            (work / k).mkdir()
        dims(tools, folder, work)
    if folder.name == "derived-sizes":
        derived(tools, folder, work)
    if folder.name == "places":
        places(tools, folder, work)
    return case["models"]


def main():
    tools = pathlib.Path(sys.argv[1]) / "bin"
    folders = [folder for folder in sorted(CASES.iterdir()) if (folder / "case.json").exists()]
    folders = [folder for folder in folders if not sys.argv[2:] or folder.name in sys.argv[2:]]
    failed = 0
    for folder in folders:
        with tempfile.TemporaryDirectory() as work:
            try:
                print(f"{folder.name:16} {', '.join(check(tools, folder, pathlib.Path(work)))}", flush=True)
            except Fault as fault:
                failed += 1
                print(f"{folder.name:16} FAILED: {fault}", flush=True)
    print(f"{len(folders) - failed} passed, {failed} failed")
    return 1 if failed or not folders else 0


if __name__ == "__main__":
    sys.exit(main())
