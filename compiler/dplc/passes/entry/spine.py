"""A walk over what a program runs once: its items, and the functions that these call once, which are copied for that.

Checkpoints are written there, and are gone on from (`checkpoints.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence

from dpl.core import term as c
from dpl.core import ty as t
from dpl.core.promising import reached_from
from dpl.core.walk import changed, subterms
from dpl.node import field, node, record, replace
from dpl.prims.repeatable import CHANGES, PRINTS
from dpl.source import Source

from dplc.passes.entry.sweeps import from_outside, others, same, together

DEEPEST = 6  # calls that are followed into each other
GRADIENTS = ("Prelude.grad", "Prelude.value_and_grad")
NOT_TWICE = CHANGES | PRINTS


@node
class Spot:
    """Where a checkpoint is written: the closed type of the state, and the item that it belongs to.  `beside` is the
    closed type of what a loop that is differentiated uses from outside; None if its sweep cannot be noted."""

    ty: t.Ty
    item: int
    beside: t.Ty | None = None


def changes_globals(program: c.Program) -> bool:
    """Whether a definition of the program is, or holds, a reference."""
    return any(isinstance(item, c.Def) and "ref" in names_in(item.ty) for item in program.items)


def names_in(ty: t.Ty) -> set[str]:
    """The type constructors in a type; `->` stands for functions."""
    found: set[str] = set()
    todo: list = [ty]
    while todo:
        part = todo.pop()
        if isinstance(part, t.Con):
            found.add(part.name)
        elif isinstance(part, t.Fn):
            found.add("->")
        todo += t.children(part)
    return found


def value_of(item: c.Def | c.Do | c.Expect) -> bool:
    """Whether an item is a definition that is computed once."""
    return isinstance(item, c.Def) and not item.params and not isinstance(item.ty, t.Fn)


@record
class Spine(ABC):
    """A walk over what runs at most once.  The two kinds of programs fill in the abstract methods."""

    program: c.Program
    own: set[Source]
    spots: dict[int, Spot] = field(default_factory=dict)
    made: list[c.Def] = field(default_factory=list)  # copies of functions, and what the new code needs
    of_library: dict[str, c.Def] = field(default_factory=dict)  # copies of its functions: they stay the library's
    item: int = 0
    depth: int = 0
    copies: int = 0
    closed: Mapping[str, t.Ty] = field(default_factory=dict)  # the types of the parameters of the function around
    globals: dict[str, c.Def] = field(default_factory=dict)
    assigns: bool = False  # whether a function of the program may change a reference
    inside: bool = False  # a function that is differentiated
    again: int | None = None  # the number of the next loop, when a function is copied a second time

    def rewritten(self) -> c.Program:
        self.globals = {item.name: item for item in self.program.items if isinstance(item, c.Def)}
        self.assigns = any(changes_references(item.body) for item in self.program.items)
        items: list[c.Def | c.Do | c.Expect] = []
        for number, item in enumerate(self.program.items):
            self.item, self.made = number, []
            if isinstance(item, c.Expect) or item.body.span.source not in self.own or isinstance(item.body, c.Lam):
                items.append(item)
                continue
            body = self.term(item.body)
            kept = self.whole(replace(item, body=body) if body is not item.body else item)
            items += [*self.made, *kept]
        library = ChainMap(self.of_library, self.program.library)  # pyrefly: ignore[bad-argument-type]
        return replace(self.program, items=items, library=library)

    @abstractmethod
    def whole(self, item: c.Def | c.Do) -> list[c.Def | c.Do]:
        """The items in place of one at the top level."""

    @abstractmethod
    def loop(self, old: c.For | c.While, number: int) -> c.Term:
        """What takes the place of a loop that runs once."""

    @abstractmethod
    def repeated(self, head: c.Var, args: Sequence[c.Term], found: c.Def, number: int) -> tuple[c.Var, list[c.Term]]:
        """The function and the arguments that take the place of those of a call that runs once, of a function that is a
        loop over its arguments."""

    @abstractmethod
    def gradient(self, term: c.App, first: int, alone: c.Term) -> c.Term:
        """What takes the place of the gradient of a function at a named point.  `alone` is the function's value; the
        loops in it have the numbers from `first` on."""

    def term(self, term: c.Term) -> c.Term:
        match term:
            case c.Lam() | c.Shift() | c.Reset() | c.Build() | c.LetRec() | c.Var() | c.Lit():
                return term
            case c.Let(params=params, rhs=rhs, body=body):
                rhs = rhs if params else self.term(rhs)
                body = self.term(body)
                return term if rhs is term.rhs and body is term.body else replace(term, rhs=rhs, body=body)
            case c.For() | c.While():
                return self.once(term)
            case c.App():
                return self.call(term)
            case _:
                parts = {id(part): self.term(part) for part in subterms(term)}
                if all(id(new) == old for old, new in parts.items()):
                    return term
                return changed(term, lambda part: parts[id(part)], same)

    def once(self, loop: c.For | c.While) -> c.Term:
        ty = t.substitute(loop.init.ty, self.closed)
        if names_in(ty) & {"ref", "->"} or names_from_outside(loop) & ({"ref", "->"} if self.assigns else {"ref"}):
            return loop
        return self.loop(loop, self.numbered(ty, self.beside(loop)))

    def numbered(self, ty: t.Ty, beside: t.Ty | None = None) -> int:
        """The number of a loop."""
        if self.again is not None:
            self.again += 1
            return self.again - 1
        self.spots[len(self.spots)] = Spot(ty, self.item, beside)
        return len(self.spots) - 1

    def beside(self, loop: c.For | c.While) -> t.Ty | None:
        """The closed type of what a counted loop uses from outside, if this can be carried as state."""
        if not isinstance(loop, c.For):
            return None
        ty = t.substitute(others(outside(loop)), self.closed)
        return None if names_in(ty) & {"ref", "->"} else ty

    def differentiated(self, term: c.App) -> c.Term:
        """A gradient.  Its function runs by itself, too, so the loops in it run once."""
        assert isinstance(term.fn, c.App)
        first, f = len(self.spots), term.fn.arg
        point = self.term(term.arg)
        x = c.Var(term.arg.span, term.arg.ty, f"point.{first}at")
        self.inside = True
        alone = self.term(applied(f, x))
        self.inside = False
        if len(self.spots) == first:
            return term if point is term.arg else replace(term, arg=point)
        made = self.gradient(replace(term, arg=x), first, alone)
        return c.Let(term.span, term.ty, x.name, (), point, made)

    def once_more(self, term: c.App, first: int) -> c.App:
        """The gradient of another copy of the function."""
        assert isinstance(term.fn, c.App)
        f, self.inside, self.again = term.fn.arg, True, first
        made = self.term(applied(f, term.arg))
        self.inside, self.again = False, None
        if isinstance(f, c.Lam):
            assert isinstance(made, c.Let)
            return replace(term, fn=replace(term.fn, arg=replace(f, body=made.body)))
        assert isinstance(made, c.App)
        return replace(term, fn=replace(term.fn, arg=made.fn))

    def runs_alone(self, head: c.Var, args: Sequence[c.App]) -> bool:
        """Whether a call is a gradient of a function that can run a second time, and is not inside of another one."""
        if head.name not in GRADIENTS or len(args) != 2 or self.inside:
            return False
        if any(isinstance(effect, t.Ctl) for effect in head.inst):
            return False
        terms = reached_from(args[1].arg, (self.globals, self.program.library), set())
        return not any(isinstance(x, c.Extern) or (isinstance(x, c.Prim) and x.op in NOT_TWICE) for x in terms)

    def call(self, term: c.App) -> c.Term:
        """A call, with what is in its arguments, and in the function if it is a global one that runs here only."""
        args: list[c.App] = []
        head: c.Term = term
        while isinstance(head, c.App):
            args.append(head)
            head = head.fn
        if isinstance(head, c.Var) and self.runs_alone(head, args):
            return self.differentiated(term)
        given = [self.term(app.arg) for app in reversed(args)]
        new: c.Term = head
        if isinstance(head, c.Var):
            if (found := self.repeats(head, given)) is not None:
                number = self.numbered(together([t.substitute(arg.ty, self.closed) for arg in given]))
                new, given = self.repeated(head, given, found, number)
            else:
                new = self.copied(head, len(args))
        is_new = new is not head
        for app, arg in zip(reversed(args), given, strict=True):
            is_new = is_new or arg is not app.arg
            new = replace(app, fn=new, arg=arg)
        return new if is_new else term

    def repeats(self, head: c.Var, args: Sequence[c.Term]) -> c.Def | None:
        """The function of a call, if it is a loop over its arguments, and these can be written."""
        found = self.globals.get(head.name)
        if found is None or found.group != (head.name,) or not calls_itself_last(found, len(args)):
            return None
        return None if any(names_in(t.substitute(arg.ty, self.closed)) & {"ref", "->"} for arg in args) else found

    def copied(self, head: c.Var, count: int) -> c.Var:
        """A copy of a function that has a loop with a checkpoint, for one call."""
        found = self.globals.get(head.name) or self.program.library.get(head.name)
        if found is None or found.group or self.depth >= DEEPEST:
            return head
        body, arity = found.body, 0
        while isinstance(body, c.Lam):
            body, arity = body.body, arity + 1
        if not 0 < arity <= count:
            return head
        before, self.depth = self.closed, self.depth + 1
        given = zip(found.params, head.inst, strict=True)
        self.closed = {p.name: t.substitute(a, before) for p, a in given if not isinstance(a, t.Pure | t.Ctl)}  # pyrefly: ignore[bad-assignment]
        inside = self.term(body)
        self.closed, self.depth = before, self.depth - 1
        if inside is body:
            return head
        self.copies += 1
        name = f"{head.name}#{self.copies}at"
        copy = replace(found, name=name, body=within(found.body, inside), export=False)
        if head.name in self.globals:
            self.made.append(copy)
        else:
            self.of_library[name] = copy
        return replace(head, name=name)

    def helper(self, name: str, types: Sequence[t.Ty], *args: c.Term) -> c.Term:
        """A call of a function of module Sys at these types."""
        name, rest = f"Sys.{name}", iter(types)
        found = self.program.library[name]
        inst = tuple(next(rest) if p.sort == "type" else t.PURE for p in found.params)
        ty = t.substitute(found.ty, {p.name: a for p, a in zip(found.params, inst, strict=True)})
        call: c.Term = c.Var(args[0].span, ty, name, inst)
        for arg in args:
            assert isinstance(ty, t.Fn)
            ty = ty.result
            call = c.App(arg.span, ty, call, arg)
        return call


def applied(f: c.Term, x: c.Term) -> c.Term:
    """The value of a function at a point."""
    if isinstance(f, c.Lam):
        return c.Let(f.span, f.body.ty, f.param, (), x, f.body)
    assert isinstance(f.ty, t.Fn)
    return c.App(f.span, f.ty.result, f, x)


def outside(loop: c.For | c.While) -> list[tuple[str, t.Ty]]:
    """The local names that a loop reads from outside, with their types."""
    return sorted(from_outside(loop).items(), key=lambda found: found[0])


def calls_itself_last(f: c.Def, count: int) -> bool:
    """Whether a function of so many arguments mentions itself only in calls with all of them, which are the last thing
    that it does."""
    body, arity = f.body, 0
    while isinstance(body, c.Lam):
        body, arity = body.body, arity + 1
    mentions, todo = 0, list[c.Term](subterms(f.body))
    while todo:
        term = todo.pop()
        todo += subterms(term)
        mentions += isinstance(term, c.Var) and term.name == f.name
    return arity == count > 0 and mentions == sum(is_call(last, f.name, count) for last in ends(body))


def ends(term: c.Term) -> Iterator[c.Term]:
    """The terms that may be the last to be evaluated."""
    todo = [term]
    while todo:
        match last := todo.pop():
            case c.Let(body=body) | c.LetRec(body=body) | c.Check(body=body):
                todo.append(body)
            case c.If(then=then, else_=else_):
                todo += [then, else_]
            case c.Match(arms=arms):
                todo += [arm.body for arm in arms]
            case _:
                yield last


def is_call(term: c.Term, name: str, count: int) -> bool:
    while isinstance(term, c.App):
        term, count = term.fn, count - 1
    return isinstance(term, c.Var) and term.name == name and count == 0


def within(f: c.Term, body: c.Term) -> c.Term:
    """The function `f` with another body, inside of all its parameters."""
    return replace(f, body=within(f.body, body)) if isinstance(f, c.Lam) else body


def changes_references(term: c.Term) -> bool:
    stack = [term]
    while stack:
        term = stack.pop()
        stack += subterms(term)
        if isinstance(term, c.Prim) and term.op == "assign":
            return True
    return False


def names_from_outside(loop: c.For | c.While) -> set[str]:
    """What the types of the local names mention that a loop reads from outside."""
    return set[str]().union(*(names_in(ty) for ty in from_outside(loop).values()))
