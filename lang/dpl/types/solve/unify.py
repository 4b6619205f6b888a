"""Unification of types, sizes and effects, with levels for generalisation.

A failure raises `Clash`, which says what did not fit; the caller turns it into a message.  Constraints that wait for an
unknown go into `queue`, with the unknown, when something becomes known about it; `drain` retries those it concerns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from dpl.core import ty
from dpl.core.term import Data
from dpl.source import NOWHERE, Span
from dpl.types.solve.effects import Effects
from dpl.types.solve.kinds import Kinds, compatible
from dpl.types.solve.meta import EffectMeta, Meta, Type, prune, prune_effect
from dpl.types.solve.sizes import Sizes, Verdict


class Clash(Exception):
    """Two things that do not unify.  `kind` says how: type, size, occurs, class, ...

    `places` are the spans, if known, that the two sides come from."""

    def __init__(self, kind: str, left, right, *places: Span | None) -> None:
        super().__init__(kind)
        self.kind, self.left, self.right = kind, left, right
        self.places = places


class Solver:
    """The state of unification.  `assumed` are equations of sizes that only a run of the program can confirm.

    `claimed` are those of them that give the result of an operation the type of an operand; no operation checks
    these."""

    def __init__(self, datas: Mapping[str, Data], prefix: str = "") -> None:
        self.level = 0
        self.sizes = Sizes(prefix)
        self.datas = datas
        self.kinds = Kinds(datas)
        self.effects = Effects(self._same_answer)
        self.queue: deque = deque()
        self.assumed: list[tuple[ty.Size, ty.Size]] = []
        self.claimed: list[tuple[ty.Size, ty.Size]] = []
        self.undecided: list[tuple[ty.Size, ty.Size]] = []
        self.at(NOWHERE)

    def at(self, place: Span) -> None:
        """Sets the origin of the equations that follow."""
        self.place = self.sizes.place = place

    # ---- new unknowns

    def fresh(self, *classes: str) -> Meta:
        """An unknown type that is in these classes."""
        return Meta(self.level, frozenset(classes))

    def rigid(self, name: str) -> Meta:
        """A type variable of an annotation, which unifies with nothing but itself."""
        return Meta(self.level, rigid=name)

    def effect(self) -> EffectMeta:
        """An unknown effect."""
        return EffectMeta(self.level)

    def size(self) -> ty.Size:
        """An unknown size, which inference will find."""
        return self.sizes.fresh(self.level)

    def unknown_size(self) -> ty.Size:
        """A size that is known only at run time."""
        return self.sizes.unknown(self.level)

    # ---- equations

    def unify(self, a: Type, b: Type) -> None:
        """Makes two types equal (Robinson 1965).  Raises Clash if they cannot be."""
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
        """Unifies two arguments, types or sizes, of the same type constructor."""
        if isinstance(x, ty.Size):
            assert isinstance(y, ty.Size)
            self.unify_size(x, y)
        else:
            assert not isinstance(y, ty.Size)
            self.unify(x, y)

    def unify_size(self, p: ty.Size, q: ty.Size) -> None:
        """Makes two sizes equal, or notes that this is decided later, or at run time.  Raises Clash if they differ."""
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
        """Requires that `ambient` allows `effect`: a call with this effect happens there."""
        if not self.effects.below(effect, ambient):
            raise Clash("effect", prune_effect(effect), prune_effect(ambient))

    def _same_answer(self, a: Type, b: Type) -> None:
        try:
            self.unify(a, b)
        except Clash as clash:
            raise Clash("answer", a, b) from clash

    # ---- unknowns become known

    def link(self, meta: Meta, t: Type) -> None:
        """Sets an unknown type.  Raises Clash if it would hold itself, or is not in the unknown's classes."""
        if meta.rigid:
            raise Clash("rigid", meta, t)
        self.lower(t, meta.level, meta)
        try:
            for cls in sorted(meta.classes):  # in order, for reproducible messages
                self.require(t, cls)
        except Clash as clash:
            clash.places = (meta.place,)
            raise
        meta.link = t
        meta.place = self.place
        if meta.watchers:
            self.notify(meta)
            if type(t) is Meta:
                t.watchers += meta.watchers

    def notify(self, meta: Meta) -> None:
        self.queue += [(constraint, meta) for constraint in meta.watchers]

    def require(self, t: Type, cls: str) -> None:
        """Requires that `t` belongs to a class.  Raises Clash if it does not."""
        t = prune(t)
        if type(t) is Meta:
            if cls not in t.classes:
                if not compatible(t.classes | {cls}):
                    raise Clash("class", t, cls)
                t.classes |= {cls}
                t.place = self.place
                self.notify(t)
            return
        parts = self.kinds.parts(cls, t)
        if parts is None:
            raise Clash("class", t, cls)
        for part in parts:
            self.require(part, cls)

    def lower(self, t: Any, level: int, occurs: Meta | None = None) -> None:
        """Lowers the level of every unknown in `t` to `level`.

        Raises Clash if `occurs` is in it (the occurs check)."""
        stack, seen = [t], set()
        while stack:
            t = stack.pop()
            kind = type(t)
            if kind is ty.Size:
                self.sizes.lower(t, level)
                continue
            if kind is Meta:
                t = prune(t)
                if t is occurs:
                    raise Clash("occurs", occurs, None)
                if type(t) is Meta:
                    if t.level > level:
                        if t.rigid and occurs is not None:
                            raise Clash("rigid", t, occurs)
                        t.level = level
                    continue
            elif kind is EffectMeta:
                t = prune_effect(t)
                if type(t) is EffectMeta:
                    t.level = min(t.level, level)
                    continue
            if id(t) in seen:
                continue
            seen.add(id(t))
            stack += ty.children(t)

    def drain(self, solve: Callable) -> None:
        """Retries the constraints whose unknowns have become better known."""
        while self.queue:
            constraint, meta = self.queue.popleft()
            if not constraint.done and constraint.concerns(self, meta):
                solve(constraint)
