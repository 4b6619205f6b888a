"""LLVM text -> object code: what LLVM owns is freed in order, and large texts are optimised less."""

from __future__ import annotations

import pytest
from dpl.diagnostics import Bug
from dpl.node import replace
from dpl.source import Source
from dplc.machine.llvm import api, target, versions
from dplc.machine.llvm.api import parsed
from dplc.machine.object import assemble
from dplc.pipeline import Context, compile_to
from dplc.stack import on_large_stack

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


def test_a_quick_version_needs_one_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """To make one takes 2 ms, a fiftieth of the first run of a small program."""
    made: list[int] = []
    machine = api.Machine
    monkeypatch.setattr(api, "Machine", lambda *args, **more: made.append(0) or machine(*args, **more))
    where = replace(target.here(), features="")  # of which none is known yet
    assert assemble.assemble(assemble.module(TEXT, where), where, most=0) and len(made) == 1


def test_loops_of_a_large_text_become_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source(
        "it.dp", "let f (x : float[n]) = [for a in x -> a * a + 1.0]\ndo print (f [for i < 99 -> float i])\n"
    )
    text = versions.final(on_large_stack(lambda: compile_to("llvm", source, Context())[1])[0])
    monkeypatch.setattr(assemble, "LARGE", 0)
    with assemble.optimised(text, target.here(), flat=True) as (_, module):
        assert " x double>" in module.text()


def test_functions_that_llvm_leaves_alone_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assemble, "LARGE", 40)
    body = "  ret void\n" * 30
    hot, warm, cold = (
        f'define void @"dpl {name}"(){more} "frame-pointer"="all" {{\n{body}}}\n'
        for name, more in (("hot", ""), ("warm", ""), ("cold", " optnone noinline"))
    )
    assert [assemble.allowed(text) for text in (hot, hot + cold, hot + cold * 3, hot + warm)] == [2, 2, 2, 1]
