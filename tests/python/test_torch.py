#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="npu") against eager mode.

Whole models are those of scripts/models; the modernbert needs transformers besides torch.
"""
import copy
import importlib.util
import json
import subprocess
import sys
import unittest
import warnings

from torch_support import Case, Mlp
import torch
import torch.nn.functional as F
from torch import nn

import npu
from support import DATA, ROOT, main
import zoo

HAS_TRANSFORMERS = importlib.util.find_spec("transformers") is not None


class Models(Case):
    """Acceptance: whole models, one program each, nothing in eager mode."""

    def check(self, name, dtype):
        spec = zoo.SPECS[name]
        meta = json.loads((DATA / "models" / name / "meta.json").read_text())
        tolerance = meta["tolerance"][dtype]
        model, inputs = spec.build().eval(), spec.inputs(0)
        with torch.no_grad():
            want = model(*inputs)
            compiled = torch.compile(model, backend="npu", options={"dtype": dtype})
            got = self.silent(lambda: compiled(*inputs))
        self.agree(got, want, tolerance["atol"], tolerance["rtol"])
        (program,) = self.fresh()
        self.assertEqual(program.report()["cycles"], program.cycles)
        self.assertEqual(program.last_run.submissions, 1)

    def test_resnet_f32(self):
        self.check("resnet-tiny", "f32")

    def test_resnet_f16(self):
        self.check("resnet-tiny", "f16")

    @unittest.skipUnless(HAS_TRANSFORMERS, "transformers is not installed")
    def test_modernbert_f32(self):
        self.check("modernbert-tiny", "f32")

    @unittest.skipUnless(HAS_TRANSFORMERS, "transformers is not installed")
    def test_modernbert_f16(self):
        self.check("modernbert-tiny", "f16")

    def test_llama_prefill_f32(self):
        self.check("llama-tiny-prefill", "f32")

    def test_llama_decode_f32(self):
        self.check("llama-tiny-decode", "f32")

    def test_llama_decode_f16(self):
        self.check("llama-tiny-decode", "f16")


class Refused(nn.Module):
    """An operator that no NPU program has stands between two parts that have one."""

    def __init__(self):
        super().__init__()
        self.before, self.after = Mlp(), Mlp()

    def middle(self, x):
        return torch.linalg.qr(x).Q

    def forward(self, x):
        return self.after(self.middle(self.before(x)))


class Broken(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after = Mlp(), Mlp()

    def forward(self, x):
        x = self.before(x)
        torch._dynamo.graph_break()
        return self.after(x)


class Fallbacks(Case):
    def test_graph_break(self):
        model, x = Broken().eval(), torch.randn(16, 16)
        with torch.no_grad():
            compiled = torch.compile(model, backend="npu")
            got, caught = self.warned(lambda: compiled(x), npu.GraphBreakWarning)
            self.agree(got, model(x))
        self.assertEqual(len(self.fresh()), 2)
        self.assertEqual(len(caught), 1)
        self.assertIn("test_torch.py", str(caught[0].message))
        self.assertEqual(caught[0].filename, __file__)

    def test_unsupported_nodes(self):
        model, x = Refused().eval(), torch.randn(16, 16)
        with torch.no_grad():
            compiled = torch.compile(model, backend="npu")
            got, caught = self.warned(lambda: compiled(x))
            self.agree(got, model(x))
            self.agree(self.silent(lambda: compiled(x)), model(x))  # said once
        self.assertEqual(len(self.fresh()), 2)
        self.assertEqual(len(caught), 1)
        nodes = caught[0].message.nodes
        self.assertIn("aten.linalg_qr.default", [n.op for n in nodes])
        self.assertIn("linalg_qr", str(caught[0].message))
        self.assertEqual(caught[0].filename, __file__)

    def test_complex_numbers_stay_in_torch(self):
        class Mixes(Refused):
            def middle(self, x):
                return x + torch.fft.fft2(x).real

        model, x = Mixes().eval(), torch.randn(16, 16)
        with torch.no_grad():
            got, caught = self.warned(lambda: torch.compile(model, backend="npu")(x))
            self.agree(got, model(x))
        self.assertEqual(len(self.fresh()), 2)
        self.assertEqual(len(caught[0].message.nodes), 2)  # the transform, and what takes its result

    def test_no_fallback(self):
        compiled = torch.compile(Refused().eval(), backend="npu", options={"fallback": False})
        with torch.no_grad(), self.assertRaisesRegex(Exception, "linalg_qr"):
            compiled(torch.randn(16, 16))

    def test_module_path_is_named(self):
        class Inner(nn.Module):
            def forward(self, x):
                return torch.linalg.qr(x).Q

        class Outer(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([Mlp(), Inner()])

            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return x

        with torch.no_grad():
            compiled = torch.compile(Outer().eval(), backend="npu")
            _, caught = self.warned(lambda: compiled(torch.randn(16, 16)))
        self.assertEqual(caught[0].message.nodes[0].module, "layers.1")


class Calls(Case):
    def test_branches(self):
        class Branches(nn.Module):
            def forward(self, x):
                return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))

        compiled = torch.compile(Branches(), backend="npu")
        for x in (torch.ones(3), -torch.ones(3)):
            self.agree(self.silent(lambda: compiled(x)), Branches()(x))

    def test_shapes_get_programs_of_their_own(self):
        model = Mlp().eval()
        compiled = torch.compile(model, backend="npu")
        with torch.no_grad():
            counts = []
            for rows in (4, 7, 9, 4, 7, 9, 4, 9):
                x = torch.randn(rows, 16)
                self.agree(self.silent(lambda: compiled(x)), model(x))
                counts.append(len(self.fresh()))
        self.assertGreaterEqual(counts[2], 3)
        self.assertEqual(counts[3:], [counts[3]] * 5)  # each shape once

    def test_nested_outputs_constants_and_inputs_passed_through(self):
        def f(x, n):
            y = F.relu(x) * n
            return {"y": y, "n": x.shape[0], "x": x, "none": None, "pair": (y, y + 1)}

        x = torch.randn(4, 8)
        compiled = torch.compile(f, backend="npu")
        self.agree(self.silent(lambda: compiled(x, 3)), f(x, 3))
        self.agree(self.silent(lambda: compiled(x, 4)), f(x, 4))

    def test_inputs_changed_in_place(self):
        def step(cache, x, at):
            cache.index_copy_(1, at, x)
            return cache.sum(1)

        cache, want = torch.zeros(2, 8, 4), torch.zeros(2, 8, 4)
        compiled = torch.compile(step, backend="npu")
        for i in range(3):
            x, at = torch.randn(2, 1, 4), torch.tensor([i])
            self.agree(self.silent(lambda: compiled(cache, x, at)), step(want, x, at))
            self.agree(cache, want)

    def test_buffers_changed_in_place(self):
        class Counts(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("count", torch.zeros(4))

            def forward(self, x):
                self.count.add_(1)
                return x * self.count

        model = Counts().eval()
        want = copy.deepcopy(model)
        compiled = torch.compile(model, backend="npu")
        for _ in range(3):
            x = torch.randn(4)
            self.agree(self.silent(lambda: compiled(x)), want(x))
        self.agree(model.count, want.count)

    def test_parameters_that_change_are_seen(self):
        model, x = Mlp().eval(), torch.randn(4, 16)
        compiled = torch.compile(model, backend="npu")
        with torch.no_grad():
            for _ in range(4):
                self.agree(self.silent(lambda: compiled(x)), model(x))
                model.up.weight.mul_(0.5)
            model.load_state_dict(Mlp().state_dict())
            self.agree(self.silent(lambda: compiled(x)), model(x))

    def test_floats_that_change(self):
        compiled = torch.compile(lambda x, t: (x * t).sin() + t, backend="npu")
        x = torch.ones(4)
        for t in (0.5, 1.5, 2.5, -0.0, 0.0):
            self.agree(self.silent(lambda: compiled(x, t)), (x * t).sin() + t)
        self.assertEqual(len(self.fresh()), 5)
        with self.assertWarnsRegex(npu.UnsupportedWarning, "more than 8 values"):
            for t in range(20):
                self.agree(compiled(x, t + 0.25), (x * (t + 0.25)).sin() + t + 0.25)

    def test_open_shapes(self):
        model = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16)).eval()
        compiled = torch.compile(model, backend="npu", dynamic=True)
        for rows in (2, 3):
            x = torch.randn(rows, 8)
            with torch.no_grad():
                self.agree(self.silent(lambda: compiled(x)), model(x))
        self.assertTrue(self.fresh())

    def test_recurrent(self):
        x = torch.randn(2, 5, 8)
        for kind in (nn.LSTM, nn.GRU, nn.RNN):
            model = kind(8, 12, batch_first=True).eval()
            compiled = torch.compile(model, backend="npu")
            with torch.no_grad():
                self.agree(self.silent(lambda: compiled(x)), model(x))
            self.assertTrue(self.fresh())
            self.last = self.fresh()[-1]._number

    def test_cells(self):
        for kind in (nn.LSTMCell, nn.GRUCell, nn.RNNCell):
            for bias in (True, False):
                model = kind(8, 12, bias=bias).eval()
                compiled = torch.compile(model, backend="npu")
                x = torch.randn(3, 8)
                with torch.no_grad():
                    self.agree(self.silent(lambda: compiled(x)), model(x))
        self.assertTrue(self.fresh())

    def test_encoder_layer(self):
        x = torch.randn(2, 5, 16)
        for first in (False, True):
            for activation in ("relu", "gelu"):
                model = nn.TransformerEncoderLayer(
                    16, 4, 24, batch_first=True, norm_first=first, activation=activation
                ).eval()
                for parameter in model.parameters():
                    nn.init.normal_(parameter, std=0.3)
                compiled = torch.compile(model, backend="npu")
                with torch.no_grad():
                    self.agree(self.silent(lambda: compiled(x)), model(x))
        self.assertTrue(self.fresh())

    def test_strided_inputs(self):
        model = Mlp().eval()
        compiled = torch.compile(model, backend="npu")
        with torch.no_grad():
            for x in (torch.randn(16, 4).t(), torch.randn(4, 32)[:, ::2], torch.randn(16).expand(3, 16)):
                self.agree(self.silent(lambda: compiled(x)), model(x))

    def test_inference_mode(self):
        model, x = Mlp().eval(), torch.randn(4, 16)
        compiled = torch.compile(model, backend="npu")
        with torch.inference_mode():
            self.agree(self.silent(lambda: compiled(x)), model(x))

    def test_modes_and_options(self):
        model, x = Mlp().eval(), torch.randn(4, 16)
        with torch.no_grad():
            for mode in ("default", "reduce-overhead", "max-autotune"):
                torch._dynamo.reset()
                compiled = torch.compile(model, backend="npu", mode=mode)
                self.agree(self.silent(lambda: compiled(x)), model(x))
            compiled = torch.compile(model, backend="npu", options={"target": "edge", "dtype": "f16"})
            torch._dynamo.reset()
            self.agree(self.silent(lambda: compiled(x)), model(x), 0.02)
        program = npu.programs()[-1]
        self.assertEqual((program.target, program.outputs[0].dtype), ("edge", "f16"))
        self.assertEqual(program.outputs[0].model_dtype, "f32")

    def test_wrong_modes_and_options(self):
        for words, text in (
            ({"mode": "fast"}, "reduce-overhead"),
            ({"options": {"speed": 1}}, "dtype"),
            ({"options": "target=edge"}, "expected a dict"),
            ({"options": {"target": "nope"}}, "'nope' is neither a target nor a file; targets: tiny"),
            ({"options": {"target": 3}}, "a preset or the path"),
            ({"options": {"target": "/missing.yaml"}}, "No such file"),
            ({"options": {"dtype": "f99"}}, "expected auto, f32"),
            ({"options": {"opt": 7}}, "-O7"),
            ({"options": {"opt": True}}, "expected 0 to 3"),
            ({"options": {"fallback": "no"}}, "True or False"),
            ({"options": {"options": "--set x=1"}}, "a list of words"),
            ({"options": {"options": ["--set", 1]}}, "a list of words"),
            ({"options": {"options": ["--set", "x=1"]}}, "no parameter 'x'"),
            ({"options": {"options": ["--set", "dram.channels=0"]}}, "out of range: 1 to 128"),
            ({"options": {"options": ["--nothing"]}}, "nothing"),
            ({"options": {"options": ["--shape=x=4"]}}, "shapes are fixed"),
        ):
            torch._dynamo.reset()
            compiled = torch.compile(lambda x: x.t() + 1, backend="npu", **words)
            for _ in range(2):
                with self.subTest(words), self.assertRaisesRegex(npu.UsageError, text):
                    self.silent(lambda: compiled(torch.randn(4, 16)))


class Training(Case):
    def test_forward_on_the_npu_gradients_from_eager(self):
        model, x = Mlp().eval(), torch.randn(4, 16)
        want = copy.deepcopy(model)
        compiled = torch.compile(model, backend="npu")
        got = self.silent(lambda: compiled(x))  # grad mode is on, as it is by default
        self.assertEqual(len(self.fresh()), 1)
        self.assertTrue(got.requires_grad)
        _, caught = self.warned(lambda: got.square().sum().backward())
        self.assertIn("training", str(caught[0].message))
        want(x).square().sum().backward()
        for a, b in zip(model.parameters(), want.parameters()):
            torch.testing.assert_close(a.grad, b.grad, atol=1e-4, rtol=1e-4)

    def test_dropout_and_input_gradients(self):
        class Drops(Mlp):
            def forward(self, x):
                return F.dropout(super().forward(x), 0.5, self.training)

        model = Drops().train()
        _, caught = self.warned(lambda: torch.compile(model, backend="npu")(torch.randn(4, 16)).sum().backward())
        self.assertIn("training", str(caught[0].message))
        self.assertIsNotNone(model.up.weight.grad)
        x = torch.randn(4, 16, requires_grad=True)
        _, caught = self.warned(lambda: torch.compile(Mlp(), backend="npu")(x).sum().backward())
        self.assertIn("an input requires gradients", str(caught[0].message))
        self.assertIsNotNone(x.grad)

    def test_random_numbers_are_those_of_the_forward_pass(self):
        class Noisy(nn.Module):
            def __init__(self):
                super().__init__()
                self.up = nn.Linear(4, 4)

            def forward(self, x):
                return self.up(x).exp() * torch.rand_like(x)

        model = Noisy()
        x = torch.randn(2, 4)
        torch.manual_seed(0)
        model(x).sum().backward()
        want, after = model.up.bias.grad.clone(), torch.rand(1)
        model.zero_grad()
        compiled = torch.compile(model, backend="npu")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", npu.UnsupportedWarning)
            torch.manual_seed(0)
            compiled(x).sum().backward()
        self.agree(model.up.bias.grad, want)
        self.agree(torch.rand(1), after)

    def test_a_loop_learns(self):
        model, data = Mlp(), torch.randn(8, 16)
        compiled = torch.compile(model, backend="npu")
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        losses = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", npu.UnsupportedWarning)
            for _ in range(6):
                optimizer.zero_grad()
                loss = (compiled(data) - 1).square().mean()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        self.assertLess(losses[-1], losses[0])


class Scope(Case):
    """What of torch is changed, and for how long."""

    def test_recurrent_modules_are_allowed_for_npu_alone(self):
        self.assertFalse(torch._dynamo.config.allow_rnn)
        model, x, seen = nn.GRU(4, 4).eval(), torch.randn(3, 1, 4), []

        def other(gm, _):
            seen.append(torch._dynamo.config.allow_rnn)
            return gm

        with torch.no_grad():
            got = self.silent(lambda: torch.compile(model, backend="npu")(x))
            self.agree(got, model(x))
            self.assertEqual(len(self.fresh()), 1)
            self.assertFalse(torch._dynamo.config.allow_rnn)
            torch.compile(lambda y: y * 2, backend=other)(x)
        self.assertEqual(seen, [False])

    def test_either_import_comes_first(self):
        for order in ("import npu, torch", "import torch, npu"):
            code = (
                f"{order}\nf = torch.compile(lambda x: x * 2 + 1, backend='npu')\n"
                "x = torch.ones(3)\nassert f(x).tolist() == [3.0] * 3\n"
                "assert len(npu.programs()) == 1\n"
            )
            run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr)


class Example(Case):
    def test_runs(self):
        """The program of docs/how-to/python.md."""
        run = subprocess.run(
            [sys.executable, ROOT / "examples" / "torch_compile.py"], capture_output=True, text=True
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("layers.0.up, torch_compile.py:", run.stdout)
        self.assertIn("in layers.1: complex64", run.stderr)


class Tensors(Case):
    def test_torch_is_not_copied(self):
        from npu import tensors

        x = torch.randn(3, 4)
        self.assertEqual(tensors.source(x).pointer, x.data_ptr())
        for dtype in (torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.bool, torch.uint8):
            s = tensors.source(torch.zeros(2, 3, dtype=dtype))
            self.assertEqual(getattr(torch, s.dtype.torch), dtype)
        with self.assertRaisesRegex(npu.UsageError, "complex"):
            tensors.source(torch.zeros(2, dtype=torch.complex64))


if __name__ == "__main__":
    main()
