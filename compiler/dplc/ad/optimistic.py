"""Derivatives that call themselves: what is assumed of one while it is being written.

Code is shorter where a tangent is known to be there (`presence.py`).  That a derivative's results are, is true if it is
so whenever it is true of the derivatives it calls: of those that are still being written it is assumed.  If a guess
was wrong, the whole group of derivatives that call each other is written again, without that guess.

The groups are found as they are written, by Tarjan's algorithm: `index` is the place among those whose group is not
complete, `low` the least place of what is called, directly or not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dplc.ad.tangents.symbolic_zeros import FULL, MAYBE, Presence

PATIENCE = 3  # after so many attempts, nothing is assumed


@dataclass(slots=True, eq=False)
class Guess:
    """`presence` is what is assumed of the results, then what is known of them."""

    presence: list[Presence]
    key: tuple = ()
    called: bool = False  # while it was being written
    wrong: bool = False
    index: int = -1
    low: int = -1


@dataclass(slots=True)
class Guesses:
    """`forget` takes derivatives, by key, from those that are known."""

    forget: Callable[[tuple], object]
    better: dict[tuple, list[Presence]] = field(default_factory=dict)  # guesses, where the first was wrong
    group: list[Guess] = field(default_factory=list)  # those whose group is not complete
    path: list[Guess] = field(default_factory=list)  # those being written
    least: bool = False  # nothing is to be assumed

    def guess(self, key: tuple, count: int) -> Guess:
        return Guess(self.assumed(key, count), key)

    def assumed(self, key: tuple, count: int) -> list[Presence]:
        return [MAYBE] * count if self.least else self.better.get(key, [FULL] * count)

    def met(self, guess: Guess) -> bool:
        """What is being written calls this one; whether that one is being written."""
        if guess.index < 0:
            return False
        self.path[-1].low = min(self.path[-1].low, guess.index)
        guess.called |= guess in self.path
        return guess in self.path

    def settle(self, guess: Guess, write: Callable[[], Sequence[Presence]]) -> None:
        for _ in range(PATIENCE):
            if self.written(guess, write):
                return
            guess.presence = self.assumed(guess.key, len(guess.presence))
        self.least, before = True, self.least
        guess.presence = [MAYBE] * len(guess.presence)
        self.written(guess, write)
        self.least = before

    def written(self, guess: Guess, write: Callable[[], Sequence[Presence]]) -> bool:
        """Writes a derivative; whether all is well, as far as is known."""
        guess.index = guess.low = len(self.group)
        self.group.append(guess)
        self.path.append(guess)
        found = list(write())
        self.path.pop()
        least = [max(pair) for pair in zip(found, guess.presence, strict=True)]
        guess.wrong = guess.called and least != guess.presence
        if guess.wrong:
            self.better[guess.key] = least
        guess.presence = found
        if guess.low < guess.index:
            self.path[-1].low = min(self.path[-1].low, guess.low)
            return True
        group = self.group[guess.index :]
        del self.group[guess.index :]
        for member in group:
            member.index = -1
        if not any(member.wrong for member in group):
            return True
        for member in group[1:]:
            self.forget(member.key)
        return False
