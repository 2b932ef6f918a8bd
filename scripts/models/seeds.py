# SPDX-License-Identifier: Apache-2.0
"""Weights and inputs with the same bits on every machine.

Numbers are uniform, made by numpy's RandomState.random_sample (integer arithmetic only) from the CRC of the parameter's
name and a seed, scaled in f64 and rounded to f32 once. Scales follow the fan-in, so that activations keep their magnitude
through any depth without training. torch's own generator plays no part.
"""
import hashlib
import math
import zlib

import numpy as np
import torch
import torch.nn as nn

# Linear layers whose results are added to a residual stream: smaller, by the number of layers.
RESIDUAL = ("Wo", "o_proj", "down_proj", "to_out", "fc2")
HEADS = ("classifier", "lm_head", "fc_out")


def uniform(name, shape, seed, deviation):
    state = np.random.RandomState((zlib.crc32(name.encode()) ^ (seed * 2654435761)) & 0xFFFFFFFF)
    sample = state.random_sample(int(np.prod(shape)) if len(shape) else 1)
    reach = deviation * math.sqrt(3.0)
    return torch.from_numpy(((2 * sample - 1) * reach).astype(np.float32).reshape(shape))


def fan_in(module, parameter):
    if isinstance(module, (nn.ConvTranspose1d, nn.ConvTranspose2d)):
        return parameter.shape[0] * int(np.prod(parameter.shape[2:])) / int(np.prod(module.stride))
    return int(np.prod(parameter.shape[1:]))


def parameter_value(name, parameter, module, seed, residual_layers, head_gain):
    """A module may carry _gain (of its weights), _gamma (of a norm's scale), _param_std (of a bare parameter)."""
    leaf = name.split(".")[-1]
    owner = name.split(".")[-2] if "." in name else ""
    if isinstance(module, nn.Embedding):
        return uniform(name, parameter.shape, seed, 1.0)
    if parameter.dim() >= 2 and leaf.startswith("weight"):
        gain = getattr(module, "_gain", 1.0)
        if owner in RESIDUAL:
            gain /= math.sqrt(2.0 * residual_layers)
        if owner in HEADS:
            gain *= head_gain
        return uniform(name, parameter.shape, seed, gain / math.sqrt(fan_in(module, parameter)))
    if leaf.startswith("weight") and parameter.dim() == 1:
        return getattr(module, "_gamma", 1.0) * (1.0 + uniform(name, parameter.shape, seed, 0.1))
    if leaf.startswith("bias") and parameter.dim() == 1:
        return uniform(name, parameter.shape, seed, 0.05)
    if parameter.dim() >= 2:
        return uniform(name, parameter.shape, seed, getattr(module, "_param_std", 0.5))
    return 1.0 + uniform(name, parameter.shape, seed, 0.1)


@torch.no_grad()
def seed_weights(model, seed, residual_layers=1, head_gain=1.0):
    """Fills every parameter and the running statistics; returns the model in eval mode."""
    done = set()
    for name, parameter in model.named_parameters():
        if id(parameter) in done:
            continue
        done.add(id(parameter))
        module = model.get_submodule(name.rpartition(".")[0]) if "." in name else model
        parameter.copy_(parameter_value(name, parameter, module, seed, residual_layers, head_gain))
    for name, buffer in model.named_buffers():
        if name.endswith("running_mean"):
            buffer.copy_(uniform(name, buffer.shape, seed, 0.1))
        elif name.endswith("running_var"):
            buffer.copy_(1.0 + 0.3 * uniform(name, buffer.shape, seed, 0.5).abs())
    return model.eval()


def weights_sha256(model):
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def image(seed, *shape):
    """A smooth pseudo image: low-frequency noise enlarged twice, and fine noise; roughly in [-2, 2]."""
    state = np.random.RandomState(seed)
    n, c, h, w = shape
    out = np.zeros(shape, np.float64)
    for cells, amplitude in ((4, 1.5), (16, 0.6)):
        grid = state.random_sample((n, c, cells + 1, cells + 1)) * 2 - 1
        y, x = np.linspace(0, cells - 1e-6, h), np.linspace(0, cells - 1e-6, w)
        yi, xi = y.astype(int), x.astype(int)
        fy, fx = (y - yi)[:, None], (x - xi)[None, :]
        out += amplitude * (grid[:, :, yi][:, :, :, xi] * (1 - fy) * (1 - fx)
                            + grid[:, :, yi + 1][:, :, :, xi] * fy * (1 - fx)
                            + grid[:, :, yi][:, :, :, xi + 1] * (1 - fy) * fx
                            + grid[:, :, yi + 1][:, :, :, xi + 1] * fy * fx)
    out += 0.2 * (state.random_sample(shape) * 2 - 1)
    return torch.from_numpy(out.astype(np.float32))


def ids(seed, shape, vocabulary):
    return torch.from_numpy(np.random.RandomState(seed).randint(0, vocabulary, shape).astype(np.int64))


def tensor(seed, *shape, deviation=1.0):
    sample = np.random.RandomState(seed).random_sample(shape)
    return torch.from_numpy(((2 * sample - 1) * deviation * math.sqrt(3)).astype(np.float32))
