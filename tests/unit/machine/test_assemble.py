"""LLVM text -> object code: what LLVM owns is freed in order."""

from __future__ import annotations

import pytest
from dpl.diagnostics import Bug
from dplc.machine.llvm.api import parsed

TEXT = "define void @f() {\n  ret void\n}\n"


def test_an_error_keeps_no_module() -> None:
    """A traceback keeps the variables of its functions: it must not keep a module that is freed."""
    with pytest.raises(KeyError) as caught, parsed(TEXT) as module:
        raise KeyError
    assert not module.handle
    assert caught.traceback


def test_text_that_is_no_module_is_our_bug() -> None:
    with pytest.raises(Bug, match="LLVM does not accept our text"), parsed("define void @f() {"):
        pass
