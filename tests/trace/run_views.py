#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program with every view and checks that each follows its format's rules and that all say the same.

    run_views.py BUILD_DIR MODEL.onnx TARGET [NPUC_OPTION...]
"""
import copy
import csv
import gzip
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import trace_events
import vcd

faults = []


def expect(condition, text):
    if not condition:
        faults.append(text)
        print("FAULT:", text)


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(str(c) for c in command)}: status {done.returncode}\n{done.stderr}")
    return done.stdout


# ---- trace events -------------------------------------------------------------------------------

def objections(trace):
    return trace_events.Checker(copy.deepcopy(trace)).check()


def check_refusals(trace):
    """The checker has to object to each of these; else it proves nothing."""
    events = trace["traceEvents"]
    first = {ph: next((i for i, e in enumerate(events) if e["ph"] == ph), None) for ph in "MXCsf"}
    number = trace_events.Number

    def broken(ph, what, edit):
        if first[ph] is None:
            return expect(False, f"no event of phase {ph} to break")
        bad = {"traceEvents": list(events), "displayTimeUnit": "ns"}
        event = bad["traceEvents"][first[ph]] = dict(events[first[ph]])
        edit(event, bad["traceEvents"])
        expect(objections(bad), f"the checker accepts {what}")

    broken("X", "a slice without its length", lambda e, _: e.pop("dur"))
    broken("X", "a fourth digit", lambda e, _: e.update(ts=number("1.0001")))
    broken("X", "a time as text", lambda e, _: e.update(ts="1.000"))
    broken("X", "overlapping slices", lambda e, all_: all_.append(
        dict(e, ts=number("0.000"), dur=number(f"{(float(e['ts']) + float(e['dur']) / 2):.3f}"))))
    broken("X", "an unknown phase", lambda e, _: e.update(ph="Q"))
    broken("X", "a thread without a name", lambda e, _: e.update(tid=number("77")))
    broken("C", "a counter without values", lambda e, _: e.update(args={}))
    broken("C", "a counter of texts", lambda e, _: e.update(args={"value": "1"}))
    broken("s", "an arrow that only ends", lambda e, all_: all_.remove(e))
    broken("s", "an arrow from nowhere", lambda e, _: e.update(tid=number("2000")))
    broken("f", "an arrow that only begins", lambda e, all_: all_.remove(e))
    broken("M", "an unknown kind of metadata", lambda e, _: e.update(name="thread_colour"))
    broken("M", "a name that is none", lambda e, _: e.update(args={}))


def check_events(trace, report, rows):
    checker = trace_events.Checker(copy.deepcopy(trace))
    for fault in checker.check()[:10]:
        expect(False, "trace events: " + fault)
    expect(checker.bound, "no arrows")
    causes = {r["seq"]: r["cause_seq"] for r in rows}
    signals = {flow: ends for (cat, _, flow), ends in checker.bound.items() if cat == "signal"}
    launches = {flow: ends for (cat, _, flow), ends in checker.bound.items() if cat == "launch"}
    for flow, (start, end) in launches.items():
        expect(start["args"]["launch"] == flow and end["cat"] == "state", f"arrow of launch {flow}")
    expect(len(launches) == report.get("eager", {}).get("launches", 0), f"{len(launches)} arrows of launches")
    for flow, (start, end) in signals.items():
        cause = causes[flow]
        expect(end["args"]["seq"] == flow, f"arrow {flow} ends at instruction {end['args']['seq']}")
        expect(start["args"]["seq"] == cause, f"arrow {flow} leaves {start['args']['seq']}, the cause is {cause}")
    expect(len(signals) == sum(r["cause_seq"] != "" for r in rows), "an instruction that was let go has no arrow")
    states, layers = {}, {}
    for event in trace["traceEvents"]:
        if event.get("cat") == "state":
            key = event["args"]["engine"], event["args"]["class"]
            states[key] = states.get(key, 0) + int(event["args"]["cycles"])
        elif event.get("cat") == "layer":
            layers[int(event["args"]["tag"])] = int(event["args"]["cycles"])
    compare_states("trace events", states, report)
    expect(layers == {l["tag"]: l["cycles"] for l in report["layers"]}, "trace events: cycles of layers differ from the report")
    instructions = sum(e.get("cat") == "insn" for e in trace["traceEvents"])
    expect(instructions == report["instructions"], f"trace events: {instructions} instructions")
    expect(trace["otherData"]["cycles"] == str(report["cycles"]), "trace events: cycles of the run")


def compare_states(view, states, report):
    for engine in report["engines"]:
        want = dict(engine["stalls"], busy=engine["busy_cycles"])
        got = {c: states.get((engine["name"], c), 0) for c in want}
        expect(got == want, f"{view}: cycles of {engine['name']} are {got}, the report says {want}")
        expect(sum(want.values()) == report["cycles"], f"{engine['name']}: classes do not add up to the run")


# ---- waveforms ----------------------------------------------------------------------------------

def check_waves(path, report, folder):
    try:
        waves, end = vcd.read(path)
    except vcd.Bad as error:
        return expect(False, f"waveforms: {error}")
    cycle = lambda ps: math.ceil(ps * report["clock_mhz"] / 1e6 - 1e-9)  # times were rounded down
    expect(cycle(end) == report["cycles"], f"waveforms end at cycle {cycle(end)}")
    text = lambda bits: int(bits, 2).to_bytes(64, "big").lstrip(b"\0").decode()
    title = {c["title"]: c["key"] for c in classes()}
    states = {}
    for engine in report["engines"]:
        scope, busy = "npu." + engine["name"] + ".", 0
        points = waves[scope + "state_text"]
        for (at, value), (until, _) in zip(points, points[1:] + [(end, None)]):
            key = engine["name"], title[text(value)]
            states[key] = states.get(key, 0) + cycle(until) - cycle(at)
        points = waves[scope + "busy"]
        for (at, value), (until, _) in zip(points, points[1:] + [(end, None)]):
            busy += (cycle(until) - cycle(at)) * (value == "1")
        expect(busy == engine["busy_cycles"] + engine["stalls"]["busy_partial"], f"waveforms: {engine['name']} busy {busy}, not {engine['busy_cycles'] + engine['stalls']['busy_partial']}")
        for name in ("queue", "under_way") if engine["name"] != "cp" else ():
            expect(waves[scope + name][-1][1] == "0", f"waveforms: {scope}{name} does not end at 0")
    compare_states("waveforms", states, report)
    peak = sum(l["bytes"]["dram_read"] for l in report["layers"])
    points, moved = waves["npu.dram.read"], 0
    for (at, value), (until, _) in zip(points, points[1:] + [(end, None)]):
        moved += value * (cycle(until) - cycle(at))
    expect(abs(moved - peak) <= 1e-6 * peak, f"waveforms: {moved} bytes read, the layers read {peak}")
    live = [int(v, 2) for _, v in waves["npu.spm.live"]]
    # Nothing lives above the highest byte in use; lines are 64 bytes, or 1/65536 of the scratchpad.
    line = max(64, report["spm"]["capacity_bytes"] // 65536)
    expect(0 < max(live) <= report["spm"]["peak_bytes"] + line, f"waveforms: {max(live)} bytes live at once")
    expect(live[0] == live[-1] == 0, "waveforms: the scratchpad is not empty before and after the run")
    for name, points in waves.items():
        if name.startswith("npu.semaphores."):
            expect(all(int(v, 2) < 32768 for _, v in points), f"waveforms: {name} below 0")
    if shutil.which("vcd2fst"):
        fst = folder / "run.fst"
        run("vcd2fst", path, fst)
        again = folder / "again.vcd"
        run("fst2vcd", fst, "-o", again)
        back, _ = vcd.read(again)
        expect({k: v for k, v in back.items()} == waves, "waveforms: vcd2fst reads something else")
    else:
        print("vcd2fst (package gtkwave) is not installed: not compared with it")
    packed, _ = vcd.read(folder / "run.vcd.gz")
    expect(packed == waves, "waveforms: .vcd.gz differs")
    bad = path.read_text().replace("$enddefinitions", "$var wire 1 ! again $end\n$enddefinitions")
    (folder / "bad.vcd").write_text(bad)
    try:
        vcd.read(folder / "bad.vcd")
        expect(False, "the reader of waveforms accepts a code twice")
    except vcd.Bad:
        pass


def rows(table):
    """Rows of a table of simulator/trace, each as its texts."""
    source = pathlib.Path(__file__).resolve().parents[2] / "simulator/trace" / table
    for line in source.read_text().splitlines():
        if re.match(r"TRACE_\w+\(", line):
            yield re.findall(r'"([^"]*)"', line)


def classes():
    for key, title, _ in rows("class.def"):
        yield {"key": key, "title": title}


def check_help(npusim):
    """Every view that a path can name is in the help, and in the documentation; and who has a host without asking."""
    text = re.sub(r"\s+", " ", run(npusim, "--help"))
    expect("Default: the built-in one for eager programs" in text, "--help does not say that eager programs have a host")
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs/reading-a-trace.md").read_text()
    for ending, _ in rows("view.def"):
        expect(ending in text, f"--help does not name {ending}")
        expect(f"FILE{ending}`" in page, f"docs/reading-a-trace.md does not name {ending}")


# ---- tables -------------------------------------------------------------------------------------

def check_tables(folder, report, rows):
    expect(len(rows) == report["instructions"], f"{len(rows)} rows of instructions")
    layers = list(csv.DictReader(open(folder / "run.layers.csv", newline=""), strict=True))
    expect(sum(int(l["cycles"]) for l in layers) == report["cycles"], "table of layers: cycles do not add up to the run")
    expect(len(layers) == len(report["layers"]), "table of layers: other layers than the report's")
    for row, layer in zip(layers, report["layers"]):
        same = {"tag": layer["tag"], "cycles": layer["cycles"], "start": layer["start_cycle"], "end": layer["end_cycle"],
                "macs": layer["macs"], "instructions": layer["instructions"], "mxu_cycles": layer["mxu_cycles"],
                "dram_read_bytes": layer["bytes"]["dram_read"], "dram_write_bytes": layer["bytes"]["dram_write"]}
        expect({k: int(row[k]) for k in same} == same, f"table of layers: {row} differs from the report")
        expect((row["layer"], row["node"]) == (layer["name"] or "", layer["node"] or ""), f"table of layers: name of {row}")
    for key in ("dram_read", "dram_write"):
        by_row = sum(int(r[key + "_bytes"]) for r in rows)
        by_layer = sum(l["bytes"][key] for l in report["layers"])
        expect(by_row == by_layer, f"{key}: {by_row} bytes by instruction, {by_layer} by layer")
    expect(sum(l["cycles"] for l in report["layers"]) == report["cycles"], "report: layers do not add up to the run")


def check_whatifs(npusim, program, report):
    """What is timed again is what the same machine takes on its own, the host included, and the cycles that the whole
    device waits for the host stay."""
    said = run(npusim, program, "--no-data", "-q", "--what-if")
    ideal = re.search(r"^memory that answers at once +[\d.]+ +([\d.]+)", said, re.M)
    expect(ideal, "no what-if of an ideal memory")
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        run(npusim, program, "--no-data", "-q", "--set", "dram.standard=ideal", "--report", file.name)
        alone = json.load(open(file.name))["time_us"]
    expect(ideal and abs(float(ideal[1]) - alone) <= 0.006, f"what-if of an ideal memory: {ideal and ideal[1]} us, alone {alone} us")
    host = min(e["stalls"].get("host", 0) for e in report["engines"])
    for faster in re.findall(r"^\S.*?[\d.]+ +[\d.]+ +([\d.]+)  \S+ .* -> ", said, re.M):
        expect(not host or float(faster) < report["cycles"] / host + 0.01, f"{faster} times as fast with {host} cycles of host")


def main():
    build, model, target, options = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program = folder / "run.npu"
        run(build / "bin/npuc", model, "--target", target, "-q", "-o", program, *options)
        files = [f"--trace={folder}/run.{ending}" for ending in ("json", "json.gz", "csv", "layers.csv", "vcd", "vcd.gz")]
        run(build / "bin/npusim", program, "--no-data", "-q", *files, "--report", folder / "report.json")
        report = json.load(open(folder / "report.json"))
        trace = trace_events.load(folder / "run.json")
        expect(gzip.open(folder / "run.json.gz").read() == (folder / "run.json").read_bytes(), "run.json.gz differs")
        instructions = list(csv.DictReader(open(folder / "run.csv", newline=""), strict=True))
        check_events(trace, report, instructions)
        if len(trace["traceEvents"]) < 20000:
            check_refusals(trace)
        check_waves(folder / "run.vcd", report, folder)
        check_tables(folder, report, instructions)
        check_whatifs(build / "bin/npusim", program, report)
        check_help(build / "bin/npusim")
    print(f"{len(faults)} faults")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
