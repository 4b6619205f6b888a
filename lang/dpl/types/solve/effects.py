"""Effects: pure, or capturing the caller's context (`ctl`), or unknown; an order with pure at the bottom.

A call's effect must be below that of its surroundings.  An unknown below another stays so: only when it turns out to
be ctl does the other become ctl too, so that calls of pure functions leave their surroundings, and themselves, pure.
"""

from __future__ import annotations

from collections.abc import Callable

from dpl.core.ty import PURE, Ctl, Pure, Var
from dpl.types.solve.meta import Effect, EffectMeta, prune_effect


class Effects:
    def __init__(self, same_answer: Callable) -> None:
        self.same_answer = same_answer  # makes two answer types equal

    def unify(self, a: Effect, b: Effect) -> bool:
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

    def relax(self, meta: EffectMeta, chosen: Callable[[EffectMeta], bool]) -> None:
        """Before generalising over `meta`: unless callers choose it, or something happens at it, it is pure rather than
        what is above it.  So a function that captures once it has all its arguments may call itself with them."""
        if self._still(meta, chosen):
            highs = map(prune_effect, meta.uppers)
            if any(type(high) is Ctl or (type(high) is EffectMeta and not self._still(high, chosen)) for high in highs):
                self.unify(meta, PURE)

    def _still(self, meta: EffectMeta, chosen: Callable[[EffectMeta], bool]) -> bool:
        """Whether all that happens at an effect is pure."""
        stack, seen = [meta], []
        while stack:
            at = prune_effect(stack.pop())
            if type(at) is Ctl or (type(at) is EffectMeta and chosen(at)):
                return False
            if type(at) is EffectMeta and at not in seen:
                seen.append(at)
                stack += at.lowers
        return True

    def above(self, meta: EffectMeta, level: int) -> tuple[list[Effect], list[EffectMeta]]:
        """What is above it: that which cannot be generalised, and the unknowns in between."""
        found, between, stack = list[Effect](), list[EffectMeta](), list(meta.uppers)
        while stack:
            high = prune_effect(stack.pop())
            if type(high) is Ctl or (type(high) is EffectMeta and high.level <= level):
                if high not in found:
                    found.append(high)
            elif type(high) is EffectMeta and high is not meta and high not in between:
                between.append(high)
                stack += high.uppers
        return found, between

    def bounds(self, meta: EffectMeta, level: int, kept: Callable[[EffectMeta], bool]) -> list[Effect]:
        """Before generalising over `meta`: the most that it may be.  What is in between and is not generalised is all
        that it may be, as nobody will choose it."""
        found, between = self.above(meta, level)
        for high in between:
            if not kept(high) and (most := self.above(high, level)[0]):
                self.unify(high, most[0])
        return found

    def settle(self, meta: EffectMeta, level: int, kept: Callable[[EffectMeta], bool]) -> None:
        """Before generalising over `meta`: what is below it and lives on is equal to it, all else below is pure."""
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
