"""Effects: pure, capturing the caller's context (`ctl`), or unknown.  They are ordered; pure is the least.

The effect of a call must be at most that of its surroundings.  An unknown effect below another stays unknown.  Only
when it turns out to be ctl does the other become ctl too, so calls of pure functions leave their surroundings pure.
"""

from __future__ import annotations

from collections.abc import Callable

from dpl.core.ty import PURE, Ctl, Pure, Var
from dpl.types.solve.meta import Effect, EffectMeta, prune_effect


class Effects:
    def __init__(self, same_answer: Callable) -> None:
        self.same_answer = same_answer  # unifies two answer types

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
        """Before generalisation: `meta` becomes pure if callers cannot choose it and nothing below it captures.

        Otherwise a ctl effect above it would decide it.  So a function that captures only once it has all its arguments
        may call itself with all of them."""
        if self._still(meta, chosen):
            highs = map(prune_effect, meta.uppers)
            if any(type(high) is Ctl or (type(high) is EffectMeta and not self._still(high, chosen)) for high in highs):
                self.unify(meta, PURE)

    def _still(self, meta: EffectMeta, chosen: Callable[[EffectMeta], bool]) -> bool:
        """True if every effect below this one is pure and callers do not choose any of them."""
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
        """The effects above `meta` that cannot be generalised, and the unknown effects in between."""
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
        """The upper bounds of `meta`, before generalisation over it.

        No caller can choose an effect in between that is not generalised, so it equals its own upper bound."""
        found, between = self.above(meta, level)
        for high in between:
            if not kept(high) and (most := self.above(high, level)[0]):
                self.unify(high, most[0])
        return found

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
