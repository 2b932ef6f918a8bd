# SPDX-License-Identifier: Apache-2.0
"""What has to hold beyond the tolerance of each element: functions GATES[name](job) -> list of faults.

A job has programs, model, dtype, target, program (the compiled file), place (folder of the cases), cases (paths) and
options of the compiler.
"""
import ast
import glob
import math
import os
import shutil
import struct

import check_models.models as models

THRESHOLD = .3              # what users of the text detector's map cut it at
MARGIN = .3                 # in f16 tokens may differ where the two best logits are closer than this
COSINES = {"f32": 2e-3, "f16": 1e-2}
STEP, WINDOW = 512, 576     # samples of the voice detector


def load_npy(path):
    """Dimensions and values of a .npy file of f16, f32 or i64 in C order."""
    with open(path, "rb") as f:
        raw = f.read()
    start = 10 + struct.unpack_from("<H", raw, 8)[0]
    header = ast.literal_eval(raw[10:start].decode())
    kind, size = {"<f4": ("f", 4), "<f2": ("e", 2), "<i8": ("q", 8)}[header["descr"]]
    return header["shape"], struct.unpack_from(f"<{(len(raw) - start) // size}{kind}", raw, start)


def save_npy(path, descr, kind, shape, values):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}{kind}", *values))


def largest(values):
    return max(range(len(values)), key=values.__getitem__)


def results(job, case):
    """Pairs (got, want) of values for the outputs of a case."""
    folder = job.programs.path("out")
    shutil.rmtree(folder, ignore_errors=True)
    job.programs.simulate(job.program, ["-q", "--inputs", case, "--outputs", folder])
    for path in sorted(glob.glob(os.path.join(case, f"out_*.{job.reference}.npy"))):
        name = os.path.basename(path)[len("out_"):-len(f".{job.reference}.npy")]
        yield load_npy(os.path.join(folder, name + ".npy"))[1], load_npy(path)[1]


def classes(job):
    """The likeliest class is the reference's."""
    faults = []
    for case in job.cases:
        name = "logits" if os.path.exists(os.path.join(case, f"out_logits.{job.reference}.npy")) else ""
        pairs = [first_output(job, case, name)] if name else list(results(job, case))[:1]
        for got, want in pairs:
            if largest(got) != largest(want):
                faults.append(f"{os.path.basename(case)}: class {largest(got)}, expected {largest(want)}")
    return faults


def first_output(job, case, name):
    path = job.programs.path(name + ".npy")
    job.programs.simulate(job.program, ["-q", "--inputs", case, "--output", f"{name}={path}"])
    return load_npy(path)[1], load_npy(os.path.join(case, f"out_{name}.{job.reference}.npy"))[1]


def probability_map(job):
    """99.8 % of a map's elements are on the same side of the threshold."""
    faults = []
    for case in job.cases:
        for got, want in results(job, case):
            if sum((a > THRESHOLD) == (b > THRESHOLD) for a, b in zip(got, want)) < .998 * len(want):
                faults.append(f"{os.path.basename(case)}: more than 0.2 % of the map on the other side of {THRESHOLD}")
    return faults


def sentences(job):
    """All cosines between sentences are close to the reference's, and each has the same neighbours in the same order."""
    pairs = [next(iter(results(job, case))) for case in job.cases]

    def cosines(vectors):
        norms = [math.sqrt(sum(x * x for x in v)) for v in vectors]
        return [[sum(x * y for x, y in zip(a, b)) / (m * n) for b, n in zip(vectors, norms)] for a, m in zip(vectors, norms)]

    got, want = (cosines([pair[side] for pair in pairs]) for side in (0, 1))
    faults = []
    worst = max(abs(a - b) for x, y in zip(got, want) for a, b in zip(x, y))
    if worst > COSINES[job.dtype]:
        faults.append(f"cosines between sentences differ by {worst:.2g}, allowed {COSINES[job.dtype]:g}")
    for k, (a, b) in enumerate(zip(got, want)):
        if sorted(range(len(a)), key=a.__getitem__) != sorted(range(len(b)), key=b.__getitem__):
            faults.append(f"the neighbours of sentence {k} stand in another order")
    return faults


def stream(job):
    """Speech, step after step with the state fed back: the probability of every step."""
    _, wave = load_npy(os.path.join(job.place, "stream_wave.npy"))
    _, want = load_npy(os.path.join(job.place, f"stream_probs.{job.reference}.npy"))
    window, state, out = (job.programs.path(f"stream_{name}.npy") for name in ("input", "state", "output"))
    save_npy(state, "<f4", "f", (2, 1, 128), [0.0] * 256)
    allowed, faults = job.allowed, []
    for k, expected in enumerate(want):
        save_npy(window, "<f4", "f", (1, WINDOW), wave[STEP * k:STEP * k + WINDOW])
        job.programs.simulate(job.program, ["-q", "--input", f"0={window}", "--input", f"1={state}", "--output", f"0={out}",
                                            "--output", f"1={state}"])
        got = load_npy(out)[1][0]
        if not abs(got - expected) <= allowed["atol"] + allowed["rtol"] * abs(expected):
            faults.append(f"step {k} of the stream: {got:.5f}, expected {expected:.5f}")
    return faults[:3]


def tokens(job):
    """A prompt, then the likeliest tokens one after another, caches fed back by name. Adds the steps' figures to the job."""
    place, work = job.place, job.programs.path("caches")
    want, (_, logits) = load_npy(os.path.join(place, "out_tokens.npy"))[1], load_npy(os.path.join(place, "out_logits.npy"))
    width = len(logits) // (len(want) + 1)
    os.makedirs(work, exist_ok=True)
    shutil.copyfile(os.path.join(place, "in_prompt.npy"), os.path.join(work, "input_ids.npy"))
    position, faults = load_npy(os.path.join(place, "in_prompt.npy"))[0][1], []
    for k in range(len(want) + 1):
        program = job.decode if k else job.program
        _, report = job.programs.simulate(program, ["-q", "--inputs", work, "--outputs", work])
        job.reports.append(report)
        got = load_npy(os.path.join(work, "logits.npy"))[1]
        row = logits[k * width:(k + 1) * width]
        worst = max(abs(a - b) for a, b in zip(got, row))
        job.worst = max(job.worst, worst)
        if worst > job.allowed["atol"]:
            faults.append(f"logits behind token {k} differ by {worst:.2g}")
        best, second = sorted(row, reverse=True)[:2]
        if k < len(want) and largest(got) != want[k]:
            if job.dtype == "f32" or best - second > MARGIN:
                faults.append(f"token {k} is {largest(got)}, expected {want[k]}, which leads by {best - second:.3f}")
            break
        if k < len(want):
            save_npy(os.path.join(work, "input_ids.npy"), "<i8", "q", (1, 1), [want[k]])
            save_npy(os.path.join(work, "position.npy"), "<i8", "q", (1,), [position + k])
            for path in glob.glob(os.path.join(work, "*_[kv]_*.npy")):
                name = os.path.basename(path)
                os.replace(path, os.path.join(work, "past_" + name.split("_", 1)[1]))
    return faults[:3]


GATES = {"": lambda job: [], "classes": classes, "map": probability_map, "sentences": sentences, "stream": stream, "tokens": tokens}
assert all(model.gate in GATES for model in models.LIST)
