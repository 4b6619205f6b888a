"""flat -> flat with every type `Res(site)` replaced by the type of the residual."""

from __future__ import annotations

from collections.abc import Callable

from dplc.flat import term as f
from dplc.flat.walk import BLOCKS, atoms, changed, rebuild, remade, with_binds, with_rhs

PLAIN = (f.Num, f.Str, f.Data)  # types without types in them


class Retype:
    """`resolve` maps a site to the type of its residual."""

    def __init__(self, resolve: Callable[[str], f.Type]) -> None:
        self.resolve = resolve
        self._types: dict[int, tuple[f.Type, f.Type]] = {}  # by identity, as large types take long to hash

    def type(self, ty: f.Type) -> f.Type:
        """The type with residuals in place of their sites.  Types are known by identity."""
        if isinstance(ty, PLAIN):
            return ty
        known = self._types.get(id(ty))
        if known is None:
            known = self._types[id(ty)] = ty, self._type(ty)
        return known[1]

    def stays(self, atoms: tuple[f.Atom, ...]) -> bool:
        """True if these atoms keep their types."""
        for atom in atoms:  # noqa: SIM110  (most are numbers; a generator takes longer)
            if type(atom.ty) is not f.Num and self.type(atom.ty) is not atom.ty:
                return False
        return True

    def _type(self, ty: f.Type) -> f.Type:
        match ty:
            case f.Tup(items):
                return remade(ty, changed(items, self.type))
            case f.Arr(elem, rank):
                return remade(ty, self.type(elem), rank)
            case f.Ref(elem):
                return remade(ty, self.type(elem))
            case f.Res(site):
                return self.type(self.resolve(site))
            case _:
                return ty

    def var(self, var: f.Var) -> f.Var:
        ty = self.type(var.ty)
        return var if ty is var.ty else f.Var(var.name, ty)

    def atom(self, atom: f.Atom) -> f.Atom:
        if isinstance(atom, f.Var):
            return self.var(atom)
        ty = self.type(atom.ty)
        return atom if ty is atom.ty else f.Const(atom.value, ty)

    def block(self, block: f.Block) -> f.Block:
        binds = [self.bind(bind) for bind in block.binds]
        return with_binds(block, binds, changed(block.results, self.atom))

    def bind(self, bind: f.Bind) -> f.Bind:
        rhs = bind.rhs
        if type(rhs) not in BLOCKS and self.stays(bind.vars) and self.stays(atoms(rhs)):
            return bind
        return with_rhs(bind, rebuild(rhs, self.atom, self.block, self.var), changed(bind.vars, self.var))

    def fn(self, fn: f.Fn) -> f.Fn:
        """A function, or the same object if no type in it changes."""
        params, results = changed(fn.params, self.var), changed(fn.results, self.type)
        return remade(fn, fn.name, params, results, self.block(fn.body), fn.label, fn.span, fn.borrowed)

    def data(self, decl: f.DataDecl) -> f.DataDecl:
        """The declaration of a data type."""
        payloads = tuple([None if p is None else self.type(p) for p in decl.payloads])
        return f.DataDecl(decl.name, payloads, decl.names)
