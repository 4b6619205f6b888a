"""Continuations as values of the compiler and of the program, and the types of functions that take them.

a -{ctl r}-> b                  =>      a -> (b -> r) -> r
a -> b -{ctl r}-> c, named      =>      a -> b -> (c -> r) -> r, its worker
"""

from __future__ import annotations

from collections.abc import Callable

from dpl.core import term as c
from dpl.core import ty as t
from dpl.node import node, replace
from dpl.source import Span

from dplc.narrow import expect_type


@node
class Cont:
    """The rest of the computation after a value, with an answer of type `answer`.  `then` writes its code, once only.
    If it is a variable (`value`) or the empty context, it may be used `several` times."""

    answer: t.Ty
    then: Callable[[c.Term], c.Term]
    value: c.Var | None = None
    several: bool = False

    def after(self, then: Callable[[c.Term], c.Term]) -> Cont:
        """A continuation with the code `then`, and an answer of the same type."""
        return Cont(self.answer, then)


def nothing(answer: t.Ty) -> Cont:
    """The empty context."""
    return Cont(answer, lambda value: value, several=True)


def known(k: c.Var) -> Cont:
    """The continuation that is the variable `k`."""
    answer = expect_type(t.Fn, k.ty).result
    return Cont(answer, lambda value: c.App(value.span, answer, k, value), k, several=True)


# ---- types -----------------------------------------------------------------------------------------------------


class Continuing:
    """The state that all definitions share: types without effects, and fresh names."""

    def __init__(self) -> None:
        self.types: dict[int, tuple[t.Ty, t.Ty]] = {}  # by identity; the old types are kept, and so their identities
        self.count = 0

    def fresh(self, hint: str, ty: t.Ty, span: Span) -> c.Var:
        """A new variable of core."""
        self.count += 1
        return c.Var(span, ty, f"{hint}.c{self.count}")

    def type(self, ty: t.Ty) -> t.Ty:
        """A type in which functions that capture take a continuation."""
        found = self.types.get(id(ty))
        if found is None:
            found = self.types[id(ty)] = (ty, self.converted(ty))
        return found[1]

    def converted(self, ty: t.Ty) -> t.Ty:
        match ty:
            case t.Con(name, args) if args:
                return t.Con(name, tuple([a if isinstance(a, t.Size) else self.type(a) for a in args]))
            case t.Tup(items):
                return t.Tup(tuple([self.type(i) for i in items]))
            case t.Arr(elem, size):
                return t.Arr(self.type(elem), size)
            case t.Fn(arg, t.Ctl(answer), result):
                k = t.Fn(self.type(result), t.PURE, self.type(answer))
                return t.Fn(self.type(arg), t.PURE, t.Fn(k, t.PURE, k.result))
            case t.Fn(arg, _, result):
                return t.Fn(self.type(arg), t.PURE, self.type(result))
            case _:
                return ty

    def worker(self, ty: t.Ty, count: int) -> t.Ty:
        """The type of a function of `count` parameters whose last parameter is followed by its continuation."""
        fn = expect_type(t.Fn, ty)
        return self.type(ty) if count == 1 else t.Fn(self.type(fn.arg), t.PURE, self.worker(fn.result, count - 1))

    def data(self, data: c.Data) -> c.Data:
        """The declaration of a data type with such types."""
        return replace(data, cases=tuple((name, None if ty is None else self.type(ty)) for name, ty in data.cases))


def arity(e: c.Term) -> int:
    """The number of arguments of a definition's worker; 1 if it has none."""
    functions: list[c.Lam] = []
    while isinstance(e, c.Lam):
        functions.append(e)
        e = e.body
    return len(functions) if any(captures_on_call(lam) for lam in functions[:-1]) else 1


def captures_on_call(fn: c.Term) -> bool:
    """True if a call of the function may capture its continuation, by the effect of its type."""
    return isinstance(expect_type(t.Fn, fn.ty).eff, t.Ctl)


def spine(e: c.App) -> tuple[c.Term, list[c.App]]:
    """`f a b` -> f, and the applications, innermost first."""
    applications: list[c.App] = []
    head: c.Term = e
    while isinstance(head, c.App):
        applications.append(head)
        head = head.fn
    return head, applications[::-1]
