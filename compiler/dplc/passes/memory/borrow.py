"""Borrow inference: flat -> the parameters that are borrowed, that is, whose owners stay with the caller.

    fn total(xs: list) { switch xs { cons (x, rest) -> t = total rest; add x t } }     xs is borrowed
    fn push(xs: list, x: f64) { ConMake cons (x, xs) }                                 xs is owned

A parameter is owned if the function stores it, returns it, or passes it to a function that owns it, or does so with a
part of it (so that the parts of a value with one owner can be changed in place).  This is an optimistic fixpoint: all
parameters start as borrowed, except residuals of derivatives, which are mostly read once, and so are freed while they
are read; then those that a body consumes become owned, until nothing changes.  Within an SCC of the call graph, a tail
call must stay a tail call: its arguments are owned if the caller would have to drop them after the call.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpl.node import node

from dplc.flat import term as f
from dplc.flat.call_graph import callees, groups
from dplc.flat.walk import blocks
from dplc.passes.memory.owners import Owners, Token, consumed_operands, counted_paths
from dplc.passes.recursion.modulo_cons import ends

Borrowed = dict[str, set[int]]  # function -> indices of its borrowed parameters


def infer(program: f.Program) -> Borrowed:
    """Begins with all parameters that have owners and takes back those that are given away, until nothing changes."""
    owners = {name: Owners.of(fn) for name, fn in program.fns.items()}
    given = {name: Given.by(fn, owners[name]) for name, fn in program.fns.items()}
    borrowed: Borrowed = {}
    for name, fn in program.fns.items():
        borrowed[name] = {i for i, p in enumerate(fn.params) if counted_paths(p.ty) and not residual(p.ty)}
    group_of, _ = groups(program)
    callers: dict[str, set[str]] = {}
    for name, fn in program.fns.items():
        for callee in callees(fn.body):
            callers.setdefault(callee, set()).add(name)
    todo = list(program.fns)
    waiting = set(todo)
    while todo:
        name = todo.pop()
        waiting.discard(name)
        changed = _check(program.fns[name], owners[name], given[name], borrowed, group_of)
        again = changed - {name} | {c for other in changed for c in callers.get(other, ())}
        todo += again - waiting
        waiting |= again
    return borrowed


def residual(ty: f.Type) -> bool:
    """True for what a forward sweep keeps: its owner goes to the backward sweep."""
    return isinstance(ty, f.Data) and ty.name.startswith("res.")


def _check(fn: f.Fn, owners: Owners, given: Given, borrowed: Borrowed, group_of: dict[str, int]) -> set[str]:
    """Makes owned the parameters that a body consumes or a tail call must give away.  Returns the changed functions."""
    changed = set()
    mine = borrowed[fn.name]
    taken = given.taken(borrowed)
    for i in sorted(mine):
        if taken.intersection(owners.tokens[fn.params[i].name]):
            mine.discard(i)
            changed.add(fn.name)
    kept = {token for i in mine for token in owners.tokens[fn.params[i].name]}
    for call in (*_tail_calls(fn.body), *(end.call for end in ends(fn.body, fn.name))):
        if group_of[call.fn] != group_of[fn.name]:
            continue
        for i in sorted(borrowed[call.fn]):
            if any(owners.origin(token) not in kept for token in owners.of_atom(call.args[i])):
                borrowed[call.fn].discard(i)
                changed.add(call.fn)
    return changed


@node
class Given:
    """What a body gives away, as tokens, each with the cells around it: `always`, and by its calls, which depends on
    what the callees borrow.  Loops are left out: they copy outer values anyway."""

    always: set[Token]
    calls: list[tuple[str, int, set[Token]]]  # a function, the number of an argument, its tokens

    @staticmethod
    def by(fn: f.Fn, owners: Owners) -> Given:
        found = Given(set(), [])

        def visit(block: f.Block) -> None:
            for bind in block.binds:
                rhs = bind.rhs
                if isinstance(rhs, f.Call):
                    found.calls.extend((rhs.fn, i, tokens) for i, arg in enumerate(rhs.args) if (tokens := around(arg)))
                elif isinstance(rhs, (f.If, f.Switch)):
                    for inner in blocks(rhs):
                        visit(inner)
                else:
                    for atom in consumed_operands(rhs, {}):
                        found.always.update(around(atom))
            for atom in block.results:
                found.always.update(around(atom))

        def around(atom: f.Atom) -> set[Token]:
            return {cell for token in owners.of_atom(atom) for cell in owners.around(token)}

        visit(fn.body)
        return found

    def taken(self, borrowed: Borrowed) -> set[Token]:
        """The owners that a function gives away, with these parameters borrowed."""
        return self.always.union(*[tokens for fn, i, tokens in self.calls if i not in borrowed[fn]])


def _tail_calls(block: f.Block) -> Iterator[f.Call]:
    if not block.binds or block.binds[-1].vars != block.results:
        return
    match block.binds[-1].rhs:
        case f.Call() as call:
            yield call
        case f.If() | f.Switch() as choice:
            for inner in blocks(choice):
                yield from _tail_calls(inner)
        case _:
            pass
