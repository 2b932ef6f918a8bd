# SPDX-License-Identifier: Apache-2.0
"""What the tests with torch share; importing it ends the run as skipped where torch is missing."""
import importlib.util
import sys
import unittest
import warnings

if importlib.util.find_spec("torch") is None:
    print("SKIPPED: torch is not installed (pip install torch), so none of torch.compile was tested")
    sys.exit(77)

import torch
import torch.nn.functional as F
from torch import nn

import npu

sys.dont_write_bytecode = True
torch.set_num_threads(1)


def leaves(value):
    if isinstance(value, dict):
        value = [value[k] for k in sorted(value)]
    return [x for v in value for x in leaves(v)] if isinstance(value, (tuple, list)) else [value]


class Case(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(0)
        self.last = max([p._number for p in npu.programs()], default=0)

    def agree(self, got, want, atol=1e-4, rtol=1e-4):
        got, want = leaves(got), leaves(want)
        self.assertEqual(len(got), len(want))
        for g, w in zip(got, want):
            if isinstance(w, torch.Tensor):
                torch.testing.assert_close(g, w, atol=atol, rtol=rtol)
            else:
                self.assertEqual(g, w)

    def fresh(self):
        """Programs made since the test began."""
        return [p for p in npu.programs() if p._number > self.last]

    def silent(self, call):
        """The call's result; fails when anything fell back to eager mode."""
        with warnings.catch_warnings():
            warnings.simplefilter("error", npu.UnsupportedWarning)
            return call()

    def warned(self, call, kind=npu.UnsupportedWarning):
        """The call's result and the warnings of one kind."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = call()
        return result, [w for w in caught if issubclass(w.category, kind)]


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down, self.norm = nn.Linear(16, 32), nn.Linear(32, 16), nn.LayerNorm(16)

    def forward(self, x):
        return self.norm(x + self.down(F.gelu(self.up(x))))
