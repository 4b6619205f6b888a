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
from dplc.flat.walk import blocks, every, supply_for, with_binds, with_body, with_inner

UP, DOWN = "add", "sub"
NOT = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}
FLIPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
STEPS = {"lt": (UP,), "le": (UP,), "gt": (DOWN,), "ge": (DOWN,), "ne": (UP, DOWN)}
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
class Counter:
    """State number `at` of a loop, which takes a `step` while it compares with the limit."""

    at: int
    compare: str
    limit: f.Atom
    step: str


def counted(bind: f.Bind, loop: f.While, supply: f.Supply) -> list[f.Bind]:
    """A binding of a while loop, or the bindings of a for loop if it has a counter."""
    counter = counter_of(loop)
    if counter is None:
        return [bind]
    b, at, start = Builder(supply), counter.at, loop.inits[counter.at]

    def rest(items: tuple) -> tuple:
        return (*items[:at], *items[at + 1 :])

    count, j = steps(b, counter, start), f.Var(supply.fresh("j"), f.I64)
    here = f.Bind((loop.state[at],), f.Op(counter.step, (start, j)))
    body = f.Block((here, *loop.body.binds), rest(loop.body.results))
    from_zero = counter.compare == "lt" and start == integer(0)  # no steps if the limit is negative
    taken = counter.limit if from_zero else count
    made = f.For(j, taken, rest(loop.state), rest(loop.inits), body, loop.collect)
    end = f.Bind((bind.vars[at],), f.Op(counter.step, (start, count)))
    return [*block_of(b.binds, ()).binds, f.Bind(rest(bind.vars), made), end]


def steps(b: Builder, counter: Counter, start: f.Atom) -> f.Atom:
    """The number of steps of a loop.  A counter that never meets its limit, or only after it wraps, is endless."""
    low, high = (start, counter.limit) if counter.step == UP else (counter.limit, start)
    strict = counter.compare in ("lt", "gt")
    some, count = b.op("lt" if strict else "le", (low, high)), b.op("sub", (high, low))
    if counter.compare in ("le", "ge"):
        count = b.op("add", (count, integer(1)))
    if not (isinstance(low, f.Const) and isinstance(low.value, int) and low.value >= (0 if strict else 1)):
        count = b.op("select", (b.op("lt", (count, integer(0))), ENDLESS, count))
    return b.op("select", (some, count, ENDLESS if counter.compare == "ne" else integer(0)))


def counter_of(loop: f.While) -> Counter | None:
    """The counter of a loop; None if it has none."""
    match loop.cond.binds:
        case (f.Bind(asked, f.Op(compare, (one, other))),) if asked == loop.cond.results:
            pass
        case (f.Bind(asked, f.Op(compare, (one, other))), f.Bind(no, f.Op("not", args))) if (
            args == asked and no == loop.cond.results
        ):
            compare = NOT.get(compare, "")
        case _:
            return None
    if other in loop.state:
        one, other, compare = other, one, FLIPPED.get(compare, "")
    if one not in loop.state or other in loop.state or one.ty != f.I64:
        return None
    at = loop.state.index(one)
    for step in STEPS.get(compare, ()):
        if counts(loop.body, loop.body.results[at], one, step):
            return Counter(at, compare, other, step)
    return None


def counts(block: f.Block, atom: f.Atom, var: f.Atom, step: str) -> bool:
    """True if an atom at the end of a block is a variable after a step, on every path."""
    match next((bind for bind in block.binds if atom in bind.vars), None):
        case f.Bind(_, f.Op(op, operands)):
            return op == step and operands in ((var, integer(1)), *([(integer(1), var)] if step == UP else []))
        case f.Bind(vars_, f.If() | f.Switch() as choice):
            at = vars_.index(atom) if isinstance(atom, f.Var) else 0
            return all(counts(inner, inner.results[at], var, step) for inner in blocks(choice))
        case _:
            return False
