"""Outlining: the loops of functions that run rarely become functions of their own, *kernels*.

    fn main()                                     fn loop.3f2a9c01b7(s: f64, n: i64, k: f64) -> (f64)
      ...                                           r = for i < n state (t = s)
      r = for i < n state (t = x)           =>        ...
        ...                                         return r
                                                  fn main()
                                                    ...
                                                    r = loop.3f2a9c01b7 x n k

The loops in the loops of large functions become functions, too.  LLVM then optimises the kernels, and not the code
around them (`frequency.py` tells which is which).  A kernel's name has the hash of its text, and equal loops share a
kernel.

An operation of an inlined function knows the call that it was inlined at.  If all operations of a kernel come through
one call, the kernel is a part of the called function: the spans in it begin there, and the call of the kernel has the
rest of the path.  So a loop of a library function is one kernel, wherever it was inlined, and messages stay the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpl.digest import sha256
from dpl.node import replace
from dpl.source import NOWHERE, Span

from dplc.flat import places
from dplc.flat import term as f
from dplc.flat.copy import Copier
from dplc.flat.show import show_fn
from dplc.flat.walk import SPANNED, atoms, blocks, bound_inside, every, spans, with_binds, with_body, with_inner
from dplc.passes.kernels.frequency import Frequency, repays

DIGITS = 10  # of the hash in a name
LARGE = 200  # bindings of a function that is split


def outline(program: f.Program) -> f.Program:
    outliner = _Outliner()
    fns: dict[str, f.Fn] = {}
    frequency = Frequency(program)
    for name, fn in program.fns.items():
        if name in frequency.cold:
            fns[name] = fn
        elif name in frequency.rare:
            fns[name] = with_body(fn, outliner.block(fn.body))
        else:
            fns[name] = split(fn, outliner)
    for name, fn in outliner.found():
        fns[name] = split(fn, outliner)
    return replace(program, fns=fns)


def split(fn: f.Fn, outliner: _Outliner) -> f.Fn:
    """A function.  If it is large, the loops in its loops, or its loops if it has several, become functions, too:
    LLVM's time grows faster than a function."""
    if sum(1 for _ in every(fn.body)) <= LARGE:
        return fn
    binds = [
        f.Bind(bind.vars, replace(bind.rhs, body=outliner.block(bind.rhs.body)))
        if isinstance(bind.rhs, f.For | f.While)
        else bind if len(fn.body.binds) == 1 else outliner.bind(bind)
        for bind in fn.body.binds
    ]  # fmt: skip
    return replace(fn, body=f.Block(tuple(binds), fn.body.results))


class _Outliner:
    """Replaces loops by calls of kernels, and collects these."""

    def __init__(self) -> None:
        self.kernels: dict[str, f.Fn] = {}

    def found(self) -> Iterator[tuple[str, f.Fn]]:
        """The kernels, also those that are found meanwhile."""
        done = 0
        while done < len(self.kernels):
            new = list(self.kernels.items())[done:]
            done += len(new)
            yield from new

    def block(self, block: f.Block) -> f.Block:
        return with_binds(block, [self.bind(bind) for bind in block.binds])

    def bind(self, bind: f.Bind) -> f.Bind:
        if isinstance(bind.rhs, f.If | f.Switch):
            return with_inner(bind, self.block)
        return f.Bind(bind.vars, self.call(bind)) if repays(bind) else bind

    def call(self, bind: f.Bind) -> f.Call:
        """The call of a kernel that binds the same variables."""
        inside = list(spans(bind))
        label, place, cut = common_call(inside)
        kernel = _Kernel(bind, cut)
        fn = f.Fn("", kernel.params, tuple([var.ty for var in bind.vars]), kernel.body, label)
        name = f"{kind(bind.rhs)}.{digest(fn)}"
        while (known := self.kernels.setdefault(name, replace(fn, name=name))) != replace(fn, name=name):
            name += "'"  # the same text at other places of the program
        return f.Call(known.name, kernel.args, place)


class _Kernel(Copier):
    """A binding as a function: its parameters, the arguments of the call, and the body.  The initial state of a loop
    has parameters of its own.  Every span loses its `cut` outermost calls."""

    def __init__(self, bind: f.Bind, cut: int) -> None:
        super().__init__(f.Supply(), {})
        self.places = places.Cutting(cut)
        rhs = bind.rhs
        loop = rhs if isinstance(rhs, f.For | f.While) else None
        own = {var.name for var in bound_inside(rhs)}
        atoms = used(replace(loop, inits=()) if loop else rhs)
        free = tuple({a.name: a for a in atoms if isinstance(a, f.Var) and a.name not in own}.values())
        state = [f.Var(self.supply.fresh(var.name), var.ty) for var in loop.state] if loop else []
        self.args = (*(loop.inits if loop else ()), *free)
        self.params = (*state, *map(self.var, free))
        (made,) = self.binds((bind,))
        if isinstance(made.rhs, f.For | f.While):
            made = f.Bind(made.vars, replace(made.rhs, inits=tuple(state)))
        self.body = f.Block((made,), made.vars)

    def binds(self, binds: tuple[f.Bind, ...]) -> tuple[f.Bind, ...]:
        return tuple([
            f.Bind(bind.vars, replace(bind.rhs, span=self.places.span(bind.rhs.span)))
            if self.places.outer and isinstance(bind.rhs, SPANNED) else bind
            for bind in super().binds(binds)
        ])  # fmt: skip


def used(rhs: f.Rhs) -> list[f.Atom]:
    """The operands of a right-hand side and of its inner blocks, in order."""
    found: list[f.Atom] = []
    _gather(rhs, found)
    return found


def _gather(rhs: f.Rhs, found: list[f.Atom]) -> None:
    found += atoms(rhs)
    for block in blocks(rhs):
        for bind in block.binds:
            _gather(bind.rhs, found)
        found += block.results


def digest(fn: f.Fn) -> str:
    text = show_fn(replace(fn, label=""))
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]


def kind(rhs: f.Rhs) -> str:
    match rhs:
        case f.Op(op):
            return op
        case f.For() | f.While():
            return "loop"
        case _:
            return type(rhs).__name__.lower()


# ---- places


def common_call(spans: Sequence[Span]) -> tuple[str, Span, int]:
    """The innermost inlined call through which all spans come: its function, its span, and the number of calls up to
    it; "" and 0 if there is none."""
    first: list[places.Inlined] = []  # the calls of the first span, outermost first
    depths: dict[int, int] = {}  # of what was seen, by identity: spans share their outer calls
    common = None
    for span in spans:
        new: list[places.Inlined] = []
        while isinstance(span, places.Inlined) and id(span) not in depths:
            new.append(span)
            span = span.caller
        seen = depths.get(id(span), 0)
        new.reverse()
        depths |= {id(call): seen + i for i, call in enumerate(new, 1)}
        if common is None:
            first, common = new, len(new)
        common = min(common, seen + len(new))
        while common > seen and not same_call(new[common - seen - 1], first[common - 1]):
            common -= 1
    return (first[common - 1].label, first[common - 1].caller, common) if common else ("", NOWHERE, 0)


def same_call(one: places.Inlined, other: places.Inlined) -> bool:
    return one.label == other.label and one.caller == other.caller
