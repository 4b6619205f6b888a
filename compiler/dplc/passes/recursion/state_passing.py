"""State passing: mutable state -> values, one for each point of the program.

    if c { r := b } else { }                    v' = if c { yield b } else { yield v }
    for i < n { x = !r; y = mul x x; r := y }   v" = for i < n state (w = v') { y = mul w w; yield y }
    ... !r ...                                  ... v" ...

A *key* names a piece of state, and an environment has the current value of each key.  A pass derives from `Threads`: it
defines the keys that a binding writes, and rewrites the bindings that read and write.  Control flow is handled here: a
branch that writes gets one more result for the new value, a loop one more state.  A comprehension that writes becomes a
loop over its elements, because each element sees the writes of those before it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable, Iterator

from dplc.flat import term as f
from dplc.flat.copy import Copier
from dplc.flat.types import of_rank
from dplc.flat.walk import blocks, every, rebuild

Env = dict[Hashable, f.Atom]


class Threads(ABC):
    def __init__(self, supply: f.Supply) -> None:
        self.supply = supply

    # ---- what a pass says ----------------------------------------------------------------------------------------

    @abstractmethod
    def type(self, key: Hashable) -> f.Type:
        """The type of the values of a key."""

    @abstractmethod
    def writes(self, rhs: f.Rhs) -> Iterable[Hashable]:
        """The keys that a right-hand side without inner blocks writes."""

    @abstractmethod
    def plain(self, bind: f.Bind, env: Env, out: list[f.Bind]) -> None:
        """Rewrites a binding without inner blocks."""

    def matters(self, key: Hashable, vars_: tuple[f.Var, ...]) -> bool:
        """False if the value of a key after blocks with the results `vars_` cannot matter; then the old value stays."""
        return True

    def element(self, bind: f.Bind, build: f.Build, env: Env, begin: list[f.Bind]) -> Env:
        """The environment at the start of an element of a comprehension.  Its first bindings go to `begin`."""
        return env

    def atom(self, atom: f.Atom) -> f.Atom:
        return atom

    def var(self, var: f.Var) -> f.Var:
        return var

    def again(self, rhs: f.Rhs) -> f.Rhs:
        """A right-hand side without inner blocks, with its operands replaced."""
        return rebuild(rhs, self.atom, lambda block: block, self.var)

    # ---- through control -----------------------------------------------------------------------------------------

    def block(self, block: f.Block, env: Env, keys: Collection[Hashable] = (), at: int | None = None) -> f.Block:
        """A block that begins with `env`.  The values of `keys` at its end become further results, before result
        `at`."""
        out: list[f.Bind] = []
        env = dict(env)
        for bind in block.binds:
            self.bind(bind, env, out)
        results = self.atoms(block.results)
        at = len(results) if at is None else at
        return f.Block(tuple(out), (*results[:at], *[env[key] for key in keys], *results[at:]))

    def atoms(self, atoms: Iterable[f.Atom]) -> tuple[f.Atom, ...]:
        return tuple([self.atom(a) for a in atoms])

    def vars(self, vars_: Iterable[f.Var]) -> tuple[f.Var, ...]:
        return tuple([self.var(v) for v in vars_])

    def bind(self, bind: f.Bind, env: Env, out: list[f.Bind]) -> None:
        match bind.rhs:
            case f.If() | f.Switch() as choice:
                keys = self.changed(bind, env)
                after = self.fresh(keys)
                rhs = rebuild(choice, self.atom, lambda b: self.block(b, env, keys), self.var)
                out.append(f.Bind((*self.vars(bind.vars), *after), rhs))
                env.update(zip(keys, after, strict=True))
            case f.While(cond=cond) if any(key in env for key in self.written(cond)):
                for part in asked_in_turn(bind, bind.rhs, self.supply):
                    self.bind(part, env, out)
            case f.For() | f.While() as loop:
                self.loop(bind, loop, env, out)
            case f.Build() as build:
                self.build(bind, build, env, out)
            case _:
                self.plain(bind, env, out)

    def loop(self, bind: f.Bind, loop: f.For | f.While, env: Env, out: list[f.Bind]) -> None:
        keys, width = self.changed(bind, env), len(loop.state)
        inside, after = self.fresh(keys), self.fresh(keys)
        here = env | dict(zip(keys, inside, strict=True))
        inits = (*self.atoms(loop.inits), *[env[key] for key in keys])
        state = (*self.vars(loop.state), *inside)
        body = self.block(loop.body, here, keys, width)
        if isinstance(loop, f.For):
            rhs = f.For(loop.index, self.atom(loop.count), state, inits, body, loop.collect)
        else:
            rhs = f.While(state, inits, self.block(loop.cond, here), body, loop.collect)
        vars_ = self.vars(bind.vars)
        out.append(f.Bind((*vars_[:width], *after, *vars_[width:]), rhs))
        env.update(zip(keys, after, strict=True))

    def build(self, bind: f.Bind, build: f.Build, env: Env, out: list[f.Bind]) -> None:
        begin: list[f.Bind] = []
        here = self.element(bind, build, env, begin)
        if self.changed(bind, here):
            for part in in_turn(bind, build, self.supply):
                self.bind(part, env, out)
            return
        body = self.block(build.body, here)
        body = f.Block((*begin, *body.binds), body.results)
        inner = tuple([self.atoms(sizes) for sizes in build.inner])
        rhs = f.Build(build.index, self.atom(build.count), body, build.span, inner)
        out.append(f.Bind(self.vars(bind.vars), rhs))

    def changed(self, bind: f.Bind, env: Env) -> list[Hashable]:
        """The keys whose values after a binding differ because its inner blocks write them."""
        written = {key for block in blocks(bind.rhs) for key in self.written(block)}
        return [key for key in env if key in written and self.matters(key, bind.vars)]

    def written(self, block: f.Block) -> Iterator[Hashable]:
        return (key for bind in every(block) if not blocks(bind.rhs) for key in self.writes(bind.rhs))

    def fresh(self, keys: Iterable[Hashable]) -> tuple[f.Var, ...]:
        return tuple([f.Var(self.supply.fresh("held"), self.type(key)) for key in keys])


def asked_in_turn(bind: f.Bind, loop: f.While, supply: f.Supply) -> Iterator[f.Bind]:
    """A while loop whose condition becomes part of its body.

    s' = while state (s = a) { q } do { b }     =>     g = q[a];  (_, s') = while state (g, s) { g } do { b; q[b] }
    """
    width = len(loop.state)

    def asked(state: Iterable[f.Atom]) -> f.Block:
        return Copier(supply, {s.name: now for s, now in zip(loop.state, state, strict=True)}).block(loop.cond)

    first, again = asked(loop.inits), asked(loop.body.results[:width])
    yield from first.binds
    going, gone = f.Var(supply.fresh("go"), f.BOOL), f.Var(supply.fresh("go"), f.BOOL)
    body = f.Block((*loop.body.binds, *again.binds), (again.results[0], *loop.body.results))
    yield f.Bind(
        (gone, *bind.vars),
        f.While((going, *loop.state), (first.results[0], *loop.inits), f.Block((), (going,)), body, loop.collect),
    )


def in_turn(bind: f.Bind, build: f.Build, supply: f.Supply) -> Iterator[f.Bind]:
    """A comprehension -> a loop that collects the elements, and a comprehension that reads them.

    a = build i < n { b; yield x }      =>     k = for i < n collect 1 { b; yield x };  a = build j < n { k[j].0 }
    """
    row = f.Tup(tuple([r.ty for r in build.body.results]))
    kept, index = f.Var(supply.fresh("kept"), of_rank(row, 1)), f.Var(supply.fresh("i"), f.I64)
    yield f.Bind((kept,), f.For(build.index, build.count, (), (), build.body, len(row.items)))
    tup = f.Var(supply.fresh("t"), row)
    parts = [f.Var(supply.fresh("t"), ty) for ty in row.items]
    binds = [f.Bind((tup,), f.Op("index", (kept, index), (("unchecked", True),)))]
    binds += [f.Bind((part,), f.TupGet(tup, i)) for i, part in enumerate(parts)]
    yield f.Bind(bind.vars, f.Build(index, build.count, f.Block(tuple(binds), tuple(parts)), build.span, build.inner))
