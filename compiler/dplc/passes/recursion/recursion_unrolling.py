"""Recursion unrolling: flat -> flat where small functions that call themselves several times have these calls inline.

    fn fib(n)                                     fn fib(n)
      small = lt n 2                                small = lt n 2
      r = if small                                  r = if small
        yield n                                       yield n
      else                                          else
        i = sub n 1;  x = fib(i)            =>        i = sub n 1
        j = sub n 2;  y = fib(j)                      less = lt i 2
        z = add x y                                   x = if less
        yield z                                         yield i
      return r                                        else
                                                        ...  fib(...)  ...  fib(...)
                                                      ...

Most calls of a tree of calls are its leaves, which do less than a call costs.  With two levels of calls in line, a
seventh of the calls is left of a recursion that calls itself twice (Rugina and Rinard, "Recursion unrolling for divide
and conquer programs", 2000).  Of a large function only the arms that do little are in line, which are the leaves.  The
stack holds a frame for several levels, so recursions can be deeper than before.

Calls at the end of a function stay: they take no stack.  Functions that make data or arrays for their results take most
of their time for that, so they stay as they are.  Before the branch with the leaves may be no effects: a call does it
again.  This comes late: other passes look at the short functions.
"""

from __future__ import annotations

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.call_graph import callees
from dplc.flat.copy import Copier
from dplc.flat.types import is_numbers
from dplc.flat.walk import blocks, every, supply_for, with_binds, with_blocks, with_body, with_branches, with_rhs
from dplc.passes.simplify.purity import quiet, shareable, takes_over
from dplc.passes.simplify.simplify import simplified

LEVELS = 2  # of calls in line
MOST = 128  # bindings of an unrolled function
LEAF = 12  # bindings of an arm that is in line without the others
IN_LINE = "in line "  # before the name of a function in the calls of it that are inlined
LOOPS = (f.For, f.While, f.Build, f.Map, f.Par)


def recursion_unrolling(program: f.Program) -> f.Program:
    hosts = {name: fn for name, fn in program.fns.items() if name in callees(fn.body)}
    supply = supply_for(program) if hosts else f.Supply()
    unrolled = {name: _unrolled(fn, supply, program) for name, fn in hosts.items()}
    return replace(program, fns=program.fns | unrolled) if hosts else program


def _unrolled(fn: f.Fn, supply: f.Supply, program: f.Program) -> f.Fn:
    """The function with as many levels of its calls in line as it may have; the same one if it has none."""
    gives_numbers = fn.results and all(map(is_numbers, fn.results))
    if not gives_numbers or any(isinstance(bind.rhs, LOOPS) for bind in every(fn.body)):
        return fn
    marked, size = with_body(fn, _marked(fn.body, fn.name, at_end=True)), len(every(fn.body))
    name, calls, made = IN_LINE + fn.name, callees(marked.body).count(IN_LINE + fn.name), fn
    if _on_one_path(marked.body, name) < 2:
        return fn
    if size + calls * size > MOST:
        leaf = _leaf(fn, supply)
        return fn if leaf is None else _in_line(marked, name, leaf, supply, program)
    for _ in range(LEVELS):
        if size + calls * len(every(made.body)) > MOST:
            break
        made = _in_line(marked, name, made, supply, program)
    return made


def _in_line(marked: f.Fn, name: str, made: f.Fn, supply: f.Supply, program: f.Program) -> f.Fn:
    """The function with `made` in place of its calls of `name`."""
    inline = {name: made}
    return simplified(marked, supply, replace(program, fns=program.fns | inline), inline)


def _leaf(fn: f.Fn, supply: f.Supply) -> f.Fn | None:
    """The function with only those arms of its branch that do little; in place of the others it is called."""
    at = [k for k, bind in enumerate(fn.body.binds) if isinstance(bind.rhs, f.If | f.Switch)]
    if len(at) != 1:
        return None
    before, bind, after = fn.body.binds[: at[0]], fn.body.binds[at[0]], fn.body.binds[at[0] + 1 :]
    rest = f.Block(after, fn.body.results)
    arms = [_end(arm, bind.vars, rest, supply) if is_leaf(arm, fn.name) else None for arm in blocks(bind.rhs)]
    if len(before) + len(after) > LEAF or not any(arms) or not all(is_twice(one.rhs) for one in before):
        return None

    def called() -> f.Block:
        ends = tuple([f.Var(supply.fresh("end"), ty) for ty in fn.results])
        return f.Block((f.Bind(ends, f.Call(fn.name, fn.params, fn.span)),), ends)

    ends = tuple([f.Var(supply.fresh("end"), ty) for ty in fn.results])
    choice = f.Bind(ends, with_branches(bind.rhs, [arm or called() for arm in arms]))
    return with_body(fn, f.Block((*before, choice), ends))


def is_leaf(arm: f.Block, name: str) -> bool:
    return len(every(arm)) <= LEAF and name not in callees(arm)


def is_twice(rhs: f.Rhs) -> bool:
    """True for what may be done in line, and again by the call: not to print, nor to count calls in a reference."""
    if isinstance(rhs, f.Op):
        return quiet(rhs) and shareable(rhs) and not takes_over(rhs)
    return isinstance(rhs, f.TupMake | f.TupGet)


def _end(arm: f.Block, vars_: tuple[f.Var, ...], rest: f.Block, supply: f.Supply) -> f.Block:
    """An arm, and what follows the branch, where its results are `vars_`."""
    copied = Copier(supply, dict(zip([var.name for var in vars_], arm.results, strict=True))).block(rest)
    return f.Block((*arm.binds, *copied.binds), copied.results)


def _marked(block: f.Block, name: str, at_end: bool) -> f.Block:
    """The block with other names in the calls that are inlined: those of `name` that are not at the end."""
    end = block.binds[-1] if at_end and block.binds and block.binds[-1].vars == block.results else None
    binds = []
    for bind in block.binds:
        rhs = bind.rhs
        if isinstance(rhs, f.Call):
            if rhs.fn == name and bind is not end:
                rhs = replace(rhs, fn=IN_LINE + name)
        else:
            rhs = with_blocks(rhs, lambda inner, last=bind is end: _marked(inner, name, last))
        binds.append(with_rhs(bind, rhs))
    return with_binds(block, binds)


def _on_one_path(block: f.Block, name: str) -> int:
    """The most calls of a function on a path through a block."""
    return sum(
        int(bind.rhs.fn == name)
        if isinstance(bind.rhs, f.Call)
        else max((_on_one_path(inner, name) for inner in blocks(bind.rhs)), default=0)
        for bind in block.binds
    )
