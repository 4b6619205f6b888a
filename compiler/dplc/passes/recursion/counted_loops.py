"""flat -> flat where while loops with a counter are for loops (trip count analysis).

    (i', s') = while state (i = a, s = b)        count = if a < n { n - a } else { 0 }
      cond { c = lt i n; yield c }         =>    (s') = for j < count state (s = b) { i = a + j; ...; yield t }
      do   { ...; k = i + 1; yield k, t }        i' = a + count

The counter goes up or down by one.  So do loops of C, and recursion that counts, once it is a loop.  The steps of a for
loop are known in number: it may be parallel, and the arrays that it collects are allocated in their full size.
"""

from __future__ import annotations

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of, integer
from dplc.flat.ops.table import OPS
from dplc.flat.walk import blocks, every, supply_for, with_binds, with_body, with_inner

ENDLESS = integer((1 << 63) - 1)


def counted_loops(program: f.Program) -> f.Program:
    looping = [fn for fn in program.fns.values() if any(isinstance(bind.rhs, f.While) for bind in every(fn.body))]
    if not looping:
        return program
    supply = supply_for(program)

    def block(old: f.Block) -> f.Block:
        binds = []
        for bind in old.binds:
            bind = with_inner(bind, block)
            binds += counted(bind, bind.rhs, supply) if isinstance(bind.rhs, f.While) else [bind]
        return with_binds(old, binds)

    return replace(program, fns=program.fns | {fn.name: with_body(fn, block(fn.body)) for fn in looping})


@node
class Test:
    """What a loop asks of a counter: that it is below a limit (`up`), above it, or not there (`unequal`); `strict`: not
    at it either."""

    limit: f.Atom
    up: bool
    strict: bool
    unequal: bool = False


@node
class Counter:
    """State number `at` of a loop, which goes up or down by one while it passes a test."""

    at: int
    test: Test
    up: bool

    @property
    def step(self) -> str:
        return "add" if self.up else "sub"


def counted(bind: f.Bind, loop: f.While, supply: f.Supply) -> list[f.Bind]:
    """A binding of a while loop, or the bindings of a for loop if it has a counter."""
    counter = counter_of(loop)
    if counter is None:
        return [bind]
    b, at, start = Builder(supply), counter.at, loop.inits[counter.at]

    def rest(items: tuple) -> tuple:
        return (*items[:at], *items[at + 1 :])

    count, index, binds = steps(b, counter, start), loop.state[at], loop.body.binds
    if not (counter.up and start == integer(0)):
        index = f.Var(supply.fresh("j"), f.I64)
        binds = (f.Bind((loop.state[at],), f.Op(counter.step, (start, index))), *binds)
    body = f.Block(binds, rest(loop.body.results))
    test = counter.test
    from_zero = test.up and test.strict and not test.unequal and start == integer(0)  # none if the limit is negative
    taken = test.limit if from_zero else count
    made = f.For(index, taken, rest(loop.state), rest(loop.inits), body, loop.collect)
    end = f.Bind((bind.vars[at],), f.Op(counter.step, (start, count)))
    return [*block_of(b.binds, ()).binds, f.Bind(rest(bind.vars), made), end]


def steps(b: Builder, counter: Counter, start: f.Atom) -> f.Atom:
    """The number of steps of a loop.  A counter that never meets its limit, or only after it wraps, is endless."""
    test = counter.test
    low, high = (start, test.limit) if counter.up else (test.limit, start)
    past = test.strict and not test.unequal
    match low, high:
        case f.Const(int(least)), f.Const(int(most)):
            number = most - least + (not test.strict)
            return integer(number) if number >= 0 else ENDLESS if test.unequal else integer(0)
        case _:
            pass
    some, count = b.op("lt" if past else "le", (low, high)), b.op("sub", (high, low))
    if not test.strict:
        count = b.op("add", (count, integer(1)))
    if not (isinstance(low, f.Const) and isinstance(low.value, int) and low.value >= (0 if past else 1)):
        count = b.op("select", (b.op("lt", (count, integer(0))), ENDLESS, count))
    return b.op("select", (some, count, ENDLESS if test.unequal else integer(0)))


def counter_of(loop: f.While) -> Counter | None:
    """The counter of a loop; None if it has none."""
    match loop.cond.binds:
        case (f.Bind(asked, f.Op(compare, (one, other))),) if asked == loop.cond.results:
            holds = True
        case (f.Bind(asked, f.Op(compare, (one, other))), f.Bind(no, f.Op("not", args))) if (
            args == asked and no == loop.cond.results
        ):
            holds = False
        case _:
            return None
    turned = other in loop.state
    if turned:
        one, other = other, one
    test = tested(compare, holds, turned, other)
    if test is None or one not in loop.state or other in loop.state or one.ty != f.I64:
        return None
    at = loop.state.index(one)
    for up in (True, False):
        if (test.unequal or test.up == up) and counts(loop.body, loop.body.results[at], one, up):
            return Counter(at, test, up)
    return None


def tested(compare: str, holds: bool, turned: bool, limit: f.Atom) -> Test | None:
    """What a comparison with a limit asks, if it is to hold or not; `turned`: the limit stands first."""
    sign = OPS[compare].sign
    if sign is not None:
        factor, less = sign
        return Test(limit, (factor < 0) == (holds != turned), (less == 1) == holds)
    return Test(limit, True, True, unequal=True) if compare == ("ne" if holds else "eq") else None


def counts(block: f.Block, atom: f.Atom, var: f.Atom, up: bool) -> bool:
    """True if an atom at the end of a block is a variable after a step up or down, on every path."""
    match next((bind for bind in block.binds if atom in bind.vars), None):
        case f.Bind(_, f.Op("add", operands)) if up:
            return operands == (var, integer(1)) or operands == (integer(1), var)
        case f.Bind(_, f.Op("sub", operands)) if not up:
            return operands == (var, integer(1))
        case f.Bind(vars_, f.If() | f.Switch() as choice):
            at = vars_.index(atom) if isinstance(atom, f.Var) else 0
            return all(counts(inner, inner.results[at], var, up) for inner in blocks(choice))
        case _:
            return False
