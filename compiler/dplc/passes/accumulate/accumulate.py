"""flat -> flat where a value that is only added to an accumulator is computed directly into it, in place.

    m = matmul a b                          c' = matmul_acc c a b
    c' = acc_add c m               =>

    z = acc_index null v n i                c' = acc_index c v n i
    c' = acc_add c z

The second rewrite saves an array of zeros for each element read.  Additions move into the branches that compute their
operands:

    z, y = if p { yield null, c }           y' = if p { yield c }
              { yield u, v }        =>               { t = acc_add v u; yield t }
    y' = acc_add y z

An element that is set to zero and then added to is written directly (`overwrite`), or stays if it is what it was
(`idle_updates`).  What a loop adds to one place is added once, after the loop (`fixed_places`), what it adds at
quotients of its index once for each of these (`quotient_places`), and outer products of loops and recursions some at a
time (`delayed_updates`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import TypeGuard

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.kinds import any_of, kinds
from dplc.flat.ops.row import Effect, Fails
from dplc.flat.ops.table import OPS
from dplc.flat.walk import atoms, mentions, names, supply_for, with_binds, with_blocks, with_body, with_inner
from dplc.passes.accumulate.delayed_updates import loop_updated_late, recursion_updated_late
from dplc.passes.accumulate.fixed_places import added_once, numbers_of
from dplc.passes.accumulate.idle_updates import without_idle_updates
from dplc.passes.accumulate.overwrite import written_over
from dplc.passes.accumulate.quotient_places import parted
from dplc.passes.simplify.fold import is_null

NEAR = 8  # bindings behind which a branch is moved
ADDITIONS = any_of("acc_add", "acc_index", "matmul_acc")  # each change here is one of these
UPDATES = any_of("update")


def accumulate(program: f.Program, late: bool = True) -> f.Program:
    """The program with its additions in place.  Outer products are not collected unless `late` is true."""
    supply = cache(lambda: supply_for(program))
    fns = [with_body(fn, _function(fn, supply, late)) for fn in program.fns.values()]
    fns = [one for fn in fns for one in (recursion_updated_late(fn, supply) if late else (fn,))]
    return replace(program, fns={fn.name: fn for fn in fns})


def _function(fn: f.Fn, supply: Callable[[], f.Supply], late: bool) -> f.Block:
    uses, numbers = Counter(mentions(fn.body)), cache(lambda: numbers_of(fn.body))

    def block(body: f.Block) -> f.Block:
        if not kinds(body) & ADDITIONS:
            return body
        binds: list[f.Bind] = []
        for bind in _block(body.binds, uses, block):
            for part in parted(bind, supply) if isinstance(bind.rhs, f.For) else [bind]:
                for one in added_once(part, supply, numbers) if isinstance(part.rhs, f.For) else [part]:
                    binds += loop_updated_late(one, supply) if late and isinstance(one.rhs, f.For) else [one]
        return with_binds(body, binds)

    return without_idle_updates(block(fn.body)) if kinds(fn.body) & (ADDITIONS | UPDATES) else fn.body


def _block(binds: tuple[f.Bind, ...], uses: Counter[str], inner) -> Iterator[f.Bind]:
    """Operations wait until the addition that uses them.  The accumulating operation then takes the place of that
    addition."""
    binds = written_over(_into_branches(binds, uses), uses)
    sums = {name for bind in binds if (op := _sum(bind)) for name in names(op.args)}
    waiting: dict[str, f.Op] = {}
    for bind in binds:
        name = bind.vars[0].name if len(bind.vars) == 1 else ""
        if name in sums and uses[name] == 1 and (op := _starter(bind.rhs)):
            waiting[name] = op
        elif op := _sum(bind):
            yield from _add(bind, op, waiting)
        else:
            yield with_inner(bind, inner)


# ---- into branches


def _into_branches(binds: tuple[f.Bind, ...], uses: Counter[str]) -> tuple[f.Bind, ...]:
    """Moves an addition into the branch that computes one of its operands."""
    written: list[f.Bind] = []
    where: dict[str, int] = {}  # the position of the binding that defines a variable
    for bind in binds:
        op = _sum(bind)
        if op is None or not _merge(bind, op, written, where, uses):
            where.update((var.name, len(written)) for var in bind.vars)
            written.append(bind)
    return tuple(written)


def _merge(bind: f.Bind, op: f.Op, written: list[f.Bind], where: dict[str, int], uses: Counter[str]) -> bool:
    """Moves an addition into the branch that computes one of its operands.  Returns False if that is impossible."""
    for x, y in (op.args, op.args[::-1]):
        if not isinstance(y, f.Var) or uses[y.name] != 1:
            continue
        at = where.get(y.name, -1)
        if at < 0 or not isinstance(written[at].rhs, f.If | f.Switch):
            continue
        other, mentioned = (where.get(x.name, -1), uses[x.name]) if isinstance(x, f.Var) else (-1, 0)
        if other == at and mentioned != 1:
            continue
        if other > at:
            if not _moved_last(at, written, where):
                continue
            at = len(written) - 1
        written[at] = _add_inside(written[at], x, y, bind, uses)
        where[bind.vars[0].name] = at
        return True
    return False


def _moved_last(at: int, written: list[f.Bind], where: dict[str, int]) -> bool:
    """Moves a branch behind what follows it, if that is little, has no effects, cannot fail and does not use it."""
    branch, after = written[at], written[at + 1 :]
    bound = {var.name for var in branch.vars}
    if len(after) > NEAR or not all(_is_quiet(bind.rhs) and bound.isdisjoint(names(atoms(bind.rhs))) for bind in after):
        return False
    written[at:] = [*after, branch]
    for position in range(at, len(written)):
        where.update((var.name, position) for var in written[position].vars)
    return True


def _is_quiet(rhs: f.Rhs) -> bool:
    if not isinstance(rhs, f.Op):
        return isinstance(rhs, f.TupMake | f.TupGet)
    row = OPS[rhs.op]
    return row.effects is Effect.NONE and (row.fails is Fails.NEVER or rhs.attr("unchecked") is True)


def _add_inside(branch: f.Bind, x: f.Atom, y: f.Var, bind: f.Bind, uses: Counter[str]) -> f.Bind:
    """The branch with `acc_add x y` in place of `y`.  `x` is another result of the branch, or was defined before it."""
    place = branch.vars.index(y)
    others = [i for i, var in enumerate(branch.vars) if var == x]
    arms = 0

    def arm(block: f.Block) -> f.Block:
        nonlocal arms
        arms += 1
        results = list(block.results)
        left, right = results[others[0]] if others else x, results[place]
        more: tuple[f.Bind, ...] = ()
        if is_null(left) or is_null(right):
            results[place] = right if is_null(left) else left
        else:
            total = f.Var(f"{bind.vars[0].name}.{arms}", bind.vars[0].ty)
            uses[total.name] = 1
            more = (f.Bind((total,), replace(bind.rhs, args=(left, right))),)
            results[place] = total
        for i in others:
            del results[i]
        return f.Block((*block.binds, *more), tuple(results))

    variables = list(branch.vars)
    variables[place] = bind.vars[0]
    for i in others:
        del variables[i]
    rhs = with_blocks(branch.rhs, arm)
    if isinstance(x, f.Var) and not others:
        uses[x.name] += arms - 1
    return replace(branch, vars=tuple(variables), rhs=rhs)


# ---- in place


def _sum(bind: f.Bind) -> f.Op | None:
    """The operation of a binding, if it is an addition of arrays."""
    match bind:
        case f.Bind((f.Var(_, f.Arr()),), f.Op("acc_add") as op):
            return op
        case _:
            return None


def _starter(rhs: f.Rhs) -> f.Op | None:
    """The operation, if it could add to an accumulator instead of making a new array."""
    match rhs:
        case f.Op("matmul"):
            return rhs
        case f.Op(op, (f.Const(None), *_)) if OPS[op].accumulates:  # it starts its own accumulator
            return rhs
        case _:
            return None


def _add(bind: f.Bind, op: f.Op, waiting: dict[str, f.Op]) -> Iterator[f.Bind]:
    """An addition.  If one operand waits, it is computed into the other one."""
    a, b = op.args
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


def _waits(atom: f.Atom, waiting: dict[str, f.Op]) -> TypeGuard[f.Var]:
    return isinstance(atom, f.Var) and atom.name in waiting
