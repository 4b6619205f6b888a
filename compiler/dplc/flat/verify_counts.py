"""The verifier of reference counts: flat with counts -> the same, or a Bug.  On every path, each owner must be given
away or dropped exactly once.

    a: f64[] = fill 3 0.0      one owner
    dup a                      two owners
    b: f64[] = update a 1.0 0  `update` consumes one of them
    x: f64 = sum a             `sum` borrows, so an owner must be there
    drop a                     none; a use of `a` after this is an error, and so is a path without this line

The check goes forward, and shares no code with the pass that inserts the counts.  It only knows the convention: which
operands an operation consumes (its row in the table), which parameters a function borrows (`Fn.borrowed`), that a loop
borrows everything from outside it, and that the payload of a cell lives as long as the cell.

Tuples are transparent.  The arrays, strings, cells and references in them are counted; each is a *token*, whichever
variables name it.  An operation that writes in place asks at run time whether its operand has one owner; so other uses
of the operand only need an owner of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dpl.diagnostics import Bug

from dplc.flat import term as f
from dplc.flat import verify as types
from dplc.flat.ops.table import OPS
from dplc.flat.show import bind_head
from dplc.flat.walk import binders, overwritten

Token = int


def verify(program: f.Program) -> f.Program:
    types.verify(program)
    parts = _Parts()
    for fn in program.fns.values():
        _Fn(program, fn, parts).check()
    return program


class _Parts:
    """The counted parts of values, by their types.  What is known of a tuple is kept by identity, as types nest."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[f.Tup, list[int]]] = {}

    def number(self, ty: f.Type) -> int:
        match ty:
            case f.Num():
                return 0
            case f.Tup():
                return self.starts(ty)[-1]
            case _:
                return 1

    def starts(self, ty: f.Tup) -> list[int]:
        """How many parts lie before each component, and how many there are."""
        if (known := self.known.get(id(ty))) is None:
            starts = [0]
            for item in ty.items:
                starts.append(starts[-1] + self.number(item))
            self.known[id(ty)] = known = ty, starts
        return known[1]


class _Counts:
    """The owners of each token within the body of one loop, or of the function.  Changes can be undone."""

    def __init__(self) -> None:
        self.of: dict[Token, int] = {}
        self.log: list[tuple[Token, int]] = []

    def get(self, token: Token) -> int:
        return self.of.get(token, 0)

    def set(self, token: Token, count: int) -> None:
        self.log.append((token, self.get(token)))
        self.of[token] = count

    def take_back(self, mark: int) -> dict[Token, int]:
        """Undoes the changes since the log had this length.  Returns the counts before the undo."""
        found = {token: self.of[token] for token, _ in self.log[mark:]}
        while len(self.log) > mark:
            token, count = self.log.pop()
            self.of[token] = count
        return found


