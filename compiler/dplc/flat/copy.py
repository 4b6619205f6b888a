"""flat -> the same code under new names, with some variables replaced.  Passes that duplicate or move code use this."""

from __future__ import annotations

from collections.abc import Mapping

from dplc.flat import term as f
from dplc.flat.walk import changed, rebuild, with_binds, with_rhs


class Copier:
    """Copies blocks; every variable bound inside gets a fresh name, so that names stay unique in a function.

    `atoms` maps variables of the original to atoms.  Copying adds the variables that the copied bindings bind."""

    def __init__(self, supply: f.Supply, atoms: Mapping[str, f.Atom]) -> None:
        self.supply = supply
        self.atoms = dict(atoms)

    def atom(self, atom: f.Atom) -> f.Atom:
        """What stands for an atom in the copy."""
        return self.atoms.get(atom.name, atom) if isinstance(atom, f.Var) else atom

    def var(self, var: f.Var) -> f.Var:
        """A new name for a variable that the copied code binds."""
        fresh = f.Var(self.supply.fresh(var.name), var.ty)
        self.atoms[var.name] = fresh
        return fresh

    def binds(self, binds: tuple[f.Bind, ...]) -> tuple[f.Bind, ...]:
        """Copies of bindings, in order."""
        copied = []
        for bind in binds:
            rhs = self.rhs(bind.rhs)
            copied.append(f.Bind(tuple([self.var(v) for v in bind.vars]), rhs))
        return tuple(copied)

    def operands(self, atoms: tuple[f.Atom, ...]) -> tuple[f.Atom, ...]:
        """What stands for some atoms in the copy."""
        known = self.atoms
        return tuple([known.get(atom.name, atom) if type(atom) is f.Var else atom for atom in atoms])

    def rhs(self, rhs: f.Rhs) -> f.Rhs:
        """A copy of a right-hand side with all that is in it."""
        return rebuild(rhs, self.atom, self.block, self.var)

    def block(self, block: f.Block) -> f.Block:
        """A copy of a block."""
        return with_binds(block, self.binds(block.binds), changed(block.results, self.atom))


class Renamed(Copier):
    """Copies code with some variables replaced.  All other names are kept, and so is code without these variables."""

    def __init__(self, known: Mapping[str, f.Atom]) -> None:
        super().__init__(f.Supply(), known)

    def binds(self, binds: tuple[f.Bind, ...]) -> tuple[f.Bind, ...]:
        return tuple([with_rhs(bind, self.rhs(bind.rhs)) for bind in binds])

    def var(self, var: f.Var) -> f.Var:
        return var
