#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs without torch: compile, load, run, report, errors. numpy's part runs where it is."""
import array
import ctypes
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

from support import BUILD, DATA, Array, close, flat, main

import npu
from npu import tensors

MODEL = DATA / "models" / "resnet-tiny"
FREE = DATA / "reports" / "11-refuse-free-dims" / "model.onnx"
COUNTER = Path(__file__).with_name("counter.nps")
NUMPY = importlib.util.find_spec("numpy") is not None


class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.program = npu.compile(MODEL / "model.onnx", target="tiny", dtype="f16")
        cls.image = Array(MODEL / "case_0" / "in_image.npy")
        cls.logits = Array(MODEL / "case_0" / "out_logits.ort_fp32.npy")

    @classmethod
    def tearDownClass(cls):
        cls.program.close()

    def test_values(self):
        close(self, self.program(self.image.view), self.logits.values, 0.017)

    def test_keyword(self):
        self.assertEqual(flat(self.program(image=self.image.view)), flat(self.program(self.image.view)))

    def test_lists(self):
        self.assertEqual(flat(self.program(self.image.view.tolist())), flat(self.program(self.image.view)))

    def test_describes_itself(self):
        p = self.program
        self.assertEqual(p.target, "tiny")
        self.assertIn("clock", p.machine)
        self.assertEqual(p.inputs, (npu.TensorInfo("image", (1, 3, 32, 32), "f16", "f32", 0),))
        self.assertEqual([(t.name, t.shape) for t in p.outputs], [("logits", (1, 10))])
        self.assertEqual(len(p.entries), 1)
        self.assertGreater(p.dram_bytes, 0)
        self.assertIn("tiny", repr(p))

    def test_wrong_calls(self):
        p, x = self.program, self.image.view
        p(x)  # an input of this call is not one of the next
        cases = [
            (lambda: p(), "image"),
            (lambda: p(x, x), "2 inputs given"),
            (lambda: p(x, image=x), "twice"),
            (lambda: p(picture=x), "'picture'; there are: image"),
            (lambda: p([1.0, 2.0]), r"shape \[2\], the program takes f32\[1, 3, 32, 32\]"),
            (lambda: p([[1.0, 2.0], [3.0]]), "differ in length"),
            (lambda: p(None), r"input 'image' is None, the program takes f32\[1, 3, 32, 32\]"),
            (lambda: p(image=None), "input 'image' is None"),
            (lambda: p("text"), "str is no tensor"),
            (lambda: p(object()), "object is no tensor"),
        ]
        for call, expected in cases:
            with self.assertRaisesRegex(npu.UsageError, expected):
                call()
        close(self, p(x), self.logits.values, 0.017)  # it still works

    def test_integers_are_no_floats(self):
        with self.assertRaisesRegex(npu.UnsupportedError, "i64 given for f16.*\n.*'image'"):
            self.program([[[[1] * 32] * 32] * 3])

    def test_report_is_that_of_npusim(self):
        self.program(self.image.view)
        got = self.program.report()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m.npu"
            self.program.save(path)
            report = Path(folder) / "r.json"
            command = [BUILD / "bin" / "npusim", path, "--report", report, "-q"]
            environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
            subprocess.run([*command, "--inputs", MODEL / "case_0"], check=True, env=environment)
            want = json.loads(report.read_text())
        self.assertEqual(got["inputs"], [{"name": "image", "from": "given"}])
        for part in ("host", "inputs", "runs"):
            del got[part], want[part]
        self.assertEqual(got, want)
        self.assertEqual(self.program.cycles, want["cycles"])

    def test_report_is_of_the_last_run(self):
        self.program(self.image.view)
        first = self.program.report()["cycles"]
        self.program(self.image.view)
        self.assertEqual(self.program.report()["cycles"], first)

    def test_threads_take_turns(self):
        results, want = [], flat(self.program(self.image.view))
        threads = [
            threading.Thread(target=lambda: results.append(flat(self.program(self.image.view))))
            for _ in range(4)
        ]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(results, [want] * 4)

    @unittest.skipUnless(NUMPY, "numpy is not installed")
    def test_numpy(self):
        import numpy

        x = numpy.array(self.image.values, numpy.float32).reshape(self.image.shape)
        y = self.program(x)
        self.assertIsInstance(y, numpy.ndarray)
        self.assertEqual((y.dtype, y.shape), (numpy.float32, (1, 10)))
        for same in (x.astype(">f4"), numpy.asfortranarray(x), x[::-1], numpy.ma.masked_array(x)):
            self.assertEqual(self.program(same).tolist(), y.tolist())
        close(self, self.program(x.astype(numpy.float64)), y, 0)
        close(self, self.program(x.astype(numpy.float16)), y, 0)
        with self.assertRaisesRegex(npu.UsageError, "complex64"):
            self.program(x.astype(numpy.complex64))

    @unittest.skipUnless(NUMPY, "numpy is not installed")
    def test_numpy_is_not_copied(self):
        import numpy

        x = numpy.zeros((3, 4), numpy.float32)
        self.assertEqual(tensors.source(x).pointer, x.ctypes.data)
        self.assertEqual(tensors.source(numpy.float32(3)).shape, ())

    def test_buffers_are_not_copied(self):
        x = array.array("f", [1, 2, 3])
        s = tensors.source(x)
        self.assertEqual((s.pointer, s.shape, s.dtype.name), (x.buffer_info()[0], (3,), "f32"))
        c = (ctypes.c_int64 * 5)()
        self.assertEqual(tensors.source(c).pointer, ctypes.addressof(c))
        self.assertEqual(tensors.source(c).dtype.name, "i64")


