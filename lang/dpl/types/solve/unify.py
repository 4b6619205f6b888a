"""Unification of types, sizes and effects, with levels for generalisation.

A failure is a `Clash`, which says what did not fit; who asked turns it into a message.  Constraints that wait for an
unknown are put into `queue` when something becomes known about it; `drain` works it off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dpl.core import ty
from dpl.core.term import Data
from dpl.source import NOWHERE, Span
from dpl.types.solve.effects import Effects
from dpl.types.solve.kinds import Kinds
from dpl.types.solve.meta import EffectMeta, Meta, Type, prune, prune_effect
from dpl.types.solve.sizes import Sizes, Verdict


class Clash(Exception):
    """Two things that do not go together; `kind` is type, size, rank, occurs, class, rigid, effect or answer.
    `places` are those known to have said so before."""

    def __init__(self, kind: str, left, right, *places: Span | None) -> None:
        super().__init__(kind)
        self.kind, self.left, self.right = kind, left, right
        self.places = places


class Solver:
    """What is known so far.  `assumed` are the equations of sizes that only running can confirm; `claimed` are those of
    them that the result of an operation on this operand is said to have, which no operation compares."""

    def __init__(self, datas: Mapping[str, Data], prefix: str = "") -> None:
        self.level = 0
        self.sizes = Sizes(prefix)
        self.datas = datas
        self.kinds = Kinds(datas)
        self.effects = Effects(self._same_answer)
        self.queue: list = []
        self.assumed: list[tuple[ty.Size, ty.Size]] = []
        self.claimed: list[tuple[ty.Size, ty.Size]] = []
        self.undecided: list[tuple[ty.Size, ty.Size]] = []
        self.at(NOWHERE)

    def at(self, place: Span) -> None:
        """What is learnt from here on is learnt at this place."""
        self.place = self.sizes.place = place

    # ---- new unknowns

    def fresh(self, *classes: str) -> Meta:
        return Meta(self.level, frozenset(classes))

    def rigid(self, name: str) -> Meta:
        return Meta(self.level, rigid=name)

    def effect(self) -> EffectMeta:
        return EffectMeta(self.level)

    def size(self) -> ty.Size:
        return self.sizes.fresh(self.level)

    def unknown_size(self) -> ty.Size:
        return self.sizes.unknown(self.level)

    # ---- equations

    def unify(self, a: Type, b: Type) -> None:
        a, b = prune(a), prune(b)
        if a is b:
            return
        if type(a) is Meta and not (a.rigid and type(b) is Meta):
            return self.link(a, b)
        if type(b) is Meta:
            return self.link(b, a)
        match a, b:
            case ty.Con(m, xs), ty.Con(n, ys) if m == n and len(xs) == len(ys):
                for x, y in zip(xs, ys):
                    self.unify_part(x, y)
            case ty.Tup(xs), ty.Tup(ys) if len(xs) == len(ys):
                for x, y in zip(xs, ys):
                    self.unify(x, y)
            case ty.Arr(x, p), ty.Arr(y, q):
                self.unify_size(p, q)
                self.unify(x, y)
            case ty.Fn(p, e, r), ty.Fn(q, f, s):
                self.unify(p, q)
                self.unify_effect(e, f)
                self.unify(r, s)
            case ty.Var(m), ty.Var(n) if m == n:
                pass
            case _:
                raise Clash("type", a, b)

    def unify_part(self, x: Type | ty.Size, y: Type | ty.Size) -> None:
        """Arguments of a type that has the same parameters."""
        if isinstance(x, ty.Size):
            assert isinstance(y, ty.Size)
            self.unify_size(x, y)
        else:
            assert not isinstance(y, ty.Size)
            self.unify(x, y)

    def unify_size(self, p: ty.Size, q: ty.Size) -> None:
        match self.sizes.unify(p, q):
            case Verdict.DIFFERENT:
                raise Clash("size", self.sizes.norm(p), self.sizes.norm(q), self.sizes.origin(p), self.sizes.origin(q))
            case Verdict.ASSUMED:
                self.assumed.append((p, q))
            case Verdict.UNDECIDED:
                self.undecided.append((p, q))
            case _:
                pass

    def unify_effect(self, e, f) -> None:
        if not self.effects.unify(e, f):
            raise Clash("effect", prune_effect(e), prune_effect(f))

    def perform(self, effect, ambient) -> None:
        """A call with `effect` happens where `ambient` is allowed."""
        if not self.effects.below(effect, ambient):
            raise Clash("effect", prune_effect(effect), prune_effect(ambient))

    def _same_answer(self, a: Type, b: Type) -> None:
        try:
            self.unify(a, b)
        except Clash as clash:
            raise Clash("answer", a, b) from clash

    # ---- unknowns become known

    def link(self, meta: Meta, t: Type) -> None:
        if meta.rigid:
            raise Clash("rigid", meta, t)
        self.lower(t, meta.level, meta)
        meta.link = t
        try:
            for cls in sorted(meta.classes):  # the same message every time
                self.require(t, cls)
        except Clash as clash:
            meta.link = None  # so that the message can say what it is
            clash.places = (meta.place,)
            raise
        meta.place = self.place
        if meta.watchers:
            self.queue += meta.watchers
            if type(t) is Meta:
                t.watchers += meta.watchers

    def require(self, t: Type, cls: str) -> None:
        """`t` belongs to a class."""
        t = prune(t)
        if type(t) is Meta:
            if cls not in t.classes:
                t.classes |= {cls}
                t.place = self.place
                self.queue += t.watchers
            return
        parts = self.kinds.parts(cls, t)
        if parts is None:
            raise Clash("class", t, cls)
        for part in parts:
            self.require(part, cls)

    def lower(self, t: Any, level: int, occurs: Meta | None = None) -> None:
        """Everything unknown in `t` belongs to `level` or further out; `occurs` must not be in it."""
        stack, seen = [t], set()
        while stack:
            t = stack.pop()
            kind = type(t)
            if kind is ty.Size:
                self.sizes.lower(t, level)
                continue
            if kind is Meta:
                t = prune(t)
                kind = type(t)
                if t is occurs:
                    raise Clash("occurs", occurs, None)
                if kind is Meta:
                    if t.level > level:
                        if t.rigid and occurs is not None:
                            raise Clash("rigid", t, occurs)
                        t.level = level
                    continue
            elif kind is EffectMeta:
                t = prune_effect(t)
                kind = type(t)
                if kind is EffectMeta:
                    t.level = min(t.level, level)
                    continue
            if id(t) in seen:
                continue
            seen.add(id(t))
            stack += ty.children(t)

    def drain(self, solve: Callable) -> None:
        """Look again at the constraints about whose unknowns something became known."""
        while self.queue:
            constraint = self.queue.pop(0)
            if not constraint.done:
                solve(constraint)
