"""The abstract machine: state -> state, until the last frame has its value.

A state is `(step, x, k)`, and `step(x, k)` returns the next one: either code applied to an environment (evaluate), or
the resumption of a frame applied to a value (return).  The continuation `k` is a chain of immutable frames
`(resume, data, next)` that ends in END.  So calls of the program do not use Python's stack, tail calls need no space,
and a captured continuation may be resumed many times.

`reset` pushes the current chain on the meta-continuation `meta` and starts a new chain; END pops it again.  So `shift`
captures the whole current chain, and resuming is as cheap as a call.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Any
from weakref import WeakKeyDictionary

from dpl import host
from dpl.diagnostics import Bug, DplError
from dpl.eval.derivatives.derive import Levels, Pullback
from dpl.eval.machine.failure import Site, in_path, shown_name
from dpl.eval.values.memory import is_full, out_of_memory
from dpl.eval.values.value import Builtin, Closure, Cont, Partial, Value
from dpl.source import Span

Frame = tuple  # (resume, data, next)
State = tuple[Callable, Any, Frame]

SLICE = 250_000  # steps between checks of memory, at most
STACK = 2048  # MiB; DPL_STACK chooses another size, as for native code
FRAMES = 500  # per MiB: a recursion that does not end is told in seconds, in derivatives too


def most_frames() -> int:
    chosen = host.current.environment("DPL_STACK") or ""
    return FRAMES * (int(chosen) if chosen.isdigit() and int(chosen) > 0 else STACK)


class Finished(Exception):
    """Raised when the last frame of a run has its value."""

    def __init__(self, value: Value) -> None:
        self.value = value


class FunctionCode:
    """The code of a function, compiled on first use.

    `run(env, k)` evaluates the body; `direct(env)` returns its value at once, and exists if the body calls no unknown
    functions and does not capture its continuation.  `env` is the closure's environment followed by the arguments."""

    __slots__ = ("_compile", "arity", "direct", "name", "run")

    def __init__(self, arity: int, name: str, compile_: Callable[[], tuple[Callable, Callable | None]]) -> None:
        self.arity = arity
        self.name = name
        self.direct: Callable | None = None
        self._compile: Callable | None = compile_
        self.run: Callable = self._first

    def ready(self) -> FunctionCode:
        """This code, compiled first unless that is done or in progress."""
        if self._compile:
            compile_, self._compile = self._compile, None
            self.run, self.direct = compile_()
        return self

    def _first(self, env: tuple, k: Frame) -> State:
        return self.ready().run(env, k)


Called = tuple[Site, FunctionCode | None]  # a call, and the function of the program that it calls


def passed(value: Value, frame: Frame) -> State:
    """The frame that does nothing but tell calls, each in tail position of what the one before it called: outermost
    first, a tuple of `Called`."""
    k = frame[2]
    return k[0], value, k


def entered(k: Frame, called: Site, code: FunctionCode | None) -> Frame:
    """The frames at a call that leaves a frame even in tail position.  Such calls in a row share one.  What calls a
    function again is a loop, of which the call that began it is told, so the frame does not grow for ever."""
    if k[0] is not passed:
        return passed, ((called, code),), k
    calls = k[1]
    for i, (site, before) in enumerate(calls):
        if before is code and (code or site == called):
            return k if i + 1 == len(calls) else (passed, calls[: i + 1], k[2])
    return passed, (*calls, (called, code)), k[2]


def told(calls: tuple[Called, ...]) -> list[Site]:
    """Calls as paths have them.  One without a name has that of the code; if that has none, it is left out."""
    names = [site.name or (code.name if code else "") for site, code in calls]
    return [Site(shown_name(name), site.span) for name, (site, _) in zip(names, calls) if name]


