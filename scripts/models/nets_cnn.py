# SPDX-License-Identifier: Apache-2.0
"""Convolutional networks: ResNet, MobileNet, a small U-Net."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

import seeds


def conv(i, o, k, stride=1, groups=1, gain=math.sqrt(2.0)):
    c = nn.Conv2d(i, o, k, stride, k // 2, groups=groups, bias=False)
    c._gain = gain
    return c


def norm(channels, gamma=1.0):
    b = nn.BatchNorm2d(channels)
    b._gamma = gamma
    return b


class Bottleneck(nn.Module):
    """A residual block; basic: two 3x3 convolutions, else 1x1, 3x3, 1x1."""

    def __init__(self, i, mid, o, stride, basic=False):
        super().__init__()
        if basic:
            self.body = nn.Sequential(conv(i, mid, 3, stride), norm(mid), nn.ReLU(), conv(mid, o, 3), norm(o, 0.5))
        else:
            self.body = nn.Sequential(conv(i, mid, 1), norm(mid), nn.ReLU(), conv(mid, mid, 3, stride), norm(mid),
                                      nn.ReLU(), conv(mid, o, 1), norm(o, 0.5))
        changes = stride != 1 or i != o
        self.down = nn.Sequential(conv(i, o, 1, stride, gain=1.0), norm(o)) if changes else None
        self.act = nn.ReLU()

    def forward(self, x):
        y = self.body(x)
        return self.act(y + (x if self.down is None else self.down(x)))


class ResNet(nn.Module):
    """x [N,3,H,W] -> logits. ResNet v1.5, the stride in the 3x3; layers (3,4,6,3) and width 64 is resnet50."""

    def __init__(self, layers=(3, 4, 6, 3), width=64, classes=1000, basic=False, imagenet=True, seed=2):
        super().__init__()
        expansion = 1 if basic else 4
        if imagenet:
            self.stem = nn.Sequential(conv(3, width, 7, 2), norm(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        else:
            self.stem = nn.Sequential(conv(3, width, 3, 1), norm(width), nn.ReLU())
        blocks, i = [], width
        for stage, count in enumerate(layers):
            mid = width << stage
            for b in range(count):
                blocks.append(Bottleneck(i, mid, mid * expansion, 2 if b == 0 and stage > 0 else 1, basic))
                i = mid * expansion
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(i, classes)
        seeds.seed_weights(self, seed, head_gain=4.0)

    def forward(self, x):
        return self.classifier(torch.flatten(self.pool(self.blocks(self.stem(x))), 1))


class InvertedResidual(nn.Module):
    """Widen, depthwise, narrow; the input added when it fits."""

    def __init__(self, i, o, stride, expansion):
        super().__init__()
        h = i * expansion
        body = [conv(i, h, 1), norm(h), nn.ReLU6()] if expansion != 1 else []
        body += [conv(h, h, 3, stride, groups=h), norm(h), nn.ReLU6(), conv(h, o, 1, gain=1.4), norm(o, 0.8)]
        self.body = nn.Sequential(*body)
        self.res = stride == 1 and i == o

    def forward(self, x):
        return x + self.body(x) if self.res else self.body(x)


class MobileNet(nn.Module):
    """x [N,3,H,W] -> logits. MobileNetV2; rows of the configuration: expansion, channels, blocks, first stride."""

    V2 = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))

    def __init__(self, rows=V2, classes=1000, last=1280, seed=3):
        super().__init__()
        i = 32
        features = [conv(3, i, 3, 2), norm(i), nn.ReLU6()]
        for expansion, channels, blocks, stride in rows:
            for b in range(blocks):
                features.append(InvertedResidual(i, channels, stride if b == 0 else 1, expansion))
                i = channels
        features += [conv(i, last, 1), norm(last), nn.ReLU6()]
        self.features = nn.Sequential(*features)
        self.classifier = nn.Linear(last, classes)
        seeds.seed_weights(self, seed, head_gain=4.0)

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))


class UNet(nn.Module):
    """x [N,1,H,W] -> mask: dilated, grouped and transposed convolutions, skip concat, resize, InstanceNorm, PReLU."""

    def __init__(self, c=12, seed=25):
        super().__init__()
        self.e1, self.e2 = nn.Conv2d(1, c, 3, padding=1), nn.Conv2d(c, 2 * c, 3, stride=2, padding=1)
        self.mid = nn.Conv2d(2 * c, 2 * c, 3, padding=2, dilation=2)
        self.norm, self.pr = nn.InstanceNorm2d(2 * c, affine=True), nn.PReLU(2 * c)
        self.up = nn.ConvTranspose2d(2 * c, c, 4, stride=2, padding=1)
        self.d1, self.conv_out = nn.Conv2d(2 * c, c, 3, padding=1, groups=2), nn.Conv2d(c, 1, 1)
        seeds.seed_weights(self, seed)

    def forward(self, x):
        a = F.leaky_relu(self.e1(x), 0.1)
        b = self.pr(self.norm(self.mid(F.avg_pool2d(self.e2(a), 3, 1, 1))))
        u = F.interpolate(self.up(b), size=a.shape[2:], mode="bilinear", align_corners=False)
        return torch.sigmoid(self.conv_out(F.elu(self.d1(torch.cat((a, u), 1)))))
