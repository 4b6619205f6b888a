"""DPL: what a program means.  The compiler, which makes it fast, is `dplc`.

For Python: `dpl.load("model.dp")` gives a program's exported definitions as functions of NumPy's arrays, and raises
`dpl.Error` where it cannot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os

    class Error(Exception):
        """A program, or a call of its functions, is at fault; the text says where and why."""

    def load(path: str | os.PathLike[str]) -> Any: ...


DOORS = {"load": "dplc.embed.load", "Error": "dplc.embed.shapes"}


def __getattr__(name: str) -> Any:
    """A function of the compiler, imported at first use: the language itself does without."""
    if name not in DOORS:
        raise AttributeError(f"module 'dpl' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(DOORS[name]), name)
