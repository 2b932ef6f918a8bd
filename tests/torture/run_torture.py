#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every allocation fails once: no crash, no partial output, and exit status 6 or a normal end.

    run_torture.py PRELOAD.so OUTPUT -- COMMAND...       OUTPUT: the file that COMMAND writes, {out} in COMMAND

The n-th allocation of the process fails, for n = 1, 2, ... to the count of a run without failures (all up to 300, then a
sample of about 300 more). A program may end well in spite of a failure (a library fell back to something); what it must not do
is die of a signal, write its output and fail, or exit with another status than 0 and 6.
"""
import os
import pathlib
import subprocess
import sys


def run(preload, command, output, **variables):
    if output.exists():
        output.unlink()
    environment = dict(os.environ, LD_PRELOAD=preload, **variables)
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


def main():
    preload, output, _, *command = sys.argv[1:]
    output = pathlib.Path(output)
    command = [word.replace("{out}", str(output)) for word in command]
    count_file = pathlib.Path(f"{output}.count")
    done = run(preload, command, output, FAIL_ALLOC_COUNT=str(count_file))
    if done.returncode or not output.exists():
        print(f"without failures: exit status {done.returncode}\n{done.stderr}")
        return 1
    count = int(count_file.read_text())
    step = max(1, (count - 300) // 300)
    tried = list(range(1, min(count, 300) + 1)) + list(range(301, count + 1, step))
    faults = refused = 0
    for n in tried:
        done = run(preload, command, output, FAIL_ALLOC_AT=str(n))
        refused += done.returncode == 6
        partial = done.returncode != 0 and output.exists()
        if done.returncode not in (0, 6) or partial or (done.returncode == 0 and not output.exists()):
            faults += 1
            print(f"allocation {n}: exit status {done.returncode}, output {'left' if output.exists() else 'missing'}\n{done.stderr[-300:]}")
            if faults >= 5:
                break
    left = [p.name for p in output.parent.glob(output.name + "*") if p not in (output, count_file)]
    if left:
        print(f"left behind: {left}")
        faults += 1
    print(f"{len(tried)} of {count} allocations failed in turn, {refused} runs refused with status 6, {faults} faults")
    return 1 if faults or refused == 0 else 0


sys.exit(main())
