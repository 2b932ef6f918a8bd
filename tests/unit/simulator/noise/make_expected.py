#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes expected_stats.h: what numpy says about samples, two of independent runs and two of correlated ones. The resamples
are drawn by counter as docs/noise.md describes, with the Philox of resample.py, so intervals agree to rounding."""
import numpy

from resample import STATS, block_length, interval, std, summary_interval

N, SEED = 150, 12345


def line(*values):
    return "{" + ", ".join(f"{v:.14g}" for v in values) + "}"


def estimate(function, *samples):
    return line(function(*samples), *interval(function, SEED, *samples))


def series(name, values):
    rows = [", ".join(f"{v:.14g}" for v in values[i:i + 4]) for i in range(0, len(values), 4)]
    print(f"static const double expected_{name}[] = {{\n    " + ",\n    ".join(rows) + "};")


def correlated(rng, phi, n):
    """AR(1) of variance 1."""
    x = [rng.normal()]
    while len(x) < n:
        x.append(phi * x[-1] + (1 - phi * phi) ** .5 * rng.normal())
    return numpy.array(x)


rng = numpy.random.default_rng(1)
a = 1000 + rng.gamma(2.0, 30.0, N)
b = a * 0.5 + rng.normal(0, 5, N)
c = 1000 + 100 * correlated(rng, 0.85, N)
d = 0.5 * c + rng.normal(0, 5, N)
print("// SPDX-License-Identifier: Apache-2.0\n// Written by make_expected.py.\n// clang-format off")
print(f"#define EXPECTED_N {N}\n#define EXPECTED_SEED {SEED}")
for name, sample in (("a", a), ("b", b), ("c", c), ("d", d)):
    series(name, sample)
    print(f"static const uint64_t expected_block_{name} = {block_length(sample)};")
print(f"static const int expected_bin[20] =\n    {line(*numpy.histogram(a, 20)[0])};")
for name, sample in (("summary", a), ("summary_c", c)):
    print(f"static const double expected_{name}[9][3] = {{\n    " + ",\n    ".join(line(f(sample), *summary_interval(f, SEED, sample)) for f in STATS.values()) + "};")
for suffix, x, y in (("", a, b), ("_c", c, d)):
    print(f"static const double expected_mean_ratio{suffix}[3] =\n    {estimate(lambda x, y: x.mean() / y.mean(), y, x)};")
    print(f"static const double expected_std_ratio{suffix}[3] =\n    {estimate(lambda x, y: std(x) / std(y), y, x)};")
    print(f"static const double expected_share{suffix}[3] =\n    {estimate(lambda x, y: 1 - x.var() / y.var(), y, x)};")
# Lengths alone: how strongly runs correlate, how many there are.
print("static const struct {\n    double phi;\n    uint64_t n, block;\n} expected_length[] = {")
lengths = [(phi, n, correlated(numpy.random.default_rng(n), phi, n)) for phi in (0, -0.7, 0.5, 0.9, 0.99) for n in (9, 10, 11, 40, 300)]
print(",\n".join(f"    {{{phi}, {n}, {block_length(x)}}}" for phi, n, x in lengths) + "};")
series("series", numpy.concatenate([x for _, _, x in lengths]))
