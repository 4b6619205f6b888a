"""flat function -> the owners of each variable, and the operands that are given away.

    p : Tup(f64[], f64)    owns one thing, (p, 0): the array
    x = TupGet p 0         owns nothing of its own: `x` is another name for what `p` owns
    q = TupMake (x, x)     stands for (p, 0) twice

Tuples are transparent.  The arrays, strings, cells and references in them are counted; each is a *token*: the variable
where it first appeared, and the path to it.  A null in a tuple has no token, but a place among the tuple's parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dpl.node import field, record

from dplc.flat import term as f
from dplc.flat.ops.table import OPS
from dplc.flat.walk import BLOCKS, binders, blocks

Token = tuple[str, tuple[int, ...]]
NOBODY: Token = ("", ())  # stands for a null


def counted_paths(ty: f.Type) -> list[tuple[int, ...]]:
    """The paths to the counted parts of a value of this type."""
    match ty:
        case f.Num():
            return []
        case f.Tup(items):
            return [(i, *path) for i, item in enumerate(items) for path in counted_paths(item)]
        case _:
            return [()]


@record
class Owners:
    """`inside` maps each part of a constructor's payload to the cell through which it is seen; `parts` has the tokens
    of tuples in which some part is null."""

    tokens: dict[str, tuple[Token, ...]] = field(default_factory=dict)
    parts: dict[str, tuple[Token, ...]] = field(default_factory=dict)
    roots: dict[str, f.Var] = field(default_factory=dict)
    inside: dict[Token, Token] = field(default_factory=dict)

    @staticmethod
    def of(fn: f.Fn) -> Owners:
        """The owners of the variables of a function."""
        owners = Owners()
        owners.define(fn.params)
        owners.block(fn.body)
        return owners

    def define(self, vars_: tuple[f.Var, ...]) -> None:
        for var in vars_:
            self.roots[var.name] = var
            self.tokens[var.name] = tuple([(var.name, path) for path in counted_paths(var.ty)])

    def block(self, block: f.Block) -> None:
        for bind in block.binds:
            rhs = bind.rhs
            if isinstance(rhs, f.TupMake):
                self.name(bind.vars[0], tuple([t for item in rhs.items for t in self.places(item)]))
            elif isinstance(rhs, f.TupGet):
                self.name(bind.vars[0], self.component(rhs.tup, rhs.index))
            else:
                if type(rhs) in BLOCKS:
                    self.inner(rhs)
                self.define(bind.vars)

    def inner(self, rhs: f.Rhs) -> None:
        match rhs:
            case f.Switch(scrutinee, cases):
                for case in cases:
                    if case.payload is not None:
                        self.define((case.payload,))
                        for token in self.tokens[case.payload.name]:
                            self.inside[token] = self.of_atom(scrutinee)[0]
            case f.For(index, _, state):
                self.define((index, *state))
            case f.While(state):
                self.define(state)
            case f.Par():
                self.define(binders(rhs))
            case _:
                pass
        for block in blocks(rhs):
            self.block(block)

    def name(self, var: f.Var, tokens: tuple[Token, ...]) -> None:
        """Makes a variable another name for what these own."""
        if NOBODY in tokens:
            self.parts[var.name] = tokens
            tokens = tuple([token for token in tokens if token is not NOBODY])
        self.tokens[var.name] = tokens

    def places(self, atom: f.Atom) -> tuple[Token, ...]:
        """The tokens of an atom's parts, one for each."""
        if isinstance(atom, f.Const):
            return (NOBODY,) * len(counted_paths(atom.ty))
        return self.parts.get(atom.name) or self.tokens[atom.name]

    def component(self, tup: f.Atom, index: int) -> tuple[Token, ...]:
        """The owners of a component of a tuple."""
        assert isinstance(tup.ty, f.Tup)
        before = sum(len(counted_paths(item)) for item in tup.ty.items[:index])
        return self.places(tup)[before : before + len(counted_paths(tup.ty.items[index]))]

    def of_atom(self, atom: f.Atom) -> tuple[Token, ...]:
        """The owners of an atom; constants have none."""
        return self.tokens[atom.name] if isinstance(atom, f.Var) else ()

    def numbers(self, atoms: Sequence[f.Atom]) -> dict[Token, int]:
        """How often each token is among those of the atoms."""
        found: dict[Token, int] = {}
        for atom in atoms:
            for token in self.of_atom(atom):
                found[token] = found.get(token, 0) + 1
        return found

    def around(self, token: Token) -> Iterator[Token]:
        """A token, the cell it lies in, the cell around that, and so on."""
        yield token
        while token in self.inside:
            token = self.inside[token]
            yield token

    def origin(self, token: Token) -> Token:
        *_, last = self.around(token)
        return last


def operands(rhs: f.Rhs, borrowed: Mapping[str, set[int]]) -> tuple[list[f.Atom], list[f.Atom]]:
    """The operands that a right-hand side consumes, and those that it borrows.  `borrowed` has the borrowed parameters
    of functions.  Tuples and a Switch's scrutinee are handled elsewhere."""
    if isinstance(rhs, f.Op):
        own = OPS[rhs.op].own
        return split(rhs.args, lambda i: i in own) if own else ([], list(rhs.args))
    match rhs:
        case f.Call(fn, args):
            return split(args, lambda i: i not in borrowed[fn])
        case f.ConMake(_, _, arg):
            return ([arg] if arg is not None else []), []
        case f.For(_, _, _, inits) | f.While(_, inits):
            return list(inits), []
        case f.Par(outs=outs):
            return [out.target for out in outs if out.target is not None], []
        case _:
            return [], []


def split(atoms: tuple[f.Atom, ...], consumed) -> tuple[list[f.Atom], list[f.Atom]]:
    sides: tuple[list[f.Atom], list[f.Atom]] = [], []
    for i, atom in enumerate(atoms):
        sides[not consumed(i)].append(atom)
    return sides


def consumed_operands(rhs: f.Rhs, borrowed: Mapping[str, set[int]]) -> list[f.Atom]:
    """The operands whose owners the right-hand side takes."""
    return operands(rhs, borrowed)[0]