class Integers(unittest.TestCase):
    """docs/numerics.md: a chain computes in 64 bits, what leaves it saturates."""

    def run_chain(self, letter, dtype, chain, a, b):
        text = f'graph "g"\nin %a : {dtype}[{len(a)}]\nin %b : {dtype}[{len(a)}]\n'
        text += f"%y : {dtype}[{len(a)}] = map %a, %b chain=({chain})\nout %y\n"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "g.npt"
            path.write_text(text)
            with npu.compile(path, target="tiny") as p:
                return flat(p(*(memoryview(array.array(letter, v)) for v in (a, b))))

    def test_saturate_but_for_64_bits(self):
        types = [("i8", "b", 8), ("i16", "h", 16), ("i32", "i", 32), ("u8", "B", 8), ("u16", "H", 16),
                 ("u32", "I", 32), ("i64", "q", 64)]
        for dtype, letter, bits in types:
            least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype[0] == "i" else (0, (1 << bits) - 1)
            a, b = [most, least, most - 1, 3], [1, 2, 3, 4]
            for chain, op in (("add in1", lambda x, y: x + y), ("sub in1", lambda x, y: x - y),
                              ("mul in1", lambda x, y: x * y)):
                exact = [op(x, y) for x, y in zip(a, b)]
                want = [min(max(v, least), most) for v in exact]
                if bits == 64:
                    want = [(v - least) % (1 << 64) + least for v in exact]
                with self.subTest(dtype, chain=chain):
                    self.assertEqual(self.run_chain(letter, dtype, chain, a, b), want)


class States(unittest.TestCase):
    def test_are_kept_read_written_and_reset(self):
        with npu.compile(COUNTER, target="tiny") as p:
            one = [1.0] * 64
            self.assertEqual(list(p.states), ["total"])
            self.assertEqual(flat(p(one))[:2], [1.0, 1.0])
            self.assertEqual(flat(p(one))[0], 2.0)
            self.assertEqual(flat(p.states["total"])[63], 2.0)
            p.states["total"] = [10.0] * 64
            self.assertEqual(flat(p(one))[5], 11.0)
            p.states.reset()
            self.assertEqual(flat(p(one))[5], 1.0)
            with self.assertRaisesRegex(KeyError, "no state 'x'; there are: total"):
                p.states["x"]
            with self.assertRaisesRegex(npu.UsageError, "state 'total': shape"):
                p.states["total"] = [1.0]


    def test_a_decoder_keeps_its_cache(self):
        folder = DATA / "pt2" / "decoder"
        tokens, logits = Array(folder / "tokens.npy"), Array(folder / "logits.npy")
        width = len(logits.values) // len(tokens.values)
        for dtype, atol in (("f32", 2e-5), ("f16", 1e-2)):
            for model in ("model.pt2", "model.core.pt2"):
                with npu.compile(folder / model, target="edge", dtype=dtype) as p:
                    self.assertEqual([t.name for t in p.outputs], ["out0"])
                    self.assertEqual(sorted(p.states), ["at", "layers.0.k", "layers.0.v", "seen"])
                    for _ in range(2):
                        self.assertEqual(flat(p.states["seen"]), [3.0])
                        for i, token in enumerate(tokens.values):
                            want = logits.values[i * width : (i + 1) * width]
                            close(self, p([[token]]), want, atol)
                        self.assertEqual(flat(p.states["at"]), [8])
                        p.states.reset()


