"""core -> core where what the user's calls and derivatives give is looked at, and what values at the top level are, and
what is printed: `dpl run --nan`.

    f (g x)      =>      f (let r = g x in (if 0.0 * floats of r has the sum 0.0 then () else error ...); r)

Calls in tail position are left alone, so tail calls stay tail calls.  Their results are seen where they arrive.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from dpl.core import term as c
from dpl.core import ty as t
from dpl.core.walk import changed, subterms
from dpl.node import replace
from dpl.source import Source

from dplc.passes.entry.sweeps import is_global

FOUND = "a number is not finite"  # the title of the failure
UNKNOWN = t.Size(0, ((("?finite",), 1),))
FLOATS = t.Arr(t.F64, UNKNOWN)


def results(program: c.Program, own: Set[Source]) -> tuple[c.Program, set[int]]:
    """The same program for the interpreter, with the identities of the calls whose results are looked at."""
    finder = Finder(program.datas, own)
    return replace(program, items=[finder.item(item) for item in program.items]), finder.found


def finite(program: c.Program, own: Set[Source]) -> c.Program:
    """The program with checks in the text of these sources."""
    writer = Writer(program.datas, own)
    return replace(program, items=[writer.item(item) for item in program.items])


class Writer:
    def __init__(self, datas: Mapping[str, c.Data], own: Set[Source]) -> None:
        self.datas = datas
        self.own = own
        self.names = 0

    def item(self, item: c.Def | c.Do | c.Expect) -> c.Def | c.Do | c.Expect:
        if item.body.span.source not in self.own:
            return item
        body = self.term(item.body, tail=False)
        return replace(item, body=self.at_end(body) if isinstance(item, c.Def) else body)

    def at_end(self, term: c.Term) -> c.Term:
        """The term with a check of its value."""
        if isinstance(term, c.Let | c.LetRec | c.Check):
            return replace(term, body=self.at_end(term.body))
        return self.computed(term)

    def computed(self, term: c.Term) -> c.Term:
        """The term with a check around it, if it computes a value that no check has seen."""
        return term if is_seen_or_written(term) or not self.has_floats(term.ty) else self.checked(term)

    def term(self, term: c.Term, tail: bool) -> c.Term:
        """The term with checks inside, and around it if it is a call whose result comes back here."""
        match term:
            case c.App():
                made = self.application(term)
                return made if tail or not self.has_floats(term.ty) else self.checked(made)
            case c.Prim(op="jvp"):
                return self.checked(changed(term, lambda part: self.term(part, False), same))
            case c.Prim(op="print" | "show" | "format", args=args):
                return replace(term, args=tuple(self.computed(self.term(arg, False)) for arg in args))
            case c.Let(span, ty, name, params, rhs, body):
                return c.Let(span, ty, name, params, self.term(rhs, bool(params)), self.term(body, tail))
            case c.If(span, ty, cond, then, else_):
                return c.If(span, ty, self.term(cond, False), self.term(then, tail), self.term(else_, tail))
            case c.Match(span, ty, scrutinee, arms):
                done = tuple(replace(arm, guard=arm.guard and self.term(arm.guard, False),
                                     body=self.term(arm.body, tail)) for arm in arms)  # fmt: skip
                return c.Match(span, ty, self.term(scrutinee, False), done)
            case c.LetRec(span, ty, params, bindings, body):
                done = tuple((name, self.term(rhs, True)) for name, rhs in bindings)
                return c.LetRec(span, ty, params, done, self.term(body, tail))
            case c.Lam() | c.Shift() | c.Reset():
                return changed(term, lambda part: self.term(part, True), same)
            case c.Check():
                return replace(term, body=self.term(term.body, tail))
            case _:
                return changed(term, lambda part: self.term(part, False), same)

    def application(self, term: c.App) -> c.App:
        """The spine of a call stays one call; its arguments are looked at."""
        fn = self.application(term.fn) if isinstance(term.fn, c.App) else self.term(term.fn, True)
        return replace(term, fn=fn, arg=self.term(term.arg, False))

    def checked(self, term: c.Term) -> c.Term:
        span, name = term.span, f"finite.{self.names}"
        self.names += 1
        here = c.Var(span, term.ty, name)
        zero = c.Lit(span, t.F64, 0.0)
        zeros = c.Prim(span, FLOATS, "mul", (c.Prim(span, FLOATS, "tree_leaves", (here,)), zero))
        holds = c.Prim(span, t.BOOL, "eq", (c.Prim(span, t.F64, "sum", (zeros,)), zero))
        unit = c.Tuple(span, t.UNIT, ())
        fails = c.Prim(span, t.UNIT, "error", (c.Lit(span, t.STRING, FOUND),))
        test = c.If(span, t.UNIT, holds, unit, fails)
        return c.Let(span, term.ty, name, (), term, c.Let(span, term.ty, "_", (), test, here))

    def has_floats(self, ty: t.Ty) -> bool:
        """Whether a type has floats and nothing that `tree_leaves` does not take."""
        found: set[str] = set()
        todo: list[tuple[t.Ty | t.Size, bool]] = [(ty, False)]
        seen: set[tuple[t.Ty | t.Size, bool]] = set()
        while todo:
            part, declared = one = todo.pop()  # declared: a variable is a parameter, whose argument is looked at
            if one in seen:
                continue
            seen.add(one)
            match part:
                case t.Con(name, args):
                    if name in self.datas:
                        todo += [(argument, True) for _, argument in self.datas[name].cases if argument is not None]
                    found.add(name)
                    todo += [(argument, declared) for argument in args]
                case t.Tup(items):
                    todo += [(item, declared) for item in items]
                case t.Arr(elem):
                    todo.append((elem, declared))
                case t.Fn() | t.Lift():
                    return False
                case t.Var(_, "type") if not declared:
                    return False
                case _:
                    pass
        return not found.isdisjoint(t.FLOATS)


class Finder(Writer):
    """Finds the calls, and leaves them as they are."""

    def __init__(self, datas: Mapping[str, c.Data], own: Set[Source]) -> None:
        super().__init__(datas, own)
        self.found: set[int] = set()

    def checked(self, term: c.Term) -> c.Term:
        self.found.add(id(term))
        return term


def is_seen_or_written(term: c.Term) -> bool:
    """Whether a value is what calls give, which is looked at there, or is written in the program, as `-inf` is."""
    todo = [term]
    while todo:
        match here := todo.pop():
            case c.App() | c.Lam() | c.Lit():
                pass
            case c.Prim(op="neg" | "fill" | "ref") | c.Tuple() | c.ArrayLit() | c.Con():
                todo += subterms(here)
            case c.If(then=then, else_=else_):
                todo += [then, else_]
            case c.Build(body=body):
                todo.append(body)
            case c.Var(name=name) if is_global(name):
                pass
            case _:
                return False
    return True


def same(ty: t.Ty) -> t.Ty:
    return ty
