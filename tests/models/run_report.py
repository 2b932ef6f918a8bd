#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""npuc --report against toolchain/npuc/report.def: every field is a row, every row is a field, and the figures fit together.

    run_report.py SOURCE_DIR BIN_DIR MODEL
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile


def paths(value, path=""):
    """Paths of the leaves; a list of plain values is a leaf."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from paths(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for item in value:
            yield from paths(item, f"{path}[]")
    else:
        yield path


def report(binaries, model, *options):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "r.json"
        command = [binaries / "bin" / "npuc", model, "-q", "--dtype", "f16", *options,
                   "--report", file, "-o", pathlib.Path(folder) / "p.npu"]
        subprocess.run([str(word) for word in command], check=True, timeout=250)
        return json.loads(file.read_text())


def main():
    source, binaries, model = (pathlib.Path(p) for p in sys.argv[1:4])
    rows = re.findall(r'^REPORT_FIELD\("([^"]+)",\s*"([^"]+)"', (source / "toolchain/npuc/report.def").read_text(), re.M)
    data = report(binaries, model, "--skip", "cse", "--skip", "prefetch_across")
    eager = report(binaries, model, "--eager")
    leaves = set(paths(data)) | {path for path in paths(eager) if path.startswith("eager.")}
    known = {path for path, kind in rows if kind != "object"}
    assert "eager" not in data and eager["eager"]["launches"] == len(eager["eager"]["list"])
    assert leaves == known, f"not in report.def: {sorted(leaves - known)}; not in the report: {sorted(known - leaves)}"
    assert data["skipped"] == ["cse", "prefetch_across"], data["skipped"]
    taken = {step["name"]: step["taken"] for step in data["steps"]}
    assert taken["prefetch"] and not taken["prefetch_across"] and not taken["search"], taken
    assert all(row["name"] != "cse" for row in data["passes"])
    assert data["model"]["bytes"] == model.stat().st_size and data["model"]["file"] == model.name
    for name in ("spm", "dram_scratch"):
        memory = data["memory"][name]
        assert memory["bound_bytes"] <= memory["peak_bytes"], memory
    assert data["memory"]["spm"]["peak_bytes"] <= data["memory"]["spm"]["capacity_bytes"]
    assert [layer["tag"] for layer in data["layers"]] == list(range(1, len(data["layers"]) + 1))
    assert any(len(layer["nodes"]) > 1 for layer in data["layers"])
    print(f"{len(known)} fields, {len(data['layers'])} layers")


main()
