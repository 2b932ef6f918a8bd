# SPDX-License-Identifier: Apache-2.0
"""Runs the two programs as a user would, with what it took."""
import json
import os
import re
import subprocess
import sys

WORST = re.compile(r"^(.*): (agrees|differs).*?; worst .* is (\S+), expected (\S+) \(", re.M)


class Failed(Exception):
    """A program did not end well; the text is what it said."""


# A process starts with the peak memory of the one that made it, so a small one stands between: runs argv, then writes
# "STATUS SECONDS PEAK_BYTES" of it as the last line of standard output.
SMALL_PARENT = """
import os, sys
child = os.fork()
if not child:
    os.execv(sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(child, 0)
print()
print(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)
"""


class Run:
    """Processor seconds, peak bytes and output of one process."""

    def __init__(self, command):
        words = [str(word) for word in command]
        done = subprocess.run([sys.executable, "-S", "-E", "-c", SMALL_PARENT, *words], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)
        self.name = os.path.basename(words[0])
        self.out, _, last = done.stdout.rstrip("\n").rpartition("\n")
        self.err = done.stderr
        if done.returncode or len(last.split()) != 3:
            raise Failed(f"{self.name} could not be run: {done.stderr.strip()}")
        status, seconds, peak = last.split()
        self.status, self.seconds, self.peak_bytes = int(status), float(seconds), int(peak)

    def must(self):
        if self.status:
            said = (self.err + self.out).strip().splitlines()
            raise Failed(f"{self.name} ended with status {self.status}: " + "; ".join(said[:3]))
        return self


def load_json(path):
    with open(path) as f:
        return json.load(f)


class Programs:
    """npuc and npusim of a build, writing into a folder."""

    def __init__(self, build, folder):
        self.npuc, self.npusim = (os.path.join(build, "bin", name) for name in ("npuc", "npusim"))
        self.folder = folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def compile(self, model, name, dtype, target, options=()):
        """Returns the program's path, the run, and the compiler's report."""
        program, report = self.path(name + ".npu"), self.path(name + ".compile.json")
        run = Run([self.npuc, model, "-q", "--target", target, "--dtype", dtype, "-o", program, "--report", report, *options]).must()
        return program, run, load_json(report)

    def simulate(self, program, arguments):
        """Returns the run and the simulator's report."""
        report = program + ".run.json"
        return Run([self.npusim, program, *arguments, "--report", report]).must(), load_json(report)

    def compare(self, program, case, reference, allowed):
        """Runs a case against its reference: the run, the report, the worst error, the faults found."""
        report = program + ".run.json"
        run = Run([self.npusim, program, "--inputs", case, "--expects", case, "--tag", reference, "--rtol", allowed["rtol"],
                   "--atol", allowed["atol"], "--min-cosine", allowed.get("min_cosine", 0.999), "--report", report])
        if run.status not in (0, 1):
            run.must()
        found = WORST.findall(run.out)
        faults = [f"{os.path.basename(case)}: {line}" for line in run.out.splitlines() if ": differs" in line]
        if run.status and not faults:
            faults.append(f"{os.path.basename(case)}: {run.err.strip()}")
        if not found and not run.status:
            raise Failed(f"{case}: no output was compared")
        worst = max((abs(float(got) - float(want)) for _, _, got, want in found), default=float("nan"))
        return run, load_json(report), worst, faults
