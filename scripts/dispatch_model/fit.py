# SPDX-License-Identifier: Apache-2.0
"""From measurements to the slow part and the compiled part of a host model; Python's standard library only.

    slow(model, run)                      -> "slow" of the model file, from one measured eager run
    compiled(model, graph, eager)         -> "compiled", from the runs of a captured graph
    compiled_of_one_call(model, slow)     -> "compiled" where no graph was captured
    predict(model, slow, run)             -> mean and quantiles that a slow part gives for another measured run's calls

docs/jitter.md has the formulas with the figures. Times are in microseconds.
"""
import math
from statistics import NormalDist

NORMAL = NormalDist()
TAIL = 0.995  # from here on a quantile function is interpolated in its logarithm
TERMS = 24    # of the Hermite series


def table(values, p999=None):
    """(probability, value) pairs of an equally spaced table, with the 0.999 quantile put in."""
    pairs = [(i / (len(values) - 1), v) for i, v in enumerate(values)]
    if p999 is not None:
        at = next(i for i, (p, _) in enumerate(pairs) if p > 0.999)
        pairs.insert(at, (0.999, p999))
    return pairs


def quantile(pairs, u):
    for (p, a), (q, b) in zip(pairs, pairs[1:]):
        if u <= q:
            t = (u - p) / (q - p)
            return a * (b / a) ** t if p >= TAIL - 1e-9 else a + t * (b - a)
    return pairs[-1][1]


def mean(pairs):
    """Mean of the distribution with this quantile function."""
    total = 0.0
    for (p, a), (q, b) in zip(pairs, pairs[1:]):
        log = p >= TAIL - 1e-9 and a != b
        total += (q - p) * ((b - a) / math.log(b / a) if log else (a + b) / 2)
    return total


def median(values):
    return quantile(table(values), 0.5)


def deviation(pairs):
    steps = 20000
    m = mean(pairs)
    return math.sqrt(sum((quantile_at - m) ** 2 for quantile_at in spread(pairs, steps)) / steps)


def spread(pairs, steps):
    """The quantile function at the middles of equal steps, in one sweep."""
    i = 0
    for k in range(steps):
        u = (k + 0.5) / steps
        while pairs[i + 1][0] < u:
            i += 1
        (p, a), (q, b) = pairs[i], pairs[i + 1]
        t = (u - p) / (q - p)
        yield a * (b / a) ** t if p >= TAIL - 1e-9 else a + t * (b - a)


def fast_us(model, calls, statistic=mean):
    """What a list of calls costs in tight loops: the sum of the classes' means (or medians), less the timer."""
    total = 0.0
    for name, n in calls.items():
        c = model["dispatch"][name]
        total += n * (statistic(table(c["quantiles_us"], c.get("p999_us"))) - model.get("timer_us", 0))
    return total


def hermite(pairs):
    """Weights w_k >= 0 of sum 1, k = 1..: correlation of Q(Phi(z)) is sum of w_k r^k when that of z is r."""
    steps, coefficients = 4000, [0.0] * (TERMS + 1)
    for k, value in enumerate(spread(pairs, steps)):
        z = NORMAL.inv_cdf((k + 0.5) / steps)
        h, before = 1.0, 0.0  # normalised: h_n = (z h_(n-1) - sqrt(n-1) h_(n-2)) / sqrt(n)
        for n in range(TERMS + 1):
            coefficients[n] += value * h / steps
            h, before = (z * h - math.sqrt(n) * before) / math.sqrt(n + 1), h
    squares = [c * c for c in coefficients[1:]]
    return [s / sum(squares) for s in squares]


