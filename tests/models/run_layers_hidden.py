#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""npusim --check-layers with infinities behind a mask.

    run_layers_hidden.py BIN_DIR

Causal attention whose values hold an infinity at a late key. What an early row gets from it is 0 times infinity, NaN in
ONNX Runtime, or nothing at all where the key is not even read. No layer departs for that; a layer whose instruction was changed
still does.
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

try:
    import onnx
    from onnx import TensorProto, helper
except ImportError:
    sys.exit(77)  # reported as skipped

SHAPE = [1, 2, 24, 16]


def run(*command, status=0):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120,
                          stdin=subprocess.DEVNULL)
    if done.returncode != status:
        raise SystemExit(f"{' '.join(map(str, command))}: exit status {done.returncode}, expected {status}\n"
                         f"{done.stdout}{done.stderr}")
    return done.stdout, done.stderr


def main():
    binaries = pathlib.Path(sys.argv[1]).resolve()
    npuc, npusim = binaries / "bin" / "npuc", binaries / "bin" / "npusim"
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE) for name in "qkvy"]
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"], is_causal=1, name="attention")
    graph = helper.make_graph([node], "g", values[:3], values[3:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        onnx.save(model, work / "m.onnx")
        random = np.random.default_rng(5)
        for name in "qkv":
            x = random.standard_normal(SHAPE).astype(np.float32)
            if name == "v":
                x[0, 1, 20, 3], x[0, 0, 23, 5] = np.inf, np.nan
            np.save(work / f"{name}.npy", x)
        run(npuc, work / "m.onnx", "-q", "-o", work / "m.npu")
        out, _ = run(npusim, work / "m.npu", "--inputs", work, "--check-layers")
        assert "layers agree" in out and "DEPARTS" not in out, out
        run(npusim, work / "m.npu", "-q", "--inputs", work, "--output", f"y={work / 'y.npy'}")
        y = np.load(work / "y.npy")
        hidden = np.isnan(y[0, 1, :20, 3]).sum()
        assert hidden > 0 and not np.isfinite(y[0, 1, 20:, 3]).any(), y[0, 1, :, 3]
        text = run(npuc, work / "m.npu", "--disassemble")[0]
        assert " imm0=" in text
        (work / "b.nps").write_text(text.replace(" imm0=0.25 ", " imm0=0.5 "))
        assert (work / "b.nps").read_text() != text
        run(npuc, work / "b.nps", "-q", "-o", work / "b.npu")
        run(npusim, work / "b.npu", "-q", "--inputs", work, f"--check-layers={work / 'm.onnx'}", status=1)
        print(f"{hidden} elements are NaN by a hidden key, and no layer departs")


main()
