# SPDX-License-Identifier: Apache-2.0
"""The model file: reading, statistics of samples, writing with one list a line."""
import json
import os

FORMAT, VERSION, QUANTILES, LAGS = "npu-host-model", 1, 201, 5


def load(path):
    with open(path, encoding="utf-8") as f:
        model = json.load(f)
    if model.get("format") != FORMAT or model.get("version") != VERSION:
        raise ValueError(f"{path}: expected format {FORMAT}, version {VERSION}")
    return model


def at(ordered, p):
    """Quantile of sorted samples, straight between neighbours."""
    x = p * (len(ordered) - 1)
    i = min(int(x), len(ordered) - 2)
    return ordered[i] + (x - i) * (ordered[i + 1] - ordered[i])


def summary(samples, correlation):
    """mean_us, std_us, p999_us, quantiles_us; with `correlation` the correlation at lags 1..5 too."""
    n, ordered = len(samples), sorted(samples)
    mean = sum(samples) / n
    square = sum((s - mean) ** 2 for s in samples)
    out = {"mean_us": round(mean, 3), "std_us": round((square / n) ** 0.5, 3)}
    if n >= 2000:  # below, the 0.999 quantile is the largest sample or next to it
        out["p999_us"] = round(at(ordered, 0.999), 3)
    if correlation:
        out["autocorrelation"] = [
            round(sum((samples[i] - mean) * (samples[i + k] - mean) for i in range(n - k)) / square, 5) if square else 0.0
            for k in range(1, LAGS + 1)]
    out["quantiles_us"] = [round(at(ordered, i / (QUANTILES - 1)), 3) for i in range(QUANTILES)]
    return out


def _text(value, indent):
    pad = "  " * (indent + 1)
    if isinstance(value, dict) and any(isinstance(v, (dict, list)) for v in value.values()):
        rows = [f"{pad}{json.dumps(k)}: {_text(v, indent + 1)}" for k, v in value.items()]
        return "{\n" + ",\n".join(rows) + "\n" + pad[2:] + "}"
    if isinstance(value, list) and value and isinstance(value[0], dict) and len(value[0]) > 2:
        return "[\n" + ",\n".join(pad + _text(v, indent + 1) for v in value) + "\n" + pad[2:] + "]"
    return json.dumps(value)


def store(path, model):
    """Writes the whole file or nothing."""
    with open(path + ".new", "w", encoding="ascii") as f:
        f.write(_text(model, 0) + "\n")
    os.replace(path + ".new", path)
