# SPDX-License-Identifier: Apache-2.0
"""Rows of the two tables: a model in a type on a machine, whole or with a step of the compiler left out."""
import glob
import hashlib
import json
import os
import shutil

from check_models import gates
from check_models.models import MODELS, Skipped
from check_models.programs import Failed, Programs

FOLDER = os.path.join("build", "check-models")
MIB = 1 << 20


class Job:
    """A compiled model with its cases; gates look into it."""

    def __init__(self, args, model, dtype, target, name):
        self.model, self.dtype, self.target, self.name = model, dtype, target, name
        self.place = model.place()
        meta = model.meta()
        self.reference, self.allowed = meta.get("reference", "ort_fp32"), meta["tolerance"][dtype]
        self.cases = sorted(glob.glob(os.path.join(self.place, "case_*")))
        folder = os.path.join(FOLDER, name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        self.programs = Programs(args.build, folder)
        self.program = self.decode = None
        self.worst, self.reports = 0.0, []

    def compile(self, options=()):
        options = [*options, *(f"--shape={shape}" for shape in self.model.shapes)]
        self.program, run, report = self.programs.compile(self.model.file(), "program", self.dtype, self.target, options)
        return run, report


def digest(*paths):
    """Of the files' bytes; of large ones their size and time."""
    total = hashlib.sha256()
    for path in paths:
        info = os.stat(path)
        total.update(f"{os.path.basename(path)} {info.st_size} ".encode())
        if info.st_size > 16 * MIB:
            total.update(str(info.st_mtime_ns).encode())
        else:
            with open(path, "rb") as f:
                total.update(f.read())
    return total.hexdigest()


def fingerprint(args, model, what):
    """Of all that a row depends on."""
    binaries = [os.path.join(args.build, "bin", name) for name in ("npuc", "npusim")]
    ours = [os.path.join("scripts", "check_models", name) for name in ("gates.py", "rows.py", "programs.py")]
    files = [MODELS[n].file() for n in ("llama-tiny-prefill", "llama-tiny-decode")] if model.gate == "tokens" else [model.file()]
    return hashlib.sha256(f"{digest(*binaries, *ours, *files)} {model} {what}".encode()).hexdigest()


def figures(reports):
    """Of one run, or the sums over several."""
    total = {"cycles": 0, "time us": 0.0, "DRAM KiB": 0.0, "ideal": 0.0, "mapped": 0.0}
    for report in reports:
        total["cycles"] += report["cycles"]
        total["time us"] += report["time_us"]
        total["DRAM KiB"] += (report["dram"]["read_bytes"] + report["dram"]["write_bytes"]) / 1024
        total["ideal"] += report["bounds"]["ideal_cycles"]
        total["mapped"] += report["bounds"]["mapped_cycles"]
    total["/ideal"], total["/mapped"] = total["cycles"] / total["ideal"], total["cycles"] / total["mapped"]
    return total


def compiled(run, report, source_bytes):
    spm = report["memory"]["spm"]
    return {"SPM peak KiB": spm["peak_bytes"] / 1024, "bound KiB": spm["bound_bytes"] / 1024, "compile s": run.seconds,
            "MMACs": sum(layer["macs"] for layer in report["layers"]) / 1e6, "compile MiB": run.peak_bytes / MIB,
            "kernels": len(report["layers"]), "model MiB": source_bytes / MIB}


def measure(args, model, dtype, target):
    """A row of the first table."""
    job = Job(args, model, dtype, target, f"{model.name}-{dtype}-{target}")
    allowed = job.allowed
    row = {"allowed": f"{allowed['atol']:g}" + (f" + {allowed['rtol']:g} x" if allowed["rtol"] else ""), "faults": []}
    if model.gate == "tokens":
        return generated(job, row)
    run, report = job.compile()
    row.update(compiled(run, report, os.path.getsize(model.file())))
    if not job.cases:
        raise Failed(f"no cases in {job.place}")
    runs = []
    for case in job.cases:
        run, report, worst, faults = job.programs.compare(job.program, case, job.reference, allowed)
        job.worst = max(job.worst, worst)
        row["faults"] += faults
        runs.append((run, report))
    cycles = {report["cycles"] for _, report in runs}
    run, report = runs[0]
    if len(cycles) > 1 and not model.gathers:
        row["faults"].append(f"cycles depend on the values: {sorted(cycles)}")
    row["faults"] += gates.GATES[model.gate](job)
    row.update(figures([report]))
    row.update({"run s": run.seconds, "run MiB": run.peak_bytes / MIB, "worst error": job.worst})
    if row["cycles"] < row["ideal"]:
        row["faults"].append(f"{row['cycles']} cycles are fewer than the ideal {row['ideal']:.0f}")
    return row


def generated(job, row):
    """The language model's loop: figures are sums over the prompt and the tokens."""
    files = [MODELS[name].file() for name in ("llama-tiny-decode", "llama-tiny-prefill")]
    job.decode, run, report = job.programs.compile(files[0], "decode", job.dtype, job.target)
    job.program, run, report = job.programs.compile(files[1], "prefill", job.dtype, job.target)
    row.update(compiled(run, report, os.path.getsize(files[1])))
    row["faults"] += gates.tokens(job)
    row.update(figures(job.reports))
    row.update({"worst error": job.worst, "run s": sum(r["host"]["wall_s"] for r in job.reports),
                "run MiB": max(r["host"]["peak_rss_bytes"] for r in job.reports) / MIB, "MMACs": None})
    return row


def without(args, model, dtype, target, options):
    """A row of the second table: compiled with options, the first case's values checked."""
    job = Job(args, model, dtype, target, "-".join([model.name, dtype, target, *options]).replace("--", ""))
    run, report = job.compile(options)
    row = compiled(run, report, os.path.getsize(model.file()))
    _, report, job.worst, row["faults"] = job.programs.compare(job.program, job.cases[0], job.reference, job.allowed)
    row.update(figures([report]))
    row["worst error"] = job.worst
    return row


def kept(args, model, dtype, target, options):
    """The row as it was measured before with the same programs and model, or None."""
    try:
        with open(path_of(model, dtype, target, options)) as f:
            row = json.load(f)
    except (OSError, ValueError):
        return None
    try:
        same = row.get("fingerprint") == fingerprint(args, model, (dtype, target, options))
    except (Skipped, OSError):
        return None
    return row if same else None


def path_of(model, dtype, target, options):
    return os.path.join(FOLDER, "-".join([model.name, dtype, target, *(o.strip("-") for o in options)]) + ".json")


def obtain(args, model, dtype, target, options=None):
    """A row, measured or kept. Options, of the second table: what the compiler gets besides; without any both tables have
    the same row. "faults" is not empty when something is wrong; "skipped" says why there is none."""
    row = None if args.fresh else kept(args, model, dtype, target, options or ())
    if row:
        return dict(row, kept=True)
    try:
        row = without(args, model, dtype, target, options) if options else measure(args, model, dtype, target)
    except Skipped as e:
        return {"model": model.name, "dtype": dtype, "target": target, "skipped": str(e), "faults": []}
    except (Failed, OSError, KeyError, ValueError) as e:
        row = {"faults": [f"{type(e).__name__}: {e}"]}
    row.update({"model": model.name, "dtype": dtype, "target": target})
    if not row["faults"]:
        row["fingerprint"] = fingerprint(args, model, (dtype, target, options or ()))
        with open(path_of(model, dtype, target, options or ()), "w") as f:
            json.dump(row, f, indent=1)
    if not args.keep:
        for folder in glob.glob(path_of(model, dtype, target, options or ())[:-len(".json")] + "/"):
            shutil.rmtree(folder, ignore_errors=True)
    return row