class Lifetime(unittest.TestCase):
    def test_closed(self):
        p = npu.compile(COUNTER, target="tiny")
        folder = Path(p._path).parent
        self.assertTrue(folder.exists())
        p.close()
        p.close()
        with self.assertRaisesRegex(npu.UsageError, "closed"):
            p([1.0] * 64)
        self.assertFalse(folder.exists())
        self.assertEqual(repr(p), "<npu.Program, closed>")

    def test_not_run(self):
        with npu.compile(COUNTER, target="tiny") as p:
            for ask in (p.report, lambda: p.cycles):
                with self.assertRaisesRegex(npu.UsageError, "has not been run"):
                    ask()

    def test_list_of_programs(self):
        p, q = (npu.compile(COUNTER, target="tiny") for _ in range(2))
        self.assertEqual([x for x in npu.programs() if x in (p, q)], [p, q])
        p.close(), q.close()

    def test_saved_and_loaded(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "counter.npu"
            npu.compile(COUNTER, target="tiny", output=path).close()
            with npu.load(path) as p:
                p.save(Path(folder) / "copy.npu")
                self.assertEqual((Path(folder) / "copy.npu").read_bytes(), path.read_bytes())
                self.assertEqual(flat(p([3.0] * 64))[0], 3.0)
                cycles = p.cycles
            with npu.load(path, no_data=True) as p:
                self.assertIsNone(p([3.0] * 64))
                self.assertEqual(p.cycles, cycles)
                self.assertEqual(p.report()["outputs"], [])


class Errors(unittest.TestCase):
    def expect(self, kind, code, text, call):
        with self.assertRaisesRegex(kind, text) as caught:
            call()
        self.assertEqual(caught.exception.code, code)

    def test_each_status_has_a_class(self):
        readme = Path(__file__).with_name("support.py")
        self.expect(npu.FileError, 7, "none.onnx", lambda: npu.compile("/nowhere/none.onnx"))
        self.expect(npu.FileError, 7, "none.npu", lambda: npu.load("/nowhere/none.npu"))
        self.expect(npu.BadInputError, 3, "not a .npu", lambda: npu.load(readme))
        self.expect(npu.BadInputError, 3, "zork.*tiny", lambda: npu.compile(COUNTER, target="zork"))
        self.expect(npu.UsageError, 2, "f13", lambda: npu.compile(COUNTER, dtype="f13"))
        self.expect(npu.UsageError, 2, "-O7", lambda: npu.compile(COUNTER, opt=7))
        self.expect(npu.UsageError, 2, "--fast", lambda: npu.compile(COUNTER, options=["--fast"]))
        small = ["--set", "spm.bytes=1 KiB"]
        self.expect(npu.NoFitError, 5, "", lambda: npu.compile(MODEL / "model.onnx", options=small))
        with self.assertRaises(TypeError):
            npu.compile(3)

    def test_python_classes_too(self):
        self.assertTrue(issubclass(npu.FileError, OSError))
        self.assertTrue(issubclass(npu.UsageError, ValueError))
        self.assertTrue(issubclass(npu.UnsupportedError, NotImplementedError))
        self.assertTrue(issubclass(npu.OutOfMemoryError, MemoryError))

    def test_the_whole_text(self):
        with self.assertRaises(npu.Error) as caught:
            npu.compile(FREE)
        self.assertIn("token_rows", caught.exception.text)
        self.assertIn("rows_per_page", caught.exception.text)

    def test_open_shapes_are_fixed(self):
        with npu.compile(FREE, target="tiny", shapes={"token_rows": (2, 7, 12)}) as p:
            self.assertEqual(p.inputs[0].shape, (2, 7, 12))
        with npu.compile(FREE, target="tiny", dims={"pages": 1, "rows_per_page": 3}) as p:
            self.assertEqual(p.inputs[0].shape, (1, 3, 12))

    def test_faults_of_programs(self):
        text = COUNTER.read_text().replace("wait=1:1", "wait=3:1")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "stuck.nps"
            path.write_text(text)
            with npu.compile(path, target="tiny") as p:
                self.expect(npu.FaultError, 6, "(?s)deadlock.*cycle", lambda: p([1.0] * 64))

    def test_missing_libraries(self):
        code = "import npu; npu.version()"
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "NPU_LIBRARY_PATH": folder, "LD_LIBRARY_PATH": ""}
            run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        if run.returncode:  # where libnpu is installed, that one is taken
            self.assertIn("NPU_LIBRARY_PATH", run.stderr)
            self.assertIn("--target npu npu_simulator npu_compile", run.stderr)

    def test_nothing_is_printed(self):
        code = f"""
import npu
for call in (lambda: npu.compile({str(FREE)!r}), lambda: npu.compile({str(FREE)!r}, options=["--help"]),
             lambda: npu.compile({str(COUNTER)!r}, target="tiny")([1.0] * 64)):
    try: call()
    except npu.Error: pass
"""
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "", ""))


if __name__ == "__main__":
    main()
