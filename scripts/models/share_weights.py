#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a model whose weights are those of another model without them: they stay in the other file, as external data.

  share_weights.py MODEL.onnx OTHER.onnx OUT.onnx

OUT has to lie in the folder of OTHER, since external data may not leave a model's folder. tests/data/models keeps forms of
one network so. Needs the package onnx.
"""
import os
import sys

import onnx

LEAST = 1024    # bytes; smaller tensors stay where they are


def share(model, other, name):
    """Points initializers of a model at their bytes in the file `name`, whose content is `other`; returns how many bytes."""
    moved = 0
    for tensor in model.graph.initializer:
        raw = tensor.raw_data
        at = other.find(raw) if len(raw) >= LEAST else -1
        if at < 0:
            continue
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", name), ("offset", at), ("length", len(raw))):
            tensor.external_data.add(key=key, value=str(value))
        moved += len(raw)
    return moved


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    source, other, out = sys.argv[1:]
    if not os.path.exists(os.path.join(os.path.dirname(out), os.path.basename(other))):
        sys.exit(f"share_weights: {out} does not lie beside {other}")
    model = onnx.load(source)
    with open(other, "rb") as f:
        moved = share(model, f.read(), os.path.basename(other))
    onnx.save(model, out)
    print(f"{out}: {moved} bytes are those of {other}, {os.path.getsize(out)} stay")


if __name__ == "__main__":
    main()
