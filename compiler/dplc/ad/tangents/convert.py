"""Helper functions per type, made when first needed: sums of tangents, and conversions between two forms.  The user's
form is a value of the type of the primal, with 0, false and "" where there are no floats; derivatives use the Tan type.

    add.tan.tree(a, b)          the sum; a null operand costs nothing
    to_tan.tree(dx : tree)      -> tan.tree
    from_tan.tree(dy : tan.tree, like : tree) -> tree; null parts become zeros of the shapes in `like`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dplc.ad.tangents.types import Tangents, is_zero, positive, zero
from dplc.flat import term as f
from dplc.flat.build import Builder
from dplc.flat.show import show_type


class Conversions:
    to_user = "from_tan"  # the name of the helpers that make the user's form

    def __init__(self, program: f.Program, supply: f.Supply, tangents: Tangents) -> None:
        self.program = program
        self.supply = supply
        self.tangents = tangents

    def helper(
        self, kind: str, ty: f.Type, params: Sequence[f.Type], result: f.Type, write: Callable[..., f.Atom]
    ) -> str:
        """The function `kind` at type `ty`; `write(builder, *params)` writes its body."""
        name = f"{kind}.{show_type(ty)}"
        if name not in self.program.fns:
            vars_ = tuple(f.Var(f"{hint}.p", t) for hint, t in zip("abcd", params, strict=False))
            self.program.fns[name] = f.Fn(name, vars_, (result,), f.Block((), ()))  # it may call itself
            b = Builder(self.supply)
            result_atom = write(b, *vars_)
            self.program.fns[name] = f.Fn(name, vars_, (result,), b.block(result_atom))
        return name

    # ---- sums ----------------------------------------------------------------------------------------------------

    def add(self, b: Builder, x: f.Atom, y: f.Atom) -> f.Atom:
        """x + y, of one leaf type.  Either may be null."""
        if f.is_float(x.ty) or (isinstance(x.ty, f.Arr) and f.is_float(x.ty.elem)):
            return b.op("acc_add", (x, y))
        name = self.helper("add", x.ty, (x.ty, x.ty), x.ty, self._add)
        return b.calls(name, (x, y), (x.ty,))[0]

    def add_values(self, b: Builder, x: f.Atom, y: f.Atom) -> f.Atom:
        """x + y, of one Tan type."""
        pairs = zip(self.tangents.unpack(b, x), self.tangents.unpack(b, y), strict=True)
        return self.tangents.pack(b, x.ty, [self.add(b, p, q) for p, q in pairs])

    def _add(self, b: Builder, x: f.Var, y: f.Var) -> f.Atom:
        some, both = b.inner(), b.inner()
        match x.ty:
            case f.Data():
                total = self._add_data(both, x, y)
            case _:
                total = self._add_arrays(both, x, y)
        (result,) = some.choose(some.op("is_null", (y,)), f.Block((), (x,)), both.block(total))
        return b.choose(b.op("is_null", (x,)), f.Block((), (y,)), some.block(result))[0]

    def _add_data(self, b: Builder, x: f.Var, y: f.Var) -> f.Atom:
        data = x.ty
        assert isinstance(data, f.Data)

        def case(tag: int, payload: f.Type | None) -> f.Case:
            if payload is None:
                return f.Case(tag, None, f.Block((), (x,)))
            p, q = b.var("p", payload), b.var("q", payload)
            inner = b.inner()
            made = inner.con(data.name, tag, self.add_values(inner, p, q))
            outer = b.inner()
            other = self.misfit(b, data.name, data)
            same = outer.bind(f.Switch(y, (f.Case(tag, q, inner.block(made)),), other), (data,))
            return f.Case(tag, p, outer.block(*same))

        payloads = self.program.datas[data.name].payloads
        return b.bind(f.Switch(x, tuple(case(*tagged) for tagged in enumerate(payloads)), None), (x.ty,))[0]

    def _add_arrays(self, b: Builder, x: f.Var, y: f.Var) -> f.Atom:
        return self.each(
            b, x, lambda inner, i, at: self.add_values(inner, inner.op("index", (x, *at)), inner.op("index", (y, *at)))
        )

    def each(self, b: Builder, like: f.Atom, write: Callable[[Builder, f.Var, tuple[f.Var, ...]], f.Atom]) -> f.Var:
        """An array of the shape of `like`.  `write(builder, innermost index, all indices)` makes its elements."""
        assert isinstance(like.ty, f.Arr)
        dims = b.dims(like)

        def level(b: Builder, at: tuple[f.Var, ...]) -> f.Atom:
            if len(at) == len(dims):
                return write(b, at[-1], at)
            index, inner = b.var("i", f.I64), b.inner()
            body = inner.block(level(inner, (*at, index)))
            rank = len(dims) - len(at)
            elem = body.results[0].ty
            ty = f.Arr(elem.elem if isinstance(elem, f.Arr) else elem, rank)
            return b.bind(f.Build(index, dims[len(at)], body, inner=(dims[len(at) + 1 :],)), (ty,))[0]

        built = level(b, ())
        assert isinstance(built, f.Var)
        return built

    # ---- to and from what the user sees --------------------------------------------------------------------------

    def to_tan(self, b: Builder, value: f.Atom) -> list[f.Atom]:
        """A tangent of the primal's type -> its leaves."""
        ty = value.ty
        leaves = self.tangents.leaves(ty)
        match ty:
            case _ if not leaves:
                return []
            case f.Tup(items):
                return [
                    leaf
                    for i, t in enumerate(items)
                    if self.tangents.leaves(t)
                    for leaf in self.to_tan(b, b.get(value, i))
                ]
            case _ if leaves[0] == ty:
                return [value]
            case _:
                name = self.helper("to_tan", ty, (ty,), leaves[0], self._to_tan)
                return list(b.calls(name, (value,), leaves))

    def _to_tan(self, b: Builder, x: f.Var) -> f.Atom:
        (tan,) = self.tangents.leaves(x.ty)
        match x.ty:
            case f.Arr():
                return self.each(b, x, lambda inner, _, at: self._element(inner, inner.op("index", (x, *at))))
            case f.Data(name):
                assert isinstance(tan, f.Data)
                cases = []
                for tag in range(len(self.program.datas[name].payloads)):
                    payload, inner = self.tangents.payload(name, tag), b.inner()
                    held = payload is not None and bool(self.tangents.leaves(payload))
                    var = b.var("p", payload) if payload is not None and held else None
                    arg = self._element(inner, var) if var is not None else None
                    cases.append(f.Case(tag, var, inner.block(inner.con(tan.name, tag, arg))))
                return b.bind(f.Switch(x, tuple(cases), None), (tan,))[0]
            case _:
                raise AssertionError(x.ty)

    def _element(self, b: Builder, value: f.Atom) -> f.Atom:
        given = self.to_tan(b, value)
        return self.tangents.pack(b, value.ty, [positive(b, leaf) if f.is_float(leaf.ty) else leaf for leaf in given])

    def from_tan(self, b: Builder, leaves: Sequence[f.Atom | None], like: f.Atom, *more: f.Atom) -> f.Atom:
        """Leaves (None: zero) -> a tangent of the type and shape of `like`.  `more` is passed on to the conversion of
        floats."""
        return self._from_tan(b, list(leaves), like, more)

    def number(self, b: Builder, tangent: f.Atom | None, like: f.Atom, more: tuple[f.Atom, ...]) -> f.Atom:
        return positive(b, tangent or zero(like.ty))

    def numbers(self, b: Builder, tangent: f.Atom, like: f.Atom, more: tuple[f.Atom, ...]) -> f.Atom:
        """The tangent of an array of floats, in the shape of `like`."""
        full = b.op("acc_zeros", (tangent, *b.dims(like)))
        return full if is_zero(tangent) else positive(b, full)

    def _from_tan(self, b: Builder, rest: list[f.Atom | None], like: f.Atom, more: tuple[f.Atom, ...]) -> f.Atom:
        ty = like.ty
        match ty:
            case f.Num() if f.is_float(ty):
                return self.number(b, rest.pop(0), like, more)
            case f.Num():
                return f.Const(False if ty == f.BOOL else 0, ty)
            case f.Str():
                return f.Const("", ty)
            case f.Tup(items):
                return b.make([self._from_tan(b, rest, b.get(like, i), more) for i in range(len(items))])
            case f.Ref() | f.Res():
                return like
            case _:
                pass
        leaves = self.tangents.leaves(ty)
        given = [rest.pop(0) or zero(leaf) for leaf in leaves]
        if isinstance(ty, f.Arr) and f.is_float(ty.elem):
            return self.numbers(b, given[0], like, more)
        params = (ty, *leaves, *[x.ty for x in more])
        name = self.helper(self.to_user, ty, params, ty, self._from_tan_fn)
        return b.calls(name, (like, *given, *more), (ty,))[0]

    def _from_tan_fn(self, b: Builder, like: f.Var, *params: f.Var) -> f.Atom:
        """The body of a helper, for data and for arrays whose elements are not floats."""
        count = len(self.tangents.leaves(like.ty))
        tan, more = (params[0] if count else None), params[count:]
        null = b.op("is_null", (tan,)) if tan is not None else None
        match like.ty:
            case f.Arr(elem, _):

                def element(inner: Builder, _: f.Var, at: tuple[f.Var, ...]) -> f.Atom:
                    leaves = self._parts(inner, tan, null, elem, lambda some, there: some.op("index", (there, *at)))
                    return self._from_tan(inner, leaves, inner.op("index", (like, *at)), more)

                return self.each(b, like, element)
            case f.Data(name):
                tags = range(len(self.program.datas[name].payloads))
                cases = tuple([self._from_tan_case(b, like, tag, tan, null, more) for tag in tags])
                return b.bind(f.Switch(like, cases, None), (like.ty,))[0]
            case _:
                raise AssertionError(like.ty)

    def _from_tan_case(
        self, b: Builder, like: f.Var, tag: int, tan: f.Var | None, null: f.Var | None, more: tuple[f.Atom, ...]
    ) -> f.Case:
        assert isinstance(like.ty, f.Data)
        payload = self.tangents.payload(like.ty.name, tag)
        if payload is None:
            return f.Case(tag, None, f.Block((), (like,)))
        var, inner = b.var("p", payload), b.inner()
        leaves = self._parts(inner, tan, null, payload, lambda some, there: self.open(some, there, tag))
        return f.Case(tag, var, inner.block(inner.con(like.ty.name, tag, self._from_tan(inner, leaves, var, more))))

    def _parts(
        self, b: Builder, tan: f.Var | None, null: f.Var | None, ty: f.Type, get: Callable[[Builder, f.Var], f.Atom]
    ) -> list[f.Atom | None]:
        """The leaves of the tangent of a part of type `ty`.  `get` reads it from `tan`; if `tan` is `null`, they are
        zeros."""
        leaves = self.tangents.leaves(ty)
        if tan is None or null is None or not leaves:
            return []
        some = b.inner()
        parts = self.tangents.unpack(some, get(some, tan))
        return list(b.choose(null, f.Block((), tuple(map(zero, leaves))), some.block(*parts)))

    def open(self, b: Builder, tan: f.Atom, tag: int) -> f.Var:
        """The payload of a tangent that is not null and known to be of constructor `tag`."""
        assert isinstance(tan.ty, f.Data)
        payload = self.program.datas[tan.ty.name].payloads[tag]
        assert payload is not None
        var = b.var("p", payload)
        case = f.Case(tag, var, f.Block((), (var,)))
        return b.bind(f.Switch(tan, (case,), self.misfit(b, tan.ty.name, payload)), (payload,))[0]

    def misfit(self, b: Builder, data: str, ty: f.Type, what: str = "the tangent does not fit") -> f.Block | None:
        """The case where a tangent made by the user has another constructor than its primal: a run-time error, which
        begins with `what`."""
        if len(self.program.datas[data].payloads) == 1:
            return None
        inner = b.inner()
        message = f.Const(f"{what}: different constructors; lists of different lengths have them too", f.STR)
        return inner.block(*inner.bind(f.Op("fail", (message,), (("code", "R0503"),)), (ty,)))

    def shut(self, b: Builder, tan: f.Data, tag: int, ty: f.Type, leaves: Sequence[f.Atom | None]) -> f.Var:
        """A tangent of constructor `tag`, whose payload is a tangent of type `ty`."""
        return b.con(tan.name, tag, self.tangents.pack(b, ty, leaves))