def copula_correlation(weights, measured):
    """Correlation of the normal variables under a measured correlation of the values, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if sum(w * middle ** (k + 1) for k, w in enumerate(weights)) < measured:
            low = middle
        else:
            high = middle
    return low


def components(pairs, autocorrelation):
    """Two AR(1) components whose weighted phi^lag come nearest to the lags, least squares; what is missing to 1 is white."""
    lags = [copula_correlation(hermite(pairs), r) for r in autocorrelation]
    best = None
    slow_grid = [1 - 10 ** (-k / 20) for k in range(10, 41)]  # 0.68 .. 0.99: longer than 2,000 runs can tell
    for phi in slow_grid:
        for i in range(0, 91):
            psi = i / 100
            if psi >= phi:
                break
            a, b = _weights(phi, psi, lags)
            error = sum((a * phi ** (k + 1) + b * psi ** (k + 1) - r) ** 2 for k, r in enumerate(lags))
            if best is None or error < best[0] - 1e-12:
                best = error, phi, psi, a, b
    _, phi, psi, a, b = best
    return [{"weight": round(w, 4), "phi": round(f, 4)} for w, f in ((a, phi), (b, psi)) if w > 0]


def _weights(phi, psi, lags):
    """Least squares for the weights of two components, both in [0, 1] and of sum at most 1."""
    x = [[f ** (k + 1) for k in range(len(lags))] for f in (phi, psi)]
    dot = lambda u, v: sum(p * q for p, q in zip(u, v))  # noqa: E731
    aa, ab, bb = dot(x[0], x[0]), dot(x[0], x[1]), dot(x[1], x[1])
    ya, yb = dot(x[0], lags), dot(x[1], lags)
    d = aa * bb - ab * ab
    choices = []
    if d > 1e-15:
        choices.append(((ya * bb - yb * ab) / d, (yb * aa - ya * ab) / d))
    choices += [(min(1, ya / aa), 0.0), (0.0, min(1, yb / bb) if bb else 0.0)]
    # on the edge a + b = 1
    e = aa - 2 * ab + bb
    a = (ya - yb - ab + bb) / e if e > 1e-15 else 1.0
    choices.append((min(1, max(0, a)), 1 - min(1, max(0, a))))
    fits = [(a, b) for a, b in choices if a >= 0 and b >= 0 and a + b <= 1 + 1e-12]
    return min(fits, key=lambda w: sum((w[0] * p + w[1] * q - r) ** 2 for p, q, r in zip(*x, lags)))


def slow(model, run):
    """Level at the median, quantiles of the factor with median 1, correlation over runs."""
    middle = median(run["quantiles_us"])
    pairs = table(run["quantiles_us"])
    return {
        "fitted_on": run["model"],
        "level": round(middle / fast_us(model, run["calls"]), 4),
        "quantiles": [round(q / middle, 5) for q in run["quantiles_us"]],
        "components": components(pairs, run["autocorrelation"]),
    }


def compiled(model, graph, eager):
    """Time of the single submission of a compiled program, from a captured graph's runs.

    The part that varies is what a run takes over the fastest of all. The part that does not cannot be told from the device's
    own time: it follows from the host's relative deviation, which the eager runs of the same model give: mean = deviation of
    the graph's runs / CV of the eager runs. The share before the device starts is one dispatch of the cheapest kind.
    """
    fastest = graph["quantiles_us"][0]
    excess = [q - fastest for q in graph["quantiles_us"]]
    total = graph["std_us"] / (eager["std_us"] / eager["mean_us"])
    constant = max(0.0, total - mean(table([e + 1 for e in excess])) + 1)
    values = [round(constant + e, 3) for e in excess]
    launch = min(median(c["quantiles_us"]) - model.get("timer_us", 0)
                 for name, c in model["dispatch"].items() if name != "reshape_view")
    return {
        "fitted_on": graph["model"],
        "quantiles_us": values,
        "submit_share": round(min(1.0, launch / median(values)), 4),
        "components": components(table([v + 1e-9 for v in values]), graph["autocorrelation"]),
    }


def compiled_of_one_call(model, part):
    """Without captured graphs: one dispatch of the cheapest kind, all of it before the device starts, as slow as the host is."""
    name = min((n for n in model["dispatch"] if n != "reshape_view"),
               key=lambda n: median(model["dispatch"][n]["quantiles_us"]))
    launch = median(model["dispatch"][name]["quantiles_us"]) - model.get("timer_us", 0)
    return {
        "fitted_on": f"one call of {name}",
        "quantiles_us": [round(part["level"] * launch * q, 5) for q in part["quantiles"]],
        "submit_share": 1.0,
        "components": part["components"],
    }


def predict(model, part, run):
    """Eager latency of another run's calls under a slow part: mean and quantiles."""
    base = part["level"] * fast_us(model, run["calls"])
    pairs = [(p, base * f) for p, f in table(part["quantiles"])]
    return mean(pairs), deviation(pairs), [v for _, v in pairs]
