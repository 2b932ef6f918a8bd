# SPDX-License-Identifier: Apache-2.0
"""Ten modules of an image-editing pipeline, small: image and text encoders, a two-stream diffusion transformer with its
time embedding, guidance, Euler step, packing of latents, decoder. edit_pipeline.py wires them."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

import seeds
from nets_llama import MLP, Block, RMSNorm, rotate

GROUPS = 8      # of every group norm


def group_norm(channels):
    return nn.GroupNorm(GROUPS, channels, eps=1e-6)


class ResBlock(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.norm1, self.conv1 = group_norm(i), nn.Conv2d(i, o, 3, 1, 1)
        self.norm2, self.conv2 = group_norm(o), nn.Conv2d(o, o, 3, 1, 1)
        self.conv1._gain = 1.5
        self.skip = nn.Conv2d(i, o, 1) if i != o else None

    def forward(self, x):
        y = self.conv2(F.silu(self.norm2(self.conv1(F.silu(self.norm1(x))))))
        return y + (x if self.skip is None else self.skip(x))


class SpatialAttention(nn.Module):
    """Attention over pixels, its projections 1x1 convolutions."""

    def __init__(self, c):
        super().__init__()
        self.norm = group_norm(c)
        self.q, self.k, self.v, self.to_out = (nn.Conv2d(c, c, 1) for _ in range(4))

    def forward(self, x):
        b, c, h, w = x.shape
        n = self.norm(x)
        q, k, v = (f(n).reshape(b, c, h * w).transpose(1, 2) for f in (self.q, self.k, self.v))
        a = torch.softmax(q @ k.transpose(1, 2) * (c ** -0.5), -1) @ v
        return x + self.to_out(a.transpose(1, 2).reshape(b, c, h, w))


class VaeEncoder(nn.Module):
    """image [1,3,S,S] in [-1,1] -> latent [1,Z,S/8,S/8]; strides with a zero border at the bottom and right only."""

    def __init__(self, channels=(16, 32, 32), z=16, seed=11):
        super().__init__()
        self.conv_in = nn.Conv2d(3, channels[0], 3, 1, 1)
        body, i = [], channels[0]
        for c in channels:
            body += [ResBlock(i, c), nn.ZeroPad2d((0, 1, 0, 1)), nn.Conv2d(c, c, 3, 2, 0)]
            i = c
        self.body = nn.Sequential(*body, ResBlock(i, i), SpatialAttention(i), ResBlock(i, i))
        self.norm_out, self.conv_out, self.quant = group_norm(i), nn.Conv2d(i, 2 * z, 3, 1, 1), nn.Conv2d(2 * z, 2 * z, 1)
        seeds.seed_weights(self, seed)

    def forward(self, image):
        h = self.quant(self.conv_out(F.silu(self.norm_out(self.body(self.conv_in(image))))))
        mean, _ = h.chunk(2, 1)
        return (mean - 0.1) * 1.25


class VaeDecoder(nn.Module):
    """latent [1,Z,s,s] -> image [1,3,8s,8s] in [-1,1], enlarged by nearest neighbours."""

    def __init__(self, channels=(32, 32, 16), z=16, seed=12):
        super().__init__()
        i = channels[0]
        self.post_quant, self.conv_in = nn.Conv2d(z, z, 1), nn.Conv2d(z, i, 3, 1, 1)
        self.mid = nn.Sequential(ResBlock(i, i), SpatialAttention(i), ResBlock(i, i))
        self.ups, self.convs = nn.ModuleList(), nn.ModuleList()
        for c in channels:
            self.ups.append(ResBlock(i, c))
            self.convs.append(nn.Conv2d(c, c, 3, 1, 1))
            i = c
        self.norm_out, self.conv_out = group_norm(i), nn.Conv2d(i, 3, 3, 1, 1)
        self.conv_out._gain = 0.6
        seeds.seed_weights(self, seed)

    def forward(self, latent):
        x = self.mid(self.conv_in(self.post_quant(latent / 1.25 + 0.1)))
        for up, c in zip(self.ups, self.convs):
            x = c(F.interpolate(up(x), scale_factor=2.0, mode="nearest"))
        return self.conv_out(F.silu(self.norm_out(x))).clamp(-1.0, 1.0)


class VisionEncoder(nn.Module):
    """image [1,3,S,S] -> [1,(S/patch/2)^2,out]: rotary embedding in two dimensions, a merger of 2x2 tokens."""

    def __init__(self, size=64, patch=8, d=64, layers=2, heads=4, ff=160, out=96, seed=13):
        super().__init__()
        self.g, self.h, self.hd, self.d = size // patch, heads, d // heads, d
        self.patch = nn.Conv2d(3, d, patch, patch, bias=False)
        self.blocks = nn.ModuleList([nn.ModuleDict(dict(
            n1=RMSNorm(d), qkv=nn.Linear(d, 3 * d), to_out=nn.Linear(d, d), n2=RMSNorm(d), mlp=MLP(d, ff)))
            for _ in range(layers)])
        self.ln_q = RMSNorm(d)
        self.m1, self.m2 = nn.Linear(4 * d, 4 * d), nn.Linear(4 * d, out)
        angles = self.angles()
        self.register_buffer("cos", angles.cos().float(), persistent=False)
        self.register_buffer("sin", angles.sin().float(), persistent=False)
        seeds.seed_weights(self, seed, residual_layers=layers)

    def angles(self):
        """[tokens, head], the tokens in the order in which they are merged."""
        g, half = self.g, self.hd // 2
        inverse = 1.0 / (10000.0 ** (torch.arange(0, half, 2).double() / half))
        y, x = torch.meshgrid(torch.arange(g), torch.arange(g), indexing="ij")
        order = torch.arange(g * g).view(g // 2, 2, g // 2, 2).permute(0, 2, 1, 3).reshape(-1)
        f = torch.cat((y.reshape(-1, 1).double() * inverse, x.reshape(-1, 1).double() * inverse), -1)[order]
        return torch.cat((f, f), -1)

    def forward(self, image):
        g, t = self.g, self.g * self.g
        x = self.patch(image).flatten(2).transpose(1, 2)
        x = x.reshape(1, g // 2, 2, g // 2, 2, self.d).permute(0, 1, 3, 2, 4, 5).reshape(1, t, self.d)
        cos, sin = self.cos.to(x.dtype), self.sin.to(x.dtype)
        for b in self.blocks:
            q, k, v = b["qkv"](b["n1"](x)).reshape(1, t, 3, self.h, self.hd).permute(2, 0, 3, 1, 4).unbind(0)
            o = F.scaled_dot_product_attention(rotate(q, cos, sin), rotate(k, cos, sin), v)
            x = x + b["to_out"](o.transpose(1, 2).reshape(1, t, self.d))
            x = x + b["mlp"](b["n2"](x))
        x = self.ln_q(x).reshape(1, t // 4, 4 * self.d)
        return self.m2(F.gelu(self.m1(x)))


class TextEncoder(nn.Module):
    """prefix ids, image embeddings, suffix ids -> hidden states of everything behind the first `drop` tokens."""

    def __init__(self, vocabulary=512, d=96, layers=2, heads=4, kv=2, ff=256, drop=4, seed=14):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocabulary, d)
        self.layers = nn.ModuleList([Block(d, heads, kv, ff, bias=True) for _ in range(layers)])
        self.norm, self.drop, hd = RMSNorm(d), drop, d // heads
        inverse = (1.0 / (1e6 ** (torch.arange(0, hd, 2).double() / hd))).float()
        self.register_buffer("inv_freq", inverse, persistent=False)
        seeds.seed_weights(self, seed, residual_layers=layers)

    def forward(self, prefix_ids, image_embeds, suffix_ids):
        x = torch.cat((self.embed_tokens(prefix_ids), image_embeds, self.embed_tokens(suffix_ids)), 1)
        t = x.shape[1]
        positions = torch.arange(t)
        f = positions.float()[:, None] * self.inv_freq.float()[None]
        f = torch.cat((f, f), -1)
        cos, sin = f.cos().to(x.dtype), f.sin().to(x.dtype)
        least = torch.finfo(x.dtype).min
        mask = torch.zeros(t, t, dtype=x.dtype).masked_fill(positions[None] > positions[:, None], least)
        for block in self.layers:
            x, _, _ = block(x, cos, sin, mask)
        return self.norm(x)[:, self.drop:]


class TimeEmbed(nn.Module):
    """timestep [1] in [0,1] -> [1,d]: cosines, sines, two linear layers."""

    def __init__(self, d=96, n=64, seed=15):
        super().__init__()
        self.fc1, self.fcx = nn.Linear(n, d), nn.Linear(d, d)
        self.fc1._gain = 1.5
        frequencies = torch.exp(-math.log(10000.0) * torch.arange(n // 2).double() / (n // 2)).float()
        self.register_buffer("freq", frequencies, persistent=False)
        seeds.seed_weights(self, seed)

    def forward(self, timestep):
        a = 1000.0 * timestep.float()[:, None] * self.freq.float()[None]
        e = torch.cat((a.cos(), a.sin()), -1).to(self.fc1.weight.dtype)
        return self.fcx(F.silu(self.fc1(e)))


class TwoStreamBlock(nn.Module):
    """Image and text tokens with weights of their own, joined in one attention; modulated by the time embedding."""

    def __init__(self, d, heads):
        super().__init__()
        self.h, self.hd = heads, d // heads
        self.img_mod, self.txt_mod = nn.Linear(d, 6 * d), nn.Linear(d, 6 * d)
        self.img_qkv, self.txt_qkv = nn.Linear(d, 3 * d), nn.Linear(d, 3 * d)
        self.qn, self.kn, self.qn_t, self.kn_t = (RMSNorm(self.hd) for _ in range(4))
        self.img_o, self.txt_o = nn.Linear(d, d), nn.Linear(d, d)
        self.img_m1, self.img_m2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        self.txt_m1, self.txt_m2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        self.ln = nn.LayerNorm(d, eps=1e-6, elementwise_affine=False)
        self.img_mod._gain = self.txt_mod._gain = 0.5

    def heads(self, x):
        b, t, _ = x.shape
        return x.view(b, t, 3, self.h, self.hd).permute(2, 0, 3, 1, 4).unbind(0)

    def modulated(self, x, shift, scale):
        return self.ln(x) * (1 + scale[:, None]) + shift[:, None]

    @staticmethod
    def rotate_pairs(x, cos, sin):
        """Rotary embedding of neighbouring elements."""
        pairs = x.float().reshape(*x.shape[:-1], -1, 2)
        a, b = pairs.unbind(-1)
        return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2).to(x.dtype)

    def forward(self, img, txt, temb, cos, sin):
        s = F.silu(temb)
        i = self.img_mod(s).chunk(6, -1)
        t = self.txt_mod(s).chunk(6, -1)
        qi, ki, vi = self.heads(self.img_qkv(self.modulated(img, i[0], i[1])))
        qt, kt, vt = self.heads(self.txt_qkv(self.modulated(txt, t[0], t[1])))
        q = torch.cat((self.qn_t(qt), self.qn(qi)), 2)
        k = torch.cat((self.kn_t(kt), self.kn(ki)), 2)
        v = torch.cat((vt, vi), 2)
        o = F.scaled_dot_product_attention(self.rotate_pairs(q, cos, sin), self.rotate_pairs(k, cos, sin), v)
        o = o.transpose(1, 2).flatten(2)
        n = txt.shape[1]
        img = img + i[2][:, None] * self.img_o(o[:, n:])
        txt = txt + t[2][:, None] * self.txt_o(o[:, :n])
        gelu = nn.functional.gelu
        img = img + i[5][:, None] * self.img_m2(gelu(self.img_m1(self.modulated(img, i[3], i[4])), approximate="tanh"))
        txt = txt + t[5][:, None] * self.txt_m2(gelu(self.txt_m1(self.modulated(txt, t[3], t[4])), approximate="tanh"))
        return img, txt


class MMDiT(nn.Module):
    """latents, cond_latents [1,N,4Z], text [1,T,d], temb [1,d] -> velocity [1,N,4Z]."""

    def __init__(self, grid=4, z=16, d=96, heads=4, layers=2, text_length=34, seed=16):
        super().__init__()
        self.img_in, self.txt_norm, self.txt_in = nn.Linear(4 * z, d), RMSNorm(d), nn.Linear(d, d)
        self.blocks = nn.ModuleList([TwoStreamBlock(d, heads) for _ in range(layers)])
        self.norm_out, self.mod_out = nn.LayerNorm(d, eps=1e-6, elementwise_affine=False), nn.Linear(d, 2 * d)
        self.proj_out = nn.Linear(d, 4 * z)
        self.mod_out._gain = 0.5
        angles = self.angles(grid, d // heads, text_length)
        self.register_buffer("cos", angles.cos().float(), persistent=False)
        self.register_buffer("sin", angles.sin().float(), persistent=False)
        seeds.seed_weights(self, seed)

    @staticmethod
    def angles(grid, width, text_length):
        """Of text, latents and condition: the head's pairs divided among frame, row and column."""
        frame = width // 4 // 2 * 2
        axes = [a // 2 * 2 for a in (frame, (width - frame) // 2, (width - frame) // 2)]
        axes[0] += width - sum(axes)
        r = torch.arange(grid).double() - grid // 2
        y, x = (a.reshape(-1) for a in torch.meshgrid(r, r, indexing="ij"))
        frames = [torch.stack((torch.full_like(y, float(f)), y, x), -1) for f in (0, 1)]
        text = torch.arange(text_length).double()[:, None].expand(-1, 3) + grid // 2
        p = torch.cat([text] + frames, 0)
        return torch.cat([p[:, j:j + 1] / (10000.0 ** (torch.arange(0, a, 2).double() / a)) for j, a in enumerate(axes)], -1)

    def forward(self, latents, cond_latents, text, temb):
        n = latents.shape[1]
        img = self.img_in(torch.cat((latents, cond_latents), 1))
        txt = self.txt_in(self.txt_norm(text))
        for block in self.blocks:
            img, txt = block(img, txt, temb, self.cos.float(), self.sin.float())
        scale, shift = self.mod_out(F.silu(temb)).chunk(2, -1)
        return self.proj_out(self.norm_out(img[:, :n]) * (1 + scale[:, None]) + shift[:, None])


class CfgCombine(nn.Module):
    """Guidance of two velocities, rescaled to the norm of the first."""

    def forward(self, cond, uncond):
        c = uncond + 3.0 * (cond - uncond)
        return c * (cond.norm(dim=-1, keepdim=True) / (c.norm(dim=-1, keepdim=True) + 1e-6))


class EulerStep(nn.Module):
    def forward(self, latents, velocity, sigma, sigma_next):
        return (latents.float() + (sigma_next - sigma) * velocity.float()).to(latents.dtype)


class PackLatents(nn.Module):
    """[1,Z,s,s] -> [1,(s/2)^2,4Z]."""

    def forward(self, z):
        b, c, h, w = z.shape
        return z.view(b, c, h // 2, 2, w // 2, 2).permute(0, 2, 4, 1, 3, 5).reshape(b, h * w // 4, c * 4)


class UnpackLatents(nn.Module):
    """[1,N,4Z] -> [1,Z,2 grid,2 grid]."""

    def __init__(self, grid):
        super().__init__()
        self.g = grid

    def forward(self, x):
        b, n, c = x.shape
        return x.view(b, self.g, self.g, c // 4, 2, 2).permute(0, 3, 1, 4, 2, 5).reshape(b, c // 4, 2 * self.g, 2 * self.g)
