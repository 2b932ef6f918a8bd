#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One model through npuc and npusim, as a user would, on several machines.

    run_model.py BUILD_DIR MODEL_DIR[/FILE.onnx] DTYPE [--values] TARGET...

MODEL_DIR holds model.onnx or FILE.onnx, case_*, and meta.json with the tolerance. For each target the outputs of every case agree with
the references, and of the first case: two compilations give the same bytes; disassembly assembles to the same bytes; two
runs, every SIMD level of the host and one or two threads give the same outputs, and two traces are equal; every engine's
cycles add up to the run's length; -O0 to -O3 agree with the references too. --values: the outputs of every case, and of the
first one without optimisation, but for the types that meta.json lists as fused_only.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile


def run(*command, **environment):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=250,
                          env=dict(os.environ, **environment), stdin=subprocess.DEVNULL)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def simd_levels():
    flags = pathlib.Path("/proc/cpuinfo").read_text().split()
    levels = ["sse2"]
    if "avx2" in flags and "fma" in flags:
        levels.append("avx2")
    if "avx512f" in flags and "avx512bw" in flags and "avx512vl" in flags:
        levels.append("avx512")
    return levels


def same(a, b, what):
    if pathlib.Path(a).read_bytes() != pathlib.Path(b).read_bytes():
        raise SystemExit(f"{what}: {a} and {b} differ")


def outputs(folder):
    return sorted(pathlib.Path(folder).glob("*.npy"))


def accounts(report):
    data = json.loads(pathlib.Path(report).read_text())
    for engine in data["engines"]:
        total = engine["busy_cycles"] + sum(engine["stalls"].values())
        if total != data["cycles"]:
            raise SystemExit(f"{engine['name']}: busy and stalls are {total} cycles, the run is {data['cycles']}")


class Model:
    """A model folder in one type: what is compiled, and what its outputs are held against."""

    def __init__(self, binaries, folder, dtype, target):
        self.npuc, self.npusim = f"{binaries}/bin/npuc", f"{binaries}/bin/npusim"
        path = pathlib.Path(folder)
        self.file = path if path.suffix == ".onnx" else path / "model.onnx"
        self.folder = self.file.parent
        self.compile_it = [self.npuc, self.file, "--target", target, "--dtype", dtype, "-q", "-o"]
        meta = json.loads((self.folder / "meta.json").read_text())
        allowed = meta["tolerance"][dtype]
        self.unfused = dtype not in meta.get("fused_only", [])
        self.tolerance = ["--tag", meta["reference"], "--rtol", allowed["rtol"], "--atol", allowed["atol"],
                          "--min-cosine", allowed["min_cosine"]]
        self.cases = sorted(self.folder.glob("case_*"))
        if not self.cases:
            raise SystemExit(f"{folder} has no cases")

    def expect(self, case):
        return ["--inputs", case, "--expects", case, *self.tolerance]

    def values(self, program, levels, work):
        """Every case by a program; the first one at optimisation levels."""
        for case in self.cases:
            run(self.npusim, program, *self.expect(case), "-q")
        for level in levels if self.unfused else []:
            run(*self.compile_it, work / "o.npu", f"-O{level}")
            run(self.npusim, work / "o.npu", *self.expect(self.cases[0]), "-q")


def check(model, work):
    for name in "ab":
        run(*model.compile_it, work / f"{name}.npu")
    same(work / "a.npu", work / "b.npu", "two compilations")
    (work / "a.nps").write_text(run(model.npuc, work / "a.npu", "--disassemble"))
    run(model.npuc, work / "a.nps", "-q", "-o", work / "c.npu")
    same(work / "a.npu", work / "c.npu", "disassembled and assembled")
    variants = [("one", {}), ("two", {}), ("threads", {})] + [(level, {"NPU_SIMD": level}) for level in simd_levels()]
    for name, environment in variants:
        more = ["--threads", "2"] if name == "threads" else []
        if name in ("one", "two"):
            more = [f"--trace={work / name}.json", "--report", work / f"{name}.report"]
        run(model.npusim, work / "a.npu", *model.expect(model.cases[0]), "--outputs", work / name, *more, **environment)
        for first, other in zip(outputs(work / "one"), outputs(work / name)):
            same(first, other, f"outputs of run '{name}'")
    same(work / "one.json", work / "two.json", "two traces")
    accounts(work / "one.report")
    model.values(work / "a.npu", range(4), work)


def check_values(model, work):
    run(*model.compile_it, work / "a.npu")
    model.values(work / "a.npu", [0], work)


def main():
    binaries, folder, dtype, *targets = sys.argv[1:]
    values_only = targets[0] == "--values"
    for target in targets[values_only:]:
        with tempfile.TemporaryDirectory() as work:
            model = Model(binaries, folder, dtype, target)
            (check_values if values_only else check)(model, pathlib.Path(work))
    print(f"{folder} {dtype}: {', '.join(targets[values_only:])} agree")


if __name__ == "__main__":
    main()
