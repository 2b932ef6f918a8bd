#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes expected_stats.h: what numpy says about two samples. The resamples are drawn by counter as docs/jitter.md
describes, with the Philox below, so intervals agree to rounding;
a summary numbers the runs in ascending order, a pair of samples as they ran."""
import numpy

N, SEED, RESAMPLES, STREAM = 150, 12345, 1000, 255


def philox(counter, key):
    """Philox4x32-10 over arrays; counter: four arrays of uint64 below 2^32, key: two numbers."""
    c, k, mask = list(counter), list(key), numpy.uint64(0xFFFFFFFF)
    for _ in range(10):
        p0, p1 = numpy.uint64(0xD2511F53) * c[0], numpy.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> numpy.uint64(32)) ^ c[1] ^ numpy.uint64(k[0]), p1 & mask,
             (p0 >> numpy.uint64(32)) ^ c[3] ^ numpy.uint64(k[1]), p0 & mask]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def resamples(n):
    """Indices [RESAMPLES, n]."""
    b, i = numpy.meshgrid(numpy.arange(RESAMPLES, dtype=numpy.uint64), numpy.arange(n, dtype=numpy.uint64), indexing="ij")
    out = philox([i, numpy.full_like(i, STREAM << 24), b, numpy.zeros_like(i)], [SEED, 0])
    bits = (out[1].astype(object) << 32) | out[0].astype(object)
    return ((bits * n) >> 64).astype(int)


def line(*values):
    return "{" + ", ".join(f"{v:.14g}" for v in values) + "}"


def estimate(function, *samples):
    drawn = resamples(len(samples[0]))
    values = [function(*(s[d] for s in samples)) for d in drawn]
    return line(function(*samples), *numpy.quantile(values, [0.025, 0.975]))


std = lambda s: s.std(ddof=1)
rng = numpy.random.default_rng(1)
a = 1000 + rng.gamma(2.0, 30.0, N)
b = a * 0.5 + rng.normal(0, 5, N)
STATS = [numpy.mean, std, lambda s: std(s) / s.mean()] + [lambda s, q=q: numpy.quantile(s, q) for q in (0, .5, .9, .99, .999, 1)]
print("// SPDX-License-Identifier: Apache-2.0\n// Written by make_expected.py.\n// clang-format off")
print(f"#define EXPECTED_N {N}\n#define EXPECTED_SEED {SEED}")
for name, sample in (("a", a), ("b", b)):
    print(f"static const double expected_{name}[EXPECTED_N] = {{\n    " + ",\n    ".join(f"{v:.14g}" for v in sample) + "};")
print(f"static const int expected_bin[20] =\n    {line(*numpy.histogram(a, 20)[0])};")
print("static const double expected_summary[9][3] = {\n    " + ",\n    ".join(estimate(f, numpy.sort(a)) for f in STATS) + "};")
print(f"static const double expected_mean_ratio[3] =\n    {estimate(lambda x, y: x.mean() / y.mean(), b, a)};")
print(f"static const double expected_std_ratio[3] =\n    {estimate(lambda x, y: std(x) / std(y), b, a)};")
print(f"static const double expected_share[3] =\n    {estimate(lambda x, y: 1 - x.var() / y.var(), b, a)};")
