#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/kinds: whole kinds of faults that compilers make, dozens of small nodes each.

  make.py [NAME...]      with the Python packages onnx, onnxruntime and numpy
"""
import os
import sys

import build
import folds
import moves
import norms
import quants
import recurrent
import windows

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
DATA = os.path.join(ROOT, "tests", "data", "kinds")


def main():
    for module in (windows, moves, norms, folds, quants, recurrent):
        for make in module.KINDS:
            m, f16, *f32 = make()
            if sys.argv[1:] and m.name not in sys.argv[1:]:
                continue
            print(m.write(DATA, f32[0] if f32 else None, f16))
            if module is recurrent:
                print("  " + recurrent.cross_check(m))


if __name__ == "__main__":
    assert build
    main()
