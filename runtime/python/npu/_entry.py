# SPDX-License-Identifier: Apache-2.0
"""The entry point that pip would have written, for a package that is only on the path.

torch looks entry points of the group torch_dynamo_backends up when it first looks for a backend.
importlib.metadata asks every finder of sys.meta_path for distributions, so one more is added that
knows this package alone.
"""

from __future__ import annotations

import sys
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from typing import Any, Iterable

_FILES = {
    "METADATA": "Metadata-Version: 2.1\nName: npu\nVersion: 0.1.0\n",
    "entry_points.txt": "[torch_dynamo_backends]\nnpu = npu.torch_backend:npu_backend\n",
}


class _OnThePath(Distribution):
    def read_text(self, filename: str) -> str | None:
        return _FILES.get(filename)

    def locate_file(self, path: Any) -> Path:
        return Path(__file__).resolve().parents[1].joinpath(path)


class _Finder(DistributionFinder):
    def find_spec(self, *_: Any) -> None:
        """Modules are found by others."""

    def find_distributions(
        self, context: DistributionFinder.Context = DistributionFinder.Context()
    ) -> Iterable[Distribution]:
        return [_OnThePath()] if context.name in (None, "npu") else []


def announce() -> None:
    """Makes torch find the backend by its name."""
    sys.meta_path.append(_Finder())
