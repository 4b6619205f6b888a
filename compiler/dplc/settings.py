"""The environment variables that `dpl` reads, and what they may be; `rt/executable.rt` says the same of those that
executables read.  Every start imports this module."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and int(text) > 0


def seconds(text: str) -> bool:
    try:
        return 0.0 <= float(text) < float("inf")
    except ValueError:
        return False


RULES: dict[str, tuple[Callable[[str], bool], str]] = {
    "DPL_STACK": (count, "a number of mebibytes"),
    "DPL_THREADS": (count, "a number of threads"),
    "DPL_INTERPRET": (seconds, "a number of seconds"),
    "DPL_OPTIMISE": (("meanwhile", "first", "never").__contains__, "meanwhile, first or never"),
    "DPL_DEVICE": (("auto", "cpu", "gpu").__contains__, "auto, cpu or gpu"),
    "DPL_DEVICE_LEAST": (count, "a number of operations"),
}


def mistake() -> str:
    """What is wrong with a variable that is set; "" if nothing is."""
    wrong = (name for name, (fits, _) in RULES.items() if (text := os.environ.get(name)) and not fits(text))
    name = next(wrong, "")
    return f"the environment variable {name} is `{os.environ[name]}`, not {RULES[name][1]}" if name else ""
