"""Object inlining: flat -> flat where tuples in arrays, and data, hold numbers in place of arrays of few elements.

    type p = { pos : float[2]; mass : float }      (f64[], f64)[] for an array of them  =>  ((f64, f64), f64)[]

    t = (a, m)                             =>      a0 = index a 0;  a1 = index a 1;  s = (a0, a1);  t = (s, m)
    a = t.0                                =>      s = t.0;  a0 = s.0;  a1 = s.1;  a = array a0 a1

A field is inlined if it has the same known length wherever a tuple of its type is made.  That is an optimistic
fixpoint: a field that is read has the length that is assumed of it, and an assumption that some tuple does not meet is
dropped.  `small_arrays` then needs no array where the elements are enough.  Types of exported functions stay as they
are, and types of what the inputs of a session keep: such tuples are also made elsewhere.  (Dolby and Chien, "An
automatic object inlining optimization and its evaluation", 2000.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from math import prod

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.build import integer
from dplc.flat.dims import Dims, Fields, dims_of
from dplc.flat.known_sizes import known_sizes
from dplc.flat.retype import Retype
from dplc.flat.types import datas_reached, elem_of, nothing
from dplc.flat.walk import bound, every, supply_for, with_binds, with_rhs
from dplc.passes.simplify.simplify import simplify
from dplc.passes.simplify.unmade import given_types

FEW = 9  # elements of an array that is inlined

Slot = tuple[f.Type, int]  # a tuple's type and the number of an item, or a Data and the tag of a constructor


def inline_fields(program: f.Program) -> f.Program:
    slots = set(stored(program))
    if slots:
        slots -= {*told_outside(program), *collected(program)}
    slots -= {slot for slot, dims, array in made(program, slots, dims_of_body) if not few(dims.shape(array))}
    fields = shapes(program, slots) if slots else {}
    if not fields:
        return program
    inline = _Inline(supply_for(program), fields)
    return simplify(
        replace(
            program,
            fns={name: inline.fn(fn) for name, fn in program.fns.items()},
            datas={name: inline.data(decl) for name, decl in program.datas.items()},
            residuals={name: inline.type(ty) for name, ty in program.residuals.items()},
        )
    )


# ---- which fields


def stored(program: f.Program) -> Iterator[Slot]:
    """The arrays in tuples that are elements of arrays or in data, and those that constructors hold."""
    for decl in program.datas.values():
        for tag, payload in enumerate(decl.payloads):
            if holds_numbers(payload):
                yield f.Data(decl.name), tag
            elif payload is not None:
                yield from fields_in(payload)
    for fn in program.fns.values():
        for ty in {var.ty for var in bound(fn) if isinstance(var.ty, f.Arr) and isinstance(var.ty.elem, f.Tup)}:
            yield from fields_in(ty)


def holds_numbers(ty: f.Type | None) -> bool:
    return isinstance(ty, f.Arr) and isinstance(ty.elem, f.Num)


def fields_in(ty: f.Type) -> Iterator[Slot]:
    """The arrays of numbers in tuples in a type."""
    match ty:
        case f.Arr(elem) | f.Ref(elem):
            yield from fields_in(elem)
        case f.Tup(items):
            for i, item in enumerate(items):
                if holds_numbers(item):
                    yield ty, i
                else:
                    yield from fields_in(item)
        case _:
            pass


def told_outside(program: f.Program) -> Iterator[Slot]:
    """The fields of what callers outside give or get, and of what inputs of a session keep for later ones: these are
    compiled alone."""
    types = [*given_types(program), *(ty for root in program.roots for ty in program.fns[root].results)]
    for name in datas_reached(types, program.datas):
        payloads = program.datas[name].payloads
        yield from ((f.Data(name), tag) for tag in range(len(payloads)))
        types += [payload for payload in payloads if payload is not None]
    for ty in types:
        yield from fields_in(ty)


def collected(program: f.Program) -> Iterator[Slot]:
    """The fields of the tuples that loops make of what they collect."""
    for fn in program.fns.values():
        for bind in every(fn.body):
            if isinstance(bind.rhs, f.For | f.While) and bind.rhs.collect:
                yield from fields_in(bind.vars[-1].ty)


def shapes(program: f.Program, slots: set[Slot]) -> Fields:
    """The shapes of the fields that have one wherever they are made.  What is known of some tells of others."""
    fields: Fields = {}
    while True:
        guessed = {slot: shape for slot, dims, array in made(program, slots, known_sizes(program, fields).dims)
                   if (shape := dims.shape(array)) and few(shape)}  # fmt: skip
        slots = slots - guessed.keys()
        found = consistent(program, fields | guessed) if guessed else fields
        if found == fields:
            return fields
        fields = found


def few(shape: tuple[int, ...] | None) -> bool:
    """True if an array has few elements, or may have."""
    return shape is None or 0 < prod(shape) <= FEW


def consistent(program: f.Program, fields: Fields) -> Fields:
    """The assumptions that all tuples meet, if these hold."""
    while True:
        all_made = made(program, set(fields), known_sizes(program, fields).dims)
        wrong = {slot for slot, dims, array in all_made if not has_shape(dims, array, fields[slot])}
        if not wrong:
            return fields
        fields = {slot: shape for slot, shape in fields.items() if slot not in wrong}


def has_shape(dims: Dims, array: f.Var, shape: tuple[int, ...]) -> bool:
    return all(dims.equal(dims.of(array, k), integer(n)) for k, n in enumerate(shape))


def made(program: f.Program, slots: set[Slot], dims_in: Callable[[f.Fn], Dims]) -> Iterator[tuple[Slot, Dims, f.Var]]:
    """The fields that the code makes, each with the dimensions of its function.  Null only takes a place."""
    for fn in program.fns.values():
        dims: Dims | None = None
        for bind in every(fn.body):
            for slot, atom in puts(bind.rhs, bind.vars):
                if slot in slots and isinstance(atom, f.Var):
                    dims = dims or dims_in(fn)
                    yield slot, dims, atom


def dims_of_body(fn: f.Fn) -> Dims:
    return dims_of(fn.body)


def puts(rhs: f.Rhs, vars_: tuple[f.Var, ...]) -> Iterable[tuple[Slot, f.Atom]]:
    """The fields that a right-hand side fills."""
    match rhs:
        case f.TupMake(items):
            return [((vars_[0].ty, i), item) for i, item in enumerate(items) if holds_numbers(item.ty)]
        case f.ConMake(_, tag, arg) if arg is not None:
            return [((vars_[0].ty, tag), arg)]
        case _:
            return ()


# ---- the program with these fields


class _Inline(Retype):
    def __init__(self, supply: f.Supply, fields: Fields) -> None:
        super().__init__(lambda site: f.Res(site))
        self.supply = supply
        self.fields = fields

    def shape(self, owner: f.Type, i: int) -> tuple[int, ...]:
        """The shape of an inlined field; () if it is none."""
        return self.fields.get((owner, i), ())

    def item(self, owner: f.Type, i: int, ty: f.Type) -> f.Type:
        shape = self.shape(owner, i)
        return f.Tup((elem_of(ty),) * prod(shape)) if shape else self.type(ty)

    def _type(self, ty: f.Type) -> f.Type:
        match ty:
            case f.Tup(items):
                return f.Tup(tuple([self.item(ty, i, item) for i, item in enumerate(items)]))
            case f.Res():
                return ty
            case _:
                return super()._type(ty)

    def data(self, decl: f.DataDecl) -> f.DataDecl:
        own = f.Data(decl.name)
        payloads = [None if p is None else self.item(own, tag, p) for tag, p in enumerate(decl.payloads)]
        return replace(decl, payloads=tuple(payloads))

    def atom(self, atom: f.Atom) -> f.Atom:
        """A tuple that only takes a place has zeros for the elements of null."""
        if isinstance(atom, f.Const) and isinstance(atom.ty, f.Tup) and (ty := self.type(atom.ty)) is not atom.ty:
            return nothing(ty)
        return super().atom(atom)

    def block(self, block: f.Block) -> f.Block:
        binds = [new for bind in block.binds for new in self.inlined(bind)]
        return with_binds(block, binds, tuple([self.atom(a) for a in block.results]))

    def inlined(self, bind: f.Bind) -> list[f.Bind]:
        match bind.rhs:
            case f.TupMake(items):
                owner, before = bind.vars[0].ty, list[f.Bind]()
                parts = [self.apart(before, a, n) if (n := self.shape(owner, i)) else self.atom(a)
                         for i, a in enumerate(items)]  # fmt: skip
                return [*before, f.Bind((self.var(bind.vars[0]),), f.TupMake(tuple(parts)))]
            case f.TupGet(tup, i) if n := self.shape(tup.ty, i):
                whole = self.fresh("field", self.item(tup.ty, i, bind.vars[0].ty))
                return [f.Bind((whole,), f.TupGet(self.atom(tup), i)), *self.together(bind.vars[0], whole, n)]
            case f.ConMake(name, tag, arg) if arg is not None and (n := self.shape(bind.vars[0].ty, tag)):
                before = list[f.Bind]()
                made_of = self.apart(before, arg, n)
                return [*before, f.Bind(bind.vars, f.ConMake(name, tag, made_of))]
            case f.Switch(scrutinee, cases) if any(self.shape(scrutinee.ty, case.tag) for case in cases):
                opened = tuple([self.opened(scrutinee.ty, case) for case in cases])
                return [self.bind(with_rhs(bind, replace(bind.rhs, cases=opened)))]
            case _:
                return [self.bind(bind)]

    def fresh(self, hint: str, ty: f.Type) -> f.Var:
        return f.Var(self.supply.fresh(hint), ty)

    def apart(self, binds: list[f.Bind], array: f.Atom, shape: tuple[int, ...]) -> f.Atom:
        """The elements of an array, as a tuple."""
        elem = elem_of(array.ty)
        ty = f.Tup((elem,) * prod(shape))
        if not isinstance(array, f.Var):
            return nothing(ty)
        parts = []
        for at in product(*map(range, shape)):
            parts.append(self.fresh(array.name, elem))
            read = f.Op("index", (array, *map(integer, at)), (("unchecked", True),))
            binds.append(f.Bind((parts[-1],), read))
        whole = self.fresh(array.name, ty)
        binds.append(f.Bind((whole,), f.TupMake(tuple(parts))))
        return whole

    def together(self, array: f.Var, whole: f.Var, shape: tuple[int, ...]) -> list[f.Bind]:
        """The array of the items of a tuple."""
        elem = elem_of(array.ty)
        parts = [self.fresh(array.name, elem) for _ in range(prod(shape))]
        binds = [f.Bind((part,), f.TupGet(whole, k)) for k, part in enumerate(parts)]
        for rank, length in enumerate(reversed(shape), 1):
            rows = [tuple(parts[k : k + length]) for k in range(0, len(parts), length)]
            parts = [array] if rank == len(shape) else [self.fresh(array.name, f.Arr(elem, rank)) for _ in rows]
            binds += [f.Bind((made,), f.Op("array", row)) for made, row in zip(parts, rows, strict=True)]
        return binds

    def opened(self, owner: f.Type, case: f.Case) -> f.Case:
        """An arm whose payload is a tuple now, and in which the array is there again."""
        n = self.shape(owner, case.tag)
        if not n or case.payload is None:
            return case
        whole = self.fresh(case.payload.name, self.item(owner, case.tag, case.payload.ty))
        binds = (*self.together(case.payload, whole, n), *case.body.binds)
        return f.Case(case.tag, whole, f.Block(binds, case.body.results))
