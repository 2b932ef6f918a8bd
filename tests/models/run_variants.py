#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A model in other words compiles to the same kernels and gives the same values.

    run_variants.py BUILD_DIR MODEL_DIR DTYPE TARGET [--seeds N]

Each way of variants.py alone, then all together with N seeds (default 2), then other opsets where onnx converts the model.
Kernels: as many of each name as the original has (npuc --report). Values: within the model's tolerance of its references, and
the same bits as the original's where no operands are swapped (a product that is added rounds otherwise as the first operand
than as the second) and the opset is the same. Status 77 without the Python package onnx.
"""
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

import variants
from variants import onnx

OPSETS = (19, 20, 21, 22, 23)


class Program:
    """One file compiled: its kernels, and what it computes for the case, by position."""

    def __init__(self, tools, path, dtype, target, work):
        self.path, self.tools = work / "program.npu", tools
        report = work / "report.json"
        run(tools / "npuc", path, "-q", "--dtype", dtype, "--target", target, "-o", self.path, "--report", report)
        layers = json.loads(report.read_text())["layers"]
        self.kernels = collections.Counter(layer["kernel"] for layer in layers)

    def outputs(self, inputs, expects, allowed, work):
        """Bytes of each output; they have to be what is expected."""
        files = [work / f"{k}.npy" for k in range(len(expects))]
        words = [f"--input={k}={path}" for k, path in enumerate(inputs)]
        words += [word for k, path in enumerate(expects) for word in (f"--expect={k}={path}", f"--output={k}={files[k]}")]
        run(self.tools / "npusim", self.path, "-q", *words, "--rtol", allowed["rtol"], "--atol", allowed["atol"])
        return [path.read_bytes() for path in files]


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=200, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}{done.stderr}")


def difference(a, b):
    """Kernels of a and b that the other lacks, in words."""
    return f"only the original: {dict(a - b)}; only the variant: {dict(b - a)}"


def wanted(seeds):
    """Name of a variant, seed, ways, opset."""
    for way in variants.WAYS:
        yield way, 1, [way], None
    for seed in range(seeds):
        yield f"all, seed {seed}", seed, variants.WAYS, None
    for opset in OPSETS:
        yield f"opset {opset}", 3, variants.WAYS, opset


def main():
    tools, folder = pathlib.Path(sys.argv[1]) / "bin", pathlib.Path(sys.argv[2])
    dtype, target = sys.argv[3:5]
    seeds = int(sys.argv[6]) if sys.argv[5:6] == ["--seeds"] else 2
    model, meta = onnx.load(str(folder / "model.onnx")), json.loads((folder / "meta.json").read_text())
    case, opset = folder / "case_0", next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    inputs = [case / f"in_{i.name}.npy" for i in model.graph.input]
    expects = [case / f"out_{o.name}.{meta['reference']}.npy" for o in model.graph.output]
    passed, refused = 0, []
    with tempfile.TemporaryDirectory() as temporary:
        work = pathlib.Path(temporary)
        original = Program(tools, folder / "model.onnx", dtype, target, work)
        values = original.outputs(inputs, expects, meta["tolerance"][dtype], work)
        for name, seed, ways, other_opset in wanted(seeds):
            if other_opset == opset:
                continue
            try:
                changed = variants.variant(model, seed, ways, other_opset)
            except Exception as e:                # the converter says no in many ways
                if not other_opset:
                    raise
                refused.append(f"{name} ({str(e).splitlines()[0][:60] if str(e) else type(e).__name__})")
                continue
            onnx.save(changed, str(work / "variant.onnx"))
            program = Program(tools, work / "variant.onnx", dtype, target, work)
            if program.kernels != original.kernels:
                raise SystemExit(f"{folder.name}, {name}: other kernels. {difference(original.kernels, program.kernels)}")
            same = program.outputs(inputs, expects, meta["tolerance"][dtype], work) == values
            if not same and "swap" not in ways and not other_opset:
                raise SystemExit(f"{folder.name}, {name}: values with other bits")
            passed += 1
    print(f"{folder.name} {dtype} {target}: {passed} variants agree, {sum(original.kernels.values())} kernels each"
          + (f"; not converted: {', '.join(refused)}" if refused else ""))


if __name__ == "__main__":
    main()
