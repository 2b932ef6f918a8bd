# SPDX-License-Identifier: Apache-2.0
"""What the small language model says: a prompt of 64 tokens, then 24 tokens, each the likeliest, caches fed back.

in_prompt.npy i64[1,64], out_tokens.npy i64[1,24], out_logits.npy f32[25,V] behind the prompt and behind each token, by
torch in f32. Both forms of the cache have to agree. The model files are llama-tiny-prefill's and llama-tiny-decode's.
"""
import os

import numpy as np
import torch

import nets_llama
import onnx_files

STEPS = 24


def tiny(folder):
    lm = nets_llama.Llama(**nets_llama.TINY)
    prompt = nets_llama.prompt(0, nets_llama.TINY)
    tokens, logits = nets_llama.greedy(lm, prompt, STEPS)
    again, _ = nets_llama.greedy(lm, prompt, STEPS, update="where")
    if not torch.equal(tokens, again):
        raise RuntimeError("the two forms of the cache give different tokens")
    for name, value in (("in_prompt", prompt), ("out_tokens", tokens), ("out_logits", logits)):
        np.save(os.path.join(folder, name + ".npy"), value.numpy())
    best = logits.topk(2, -1).values
    onnx_files.save_json(os.path.join(folder, "meta.json"), {
        "model": "llama-tiny-greedy", "tokens": tokens[0].tolist(), "least_margin": float((best[:, 0] - best[:, 1]).min()),
        "tolerance": {"f32": {"rtol": 0, "atol": 1e-3}, "f16": {"rtol": 0, "atol": 0.2}}})
    return f"{len(set(tokens[0].tolist()))} different tokens"


MODELS = {"llama-tiny-greedy": (tiny, "24 tokens of the small language model")}
