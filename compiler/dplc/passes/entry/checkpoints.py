"""core -> core for  dpl debug --at : a program that writes checkpoints while it runs natively, and one that goes on
from them in the interpreter.

    loop p = start for i < n do step p                     runs once, not in a derivative

    loop p = start for i < n do (checkpoint i p; step p)   Writer: the state is written to a file now and then
    loop p = GIVEN for i < n - 900 do step p               Resumer: the state after 900 steps is given

A function that calls itself only at its end is a loop over its arguments:

    f a b                                  let rec f i x = ... f (i + 1) (step x)
    f (fst GIVEN) (snd GIVEN)              the arguments of a later call are given

The loops are those on the spine of the program: in its items, and in functions that these call once, which are copied
for that.  Values of definitions that took long to compute are written, and given, too.  What runs more than once is
left alone.  So are programs whose items change references: leaving steps out would lose the changes.

A gradient whose function has such loops is computed in parts, as a sweep comes to the last steps first:

    grad f x                               runs once

    f x; grad g x                Writer: f writes checkpoints, and so do the sweeps of loops of g
    h x; grad f x                Resumer: h has the last steps of f; so if f x is not finite itself, else
    grad h x; grad f x           if the incident is behind all loops, or
    p x; grad f x                where p has the part of a sweep with the incident
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from dpl.core import term as c
from dpl.core import ty as t
from dpl.node import field, record, replace
from dpl.source import Span

from dplc.passes.entry.spine import Spine, names_in, outside, value_of, within
from dplc.passes.entry.sweeps import joined, marked, part, renamed, taken

LAST = 2**62  # a sweep comes to the last step first
WORTH = 100_000  # steps: the interpreter does fewer in about a second, so a gradient of fewer is computed as a whole
PLAN = t.Tup((t.F64, t.F64, t.I64, t.I64, t.I64))


# ---- the program that writes ----------------------------------------------------------------------------------------


@record
class Writer(Spine):
    """`finite`: only states with finite numbers are written, also in reverse sweeps."""

    folder: Path = Path()
    finite: bool = False
    first: int = 0  # the number of the first loop in the gradient

    def whole(self, item: c.Def | c.Do) -> list[c.Def | c.Do]:
        if not isinstance(item, c.Def):
            return [item, self.computed(item, c.Tuple(item.body.span, t.UNIT, ()))]
        if not value_of(item) or names_in(item.ty) & {"ref", "->"}:
            return [item]
        return [item, self.computed(item, c.Var(item.body.span, item.ty, item.name))]

    def computed(self, item: c.Def | c.Do, value: c.Term) -> c.Do:
        span = item.body.span
        begun = self.reference("main.at.begun", t.F64, c.Lit(span, t.F64, 0.0))
        path = c.Lit(span, t.STRING, str(self.folder / f"item{self.item}"))
        return c.Do(self.helper("_computed", [value.ty], begun, path, value))

    def reference(self, name: str, content: t.Ty, value: c.Term) -> c.Var:
        ty = t.Con("ref", (content,))
        if name not in self.globals:
            self.globals[name] = c.Def(name, (), ty, c.Prim(value.span, ty, "ref", (value,)))
            self.made.append(self.globals[name])
        return c.Var(value.span, ty, name)

    def plan(self, name: str, next_step: int, span: Span) -> c.Var:
        """The reference that says when the next checkpoint is due."""
        steps = next_step, 1, int(self.finite)
        numbers = (*(c.Lit(span, t.F64, x) for x in (0.0, 1e9)), *(c.Lit(span, t.I64, n) for n in steps))
        return self.reference(name, PLAN, c.Tuple(span, PLAN, numbers))

    def loop(self, old: c.For | c.While, number: int) -> c.Term:
        if self.again is not None:
            return self.swept(old, number)
        state = c.Var(old.span, old.init.ty, old.state)
        step = c.Var(old.span, t.I64, old.index) if isinstance(old, c.For) else None
        return replace(old, init=self.term(old.init), body=self.noting(old.body, state, step, number))

    def swept(self, old: c.For | c.While, number: int) -> c.Term:
        """A loop whose reverse sweep writes checkpoints."""
        span, init = old.span, self.term(old.init)
        if not isinstance(old, c.For) or self.spots[number].beside is None:
            return old if init is old.init else replace(old, init=init)

        def mark(state: c.Term, beside: c.Term) -> c.Term:
            plan = self.plan(f"main.at.sweep{number}", LAST, span)
            swept = self.reference(f"main.at.swept{self.first}", t.BOOL, c.Lit(span, t.BOOL, False))
            kept = self.reference(f"main.at.kept{number}", t.STRING, c.Lit(span, t.STRING, ""))
            path = c.Lit(span, t.STRING, str(self.folder / f"sweep{number}"))
            step = c.Var(span, t.I64, old.index)
            return self.helper("_marked", [state.ty, beside.ty], plan, swept, kept, path, step, state, beside)

        return marked(old, outside(old), init, mark)

    def gradient(self, term: c.App, first: int, alone: c.Term) -> c.Term:
        self.first = first
        rest = self.once_more(term, first) if self.finite else term
        return c.Let(term.span, term.ty, "_", (), alone, rest)

    def noting(self, body: c.Term, state: c.Term, step: c.Term | None, number: int) -> c.Term:
        """The body of a loop that writes its state first; if the steps have no numbers, they are counted."""
        span = body.span
        plan = self.plan(f"main.at.plan{number}", 0, span)
        path = c.Lit(span, t.STRING, str(self.folder / f"loop{number}"))
        if step is None:
            count = self.reference(f"main.at.count{number}", t.I64, c.Lit(span, t.I64, -1))
            step = self.helper("_counted", [], count)
        note = self.helper("_checkpoint", [state.ty], plan, path, step, state)
        return c.Let(span, body.ty, "_", (), note, body)

    def repeated(self, head: c.Var, args: Sequence[c.Term], found: c.Def, number: int) -> tuple[c.Var, list[c.Term]]:
        if self.again is not None:
            return head, list(args)
        name = f"{head.name}#{number}at"
        body, params = renamed(found.body, found.name, name), list[c.Term]()
        inside = body
        while isinstance(inside, c.Lam):
            assert isinstance(inside.ty, t.Fn)
            params.append(c.Var(inside.span, inside.ty.arg, inside.param))
            inside = inside.body
        noting = self.noting(inside, joined(params), None, number)
        self.made.append(replace(found, name=name, body=within(body, noting), group=(name,), export=False))
        return replace(head, name=name), list(args)


# ---- the program that goes on ---------------------------------------------------------------------------------------


@record
class Resumer(Spine):
    """Writes the program that goes on from checkpoints.  Loops have numbers, and so have items."""

    steps: Mapping[int, int] = field(default_factory=dict)  # those that a loop has done before its checkpoint
    ends: Mapping[int, int] = field(default_factory=dict)  # the step at which a loop may end: its state is not finite
    # Between which steps a sweep has made a number that is not finite; None if the sweep was given it.
    swept: Mapping[int, tuple[int, int] | None] = field(default_factory=dict)
    done: frozenset[int] = frozenset()  # items that need not be done again

    def whole(self, item: c.Def | c.Do) -> list[c.Def | c.Do]:
        return [] if self.item in self.done and isinstance(item, c.Do) else [item]

    def loop(self, old: c.For | c.While, number: int) -> c.Term:
        init = self.term(old.init)
        if number not in self.steps:
            return old if init is old.init else replace(old, init=init)
        span, state = old.span, self.given(old.init, number)
        if isinstance(old, c.While):
            return replace(old, init=state)
        index, count = f"{old.index}.rest", c.Lit(span, t.I64, self.steps[number])
        whole = c.Prim(span, t.I64, "add", (c.Var(span, t.I64, index), count))
        end = c.Lit(span, t.I64, self.ends[number]) if number in self.ends else old.count
        left = c.Prim(span, t.I64, "sub", (end, count))
        body = c.Let(span, old.body.ty, old.index, (), whole, old.body)
        made = replace(old, init=state, index=index, count=left, body=body)
        if (steps := self.swept.get(number)) is None or self.again is not None:
            return made
        spot = self.spots[number]
        assert spot.beside is not None
        flow = c.Var(span, t.Tup((spot.ty, spot.beside)), cotangent_name(number))
        before = c.Var(span, old.init.ty, before_name(number))
        return c.Let(span, made.ty, "_", (), part(old, outside(old), steps, before, flow), made)

    def given(self, init: c.Term, number: int) -> c.Term:
        """The state of a checkpoint.  In a derivative it takes the place of a state that may have one."""
        state = c.Var(init.span, init.ty, given_name(number))
        return state if self.again is None else self.helper("_resumed", [init.ty], self.term(init), state)

    def gradient(self, term: c.App, first: int, alone: c.Term) -> c.Term:
        numbers = range(first, len(self.spots))
        if max(self.steps.get(number, 0) for number in numbers) < WORTH:
            return term
        swept = [self.swept[number] for number in numbers if number in self.swept]
        if None in swept and all(self.spots[number].beside for number in numbers if number in self.steps):
            alone = self.once_more(term, first)
        return c.Let(term.span, term.ty, "_", (), alone, term)

    def repeated(self, head: c.Var, args: Sequence[c.Term], found: c.Def, number: int) -> tuple[c.Var, list[c.Term]]:
        if number not in self.steps:
            return head, list(args)
        whole = self.given(joined(args), number)
        if len(args) == 1:
            return head, [whole]
        return head, [component(whole, [arg.ty for arg in args], i) for i in range(len(args))]


def component(whole: c.Term, types: Sequence[t.Ty], i: int) -> c.Term:
    names = [(f"main.at.part{j}", ty) for j, ty in enumerate(types)]
    return taken(whole, names, c.Var(whole.span, types[i], names[i][0]))


def given_name(number: int) -> str:
    """What a checkpoint has given for a loop's state, by the loop's number."""
    return f"main.at.given{number}"


def before_name(number: int) -> str:
    """The state before a loop."""
    return f"main.at.before{number}"


def cotangent_name(number: int) -> str:
    """The cotangent of a loop's state."""
    return f"main.at.cotangent{number}"
