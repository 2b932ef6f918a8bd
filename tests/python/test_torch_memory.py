#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Results of torch.compile(backend="npu") lie where eager mode has them: views, strides, storages."""
import copy

from torch_support import Case, Mlp
import torch
from torch import nn

import npu
from support import main


def tensors(values):
    return [v for v in values if isinstance(v, torch.Tensor)]


def storage(x):
    return x.untyped_storage().data_ptr()


def places(values):
    """Of each tensor: how it lies, which of the others it is and which are in its storage."""
    return [
        (
            x.shape, x.stride(), x.storage_offset(), x.untyped_storage().nbytes(), x.requires_grad,
            [i for i, y in enumerate(values) if y is x],
            [i for i, y in enumerate(values) if storage(y) == storage(x)],
        )
        for x in values
    ]  # fmt: skip


class Places(Case):
    def same(self, model, *inputs, silent=True, **options):
        """Compiled and eager agree in values and places, also after each tensor is changed."""
        torch._dynamo.reset()
        seen = []
        for compiled in (False, True):
            mine, given = copy.deepcopy((model, inputs))
            call = torch.compile(mine, backend="npu", **options) if compiled else mine
            if silent:
                results = self.silent(lambda: call(*given))
            else:
                results, _ = self.warned(lambda: call(*given))
            results = list(results) if isinstance(results, (tuple, list)) else [results]
            state = [*mine.state_dict(keep_vars=True).values()] if isinstance(mine, nn.Module) else []
            everything = tensors([*given, *state, *results])
            lie, values = places(everything), [x.detach().clone() for x in everything]
            for i, x in enumerate(everything):
                if x.is_floating_point() and not x.requires_grad and x.numel():
                    x[(0,) * x.dim()].add_(i + 1.0)
            after = [x.detach().clone() for x in everything]
            seen.append((lie, values, after, [r for r in results if not isinstance(r, torch.Tensor)]))
        (want_lie, want, want_after, want_rest), (lie, got, after, rest) = seen
        self.assertEqual(lie, want_lie)
        self.assertEqual(rest, want_rest)
        self.agree(got, want)
        self.agree(after, want_after)

    def all_same(self, *functions, inputs=None):
        inputs = inputs or (torch.randn(4, 6),)
        for i, f in enumerate(functions):
            with self.subTest(i), torch.no_grad():
                self.same(f, *inputs)

    def test_views_of_inputs(self):
        self.all_same(
            lambda x: x.t(),
            lambda x: (x.t(), x * 2),
            lambda x: (x, x.view(-1), x.reshape(3, 8) + 1),
            lambda x: (x[1:, ::2], x[:, 0], x.select(1, 2), x[2:2]),
            lambda x: (x.expand(3, 4, 6), x.unsqueeze(1), x * 2),
            lambda x: (*x.chunk(2, -1), *x.split(3), *x.unbind(0), x + 1),
            lambda x: (x.detach(), x.contiguous(), x.float(), x.clone(), x.t().contiguous()),
            lambda x: (x.view(torch.int32), x.view(torch.int16), x + 1),
        )

    def test_inputs_that_are_views(self):
        base = torch.randn(9, 12)
        for x in (base.t(), base[2:6], base[1:7:2, 3:9], base[0].expand(4, 12)):
            self.all_same(
                lambda x: (x.t(), x[1:, 1:], x.relu()),
                lambda x: (x.contiguous(), x.reshape(-1), x * 2, x.t() * 2),
                inputs=(x,),
            )

    def test_views_of_results(self):
        self.all_same(
            lambda x: (lambda y: (y, y, y.t()))(x + 1),
            lambda x: (lambda y: (y[1:], y[1], y[2].unsqueeze(0)))(x * 2),
            lambda x: (lambda y: (y.detach(), y.view(-1), y))(x * 2),
            lambda x: (x * 2).chunk(2, -1),
            lambda x: torch.stack([x, x.relu()], -1).unbind(-1),
        )

    def test_parts_of_what_is_computed(self):
        self.all_same(
            lambda x: (x * 2)[:, -1],
            lambda x: ((x * 2)[1:3], (x * 3)[1]),
            lambda x: (x * 2).sum(0).expand(5, 6),
            lambda x: (x * 2).t(),
            lambda x: (x * 2).unfold(1, 3, 1),
            lambda x: (x.sum(), x[0, 0], (x * 2)[0, 0]),
        )

    def test_strides_of_what_is_computed(self):
        self.all_same(
            lambda x: (x.relu(), x.contiguous(), x.reshape(2, -1), x.permute(0, 2, 3, 1).contiguous()),
            lambda x: (x + x.mean(1, keepdim=True), x.sum(2, keepdim=True)),
            nn.Conv2d(8, 16, 3),
            nn.BatchNorm2d(8).eval(),
            nn.MaxPool2d(2),
            inputs=(torch.randn(2, 8, 5, 5).to(memory_format=torch.channels_last),),
        )
        self.all_same(
            lambda q: torch.nn.functional.scaled_dot_product_attention(q, q, q),
            nn.Linear(8, 5),
            inputs=(torch.randn(2, 4, 6, 8).transpose(1, 2),),
        )

    def test_what_is_no_tensor(self):
        self.all_same(lambda x: (x.shape[0], None, x * 2, torch.arange(3), 3.5, x.t()))

    def test_parameters_and_buffers(self):
        class Keeps(nn.Module):
            def __init__(self):
                super().__init__()
                self.w = nn.Parameter(torch.randn(6, 6))
                self.register_buffer("b", torch.ones(6))

            def forward(self, x):
                return x @ self.w, self.w.t(), self.b[1:], self.w.detach(), self.w, self.b, x.t()

        for record in (False, True):
            with torch.set_grad_enabled(record):
                self.same(Keeps(), torch.randn(4, 6))

    def test_changed_buffers_and_inputs(self):
        class Counts(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("b", torch.ones(6))

            def forward(self, x):
                self.b.add_(1)
                return x * self.b, self.b, self.b[2:]

        def change(x):
            x.add_(1)
            return x, x.t(), x * 2

        def change_alone(x):
            x.add_(1)

        def change_part(x):
            y = x.view(-1)
            y[2:5] = 7
            return y, x + 1

        def change_result(x):
            y = x * 2
            part = y[1]
            part.add_(3)
            return y, part

        with torch.no_grad():
            self.same(Counts(), torch.randn(4, 6))
        self.all_same(change, change_alone, change_part, change_result)
        self.all_same(change, change_alone, inputs=(torch.randn(8, 12)[::2, 1::2],))

    def test_swap(self):
        def swap(x, y):
            t = x.clone()
            x.copy_(y)
            y.copy_(t)
            return x - y, t

        with torch.no_grad():
            self.same(swap, torch.randn(4), torch.randn(4))

    def test_changes_through_views_that_overlap(self):
        def through(x):
            x.expand(2, 4, 6).fill_(2.0)
            return x * 1

        def windows(x):
            y = x.unfold(-1, 2, 1)
            torch._dynamo.graph_break()
            y.add_(1)
            return x

        for f in (through, windows):
            with torch.no_grad():
                self.same(f, torch.randn(4, 6), silent=False)

    def test_changes_through_data(self):
        def counted_before(x):
            y = x + 1
            y.add_(1)
            y.data.mul_(3)
            return y

        for change in (
            lambda x: x.data.add_(1),
            lambda x: (x.data.mul_(2), x + 1),
            lambda x: (x.data[0].add_(2), x)[1],
            counted_before,
        ):
            self.same(change, torch.ones(3), silent=False)
            torch._dynamo.reset()
            call = torch.compile(change, backend="npu")
            _, caught = self.warned(lambda: call(torch.ones(3)))
            self.assertIn("through its .data", str(caught[-1].message))
        self.same(lambda x: x.detach().add_(1), torch.ones(3))
        self.same(lambda x: (x.detach()[0].mul_(2), x.add_(1))[1], torch.ones(3))

    def test_after_a_graph_break(self):
        def breaks(x):
            y, z = x.t(), x * 2
            torch._dynamo.graph_break()
            y.add_(1)
            return z + x

        def keeps_parts(x):
            kept = x.relu()
            a, b = kept[:2], kept[2:]
            torch._dynamo.graph_break()
            a.add_(x[:2])
            b.sub_(x[2:])
            return kept, a @ b.t()

        with torch.no_grad():
            self.same(breaks, torch.randn(4, 6), silent=False)
            self.same(keeps_parts, torch.randn(4, 6), silent=False)
            torch._dynamo.reset()
            _, caught = self.warned(lambda: torch.compile(breaks, backend="npu")(torch.randn(4, 6)))
        self.assertIn("'y' is changed in place and shares memory with 'x'", str(caught[-1].message))

    def test_changes_of_tensors_in_one_storage(self):
        """Parts of one storage that do not meet stay on the NPU."""

        class Cache(nn.Module):
            def __init__(self):
                super().__init__()
                self.kv = torch.zeros(2, 4, 6)

            def forward(self, x):
                k, v = self.kv[0], self.kv[1]
                torch._dynamo.graph_break()
                k.add_(x)
                v.sub_(x)
                return k.t() @ v, self.kv

        with torch.no_grad():
            self.same(Cache(), torch.randn(4, 6), silent=False)
            torch._dynamo.reset()
            model = torch.compile(Cache(), backend="npu")
            _, caught = self.warned(lambda: model(torch.randn(4, 6)))
        self.assertEqual([w.category for w in caught], [npu.GraphBreakWarning])

    def test_open_shapes_and_strides(self):
        def f(x):
            return x.t(), x[1:], (x * 2).t()

        compiled = torch.compile(f, backend="npu", dynamic=True)
        for x in (torch.randn(4, 6), torch.randn(5, 7), torch.randn(7, 5).t(), torch.randn(9, 7)[2:5]):
            with torch.no_grad():
                want, got = f(x), self.silent(lambda: compiled(x))
            self.assertEqual([p[1:3] for p in places(got)], [p[1:3] for p in places(want)])
            self.assertEqual([y.data_ptr() for y in got[:2]], [y.data_ptr() for y in want[:2]])
            self.agree(got, want)

    def test_numbers_of_the_forward_pass_stay(self):
        compiled = torch.compile(lambda x: torch.rand_like(x) + x.t(), backend="npu")
        torch.manual_seed(5)
        want = torch.rand(3, 3) + torch.ones(3, 3), torch.rand(1)
        torch.manual_seed(5)
        got, _ = self.warned(lambda: compiled(torch.ones(3, 3)))
        self.agree((got, torch.rand(1)), want)


class Eager(Case):
    """Nodes that torch runs see tensors that lie as in eager mode."""

    def test_views_between(self):
        def f(x):
            y = torch.special.i0((x.t() * 2).relu())
            return y.t().view(2, 12).view(-1)[1:]

        def g(x):
            return (x * 2).as_strided((2, 2), (1, 2), 3) * 2

        def h(x):
            return (x * 2)[1:].as_strided((2, 2), (1, 2), 3) * 2

        for f, x in ((f, torch.randn(4, 6)), (g, torch.randn(4, 6).t()), (h, torch.randn(4, 6))):
            torch._dynamo.reset()
            with torch.no_grad():
                got, caught = self.warned(lambda: torch.compile(f, backend="npu")(x))
                self.agree(got, f(x))
            self.assertEqual(len(caught), 1)


class Gradients(Case):
    def test_results_that_are_views(self):
        class Views(Mlp):
            def forward(self, x):
                y = super().forward(x)
                return (*y.chunk(2, -1), y.detach(), (y * 2)[:, -1], x.t(), self.up.weight.t(), y)

        model, x = Views(), torch.randn(4, 16)
        want = copy.deepcopy(model)
        got, ours = self.silent(lambda: torch.compile(model, backend="npu")(x)), want(x)
        self.assertEqual([r.requires_grad for r in got], [r.requires_grad for r in ours])
        self.assertEqual([p[1:3] for p in places(got)], [p[1:3] for p in places(ours)])
        self.assertEqual(len({storage(got[i]) for i in (0, 1, 2, 6)}), 1)
        self.warned(lambda: sum((r * r).sum() for r in got).backward())
        sum((r * r).sum() for r in ours).backward()
        for a, b in zip(model.parameters(), want.parameters()):
            torch.testing.assert_close(a.grad, b.grad, atol=1e-3, rtol=1e-3)

    def test_inputs_of_views_may_be_changed(self):
        class Views(Mlp):
            def forward(self, x, y):
                return super().forward(x), y.t()

        model, x, y = Views(), torch.randn(4, 16), torch.randn(2, 3)
        z, t = self.silent(lambda: torch.compile(model, backend="npu")(x, y))
        t.add_(1)
        self.warned(lambda: z.sum().backward())
        got = model.down.bias.grad.clone()
        model.zero_grad()
        model(x, y)[0].sum().backward()
        torch.testing.assert_close(got, model.down.bias.grad, atol=1e-4, rtol=1e-4)

    def test_results_may_be_changed(self):
        model, x = Mlp(), torch.randn(4, 16)
        compiled = torch.compile(lambda x: (lambda y: (y, y.t()))(model(x)), backend="npu")
        y, t = self.silent(lambda: compiled(x))
        y.mul_(2)
        self.agree(t, y.t())
        self.agree(y, 2 * model(x))
        self.warned(lambda: t.sum().backward())
        got = model.down.bias.grad.clone()
        model.zero_grad()
        (2 * model(x)).sum().backward()
        torch.testing.assert_close(got, model.down.bias.grad, atol=1e-4, rtol=1e-4)


if __name__ == "__main__":
    main()
