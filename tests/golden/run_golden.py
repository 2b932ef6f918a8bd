#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden files: input, command and expectation in one file.

    run_golden.py [--update] BIN_DIR FILE...

A file is a program's input whose comments ('# ' or '// ') say what to do:

    run: npuc %s --stop-after fuse_map --emit graph      commands joined by &&; %s the file, %t a temporary folder
    exit: 3                                              expected exit status of the last command (default 0)
    stderr: text                                         must occur in the messages (repeatable)
    expect:                                              the rest of the comment block is standard output, line by line

--update writes what the commands print into the files. Programs are taken from BIN_DIR/bin.
"""
import pathlib
import shlex
import subprocess
import sys
import tempfile


def parse(path):
    lines = path.read_text().splitlines()
    mark = "//" if path.suffix == ".nps" else "#"
    case = {"run": None, "exit": 0, "stderr": [], "expect": None, "mark": mark, "at": None}
    for number, line in enumerate(lines):
        if not line.startswith(mark):
            continue
        text = line[len(mark):].strip()
        if case["expect"] is not None:
            case["expect"].append(line[len(mark) + 1:])
        elif text.startswith("run:"):
            case["run"] = text[4:].strip()
        elif text.startswith("exit:"):
            case["exit"] = int(text[5:])
        elif text.startswith("stderr:"):
            case["stderr"].append(text[7:].strip())
        elif text == "expect:":
            case["expect"], case["at"] = [], number
    return lines, case


def execute(case, path, binaries):
    out, err, status = "", "", 0
    with tempfile.TemporaryDirectory() as folder:
        for command in case["run"].split("&&"):
            words = [w.replace("%s", str(path)).replace("%t", folder) for w in shlex.split(command)]
            words[0] = str(binaries / "bin" / words[0])
            done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                                  timeout=120)
            out, err, status = out + done.stdout, err + done.stderr, done.returncode
            if status:
                break
        return out.replace(folder, "%t").replace(str(path), "%s"), err, status


def check(path, binaries, update):
    lines, case = parse(path)
    if not case["run"]:
        return [f"{path}: no 'run:' line"]
    out, err, status = execute(case, path.resolve(), binaries)
    faults = []
    if status != case["exit"]:
        faults.append(f"{path}: exit status {status}, expected {case['exit']}\n{err}")
    for text in case["stderr"]:
        if text not in err:
            faults.append(f"{path}: '{text}' is not in the messages:\n{err}")
    if case["expect"] is None or faults:
        return faults
    printed = [line.rstrip() for line in out.splitlines()]
    if printed == [line.rstrip() for line in case["expect"]]:
        return []
    if update:
        kept = lines[: case["at"] + 1]
        path.write_text("\n".join(kept + [f"{case['mark']} {line}".rstrip() for line in printed]) + "\n")
        return []
    shown = "\n".join(f"  expected: {a!r}\n  printed:  {b!r}" for a, b in zip(case["expect"], printed) if a.rstrip() != b)
    return [f"{path}: output differs ({len(case['expect'])} lines expected, {len(printed)} printed)\n{shown}"]


def main():
    arguments = sys.argv[1:]
    update = "--update" in arguments
    binaries, *files = [pathlib.Path(a) for a in arguments if a != "--update"]
    faults = [fault for path in files for fault in check(path, binaries, update)]
    print("\n".join(faults) if faults else f"{len(files)} golden files agree")
    return 1 if faults or not files else 0


sys.exit(main())
