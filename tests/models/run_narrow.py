#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From a layer that departs to the instruction: npusim --check-layers, --crc and --crc-against.

    run_narrow.py BIN_DIR MODEL CASE_DIR DTYPE OPTION...

One instruction of a compiled program is changed at a time: an operation, a stride, an address, an immediate number, a
constant. What departs must be led back to exactly that instruction, by --check-layers against the program that npuc makes
of the model, and by --crc-against against a file of the good program. The instruction that stored the first wrong elements
must belong to the layer that departs.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PLACE = re.compile(r"^ *(\w+) at granule (\d+), instruction (\d+).*, tag (\d+)[^\n]*\n +([^\n]*)$", re.M)


def run(*command, status=(0,)):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=250,
                          env=dict(os.environ), stdin=subprocess.DEVNULL)
    if done.returncode not in status:
        raise SystemExit(f"{' '.join(map(str, command))}: exit status {done.returncode}, expected {status}\n"
                         f"{done.stdout}{done.stderr}")
    return done.returncode, done.stdout, done.stderr


def number(pattern, line, change, count=1):
    """The line with the first number that the pattern's group finds changed; None when there is none."""
    hit = re.search(pattern, line)
    if not hit:
        return None
    text = hit.group(1)
    value = int(text, 0)
    new = change(value)
    new = f"0x{new:x}" if text.startswith("0x") else str(new)
    return line[:hit.start(1)] + new + line[hit.end(1):]


KINDS = {
    "operation": lambda l: l.replace("add in1", "sub in1", 1) if "add in1" in l else None,
    "source address": lambda l: number(r"dma\.copy.* src=dram:\w+\+(0x[0-9a-f]+)", l, lambda v: v + 64),
    "operand address": lambda l: number(r"v\.map.* in1=spm:\w+\+(0x[0-9a-f]+)", l, lambda v: v + 32),
    "stride": lambda l: number(r"v\.map.* in1=spm:\w+\+0x[0-9a-f]+(?:\+r\d+)?\[\d+:(\d+)", l, lambda v: 1 - min(v, 1)),
    "immediate": lambda l: number(r" imm0=(\d+)\b", l, lambda v: v + 1),
    "matrix": lambda l: number(r"\bmm .* b=spm:\w+\+(0x[0-9a-f]+)", l, lambda v: v + 64),
}
PER_KIND = 4


def mutations(text):
    """(kind, line number, changed line): a few of each kind, spread over the program."""
    for kind, change in KINDS.items():
        hits = []
        for at, line in enumerate(text):
            new = change(line)
            if new and new != line:
                hits.append((at, new))
        step = max(1, len(hits) // PER_KIND)
        for at, new in hits[::step][:PER_KIND]:
            yield kind, at, new


def instruction(line):
    return re.sub(r"\s+#.*$", "", line).strip()


def check(kind, line, new, err, tag_line):
    """The message of --check-layers or --crc-against leads to the changed line."""
    places = [m.groups() for m in PLACE.finditer(err)]
    named = [p for p in places if p[4].strip() == instruction(new)]
    if not named:
        raise SystemExit(f"{kind}: changed\n{line}\ninto\n{new}\nand the message does not name it:\n{err}")
    return places, named[0]


def main():
    binaries, model, case = (pathlib.Path(p).resolve() for p in sys.argv[1:4])
    dtype, options = sys.argv[4], sys.argv[5:]
    npuc, npusim = binaries / "bin" / "npuc", binaries / "bin" / "npusim"
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        good, csv = work / "good.npu", work / "good.csv"
        run(npuc, model, "--dtype", dtype, *options, "--skip", "call", "--skip", "roll", "-q", "-o", good)
        run(npusim, good, "--inputs", case, "-q", "--crc", csv)
        _, out, _ = run(npusim, good, "--inputs", case, "--crc-against", csv)
        assert "writes of instructions are the same as in" in out, out
        for simd in ("sse2", "auto"): # the host's code path is not seen
            os.environ["NPU_SIMD"] = simd
            run(npusim, good, "--inputs", case, "-q", "--crc", work / "again.csv")
            assert (work / "again.csv").read_bytes() == csv.read_bytes()
        _, _, err = run(npusim, good, "--inputs", case, "-q", f"--check-layers={model}", "--rtol", 0, "--atol", 0,
                        status=(1,)) # no bound: sums in another order depart
        assert "this npuc makes the same program of the model" in err, err
        os.environ["NPU_SIMD"] = "sse2"
        _, _, err = run(npusim, good, "--inputs", case, "-q", f"--check-layers={model}", "--rtol", 0, "--atol", 0,
                        status=(1,))
        assert "this npuc makes the same program of the model" in err and "with NPU_SIMD" not in err, err
        os.environ["NPU_SIMD"] = "auto"
        text = run(npuc, good, "--disassemble")[1].splitlines()
        seen, faults = {}, 0
        for kind, at, new in mutations(text):
            (work / "bad.nps").write_text("\n".join(text[:at] + [new] + text[at + 1:]) + "\n")
            run(npuc, work / "bad.nps", "-o", work / "bad.npu", "-q")
            status, _, err = run(npusim, work / "bad.npu", "--inputs", case, "-q", f"--check-layers={model}",
                                 status=(0, 1, 5))
            if status == 5: # the machine's own rules found it
                faults += 1
                continue
            crc_status, _, crc_err = run(npusim, work / "bad.npu", "--inputs", case, "-q", "--crc-against", csv,
                                         status=(0, 1))
            if status == 1:
                assert crc_status == 1, f"{kind}: a layer departs and no CRC does\n{new}\n{err}"
                places, _ = check(kind, text[at], new, err, new)
                layer = re.search(r"first layer that departs: tag (\d+)", err).group(1)
                assert places[0][3] == layer, f"tag {layer} departs, its writer has tag {places[0][3]}\n{err}"
                assert "this npuc makes other instructions of the model" in err, err
                seen[kind] = seen.get(kind, 0) + 1
            if crc_status == 1:
                check(kind, text[at], new, crc_err, new)
        if len(seen) < 4 or sum(seen.values()) < 10:
            raise SystemExit(f"too few of the planted faults were seen: {seen}, {faults} broke a rule")
        print(f"planted faults found: {seen}; {faults} broke a rule of the machine")


main()
