"""Arrays that many values hold: flat -> flat where each is behind a reference, which these hold in its place.

    fn make(a: f64[], i)                      fn make(a: f64[], i, r: ref f64[])
      rest = make(a, i + 1)                     rest = make(a, i + 1, r)
      t = (a, rest)                    =>       t = (r, rest)
      l = list#1 t                              l = list#1 t

Reverse mode gives each part of data a cotangent of its own.  Where n closures hold one array of n numbers, these are
n * n numbers.  References become places in a store (`store_passing`), so all that hold an array share the cotangent at
its place.  The reference is made where the array is bound, and is passed to functions that put the array into data.
`held_arrays` finds the data, the elements of arrays and the references that hold such arrays.  A reference to an array
becomes one to a reference.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from dpl.node import replace

from dplc.ad.stores.held_arrays import (
    Body,
    Elements,
    Holder,
    Path,
    Place,
    Search,
    enters,
    holds_array,
    is_array,
    leaves,
    part,
)
from dplc.flat import term as f
from dplc.flat.retype import Retype
from dplc.flat.walk import binders, rebuild, supply_for, with_binds


def share_arrays(program: f.Program) -> f.Program:
    """The program itself if no array is worth a reference."""
    search = Search(program)
    return _Boxing(search).program() if search.chosen else program


class _AsReferences(Retype):
    """The types of what holds references in place of arrays."""

    def __init__(self, chosen: set[Holder]) -> None:
        super().__init__(f.Res)
        self.chosen = chosen

    def _type(self, ty: f.Type) -> f.Type:
        match ty:
            case f.Arr(elem, rank) if Elements(elem) in self.chosen:
                return f.Arr(self.boxed(elem), rank)
            case f.Ref(content) if ty in self.chosen:
                return f.Ref(self.boxed(content))
            case f.Res():
                return ty
            case _:
                return super()._type(ty)

    def boxed(self, ty: f.Type) -> f.Type:
        """The type of a payload, element or content with references."""
        if is_array(ty):
            return f.Ref(ty)
        return f.Tup(tuple(map(self.boxed, ty.items))) if isinstance(ty, f.Tup) else self.type(ty)

    def data(self, decl: f.DataDecl) -> f.DataDecl:
        change = self.boxed if f.Data(decl.name) in self.chosen else self.type
        return replace(decl, payloads=tuple([None if p is None else change(p) for p in decl.payloads]))


class _Boxing:
    """Writes the program.  `boxes` has the references to parts of variables of the function that is being written."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.chosen = search.chosen
        self.types = _AsReferences(search.chosen)
        self.supply = supply_for(search.program)
        self.boxes: dict[Place, f.Atom] = {}
        self.body: Body
        self.made: dict[str, list[Path]]

    def program(self) -> f.Program:
        old = self.search.program
        datas = {name: self.types.data(decl) for name, decl in old.datas.items()}
        return replace(old, fns={name: self.function(fn) for name, fn in old.fns.items()}, datas=datas)

    def function(self, fn: f.Fn) -> f.Fn:
        self.boxes, self.body = {}, self.search.bodies[fn.name]
        self.made = defaultdict(list)
        for name, path in sorted(self.search.made[fn.name]):
            self.made[name].append(path)
        lifted = [self.param(fn.params[k], path) for k, path in self.search.lifted[fn.name]]
        body = self.block(fn.body, fn.params)
        params = (*map(self.types.var, fn.params), *lifted)
        return replace(fn, params=params, results=tuple(map(self.types.type, fn.results)), body=body)

    def param(self, of: f.Var, path: Path) -> f.Var:
        var = self.boxes[of.name, path] = self.fresh("shared", f.Ref(part(of.ty, path)))
        return var

    def fresh(self, hint: str, ty: f.Type) -> f.Var:
        return f.Var(self.supply.fresh(hint), ty)

    # ---- blocks

    def block(self, block: f.Block, bound: Iterable[f.Var] = (), elements: bool = False) -> f.Block:
        """A block for which some variables are bound.  Its results may be elements of arrays."""
        out: list[f.Bind] = []
        self.make(bound, out)
        for bind in block.binds:
            self.bind(bind, out)
        results = [self.closed(a, out) if elements and Elements(a.ty) in self.chosen else self.types.atom(a)
                   for a in block.results]  # fmt: skip
        return with_binds(block, out, tuple(results))

    def make(self, bound: Iterable[f.Var], out: list[f.Bind]) -> None:
        """Makes the references to what was just bound."""
        for var in bound:
            for path in self.made.get(var.name, ()):
                self.boxes[var.name, path] = self.new(self.get(self.types.var(var), path, out), out)

    def new(self, array: f.Atom, out: list[f.Bind]) -> f.Var:
        ref = self.fresh("shared", f.Ref(array.ty))
        out.append(f.Bind((ref,), f.Op("ref_new", (array,))))
        return ref

    def get(self, atom: f.Atom, path: Path, out: list[f.Bind]) -> f.Atom:
        """A part of a value of the new program."""
        for i in path:
            atom, tup = self.fresh("t", part(atom.ty, (i,))), atom
            out.append(f.Bind((atom,), f.TupGet(tup, i)))
        return atom

    def bind(self, bind: f.Bind, out: list[f.Bind]) -> None:
        vars_, rhs = tuple(map(self.types.var, bind.vars)), bind.rhs
        match rhs:
            case f.ConMake(data, tag, arg) if f.Data(data) in self.chosen and arg is not None:
                rhs = f.ConMake(data, tag, self.closed(arg, out))
            case f.Switch(scrutinee, cases, default):
                opened = tuple([self.case(case, scrutinee.ty in self.chosen) for case in cases])
                rhs = f.Switch(self.types.atom(scrutinee), opened, None if default is None else self.block(default))
            case f.Call(name, args, span):
                more = [self.box(args[k], path, out) for k, path in self.search.lifted[name]]
                rhs = f.Call(name, (*map(self.types.atom, args), *more), span)
            case f.Op():
                self.operation(bind, rhs, out)
                self.make(bind.vars, out)
                return
            case _:
                bound, elements = binders(rhs), isinstance(rhs, f.Build)
                rhs = rebuild(rhs, self.types.atom, lambda b: self.block(b, bound, elements), self.types.var)
        out.append(f.Bind(vars_, rhs))
        self.make(bind.vars, out)

    def operation(self, bind: f.Bind, op: f.Op, out: list[f.Bind]) -> None:
        """An operation, on values that hold arrays, too."""
        args = [self.closed(a, out) if self.enters(op, bind, a) else self.types.atom(a) for a in op.args]
        held = [v for v in bind.vars if self.leaves(op, v)]
        given = {v.name: self.fresh("p", self.types.boxed(v.ty)) for v in held}
        vars_ = tuple([given[v.name] if v.name in given else self.types.var(v) for v in bind.vars])
        out.append(f.Bind(vars_, replace(op, args=tuple(args))))
        for var in held:
            self.open(var, given[var.name], out)

    def enters(self, op: f.Op, bind: f.Bind, atom: f.Atom) -> bool:
        if op.op in ("ref_new", "ref_set"):
            return atom is op.args[-1] and f.Ref(atom.ty) in self.chosen
        return Elements(atom.ty) in self.chosen and enters(bind, atom)

    def leaves(self, op: f.Op, var: f.Var) -> bool:
        if op.op == "ref_get":
            return f.Ref(var.ty) in self.chosen
        return Elements(var.ty) in self.chosen and leaves(op, var)

    def box(self, atom: f.Atom, path: Path, out: list[f.Bind]) -> f.Atom:
        """The reference to a part of an atom."""
        root, rest = self.body.origin(atom, path)
        known = self.boxes.get((root.name, rest)) if isinstance(root, f.Var) else None
        return self.new(self.get(self.types.atom(atom), path, out), out) if known is None else known

    def closed(self, atom: f.Atom, out: list[f.Bind], path: Path = ()) -> f.Atom:
        """A part of what is to be held, with references in place of arrays."""
        ty = part(atom.ty, path)
        if is_array(ty):
            return self.box(atom, path, out)
        if not holds_array(ty) or not isinstance(ty, f.Tup):
            return self.get(self.types.atom(atom), path, out)
        items = tuple([self.closed(atom, out, (*path, i)) for i in range(len(ty.items))])
        return self.make_tuple(items, out)

    def make_tuple(self, items: tuple[f.Atom, ...], out: list[f.Bind]) -> f.Var:
        made = self.fresh("t", f.Tup(tuple([item.ty for item in items])))
        out.append(f.Bind((made,), f.TupMake(items)))
        return made

    def case(self, case: f.Case, chosen: bool) -> f.Case:
        old = case.payload
        if old is None or not chosen or not holds_array(old.ty):
            return f.Case(case.tag, old and self.types.var(old), self.block(case.body, () if old is None else (old,)))
        payload, begin = self.fresh("p", self.types.boxed(old.ty)), list[f.Bind]()
        self.open(old, payload, begin)
        body = self.block(case.body)
        return f.Case(case.tag, payload, with_binds(body, (*begin, *body.binds)))

    def open(self, old: f.Var, held: f.Var, out: list[f.Bind]) -> None:
        """Binds what a holder had, as it was."""
        self.opened(old, held, (), out)
        out[-1] = f.Bind((self.types.var(old),), out[-1].rhs)

    def opened(self, old: f.Var, held: f.Var, path: Path, out: list[f.Bind]) -> f.Atom:
        """A part of what a holder had, with arrays."""
        ty = part(old.ty, path)
        if is_array(ty):
            ref = self.boxes[old.name, path] = self.get(held, path, out)
            array = self.fresh("shared", ty)
            out.append(f.Bind((array,), f.Op("ref_get", (ref,))))
            return array
        if not holds_array(ty) or not isinstance(ty, f.Tup):
            return self.get(held, path, out)
        items = tuple([self.opened(old, held, (*path, i), out) for i in range(len(ty.items))])
        return self.make_tuple(items, out)
