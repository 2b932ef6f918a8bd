#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ways in which reading and writing fails, and the exit statuses that npuc and npusim must end with.

    run_endings.py NPUC NPUSIM MODEL_FOLDER WORK_FOLDER

Each row: status, shell command, and the files that are there afterwards, and nothing else whatever the status; a failure has
a message, and what was there before is what it was. small limits files to a few KiB, as if the device were full.
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
    (0, "$plain $model --target ./empty -o o.npu", "o.npu"),
    (0, "$npuc $model -o o.npu >&- 2>&- <&-", "o.npu"),
    (2, "$npuc", ""),
    (2, "$npuc $model --bogus", ""),
    (2, "$npuc $model -o $model", ""),
    (2, "cd folder; $npuc ../$model -o ../empty --report ../empty", ""),
    (2, "$npuc $model -o o.npu --report ./o.npu", ""),
    (2, "$npuc $model --report model.npu", ""),
    (2, "$npuc $model -o o.npu --emit asm=a --emit graph=folder/../a", ""),
    (2, "$npuc $model -o g.npt.bin --emit graph=g.npt", ""),
    (2, "$npuc $model -o a.nps.weights --emit asm=a.nps", ""),
    (2, "$npuc $model -o o.npu --const ids=empty --report empty", ""),
    (2, "$plain $model --target ./empty -o empty", ""),
    (2, "$npuc $program --disassemble -o $program", ""),
    (2, "$npuc $text -o $text.weights", ""),
    (2, "cp $program copy; $npuc copy --info -o copy", "copy"),
    (2, "cp $model x.npu; $npuc x.npu", "x.npu"),
    (2, "$npuc $model -o o > o", "o"),
    (0, "$npuc $model -o /dev/null --emit asm=/dev/null --emit graph=/dev/null --report /dev/null", ""),
    (0, "$npuc $model -o o.npu --emit layers=a --emit layers=b", "o.npu a b"),
    (0, "$npuc $text -o o.npu --disassemble > a; test $(wc -c < a) -gt 100000", "o.npu a"),
    (0, "$npuc $model -o o.npu --info --report /dev/stdout > a; grep -q ^target: a && grep -q npuc-report a", "o.npu a"),
    (3, "$npuc empty -o o.npu", ""),
    (3, "$npuc /dev/stdin -o o.npu <&-", ""),
    (3, "head -c 100000 $model | $npuc /dev/stdin -o o.npu", ""),
    (3, "head -c 5000 $program | $npuc /dev/stdin --info", ""),
    (4, "$npuc $model --set dram.bytes=64KiB -o o.npu", ""),
    (6, "$npuc missing.onnx -o o.npu", ""),
    (6, "$npuc folder -o o.npu", ""),
    (6, "$plain $model --target missing.yaml -o o.npu", ""),
    (6, "$plain $model --target ./folder -o o.npu", ""),
    (6, "$npuc $model --const ids=missing.npy -o o.npu", ""),
    (6, "$npuc $model -o missing/o.npu", ""),
    (6, "$npuc $model -o folder", ""),
    (6, "$npuc $model -o ''", ""),
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
    (2, "$npusim $program --report $program", ""),
    (2, "$npusim $program --report same", ""),
    (2, "$npusim $program --crc hard", ""),
    (2, "$npusim $program --report t.csv --trace=./t.csv", ""),
    (2, "$npusim $program --report r --crc folder/../r", ""),
    (2, "$npusim $program --output logits=r --report r", ""),
    (2, "$npusim $program --dump spm:0+4=d.npy --output logits=d.npy", ""),
    (2, "$npusim $program --dump spm:0+4=d.npy --dump spm:4+4=d.npy", ""),
    (2, "$npusim $program --crc-against empty --report empty", ""),
    (2, "$npusim $program --host empty --report empty", ""),
    (2, "$npusim $program --versus same --report hard", ""),
    (2, "$npusim $program --outputs o --report o", ""),
    (2, "$npusim $program --outputs folder --report folder/logits.npy", ""),
    (2, "cp $inputs/in_ids.npy folder/x.npy; $npusim $program --inputs $inputs --input ids=folder/x.npy --report folder/x.npy", "folder/x.npy"),
    (2, "cp $inputs/in_ids.npy folder/logits.npy; $npusim $program --input ids=folder/logits.npy --outputs folder", "folder/logits.npy"),
    (0, "cp $inputs/in_ids.npy s; $npusim $program --input ids=s --output logits=s && $npusim $program --expect logits=s --input ids=$inputs/in_ids.npy", "s"),
    (1, "cp $inputs/in_ids.npy s; $npusim $program --input ids=s --output logits=s --expects $inputs/../case_1; cmp s $inputs/in_ids.npy && exit 9; exit 1", "s"),
    (2, "cp $inputs/in_ids.npy s; $npusim $program --input ids=s --output logits=s --report s", "s"),
    (2, "cp $inputs/out_* s; $npusim $program --expect logits=s --output logits=s", "s"),
    (2, "cp $inputs/out_* folder/logits.npy; $npusim $program --expects folder --outputs folder", "folder/logits.npy"),
    (2, "$npusim $program --report r > r", "r"),
    (2, "$npusim $program --check-layers --report model.onnx", ""),
    (2, "$npusim --diff empty $program --report ./empty", ""),
    (2, "$npusim $program --report r.json --output nothing=n.npy", ""),
    (2, "$npusim $program --report r.json --expect nothing=n.npy", ""),
    (2, "$npusim $program --report r.json --expects folder", ""),
    (2, "$loud $program --trace --report r.json --set noise.traffic_percent=90 > a; s=$?; test -s a && exit 9; exit $s", "a"),
    (0, "$npusim $program --report /dev/null --crc /dev/null", ""),
    (0, "$npusim $program --trace --report /dev/stdout > a; grep -q ^program a && grep -q schema a", "a"),
    (1, "cp $inputs/../case_1/out* folder; $npusim $program --inputs $inputs --expects folder --outputs folder", "folder/logits.npy folder/out_logits.ort_fp32.npy"),
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
    (6, "$loud $program --trace=missing/t.json > a; test -s a && exit 1; $loud $program --trace=missing/t.json", "a"),
    (6, "$npusim $program --trace=full.json", ""),
    (6, "$npusim $program --trace=full.json.gz", ""),
    (6, "$npusim $program --trace=full.csv", ""),
    (6, "small $npusim $program --trace=t.json", ""),
    (6, "small $npusim $program --trace=t.csv", ""),
    (6, "$npusim $program --report missing/r.json", ""),
    (6, "$npusim $program --report full.json", ""),
    (6, "$npusim $program --report ''", ""),
    (2, "$npusim $program --runs 18446744073709551615 --noise all", ""),
    (2, "$npusim $program --runs 3 --first-run 18446744073709551615 --noise all", ""),
    (2, "$npusim $program --expects $inputs --min-cosine 1.5", ""),
    (6, "$npusim $program --trace > /dev/full", ""),
    (6, "$npusim $program --trace >&-", ""),
    (6, "$loud $program > /dev/full", ""),
    (6, "$loud $program --inputs $inputs --expects $inputs > /dev/full", ""),
    (6, "$npusim --help > /dev/full", ""),
]
GIVEN = {"empty", "model.onnx", "full.json", "full.json.gz", "full.csv", "same", "hard"}
SMALL = "small() { (ulimit -f 8; \"$@\"); }; "


