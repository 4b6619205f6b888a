"""flat -> flat where what is only added to an accumulator is added as it is computed.

    m = matmul a b                          c' = matmul_acc c a b
    c' = acc_add c m               =>

    z = acc_index null v n i                c' = acc_index c v n i
    c' = acc_add c z

The second one spares an array of zeros for each element looked up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.traverse import mentions, names, with_blocks

STARTED = ("acc_index", "acc_slice")  # with an accumulator of their own


def accumulate(program: f.Program) -> f.Program:
    return replace(program, fns={name: replace(fn, body=_function(fn)) for name, fn in program.fns.items()})


def _function(fn: f.Fn) -> f.Block:
    uses = Counter(mentions(fn.body))

    def block(body: f.Block) -> f.Block:
        return f.Block(tuple(_block(body.binds, uses, block)), body.results)

    return block(fn.body)


def _block(binds: tuple[f.Bind, ...], uses: Counter[str], inner) -> Iterator[f.Bind]:
    """Operations wait until the addition that wants them, which then takes their place."""
    sums = {name for bind in binds if _is_sum(bind) for name in names(bind.rhs.args)}
    waiting: dict[str, f.Op] = {}
    for bind in binds:
        if len(bind.vars) == 1 and bind.vars[0].name in sums and uses[bind.vars[0].name] == 1 and _can_wait(bind.rhs):
            waiting[bind.vars[0].name] = bind.rhs
        elif _is_sum(bind):
            yield from _add(bind, waiting)
        else:
            yield replace(bind, rhs=with_blocks(bind.rhs, inner))


def _is_sum(bind: f.Bind) -> bool:
    return isinstance(bind.rhs, f.Op) and bind.rhs.op == "acc_add" and isinstance(bind.vars[0].ty, f.Arr)


def _can_wait(rhs: f.Rhs) -> bool:
    match rhs:
        case f.Op("matmul"):
            return True
        case f.Op(op, (f.Const(None), *_)):
            return op in STARTED
    return False


def _add(bind: f.Bind, waiting: dict[str, f.Op]) -> Iterator[f.Bind]:
    """An addition, into the other operand if one of them waits."""
    a, b = bind.rhs.args
    if not _waits(b, waiting):
        a, b = b, a
    if not _waits(b, waiting):
        yield bind
        return
    if _waits(a, waiting):
        yield f.Bind((a,), waiting.pop(a.name))
    term = waiting.pop(b.name)
    if term.op == "matmul":
        yield f.Bind(bind.vars, replace(term, op="matmul_acc", args=(a, *term.args)))
    else:
        yield f.Bind(bind.vars, replace(term, args=(a, *term.args[1:])))


def _waits(atom: f.Atom, waiting: dict[str, f.Op]) -> bool:
    return isinstance(atom, f.Var) and atom.name in waiting
