"""Simplifies open constraints between operands before a function is generalised over them.

!3 = lift !1 !2, !3 fits !4           ->   !1 fits !4, !2 fits !4
!3 = lift !1 !2, !2 fits !1           ->   !3 := !1
!1 fits !2, !2 fits !1                ->   !1 := !2
!1 @ !2 = !3, !1 @ !2 = !4            ->   !3 := !4
"""

from __future__ import annotations

from collections.abc import Iterator

from dpl.types.solve.constraints import Constraint, Fits, Lift
from dpl.types.solve.meta import Meta, Type, prune
from dpl.types.solve.scheme import closed
from dpl.types.state.context import Context


def simplify(cx: Context, mark: int) -> None:
    """Simplifies the constraints since `mark` until nothing more follows from them."""
    while any(not c.done for c in cx.pending[mark:]) and _step(cx, mark):
        pass


def _step(cx: Context, mark: int) -> bool:
    """Performs one simplification; False if none applies."""
    if _merged(cx, mark):
        return True
    known = Relations([c for c in cx.pending[mark:] if not c.done])
    return _split(cx, known) or _ties(cx, known) or _decided(cx, known)


def _merged(cx: Context, mark: int) -> bool:
    """Drops constraints that say the same as another.  The same operation on the same operands has one result."""
    first: dict[tuple, Constraint] = {}
    dropped = False
    for c in cx.pending[mark:]:
        if c.done:
            continue
        operands = c.types if type(c) is Fits else c.types[:-1]
        kept = first.setdefault((type(c), c.extra, *(closed(cx.solver, t, {}) for t in operands)), c)
        if kept is not c:
            dropped = c.done = True
            if isinstance(kept, Lift) and isinstance(c, Lift):
                kept.held &= c.held
            if type(c) is not Fits:
                cx.unify(c.types[-1], kept.types[-1], c.span)
    return dropped


class Relations:
    """The relations among unknowns: which are lifts of which, and which fit which."""

    def __init__(self, pending: list[Constraint]) -> None:
        self.lifts = [c for c in pending if type(c) is Lift]
        self.fits = [c for c in pending if type(c) is Fits]
        self.made: dict[Type, Lift] = {}
        for c in self.lifts:
            self.made.setdefault(prune(c.types[-1]), c)
        self.wholes: dict[Type, dict[Type, Fits]] = {}
        for c in self.fits:
            part, whole = map(prune, c.types)
            self.wholes.setdefault(part, {}).setdefault(whole, c)

    def operands(self, c: Lift) -> Iterator[Type]:
        """The operands of a lift, each once, with lifts among them replaced by their own operands; the last first, as
        chains of operators lie in their first operands."""
        found: set[Type] = set()
        stack, seen = list(c.types[:-1]), {prune(c.types[-1])}
        while stack:
            t = prune(stack.pop())
            inner = self.made.get(t)
            if inner is not None and t not in seen:
                seen.add(t)
                stack += inner.types[:-1]
            elif t not in found:
                found.add(t)
                yield t

    def circular(self) -> set[Type]:
        """The lifts that are made of themselves, and those made of them."""
        waits = {t: {prune(part) for part in c.types[:-1]} & self.made.keys() for t, c in self.made.items()}
        users: dict[Type, list[Type]] = {}
        for t, parts in waits.items():
            for part in parts:
                users.setdefault(part, []).append(t)
        ready = [t for t, parts in waits.items() if not parts]
        while ready:
            t = ready.pop()
            del waits[t]
            for user in users.get(t, ()):
                waits[user].discard(t)
                if not waits[user]:
                    ready.append(user)
        return set(waits)

    def tops(self, c: Lift) -> Iterator[Type]:
        """The operands of a lift that fit no other."""
        inside: set[Type] = set()
        for t in self.operands(c):
            above = self.above(t)
            if above and not inside:
                inside = set(self.operands(c))
            if above & inside <= {t}:
                yield t

    def above(self, part: Type) -> set[Type]:
        """The types that `part` fits, directly or transitively."""
        found: set[Type] = set()
        stack = [part]
        while stack:
            for whole in self.wholes.get(stack.pop(), ()):
                if whole not in found:
                    found.add(whole)
                    stack.append(whole)
        return found


def _split(cx: Context, known: Relations) -> bool:
    """Replaces "a lift fits t" by "its operands fit t", and drops duplicates."""
    new: list[Fits] = []
    for c in known.fits:
        part, whole = map(prune, c.types)
        if known.wholes[part][whole] is not c:
            c.done = True
        elif part in known.made:
            c.done = True
            operands = [*known.operands(known.made[part])][::-1]
            new += [Fits((t, whole), c.span) for t in operands if whole not in known.wholes.get(t, ())]
    for c in new:
        cx.constrain(c)
    return bool(new)


def _ties(cx: Context, known: Relations) -> bool:
    """Unifies types that fit each other."""
    for part in known.wholes:
        for whole in known.above(part):
            if part is not whole and type(part) is Meta and part in known.above(whole):
                cx.unify(part, whole, known.fits[0].span)
                return True
    return False


def _decided(cx: Context, known: Relations) -> bool:
    """Decides lifts.

    A lift equals the operand that all others fit.  If a lift is its own operand, the other operands fit it."""
    circular = known.circular()
    for c in known.lifts:
        result = prune(c.types[-1])
        operands = [*known.operands(c)][::-1] if result in circular else []
        if result in operands:
            c.done = True
            for t in operands:
                if t is not result:
                    cx.constrain(Fits((t, result), c.span))
            return True
        tops = known.tops(c)
        top, second = next(tops, None), next(tops, None)
        if top is not None and second is None:
            c.done = True
            cx.unify(result, top, c.span)
            return True
    return False