class _Fn:
    def __init__(self, program: f.Program, fn: f.Fn, parts: _Parts) -> None:
        self.program = program
        self.parts = parts
        self.fn = fn
        self.tokens: dict[str, tuple[Token | None, ...]] = {}  # the tokens of each variable's parts; None: it is null
        self.named: list[str] = []  # for each token, the variable where it first appeared
        self.cell: dict[Token, Token] = {}  # part of a payload -> the cell it lies in
        self.payloads: dict[Token, tuple[int, tuple[Token, ...]]] = {}  # cell -> the tag and parts seen by this arm
        self.lent: set[Token] = set()
        self.frames = [_Counts()]  # the function, and the enclosing loops
        self.at: f.Bind | None = None

    def wrong(self, what: str) -> Bug:
        at = "\n  " + bind_head(self.at) if self.at else ""
        return Bug(f"reference counts: in {self.fn.name}: {what}{at}")

    # ---- tokens

    def define(self, vars_: Iterable[f.Var], owners: int) -> list[Token]:
        made: list[Token] = []
        for var in vars_:
            if type(var.ty) is f.Num:
                self.tokens[var.name] = ()
                continue
            fresh = range(len(self.named), len(self.named) + self.parts.number(var.ty))
            self.named += [var.name] * len(fresh)
            self.tokens[var.name] = tuple(fresh)
            made += fresh
        for token in made if owners else ():
            self.frames[-1].set(token, owners)
        return made

    def of(self, atoms: Iterable[f.Atom]) -> list[Token]:
        return [token for atom in atoms if isinstance(atom, f.Var) for token in self.tokens[atom.name]
                if token is not None]  # fmt: skip

    def alive(self, token: Token) -> bool:
        if token in self.lent or any(frame.get(token) for frame in self.frames):
            return True
        return token in self.cell and self.alive(self.cell[token])

    def own(self, tokens: Iterable[Token]) -> None:
        """Adds an owner to each token."""
        for token in tokens:
            self.use([token])
            self.frames[-1].set(token, self.frames[-1].get(token) + 1)

    def consume(self, tokens: Iterable[Token]) -> None:
        """Removes an owner of each token.  This body must have one; for borrowed tokens it has none."""
        for token in tokens:
            count = self.frames[-1].get(token)
            if count < 1:
                raise self.wrong(f"{self.named[token]} is given away without an owner")
            self.frames[-1].set(token, count - 1)

    def use(self, tokens: Iterable[Token]) -> None:
        for token in tokens:
            if not self.alive(token):
                raise self.wrong(f"{self.named[token]} is used after its last owner has gone")

    def none_left(self, tokens: Iterable[Token]) -> None:
        for token in tokens:
            if self.frames[-1].get(token):
                raise self.wrong(f"{self.named[token]} is never dropped")

    # ---- blocks

    def check(self) -> None:
        for i, param in enumerate(self.fn.params):
            borrowed = i in self.fn.borrowed
            made = self.define([param], 0 if borrowed else 1)
            if borrowed:
                self.lent.update(made)
        self.block(self.fn.body)
        self.none_left(self.frames[0].of)

    def block(self, block: f.Block) -> None:
        """Checks a block.  Its results are given away; its own tokens must have no owner at its end."""
        first = len(self.named)
        for bind in block.binds:
            self.at = bind
            self.bind(bind)
        self.at = block.binds[-1] if block.binds else self.at
        self.consume(self.of(block.results))
        self.none_left(range(first, len(self.named)))

    def switch(self, switch: f.Switch) -> None:
        cell = next(iter(self.of([switch.scrutinee])), None)
        self.use([] if cell is None else [cell])
        bodies: list[tuple[f.Block, f.Case | None]] = [(case.body, case) for case in switch.cases]
        self.branches(bodies + ([(switch.default, None)] if switch.default else []), cell)

    def branches(self, bodies: Sequence[tuple[f.Block, f.Case | None]], cell: Token | None) -> None:
        """Checks branches.  They must have the same effect on the tokens outside."""
        counts, inside = self.frames[-1], len(self.named)
        mark, ends = len(counts.log), []
        for body, case in bodies:
            self.arm(body, case, cell)
            ends.append(counts.take_back(mark))
        for token in sorted({t for end in ends for t in end if t < inside}):
            here = {end.get(token, counts.get(token)) for end in ends}
            if len(here) > 1:
                raise self.wrong(f"the branches leave {self.named[token]} with different numbers of owners: {here}")
            counts.set(token, here.pop())

    def arm(self, body: f.Block, case: f.Case | None, cell: Token | None) -> None:
        first = len(self.named)
        if case and case.payload and cell is not None:
            parts = self.define([case.payload], 0)
            self.cell.update(dict.fromkeys(parts, cell))
            around = self.payloads.get(cell)
            self.payloads[cell] = case.tag, tuple(parts)
            self.block(body)
            self.payloads.pop(cell)
            self.payloads.update({cell: around} if around else {})
        else:
            self.block(body)
        self.none_left(range(first, len(self.named)))

    def loop(self, state: Sequence[f.Var], inits: Sequence[f.Atom], body: f.Block, cond: f.Block | None = None) -> None:
        self.consume(self.of(inits))
        self.frames.append(_Counts())
        self.define(state, 1)
        if cond:
            self.loop((), (), cond)
        self.block(body)
        self.none_left(self.frames[-1].of)
        self.frames.pop()

    def par(self, par: f.Par) -> None:
        """The points may read the targets that the Par consumes, if it keeps values there."""
        self.consume(self.of(out.target for out in par.outs if out.target is not None))
        readable = set(self.of(overwritten(par))) - self.lent
        self.lent |= readable
        self.loop(binders(par), (), par.body)
        self.lent -= readable

    # ---- bindings

    def bind(self, bind: f.Bind) -> None:
        rhs = bind.rhs
        if isinstance(rhs, (f.TupMake, f.TupGet)):
            self.tokens[bind.vars[0].name] = self.of_tuple(rhs)
            return
        if isinstance(rhs, f.Op):
            self.op(rhs, rhs.op, rhs.args)
        else:
            self.other(rhs)
        self.define(bind.vars, 1)

    def other(self, rhs: f.Rhs) -> None:
        match rhs:
            case f.Call(fn, args):
                borrowed = self.program.fns[fn].borrowed
                self.give(args, [i not in borrowed for i in range(len(args))])
            case f.ConMake(_, _, arg):
                self.consume(self.of([arg] if arg is not None else []))
            case f.If(_, then, else_):
                self.branches([(then, None), (else_, None)], None)
            case f.Switch():
                self.switch(rhs)
            case f.For(index, _, state, inits, body):
                self.loop((index, *state), inits, body)
            case f.While(state, inits, cond, body):
                self.loop(state, inits, body, cond)
            case f.Par():
                self.par(rhs)
            case _:
                raise self.wrong("an earlier stage has left this")

    def of_tuple(self, rhs: f.TupMake | f.TupGet) -> tuple[Token | None, ...]:
        if isinstance(rhs, f.TupMake):
            return tuple([token for item in rhs.items for token in self.places(item)])
        return self.component(rhs.tup, rhs.index)

    def places(self, atom: f.Atom) -> tuple[Token | None, ...]:
        """The tokens of an atom's parts, one for each."""
        return self.tokens[atom.name] if isinstance(atom, f.Var) else (None,) * self.parts.number(atom.ty)

    def component(self, tup: f.Atom, index: int) -> tuple[Token | None, ...]:
        assert isinstance(tup.ty, f.Tup)
        starts = self.parts.starts(tup.ty)
        return self.places(tup)[starts[index] : starts[index + 1]]

    def op(self, rhs: f.Op, op: str, args: tuple[f.Atom, ...]) -> None:
        tokens = self.of(args)
        if not tokens:
            return
        match op:
            case "dup":
                self.own(tokens)
            case "drop":
                self.consume(tokens)
            case "take":
                tag, parts = self.payloads.get(tokens[0], (None, ()))
                if tag != rhs.attr("tag"):
                    raise self.wrong(f"{self.named[tokens[0]]} is not taken apart in an arm for its constructor")
                self.consume(tokens)
                for part in parts:
                    self.frames[-1].set(part, self.frames[-1].get(part) + 1)
            case _:
                self.give(args, [i in OPS[op].own for i in range(len(args))])

    def give(self, args: tuple[f.Atom, ...], given: list[bool]) -> None:
        """Consumes some operands and borrows the others, which must still have an owner."""
        self.consume(self.of(a for a, consumed in zip(args, given, strict=True) if consumed))
        self.use(self.of(a for a, consumed in zip(args, given, strict=True) if not consumed))
