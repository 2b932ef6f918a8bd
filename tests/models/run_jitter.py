#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""npusim --runs --noise on a whole model: what runs share, what makes them differ, what the report says about them.

    run_jitter.py BUILD_DIR MODEL.onnx TARGET
"""
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "unit/simulator/noise"))
import resample

BUILD, MODEL, TARGET = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
DEVICE = "refresh,contention,clock"


class Jitter(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.tmp = pathlib.Path(cls.folder.name)
        for dtype in ("f16", "f32"):
            subprocess.run([BUILD / "bin/npuc", "-q", MODEL, "--target", TARGET, "--dtype", dtype, "-o", cls.tmp / f"{dtype}.npu"], check=True)

        subprocess.run([BUILD / "bin/npuc", "-q", MODEL, "--target", TARGET, "--dtype", "f16", "--eager", "-o", cls.tmp / "eager.npu"], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def npusim(self, *options, program="f16.npu"):
        """Standard output, and the report without what measures this host."""
        report = self.tmp / "report.json"
        done = subprocess.run([BUILD / "bin/npusim", self.tmp / program, "--no-data", "--report", report, *map(str, options)],
                              check=True, capture_output=True, text=True)
        text = report.read_text()
        value = json.loads(text)
        del value["host"]
        return done.stdout, value

    def runs(self, *options, **more):
        return self.npusim(*options, **more)[1]["runs"]

    def test_without_noise_nothing_differs(self):
        out, report = self.npusim("--runs", 7)
        runs = report["runs"]
        self.assertIn("7 runs: spread 0 cycles", out)
        self.assertEqual((runs["n"], runs["noise"], runs["std_us"], runs["cv"]), (7, "off", 0, 0))
        self.assertEqual(set(runs["times_us"]), {runs["quiet_us"]})
        self.assertEqual(report, self.npusim("--runs", 7, "--noise", "off", "--threads", 3)[1])

    def test_processes_and_shards_never_show(self):
        whole = self.npusim("--runs", 9, "--noise", DEVICE, "--by-source", 5, "--threads", 1)[1]
        for threads in (2, 5):
            self.assertEqual(whole, self.npusim("--runs", 9, "--noise", DEVICE, "--by-source", 5, "--threads", threads)[1])
        parts = [self.runs("--runs", n, "--first-run", first, "--noise", DEVICE)["times_us"] for first, n in ((0, 4), (4, 1), (5, 4))]
        self.assertEqual(whole["runs"]["times_us"], sum(parts, []))

    def test_launches_of_an_eager_program_do_not_either(self):
        whole = self.npusim("--runs", 6, "--noise", "all", "--by-source", 3, "--threads", 1, program="eager.npu")[1]
        self.assertEqual(whole, self.npusim("--runs", 6, "--noise", "all", "--by-source", 3, "--threads", 4, program="eager.npu")[1])
        parts = [self.runs("--runs", 3, "--first-run", k, "--noise", "all", program="eager.npu")["times_us"] for k in (0, 3)]
        self.assertEqual(whole["runs"]["times_us"], sum(parts, []))
        self.assertEqual(self.runs("--runs", 3, program="eager.npu")["std_us"], 0)

    def test_seeds_differ_and_the_run_without_noise_does_not(self):
        one, two = (self.npusim("--runs", 4, "--noise", DEVICE, "--seed", s)[1] for s in (1, 2))
        self.assertNotEqual(one["runs"]["times_us"], two["runs"]["times_us"])
        for seed, report in ((1, one), (2, two)): # inputs that are not given come from the seed too, and gathers read by them
            self.assertEqual(report["cycles"], self.npusim("--seed", seed)[1]["cycles"])

    def test_each_source_alone(self):
        for source in DEVICE.split(","):
            with self.subTest(source=source):
                runs = self.runs("--runs", 8, "--noise", source)
                self.assertGreater(runs["std_us"], 0)
                self.assertEqual(runs["noise"], source)

    def test_more_traffic_takes_longer(self):
        means = [self.runs("--runs", 6, "--noise", "contention", "--set", f"noise.traffic_percent={p}", "--set",
                           "noise.traffic_burst_percent=70")["mean_us"] for p in (0, 10, 30, 60)]
        self.assertEqual(means, sorted(set(means)))
        self.assertEqual(self.runs("--runs", 3, "--noise", "contention", "--set", "noise.traffic_percent=0")["std_us"], 0)

    def test_numbers_are_those_of_the_times(self):
        runs = self.runs("--runs", 60, "--noise", DEVICE)
        t = numpy.array(runs["times_us"])
        expected = {"mean_us": t.mean(), "std_us": t.std(ddof=1), "cv": t.std(ddof=1) / t.mean(), "min_us": t.min(), "max_us": t.max(),
                    "p50_us": numpy.quantile(t, .5), "p90_us": numpy.quantile(t, .9), "p99_us": numpy.quantile(t, .99),
                    "p999_us": numpy.quantile(t, .999)}
        for key, value in expected.items():
            self.assertTrue(math.isclose(runs[key], value, rel_tol=1e-7), (key, runs[key], value))
            lo, hi = runs["intervals"][key]
            self.assertLessEqual(lo, value * (1 + 1e-9))
            self.assertGreaterEqual(hi, value * (1 - 1e-9))
        self.assertEqual(sum(runs["histogram"]["counts"]), 60)
        numpy.testing.assert_allclose(runs["quantiles_us"], numpy.quantile(t, numpy.linspace(0, 1, 101)), rtol=1e-9)
        # The interval of the mean is as wide as the central limit theorem has it, within what 1000 resamples leave open.
        lo, hi = runs["intervals"]["mean_us"]
        self.assertTrue(0.8 < (hi - lo) / (2 * 1.96 * t.std(ddof=1) / 60 ** .5) < 1.2)

    def test_correlated_runs_are_resampled_in_blocks(self):
        """The host's state lasts from run to run: intervals are those of numpy's circular block bootstrap, and wider than others."""
        out, report = self.npusim("--runs", 250, "--noise", "host", "--seed", 3, program="eager.npu")
        runs = report["runs"]
        t = numpy.array(runs["times_us"])
        self.assertEqual(runs["resample_block"], resample.block_length(t))
        self.assertGreater(runs["resample_block"], 5)
        self.assertTrue(math.isclose(runs["correlation"], numpy.dot(t[1:] - t.mean(), t[:-1] - t.mean()) / t.var() / 250, rel_tol=1e-6))
        self.assertIn(f"correlated ({runs['correlation']:.2f}), so they are resampled in blocks of {runs['resample_block']}", out)
        for key, function in resample.STATS.items():
            numpy.testing.assert_allclose(runs["intervals"][key], resample.interval(function, 3, t), rtol=1e-7, err_msg=key)
        lo, hi = runs["intervals"]["mean_us"]
        self.assertGreater(hi - lo, 2 * 2 * 1.96 * t.std(ddof=1) / 250 ** .5)

    def test_independent_runs_are_resampled_one_by_one(self):
        """Draws of the machine are of a run alone, so a correlation that its runs show is chance, and blocks would be wrong."""
        n = 12
        times = self.runs("--runs", 240, "--noise", "contention")["times_us"]
        seeming = [k for k in range(240 - n) if resample.block_length(times[k:k + n]) > 1]
        for first in [0] + seeming[:1]:
            out, report = self.npusim("--runs", n, "--first-run", first, "--noise", "contention")
            t = numpy.array(report["runs"]["times_us"])
            numpy.testing.assert_array_equal(t, times[first:first + n])
            self.assertEqual(report["runs"]["resample_block"], 1)
            self.assertNotIn("correlated", out)
            for key, function in resample.STATS.items():
                want = resample.summary_interval(function, 0, t, related=False)
                numpy.testing.assert_allclose(report["runs"]["intervals"][key], want, rtol=1e-7, err_msg=key)

    def test_two_independent_programs_are_too(self):
        runs = self.npusim("--runs", 30, "--noise", DEVICE, "--versus", self.tmp / "f32.npu")[1]["runs"]
        a, b = (numpy.array(r["times_us"]) for r in (runs["versus"], runs))
        want = resample.interval(lambda x, y: x.mean() / y.mean(), 0, a, b, related=False)
        numpy.testing.assert_allclose(runs["versus"]["mean_ratio"]["interval"], want, rtol=1e-7)

    def test_two_programs_are_resampled_in_the_longer_blocks(self):
        out, report = self.npusim("--runs", 120, "--noise", "host", "--versus", self.tmp / "f16.npu", program="eager.npu")
        runs, other = report["runs"], report["runs"]["versus"]
        a, b = (numpy.array(r["times_us"]) for r in (other, runs))
        self.assertEqual([other["resample_block"], runs["resample_block"]], [resample.block_length(x) for x in (a, b)])
        want = resample.interval(lambda x, y: x.mean() / y.mean(), 0, a, b)
        numpy.testing.assert_allclose(other["mean_ratio"]["interval"], want, rtol=1e-7)

    def test_shares_are_those_of_the_runs_without(self):
        n = 30
        runs = self.runs("--runs", n, "--noise", "refresh,contention", "--by-source", n)
        self.assertEqual(set(runs["by_source"]), {"refresh", "contention"})
        for source, other in (("refresh", "contention"), ("contention", "refresh")):
            without = numpy.array(self.runs("--runs", n, "--noise", other)["times_us"])
            share = 1 - without.var() / numpy.array(runs["times_us"]).var()
            self.assertTrue(math.isclose(runs["by_source"][source], share, rel_tol=1e-6, abs_tol=1e-9))
        out = self.npusim("--runs", n, "--noise", "refresh,contention", "--by-source", n)[0]
        self.assertIn("need not add up", out)
        self.assertIn("nothing is sampled from a fitted model", out)
        self.assertEqual(self.runs("--runs", n, "--noise", "refresh,contention", "--by-source", 0)["by_source"], {})
        self.assertEqual(self.runs("--runs", n, "--noise", DEVICE)["by_source"], {}) # fewer than 100 runs

    def test_shares_that_cannot_be_are_refused(self):
        for noise, n, part in (("refresh", 5, "two sources"), ("off", 5, "two sources"), ("all", 11, "2 to --runs, which is 10"), ("all", 1, "2 to --runs")):
            done = subprocess.run([BUILD / "bin/npusim", self.tmp / "f16.npu", "--no-data", "--runs", "10", "--noise", noise, "--by-source", str(n)],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn(part, done.stderr)

    def test_noise_that_cannot_be_there_is_refused(self):
        for options, part in ((["--noise", "contention,host", "--host", "none"], "--host none takes it away"),
                              (["--first-run", "7"], "--first-run 7: without --noise every run is the same"),
                              (["--first-run", "0", "--runs", "3"], "without --noise")):
            done = subprocess.run([BUILD / "bin/npusim", self.tmp / "f16.npu", "--no-data", *options], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(part, done.stderr)
        whole = self.runs("--runs", 4, "--noise", "all", "--host", "none")
        self.assertEqual((whole["noise"], whole["sampled_mean_us"]), (DEVICE, 0))
        self.assertEqual(self.runs("--first-run", 2, "--noise", DEVICE)["times_us"], whole["times_us"][2:3])

    def test_one_run_with_noise_is_shown(self):
        out, report = self.npusim("--noise", "refresh,contention")
        self.assertIn("latency of 1 run from number 0, noise refresh,contention", out)
        self.assertNotEqual(report["runs"]["times_us"][0], report["runs"]["quiet_us"])
        # One run has no spread and nothing to resample.
        self.assertAlmostEqual(float(re.search(r"\n  time   ([\d.]+) us\n", out)[1]), report["runs"]["mean_us"], delta=0.001)
        for word in ("std", "cv", "[", "bootstrap", "of the mean", "histogram"):
            self.assertNotIn(word, out)
        self.assertEqual((report["runs"]["std_us"], report["runs"]["cv"]), (0, 0))

    def test_where_nothing_varies_there_is_no_spread(self):
        for n in (1, 3):
            out, report = self.npusim("--runs", n, "--versus", self.tmp / "f32.npu")
            ratio = report["runs"]["versus"]["mean_ratio"]["value"]
            self.assertIn(f"\nf32.npu over f16.npu: mean {ratio:.4f}; neither varies\n", out)
            for word in ("std", "cv", "[", "bootstrap"):
                self.assertNotIn(word, out)

    def test_quiet_prints_no_distribution(self):
        """The report has it; what has an option of its own is printed."""
        several = ["--runs", 12, "--noise", DEVICE, "--versus", self.tmp / "f32.npu"]
        loud, quiet = self.npusim(*several), self.npusim("-q", *several)
        self.assertIn("latency of 12 runs", loud[0])
        self.assertEqual(quiet, ("", loud[1]))
        self.assertEqual(quiet[1]["runs"]["n"], 12)
        self.assertIn("versus", quiet[1]["runs"])
        shown = self.npusim("-q", "--trace", "--what-if=memory", *several)[0]
        self.assertIn("engine", shown)
        self.assertIn("what if", shown)
        self.assertNotIn("latency of", shown)

    def test_versus(self):
        out, report = self.npusim("--runs", 12, "--noise", DEVICE, "--versus", self.tmp / "f32.npu", "--host", "none")
        runs, other = report["runs"], report["runs"]["versus"]
        self.assertEqual(runs["times_us"], self.runs("--runs", 12, "--noise", DEVICE)["times_us"])
        self.assertEqual(other["times_us"], self.runs("--runs", 12, "--noise", DEVICE, program="f32.npu")["times_us"])
        self.assertEqual((runs["program"], other["program"]), ("f16.npu", "f32.npu"))
        self.assertTrue(math.isclose(other["mean_ratio"]["value"], other["mean_us"] / runs["mean_us"], rel_tol=1e-9))
        self.assertTrue(math.isclose(other["std_ratio"]["value"], other["std_us"] / runs["std_us"], rel_tol=1e-7))
        self.assertLess(other["mean_ratio"]["interval"][0], other["mean_ratio"]["interval"][1])
        self.assertIn("f32.npu over f16.npu", out)

    def test_the_host_is_sampled(self):
        out, report = self.npusim("--runs", 30, "--noise", "all", "--by-source", 30)
        runs = report["runs"]
        device = self.runs("--runs", 30, "--noise", DEVICE)
        self.assertTrue(math.isclose(runs["mean_us"] - runs["sampled_mean_us"], device["mean_us"], rel_tol=1e-9))
        self.assertGreater(runs["std_us"], device["std_us"])
        self.assertEqual({s["name"]: s["kind"] for s in runs["sources"]},
                         {"refresh": "simulated", "contention": "simulated", "clock": "simulated", "host": "sampled"})
        self.assertIn("sampled from a fitted model of the host", out)

    def test_locale_chooses_the_bars(self):
        command = [BUILD / "bin/npusim", self.tmp / "f16.npu", "--no-data", "--runs", "20", "--noise", "contention"]
        out = {name: subprocess.run(command, check=True, capture_output=True, env={"LC_ALL": name}).stdout for name in ("C", "C.UTF-8")}
        self.assertTrue(out["C"].isascii())
        self.assertIn(b"####", out["C"])
        self.assertIn("\u2588\u2588", out["C.UTF-8"].decode())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
