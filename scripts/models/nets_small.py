# SPDX-License-Identifier: Apache-2.0
"""A vision transformer and a recurrent audio network, both small."""
import torch
import torch.nn as nn
import torch.nn.functional as F

import seeds


class TinyViT(nn.Module):
    """image [N,3,64,64] -> logits [N,10]: class token, learned positions, 17 tokens."""

    def __init__(self, size=64, patch=16, d=96, layers=2, heads=3, classes=10, seed=22):
        super().__init__()
        n = (size // patch) ** 2
        self.patch = nn.Conv2d(3, d, patch, patch)
        self.cls, self.pos = nn.Parameter(torch.zeros(1, 1, d)), nn.Parameter(torch.zeros(1, n + 1, d))
        self.layers = nn.ModuleList([self.layer(d) for _ in range(layers)])
        self.norm, self.classifier, self.h, self.d = nn.LayerNorm(d), nn.Linear(d, classes), heads, d
        seeds.seed_weights(self, seed, residual_layers=layers, head_gain=4.0)

    @staticmethod
    def layer(d):
        return nn.ModuleDict(dict(n1=nn.LayerNorm(d), qkv=nn.Linear(d, 3 * d), to_out=nn.Linear(d, d), n2=nn.LayerNorm(d),
                                  fc1=nn.Linear(d, 4 * d), fc2=nn.Linear(4 * d, d)))

    def forward(self, image):
        x = self.patch(image).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls.expand(x.shape[0], -1, -1), x), 1) + self.pos
        b, t, _ = x.shape
        for layer in self.layers:
            q, k, v = layer["qkv"](layer["n1"](x)).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4).unbind(0)
            a = F.scaled_dot_product_attention(q, k, v)
            x = x + layer["to_out"](a.transpose(1, 2).reshape(b, t, self.d))
            x = x + layer["fc2"](F.gelu(layer["fc1"](layer["n2"](x))))
        return self.classifier(self.norm(x)[:, 0])


class AudioNet(nn.Module):
    """frames [1,T,40], h0, c0 -> probability per frame, h, c: convolutions, a GRU both ways, an LSTM with its state."""

    FEATURES, HIDDEN, FRAMES = 40, 32, 64

    def __init__(self, channels=48, seed=21):
        super().__init__()
        f, h = self.FEATURES, self.HIDDEN
        self.c1, self.c2 = nn.Conv1d(f, channels, 3, padding=1), nn.Conv1d(channels, channels, 5, stride=2, padding=2)
        self.gru = nn.GRU(channels, h, batch_first=True, bidirectional=True)
        self.lstm = nn.LSTM(2 * h, h, batch_first=True)
        self.fc_out = nn.Linear(h, 1)
        self.gru._gain = self.lstm._gain = 1.5
        seeds.seed_weights(self, seed, head_gain=4.0)

    @classmethod
    def inputs(cls, k):
        return [seeds.tensor(400 + k, 1, cls.FRAMES, cls.FEATURES), seeds.tensor(410 + k, 1, 1, cls.HIDDEN, deviation=.3),
                seeds.tensor(420 + k, 1, 1, cls.HIDDEN, deviation=.3)]

    def forward(self, frames, h0, c0):
        x = F.relu(self.c1(frames.transpose(1, 2)))
        x = F.relu(self.c2(x)).transpose(1, 2)
        x, _ = self.gru(x)
        x, (h, c) = self.lstm(x, (h0, c0))
        return torch.sigmoid(self.fc_out(x)), h, c
