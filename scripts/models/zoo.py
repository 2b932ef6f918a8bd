# SPDX-License-Identifier: Apache-2.0
"""The models that export.py makes from seeds: one row each.

    Spec.build()     the torch module, with its weights
    Spec.inputs(k)   tensors of case k
    exporter, opset  how the ONNX file is written; pt2: whether a .pt2 is written too
    big              more than 10 MB
"""
from dataclasses import dataclass
from typing import Callable

import edit_pipeline
import nets_bert as bert
import nets_cnn as cnn
import nets_llama as llama
import nets_small as small
import seeds


@dataclass
class Spec:
    build: Callable
    inputs: Callable
    ins: list
    outs: list
    exporter: str = "dynamo"
    opset: int = 18
    pt2: bool = True
    big: bool = False


def modernbert(config, sequence, valid, attention="sdpa", **more):
    return Spec(lambda: bert.ModernBertClassifier(config, attention),
                lambda k: bert.modernbert_inputs(100 + k, sequence, config["vocab_size"], valid[k % len(valid)]),
                ["input_ids", "attention_mask"], ["logits"], **more)


def image(build, size, **more):
    return Spec(build, lambda k: [seeds.image(200 + k, 1, 3, size, size)], ["image"], ["logits"], **more)


def prefill(config, **more):
    return Spec(lambda: llama.Prefill(llama.Llama(**config)), lambda k: [llama.prompt(k, config)],
                ["input_ids"], ["logits"] + llama.cache_names(config, "cache"), **more)


def decode(config, update="index", **more):
    return Spec(lambda: llama.Decode(llama.Llama(**config), update), lambda k: llama.decode_inputs(k, config),
                ["input_ids", "position"] + llama.cache_names(config, "past"),
                ["logits"] + llama.cache_names(config, "present"), **more)


def audio(**more):
    return Spec(small.AudioNet, small.AudioNet.inputs, ["frames", "h0", "c0"], ["prob", "hn", "cn"], **more)


def edit(name):
    """A module of the image-editing pipeline, with the inputs that it gets there."""
    ins, outs = edit_pipeline.SIGNATURE[name]
    return Spec(lambda: edit_pipeline.modules()[name], lambda k: edit_pipeline.calls(k)[name], ins, outs)


def resnet_tiny():
    return cnn.ResNet((1, 1, 1), 16, 10, basic=True, imagenet=False, seed=5)


def mobilenet_tiny():
    return cnn.MobileNet(((1, 8, 1, 1), (4, 16, 2, 2), (4, 24, 2, 2)), 10, 64, seed=6)


LEGACY = dict(exporter="legacy", opset=17, pt2=False)
SPECS = {
    "modernbert-base": modernbert(bert.BASE, 512, (512, 390), big=True),
    "modernbert-tiny": modernbert(bert.TINY, 64, (64, 41)),
    "modernbert-tiny-eager": modernbert(bert.TINY, 64, (64, 41), "eager"),
    "modernbert-tiny-op23": modernbert(bert.TINY, 64, (64, 41), opset=23, pt2=False),
    "resnet50": image(cnn.ResNet, 224, big=True),
    "resnet-tiny": image(resnet_tiny, 32),
    "resnet-tiny-legacy17": image(resnet_tiny, 32, **LEGACY),
    "mobilenetv2": image(cnn.MobileNet, 224, big=True),
    "mobilenetv2-tiny": image(mobilenet_tiny, 64),
    "unet-tiny": Spec(cnn.UNet, lambda k: [seeds.image(430 + k, 1, 1, 40, 56)], ["image"], ["mask"]),
    "llama-small-prefill": prefill(llama.SMALL, big=True),
    "llama-small-decode": decode(llama.SMALL, big=True),
    "llama-tiny-prefill": prefill(llama.TINY),
    "llama-tiny-decode": decode(llama.TINY),
    "llama-tiny-decode-where": decode(llama.TINY, "where"),
    "vit-tiny": image(small.TinyViT, 64),
    "audio-gru-lstm": audio(),
    "audio-gru-lstm-legacy17": audio(**LEGACY),
    "encoder-static": Spec(bert.TinyEncoder, lambda k: [seeds.ids(440 + k, (1, 16), 256)], ["ids"], ["logits"]),
    **{f"edit-{name.replace('_', '-')}": edit(name) for name in edit_pipeline.SIGNATURE},
}
