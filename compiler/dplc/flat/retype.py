"""flat -> flat with every type `Res(site)` replaced by the type of the residual."""

from __future__ import annotations

from collections.abc import Callable

from dplc.flat import term as f
from dplc.flat.walk import rebuild


class Retype:
    """`resolve` maps a site to the type of its residual."""

    def __init__(self, resolve: Callable[[str], f.Type]) -> None:
        self.resolve = resolve
        self._types: dict[f.Type, f.Type] = {}

    def type(self, ty: f.Type) -> f.Type:
        if isinstance(ty, f.Num | f.Str | f.Data):
            return ty
        known = self._types.get(ty)
        if known is None:
            known = self._types[ty] = self._type(ty)
        return known

    def _type(self, ty: f.Type) -> f.Type:
        match ty:
            case f.Tup(items):
                return f.Tup(tuple(map(self.type, items)))
            case f.Arr(elem, rank):
                return f.Arr(self.type(elem), rank)
            case f.Ref(elem):
                return f.Ref(self.type(elem))
            case f.Res(site):
                return self.type(self.resolve(site))
            case _:
                return ty

    def var(self, var: f.Var) -> f.Var:
        ty = self.type(var.ty)
        return var if ty is var.ty else f.Var(var.name, ty)

    def atom(self, atom: f.Atom) -> f.Atom:
        return self.var(atom) if isinstance(atom, f.Var) else f.Const(atom.value, self.type(atom.ty))

    def block(self, block: f.Block) -> f.Block:
        binds = [
            f.Bind(tuple(map(self.var, bind.vars)), rebuild(bind.rhs, self.atom, self.block, self.var))
            for bind in block.binds
        ]
        return f.Block(tuple(binds), tuple(map(self.atom, block.results)))

    def fn(self, fn: f.Fn) -> f.Fn:
        params, results = tuple(map(self.var, fn.params)), tuple(map(self.type, fn.results))
        return f.Fn(fn.name, params, results, self.block(fn.body), fn.label, fn.span)

    def data(self, decl: f.DataDecl) -> f.DataDecl:
        payloads = tuple([None if p is None else self.type(p) for p in decl.payloads])
        return f.DataDecl(decl.name, payloads, decl.names)
