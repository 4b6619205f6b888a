"""flat -> flat with `dup`, `drop` and `take`: reference counting.

    fn f(a: f64[]) { b = update a 1.0 0        fn f(a: f64[]) { dup a
                     c = mul b a         =>                     b = update a 1.0 0      a copy: `a` has two owners
                     ... b ... }                                c = mul b a
                                                                drop a
                                                                ... b ... }

Precise reference counting as in Perceus (Reinking et al. 2021): each token (`passes/memory/owners.py`) is consumed
exactly once on every path; a consuming use that is not the last is preceded by a `dup`; a token is dropped right after
its last use if that use only borrowed it, and at the beginning of a branch that does not use it.  Parameters are
borrowed if `passes/memory/borrow.py` says so; in the body of a loop, everything from outside it is borrowed.

The payload of a cell is seen through the cell.  An arm of a Switch that is the cell's last use takes it apart:
`take` frees the cell and leaves the payload's parts to the arm, or, if the cell has other owners, increments the counts
of the parts.  While the cell is still owned here, the parts are borrowed from it.

Before that, updates move to where the array is not read any more (`late_updates.py`), and what is read, changed and
written again is taken out of arrays (`taken_elements.py`) and references (`moved_contents.py`), and so are records of
derivatives (`last_reads.py`).  What follows a recursive call in a branch moves into the branch
(`recursion/tail_duplication.py`).

Blocks are walked backwards, with liveness: `live` has the tokens needed later.  Borrowed tokens are always live.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from dpl.diagnostics import Bug
from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.walk import accumulators, blocks, highest, number_of, overwritten
from dplc.passes.memory import borrow
from dplc.passes.memory.last_reads import last_reads
from dplc.passes.memory.late_updates import late_updates
from dplc.passes.memory.moved_contents import moved_contents
from dplc.passes.memory.owners import Owners, Token, operands
from dplc.passes.memory.taken_elements import taken_elements
from dplc.passes.recursion.tail_duplication import tail_duplication


def count_references(program: f.Program, device: bool = False) -> f.Program:
    """With a device, what is a Par stays one: it may be a launch."""
    program = tail_duplication(last_reads(moved_contents(taken_elements(late_updates(program))), device))
    borrowed = borrow.infer(program)
    fns = {name: _Counter(fn, borrowed).function() for name, fn in program.fns.items()}
    return replace(program, fns=fns)


class _Counter:
    """Inserts reference counting into one function."""

    def __init__(self, fn: f.Fn, borrowed: borrow.Borrowed) -> None:
        self.fn = fn
        self.borrowed = borrowed
        self.owners = Owners.of(fn)
        self.supply = f.Supply()
        self.supply.count = max(highest(fn.body), *[number_of(p.name) for p in fn.params], 0)

    def function(self) -> f.Fn:
        kept = self.borrowed[self.fn.name]
        tokens = [self.owners.tokens[p.name] for p in self.fn.params]
        live_after = frozenset(t for i in kept for t in tokens[i])
        body, live = self.block(self.fn.body, live_after)
        unused = [t for i, own in enumerate(tokens) if i not in kept for t in own if t not in live]
        return replace(self.fn, body=_begin(self.drops(unused), body), borrowed=tuple(sorted(kept)))

    # ---- blocks

    def block(self, block: f.Block, after: Set[Token]) -> tuple[f.Block, set[Token]]:
        """The block with counting, and the tokens live before it.  `after` is live after it."""
        given = self.owners.numbers(block.results)
        live = set(after)
        pieces = [self.dups(t for t, n in given.items() for _ in range(n - (t not in after)))]
        live.update(given)
        for bind in reversed(block.binds):
            pieces.append(self.bind(bind, live))
        binds = tuple([bind for piece in reversed(pieces) for bind in piece])
        return f.Block(binds, block.results), live

    def bind(self, bind: f.Bind, live: set[Token]) -> list[f.Bind]:
        """A binding with counting around it.  Changes `live` from the tokens live after it to those live before it."""
        if isinstance(bind.rhs, f.TupMake | f.TupGet):
            return [bind]
        made = [t for var in bind.vars for t in self.owners.tokens[var.name]]
        if not made and isinstance(bind.rhs, f.Op) and not any(map(self.owners.of_atom, bind.rhs.args)):
            return [bind]  # numbers of numbers, as most bindings
        unused = [t for t in made if t not in live]
        live.difference_update(made)
        consumed, used = operands(bind.rhs, self.borrowed)
        given = self.owners.numbers(consumed)
        lent = {t for atom in used for t in self.owners.of_atom(atom)}
        match bind.rhs:
            case f.If(cond, then, else_):
                (then, else_), needed = self.branches((then, else_), live)
                live.update(needed)
                rhs: f.Rhs = f.If(cond, then, else_)
            case f.Switch() as switch:
                rhs, needed = self.switch(switch, live)
                live.update(needed)
            case f.For() | f.While() | f.Par() as loop:
                rhs, outer = self.loop(loop)
                lent |= outer
            case other:
                rhs = other
        before = self.dups(t for t, n in given.items() for _ in range(n - (t not in live and t not in lent)))
        spent = [t for t in lent if t not in live]
        live.update(given)
        live.update(lent)
        return [*before, f.Bind(bind.vars, rhs), *self.drops([*spent, *unused])]

    # ---- control

    def branches(self, bodies: tuple[f.Block, ...], after: Set[Token]) -> tuple[tuple[f.Block, ...], set[Token]]:
        """The branches of a choice.  Each drops at its beginning the tokens that only the other branches use."""
        done = [self.block(body, after) for body in bodies]
        live = set[Token]().union(*(needed for _, needed in done))
        return tuple([_begin(self.drops(live - needed), body) for body, needed in done]), live

    def switch(self, switch: f.Switch, after: Set[Token]) -> tuple[f.Switch, set[Token]]:
        tokens = self.owners.of_atom(switch.scrutinee)
        if not tokens:  # the scrutinee is an integer or null
            bodies = [case.body for case in switch.cases] + ([switch.default] if switch.default else [])
            bodies, live = self.branches(tuple(bodies), after)
            cases = [replace(case, body=body) for case, body in zip(switch.cases, bodies, strict=False)]
            return f.Switch(switch.scrutinee, tuple(cases), bodies[-1] if switch.default else None), live
        cell = tokens[0]
        arms = [self.arm(switch.scrutinee, cell, case, after) for case in switch.cases]
        default = self.block(switch.default, after) if switch.default else None
        needed = [live for _, live in arms] + ([default[1]] if default else [])
        live = {cell}.union(*needed)
        cases = [
            replace(case, body=_begin(self.drops(live - own - {cell}), body))
            for case, (body, own) in zip(switch.cases, arms, strict=True)
        ]
        rest = _begin(self.drops(live - default[1]), default[0]) if default else None
        return f.Switch(switch.scrutinee, tuple(cases), rest), live

    def arm(self, scrutinee: f.Atom, cell: Token, case: f.Case, after: Set[Token]) -> tuple[f.Block, set[Token]]:
        """One arm of a Switch.  It also disposes of the cell if that is not needed any more."""
        parts = frozenset(self.owners.tokens[case.payload.name]) if case.payload else frozenset()
        if cell in after:
            body, live = self.block(case.body, after | parts)
            return body, live - parts
        body, live = self.block(case.body, after)
        wanted = parts & live
        if cell in live:
            head = self.dups(sorted(wanted))
        elif wanted:
            assert isinstance(scrutinee.ty, f.Data)
            attrs = (("data", scrutinee.ty.name), ("tag", case.tag))
            naming: list[f.Bind] = []
            atom = self.mention(cell, naming, {})
            head = [*naming, f.Bind((), f.Op("take", (atom,), attrs)), *self.drops(parts - live)]
        else:
            head = self.drops([cell])
        return _begin(head, body), live - parts

    def loop(self, loop: f.For | f.While | f.Par) -> tuple[f.Rhs, set[Token]]:
        """A loop, and the tokens that it borrows from outside: they are live throughout its body.  The points of a Par
        may read a target of values that they keep, though the Par consumes it: each reads its own element.  A target
        that points add to has another owner if they read it, and so is copied."""
        state = accumulators(loop) if isinstance(loop, f.Par) else loop.state
        own = frozenset(t for var in state for t in self.owners.tokens[var.name])
        targets = {t for atom in overwritten(loop) for t in self.owners.of_atom(atom)}
        outer = self.free(loop) - own - targets
        body, live = self.block(loop.body, outer | targets)
        body = _begin(self.drops(own - live), body)
        if isinstance(loop, f.While):
            cond, _ = self.block(loop.cond, outer | own)
            return replace(loop, cond=cond, body=body), outer
        return replace(loop, body=body), outer

    def free(self, loop: f.For | f.While | f.Par) -> set[Token]:
        """The tokens from outside that the blocks of a loop use."""
        found: set[Token] = set()
        defined: set[str] = set()
        for block in (loop.cond, loop.body) if isinstance(loop, f.While) else (loop.body,):
            self.used(block, found, defined)
        return {t for t in found if t[0] not in defined}

    def used(self, block: f.Block, found: set[Token], defined: set[str]) -> None:
        for bind in block.binds:
            defined.update([var.name for var in bind.vars])
            self.used_by(bind.rhs, found, defined)
        for atom in block.results:
            found.update(self.owners.of_atom(atom))

    def used_by(self, rhs: f.Rhs, found: set[Token], defined: set[str]) -> None:
        for side in operands(rhs, self.borrowed):
            for atom in side:
                found.update(self.owners.of_atom(atom))
        match rhs:
            case f.Switch(scrutinee, cases):
                found.update(self.owners.of_atom(scrutinee))
                defined.update([case.payload.name for case in cases if case.payload])
            case f.For() | f.While():
                defined.update([var.name for var in rhs.state])
            case f.Par():
                defined.update([var.name for var in accumulators(rhs)])
            case f.Ad():
                raise Bug("flat: a derivative is still to be taken")
            case _:
                pass
        for block in blocks(rhs):
            self.used(block, found, defined)

    # ---- instructions

    def dups(self, tokens: Iterable[Token]) -> list[f.Bind]:
        return self.counts("dup", tokens)

    def drops(self, tokens: Iterable[Token]) -> list[f.Bind]:
        return self.counts("drop", sorted(tokens))

    def counts(self, op: str, tokens: Iterable[Token]) -> list[f.Bind]:
        """Changes of counts.  Parts of one tuple share the bindings that take it apart."""
        found: list[f.Bind] = []
        parts: dict[Token, f.Var] = {}
        for token in tokens:
            atom = self.mention(token, found, parts)
            found.append(f.Bind((), f.Op(op, (atom,))))
        return found

    def mention(self, token: Token, naming: list[f.Bind], parts: dict[Token, f.Var]) -> f.Var:
        """The variable for a token; the bindings that make it are added to `naming`, where `parts` are made already."""
        name, path = token
        if not path:
            return self.owners.roots[name]
        if (part := parts.get(token)) is None:
            whole = self.mention((name, path[:-1]), naming, parts)
            assert isinstance(whole.ty, f.Tup)
            part = parts[token] = f.Var(self.supply.fresh("part"), whole.ty.items[path[-1]])
            naming.append(f.Bind((part,), f.TupGet(whole, path[-1])))
        return part


def _begin(head: list[f.Bind], block: f.Block) -> f.Block:
    return f.Block((*head, *block.binds), block.results) if head else block
