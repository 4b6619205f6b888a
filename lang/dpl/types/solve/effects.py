"""Effects: pure, capturing the caller's context (`ctl`), or unknown.  They are ordered; pure is the least.

The effect of a call must be at most that of its surroundings.  An unknown effect below another stays unknown.  Only
when it turns out to be ctl does the other become ctl too, so calls of pure functions leave their surroundings pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from dpl.core.ty import PURE, Ctl, Pure, Var
from dpl.types.solve.meta import Effect, EffectMeta, prune_effect


class Effects:
    def __init__(self, same_answer: Callable) -> None:
        self.same_answer = same_answer  # unifies two answer types

    def unify(self, a: Effect, b: Effect) -> bool:
        """Makes two effects equal; False if they cannot be."""
        a, b = prune_effect(a), prune_effect(b)
        if a is b:
            return True
        if type(a) is EffectMeta:
            return self._link(a, b)
        if type(b) is EffectMeta:
            return self._link(b, a)
        match a, b:
            case Pure(), Pure():
                return True
            case Ctl(r), Ctl(s):
                self.same_answer(r, s)
                return True
            case _:
                pass
        return a == b

    def below(self, low: Effect, high: Effect) -> bool:
        """Makes one effect at most another one; False if it cannot be."""
        low, high = prune_effect(low), prune_effect(high)
        if low is high or type(low) is Pure:
            return True
        if type(low) is not EffectMeta:
            return self.unify(low, high)
        if type(high) is Pure:
            return self._link(low, PURE)
        low.uppers.append(high)
        if type(high) is EffectMeta:
            high.lowers.append(low)
        return True

    def _link(self, meta: EffectMeta, effect: Effect) -> bool:
        meta.link = effect
        if type(effect) is EffectMeta:
            effect.level = min(effect.level, meta.level)
            effect.lowers += meta.lowers
            effect.uppers += meta.uppers
            return True
        if type(effect) is Pure:
            return all(type(low) is Var or self.unify(low, PURE) for low in map(prune_effect, meta.lowers))
        return all(self.unify(high, effect) for high in meta.uppers)

    def relax(self, metas: Collection[EffectMeta], chosen: Callable[[EffectMeta], bool]) -> None:
        """Before generalisation: each effect becomes pure if callers cannot choose it and nothing below it captures.

        Otherwise a ctl effect above it would decide it.  So a function that captures only once it has all its arguments
        may call itself with all of them."""
        moving = self._moving(metas, chosen)
        for meta in metas:
            if type(prune_effect(meta)) is EffectMeta and meta not in moving:
                highs = map(prune_effect, meta.uppers)
                if any(type(high) is Ctl or high in moving for high in highs):
                    self.unify(meta, PURE)

    def _moving(self, metas: Iterable[EffectMeta], chosen: Callable[[EffectMeta], bool]) -> set[EffectMeta]:
        """Of these effects, and those beside them, the ones that capture or that callers choose, or that are above
        such an effect."""
        above: dict[Effect, list[EffectMeta]] = {}
        stack = [e for meta in metas for e in (meta, *meta.uppers)]
        seen: set[Effect] = set()
        while stack:
            at = prune_effect(stack.pop())
            if type(at) is EffectMeta and at not in seen:
                seen.add(at)
                for low in map(prune_effect, at.lowers):
                    above.setdefault(low, []).append(at)
                stack += at.lowers
        moving: set[EffectMeta] = set()
        rest = [e for e in seen if type(e) is EffectMeta and chosen(e)]
        rest += [high for low, highs in above.items() if type(low) is Ctl for high in highs]
        while rest:
            at = rest.pop()
            if at not in moving:
                moving.add(at)
                rest += above.get(at, ())
        return moving

    def limited(self, metas: Iterable[EffectMeta], level: int) -> set[EffectMeta]:
        """Of these effects, and those above them, the ones that are below an effect that cannot be generalised."""
        below: dict[EffectMeta, list[EffectMeta]] = {}
        found, seen, stack = set[EffectMeta](), set[EffectMeta](), list(metas)
        while stack:
            at = stack.pop()
            if at in seen:
                continue
            seen.add(at)
            for high in map(prune_effect, at.uppers):
                if type(high) is Ctl or (type(high) is EffectMeta and high.level <= level):
                    found.add(at)
                elif type(high) is EffectMeta:
                    below.setdefault(high, []).append(at)
                    stack.append(high)
        rest = list(found)
        while rest:
            for low in below.get(rest.pop(), ()):
                if low not in found:
                    found.add(low)
                    rest.append(low)
        return found

    def above(self, meta: EffectMeta, level: int) -> tuple[Collection[Effect], Collection[EffectMeta]]:
        """The effects above `meta` that cannot be generalised, and the unknown effects in between."""
        found, between, stack = dict[Effect, None](), dict[EffectMeta, None](), list(meta.uppers)
        while stack:
            high = prune_effect(stack.pop())
            if type(high) is Ctl or (type(high) is EffectMeta and high.level <= level):
                found[high] = None
            elif type(high) is EffectMeta and high is not meta and high not in between:
                between[high] = None
                stack += high.uppers
        return found, between

    def bounds(self, meta: EffectMeta, level: int, kept: Callable[[EffectMeta], bool]) -> list[Effect]:
        """The upper bounds of `meta`, before generalisation over it.

        No caller can choose an effect in between that is not generalised, so it equals its own upper bound."""
        found, between = self.above(meta, level)
        for high in between:
            if not kept(high) and (most := self.above(high, level)[0]):
                self.unify(high, next(iter(most)))
        return list(found)

    def settle(self, meta: EffectMeta, level: int, kept: Callable[[EffectMeta], bool]) -> None:
        """Before generalisation: the effects below `meta` that live on equal it; all others are pure."""
        pending, meta.lowers = meta.lowers, []
        for low in pending:
            low = prune_effect(low)
            if type(low) is not EffectMeta or low is meta:
                continue
            self.settle(low, level, kept)
            low = prune_effect(low)
            if type(low) is EffectMeta and low is not prune_effect(meta):
                if low.level <= level or kept(low):
                    self.unify(meta, low)
                else:
                    self._link(low, PURE)
