"""flat -> flat where a while loop with a counter becomes a for loop.

    (i', s') = while state (i = a, s = b)        count = if a < n { n - a } else { 0 }
      cond { c = lt i n; yield c }         =>    (s') = for j < count state (s = b) { i = a + j; ...; yield t }
      do   { ...; k = i + 1; yield k, t }        i' = a + count

The number of steps of a for loop is known, so the arrays that it collects are allocated in their full size.
"""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.walk import blocks

ZERO = f.Const(0, f.I64)
ONE = f.Const(1, f.I64)


def counted(bind: f.Bind, supply: f.Supply) -> list[f.Bind]:
    """A binding of a while loop, or the bindings of a for loop if it has a counter."""
    loop = bind.rhs
    assert isinstance(loop, f.While)
    at = counter(loop)
    if at is None:
        return [bind]
    limit = loop.cond.binds[0].rhs
    assert isinstance(limit, f.Op)
    start, here = loop.inits[at], loop.state[at]
    more, count, j = (f.Var(supply.fresh(hint), f.I64) for hint in ("more", "count", "j"))
    any_ = f.Var(supply.fresh("any"), f.BOOL)
    left = f.Bind((more,), f.Op("sub", (limit.args[1], start)))

    def rest(items: tuple) -> tuple:
        return (*items[:at], *items[at + 1 :])

    body = f.Block((f.Bind((here,), f.Op("add", (start, j))), *loop.body.binds), rest(loop.body.results))
    return [
        f.Bind((any_,), f.Op("lt", (start, limit.args[1]))),
        f.Bind((count,), f.If(any_, f.Block((left,), left.vars), f.Block((), (ZERO,)))),
        f.Bind(rest(bind.vars), f.For(j, count, rest(loop.state), rest(loop.inits), body, loop.collect)),
        f.Bind((bind.vars[at],), f.Op("add", (start, count))),
    ]


def counter(loop: f.While) -> int | None:
    """The index of the state variable that counts up to a limit; None if there is none."""
    match loop.cond:
        case f.Block((f.Bind((asked,), f.Op("lt", (f.Var() as var, limit))),), (answer,)) if answer == asked:
            if var in loop.state and limit not in loop.state and var.ty == f.I64:
                at = loop.state.index(var)
                return at if counts(loop.body, loop.body.results[at], var) else None
        case _:
            pass
    return None


def counts(block: f.Block, atom: f.Atom, var: f.Var) -> bool:
    """True if an atom at the end of a block is a variable plus one, on every path."""
    match next((bind for bind in block.binds if atom in bind.vars), None):
        case f.Bind(_, f.Op("add", operands)):
            return operands == (var, ONE)
        case f.Bind(vars_, f.If() | f.Switch() as choice):
            at = vars_.index(atom) if isinstance(atom, f.Var) else 0
            return all(counts(inner, inner.results[at], var) for inner in blocks(choice))
        case _:
            return False
