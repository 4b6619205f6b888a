"""Function values that a derivative computes anyway: a call f(x) takes its results from `jvp f` or `vjp f` at x.

    (y, dy) = jvp f (x, dx)             (y, dy) = jvp f (x, dx)
    z = f(x)                      =>    z = y

A call before a `vjp` in the same block waits for nothing: the `vjp` is done in its place.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from dplc.flat import term as f
from dplc.flat.walk import every
from dplc.passes.simplify.purity import quiet
from dplc.passes.simplify.value_numbers import expression_of

Key = tuple[str, tuple[object, ...]]


class Primals:
    """What derivatives have computed, or will compute in the same block, at one place of a program."""

    def __init__(self, program: f.Program) -> None:
        self.functions = program.fns.keys() - special(program)
        self.known: dict[Key, tuple[f.Var, ...]] = {}
        self.pulled: dict[Key, tuple[f.Ad, tuple[f.Var, ...]]] = {}  # the `vjp`s of this block that are still to come
        self.done: set[f.Var] = set()

    @contextmanager
    def function(self) -> Generator[None]:
        """Another function is looked at; it sees nothing of this one."""
        outer = self.known, self.pulled, self.done
        self.known, self.pulled, self.done = {}, {}, set()
        yield
        self.known, self.pulled, self.done = outer

    @contextmanager
    def block(self, block: f.Block) -> Generator[None]:
        """An inner block is looked at; what it computes is known inside it."""
        outer = self.known, self.pulled
        self.known, self.pulled = dict(self.known), {}
        for bind in block.binds:
            if isinstance(bind.rhs, f.Ad) and bind.rhs.mode == "vjp" and (key := self.key(bind.rhs)):
                self.pulled.setdefault(key, (bind.rhs, bind.vars))
        yield
        self.known, self.pulled = outer

    def note(self, ad: f.Ad, vars_: tuple[f.Var, ...]) -> bool:
        """Notes that a derivative is taken; False if it has been."""
        if vars_[0] in self.done:
            return False
        key = self.key(ad)
        if key is not None:
            self.done.add(vars_[0])
            self.pulled.pop(key, None)
            self.known.setdefault(key, (vars_[0], *vars_[2:]))
        return True

    def later(self, call: f.Call) -> tuple[f.Ad, tuple[f.Var, ...]] | None:
        """The `vjp` of a function at the same place, later in the block."""
        return self.pulled.get(key_of(call))

    def key(self, ad: f.Ad) -> Key | None:
        """What is computed beside a derivative; None if that may be something else than the function's value."""
        if ad.fn not in self.functions or ad.mode not in ("jvp", "vjp"):
            return None
        return key_of(f.Call(ad.fn, ad.args[:-1] if ad.mode == "jvp" else ad.args))


def key_of(call: f.Call) -> Key:
    """What two calls have in common that give the same: the function, and its arguments as expressions."""
    return call.fn, tuple(map(expression_of, call.args))


def special(program: f.Program) -> set[str]:
    """The functions that have effects, or may compute something else where a derivative is taken: by a user's rule."""
    callers: dict[str, list[str]] = {}
    todo = list(program.rules)
    for name, fn in program.fns.items():
        for bind in every(fn.body):
            match bind.rhs:
                case f.Call(callee) | f.Ad(_, callee):
                    callers.setdefault(callee, []).append(name)
                case f.Op() as op if not quiet(op):
                    todo.append(name)
                case _:
                    pass
    found = set(todo)
    while todo:
        new = set(callers.get(todo.pop(), ())) - found
        found |= new
        todo += new
    return found
