"""A checked program -> its exports, each with a wrapper that checks sizes at run time.

    export let mse (x : float[n]) (y : float[n]) : float = ...
        ==>
    mse! x.0 x.1 = (if dim y.1 <> dim x.0 then a run-time error); mse x.0 x.1

In calls from DPL, the type checker has compared the sizes.  Other callers may pass arrays of any size, so the wrapper
compares them at each call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from dpl.core import term as c
from dpl.core import ty as t
from dpl.diagnostics import Diagnostic, DplError
from dpl.source import Span
from dpl.types.check import Checked
from dpl.types.messages.pretty import Printer
from dpl.types.state.env import Entry, Value

from dplc.interface import Array, Export, Number, Parameter, Record, Shape, Text, Tuple

HOME = "main"
SCALARS = frozenset(("bool", *t.INTS, *t.FLOATS))


def exports(checked: Checked) -> list[Export]:
    """The exports of the program's own file, in order.  Raises a DplError with all exports that callers could not
    use."""
    found, problems = offered(checked.program.items, checked.exports[HOME].values, checked.program.datas)
    if problems:
        raise DplError(*problems)
    return found


def offered(
    items: Iterable, values: Mapping[str, Entry], datas: Mapping[str, c.Data]
) -> tuple[list[Export], list[Diagnostic]]:
    """The exports among definitions, and the problems of those that callers could not use."""
    defs = {item.name: item for item in items if isinstance(item, c.Def) and item.export}
    found: list[Export] = []
    problems: list[Diagnostic] = []
    for name, value in values.items():
        if isinstance(value, Value) and (definition := defs.get(value.name)) is not None:
            try:
                found.append(Exporter(datas, name, value, definition).export())
            except DplError as error:
                problems += error.diagnostics
    return found, problems


class Exporter:
    """Makes the export of one definition."""

    def __init__(self, datas: Mapping[str, c.Data], name: str, value: Value, definition: c.Def) -> None:
        self.datas = datas
        self.name = name
        self.value = value
        self.definition = definition
        self.span = Span(value.span.source, value.span.start, value.span.start + len(name))
        self.printer = Printer()

    def export(self) -> Export:
        if not identifier(self.name):
            raise self.refused(f"`{self.name}` is no name in C and Python", "export it under another name")
        names, types, result = self.parts()
        texts = [self.printer.type(ty) for ty in types]
        parameters = tuple(
            Parameter(name, self.shape(ty, f"the parameter `{name}`"), text)
            for name, ty, text in zip(names, types, texts, strict=True)
        )
        shape = self.shape(result, "the result")
        is_value = not isinstance(self.definition.ty, t.Fn)
        return Export(
            self.name,
            None if is_value else parameters,
            Parameter("result", shape, self.printer.type(result)),
            self.value.doc,
            self.span,
            self.entry(names, types, result, is_value),
        )

    def parts(self) -> tuple[list[str], list[t.Ty], t.Ty]:
        """The parameters' names and types, and the type of the result.  Parameters that the definition does not name
        get names."""
        names: list[str] = []
        types: list[t.Ty] = []
        ty, body = self.definition.ty, self.definition.body
        while isinstance(ty, t.Fn):
            if isinstance(ty.eff, t.Ctl):
                raise self.refused("it captures its context", "put a `reset` around what it does")
            name = body.param.rpartition(".")[0] if isinstance(body, c.Lam) else ""
            name = name.replace("'", "_") if name != "param" else ""
            if not identifier(name) or name in names:
                name = f"{name or 'x'}_{len(names)}" if identifier(f"{name or 'x'}_") else f"x_{len(names)}"
            names.append(name)
            types.append(ty.arg)
            ty, body = ty.result, body.body if isinstance(body, c.Lam) else body
        return names, types, ty

    def refused(self, why: str, *helps: str) -> DplError:
        return DplError.at("E0570", f"`{self.name}` cannot be exported: {why}", self.span, helps=helps)

    # ---- shapes

    def shape(self, ty: t.Ty, of: str) -> Shape:
        match ty:
            case t.Con(name) if name in SCALARS:
                return Number(name)
            case t.Con("string"):
                return Text()
            case t.Arr():
                return self.array(ty, of)
            case t.Tup(items):
                return Tuple(tuple(self.shape(item, of) for item in items))
            case t.Con(name, args) if (data := self.datas.get(name)) is not None and data.fields:
                return self.record(data, args, of)
            case _:
                shown = self.printer.type(ty)
                raise self.refused(
                    f"{of} is a {shown}, which has no counterpart in C",
                    "numbers, strings, arrays of numbers, and records and tuples of these have one",
                )

    def array(self, ty: t.Arr, of: str) -> Array:
        sizes: list[t.Size] = []
        elem: t.Ty = ty
        while isinstance(elem, t.Arr):
            sizes.append(elem.size)
            elem = elem.elem
        if not isinstance(elem, t.Con) or elem.name not in SCALARS:
            raise self.refused(
                f"{of} is an array of {self.printer.type(elem)}",
                "arrays of numbers have a counterpart in C, others not",
            )
        return Array(Number(elem.name), tuple(map(self.printer.size, sizes)), labels(sizes))

    def record(self, data: c.Data, args: tuple, of: str) -> Record:
        """A record type at these type arguments: its fields with their shapes, sizes as declared."""
        types = {p.name: a for p, a in zip(data.params, args, strict=True) if p.sort == "type"}
        suffix = "".join("_" + re.sub(r"\W+", "_", self.printer.type(a)).strip("_") for a in types.values())
        argument = data.cases[0][1]
        fields = argument.items if isinstance(argument, t.Tup) and len(data.fields) > 1 else (argument,)
        name = data.name.rpartition(".")[2].partition("#")[0]
        shapes = tuple(
            (field, self.shape(t.substitute(ty, types), f"`{field}` of {name}"))
            for field, ty in zip(data.fields, fields, strict=True)
            if ty is not None
        )
        if any(not identifier(field) for field, _ in shapes):
            raise self.refused(f"a field of `{name}` has a name that C has not")
        return Record(name + suffix, shapes)

    # ---- the definition that others call

    def entry(self, names: list[str], types: list[t.Ty], result: t.Ty, is_value: bool) -> c.Def:
        span, d = self.span, self.definition
        inst = tuple(t.Size() if p.sort == "size" else t.PURE for p in d.params)
        body: c.Term = c.Var(span, d.ty, d.name, inst)
        variables = [c.Var(span, ty, f"x.{i}") for i, ty in enumerate(types)] or [c.Var(span, t.UNIT, "x.0")]
        if not is_value:
            for variable, rest in zip(variables, results(d.ty), strict=True):
                body = c.App(span, rest, body, variable)
        pairs = tuple(self.comparisons(list(zip(names, variables))))
        if pairs:
            nothing = c.Tuple(span, t.UNIT, ())
            body = c.Let(span, result, "_", (), c.Check(span, t.UNIT, "checked", nothing, pairs), body)
        for variable in reversed(variables):
            body = c.Lam(span, t.Fn(variable.ty, t.PURE, body.ty), variable.name, body, self.name)
        return c.Def(f"{d.name}!", (), body.ty, body)

    def comparisons(self, given: list[tuple[str, c.Var]]) -> Iterator[tuple[c.Term, c.Term, str]]:
        """Lengths that must be equal by the types.  For each size variable, the first length that is this variable
        alone is compared with all others."""
        found = [place for name, variable in given for place in self.lengths(variable, f"`{name}`")]
        known: dict[str, c.Term] = {}
        rest = []
        for size, length, where in found:
            match size:
                case t.Size(0, (((name,), 1),)) if name not in known and name[0] != "?":
                    known[name] = length
                case _:
                    rest.append((size, length, where))
        for size, length, where in rest:
            expected = self.length(size, known)
            if expected is not None:
                shown = f"size {self.printer.size(size)}" if size.terms else "size"
                yield length, expected, f"{shown} of {where}"

    def lengths(self, e: c.Term, where: str) -> Iterator[tuple[t.Size, c.Term, str]]:
        """All lengths of the arrays in a value, with the sizes of their types."""
        match e.ty:
            case t.Arr():
                ty, k = e.ty, 0
                while isinstance(ty, t.Arr):
                    yield ty.size, c.Prim(self.span, t.I64, "dim", (e, c.Lit(self.span, t.I64, k))), where
                    ty, k = ty.elem, k + 1
            case t.Tup(items):
                for i, item in enumerate(items):
                    patterns = [c.PVar(ty, "part") if k == i else c.PWild(ty) for k, ty in enumerate(items)]
                    arm = c.Arm(self.span, c.PTuple(e.ty, tuple(patterns)), None, c.Var(self.span, item, "part"))
                    yield from self.lengths(c.Match(self.span, item, e, (arm,)), where)
            case t.Con(name, args) if (data := self.datas.get(name)) is not None and data.fields:
                env = {p.name: a for p, a in zip(data.params, args, strict=True)}
                argument = data.cases[0][1]
                fields = argument.items if isinstance(argument, t.Tup) and len(data.fields) > 1 else (argument,)
                for i, (field, ty) in enumerate(zip(data.fields, fields, strict=True)):
                    if ty is not None:
                        part = c.Field(self.span, t.substitute(ty, env), e, i)
                        yield from self.lengths(part, f"`{field}` of {where}")
            case _:
                pass

    def length(self, size: t.Size, known: dict[str, c.Term]) -> c.Term | None:
        """A size as a number; None if it contains a size that no argument gives."""

        def number(n: int) -> c.Term:
            return c.Lit(self.span, t.I64, n)

        def combined(op: str, a: c.Term, b: c.Term) -> c.Term:
            return c.Prim(self.span, t.I64, op, (a, b))

        total = number(size.const)
        for names, factor in size.terms:
            product = number(factor)
            for name in names:
                if name not in known:
                    return None
                product = combined("mul", product, known[name])
            total = combined("add", total, product)
        return total


def results(ty: t.Ty) -> Iterator[t.Ty]:
    while isinstance(ty, t.Fn):
        yield ty.result
        ty = ty.result


def labels(sizes: list[t.Size]) -> tuple[str | None, ...]:
    """Labels for the sizes of an array: their variables, or else their positions."""
    found: list[str | None] = []
    for place, size in enumerate(sizes):
        match size:
            case t.Size(_, ()):
                found.append(None)
            case t.Size(0, (((name,), 1),)) if identifier(name) and name not in found:
                found.append(name)
            case _:
                found.append(str(place))
    return tuple(found)


def identifier(name: str) -> bool:
    """True for an identifier in both C and Python that is a keyword in neither."""
    return re.fullmatch("[A-Za-z_][A-Za-z_0-9]*", name) is not None
