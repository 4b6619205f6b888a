"""library -> a wheel: a Python package with a model, which needs only NumPy.

model/__init__.py       the exported definitions, as functions and values
model/_dpl/             the code that calls them
model/_model.so         the native code
model/_model.json       the description of their parameters and results
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dplc import embed
from dplc.machine.llvm.target import Target

VERSION = "0.1.0"
PLATFORMS = {
    "x86_64-linux": "linux_x86_64", "aarch64-linux": "linux_aarch64", "x86_64-linux-musl": "musllinux_1_2_x86_64",
    "aarch64-linux-musl": "musllinux_1_2_aarch64", "x86_64-windows": "win_amd64",
    "x86_64-macos": "macosx_11_0_x86_64", "aarch64-macos": "macosx_11_0_arm64",
}  # fmt: skip
SHARED = {"windows": ".dll", "macos": ".dylib"}

INIT = '''"""{name}, a model written in DPL:

{contents}
"""

import json
from pathlib import Path

from ._dpl.calls import Model, shared
from ._dpl.shapes import ArgumentError, Error

_folder = Path(__file__).parent
_description = json.loads((_folder / "_model.json").read_text(encoding="utf-8"))
_model = Model(shared(str(_folder / "_model{suffix}"), _description), __name__)
globals().update(_model._library.classes | _model._library.functions)
__all__ = [*dir(_model), "ArgumentError", "Error"]


def __getattr__(name):
    return getattr(_model, name)


def __dir__():
    return __all__
'''


def wheel_name(name: str, target: Target) -> str:
    """The file name of a wheel, with the platform as Python's packaging names it (PEP 427)."""
    return f"{name}-{VERSION}-py3-none-{PLATFORMS[target.name]}.whl"


def wheel(name: str, code: bytes, description: Mapping[str, Any], target: Target) -> bytes:
    """The contents of the wheel; `code` is the shared library."""
    suffix = SHARED.get(target.system, ".so")
    signatures = [export["signature"] for export in description["exports"]]
    contents = "\n".join(f"    {line}" for line in signatures).replace("\\", "\\\\").replace('"', "'")
    init = INIT.format(name=name, contents=contents, suffix=suffix)
    files = {
        f"{name}/__init__.py": init.encode(),
        f"{name}/_dpl/__init__.py": b"",
        **{f"{name}/_dpl/{file}": Path(embed.__path__[0], file).read_bytes() for file in ("calls.py", "shapes.py")},
        f"{name}/_model{suffix}": code,
        f"{name}/_model.json": json.dumps(description, indent=1).encode(),
    }
    info = f"{name}-{VERSION}.dist-info"
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {VERSION}\nSummary: A model written in DPL\n"
        "Requires-Python: >=3.11\nRequires-Dist: numpy>=1.26\n"
    ).encode()
    files[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: dpl\nRoot-Is-Purelib: false\nTag: py3-none-{PLATFORMS[target.name]}\n"
    ).encode()
    record = "".join(f"{path},sha256={digest(data)},{len(data)}\n" for path, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            archive.writestr(zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
