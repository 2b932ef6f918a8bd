#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""npu.compile(exported program) against eager mode."""
import copy
import tempfile
from pathlib import Path

from torch_support import Case, Mlp
import torch
from torch import nn

import npu
from support import main


class Exported(Case):
    def test_program_is_called_as_the_model_is(self):
        class Pairs(Mlp):
            def forward(self, pair, scale=None):
                y = super().forward(pair["a"]) + pair["b"]
                return {"y": y if scale is None else y * scale, "list": [y, pair["b"] * 2]}

        model = Pairs().eval()
        pair = {"a": torch.randn(4, 16), "b": torch.randn(4, 16)}
        scale = torch.tensor(2.0)
        exported = torch.export.export(model, (pair,), {"scale": scale})
        with torch.no_grad(), npu.compile(exported, target="tiny", dtype="f32") as program:
            want = model(pair, scale=scale)
            got = program(pair, scale=scale)
            self.assertEqual(set(got), {"y", "list"})
            self.agree(got, want)
            arrays = {k: v.numpy() for k, v in pair.items()}
            self.assertEqual(type(program(arrays, scale=scale.numpy())["y"]).__module__, "numpy")
            with self.assertRaisesRegex(npu.UsageError, "inputs"):
                program(pair["a"])

    def test_keyword_for_a_positional_argument(self):
        model, x = Mlp().eval(), torch.randn(4, 16)
        with torch.no_grad():
            program = npu.compile(torch.export.export(model, (x,)), dtype="f32")
            self.agree(program(x=x), model(x))
            with self.assertRaisesRegex(npu.UsageError, "input 'x' is None"):
                program(None)

    def test_arguments_that_are_no_tensors(self):
        class Plain(nn.Module):
            def forward(self, x, use_cache=False, scale=2.5, mode="a", mask=None):
                y = x * scale if mode == "a" else x
                return (y, x) if use_cache else y

        x = torch.randn(3)
        exported = torch.export.export(Plain(), (x, False, 2.5), {"mode": "a", "mask": None})
        for form in (exported, exported.run_decompositions()):
            program = npu.compile(form)
            self.assertEqual([t.name for t in program.inputs], ["x"])
            self.agree(program(x, False, 2.5, mode="a", mask=None), x * 2.5)
            for scale, mode, text in ((2.0, "a", "'scale' is 2.0, .* with 2.5"), (2.5, "b", "'mode'")):
                with self.assertRaisesRegex(npu.UsageError, text):
                    program(x, False, scale, mode=mode, mask=None)

    def test_open_sizes(self):
        model = Mlp().eval()
        rows = torch.export.Dim("rows", min=2, max=64)
        exported = torch.export.export(model, (torch.randn(8, 16),), dynamic_shapes={"x": {0: rows}})
        with torch.no_grad():
            program = npu.compile(exported, shapes={"x": (5, 16)})
            x = torch.randn(5, 16)
            self.agree(program(x), model(x))
        with self.assertRaises(npu.Error):
            npu.compile(exported, shapes={"x": (65, 16)})

    def test_results_that_are_sizes(self):
        class Sizes(nn.Module):
            def forward(self, x):
                return {"y": x + 1, "n": x.shape[0], "three": x.shape[0] * 3, "four": 4}

        rows = torch.export.Dim("rows", min=2, max=64)
        exported = torch.export.export(Sizes(), (torch.ones(6, 4),), dynamic_shapes={"x": {0: rows}})
        program, x = npu.compile(exported, shapes={"x": (5, 4)}), torch.ones(5, 4)
        for given in (x, x.numpy()):
            got = program(given)
            self.assertEqual([got[k] for k in ("n", "three", "four")], [5, 15, 4])
            self.assertEqual({type(got[k]) for k in ("n", "three", "four")}, {int})
        self.agree(program(x), Sizes()(x))

    def test_buffers_are_states(self):
        class Cache(nn.Module):
            def __init__(self):
                super().__init__()
                self.key = nn.Linear(4, 4)
                self.register_buffer("cache", torch.zeros(1, 8, 4))

            def forward(self, x, at):
                self.cache.index_copy_(1, at, self.key(x))
                return self.cache.sum(1), {"mean": x.mean()}

        model = Cache().eval()
        plain = torch.export.export(model, (torch.randn(1, 1, 4), torch.tensor([0])))
        for exported in (plain, plain.run_decompositions()):
            program, want = npu.compile(exported), copy.deepcopy(model)
            self.assertEqual(list(program.states), ["cache"])
            for i in range(3):
                x, at = torch.randn(1, 1, 4), torch.tensor([i])
                with torch.no_grad():
                    self.agree(program(x, at), want(x, at))
            self.agree(program.states.read("cache", "torch"), want.cache)
            self.assertEqual(program.states.read("cache", "numpy").shape, (1, 8, 4))
            full = program.states["cache"]
            program(x, torch.tensor([8]))  # behind the end: nothing is written
            self.agree(program.states["cache"], full)
            program.states.reset()
            self.agree(program.states["cache"], torch.zeros(1, 8, 4))
            program.states["cache"] = torch.ones(1, 8, 4)
            got = program(x.numpy(), at.numpy())
            self.assertEqual(type(got[0]).__module__, "numpy")
            with self.assertRaisesRegex(npu.UsageError, "state 'cache'"):
                program.states["cache"] = torch.ones(8, 4)

    def test_a_parameter_that_changes_is_a_state(self):
        class Doubles(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(3))

            def forward(self, x):
                self.scale.mul_(2)
                return x * self.scale

        with torch.no_grad():
            program = npu.compile(torch.export.export(Doubles(), (torch.ones(3),)))
        self.assertEqual(list(program.states), ["scale"])
        for i in range(1, 4):
            self.agree(program(torch.ones(3)), torch.full((3,), 2.0**i))

    def test_a_state_may_be_called_like_an_input(self):
        class Adds(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("total", torch.ones(3))

            def forward(self, total):
                self.total.add_(total)
                return self.total * 2

        program = npu.compile(torch.export.export(Adds(), (torch.ones(3),)))
        self.assertEqual([t.name for t in program.inputs], ["total"])
        self.assertEqual(list(program.states), ["total"])
        for i in range(2, 4):
            self.agree(program(torch.ones(3)), torch.full((3,), 2.0 * i))
        self.agree(program.states["total"], torch.full((3,), 3.0))

    def test_inputs_are_changed(self):
        class Adds(nn.Module):
            def forward(self, x, y):
                x.add_(y)
                return x * 2, y

        exported = torch.export.export(Adds(), (torch.zeros(3), torch.ones(3)))
        program = npu.compile(exported)
        x, y = torch.zeros(3), torch.ones(3)
        self.agree(program(x, y), (torch.full((3,), 2.0), y))
        self.agree(x, torch.ones(3))
        x = x.numpy()
        program(x, y.numpy())
        self.assertEqual(x.tolist(), [2.0] * 3)

    def test_a_module_is_not_exported(self):
        with self.assertRaisesRegex(TypeError, "torch.export.export"):
            npu.compile(Mlp())

    def test_training_mode_is_refused(self):
        x = torch.randn(2, 3, 4, 4)
        norm, own = nn.BatchNorm2d(3), nn.BatchNorm2d(3, track_running_stats=False).eval()
        for model in (norm, nn.Dropout(0.5)):
            exported = torch.export.export(model.train(), (x,))
            for form in (exported, exported.run_decompositions()):
                with self.assertRaisesRegex(npu.UnsupportedError, r"training mode.*eval\(\)"):
                    npu.compile(form)
        exported = torch.export.export(own, (x,))  # its statistics are the batch's in any mode
        for form in (exported, exported.run_decompositions()):
            with torch.no_grad():
                self.agree(npu.compile(form)(x), own(x))

    def test_loops_whose_turns_are_not_known(self):
        from torch._higher_order_ops.while_loop import while_loop

        class Loop(nn.Module):
            def forward(self, x, n):
                return while_loop(
                    lambda i, x, n: i < n, lambda i, x, n: (i + 1, x * 2, n.clone()),
                    (torch.tensor(0), x, n),
                )  # fmt: skip

        exported = torch.export.export(Loop(), (torch.ones(3), torch.tensor(3)))
        with self.assertRaisesRegex(npu.UnsupportedError, "depends on the inputs, and the loop is unrolled"):
            npu.compile(exported)

    def test_infinities_become_the_largest_numbers(self):
        class Finite(nn.Module):
            def forward(self, x):
                return torch.nan_to_num(x), torch.nan_to_num(x, 1.0, neginf=-5.0)

        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            x = torch.tensor([float("inf"), -float("inf"), float("nan"), 2.0], dtype=dtype)
            exported = torch.export.export(Finite(), (x,))
            for form in (exported, exported.run_decompositions()):
                for got, want in zip(npu.compile(form)(x), Finite()(x)):
                    self.assertTrue(torch.equal(got, want), (got, want))

    def test_files_that_are_no_archives(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.pt2"
            for content in (b"a", b"graph text", b"\x08\x09"):
                path.write_bytes(content)
                with self.assertRaisesRegex(npu.BadInputError, "x.pt2 is no zip archive, as torch.export.save"):
                    npu.compile(path)

    def test_integers_that_would_be_rounded_are_refused(self):
        def refused(text, f, *args):
            class Model(nn.Module):
                def forward(self, *args):
                    return f(*args)

            with self.assertRaisesRegex(npu.UnsupportedError, text):
                npu.compile(torch.export.export(Model(), args))

        x = torch.ones(4, 4, dtype=torch.int64)
        refused("a power that is computed", lambda x: x**x, x)
        refused("a power that is computed", lambda x: 2**x, x)
        refused("operand 0 is i64", lambda x: torch.einsum("ij,jk->ik", x, x), x)
        refused("is i64; expected floats or i8", lambda x: nn.functional.linear(x, x), x)
        refused("windows of i64", lambda x: nn.functional.max_pool2d(x[None], 2), x)
        y = torch.ones(128, 128, dtype=torch.int32)
        refused("more than 1048576 multiplications", lambda y: y @ y, y)

    def test_errors_do_not_name_the_temporary_file(self):
        class Svd(nn.Module):
            def forward(self, x):
                return torch.linalg.qr(x).Q

        exported = torch.export.export(Svd(), (torch.randn(4, 4),))
        with self.assertRaises(npu.UnsupportedError) as caught:
            npu.compile(exported)
        self.assertIn("linalg_qr", caught.exception.text)
        self.assertNotIn("/tmp/", caught.exception.text)


if __name__ == "__main__":
    main()