def prepare(work, model, program):
    shutil.rmtree(work, ignore_errors=True)
    (work / "folder").mkdir(parents=True)
    (work / "empty").touch()
    for name in ("full.json", "full.json.gz", "full.csv"):
        (work / name).symlink_to("/dev/full")
    (work / "model.onnx").symlink_to(model)
    (work / "same").symlink_to(program)
    (work / "hard").hardlink_to(program)


def given(work, environment):
    """What commands must leave alone."""
    paths = [work / "model.onnx", work / "empty", pathlib.Path(environment["program"]), pathlib.Path(environment["text"])]
    paths.append(pathlib.Path(environment["text"] + ".weights"))
    return [path.read_bytes() for path in paths]


def run(row, work, environment):
    """What is wrong, '' when nothing is."""
    status, command, expected = row
    before = given(work, environment)
    done = subprocess.run(["bash", "-c", SMALL + command], cwd=work, env=environment, capture_output=True, text=True, timeout=60)
    found = {str(p.relative_to(work)) for p in work.rglob("*") if not p.is_dir()} - GIVEN
    wrong = ["a file that was there differs"] if given(work, environment) != before else []
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
    program, text = work.parent / "endings.npu", work.parent / "endings.nps"
    work.mkdir(parents=True, exist_ok=True)
    subprocess.run([npuc, folder / "model.onnx", "--target", "tiny", "-q", "-o", program, "--emit", f"asm={text}"], check=True)
    environment = dict(os.environ, npuc=f"{npuc} -q --target tiny", plain=f"{npuc} -q", npusim=f"{npusim} -q", loud=npusim,
                       model="model.onnx", program=str(program), text=str(text), inputs=str(folder / "case_0"))
    faults = 0
    for row in COMPILE + RUN:
        prepare(work, folder / "model.onnx", program)
        wrong = run(row, work, environment)
        if wrong:
            faults += 1
            print(f"{row[1]}: {wrong}")
    print(f"{len(COMPILE + RUN)} endings, {faults} not as they should be")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
