# SPDX-License-Identifier: Apache-2.0
"""A decoder-only language model as the two graphs that serving needs, and the greedy loop over them.

Grouped-query attention, rotary embedding, RMSNorm, SwiGLU. The caches have a fixed length; the decode graph writes the
new row at a position known at run time, by index_copy (ScatterND in ONNX) or by torch.where.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

import seeds

TINY = dict(vocabulary=1024, d=128, layers=4, heads=4, kv=2, ff=352, max_len=256, seed=4)
SMALL = dict(vocabulary=32000, d=768, layers=12, heads=12, kv=4, ff=2048, max_len=256, seed=7)
PROMPT = 64     # tokens of a prefill


class RMSNorm(nn.Module):
    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))
        self.eps = eps

    def forward(self, x):
        v = x.float()
        v = v * torch.rsqrt(v.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * v.to(x.dtype)


def rotate(x, cos, sin):
    h = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., h:], x[..., :h]), -1) * sin


def inverse_frequencies(width, theta):
    return (1.0 / (theta ** (torch.arange(0, width, 2).double() / width))).float()


def rotary_tables(positions, inverse, dtype):
    f = positions.float()[:, None] * inverse.float()[None]
    f = torch.cat((f, f), -1)
    return f.cos().to(dtype), f.sin().to(dtype)


class Attention(nn.Module):
    def __init__(self, d, heads, kv, bias=False):
        super().__init__()
        self.h, self.kv, self.hd = heads, kv, d // heads
        self.q_proj = nn.Linear(d, d, bias=bias)
        self.k_proj = nn.Linear(d, kv * self.hd, bias=bias)
        self.v_proj = nn.Linear(d, kv * self.hd, bias=bias)
        self.o_proj = nn.Linear(d, d, bias=False)
        self.q_proj._gain = self.k_proj._gain = 1.5

    @staticmethod
    def write_cache(past, new, position, update):
        if update == "index":
            return past.index_copy(2, position, new)
        hot = (torch.arange(past.shape[2]) == position).view(1, 1, -1, 1)
        return torch.where(hot, new, past)

    def forward(self, x, cos, sin, mask, past=None, position=None, update="index"):
        b, t, _ = x.shape
        q = self.q_proj(x).view(b, t, self.h, self.hd).transpose(1, 2)
        k = self.k_proj(x).view(b, t, self.kv, self.hd).transpose(1, 2)
        v = self.v_proj(x).view(b, t, self.kv, self.hd).transpose(1, 2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if past is not None:
            k, v = (self.write_cache(p, new, position, update) for p, new in zip(past, (k, v)))
        cache = k, v
        if self.kv != self.h:
            repeat = self.h // self.kv
            k, v = (c[:, :, None].expand(-1, -1, repeat, -1, -1).reshape(b, self.h, c.shape[2], self.hd) for c in cache)
        a = (q @ k.transpose(-1, -2)) * (self.hd ** -0.5) + mask
        a = torch.softmax(a.float(), -1).to(q.dtype)
        return self.o_proj((a @ v).transpose(1, 2).reshape(b, t, -1)), *cache


class MLP(nn.Module):
    """SwiGLU."""

    def __init__(self, d, f):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(d, f, bias=False), nn.Linear(d, f, bias=False)
        self.down_proj = nn.Linear(f, d, bias=False)
        self.gate_proj._gain = self.up_proj._gain = 1.5

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    def __init__(self, d, heads, kv, f, bias=False):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(d), RMSNorm(d)
        self.self_attn, self.mlp = Attention(d, heads, kv, bias), MLP(d, f)

    def forward(self, x, cos, sin, mask, past=None, position=None, update="index"):
        a, k, v = self.self_attn(self.input_layernorm(x), cos, sin, mask, past, position, update)
        x = x + a
        return x + self.mlp(self.post_attention_layernorm(x)), k, v


class Llama(nn.Module):
    """The weights; Prefill and Decode are its graphs."""

    def __init__(self, vocabulary, d, layers, heads, kv, ff, max_len, seed, theta=10000.0):
        super().__init__()
        self.max_len = max_len
        self.embed_tokens = nn.Embedding(vocabulary, d)
        self.layers = nn.ModuleList([Block(d, heads, kv, ff) for _ in range(layers)])
        self.norm = RMSNorm(d)
        self.lm_head = nn.Linear(d, vocabulary, bias=False)
        self.register_buffer("inv_freq", inverse_frequencies(d // heads, theta), persistent=False)
        seeds.seed_weights(self, seed, residual_layers=layers, head_gain=3.0)

    def logits(self, x):
        return self.lm_head(self.norm(x[:, -1]))


class Prefill(nn.Module):
    """input_ids [1,T] -> logits of the last position [1,V], then per layer K and V padded to max_len."""

    def __init__(self, lm):
        super().__init__()
        self.lm = lm

    def forward(self, input_ids):
        lm, t = self.lm, input_ids.shape[1]
        x = lm.embed_tokens(input_ids)
        positions = torch.arange(t)
        cos, sin = rotary_tables(positions, lm.inv_freq, x.dtype)
        least = torch.finfo(x.dtype).min
        mask = torch.where(positions[None, :] <= positions[:, None], 0.0, least).to(x.dtype)
        caches = []
        for block in lm.layers:
            x, k, v = block(x, cos, sin, mask)
            caches += [F.pad(k, (0, 0, 0, lm.max_len - t)), F.pad(v, (0, 0, 0, lm.max_len - t))]
        return (lm.logits(x), *caches)


class Decode(nn.Module):
    """input_ids [1,1], position [1], caches [1,KV,max_len,hd] x 2 L -> logits [1,V], caches."""

    def __init__(self, lm, update="index"):
        super().__init__()
        self.lm, self.update = lm, update

    def forward(self, input_ids, position, *caches):
        lm = self.lm
        x = lm.embed_tokens(input_ids)
        cos, sin = rotary_tables(position, lm.inv_freq, x.dtype)
        least = torch.finfo(x.dtype).min
        mask = torch.where(torch.arange(lm.max_len)[None, :] <= position[:, None], 0.0, least).to(x.dtype)
        out = []
        for i, block in enumerate(lm.layers):
            x, k, v = block(x, cos, sin, mask, caches[2 * i:2 * i + 2], position, self.update)
            out += [k, v]
        return (lm.logits(x), *out)


def prompt(k, config):
    return seeds.ids(300 + k, (1, PROMPT), config["vocabulary"])


@torch.no_grad()
def decode_inputs(k, config):
    """The first step behind prompt k: its token, its position, the caches."""
    logits, *caches = Prefill(Llama(**config))(prompt(k, config))
    return [logits.argmax(-1, keepdim=True), torch.tensor([PROMPT]), *[c.clone() for c in caches]]


def cache_names(config, prefix):
    return [f"{prefix}_{kv}_{i}" for i in range(config["layers"]) for kv in "kv"]


@torch.no_grad()
def greedy(lm, ids, steps, update="index"):
    """The loop: ids [1,steps] that were chosen, logits [steps + 1,V] behind the prompt and behind each step."""
    prefill, decode = Prefill(lm), Decode(lm, update)
    logits, *caches = prefill(ids)
    chosen, all_logits, position = [], [logits], ids.shape[1]
    for _ in range(steps):
        token = logits.argmax(-1, keepdim=True)
        chosen.append(token)
        logits, *caches = decode(token, torch.tensor([position]), *caches)
        all_logits.append(logits)
        position += 1
    return torch.cat(chosen, 1), torch.cat(all_logits, 0)
