#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ways in which reading and writing fails, and the exit statuses that npuc and npusim must end with.

    run_endings.py NPUC NPUSIM MODEL_FOLDER WORK_FOLDER

Each row: status, shell command, and the files that are there afterwards, and nothing else whatever the status; a failure has
a message. small limits files to a few KiB, as if the device were full.
"""
import os
import pathlib
import shutil
import subprocess
import sys

COMPILE = [
    (0, "$npuc $model -o o.npu", "o.npu"),
    (0, "cat $model | $npuc /dev/stdin -o o.npu", "o.npu"),
    (0, "$npuc $model -o /dev/null", ""),
    (0, "$npuc $model --target ./empty -o o.npu", "o.npu"),
    (0, "$npuc $model -o o.npu >&- 2>&- <&-", "o.npu"),
    (2, "$npuc", ""),
    (2, "$npuc $model --bogus", ""),
    (3, "$npuc empty -o o.npu", ""),
    (3, "$npuc /dev/stdin -o o.npu <&-", ""),
    (3, "head -c 100000 $model | $npuc /dev/stdin -o o.npu", ""),
    (3, "head -c 5000 $program | $npuc /dev/stdin --info", ""),
    (4, "$npuc $model --set dram.bytes=64KiB -o o.npu", ""),
    (6, "$npuc missing.onnx -o o.npu", ""),
    (6, "$npuc folder -o o.npu", ""),
    (6, "$npuc $model --target missing.yaml -o o.npu", ""),
    (6, "$npuc $model --target ./folder -o o.npu", ""),
    (6, "$npuc $model --const ids=missing.npy -o o.npu", ""),
    (6, "$npuc $model -o missing/o.npu", ""),
    (6, "$npuc $model -o folder", ""),
    (6, "$npuc $model -o /dev/full", ""),
    (6, "small $npuc $model -o o.npu", ""),
    (6, "$npuc $model -o o.npu --report missing/r.json", ""),
    (6, "$npuc $model -o o.npu --report /dev/full", ""),
    (6, "$npuc $model -o o.npu --emit asm=missing/a.nps", ""),
    (6, "$npuc $model -o o.npu --emit asm=/dev/full", ""),
    (6, "small $npuc $model -o o.npu --emit asm=a.nps", ""),
    (6, "small $npuc $model -o o.npu --emit graph=g.npt", ""),
    (6, "$npuc $model --info > /dev/full", ""),
    (6, "$npuc $model --emit asm -o o.npu >&-", "o.npu"),
    (6, "$npuc $program --disassemble > /dev/full", ""),
    (6, "$npuc $program --disassemble >&-", ""),
    (6, "$npuc $model --dump-after all --stop-after fold > /dev/full", ""),
    (6, "$npuc --list ops > /dev/full", ""),
    (6, "$npuc --help > /dev/full", ""),
    (6, "$npuc --version >&-", ""),
]
RUN = [
    (0, "$npusim $program", ""),
    (0, "cat $program | $npusim /dev/stdin", ""),
    (0, "cat $inputs/in_ids.npy | $npusim $program --input ids=/dev/stdin --expects $inputs", ""),
    (0, "$npusim $program --outputs o --report r.json >&- 2>&- <&-", "o/logits.npy r.json"),
    (0, "$npusim $program 2> /dev/full", ""),
    (0, "$npusim $program --runs 5 --noise all --threads 3 --report r.json >&- 2>&- <&-", "r.json"),
    (6, "$loud $program --runs 5 --noise all --threads 3 > /dev/full", ""),
    (6, "$npusim $program --versus missing.npu", ""),
    (6, "ulimit -n 8; $npusim $program --runs 64 --noise all --threads 64", ""),
    (1, "$npusim $program --input ids=$inputs/in_ids.npy --expects $inputs/../case_1", ""),
    (2, "$npusim $program --inputs folder", ""),
    (3, "$npusim /dev/null", ""),
    (3, "head -c 20000 $program | $npusim /dev/stdin", ""),
    (3, "head -c 150 $inputs/in_ids.npy | $npusim $program --input ids=/dev/stdin", ""),
    (6, "$npusim missing.npu", ""),
    (6, "$npusim folder", ""),
    (6, "$npusim $program --input ids=missing.npy", ""),
    (6, "$npusim $program --input ids=folder", ""),
    (6, "$npusim $program --inputs missing", ""),
    (6, "$npusim $program --inputs empty", ""),
    (6, "$npusim $program --expects missing", ""),
    (6, "$npusim $program --expect logits=missing.npy", ""),
    (6, "$npusim $program --output logits=missing/l.npy", ""),
    (6, "$npusim $program --output logits=folder", ""),
    (6, "$npusim $program --output logits=/dev/full", ""),
    (6, "$npusim $program --outputs missing/o", ""),
    (6, "$npusim $program --outputs empty", ""),
    (6, "$npusim $program --trace=missing/t.json", ""),
    (6, "$npusim $program --trace=full.json", ""),
    (6, "$npusim $program --trace=full.json.gz", ""),
    (6, "$npusim $program --trace=full.csv", ""),
    (6, "small $npusim $program --trace=t.json", ""),
    (6, "small $npusim $program --trace=t.csv", ""),
    (6, "$npusim $program --report missing/r.json", ""),
    (6, "$npusim $program --report full.json", ""),
    (6, "$npusim $program --trace > /dev/full", ""),
    (6, "$npusim $program --trace >&-", ""),
    (6, "$loud $program > /dev/full", ""),
    (6, "$loud $program --inputs $inputs --expects $inputs > /dev/full", ""),
    (6, "$npusim --help > /dev/full", ""),
]
GIVEN = {"empty", "model.onnx", "full.json", "full.json.gz", "full.csv"}
SMALL = "small() { (ulimit -f 8; \"$@\"); }; "


def prepare(work, model):
    shutil.rmtree(work, ignore_errors=True)
    (work / "folder").mkdir(parents=True)
    (work / "empty").touch()
    for name in ("full.json", "full.json.gz", "full.csv"):
        (work / name).symlink_to("/dev/full")
    (work / "model.onnx").symlink_to(model)


def run(row, work, environment):
    """What is wrong, '' when nothing is."""
    status, command, expected = row
    done = subprocess.run(["bash", "-c", SMALL + command], cwd=work, env=environment, capture_output=True, text=True, timeout=60)
    found = {str(p.relative_to(work)) for p in work.rglob("*") if not p.is_dir()} - GIVEN
    wrong = []
    if done.returncode != status:
        wrong.append(f"exit status {done.returncode}, expected {status}")
    if status and "--bogus" not in command and "error: " not in done.stderr:
        wrong.append("no message")
    if found != set(expected.split()):
        wrong.append(f"files {sorted(found)}, expected {expected.split()}")
    return f"{'; '.join(wrong)}\n{done.stderr[-500:]}" if wrong else ""


def main():
    npuc, npusim, folder, work = sys.argv[1:]
    folder, work = pathlib.Path(folder).resolve(), pathlib.Path(work).resolve()
    program = work.parent / "endings.npu"
    work.mkdir(parents=True, exist_ok=True)
    subprocess.run([npuc, folder / "model.onnx", "--target", "tiny", "-q", "-o", program], check=True)
    environment = dict(os.environ, npuc=f"{npuc} -q --target tiny", npusim=f"{npusim} -q", loud=npusim,
                       model="model.onnx", program=str(program), inputs=str(folder / "case_0"))
    faults = 0
    for row in COMPILE + RUN:
        prepare(work, folder / "model.onnx")
        wrong = run(row, work, environment)
        if wrong:
            faults += 1
            print(f"{row[1]}: {wrong}")
    print(f"{len(COMPILE + RUN)} endings, {faults} not as they should be")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
