"""The optimistic fixpoint of derivatives that call themselves: assumptions about derivatives being written.

Code is shorter where a tangent is known not to be a symbolic zero (`tangents/symbolic_zeros.py`).  The known zeros of a
derivative's results depend on the derivatives that it calls.  For those that are still being written, the best case is
assumed.  If an assumption was wrong, the whole group of derivatives that call each other (an SCC of the call graph) is
written again, with the zeros found.

The groups are found during writing, by Tarjan's algorithm: `index` is the position among the derivatives whose group is
not complete, `low` the least position of a derivative that is called, directly or not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpl.node import entity, field, record

from dplc.ad.tangents.symbolic_zeros import MAYBE_ZERO, NO_ZEROS, Zeros

ATTEMPTS = 3  # after that, nothing is assumed


@entity
class Assumption:
    """`zeros` are the assumed zeros of the results, later the zeros found."""

    zeros: list[Zeros]
    key: tuple = ()
    called: bool = False  # true if it was called while it was being written
    wrong: bool = False
    index: int = -1
    low: int = -1


@record
class Fixpoint:
    """The state of the fixpoint.  `forget` removes a derivative from the table, by key."""

    forget: Callable[[tuple], object]
    better: dict[tuple, list[Zeros]] = field(default_factory=dict)  # new assumptions, where the first was wrong
    group: list[Assumption] = field(default_factory=list)  # derivatives whose group is not complete
    path: list[Assumption] = field(default_factory=list)  # derivatives being written
    pessimistic: bool = False  # true: assume nothing

    def assume(self, key: tuple, count: int) -> Assumption:
        """An assumption about the zeros of a derivative that is being written."""
        return Assumption(self.assumed(key, count), key)

    def assumed(self, key: tuple, count: int) -> list[Zeros]:
        """What is assumed now: the best that is not refuted, or nothing."""
        return [MAYBE_ZERO] * count if self.pessimistic else self.better.get(key, [NO_ZEROS] * count)

    def call(self, callee: Assumption) -> bool:
        """Records a call of another derivative.  Returns True if that one is being written, too."""
        if callee.index < 0:
            return False
        self.path[-1].low = min(self.path[-1].low, callee.index)
        callee.called |= callee in self.path
        return callee in self.path

    def solve(self, made: Assumption, write: Callable[[], Sequence[Zeros]]) -> None:
        """Writes a derivative until its assumptions hold."""
        for _ in range(ATTEMPTS):
            if self.holds(made, write):
                return
            made.zeros = self.assumed(made.key, len(made.zeros))
        self.pessimistic, before = True, self.pessimistic
        made.zeros = [MAYBE_ZERO] * len(made.zeros)
        self.holds(made, write)
        self.pessimistic = before

    def holds(self, made: Assumption, write: Callable[[], Sequence[Zeros]]) -> bool:
        """Writes a derivative.  Returns True if all assumptions hold, as far as is known."""
        made.index = made.low = len(self.group)
        self.group.append(made)
        self.path.append(made)
        found = list(write())
        self.path.pop()
        least = [max(pair) for pair in zip(found, made.zeros, strict=True)]
        made.wrong = made.called and least != made.zeros
        if made.wrong:
            self.better[made.key] = least
        made.zeros = found
        if made.low < made.index:
            self.path[-1].low = min(self.path[-1].low, made.low)
            return True
        group = self.group[made.index :]
        del self.group[made.index :]
        for member in group:
            member.index = -1
        if not any(member.wrong for member in group):
            return True
        for member in group[1:]:
            self.forget(member.key)
        return False
