#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One model as an eager program.

    run_eager.py BUILD_DIR MODEL_DIR DTYPE TARGET...

MODEL_DIR is as for run_model.py. For each target:
the outputs of every case agree with the references, at -O0, -O1 and -O2, but for types that meta.json lists as fused_only; two compilations give the same bytes, disassembly
assembles to the same bytes; launches and views are the model's calls; every engine's cycles add up to the run's length,
which is the compiled kind's plus class host; without a host class host is empty; three runs without noise are equal; two runs
with noise under one seed are equal to themselves; --check-layers finds nothing.
"""
import json
import pathlib
import sys
import tempfile

import run_model
from run_model import run, same


def report(model, program, work, *words):
    path = work / "run.json"
    run(model.npusim, program, "--no-data", "-q", "--report", path, *words)
    run_model.accounts(path)
    return json.loads(path.read_text())


def host_cycles(data):
    stalls = {engine["stalls"]["host"] for engine in data["engines"]}
    if len(stalls) != 1:
        raise SystemExit(f"engines wait for the host differently: {stalls}")
    return stalls.pop()


def expect(condition, what):
    if not condition:
        raise SystemExit(what)


def check(model, work):
    eager, again = work / "eager.npu", work / "again.npu"
    listed = work / "compile.json"
    run(*model.compile_it, eager, "--eager", "--report", listed)
    run(*model.compile_it, again, "--eager")
    same(eager, again, "two compilations")
    text = work / "eager.nps"
    run(model.npuc, eager, "--disassemble", "-o", text)
    run(model.npuc, text, "-q", "-o", again)
    same(eager, again, "assembly of the disassembly")
    launches = json.loads(listed.read_text())["eager"]
    expect(launches["launches"] == len(launches["list"]), "launches are not as many as listed")
    for case in model.cases if model.unfused else []:
        run(model.npusim, eager, *model.expect(case), "-q")
    for level in "01" if model.unfused else "":
        run(*model.compile_it, again, "--eager", f"-O{level}")
        run(model.npusim, again, *model.expect(model.cases[0]), "-q")
    data, alone = report(model, eager, work), report(model, eager, work, "--host", "none")
    expect(data["eager"]["launches"] == launches["launches"] and data["eager"]["views"] == launches["views"],
           f"launches and views: {launches['launches']}, {launches['views']} compiled, {data['eager']} run")
    expect(data["eager"]["bubble_cycles"] == host_cycles(data) > 0, "cycles of class host")
    expect(host_cycles(alone) == 0 and alone["eager"]["host_model"] is None, "--host none")
    expect(alone["cycles"] <= data["cycles"], "a host makes it faster")
    quiet = report(model, eager, work, "--runs", "3")
    expect(quiet["cycles"] == data["cycles"] and quiet["runs"]["std_us"] == 0, "runs without noise differ")
    noisy = [report(model, eager, work, "--runs", "4", "--noise", "all", "--seed", "3", "--threads", threads)["runs"]
             for threads in "12"]
    expect(noisy[0] == noisy[1] and noisy[0]["std_us"] > 0, "runs with noise")
    expect(abs(noisy[0]["mean_us"] / quiet["runs"]["mean_us"] - 1) < 1, "noise moves the mean too far")
    case = model.cases[0]
    run(model.npusim, eager, f"--check-layers={model.folder / 'model.onnx'}", "--inputs", case, "-q")


def main(binaries, folder, dtype, *targets):
    for target in targets:
        with tempfile.TemporaryDirectory() as work:
            check(run_model.Model(binaries, folder, dtype, target), pathlib.Path(work))
            print(f"{pathlib.Path(folder).name} {dtype} on {target}: call by call as the references")


if __name__ == "__main__":
    main(*sys.argv[1:])
