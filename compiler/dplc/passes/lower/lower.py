"""mono core with lambda sets -> flat: functions without closures.

    let add n = fun x -> x + n        fn add.1(n: i64, x: i64) -> i64
    do print (add 1 2)                fn main() ... call add.1 1 2

Closures become data (defunctionalisation): see `lower/body.py`.  Globals that are not functions are variables of
`main`.
"""

from __future__ import annotations

from dpl.core import ty as t
from dpl.source import Span

from dplc.flat import term as f
from dplc.flat.local_names import LocalNames, Named
from dplc.narrow import expect_type
from dplc.passes.closures.ground import Scope
from dplc.passes.closures.lambda_sets import Solved
from dplc.passes.lower.body import Body, Lowering, written
from dplc.passes.lower.export_wrappers import export
from dplc.passes.lower.terms import lower_term


def lower(solved: Solved, names: LocalNames | None = None) -> f.Program:
    """The program as flat.  If there are `names`, they get those of local variables, for debuggers."""
    up = Lowering(solved, lower_term, names)
    main = Body(up, Scope(up.interner))
    for name, e in solved.items:
        value = main.term(e)
        if name:
            main.env[name] = value
            main.named.append(Named(written(name), value, rest_of(e.span)))
        if name in solved.exports:
            export(main, name, expect_type(t.Fn, main.type_of(e)), value)
    up.finish("main", (), main, label="main")
    while up.todo:
        up.todo.popleft()()
    return up.program


def rest_of(span: Span) -> Span:
    """The text after a definition, in which its name is seen."""
    return Span(span.source, span.end, len(span.source.text))
