# SPDX-License-Identifier: Apache-2.0
"""One call of every class of dispatch, and two small models, in torch. Tensors are so small that the call itself is what is
measured: on a device that works beside the host nothing waits for it, and on the host's own processor computing is little."""
import torch
import torch.nn.functional as F


def calls(device, dtype):
    """class -> a function without arguments that makes the call."""
    def t(*shape):
        return torch.rand(*shape, device=device, dtype=dtype)

    x, w, bias = t(16, 64), t(64, 64), t(64)
    image, filters, stats = t(1, 8, 8, 8), t(8, 8, 3, 3), t(8)
    q = t(1, 2, 16, 32)
    ids, rows = torch.arange(16, device=device), t(32, 64)
    return {
        "linear": lambda: F.linear(x, w, bias),
        "matmul": lambda: torch.matmul(x, w),
        "add": lambda: x + x,
        "mul": lambda: x * x,
        "gelu": lambda: F.gelu(x),
        "silu": lambda: F.silu(x),
        "relu": lambda: F.relu(x),
        "softmax": lambda: torch.softmax(x, -1),
        "layer_norm": lambda: F.layer_norm(x, (64,), bias, bias),
        "sdpa": lambda: F.scaled_dot_product_attention(q, q, q),
        "transpose_contiguous": lambda: x.transpose(0, 1).contiguous(),
        "reshape_view": lambda: x.view(64, 16),
        "cat": lambda: torch.cat((x, x), -1),
        "embedding": lambda: F.embedding(ids, rows),
        "conv2d": lambda: F.conv2d(image, filters, padding=1),
        "batch_norm": lambda: F.batch_norm(image, stats, stats, stats, stats),
        "max_pool2d": lambda: F.max_pool2d(image, 2),
        "mean": lambda: x.mean(-1),
        "cast": lambda: x.to(torch.float64 if dtype != torch.float64 else torch.float32),
    }


class Encoder(torch.nn.Module):
    """Layers of attention and a feed-forward part: products, norms, elementwise calls, views."""

    def __init__(self, layers=6, d=64):
        super().__init__()
        new = lambda i, o: torch.nn.ModuleList(torch.nn.Linear(i, o) for _ in range(layers))  # noqa: E731
        self.qkv, self.out, self.up, self.down = new(d, 3 * d), new(d, d), new(d, 4 * d), new(4 * d, d)
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(d) for _ in range(2 * layers))

    def forward(self, x):
        n, d = x.shape
        for i, qkv in enumerate(self.qkv):
            q, k, v = qkv(self.norms[2 * i](x)).view(n, 3, 2, d // 2).unbind(1)
            a = F.scaled_dot_product_attention(q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1))
            x = x + self.out[i](a.transpose(0, 1).reshape(n, d))
            x = x + self.down[i](F.gelu(self.up[i](self.norms[2 * i + 1](x))))
        return x


class Residual(torch.nn.Module):
    """Blocks of convolution, normalisation and relu with a sum around them."""

    def __init__(self, blocks=8, channels=8):
        super().__init__()
        conv = lambda: torch.nn.Conv2d(channels, channels, 3, padding=1, bias=False)  # noqa: E731
        self.convs = torch.nn.ModuleList(conv() for _ in range(2 * blocks))
        self.norms = torch.nn.ModuleList(torch.nn.BatchNorm2d(channels) for _ in range(2 * blocks))

    def forward(self, x):
        for i in range(0, len(self.convs), 2):
            y = F.relu(self.norms[i](self.convs[i](x)))
            x = F.relu(x + self.norms[i + 1](self.convs[i + 1](y)))
        return x


def models(device, dtype):
    """name -> (module, arguments)."""
    make = {"encoder": (Encoder(), (16, 64)), "residual": (Residual(), (1, 8, 8, 8))}
    return {name: (m.to(device, dtype).eval(), (torch.rand(*shape, device=device, dtype=dtype),))
            for name, (m, shape) in make.items()}
