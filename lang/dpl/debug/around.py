"""Where moves forward end that step over calls: in the call itself, or in those that wait for it."""

from __future__ import annotations

from dpl.debug.inspect import Frame, activation, environment, is_own
from dpl.debug.run import Run


class Around:
    """A call with those that wait for it: where a move forward ends that steps over calls.

    A chain of frames is one object from its call to its end, also in a continuation.  The empty chain is the same for
    all: there a call is known by its function and its arguments.  So a call that asks for itself, with the same
    arguments, in a `reset` is taken for itself.  The body of a `shift` belongs to the call that is at `shift`."""

    def __init__(self, run: Run, top: Frame, k: tuple) -> None:
        """`k` is the chain with which the function of `top` was called."""
        self.end, self.starts, self.own = run.machine.end, starts(run, top, k), call_of(top)
        self.machine = run.machine
        self.kept = k, run.machine.meta  # so that no other frame takes an identity
        self.known: set[int] = set()
        self.outer: set[tuple[int, ...]] = set()  # the calls that wait at the ends of chains
        meta = run.machine.meta
        while True:
            while k is not self.end:
                self.known.add(id(k))
                if k[2] is self.end and (waits := run.instruments.waits.get(k[0])):
                    self.outer.add(call_of(Frame(waits[0], environment(k[1]), waits[1])))
                k = k[2]
            if meta is None:
                break
            k, meta = meta

    def is_own(self, top: Frame, k: tuple) -> bool:
        """Whether the call of `top`, with the chain `k`, is that call itself."""
        return any(k is start for start in self.starts) and (k is not self.end or call_of(top) == self.own)

    def waits(self, top: Frame, k: tuple) -> bool:
        """Whether it is one of those that wait for it.  At the top level there is nothing else."""
        if self.is_own(top, k):
            return False
        return id(k) in self.known if k is not self.end else self.machine.meta is None or call_of(top) in self.outer


def starts(run: Run, top: Frame, k: tuple) -> list[tuple]:
    """The chains with which a call was called, and with which its bodies of `reset` that are being evaluated were."""
    found, meta = [k], run.machine.meta
    while k is run.machine.end and meta is not None:
        k, meta = meta
        if not (waits := run.instruments.waits.get(k[0])):
            break
        outer = Frame(waits[0], environment(k[1]), waits[1])
        if not is_own(top, outer):
            break
        k = activation(run, outer, k)
        found.append(k)
    return found


def call_of(frame: Frame) -> tuple[int, ...]:
    """What tells a call from others: the identities of its function, of what that has captured, and of arguments."""
    return id(frame.function), *map(id, frame.env[: frame.scope.held + len(frame.function.params)])
