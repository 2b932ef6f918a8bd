# SPDX-License-Identifier: Apache-2.0
"""Bootstrap intervals as npusim reports them, by numpy: what simulator/noise/stats.c and block.c are tested against."""
import numpy

RESAMPLES, STREAM = 1000, 255


def philox(counter, key):
    """Philox4x32-10 over arrays; counter: four arrays of uint64 below 2^32, key: two numbers."""
    c, k, mask = list(counter), list(key), numpy.uint64(0xFFFFFFFF)
    for _ in range(10):
        p0, p1 = numpy.uint64(0xD2511F53) * c[0], numpy.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> numpy.uint64(32)) ^ c[1] ^ numpy.uint64(k[0]), p1 & mask,
             (p0 >> numpy.uint64(32)) ^ c[3] ^ numpy.uint64(k[1]), p0 & mask]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def resamples(n, seed, block=1):
    """Indices [RESAMPLES, n]: blocks of runs in a circle, cut to n."""
    b, i = numpy.meshgrid(numpy.arange(RESAMPLES, dtype=numpy.uint64), numpy.arange(-(-n // block), dtype=numpy.uint64), indexing="ij")
    out = philox([i, numpy.full_like(i, STREAM << 24), b, numpy.zeros_like(i)], [seed & 0xFFFFFFFF, seed >> 32])
    bits = (out[1].astype(object) << 32) | out[0].astype(object)
    starts = ((bits * n) >> 64).astype(int)
    return ((starts[:, :, None] + numpy.arange(block)) % n).reshape(RESAMPLES, -1)[:, :n]


def block_length(x):
    """Politis and White (2004), corrected by Patton, Politis and White (2009), for circular blocks."""
    x = numpy.asarray(x, float)
    n, lags = len(x), int(numpy.ceil(len(x) ** .5)) + 5
    if n < 10 or x.min() == x.max():
        return 1
    x = x - x.mean()
    cov = numpy.correlate(x, x, "full")[n - 1:][:lags + 1] / n
    if cov[1] <= 0:
        return 1
    loud = numpy.abs(cov / cov[0]) >= 2 * numpy.sqrt(numpy.log10(n) / n)
    quiet = [m for m in range(len(cov) - 5) if not loud[m + 1:m + 6].any()]
    m = 2 * (quiet[0] if quiet else max(numpy.flatnonzero(loud)))
    m = min(m, len(cov) - 1)
    if not m:
        return 1
    k = numpy.arange(-m, m + 1)
    window = numpy.clip(2 * (1 - numpy.abs(k) / m), 0, 1) * cov[numpy.abs(k)]
    if window.sum() <= cov[0]: # blocks never make intervals narrower
        return 1
    b = (2 * (window * numpy.abs(k)).sum() ** 2 / (4 / 3 * window.sum() ** 2)) ** (1 / 3) * n ** (1 / 3)
    return max(1, int(numpy.rint(min(b, numpy.ceil(min(3 * n ** .5, n / 3))))))


def interval(function, seed, *samples, related=True):
    """95 % of what a function of samples that are drawn together is; related: a run may resemble the one before."""
    drawn = resamples(len(samples[0]), seed, max(map(block_length, samples)) if related else 1)
    return numpy.quantile([function(*(s[d] for s in samples)) for d in drawn], [0.025, 0.975])


def summary_interval(function, seed, sample, related=True):
    """The same of one sample, whose runs are numbered in ascending order when they do not correlate."""
    if related and block_length(sample) > 1:
        return interval(function, seed, sample)
    return numpy.quantile([function(numpy.sort(sample)[d]) for d in resamples(len(sample), seed)], [0.025, 0.975])


def std(s):
    return s.std(ddof=1)


QUANTILES = {"min_us": 0, "p50_us": .5, "p90_us": .9, "p99_us": .99, "p999_us": .999, "max_us": 1}
STATS = {"mean_us": numpy.mean, "std_us": std, "cv": lambda s: std(s) / s.mean(),
         **{key: lambda s, q=q: numpy.quantile(s, q) for key, q in QUANTILES.items()}}
