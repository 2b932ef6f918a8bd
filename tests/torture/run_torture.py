#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes allocations of a program fail, one per run, and checks how it ends.

    run_torture.py PRELOAD.so FOLDER [OPTION...] -- COMMAND...

{out} in COMMAND stands for FOLDER/out, emptied before each run. A run without failures tells what the command prints and
writes, and which of its allocations are the first from their place in the program; in each further run one of these fails
(with --all-after so do all that follow it).

The command must then end with status 6 (or its own, when that is a failure too), a message and, of the files, only whole
ones and nothing beside them; or, because some library found another way, with status 0 and everything as without the
failure. --spare leaves out allocations that the library LIB makes itself and does not check: its users cannot help that.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time


def contents(folder):
    """Name to bytes of all files; of a report, what does not depend on the host."""
    found = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        data = path.read_bytes()
        if path.suffix == ".json":
            try:
                value = json.loads(data)
                value.pop("host", None)
                value.pop("runs", None)
                data = json.dumps(value)
            except (ValueError, AttributeError):
                pass
        found[str(path.relative_to(folder))] = data
    return found


class Torture:
    def __init__(self, preload, folder, command, every, spare, status):
        self.preload, self.out, self.every, self.spare, self.status = preload, folder / "out", every, spare, status
        self.sites = folder / "sites"
        self.command = [word.replace("{out}", str(self.out)) for word in command]

    def run(self, **variables):
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir(parents=True)
        environment = dict(os.environ, LD_PRELOAD=self.preload, **variables)
        if self.spare:
            environment["FAIL_ALLOC_SPARE"] = self.spare
        return subprocess.run(self.command, env=environment, capture_output=True, timeout=120, stdin=subprocess.DEVNULL)

    def reference(self):
        """Numbers of the allocations to fail, or None when the command fails by itself."""
        done = self.run()
        self.printed, self.files = done.stdout, contents(self.out)
        if done.returncode == self.status:
            done = self.run(FAIL_ALLOC_SITES=str(self.sites))
        if done.returncode != self.status or contents(self.out) != self.files:
            print(f"without failures: exit status {done.returncode}\n{done.stderr.decode(errors='replace')}")
            return None
        self.stable_stdout = done.stdout == self.printed
        self.count, *places = map(int, self.sites.read_text().split())
        return places

    def fault(self, n):
        """What is wrong when allocation n fails, '' when nothing is, and whether the command refused."""
        done = self.run(FAIL_ALLOC_AT=str(n), **({"FAIL_ALLOC_ALL": "1"} if self.every else {}))
        message = done.stderr.decode(errors="replace")
        files = contents(self.out)
        wrong = []
        if done.returncode < 0:
            wrong.append(f"died of {signal.Signals(-done.returncode).name}")
        elif done.returncode not in (self.status, 6):
            wrong.append(f"exit status {done.returncode}")
        if done.returncode != 0 and "error: " not in message:
            wrong.append("no message")
        for name, data in files.items():
            if name not in self.files:
                wrong.append(f"left {name} behind")
            elif data != self.files[name]:
                wrong.append(f"{name} differs")
        if done.returncode == 0:
            wrong += [f"{name} is missing" for name in self.files if name not in files]
            if self.stable_stdout and done.stdout != self.printed:
                wrong.append("stdout differs")
        return ("; ".join(wrong) + "\n" + message[-400:] if wrong else ""), done.returncode == 6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("preload")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=0, help="at most so many places, evenly spread")
    parser.add_argument("--seconds", type=float, default=0, help="stop after this time, having spread the runs over all places")
    parser.add_argument("--all-after", action="store_true")
    parser.add_argument("--spare", default="")
    parser.add_argument("--status", type=int, default=0, help="with which the command ends when nothing fails")
    parser.add_argument("--most", type=int, default=5, help="faults after which to stop")
    split = sys.argv.index("--")
    args, command = parser.parse_args(sys.argv[1:split]), sys.argv[split + 1:]
    torture = Torture(args.preload, args.folder, command, args.all_after, args.spare, args.status)
    places = torture.reference()
    if places is None:
        return 1
    step = max(1, -(-len(places) // args.runs)) if args.runs else 1
    chosen = places[::step]
    if args.seconds:  # far apart first, so that whatever is done in time covers the whole run
        chosen = [n for start in range(16) for n in places[start::16]]
    end = time.monotonic() + (args.seconds or 1e9)
    tried = refused = faults = 0
    for n in chosen:
        if time.monotonic() > end or faults >= args.most:
            break
        wrong, six = torture.fault(n)
        tried += 1
        refused += six
        if wrong:
            faults += 1
            print(f"allocation {n}: {wrong}")
    print(f"{torture.count} allocations from {len(places)} places: {tried} failed in turn, {refused} runs refused with status 6, "
          f"{faults} faults")
    return 1 if faults or refused == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