class Machine:
    """The state of one run: the meta-continuation, the levels of derivatives, and the call each kind of frame waits
    for."""

    def __init__(self) -> None:
        self.meta: tuple | None = None  # (chain, rest)
        self.levels = Levels()
        self.sites: WeakKeyDictionary[Callable, Site] = WeakKeyDictionary()  # resume -> the call that it waits for
        self.gathered: WeakKeyDictionary[Callable, Site] = WeakKeyDictionary()  # -> the call whose operand it waits for
        self.end: Frame = (self._end, None, None)
        self.most_frames = most_frames()
        self.slice = min(SLICE, self.most_frames)

    # ---- running --------------------------------------------------------------------------------------------------

    def call(self, f: Value, *args: Value) -> Value:
        """Apply a function of the program and return its value, in a nested run of the machine."""
        return self.finish(*self.apply(f, args, self.end))

    def finish(self, step: Callable, x: Any, k: Frame) -> Value:
        """Run from a state with an empty meta-continuation.  Returns the value of the last frame; raises DplError with
        the path of calls."""
        meta, self.meta = self.meta, None
        until_count = self.most_frames
        try:
            while True:
                for _ in repeat(None, self.slice):
                    step, x, k = step(x, k)
                until_count -= self.slice
                self._check_memory()
                if until_count <= 0:
                    until_count = self._check_depth(k)
        except Finished as finished:
            return finished.value
        except (DplError, MemoryError) as failure:
            error = failure if isinstance(failure, DplError) else out_of_memory()
            raise in_path(error, self._sites(step, k)) from None
        finally:
            self.meta = meta

    def _end(self, value: Value, k: Frame) -> State:
        if self.meta is None:
            raise Finished(value)
        chain, self.meta = self.meta
        return chain[0], value, chain

    # ---- calls ----------------------------------------------------------------------------------------------------

    def apply(self, f: Value, args: tuple, k: Frame) -> State:
        """Apply any function to one or more arguments."""
        match f:
            case Closure(code=code, env=env):
                if code.arity == len(args):
                    return code.run, env + args, k
                if code.arity > len(args):
                    return k[0], Partial(f, args), k
                return code.run, env + args[: code.arity], (self._rest, args[code.arity :], k)
            case Partial(closure=closure, args=first):
                return self.apply(closure, first + args, k)
            case Builtin(run=run):
                k = self._more(args, k)
                return k[0], run(args[0]), k
            case Cont(frames=frames):
                k = self._more(args, k)
                if k[0] is passed:  # so that continuations that call each other do not grow
                    k = k[2]
                if k is not self.end:
                    self.meta = (k, self.meta)
                return frames[0], args[0], frames
            case _:
                raise Bug(f"called as a function: {f!r}")

    def recorded(self, pullback: Pullback) -> Value:
        """A sweep as data.  The debugger's machine knows where each number was made."""
        raise Bug("this machine does not record sweeps")

    def _more(self, args: tuple, k: Frame) -> Frame:
        """The frame that takes the result for the first argument: `k`, or one that applies it to the other
        arguments."""
        return k if len(args) == 1 else (self._rest, args[1:], k)

    def _rest(self, f: Value, frame: Frame) -> State:
        return self.apply(f, frame[1], frame[2])

    def apply_late(self, f: Value, args: tuple[Callable, ...], env: tuple, k: Frame) -> State:
        """Apply a function to arguments one at a time; each argument is evaluated after the previous call returns."""
        if len(args) == 1:
            return self.apply(f, (args[0](env),), k)
        return self.apply(f, (args[0](env),), (self._late, (args[1:], env), k))

    def _late(self, f: Value, frame: Frame) -> State:
        args, env = frame[1]
        return self.apply_late(f, args, env, frame[2])

    # ---- limits ---------------------------------------------------------------------------------------------------

    def _check_memory(self) -> None:
        if is_full():
            raise _too_deep("out of memory")

    def _check_depth(self, k: Frame) -> int:
        """The number of steps before the next check.  Raises R0801 if there are too many frames."""
        depth = sum(frame[0] is not passed for frame in self._frames(k))
        if depth >= self.most_frames:
            raise _too_deep("recursion is too deep")
        return max(self.slice, self.most_frames - depth)

    def _frames(self, k: Frame):
        """The waiting frames, innermost first, across prompts."""
        meta = self.meta
        while True:
            while k is not self.end:
                yield k
                k = k[2]
            if meta is None:
                return
            k, meta = meta

    def _sites(self, step: Callable, k: Frame) -> list[Site]:
        """The calls for which the frames wait when a step fails, outermost first.  A call whose operands are still
        evaluated has not begun: the frame outside that waits for it is not told."""
        found: list[Site] = []
        outer: Span | None = None  # of a call that is told, for which the frame outside of that may wait, too
        gathered: Site | None = None  # a call that has not begun
        sites, operands = dict(self.sites), dict(self.gathered)  # millions of frames wait for few calls
        if step is k[0]:  # the frame does not wait: it has its value, and goes on to the next operand
            gathered, k = operands.get(step), k[2]
        for frame in self._frames(k):
            if frame[0] is passed:
                found += reversed(told(frame[1]))
                outer, gathered = frame[1][0][0].span, None
                continue
            if site := sites.get(frame[0]):
                if site != gathered and site.span != outer:
                    found.append(site)
                gathered = None
            gathered, outer = operands.get(frame[0], gathered), None
        found.reverse()
        return found


def _too_deep(title: str) -> DplError:
    return DplError.at("R0801", title, helps=("is there a recursion that does not end?",))
