#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One model through npuc and npusim, as a user would, on several machines.

    run_model.py BIN_DIR MODEL CASE_DIR DTYPE RTOL ATOL TARGET...

For each target: two compilations give the same bytes; disassembly assembles to the same bytes; the outputs agree with the
case's references; two runs, every SIMD level of the host and one or two threads give the same outputs, and two traces are
equal; every engine's cycles add up to the run's length. -O0 to -O3 agree with the references too.
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


def check(npuc, npusim, model, case, dtype, tolerance, target, work):
    compile_it = [npuc, model, "--target", target, "--dtype", dtype, "-q", "-o"]
    expect = ["--inputs", case, "--expects", case, "--rtol", tolerance[0], "--atol", tolerance[1]]
    for name in "ab":
        run(*compile_it, work / f"{name}.npu")
    same(work / "a.npu", work / "b.npu", "two compilations")
    (work / "a.nps").write_text(run(npuc, work / "a.npu", "--disassemble"))
    run(npuc, work / "a.nps", "-q", "-o", work / "c.npu")
    same(work / "a.npu", work / "c.npu", "disassembled and assembled")
    variants = [("one", {}), ("two", {}), ("threads", {})] + [(level, {"NPU_SIMD": level}) for level in simd_levels()]
    for name, environment in variants:
        more = ["--threads", "2"] if name == "threads" else []
        if name in ("one", "two"):
            more = [f"--trace={work / name}.json", "--report", work / f"{name}.report"]
        run(npusim, work / "a.npu", *expect, "--outputs", work / name, *more, **environment)
        for first, other in zip(outputs(work / "one"), outputs(work / name)):
            same(first, other, f"outputs of run '{name}'")
    same(work / "one.json", work / "two.json", "two traces")
    accounts(work / "one.report")
    for level in range(4):
        run(*compile_it, work / "o.npu", f"-O{level}")
        run(npusim, work / "o.npu", *expect, "-q")


def main():
    binaries, model, case, dtype, rtol, atol, *targets = sys.argv[1:]
    for target in targets:
        with tempfile.TemporaryDirectory() as folder:
            check(f"{binaries}/bin/npuc", f"{binaries}/bin/npusim", model, case, dtype, (rtol, atol), target, pathlib.Path(folder))
    print(f"{model} {dtype}: {', '.join(targets)} agree")


main()
