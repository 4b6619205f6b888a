"""The tail calls that led to a stopped program.

A tail call leaves no frame, so a function was tail-called if it was entered with the continuation with which its caller
was.  To find out, the last steps of the run are done again, and the entries of functions are looked at.
"""

from __future__ import annotations

from collections import deque

from dpl.debug.inspect import Frame, activation
from dpl.debug.points import Place
from dpl.debug.run import Run
from dpl.eval.machine.machine import passed
from dpl.eval.values.active import HERE
from dpl.node import entity

SPAN, LEAST = 20_000, 500  # steps that are looked at: this many, if they take little time
MOST = 20  # calls that are kept, of each function that waits


@entity
class Entries:
    """Where functions with one continuation were called from, oldest first.  The continuation is kept, so that no other
    takes its identity."""

    chain: tuple
    places: deque[Place | None]


class TailCalls:
    def __init__(self, run: Run) -> None:
        """Do the last steps of a run again.  The objects of its state are then others, with the same contents."""
        self.run = run
        self.found: dict[tuple[int, int, int], Entries] = {}
        now, failed, here = run.time, run.ended is not None, HERE.place
        recent = run.history.moments[-3:][0].time
        run.go_to(max(now - SPAN, min(recent, now - LEAST), run.begins))
        on = run._watching(False)
        while run.time < now and run.ended is None:
            if run.forward(run.stops, lambda: True, now):
                self.look()
        if failed:
            run.forward()
        run._watching(on)
        HERE.place = here  # perhaps in the middle of a step

    def look(self) -> None:
        """Note a function that is about to be entered."""
        step, env, k = self.run.state
        found = self.run.instruments.points.get(step)
        if found is None or not found[0].point.is_entry:
            return
        k = self.caller(Frame(found[0], env, found[1]), k)
        entries = self.found.setdefault(self.key(k), Entries(k, deque(maxlen=MOST + 1)))
        entries.places.append(HERE.place)

    def caller(self, frame: Frame, k: tuple) -> tuple:
        """The chain with which the first of the functions was called that led to a frame by tail calls."""
        k = activation(self.run, frame, k)
        while k[0] is passed:
            k = k[2]
        return k

    def key(self, k: tuple) -> tuple[int, int, int]:
        return id(k), id(self.run.machine.meta), self.run.item

    def before(self, frame: Frame) -> list[Place]:
        """The places of the tail calls by which a frame came to be, newest first."""
        if frame.k is None or frame.sweep:
            return []
        entries = self.found.get(self.key(self.caller(frame, frame.k)))
        return [place for place in [*entries.places][:0:-1] if place] if entries else []
