# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel (PEP 517), with nothing but Python, CMake and a compiler: no download.

The shared libraries come from the first folder of NPU_LIBRARY_PATH that has them; without that
variable CMake builds them from the source tree that this folder is in, into build/python. They are
put into the wheel beside the package. NPU_LIBRARY_PATH=system leaves them out: then the package
uses an installed libnpu.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path
from typing import Any, Iterator

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
LIBRARIES = ("npu", "npu_simulator", "npu_compile")
EPOCH = (2020, 1, 1, 0, 0, 0)  # the same wheel from the same files


def _project() -> dict[str, Any]:
    return dict(tomllib.loads((HERE / "pyproject.toml").read_text())["project"])


def _file_of(folder: Path, name: str) -> Path | None:
    found = sorted(folder.glob(f"lib{name}.so.[0-9]"))
    return found[0] if found else None


def _run(command: list[str]) -> None:
    print("+", " ".join(command), file=sys.stderr, flush=True)
    result = subprocess.run(command, stdout=sys.stderr)
    if result.returncode:
        raise SystemExit(
            f"npu: '{' '.join(command)}' failed; scripts/setup installs what the build needs, and "
            "NPU_LIBRARY_PATH=FOLDER takes libraries that are built already"
        )


def _built() -> Path:
    """The folder of the libraries, built if need be."""
    given = os.environ.get("NPU_LIBRARY_PATH")
    if given:
        # pip runs this in runtime/python: a relative folder is one of where pip was started.
        for base in (Path(os.environ.get("PWD", "")), SOURCE):
            for folder in given.split(os.pathsep):
                if all(_file_of(base / folder, name) for name in LIBRARIES):
                    return base / folder
        raise SystemExit(
            f"npu: no folder of NPU_LIBRARY_PATH={given} has libnpu and its siblings; "
            "cmake --build --preset release --target npu npu_simulator npu_compile builds them "
            "into build/release/lib"
        )
    if not (SOURCE / "CMakeLists.txt").exists():
        raise SystemExit(
            f"npu: {SOURCE} is not the project's source tree; set NPU_LIBRARY_PATH to the folder "
            "of built libraries, or to 'system'"
        )
    build = SOURCE / "build" / "python"
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    _run(
        ["cmake", "-S", str(SOURCE), "-B", str(build), *generator]
        + ["-DCMAKE_BUILD_TYPE=Release", "-DNPU_TESTS=OFF"]
        + [f"-DCMAKE_{language}_FLAGS_RELEASE=-O2 -DNDEBUG" for language in ("C", "CXX")]
    )
    jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or str(os.cpu_count() or 1)
    _run(["cmake", "--build", str(build), "-j", jobs, "--target", *LIBRARIES])
    return build / "lib"


def _metadata(project: dict[str, Any]) -> dict[str, str]:
    """The files of NAME-VERSION.dist-info, without RECORD."""
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        "License: Apache-2.0",
        f"Requires-Python: {project['requires-python']}",
    ]
    for extra, needs in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {need}; extra == '{extra}'" for need in needs]
    lines.append("Description-Content-Type: text/markdown")
    readme = (HERE / "README.md").read_text()
    points = []
    for group, rows in project["entry-points"].items():
        points += [f"[{group}]", *(f"{name} = {where}" for name, where in rows.items()), ""]
    return {
        "METADATA": "\n".join(lines) + "\n\n" + readme,
        "entry_points.txt": "\n".join(points),
        "top_level.txt": "npu\n",
    }


def _tag(bundled: bool) -> str:
    if not bundled:
        return "py3-none-any"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return f"py3-none-{platform}"


def _package() -> Iterator[tuple[str, bytes]]:
    for path in sorted((HERE / "npu").iterdir()):
        if path.suffix == ".py" or path.name == "py.typed":
            yield f"npu/{path.name}", path.read_bytes()


def _write(directory: str, bundled: bool, files: dict[str, bytes]) -> str:
    project = _project()
    stem = f"{project['name']}-{project['version']}"
    tag = _tag(bundled)
    info = {
        **_metadata(project),
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: build_npu\nRoot-Is-Purelib: "
        f"{'false' if bundled else 'true'}\nTag: {tag}\n",
    }
    files |= {f"{stem}.dist-info/{name}": text.encode() for name, text in info.items()}
    record = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(data)}")
    record.append(f"{stem}.dist-info/RECORD,,")
    files[f"{stem}.dist-info/RECORD"] = ("\n".join(record) + "\n").encode()
    wheel = f"{stem}-{tag}.whl"
    with zipfile.ZipFile(Path(directory) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if ".so" in name else 0o644) << 16
            archive.writestr(entry, data)
    return wheel


def build_wheel(
    wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None
) -> str:
    """PEP 517."""
    files = dict(_package())
    bundled = os.environ.get("NPU_LIBRARY_PATH") != "system"
    if bundled:
        folder = _built()
        for name in LIBRARIES:
            library = _file_of(folder, name)
            if library is None:
                raise SystemExit(f"npu: {folder} has no lib{name}.so")
            files[f"npu/lib/{library.name}"] = library.read_bytes()
    return _write(wheel_directory, bundled, files)


def build_editable(
    wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None
) -> str:
    """PEP 660: the package stays here, and finds the libraries that were built."""
    if os.environ.get("NPU_LIBRARY_PATH") != "system":
        target = HERE / "npu" / "lib"
        target.mkdir(exist_ok=True)
        folder = _built()
        for name in LIBRARIES:
            library = _file_of(folder, name)
            if library is not None:
                shutil.copyfile(library, target / library.name)
    return _write(wheel_directory, False, {"npu.pth": f"{HERE}\n".encode()})


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    """PEP 517. There is none: the C sources are the whole tree."""
    raise SystemExit("npu: install from the source tree: pip install ./runtime/python")


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """PEP 517: nothing from an index."""
    return []


get_requires_for_build_editable = get_requires_for_build_wheel
