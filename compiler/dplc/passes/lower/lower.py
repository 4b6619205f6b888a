"""mono core with lambda sets -> flat: functions without closures.

    let add n = fun x -> x + n        fn add.1(n: i64, x: i64) -> i64
    do print (add 1 2)                fn main() ... call add.1 1 2

Closures become data (defunctionalisation): see `lower/body.py`.  Globals that are not functions are variables of
`main`.
"""

from __future__ import annotations

from dpl.core import ty as t

from dplc.flat import term as f
from dplc.flat.values import block_of
from dplc.narrow import expect_type
from dplc.passes.closures.ground import Scope
from dplc.passes.closures.lambda_sets import Solved
from dplc.passes.lower.body import Body, Lowering
from dplc.passes.lower.export_wrappers import export
from dplc.passes.lower.terms import lower_term


def lower(solved: Solved) -> f.Program:
    up = Lowering(solved, lower_term)
    main = Body(up, Scope(up.interner))
    for name, e in solved.items:
        value = main.term(e)
        if name:
            main.env[name] = value
        if name in solved.exports:
            export(main, name, expect_type(t.Fn, main.type_of(e)), value)
    up.program.fns["main"] = f.Fn("main", (), (), block_of(main.b.binds, ()), "main")
    while up.todo:
        up.todo.popleft()()
    return up.program
