"""What a program changes and what it reads, written down, so that the debugger can go back and run again.

* Changes of references can be undone.
* What came from outside (files, the clock) is kept: a second run gets the same answers, and writes nothing twice.
* Output is printed once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, MutableSequence
from itertools import islice
from typing import Any

from dpl.eval.machine.outside import Writable
from dpl.eval.values.value import Cell, Value
from dpl.node import node

MOST_CHANGES = 4_000_000  # that can be undone; what is older is reached by running again from the start


@node
class Mark:
    """A moment in the journal."""

    changes: int
    answers: int
    printed: int


class Journal:
    def __init__(self, out: Writable) -> None:
        self.out = out
        self.changes: MutableSequence[tuple[Cell, Value]] = []  # (a reference, its content before)
        self.dropped = 0  # changes that can no longer be undone
        self.answers: list[Any] = []
        self.answered = 0
        self.printed = 0  # characters so far
        self.shown = 0  # characters that reached `out`

    def mark(self) -> Mark:
        """The present, to which `back_to` returns."""
        return Mark(self.dropped + len(self.changes), self.answered, self.printed)

    def reaches(self, mark: Mark) -> bool:
        """Whether one can still go back to this moment."""
        return mark.changes >= self.dropped

    def back_to(self, mark: Mark) -> None:
        """Takes back what was changed since a mark.  Answers are kept, and given again; output is not repeated."""
        keep = mark.changes - self.dropped
        for cell, before in islice(reversed(self.changes), len(self.changes) - keep):
            cell.content = before
        del self.changes[keep:]
        self.answered, self.printed = mark.answers, mark.printed

    def trim(self) -> None:
        """Forget the oldest changes if there are too many."""
        if len(self.changes) > MOST_CHANGES:
            self.dropped += len(self.changes) // 2
            del self.changes[: len(self.changes) // 2]

    def again(self) -> None:
        """The program starts again from nothing."""
        self.changes.clear()
        self.dropped = self.answered = self.printed = 0

    # ---- what primitives use ----------------------------------------------------------------------------------------

    def assign(self, cell: Cell, value: Value) -> tuple:
        """Notes what a reference held, and changes it."""
        self.changes.append((cell, cell.content))
        cell.content = value
        return ()

    def asked(self, ask: Callable) -> Callable:
        """A primitive that asks or changes the world outside: it is done once, and repeats its answer."""

        def answer(*args: Value) -> Value:
            if self.answered == len(self.answers):
                self.answers.append(ask(*args))
            self.answered += 1
            return self.answers[self.answered - 1]

        return answer

    def write(self, text: str) -> int:
        """Writes text that the user has not seen yet, and counts all of it."""
        start = self.printed
        self.printed += len(text)
        if self.printed > self.shown:
            self.out.write(text[max(self.shown - start, 0) :])
            self.shown = self.printed
        return len(text)

    def flush(self) -> None:
        self.out.flush()


class Unwritten(Journal):
    """The journal of a run that never goes back."""

    def __init__(self, out: Writable) -> None:
        super().__init__(out)
        self.changes = deque(maxlen=0)

    def asked(self, ask: Callable) -> Callable:
        return ask
