"""core -> core for  dpl debug --at : a program that writes checkpoints while it runs natively, and one that goes on
from them in the interpreter.

    loop p = start for i < n do step p                     runs once, not in a derivative

    loop p = start for i < n do (checkpoint i p; step p)   Writer: the state is written to a file now and then
    loop p = GIVEN for i < n - 900 do step p               Resumer: the state after 900 steps is given

The loops are those on the spine of the program: in its items, and in functions that these call once, which are copied
for that.  Values of definitions that took long to compute are written, and given, too.  What runs more than once, or in
a derivative, is left alone.  So are programs whose items change references: leaving steps out would lose the changes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

from dpl.core import term as c
from dpl.core import ty as t
from dpl.core.walk import changed, subterms
from dpl.node import field, node, record, replace
from dpl.source import Source

DEEPEST = 6  # calls that are followed into each other
PLAN = t.Tup((t.F64, t.F64, t.I64, t.I64))


@node
class Spot:
    """Where a checkpoint is written: the closed type of the state, and the item that it belongs to."""

    ty: t.Ty
    item: int


def same(ty: t.Ty) -> t.Ty:
    return ty


def changes_globals(program: c.Program) -> bool:
    """Whether a definition of the program is, or holds, a reference."""
    return any(isinstance(item, c.Def) and "ref" in names_in(item.ty) for item in program.items)


def names_in(ty: t.Ty) -> set[str]:
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
    """A walk over what runs at most once.  The two kinds of programs fill in `whole` and `loop`."""

    program: c.Program
    own: set[Source]
    spots: dict[int, Spot] = field(default_factory=dict)
    made: list[c.Def] = field(default_factory=list)  # copies of functions, and what the new code needs
    item: int = 0
    depth: int = 0
    copies: int = 0
    closed: Mapping[str, t.Ty] = field(default_factory=dict)  # the types of the parameters of the function around
    globals: dict[str, c.Def] = field(default_factory=dict)
    assigns: bool = False  # whether a function of the program may change a reference

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
        return replace(self.program, items=items)

    @abstractmethod
    def whole(self, item: c.Def | c.Do) -> list[c.Def | c.Do]:
        """The items in place of one at the top level."""

    @abstractmethod
    def loop(self, old: c.For | c.While, number: int) -> c.Term:
        """What takes the place of a loop that runs once."""

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
        number = len(self.spots)
        self.spots[number] = Spot(ty, self.item)
        return self.loop(loop, number)

    def call(self, term: c.App) -> c.Term:
        """A call, with what is in its arguments, and in the function if it is a global one that runs here only."""
        args: list[c.App] = []
        head: c.Term = term
        while isinstance(head, c.App):
            args.append(head)
            head = head.fn
        new: c.Term = self.copied(head, len(args)) if isinstance(head, c.Var) else head
        is_new = new is not head
        for app in reversed(args):
            arg = self.term(app.arg)
            is_new = is_new or arg is not app.arg
            new = replace(app, fn=new, arg=arg)
        return new if is_new else term

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
        self.made.append(replace(found, name=name, body=within(found.body, inside), export=False))
        return replace(head, name=name)


def within(f: c.Term, body: c.Term) -> c.Term:
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
    bound, used, stack = {loop.state}, dict[str, t.Ty](), list[c.Term](subterms(loop))
    while stack:
        term = stack.pop()
        stack += subterms(term)
        match term:
            case c.Var(ty=ty, name=name) if not is_global(name):
                used[name] = ty
            case c.Let(name=name) | c.Lam(param=name):
                bound.add(name)
            case c.LetRec(bindings=bindings):
                bound |= {name for name, _ in bindings}
            case _:
                pass
    return set[str]().union(*(names_in(ty) for name, ty in used.items() if name not in bound))


def is_global(name: str) -> bool:
    return name[:1].isupper() or name.startswith("main.")


# ---- the program that writes ----------------------------------------------------------------------------------------


@record
class Writer(Spine):
    folder: Path = Path()

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
        return c.Do(self.helper("_computed", value.ty, begun, path, value))

    def reference(self, name: str, content: t.Ty, value: c.Term) -> c.Var:
        ty = t.Con("ref", (content,))
        if name not in self.globals:
            self.globals[name] = c.Def(name, (), ty, c.Prim(value.span, ty, "ref", (value,)))
            self.made.append(self.globals[name])
        return c.Var(value.span, ty, name)

    def helper(self, name: str, state: t.Ty, *args: c.Term) -> c.Term:
        """A call of a function of module Sys, whose type parameter (if any) is that of the state."""
        name = f"Sys.{name}"
        found = self.program.library[name]
        inst = tuple(state if p.sort == "type" else t.PURE for p in found.params)
        ty = t.substitute(found.ty, {p.name: a for p, a in zip(found.params, inst, strict=True)})
        call: c.Term = c.Var(args[0].span, ty, name, inst)
        for arg in args:
            assert isinstance(ty, t.Fn)
            ty = ty.result
            call = c.App(arg.span, ty, call, arg)
        return call

    def loop(self, old: c.For | c.While, number: int) -> c.Term:
        span, state = old.span, c.Var(old.span, old.init.ty, old.state)
        numbers = (*(c.Lit(span, t.F64, x) for x in (0.0, 1e9)), *(c.Lit(span, t.I64, n) for n in (0, 1)))
        plan = self.reference(f"main.at.plan{number}", PLAN, c.Tuple(span, PLAN, numbers))
        path = c.Lit(span, t.STRING, str(self.folder / f"loop{number}"))
        if isinstance(old, c.For):
            step: c.Term = c.Var(span, t.I64, old.index)
        else:
            count = self.reference(f"main.at.count{number}", t.I64, c.Lit(span, t.I64, -1))
            step = self.helper("_counted", t.I64, count)
        note = self.helper("_checkpoint", state.ty, plan, path, step, state)
        body = c.Let(span, old.body.ty, "_", (), note, old.body)
        return replace(old, init=self.term(old.init), body=body)


# ---- the program that goes on ---------------------------------------------------------------------------------------


@record
class Resumer(Spine):
    """`steps` are the steps that were done before the checkpoint of a loop, `done` the items that need not be done."""

    steps: Mapping[int, int] = field(default_factory=dict)
    done: frozenset[int] = frozenset()

    def whole(self, item: c.Def | c.Do) -> list[c.Def | c.Do]:
        return [] if self.item in self.done and isinstance(item, c.Do) else [item]

    def loop(self, old: c.For | c.While, number: int) -> c.Term:
        init = self.term(old.init)
        if number not in self.steps:
            return old if init is old.init else replace(old, init=init)
        span, state = old.span, c.Var(old.span, old.init.ty, given_name(number))
        if isinstance(old, c.While):
            return replace(old, init=state)
        index, count = f"{old.index}.rest", c.Lit(span, t.I64, self.steps[number])
        whole = c.Prim(span, t.I64, "add", (c.Var(span, t.I64, index), count))
        left = c.Prim(span, t.I64, "sub", (old.count, count))
        body = c.Let(span, old.body.ty, old.index, (), whole, old.body)
        return replace(old, init=state, index=index, count=left, body=body)


def given_name(number: int) -> str:
    return f"main.at.given{number}"
