"""Reads at the own point are checked once, before a Par, if nothing else in it can fail.

    par i < n {                                  m = min n (dim a) (dim b)
      x = index a i                              if m < n { index a m; index b m }      fails as point m would
      y = index b i                        =>    par i < n {
      ... }                                        x = index unchecked a i; y = index unchecked b i; ... }

Points without checks are vectorised.
"""

from __future__ import annotations

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of
from dplc.passes.simplify.purity import droppable


def checked_before(supply: f.Supply, bind: f.Bind) -> tuple[f.Bind, ...]:
    """A Par, after the checks of its reads; the same if it cannot be done."""
    par = bind.rhs
    if not isinstance(par, f.Par) or par.ordered or len(par.space) != 1:
        return (bind,)
    ((index, count),) = par.space
    own = {var.name for inner in par.body.binds for var in inner.vars}
    reads = [inner for inner in par.body.binds if is_read(inner.rhs, index, own)]
    if not reads or not all(inner in reads or droppable(inner.rhs) for inner in par.body.binds):
        return (bind,)
    b, least = Builder(supply), count
    for read in reads:
        assert isinstance(read.rhs, f.Op)
        least = b.op("min", (least, b.op("dim", read.rhs.args[:1], k=0)))
    short = b.op("lt", (least, count))
    with b.inside() as failing:
        for read in reads:
            assert isinstance(read.rhs, f.Op)
            element = f.Var(supply.fresh(read.vars[0].name), read.vars[0].ty)
            failing.append(f.Bind((element,), replace(read.rhs, args=(read.rhs.args[0], least))))
    b.binds.append(f.Bind((), f.If(short, block_of(failing, ()), f.Block((), ()))))
    body = f.Block(tuple([unchecked(inner) if inner in reads else inner for inner in par.body.binds]), par.body.results)
    return (*block_of(b.binds, ()).binds, f.Bind(bind.vars, replace(par, body=body)))


def is_read(rhs: f.Rhs, index: f.Var, own: set[str]) -> bool:
    """True for a checked read of a vector from outside at the own point."""
    match rhs:
        case f.Op("index", (f.Var(name, f.Arr(_, 1)), at)):
            return at == index and name not in own and not rhs.attr("unchecked")
        case _:
            return False


def unchecked(bind: f.Bind) -> f.Bind:
    assert isinstance(bind.rhs, f.Op)
    attrs = (*[a for a in bind.rhs.attrs if a[0] != "unchecked"], ("unchecked", True))
    return f.Bind(bind.vars, replace(bind.rhs, attrs=attrs))
