"""DPL: the language and its interpreter.  The compiler is `dplc`.

For Python: `dpl.load("model.dp")` returns a program's exported definitions as functions on NumPy arrays.  It raises
`dpl.Error` if the program has errors.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` would take a tenth of the time in which a program from the cache starts
if TYPE_CHECKING:
    import os
    from typing import Any

    class Error(Exception):
        """An error in a program or in a call of its functions; the text says where and why."""

    def load(path: str | os.PathLike[str], device: str = "cpu") -> Any: ...


HOST: str = "dpl.host:Host"  # the class of the host (`host.py`), which the compiler changes
DOORS = {"load": "dplc.embed.load", "Error": "dplc.embed.shapes"}


def __getattr__(name: str) -> Any:
    """A function of the compiler, imported at first use.  The language itself does not need the compiler."""
    if name not in DOORS:
        raise AttributeError(f"module 'dpl' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(DOORS[name]), name)
