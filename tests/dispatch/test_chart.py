# SPDX-License-Identifier: Apache-2.0
"""The chart of distributions: labels of an axis do not touch."""
import os
import re
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
from dispatch_model import chart  # noqa: E402

LABEL = re.compile(r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="middle">([\d.,]+)</text>')


def rows(low, high):
    """Labels of both axes of time: [(middle, text)] per axis."""
    values = [low * (high / low) ** (k / 100) for k in range(101)]
    found = [(float(x), text) for x, _, text in LABEL.findall(chart.chart("t", [("p", "a", values)]))]
    middle = chart.LEFT + chart.PLOT + chart.GAP / 2
    return [[f for f in found if f[0] < middle], [f for f in found if f[0] > middle]]


class Labels(unittest.TestCase):
    def test_none_touches_the_next(self):
        for low in (0.02, 0.7, 4, 90, 1500, 30000, 99000, 250000):
            for span in (1.5, 3, 8, 20, 70, 300, 1000):
                for row in rows(low, low * span):
                    for (x, a), (y, b) in zip(row, row[1:]):
                        room = y - x - 6.7 * (len(a) + len(b)) / 2  # a digit of 12 px sans serif
                        self.assertGreater(room, 5, f"{a} and {b} of {low} to {low * span}")

    def test_some_remain(self):
        for low, span in ((0.7, 8), (90, 20), (30000, 20), (99000, 8), (250000, 8)):
            self.assertGreaterEqual(len(rows(low, low * span)[0]), 1, f"{low} to {low * span}")
        self.assertEqual([text for _, text in rows(100, 900)[0]], ["100", "200", "500"])


if __name__ == "__main__":
    unittest.main()
