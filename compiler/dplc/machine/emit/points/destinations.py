"""Rows that a Par in the points of another one makes are written where they stay (destination passing).

    b, c = par i < n to keep of (m), keep {          b: room for n rows, c: room for n numbers
      y = index x i                                  for i < n {
      r, s = par j < m to keep, fold 0 {       =>      y = x[i]
        ...; yield u, v }                              for j < m { ...; b[i][j] = u; ... }
      yield r, s }                                     c[i] = s }

So no row is made, copied and freed.  How long rows are must be known before the first one is made.
"""

from __future__ import annotations

from collections import Counter

from dplc.flat import term as f
from dplc.flat.walk import mentions
from dplc.machine.emit.points.rows import in_pieces


def rows_there(par: f.Par) -> tuple[int, ...]:
    """The numbers of the results that are rows, if points can write all of them where they stay."""
    uses = Counter(mentions(par.body))
    keeps = [k for k, out in enumerate(par.outs) if out.kind == "keep"]
    rows = [k for k in keeps if isinstance(par.body.results[k].ty, f.Arr)]
    return tuple(rows) if all(is_written_there(par, k, uses) for k in rows) else ()


def is_written_there(par: f.Par, k: int, uses: Counter[str]) -> bool:
    """True if a result is what a Par of the body keeps, which is as long as it is told, and nothing else reads it."""
    row, told = par.body.results[k], par.outs[k].inner
    bind = next((bind for bind in par.body.binds if row in bind.vars), None)
    if not isinstance(row, f.Var) or uses[row.name] > 1 or bind is None or not isinstance(bind.rhs, f.Par):
        return False
    inner, out = bind.rhs, bind.rhs.outs[bind.vars.index(row)]
    whole = (*[count for _, count in inner.space], *out.inner)
    return out.kind == "keep" and out.target is None and told == tuple(out.ordered(whole)) and writes_there(inner)


def writes_there(par: f.Par) -> bool:
    """True for a Par that writes what it keeps into memory of a known size from the first point on."""
    keeps = sum(out.kind == "keep" for out in par.outs)
    return len(in_pieces(par)[1]) == keeps or bool(rows_there(par))
