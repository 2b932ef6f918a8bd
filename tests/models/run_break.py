#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""npusim --break and --dump on one model.

    run_break.py BIN_DIR MODEL CASE_DIR DTYPE OPTION...

A run that stops at a cycle has done what the trace of the whole run says is done by then, no more and no less, and every
instruction wrote what it writes in the whole run (by CRC). Memory is dumped and compared with the outputs that the whole run
writes; printed tensors are compared with what NumPy reads from the dump's file. Places that there are not, ranges outside a
memory, and options that do not go together are refused with status 2 and leave nothing behind.
"""
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np


def run(*command, status=(0,)):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=250,
                          env=dict(os.environ), stdin=subprocess.DEVNULL)
    if done.returncode not in status:
        raise SystemExit(f"{' '.join(map(str, command))}: exit status {done.returncode}, expected {status}\n"
                         f"{done.stdout}{done.stderr}")
    return done.stdout, done.stderr


def writes(path):
    return path.read_text().splitlines()[2:]


def first_of_jobs(trace):
    """Number of the first instruction of each submission."""
    return [0] + [seq + 1 for seq, row in sorted(trace.items()) if row["engine"] == "cp" and row["op"] == "halt"]


def check_cycles(sim, work, eager):
    run(*sim, "-q", "--crc", work / "all.csv", f"--trace={work / 'trace.csv'}", "--report", work / "r.json")
    everything = writes(work / "all.csv")
    cycles = json.loads((work / "r.json").read_text())["cycles"]
    with open(work / "trace.csv") as f:
        trace = {int(row["seq"]): row for row in csv.DictReader(f)}
    first = first_of_jobs(trace)

    def seq_of(line):
        job, seq = line.split(",")[:2]
        return first[int(job)] + int(seq)

    seqs = [seq_of(line) for line in everything]
    chosen = {0, 1, cycles - 1, cycles} | {cycles * k // 37 for k in range(37)}
    if eager: # between two submissions the next one's begin is shown
        dones = sorted(int(row["done"]) for row in trace.values())
        chosen = {dones[len(dones) * k // 37] for k in range(37)}
    for n in sorted(chosen):
        out, _ = run(*sim, "--break", f"cycle:{n}", "--crc", work / "part.csv", "--report", work / "r.json")
        assert re.match(rf"stopped at the end of cycle {n}, --break cycle:{n}(, in submission \d+)?\n", out), out
        part = writes(work / "part.csv")
        assert set(part) <= set(everything), f"cycle {n}: {set(part) - set(everything)}"
        expected = {seq for seq in seqs if int(trace[seq]["done"]) <= n}
        got = {seq_of(line) for line in part}
        assert got == expected, f"cycle {n}: missing {expected - got}, too many {got - expected}"
        report = json.loads((work / "r.json").read_text())
        assert report["cycles"] == n and report["stopped"] == f"cycle {n}, --break cycle:{n}", report["stopped"]
        assert all(row["start_cycle"] <= row["end_cycle"] <= n for row in report["layers"]), f"a layer ends behind cycle {n}"
        assert not any(report["bounds"].values()), f"the whole program's bounds at cycle {n}"
        done = sum(int(row["done"]) <= n for row in trace.values())
        assert report["instructions"] == done, (n, report["instructions"], done)
        working = [seq for seq, row in trace.items() if row["engine"] != "cp"
                   and int(row["start"]) <= n < int(row["done"])]
        job = max(k for k, seq in enumerate(first) if seq < len(trace) and int(trace[seq]["dispatched"]) <= n) \
            if int(trace[0]["dispatched"]) <= n else 0
        shown = [first[job] + int(seq) for seq in re.findall(r"at work(?:, operands read)?: instruction (\d+)", out)]
        assert sorted(shown) == sorted(working), f"cycle {n}: at work {shown}, by the trace {working}"
    _, err = run(*sim, "-q", "--break", f"cycle:{cycles + 1}")
    assert f"--break cycle:{cycles + 1} was not reached in {cycles} cycles" in err, err
    return cycles, trace


def check_places(sim, trace, work):
    seq, row = next((s, r) for s, r in trace.items() if r["engine"] == "vec")
    tag = row["tag"]
    first = min(int(r["start"]) for r in trace.values() if r["tag"] == tag)
    last = max(int(r["done"]) for r in trace.values() if r["tag"] == tag)
    for place, cycle in ((f"insn:{seq}", row["start"]), (f"insn:{seq}/done", row["done"]), (f"tag:{tag}", first),
                         (f"tag:{tag}/done", last), (f"layer:{row['layer']}/done", None)):
        out, _ = run(*sim, "--break", place, "--break", "fault")
        stop = int(re.match(r"stopped at the end of cycle (\d+), ", out).group(1))
        assert cycle is None or stop == int(cycle), f"{place} stops at {stop}, by the trace {cycle}"


def parse(text):
    return np.array([float(word) for word in re.sub(r"[\[\]]", " ", text).split()])


def check_dumps(sim, npuc, program, work):
    run(*sim, "-q", "--outputs", work / "out")
    files = sorted((work / "out").glob("*.npy"))
    info = run(npuc, "--disassemble", program)[0]
    for name, dtype, shape, at in re.findall(r'^\.output "([^"]+)" (\w+)\[([\d,]*)\] at=(\w+)', info, re.M):
        whole = np.load(work / "out" / (re.sub("[/:]", "_", name) + ".npy"))
        path = work / "dump.npy"
        place = f"dram:{at}:{dtype}[{shape}]"
        out, err = run(*sim, "-q", "--dump", f"{place}={path}", "--dump", place)
        assert not err, err
        dumped = np.load(path)
        assert dumped.dtype == whole.dtype and (dumped.tobytes() == whole.tobytes()), place
        if "..." not in out and whole.dtype != np.dtype("V2"):
            printed = parse(out.split("\n", 1)[1]).astype(whole.dtype)
            assert np.array_equal(printed, whole.ravel(), equal_nan=True), out
        _, err = run(*sim, "-q", "--break", "cycle:0", "--dump", f"{place}={path}")
        assert "elements were not written; they are 0 in" in err and not np.load(path).view(np.uint8).any(), err
        out, _ = run(*sim, "-q", "--break", "cycle:0", "--dump", place)
        assert not re.search(r"\d", out.split(place)[1].split("\n", 1)[1]), out
    assert files and "at=" in info


REFUSED = (
    ("--break", "foo", "no such place"), ("--break", "cycle:", "a value is missing"),
    ("--break", "cycle:1e3", "not a number"), ("--break", "cycle:18446744073709551616", "not a number"),
    ("--break", "tag:4294967296", "32 bits"), ("--break", "fault:0", "takes no value"),
    ("--break", "tag:1#0", "counts from 1"), ("--break", "tag:1/done#2", "done once"),
    ("--break", "layer:nosuchlayer", "no layer and no node of that name"),
    ("--break", "pc:1", "no instruction starts at that granule; one does at 0"),
    ("--break", "pc:99999999", "the code has granules 0 to"),
    ("--dump", "spm", "no ':'"), ("--dump", "l2:0-3", "unknown memory"), ("--dump", "spm:64", "how many bytes?"),
    ("--dump", "spm:0:f17", "no type"), ("--dump", "spm:0:i4[8]", "no type of whole bytes"),
    ("--dump", "spm:0:f16[4,]", "bad shape"), ("--dump", "spm:0:f16[0]", "bad shape"),
    ("--dump", "spm:0:f16[1,1,1,1,1,1,1,1,1]", "bad shape"), ("--dump", "spm:0:f16[4:1,2]", "bad shape"),
    ("--dump", "spm:8-3", "bad address or range"), ("--dump", "spm:0-2:f16", "no whole number of elements"),
    ("--dump", "spm:0-3:f16[2]", "a range and a shape"), ("--dump", "spm:0[4]", "a shape needs a type"),
    ("--dump", "spm:-4:f16", "no address"), ("--dump", "result:nosuch", "stores a result of that name"),
    ("--dump", "spm:0:f16=x.txt", "is no .npy"), ("--dump", "spm:0x7fffffffffffff:f16", "lie outside spm"),
    ("--dump", "psum:0:f32[9999999999,9999]", "bad shape", "lie outside psum"),
    ("--dump", "dram:0x3fffffffffffffff+64", "lie outside dram"),
    ("--dump", "spm:f16+0x10[4:-9]", "bytes -38 to 17 lie outside spm, which has"),
)


def check_refusals(sim, work):
    for option, value, *words in REFUSED:
        out, err = run(*sim, "-q", option, value, "--report", work / "none.json", status=(2,))
        assert any(word in err for word in words), f"{option} {value}: {err}"
        assert not out and not (work / "none.json").exists(), out
    for others in (["--check-layers"], ["--runs", "2"], ["--noise", "all"], ["--crc-against", "x.csv"],
                   ["--versus", "x.npu"], ["--what-if"]):
        _, err = run(*sim, "--break", "cycle:1", *others, status=(2,))
        assert "--break stops one run without noise" in err, err
    _, err = run(*sim, "--no-data", "--dump", "spm:0-3", status=(2,))
    assert "--no-data computes no values" in err, err
    out, _ = run(*sim, "--no-data", "--break", "cycle:100")
    assert re.match(r"stopped at the end of cycle \d+, --break cycle:100", out), out
    _, err = run(*sim, "-q", "--break", "cycle:100", "--outputs", work / "never")
    assert "outputs are neither written nor compared" in err and not (work / "never").exists(), err


def check_fault(npuc, npusim, work):
    (work / "f.nps").write_text(
        'dma.fill @dma0 value=1 dst=spm:f32+0x0[4:1] signal=1:1:done\n'
        'v.map out=spm:f32+0x40[4:1] in0=spm:f32+0x80[4:1] wait=1:1 tag=9\nhalt\n')
    run(npuc, work / "f.nps", "-q", "-o", work / "f.npu")
    _, plain = run(npusim, work / "f.npu", status=(5,))
    out, err = run(npusim, work / "f.npu", "--break", "fault", "--dump", "spm:0:f32[6]", status=(5,))
    assert err == plain and "unwritten-read" in err, err
    assert "at work: instruction 1 at granule" in out and "[ 1  1  1  1 -- --]" in out, out
    out, err = run(npusim, work / "f.npu", "--dump", "spm:0:f32[6]", status=(5,))
    assert not out and "--break fault shows what --dump asks for there" in err, err
    out, err = run(npusim, work / "f.npu", "--break", "cycle:99999", "--dump", "spm:0:f32[6]", status=(5,))
    assert not out and "--break cycle:99999 was not reached" in err and "--break fault shows" in err, err
    run(npusim, work / "f.npu", "--break", "cycle:1", "-q")
    run(npusim, work / "f.npu", "--break", "fault", "--break", "cycle:1", "-q")
    run(npusim, work / "f.npu", "--break", "fault", "--no-data", status=(5,))


LAUNCHES = """
.output "y" f32[64] at=0x1000
.entry "main" at=first
.launch at=first tag=1
.launch at=second tag=2
.launch at=third tag=3
first: dma.fill @dma0 value=1 dst=spm:f32+0x0[64:1] signal=1:1:done tag=1
  dma.copy @dma1 src=spm:f32+0x0[64:1] dst=dram:f32+0x1000[64:1] wait=1:1 tag=1
  halt tag=1
