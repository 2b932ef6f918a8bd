#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""npusim --diff on real runs: what it says against the reports themselves.

    run_diff.py BUILD_DIR MODEL.onnx TARGET
"""
import json
import pathlib
import subprocess
import sys
import tempfile

faults = 0


def expect(condition, text):
    global faults
    if not condition:
        faults += 1
        print("FAULT:", text)


def call(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True)


def run(*command):
    done = call(*command)
    if done.returncode:
        sys.exit(f"{' '.join(str(c) for c in command)}: status {done.returncode}\n{done.stderr}")
    return done.stdout


def check_totals(diff, reports):
    a, b = reports
    expect(abs(diff["difference_us"] - (b["time_us"] - a["time_us"])) < 1e-6, "difference of the runs")
    for side, report in zip("ab", reports):
        expect(sum(g[side]["cycles"] for g in diff["layers"]) == report["cycles"], f"layers of {side} do not add up")
        names = sorted(n for g in diff["layers"] for n in g[side]["layers"])
        expect(names == sorted(l["name"] or "" for l in report["layers"]), f"layers of {side} are not all there once")
        for engine, seen in zip(report["engines"], diff["engines"]):
            want = dict(engine["stalls"], busy=engine["busy_cycles"])
            expect({c: v[side] for c, v in seen["classes"].items()} == want, f"classes of {engine['name']} in {side}")
    changes = [abs(g["difference_us"]) for g in diff["layers"]]
    expect(changes == sorted(changes, reverse=True), "the largest change is not the first")


def main():
    build, model, target = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    npuc, npusim = build / "bin/npuc", build / "bin/npusim"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        reports, traces = [], []
        for level in (0, 2):
            program = folder / f"O{level}.npu"
            reports.append(folder / f"O{level}.json")
            traces.append(folder / f"O{level}.trace.json.gz")
            run(npuc, model, "--target", target, f"-O{level}", "-q", "-o", program)
            run(npusim, program, "--no-data", "-q", "--report", reports[-1], f"--trace={traces[-1]}")
        loaded = [json.load(open(r)) for r in reports]
        out = folder / "diff.json"
        text = run(npusim, "--diff", *reports, "--report", out)
        diff = json.load(open(out))
        check_totals(diff, loaded)
        expect("times as fast" in text and "layers of A, 1 of B" in text, "the text lacks what it is about")
        named = [g for g in diff["layers"] if g["matched_by"] == "name"]
        expect(any(len(g["a"]["layers"]) > 1 for g in named), "no layers that -O2 fuses were found together")
        expect(not any(g["matched_by"] == "none" for g in diff["layers"]), "a layer of the same model is alone")

        run(npusim, "--diff", *traces, "--report", folder / "traces.json")
        other = json.load(open(folder / "traces.json"))
        for key in ("layers", "engines", "difference_us"):
            expect(diff[key] == other[key], f"{key}: traces differ otherwise than reports")
        run(npusim, "--diff", reports[1], traces[1], "--report", folder / "same.json")
        same = json.load(open(folder / "same.json"))
        expect(all(g["difference_us"] == 0 for g in same["layers"]), "a run differs from itself")
        run(npusim, "--diff", *reversed(reports), "--report", folder / "back.json")
        back = json.load(open(folder / "back.json"))
        expect(back["difference_us"] == -diff["difference_us"], "the other way round is not the negative")

        # An eager program's cycles have its host's time, a compiled one's have none.
        eager = folder / "eager.json"
        run(npuc, model, "--target", target, "--eager", "-q", "-o", folder / "eager.npu")
        run(npusim, folder / "eager.npu", "--no-data", "-q", "--report", eager, f"--trace={folder / 'eager.trace.json'}")
        wait = json.load(open(eager))["eager"]["bubble_cycles"]
        for one in (eager, folder / "eager.trace.json"):
            text = run(npusim, "--diff", one, reports[1], "--report", out)
            expect("waiting for its host, B's has no host in it" in text and "\nwithout these waits B takes" in text, text)
            sides = json.load(open(out))
            expect((sides["a"]["host"], sides["a"]["host_wait_cycles"], sides["b"]["host"]) == (True, wait, False), "who has a host")
        model_file = pathlib.Path(__file__).resolve().parents[2] / "simulator/noise/host_default.json"
        run(npusim, folder / "O2.npu", "--no-data", "-q", "--host", model_file, "--report", folder / "hosted.json")
        text = run(npusim, "--diff", eager, folder / "hosted.json", "--report", out)
        latency = [json.load(open(out))[side]["latency_us"] for side in "ab"]
        expect(f"\nB takes {latency[0] - latency[1]:.3f} us less than A" in text, text)
        run(npusim, folder / "eager.npu", "--versus", folder / "O2.npu", "--no-data", "-q", "--report", folder / "versus.json")
        runs = json.load(open(folder / "versus.json"))["runs"]
        expect(abs(runs["quiet_us"] - latency[0]) + abs(runs["versus"]["quiet_us"] - latency[1]) < 1e-5, "--versus has other latencies")

        data = reports[0].read_text()
        for what, damaged in (("cut off", data[:-40]), ("a changed number", data.replace('"cycles": ', '"cycles": 1', 1)),
                              ("another schema", data.replace('"schema": 1', '"schema": 2')), ("no report", "{}"),
                              ("empty", ""), ("no layers", json.dumps(dict(loaded[0], layers=[]))),
                              ("no engines", json.dumps(dict(loaded[0], engines=[])))):
            (folder / "bad.json").write_text(damaged)
            done = call(npusim, "--diff", folder / "bad.json", reports[1], "--report", folder / "none.json")
            expect(done.returncode == 3 and "bad.json" in done.stderr, f"{what}: status {done.returncode}, {done.stderr}")
            expect(not (folder / "none.json").exists() and not done.stdout, f"{what}: something was written")
        # A part of a run is none, as a report and as a trace.
        part = [folder / "part.json", folder / "part.trace.json"]
        run(npusim, folder / "O0.npu", "--no-data", "-q", "--break", "cycle:5000", "--report", part[0], f"--trace={part[1]}")
        for stopped in part:
            done = call(npusim, "--diff", reports[1], stopped)
            expect(done.returncode == 3 and "stopped (cycle 5000, --break cycle:5000)" in done.stderr and not done.stdout,
                   f"{stopped.name}: status {done.returncode}, {done.stderr}")
        for wrong in (["--diff", reports[0]], ["--diff", *reports, "--runs", "2"], [*reports], ["--diff", *reports, reports[0]]):
            expect(call(npusim, *wrong).returncode == 2, f"{wrong} is no wrong usage")
    print(f"{faults} faults")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
