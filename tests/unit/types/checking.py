"""What the tests of inference share: types as text, and errors by code."""

from __future__ import annotations

import sys
import threading

import pytest
from dpl.core.verify import verify
from dpl.diagnostics import Diagnostic, DplError
from dpl.source import Source
from dpl.syntax.load import load
from dpl.types.check import Checked, check_all
from dpl.types.messages.pretty import show_scheme


def check(text: str) -> Checked:
    checked = check_all(load(Source("main.dp", text)))
    verify(checked.program)
    return checked


def types(text: str, *names: str) -> list[str]:
    """The types of names that a program defines."""
    values = check(text).exports["main"].values
    return [show_scheme(values[name].scheme) for name in names]


def type_of(text: str) -> str:
    """The type of an expression."""
    (shown,) = types(f"let it = {text}", "it")
    return shown


def rejected(text: str, *codes: str) -> list[Diagnostic]:
    """The errors of a program, which must have these codes."""
    with pytest.raises(DplError) as caught:
        check(text)
    found = caught.value.diagnostics
    assert [d.code for d in found] == list(codes), [(d.code, d.title) for d in found]
    return found


def deep(action):
    """Runs on a large stack, as the command does."""
    result = []
    limit = sys.getrecursionlimit()
    old = threading.stack_size(256 << 20)
    sys.setrecursionlimit(10**6)
    try:
        thread = threading.Thread(target=lambda: result.append(action()))
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(old)
    assert result, "failed in its thread"
    return result[0]
