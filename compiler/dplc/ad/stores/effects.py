"""Effect analysis: the effects of functions on references that they did not make.

    fn bump(r: ref f64) -> ()             reads and writes references of f64
    fn norm(x: f64) -> (f64)              nothing, whatever references it makes, reads and writes inside

References are distinguished by the types of their contents.  So a function whose
parameters and results can hold no reference to some content cannot reach references to it that others made, nor can
others reach its own: it is *closed* to them, and callers see no effect on them.
"""

from __future__ import annotations

from collections.abc import Iterable

from dplc.flat import term as f
from dplc.flat.ops.row import REFERENCE, Effect
from dplc.flat.ops.table import OPS
from dplc.flat.walk import every


def on_references(op: str) -> Effect:
    """The effects of an operation on a reference."""
    return OPS[op].effects & REFERENCE


def content_of(op: f.Op, vars_: tuple[f.Var, ...]) -> f.Type:
    """The content of the reference that an operation uses."""
    return vars_[0].ty if op.op == "ref_get" else op.args[-1].ty


class Holds:
    """The contents of the references that a value of a type can hold."""

    def __init__(self, datas: dict[str, f.DataDecl]) -> None:
        self.datas = datas
        self.known: dict[f.Type, frozenset[f.Type]] = {}

    def of(self, ty: f.Type) -> frozenset[f.Type]:
        if ty not in self.known:
            self.known[ty] = frozenset(self.find(ty))
        return self.known[ty]

    def find(self, ty: f.Type) -> set[f.Type]:
        found, seen, todo = set[f.Type](), {ty}, [ty]
        while todo:
            match todo.pop():
                case f.Ref(content):
                    found.add(content)
                    inner: Iterable[f.Type | None] = (content,)
                case f.Tup(items):
                    inner = items
                case f.Arr(elem, _):
                    inner = (elem,)
                case f.Data(name):
                    inner = self.datas[name].payloads
                case _:
                    continue
            new = {part for part in inner if part is not None} - seen
            seen |= new
            todo += new
        return found


class Effects:
    """The effects of all functions of a program, on references to some contents."""

    def __init__(self, program: f.Program, contents: Iterable[f.Type]) -> None:
        self.holds = Holds(program.datas)
        self.contents = frozenset(contents)
        self.program = program
        self.open = {fn.name: self.reach(fn) for fn in program.fns.values()}
        self.found: dict[tuple[str, f.Type], Effect] = {}
        callers: dict[str, set[str]] = {}
        for fn in program.fns.values():
            for bind in every(fn.body):
                match bind.rhs:
                    case f.Op(op) if on_references(op):
                        self.add(fn.name, content_of(bind.rhs, bind.vars), on_references(op))
                    case f.Ad("pullback"):
                        pass  # the vjp of the site had the effects on references
                    case f.Call(callee) | f.Ad(_, callee):
                        callers.setdefault(callee, set()).add(fn.name)
                    case _:
                        pass
        todo = {fn for fn, _ in self.found}
        while todo:
            callee = todo.pop()
            for caller in callers.get(callee, ()):
                if any([self.add(caller, content, self.of(callee, content)) for content in self.open[callee]]):
                    todo.add(caller)

    def reach(self, fn: f.Fn) -> frozenset[f.Type]:
        """The contents to which a function is not closed."""
        types = (*(p.ty for p in fn.params), *fn.results)
        return self.contents & frozenset[f.Type]().union(*map(self.holds.of, types))

    def add(self, fn: str, content: f.Type, effect: Effect) -> bool:
        """Adds an effect.  Returns True if it is new to callers."""
        old = self.of(fn, content)
        if content in self.open[fn]:
            self.found[fn, content] = old | effect
        return self.of(fn, content) != old

    def of(self, fn: str, content: f.Type) -> Effect:
        return self.found.get((fn, content), Effect.NONE)

    def gives(self, fn: str, content: f.Type) -> bool:
        """True if the results of a function, or references, can contain references that it made."""
        results = self.program.fns[fn].results
        return Effect.NEW in self.of(fn, content) and (
            self.within_others(content) or any(content in self.holds.of(ty) for ty in results)
        )

    def within_others(self, content: f.Type) -> bool:
        """True if references of some other content can contain references to this one."""
        return any(content in self.holds.of(other) for other in self.contents)
