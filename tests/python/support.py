# SPDX-License-Identifier: Apache-2.0
"""What the tests of the package share; nothing but the standard library."""
import ast
import os
import struct
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
BUILD = Path(os.environ["NPU_BINARY_DIR"])
LETTERS = {"<f4": "f", "<f2": "e", "<f8": "d", "<i8": "q", "<i4": "i", "|b1": "?", "|u1": "B", "|i1": "b"}


class Array:
    """A .npy file: shape, values in order, and the bytes as a memoryview of that shape."""

    def __init__(self, path):
        data = bytearray(Path(path).read_bytes())
        size = struct.unpack_from("<H", data, 8)[0]
        header = ast.literal_eval(data[10 : 10 + size].decode())
        self.shape = header["shape"]
        letter = LETTERS[header["descr"]]
        body = data[10 + size :]
        self.values = [v[0] for v in struct.iter_unpack("<" + letter, body)]
        self.view = memoryview(body).cast(letter, self.shape)


def flat(value):
    """The numbers of a tensor of any kind, in order."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, (list, tuple)):
        return [x for part in value for x in flat(part)]
    return [value]


def close(case, got, want, atol, rtol=0.0):
    """Fails unless all numbers agree."""
    got, want = flat(got), flat(want)
    case.assertEqual(len(got), len(want))
    worst = max(abs(g - w) - rtol * abs(w) for g, w in zip(got, want))
    case.assertLessEqual(worst, atol, f"off by {worst}")


def main():
    """Runs the tests of the calling file; fails when there were none."""
    program = unittest.main(module="__main__", exit=False, verbosity=2)
    ran = program.result.testsRun
    sys.exit(0 if program.result.wasSuccessful() and ran else 1)
