# SPDX-License-Identifier: Apache-2.0
"""One line from PyTorch: a small network on the NPU, what it cost, and what stays in eager mode.

    pip install ./runtime/python && python3 examples/torch_compile.py
"""
import torch
from torch import nn

import npu


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(64)
        self.up, self.down = nn.Linear(64, 256), nn.Linear(256, 64)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class Mix(nn.Module):
    def forward(self, x):
        return x + torch.fft.fft2(x).real


class Net(nn.Module):
    def __init__(self, *middle):
        super().__init__()
        self.layers = nn.ModuleList([Block(), *middle, Block()])
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


torch.manual_seed(0)
model, x = Net().eval(), torch.randn(1, 32, 64)

with torch.no_grad():
    compiled = torch.compile(model, backend="npu", options={"target": "edge", "dtype": "f16"})
    print(f"furthest from eager mode: {(compiled(x) - model(x)).abs().max():.4f}")

    program = npu.programs()[-1]
    report = program.report()
    print(program)
    print(f"{report['cycles']} cycles, {report['time_us']} us")
    for layer in report["layers"]:
        print(f"{layer['cycles']:6}  {layer['kernel']:15} {layer['name']}")

    mixed = Net(Mix()).eval()
    print(f"with a transform: {(torch.compile(mixed, backend='npu')(x) - mixed(x)).abs().max():.4f}")
