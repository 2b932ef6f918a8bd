#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cases of tests/data/pt2: modules exported by torch, plain and decomposed, against eager's outputs.

    run_pt2.py BUILD_DIR [CASE...]

Every archive must agree on both machines in f32 and, but for cases of integers alone, in f16. The case `places` must name layers
and lines in its report, and no folder of whoever exported it.
"""
import json
import pathlib
import sys
import tempfile

from run_reports import Fault, HALF, TARGETS, must

CASES = pathlib.Path(__file__).resolve().parent.parent / "data" / "pt2"
EXACT = ("integers", "in-place", "elementwise")  # halves round elsewhere: division by what is near 0, rounding to integers


def values(tools, folder, case, model, work):
    files = [f"--input={tensor['name']}={folder / tensor['file']}" for tensor in case["inputs"]]
    files += [f"--expect={tensor['name']}={folder / tensor['file']}" for tensor in case["outputs"]]
    for dtype in ["f32"] if folder.name in EXACT else ["f32", "f16"]:
        rtol, atol = (case["rtol"], case["atol"]) if dtype == "f32" else (HALF, HALF)
        for target in TARGETS:
            program = work / f"{dtype}-{target}.npu"
            must([tools / "npuc", folder / model, "-q", "--target", target, "--dtype", dtype, "-o", program, *case["options"]])
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


def check(tools, folder, work):
    case = json.loads((folder / "case.json").read_text())
    for model in case["models"]:
        values(tools, folder, case, model, work)
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
