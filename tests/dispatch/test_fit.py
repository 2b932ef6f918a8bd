# SPDX-License-Identifier: Apache-2.0
"""The fit of the host model: closed forms, and the built-in file against its own measurements."""
import json
import math
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
from dispatch_model import fit, form  # noqa: E402

BUILT_IN = os.path.join(ROOT, "simulator", "noise", "host_default.json")
SCRIPT = os.path.join(ROOT, "scripts", "measure_dispatch")


class Tables(unittest.TestCase):
    def test_moments_of_a_uniform(self):
        pairs = fit.table([1.0, 2.0, 3.0])
        self.assertAlmostEqual(fit.quantile(pairs, 0.25), 1.5)
        self.assertAlmostEqual(fit.mean(pairs), 2.0)
        self.assertAlmostEqual(fit.deviation(pairs), 2 / math.sqrt(12), places=6)

    def test_tail_is_straight_in_the_logarithm(self):
        pairs = fit.table([1.0] * 200 + [math.e ** 2])  # from 0.995 on
        self.assertAlmostEqual(fit.quantile(pairs, 0.9975), math.e)
        self.assertAlmostEqual(fit.mean(pairs), 0.995 + 0.005 * (math.e ** 2 - 1) / 2)

    def test_means_are_the_measured_ones(self):
        """Tables of 201 quantiles and the 0.999 one give back the means of all samples within 0.6 %."""
        model = form.load(BUILT_IN)
        for name, c in model["dispatch"].items():
            self.assertAlmostEqual(fit.mean(fit.table(c["quantiles_us"], c["p999_us"])) / c["mean_us"], 1, delta=0.006, msg=name)


class Correlation(unittest.TestCase):
    def test_uniform_under_a_gaussian_copula(self):
        """Pearson 1907: correlation of the uniforms is 6/pi asin(r/2)."""
        weights = fit.hermite(fit.table([0.0, 1.0]))
        for r in (0.2, 0.5, 0.9):
            uniform = 6 / math.pi * math.asin(r / 2)
            self.assertAlmostEqual(fit.copula_correlation(weights, uniform), r, delta=2e-3)

    def test_lognormal_under_a_gaussian_copula(self):
        """(exp(s^2 r) - 1) / (exp(s^2) - 1)."""
        s = 0.5
        values = [math.exp(s * fit.NORMAL.inv_cdf(min(max(k / 2000, 1e-5), 1 - 1e-5))) for k in range(2001)]
        weights = fit.hermite(fit.table(values))
        for r in (0.3, 0.8):
            values_r = (math.exp(s * s * r) - 1) / (math.exp(s * s) - 1)
            self.assertAlmostEqual(fit.copula_correlation(weights, values_r), r, delta=1e-2)  # the table cuts the tails

    def test_components_come_back(self):
        pairs = fit.table([0.0, 1.0])
        lags = [6 / math.pi * math.asin((0.6 * 0.95 ** k + 0.3 * 0.4 ** k) / 2) for k in range(1, 6)]
        found = fit.components(pairs, lags)
        for k, lag in enumerate(lags, 1):
            r = sum(c["weight"] * c["phi"] ** k for c in found)
            self.assertAlmostEqual(6 / math.pi * math.asin(r / 2), lag, delta=3e-3)

    def test_white_noise_has_no_component_of_weight(self):
        found = fit.components(fit.table([0.0, 1.0]), [0.0] * 5)
        self.assertLess(sum(c["weight"] for c in found), 1e-6)


class BuiltIn(unittest.TestCase):
    def refit(self, *options):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.json")
            done = subprocess.run([sys.executable, SCRIPT, "--refit", BUILT_IN, "-o", path, *options], capture_output=True,
                                  text=True, timeout=200)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(path, encoding="ascii") as f:
                return f.read()

    def test_follows_from_its_own_measurements(self):
        with open(BUILT_IN, encoding="ascii") as f:
            self.assertEqual(self.refit(), f.read())

    def test_fitted_on_one_tested_on_the_other(self):
        model = form.load(BUILT_IN)
        runs = {r["model"]: r for r in model["runs"] if r["mode"] == "eager"}
        self.assertEqual(sorted(runs), ["modernbert-base", "resnet50"])
        for on, other in (sorted(runs), sorted(runs)[::-1]):
            part = json.loads(self.refit("--fit-on", on))["slow"]
            mean, std, _ = fit.predict(model, part, runs[on])
            self.assertAlmostEqual(mean / runs[on]["mean_us"], 1, delta=0.001)
            self.assertAlmostEqual(std / runs[on]["std_us"], 1, delta=0.002)
            mean, _, _ = fit.predict(model, part, runs[other])
            self.assertLess(abs(mean / runs[other]["mean_us"] - 1), 0.15, f"fitted on {on}")

    def test_faults(self):
        for options, says in ((["--refit", "none.json"], "none.json"), ([], "where the model goes"),
                              (["--refit", BUILT_IN, "--fit-on", "gpt"], "modernbert-base, resnet50"),
                              (["--refit", __file__], "measure_dispatch: ")):
            done = subprocess.run([sys.executable, SCRIPT, *options], capture_output=True, text=True, timeout=200)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(says, done.stderr)
            self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    unittest.main()
