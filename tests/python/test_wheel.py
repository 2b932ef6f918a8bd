#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pip install of the package into an empty environment, without network, with the built libraries."""
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import venv
import zipfile
from pathlib import Path

from support import ROOT, main

COUNTER = Path(__file__).with_name("counter.nps")
SCRIPT = f"""
import npu, os
from importlib.metadata import entry_points, version
assert "site-packages" in npu.__file__, npu.__file__
assert version("npu") == npu.__version__
(point,) = entry_points(group="torch_dynamo_backends", name="npu")
assert point.value == "npu.torch_backend:npu_backend"
program = npu.compile({str(COUNTER)!r}, target="tiny")
assert list(program([2.0] * 64))[0] == 2.0
print("installed", npu.version())
"""
BACKEND = """
import sys, torch
model, x = torch.nn.Linear(8, 8), torch.randn(2, 8)
got = torch.compile(model, backend="npu")(x)
torch.testing.assert_close(got, model(x))
(program,) = sys.modules["npu"].programs()
print("ran", program.cycles)
"""


def builder():
    spec = importlib.util.spec_from_file_location("build_npu", ROOT / "runtime/python/build_npu.py")
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    return build


@unittest.skipIf(os.environ.get("NPU_SANITIZED"), "pip under a sanitizer says nothing new")
class Wheel(unittest.TestCase):
    def test_installs_and_runs(self):
        self.install_and_run(SCRIPT, "installed")

    @unittest.skipUnless(importlib.util.find_spec("torch"), "torch is not installed")
    def test_torch_finds_it_without_an_import(self):
        self.install_and_run(BACKEND, "ran", system_site_packages=True)

    def install_and_run(self, script, expected, **options):
        with tempfile.TemporaryDirectory() as folder:
            try:
                venv.create(folder, with_pip=True, **options)
            except subprocess.CalledProcessError as error:
                self.skipTest(f"python3 -m venv does not work here: {error}")
            python = Path(folder) / "bin" / "python"
            clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
            subprocess.run(
                [python, "-m", "pip", "install", "-q", "--no-index", "--disable-pip-version-check",
                 ROOT / "runtime" / "python"],
                check=True, env=clean,
            )
            del clean["NPU_LIBRARY_PATH"]
            run = subprocess.run([python, "-c", script], env=clean, capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn(expected, run.stdout)

    def test_relative_folder_of_libraries(self):
        """It is one of where pip was started, though pip works in the package's folder."""
        build, libraries = builder(), Path(os.environ["NPU_LIBRARY_PATH"])
        given = {"PWD": str(libraries.parent), "NPU_LIBRARY_PATH": libraries.name}
        with unittest.mock.patch.dict(os.environ, given):
            self.assertEqual(build._built(), libraries)
        with unittest.mock.patch.dict(os.environ, {"NPU_LIBRARY_PATH": "missing"}):
            with self.assertRaisesRegex(SystemExit, "--target npu npu_simulator npu_compile"):
                build._built()

    def test_same_wheel_twice(self):
        build = builder()
        with tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b:
            name = build.build_wheel(a)
            self.assertEqual(build.build_wheel(b), name)
            first, second = (Path(f, name).read_bytes() for f in (a, b))
            self.assertEqual(first, second)
            names = zipfile.ZipFile(Path(a) / name).namelist()
        for needed in ("npu/lib/libnpu.so.0", "npu/lib/libnpu_compile.so.0", "npu/py.typed",
                       "npu-0.1.0.dist-info/RECORD", "npu-0.1.0.dist-info/entry_points.txt"):
            self.assertIn(needed, names)
        self.assertFalse([n for n in names if "__pycache__" in n])


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
