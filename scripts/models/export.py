#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes models with seeded or real weights as ONNX and .pt2, with inputs and ONNX Runtime's outputs.

  export.py --list
  export.py [--out DIR] NAME... | small | all      default DIR: build/models
  --no-pt2     no model.pt2, model.core.pt2
  --cases K    sets of inputs, default 2

DIR/NAME/model.onnx, model.pt2, model.core.pt2 (decomposed), case_K/in_*.npy, case_K/out_*.ort_fp32.npy, meta.json. `small` is every model below 10 MB.
Seeds are fixed: weights and inputs have the same bits on every machine (meta.json has their SHA-256), so outputs agree too,
up to the order of sums. Needs the packages of requirements.txt; where one is missing, says so and ends with status 77.
"""
import argparse
import logging
import os
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUT = os.path.join(ROOT, "build", "models")
MISSING = 77

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
try:
    import torch
    import greedy
    import onnx_files
    import quantize
    import real
    import seeds
    import zoo
except ImportError as e:
    sys.exit(print(f"export: {e}; scripts/models/requirements.txt lists what is needed", file=sys.stderr) or MISSING)


def tolerance(error16, largest):
    """f32: what sums in another order may differ by. f16: four times what torch's own f16 differs by, or 0.4 % of the range."""
    return {"f32": {"rtol": 1e-4, "atol": float(f"{2e-5 * max(largest, 1):.1e}"), "min_cosine": 0.99999},
            "f16": {"rtol": 0, "atol": float(f"{max(4 * error16, 4e-3 * largest):.1e}"), "min_cosine": 0.999}}


def export_seeded(name, spec, folder, cases, pt2):
    """One row of the zoo; returns a line about it."""
    model = spec.build()
    inputs = [spec.inputs(k) for k in range(cases)]
    path = os.path.join(folder, "model.onnx")
    digest = seeds.weights_sha256(model)
    onnx_files.export_onnx(model, inputs[0], path, spec.ins, spec.outs, spec.exporter, spec.opset)
    if pt2 and spec.pt2:
        onnx_files.export_pt2(model, inputs[0], os.path.join(folder, "model.pt2"))
    exact = [onnx_files.run_torch(model, x) for x in inputs]
    outputs = [onnx_files.run_onnx(path, x) for x in inputs]
    half = model.half()
    error16 = max(onnx_files.worst(a, onnx_files.run_torch(half, x, torch.float16)) for a, x in zip(exact, inputs))
    largest = max([1e-3] + [onnx_files.reach(a) for a in exact])
    meta = {"model": name, "exporter": spec.exporter, "opset": spec.opset, "torch": torch.__version__, "weights_sha256": digest,
            "reference": "ort_fp32", "tolerance": tolerance(error16, largest)}
    for k, (x, y) in enumerate(zip(inputs, outputs)):
        onnx_files.save_case(os.path.join(folder, f"case_{k}"), spec.ins, x, spec.outs, y)
    onnx_files.save_json(os.path.join(folder, "meta.json"), meta)
    gap = max(onnx_files.worst(a, b) for a, b in zip(exact, outputs))
    return f"weights {digest[:10]}, ONNX Runtime and torch differ by {gap:.1e}, f16 by {error16:.1e}, largest {largest:.3g}"


def recipes():
    """name -> (function of folder, cases, pt2; big; one line)."""
    table = {}
    for name, spec in zoo.SPECS.items():
        table[name] = (lambda folder, cases, pt2, n=name, s=spec: export_seeded(n, s, folder, cases, pt2), spec.big,
                       f"{spec.exporter} exporter, opset {spec.opset}")
    for name, (make, big, text) in real.MODELS.items():
        table[name] = (lambda folder, cases, pt2, m=make: m(folder, pt2), big, text)
    for name, (make, text) in quantize.MODELS.items():
        table[name] = (lambda folder, cases, pt2, m=make: m(folder, cases), False, text)
    for name, (make, text) in greedy.MODELS.items():
        table[name] = (lambda folder, cases, pt2, m=make: m(folder), False, text)
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--out", default=OUT)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--no-pt2", action="store_true")
    parser.add_argument("--cases", type=int, default=2)
    args = parser.parse_args()
    table = recipes()
    if args.list or not args.names:
        for name, (_, big, text) in table.items():
            print(f"{name:28} {'big' if big else '':4} {text}")
        return
    logging.disable(logging.WARNING)
    torch.set_num_threads(2)
    names = []
    for name in args.names:
        if name not in ("all", "small") and name not in table:
            sys.exit(f"export: no model {name}; --list names them")
        names += [n for n in table if name == "all" or not table[n][1]] if name in ("all", "small") else [name]
    for name in names:
        start, folder = time.monotonic(), os.path.join(args.out, name)
        os.makedirs(folder, exist_ok=True)
        said = table[name][0](folder, args.cases, not args.no_pt2)
        print(f"{name:28} {time.monotonic() - start:6.1f} s, {said}", flush=True)


if __name__ == "__main__":
    main()
