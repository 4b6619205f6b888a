"""Failures tell the calls that led to them, whether LLVM inlined them or we did."""

import pytest
from dpl.diagnostics import DplError
from dpl.source import Source, Span
from dplc.flat import term as f
from dplc.flat.places import Inlining, path
from dplc.machine.failure.failures import Sites, shown
from unit.machine.native import Main, native

TEXT = Source("lines.dp", "".join(f"line {n}\n" for n in range(1, 10)))


def line(n: int) -> Span:
    start = 7 * (n - 1)
    return Span(TEXT, start, start + 6)


def caller(name: str, callee: str, at: Span) -> f.Fn:
    n = f.Var("n", f.I64)
    m = Main()
    return f.Fn(name, (n,), (f.I64,), body(m, m.call(callee, (n,), f.I64, at), n), f"main.{name}", line(1))


def body(m: Main, result: f.Var, n: f.Var) -> f.Block:
    """Not a tail call."""
    return f.Block((*m.binds, f.Bind((f.Var("out", f.I64),), f.Op("add", (result, n)))), (f.Var("out", f.I64),))


def test_the_path_of_calls(capfd):
    n = f.Var("n", f.I64)
    inner = Main()
    there = Inlining("half", line(5)).span(line(7))
    quotient = inner.one(f.Op("div", (inner.int(1), n), (), there), f.I64)
    bottom = f.Fn("bottom", (n,), (f.I64,), body(inner, quotient, n), "Prelude.bottom#2", line(4))
    m = Main()
    m.number(m.one(f.Call("top", (m.int(0),), line(2)), f.I64))
    with pytest.raises(DplError) as caught:
        native(m.program((caller("top", "middle", line(3)), caller("middle", "bottom", line(4)), bottom)), capfd)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.title == "division by zero"
    assert diagnostic.span is not None and diagnostic.span.line == 7
    assert [[call.name, f"{call.span.source.name}:{call.span.line}"] for call in diagnostic.path if call.span] == [
        ["top", "lines.dp:2"], ["middle", "lines.dp:3"], ["half", "lines.dp:5"],  # not the library's own call
    ]  # fmt: skip


def test_sites_travel_as_json():
    sites = Sites()
    sites.labels = {"f.1": "main.f"}
    place = Inlining("g", line(3)).span(Inlining("f", line(2)).span(line(1)))
    assert [sites.number(s, w) for s, w in ((place, ""), (line(2), "n"), (place, ""))] == [0, 1, 0]
    back = Sites.from_json(sites.to_json())
    assert back.labels == sites.labels
    span, word = back.place(0)
    assert (span.line, word, [(label, at.line) for label, at in path(span)]) == (1, "", [("g", 3), ("f", 2)])


def test_names_as_the_user_wrote_them():
    assert [shown(n) for n in ("main.f#2", "reverse of Prelude.map", "Nn.relu")] == ["f", "reverse of map", "Nn.relu"]
