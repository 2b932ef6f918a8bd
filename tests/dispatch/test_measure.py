# SPDX-License-Identifier: Apache-2.0
"""measure_dispatch --quick on this machine, and npusim with what it wrote. Usage: test_measure.py BIN."""
import json
import os
import subprocess
import sys
import tempfile

try:
    import torch  # noqa: F401
except ImportError:
    print("torch is not installed")
    sys.exit(77)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def main():
    binaries = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        model, program, report = (os.path.join(folder, n) for n in ("host.json", "p.npu", "r.json"))
        out = run(sys.executable, os.path.join(ROOT, "scripts", "measure_dispatch"), "--quick", "--device", "cpu", "-o", model)
        assert "encoder" in out and "residual" in out, out
        with open(model, encoding="ascii") as f:
            host = json.load(f)
        assert len(host["dispatch"]) == 19
        for name, c in host["dispatch"].items():
            assert 0 < c["quantiles_us"][0] <= c["quantiles_us"][100] <= c["quantiles_us"][200], name
        counts = {r["model"]: r["calls"] for r in host["runs"] if r["mode"] == "eager"}
        assert counts["encoder"]["linear"] == 24 and counts["encoder"]["sdpa"] == 6, counts
        assert counts["residual"]["conv2d"] == 16 and counts["residual"]["batch_norm"] == 16, counts
        run(os.path.join(binaries, "npuc"), "-q", os.path.join(ROOT, "tests/data/models/encoder-static/model.onnx"),
            "--target", "edge", "-o", program)
        run(os.path.join(binaries, "npusim"), "-q", "--no-data", "--runs", "3", "--host", model, "--report", report, program)
        with open(report, encoding="utf-8") as f:
            sampled = json.load(f)["runs"]["sampled_mean_us"]
        expected = host["compiled"]["quantiles_us"][100]
        assert abs(sampled / expected - 1) < 1e-3, (sampled, expected)


if __name__ == "__main__":
    main()
