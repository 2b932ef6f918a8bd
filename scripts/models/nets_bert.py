# SPDX-License-Identifier: Apache-2.0
"""Encoders: ModernBERT as transformers has it, and a small post-norm encoder."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

import seeds

TINY = dict(vocab_size=1024, hidden_size=128, intermediate_size=192, num_hidden_layers=4, num_attention_heads=4,
            local_attention=32, max_position_embeddings=512)
BASE = dict(vocab_size=50368, hidden_size=768, intermediate_size=1152, num_hidden_layers=22, num_attention_heads=12,
            local_attention=128, max_position_embeddings=8192)
FULL_VOCABULARY = 50368     # smaller ones take their last rows for the special tokens


class ModernBertClassifier(nn.Module):
    """input_ids, attention_mask i64[1,S] -> logits [1,2] (mean pooling). attention: "sdpa" or "eager"."""

    def __init__(self, config, attention="sdpa", seed=1):
        super().__init__()
        from transformers import ModernBertConfig, ModernBertForSequenceClassification
        last = config["vocab_size"] - 1
        special = {} if last + 1 >= FULL_VOCABULARY else dict(
            pad_token_id=last, eos_token_id=last - 1, bos_token_id=last - 2, cls_token_id=last - 2, sep_token_id=last - 1)
        full = ModernBertConfig(num_labels=2, classifier_pooling="mean", **config, **special)
        full._attn_implementation = attention
        self.m = ModernBertForSequenceClassification(full)
        seeds.seed_weights(self.m, seed, residual_layers=full.num_hidden_layers, head_gain=4.0)

    def forward(self, input_ids, attention_mask):
        return self.m(input_ids=input_ids, attention_mask=attention_mask).logits


def modernbert_inputs(seed, sequence, vocabulary, valid):
    """Random ids, of which the first `valid` count and the rest is padding."""
    ids = seeds.ids(seed, (1, sequence), vocabulary - 4)
    mask = torch.zeros(1, sequence, dtype=torch.int64)
    mask[:, :valid] = 1
    ids[:, 0] = vocabulary - 3
    ids[:, valid - 1] = vocabulary - 2
    ids[:, valid:] = vocabulary - 1
    return [ids, mask]


class TinyEncoder(nn.Module):
    """ids i64[B,S] -> logits [B,8]: two post-norm layers, attention written out."""

    def __init__(self, vocabulary=256, d=64, layers=2, heads=4, seed=23):
        super().__init__()
        self.emb, self.h, self.d = nn.Embedding(vocabulary, d), heads, d
        self.layers = nn.ModuleList([self.layer(d) for _ in range(layers)])
        self.fc_out = nn.Linear(d, 8)
        seeds.seed_weights(self, seed, residual_layers=layers, head_gain=2.0)

    @staticmethod
    def layer(d):
        return nn.ModuleDict(dict(
            q=nn.Linear(d, d), k=nn.Linear(d, d), v=nn.Linear(d, d), to_out=nn.Linear(d, d), n1=nn.LayerNorm(d),
            fc1=nn.Linear(d, 4 * d), fc2=nn.Linear(4 * d, d), n2=nn.LayerNorm(d)))

    def forward(self, ids):
        b, t = ids.shape
        x = self.emb(ids)
        for layer in self.layers:
            q, k, v = (layer[name](x).view(b, t, self.h, -1).transpose(1, 2) for name in "qkv")
            a = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(self.d // self.h), -1) @ v
            x = layer["n1"](x + layer["to_out"](a.transpose(1, 2).reshape(b, t, self.d)))
            x = layer["n2"](x + layer["fc2"](F.relu(layer["fc1"](x))))
        return self.fc_out(x.mean(1))
