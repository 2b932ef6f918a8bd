#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mypy --strict over the package; skipped where mypy is not installed."""
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "runtime" / "python"

if importlib.util.find_spec("mypy") is None:
    print("SKIPPED: mypy is not installed (pip install mypy)")
    sys.exit(77)
with tempfile.TemporaryDirectory() as cache:
    command = [sys.executable, "-m", "mypy", "--cache-dir", cache, "--config-file",
               str(PACKAGE / "pyproject.toml"), str(PACKAGE / "npu"), str(PACKAGE / "build_npu.py")]
    sys.exit(subprocess.run(command, cwd=PACKAGE).returncode)
