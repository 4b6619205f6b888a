"""core -> where the debugger can stop: the first term of every line, of every function body and of every loop body.

Each term of the user's own text also knows its point, its function, and the local names in scope with their types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dpl.core import term as c
from dpl.core import ty as t
from dpl.node import entity, field, node
from dpl.source import Source, Span

UNNAMED = "param."  # the names of parameters that are patterns begin so
COMPOUND = (c.App, c.If, c.Match, c.For, c.While, c.Build, c.Shift, c.Reset)  # operands that may be points
MOVES = frozenset({"index", "slice", "reshape", "transpose", "flatten", "to_like", "sized", "deref", "f64"})  # numbers


@node
class Names:
    """A chain of local names, innermost first."""

    name: str
    ty: t.Ty
    outer: Names | None

    def __iter__(self) -> Iterator[Names]:
        here: Names | None = self
        while here:
            yield here
            here = here.outer


@entity
class Function:
    """A function of the user: `params` are the names and types of its parameters, `patterns` those of
    parameters without a name."""

    name: str
    span: Span
    params: tuple[tuple[str, t.Ty], ...]
    patterns: Mapping[str, c.Pattern] = field(default_factory=dict)


@entity
class Point:
    """A place where the debugger can stop, before the evaluation of a term."""

    span: Span
    line: int
    function: Function
    is_entry: bool


@entity
class Place:
    """A term, with its point and the names in scope."""

    term: c.Term
    point: Point
    names: Names | None

    @property
    def span(self) -> Span:
        return self.term.span

    @property
    def extent(self) -> Span:
        """The span with that of the body: a binding that a loop makes for its state has the span of the pattern."""
        last = self.term
        while isinstance(last, (c.Let, c.LetRec)):
            last = last.body
        return self.span.to(last.span)


class Places:
    """The places of a program, by the identity of the term."""

    def __init__(self) -> None:
        self.of: dict[int, Place] = {}
        self.points: dict[int, Point] = {}
        self.by_source: dict[Source, list[Point]] = {}

    def add(self, item: c.Def | c.Do | c.Expect) -> None:
        """Adds the places of an item at which a program can stop."""
        name = item.name.partition(".")[2] or item.name if isinstance(item, c.Def) else "top level"
        top = Function(name.partition("#")[0], item.body.span, ())
        todo: list = [(item.body, None, None, top, True)]
        while todo:
            todo.extend(self._visit(*todo.pop()))

    def _visit(self, term: c.Term, before: Point | None, names: Names | None, function: Function, may_stop: bool):
        """Enter a term.  `before` is the point that comes before it in its function."""
        if isinstance(term, c.Lam):
            return self._function(term, names, function)
        line = term.span.line
        point = before
        if before is None or (may_stop and before.line != line and not isinstance(term, (c.Let, c.LetRec, c.Check))):
            if not isinstance(term, (c.Let, c.LetRec)):
                point = Point(term.span, line, function, before is None and bool(function.params))
                self.points[id(term)] = point
                self.by_source.setdefault(term.span.source, []).append(point)
        if point is None:  # a function that begins with bindings: its first point is in them
            return self._bindings(term, None, names, function)
        self.of[id(term)] = Place(term, point, names)
        if isinstance(term, (c.Let, c.LetRec)):
            return self._bindings(term, point, names, function)
        return [(part, point, inner, function, may) for part, inner, may in parts(term, names)]

    def _function(self, term: c.Lam, names: Names | None, outer: Function):
        params: list[tuple[str, t.Ty]] = []
        body: c.Term = term
        while isinstance(body, c.Lam):
            assert isinstance(body.ty, t.Fn)
            params.append((body.param, body.ty.arg))
            names = Names(body.param, body.ty.arg, names)
            body = body.body
        name = outer.name if not outer.params and outer.span == term.span else term.name or "<fun>"
        return [(body, None, names, Function(name, term.span, tuple(params), taken_apart(body)), True)]

    def _bindings(self, term: c.Term, before: Point | None, names: Names | None, function: Function):
        """The parts of a Let or LetRec.  The first point of a right-hand side comes before the body."""
        if isinstance(term, c.LetRec):
            for name, rhs in term.bindings:
                names = Names(name, rhs.ty, names)
            inner = [(rhs, before, names, function, False) for _, rhs in term.bindings]
            return [*inner, (term.body, before, names, function, True)]
        assert isinstance(term, c.Let)
        may_stop = not term.params
        found = self._first(term.rhs, before, names, function, may_stop)
        bound = Names(term.name, term.rhs.ty, names)
        return [*found, (term.body, self.points.get(id(term.rhs), before), bound, function, True)]

    def _first(self, rhs: c.Term, before: Point | None, names: Names | None, function: Function, may_stop: bool):
        """Enter a right-hand side at once, so that the body can ask for its point."""
        if isinstance(rhs, c.Lam) or (before is None and not may_stop):
            return [(rhs, before, names, function, False)] if isinstance(rhs, c.Lam) else []
        return self._visit(rhs, before, names, function, may_stop)

    def lines(self, source: Source) -> list[int]:
        """The numbers of the lines of a source on which there are places."""
        return sorted({point.line for point in self.by_source.get(source, ())})

    def functions(self) -> Iterable[Function]:
        """The functions of all sources."""
        return {id(p.function): p.function for points in self.by_source.values() for p in points}.values()


def taken_apart(body: c.Term) -> dict[str, c.Pattern]:
    """The pattern of a parameter without a name, by its name in core: the function begins by matching it."""
    match body:
        case c.Match(scrutinee=c.Var(name=name), arms=(arm,)) if name.startswith(UNNAMED):
            return {name: arm.pattern}
        case _:
            return {}


Parts = list[tuple[c.Term, Names | None, bool]]


def parts(term: c.Term, names: Names | None) -> Parts:  # noqa: C901 -- one case per form
    """The parts of a term, each with its names in scope, and whether it may be a point."""
    match term:
        case c.If(cond=cond, then=then, else_=else_):
            return [(cond, names, False), (then, names, True), (else_, names, True)]
        case c.Match(scrutinee=scrutinee, arms=arms):
            found = [(scrutinee, names, compound(scrutinee))]
            for arm in arms:
                inner = bound(arm.pattern, names)
                found += [(arm.guard, inner, False)] if arm.guard else []
                found.append((arm.body, inner, True))
            return found
        case c.For(init=init, count=count, body=body, state=state, index=index):
            inner = Names(index, t.I64, Names(state, init.ty, names))
            return [(init, names, compound(init)), (count, names, False), (body, inner, True)]
        case c.While(init=init, cond=cond, body=body, state=state):
            inner = Names(state, init.ty, names)
            return [(init, names, compound(init)), (cond, inner, False), (body, inner, True)]
        case c.Build(count=count, body=body, index=index):
            return [(count, names, False), (body, Names(index, t.I64, names), True)]
        case c.Shift(name=name, body=body, ty=ty):
            return [(body, Names(name, t.Fn(ty, t.PURE, body.ty), names), True)]
        case c.Reset(body=body):
            return [(body, names, True)]
        case c.Check(body=body):
            return [(body, names, True)]
        case c.App(fn=fn, arg=arg):
            return [(fn, names, False), (arg, names, compound(arg))]
        case c.Tuple(items=items) | c.ArrayLit(items=items) | c.Prim(args=items):
            return [(item, names, compound(item)) for item in items]
        case c.Con(arg=arg) if arg is not None:
            return [(arg, names, compound(arg))]
        case c.Field(record=record):
            return [(record, names, compound(record))]
        case c.Update(record=record, fields=fields):
            return [(part, names, compound(part)) for part in (record, *(value for _, value in fields))]
        case _:
            return []


def compound(term: c.Term) -> bool:
    return isinstance(term, COMPOUND)


def bound(pattern: c.Pattern, names: Names | None) -> Names | None:
    """The names in scope after a pattern."""
    match pattern:
        case c.PVar(ty, name):
            return Names(name, ty, names)
        case c.PTuple(_, items) | c.PArray(_, items):
            for item in items:
                names = bound(item, names)
            return names
        case c.PCon(_, _, _, arg):
            return bound(arg, names) if arg else names
        case c.PAs(ty, inner, name):
            return Names(name, ty, bound(inner, names))
        case c.POr(_, left, _):
            return bound(left, names)
        case _:
            return names