second: dma.copy @dma0 src=dram:f32+0x1000[64:1] dst=spm:f32+0x100[64:1] signal=1:1:done tag=2
  v.map out=spm:f32+0x100[64:1] in0=spm:f32+0x100[64:1] chain=(add imm0) imm0=41 wait=1:1 signal=2:1:done tag=2
  dma.copy @dma1 src=spm:f32+0x100[64:1] dst=dram:f32+0x1000[64:1] wait=2:1 tag=2
  halt tag=2
third: dma.copy @dma0 src=dram:f32+0x1000[64:1] dst=spm:f32+0x200[64:1] signal=1:1:done tag=3
  v.map out=spm:f32+0x200[64:1] in0=spm:f32+0x200[64:1] chain=(mul imm0) imm0=2 wait=1:1 signal=2:1:done tag=3
  dma.copy @dma1 src=spm:f32+0x200[64:1] dst=dram:f32+0x1000[64:1] wait=2:1 tag=3
  halt tag=3
"""


def check_launches(npuc, npusim, work):
    """Several submissions: cycles and instructions are counted through; on-chip memory is of one submission."""
    (work / "l.nps").write_text(LAUNCHES)
    run(npuc, work / "l.nps", "-q", "-o", work / "l.npu")
    run(npusim, work / "l.npu", "-q", "--host", "none", f"--trace={work / 'l.csv'}")
    with open(work / "l.csv") as f:
        rows = {int(row["seq"]): row for row in csv.DictReader(f)}
    memory = ["--dump", "dram:0x1000:f32[2]", "--dump", "spm:0x100:f32[2]"]
    for place, seq, column, dram, spm in (("tag:2", 3, "start", "1 1", "-- --"), ("insn:4", 4, "start", "1 1", "1 1"),
                                          ("insn:4/done", 4, "done", "1 1", "42 42"),
                                          ("insn:8", 8, "start", "42 42", "-- --"),
                                          ("tag:3/done", 10, "done", "84 84", "-- --"),
                                          ("pc:36/done", 8, "done", "42 42", "-- --")):
        out, _ = run(npusim, work / "l.npu", "--host", "none", "--break", place, *memory)
        head, _, rest = out.partition("\n")
        job = 0 if seq < 3 else 1 if seq < 7 else 2
        assert head == (f"stopped at the end of cycle {rows[seq][column]}, --break {place}: instruction {seq}"
                        f", in submission {job}"), (head, rows[seq])
        assert rest.endswith(f"dram:0x1000:f32[2]\n[{dram}]\nspm:0x100:f32[2]\n[{spm}]\n"), (place, rest)


def main():
    binaries, model, case = (pathlib.Path(p).resolve() for p in sys.argv[1:4])
    dtype, options = sys.argv[4], sys.argv[5:]
    npuc, npusim = binaries / "bin" / "npuc", binaries / "bin" / "npusim"
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        program = work / "p.npu"
        run(npuc, model, "--dtype", dtype, *options, "-q", "-o", program)
        sim = [npusim, program, "--inputs", case]
        cycles, trace = check_cycles(sim, work, "--eager" in options)
        check_places(sim, trace, work)
        check_dumps(sim, npuc, program, work)
        check_refusals(sim, work)
        check_fault(npuc, npusim, work)
        check_launches(npuc, npusim, work)
        print(f"stopped at some 39 of {cycles} cycles: what the trace says is done, and the same values")


main()
