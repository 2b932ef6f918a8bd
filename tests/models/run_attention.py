#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The attention kernel as a program: values, and what it moves.

    run_attention.py BIN_DIR [NAME]

Each case is a graph of one attention node, compiled for several machines and types. Expected values are computed here in
double precision. The kernel writes its result and nothing else, and reads queries, keys, values and mask once where a head's
keys and values take no more than half the scratchpad.
"""
import json
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

INF = float("inf")
LOWEST = -3.4028234663852886e38
TARGETS = {"tiny": 64, "edge": 1024, "mid": 4096, "server": 16384}  # KiB of scratchpad
CODES = {"f32": "<f4", "f16": "<f2", "bool": "|b1", "i64": "<i8"}
PACK = {"f32": "f", "f16": "e", "bool": "?", "i64": "q"}

# name: batch, key heads, query heads per key head, m, s, d, dv, then options: mask (dtype, its dims), attributes.
CASES = {
    "odd": (2, 7, 1, 77, 77, 20, 20, {}),
    "causal": (1, 2, 1, 130, 130, 64, 64, {"window": (-1, 0, 0)}),
    "local": (1, 2, 1, 200, 200, 32, 32, {"window": (16, 16, 0)}),
    "local_narrow": (1, 3, 1, 90, 90, 16, 16, {"window": (2, 1, 0)}),
    "decode": (1, 2, 4, 1, 300, 32, 32, {"window": (-1, 0, 280)}),
    "decode_recent": (1, 2, 4, 1, 300, 32, 32, {"window": (31, 0, 299)}),
    "chunk": (1, 1, 2, 24, 150, 32, 40, {"window": (-1, 0, 126)}),
    "keys_hidden": (2, 2, 1, 33, 50, 16, 16, {"mask": ("bool", (2, 1, 1, 50)), "zero_rows": 1}),
    "all_hidden": (2, 2, 1, 20, 40, 16, 16, {"mask": ("i64", (2, 1, 1, 40)), "hidden": True, "zero_rows": 1}),
    "mean": (2, 2, 1, 60, 60, 16, 16, {"mask": ("i64", (2, 1, 1, 60)), "hidden": True, "window": (8, 8, 0), "fill": LOWEST}),
    "bias": (1, 4, 1, 40, 65, 16, 16, {"mask": ("f32", (1, 1, 40, 65))}),
    "bias_heads": (1, 3, 1, 30, 30, 16, 16, {"mask": ("f16", (1, 3, 30, 30)), "window": (-1, 4, 0)}),
    "capped": (1, 2, 1, 40, 64, 24, 24, {"softcap": 1.25, "mask": ("bool", (1, 1, 40, 64)), "fill": -INF, "zero_rows": 1}),
    "deep": (1, 1, 1, 30, 40, 256, 80, {}),
    "long": (1, 1, 1, 40, 900, 64, 64, {}),
}


def elements(dims):
    return math.prod(dims)


def write_npy(path, dtype, dims, values):
    head = f"{{'descr': '{CODES[dtype]}', 'fortran_order': False, 'shape': {tuple(dims)}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    body = struct.pack(f"<{len(values)}{PACK[dtype]}", *values)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + body)


def read_npy(path):
    data = path.read_bytes()
    length = struct.unpack("<H", data[8:10])[0]
    code = "e" if "<f2" in data[10:10 + length].decode() else "f"
    body = data[10 + length:]
    return struct.unpack(f"<{len(body) // struct.calcsize(code)}{code}", body)


def rounded(dtype, values):
    return list(struct.unpack(f"<{len(values)}{PACK[dtype]}", struct.pack(f"<{len(values)}{PACK[dtype]}", *values)))


def expected(case, data):
    """One query row at a time."""
    batch, kv, share, m, s, d, dv, options = case
    q, k, v = data["q"], data["k"], data["v"]
    left, right, offset = options.get("window", (-1, -1, 0))
    fill, cap, scale = options.get("fill", -INF), options.get("softcap", 0), 1 / math.sqrt(d)
    out = []
    for b in range(batch):
        for h in range(kv * share):
            head = (b * kv + h // share) * s
            keys = [k[(head + j) * d:(head + j + 1) * d] for j in range(s)]
            values = [v[(head + j) * dv:(head + j + 1) * dv] for j in range(s)]
            for i in range(m):
                row = q[((b * kv * share + h) * m + i) * d:][:d]
                scores = []
                for j in range(s):
                    x = scale * sum(a * c for a, c in zip(row, keys[j]))
                    x = cap * math.tanh(x / cap) if cap else x
                    hidden = (left >= 0 and j < i + offset - left) or (right >= 0 and j > i + offset + right)
                    if "mask" in options:
                        dtype, dims = options["mask"]
                        at = 0
                        for size, index in zip(dims, (b, h, i, j)):
                            at = at * size + (index if size > 1 else 0)
                        if dtype in ("bool", "i64"):
                            hidden = hidden or not data["mask"][at]
                        else:
                            x += data["mask"][at]
                    scores.append(fill if hidden else x)
                top = max(scores)
                if top == -INF:
                    out += [0.0 if options.get("zero_rows") else math.nan] * dv
                    continue
                powers = [math.exp(x - top) for x in scores]
                total = sum(powers)
                out += [sum(p * values[j][c] for j, p in enumerate(powers) if p) / total for c in range(dv)]
    return out


def graph_text(name, case, dtype):
    batch, kv, share, m, s, d, dv, options = case
    lines = [f'graph "{name}"', f"in %q : {dtype}[{batch},{kv * share},{m},{d}]", f"in %k : {dtype}[{batch},{kv},{s},{d}]",
             f"in %v : {dtype}[{batch},{kv},{s},{dv}]"]
    names = "%q, %k, %v"
    if "mask" in options:
        lines.append(f"in %mask : {options['mask'][0]}[{','.join(map(str, options['mask'][1]))}]")
        names += ", %mask"
    attributes = f"scale={1 / math.sqrt(d)!r}"
    for key in ("window", "fill", "zero_rows", "softcap"):
        value = options.get(key)
        if value is None or value == -INF:
            continue
        attributes += f" {key}=[{','.join(map(str, value))}]" if key == "window" else f" {key}={value!r}"
    return "\n".join(lines + [f"%y = attention {names} {attributes}", "out %y", ""])


def draw(name, case, dtype):
    batch, kv, share, m, s, d, dv, options = case
    rng = random.Random(name)
    data = {"q": batch * kv * share * m * d, "k": batch * kv * s * d, "v": batch * kv * s * dv}
    data = {key: rounded(dtype, [rng.uniform(-1.5, 1.5) for _ in range(n)]) for key, n in data.items()}
    if "mask" in options:
        kind, dims = options["mask"]
        n = elements(dims)
        if kind in ("bool", "i64"):
            # Of the first batch some keys are hidden, of the second one all or all but the first few.
            data["mask"] = [int(rng.random() < 0.7) for _ in range(n)]
            if options.get("hidden"):
                data["mask"] = data["mask"][:n // 2] + [int("fill" in options and i < 5) for i in range(n // 2)]
        else:
            data["mask"] = rounded(kind, [rng.uniform(-2, 2) for _ in range(n)])
    return data


def compare(got, want, dtype):
    allowed = 2e-5 if dtype == "f32" else 4e-3
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        if not (math.isnan(a) and math.isnan(b)) and not abs(a - b) <= allowed * (1 + abs(b)):
            return f"element {i} is {a}, expected {b}"
    return None


def run(binaries, folder, name, case, dtype, target, data, want):
    program, report = folder / "p.npu", folder / "r.json"
    (folder / "g.npt").write_text(graph_text(name, case, dtype))
    shapes = {"q": (case[0], case[1] * case[2], case[3], case[5]), "k": (case[0], case[1], case[4], case[5]),
              "v": (case[0], case[1], case[4], case[6])}
    command = [binaries / "npusim", "-q", program, f"--report={report}", f"--output=y={folder / 'y.npy'}"]
    for key, values in data.items():
        kind, dims = case[7]["mask"] if key == "mask" else (dtype, shapes[key])
        write_npy(folder / f"{key}.npy", kind, dims, values)
        command.append(f"--input={key}={folder / key}.npy")
    subprocess.run([binaries / "npuc", "-q", folder / "g.npt", "--target", target, "-o", program], check=True, timeout=100)
    subprocess.run(command, check=True, timeout=100)
    fault = compare(read_npy(folder / "y.npy"), want, dtype)
    layers = [layer for layer in json.loads(report.read_text())["layers"] if layer["kernel"] == "attn_fused"]
    moved = layers[0]["bytes"]
    size = 2 if dtype == "f16" else 4
    most = size * sum(len(data[key]) for key in "qkv")
    if "mask" in data:
        most += len(data["mask"]) * struct.calcsize("<" + PACK[case[7]["mask"][0]])
    if not fault and len(layers) != 1:
        fault = f"{len(layers)} attention kernels"
    if not fault and moved["dram_write"] != size * len(want):
        fault = f"{moved['dram_write']} bytes written, the result has {size * len(want)}"
    fits = size * case[4] * (case[5] + case[6]) <= TARGETS[target] * 512
    if not fault and fits and moved["dram_read"] > most:
        fault = f"{moved['dram_read']} bytes read, the operands have {most}"
    return fault


def main():
    binaries = pathlib.Path(sys.argv[1]) / "bin"
    names = sys.argv[2:] or list(CASES)
    faults = count = 0
    for name in names:
        for dtype in ("f32", "f16"):
            data = draw(name, CASES[name], dtype)
            want = expected(CASES[name], data)
            for target in TARGETS:
                with tempfile.TemporaryDirectory() as folder:
                    fault = run(binaries, pathlib.Path(folder), name, CASES[name], dtype, target, data, want)
                count += 1
                if fault:
                    faults += 1
                    print(f"{name} {dtype} {target}: {fault}", flush=True)
    print(f"{count} programs, {faults} faults")
    return 1 if faults else 0


sys.exit(main())
