"""mono core -> mono core with lambda sets: which functions can reach each arrow (Brandon et al. 2023).

    let compose f g = fun x -> f (g x)      compose : (b -{F}-> c) -> (a -{G}-> b) -> a -{fun@7 [F, G]}-> c

Functions are inferred by strongly connected components (SCCs) of their mentions.  Each mention of a function outside
its own component gets fresh sets (functions are polymorphic in their sets).  Everything else is unified.  So `map succ
xs` and `map half ys` remain two known calls, while `if c then succ else half` makes a set of two.

Local functions need not be lifted first: captures are found during inference.  Global values count as local
variables of the program, which functions capture.
"""

from __future__ import annotations

from dpl.core import term as c
from dpl.core import ty as t
from dpl.core.names import names_of
from dpl.diagnostics import Bug
from dpl.node import field, record

from dplc.graph import components
from dplc.narrow import expect_type
from dplc.passes.closures.set_types import (
    Datas,
    Lambda,
    Pullback,
    Set,
    Unifier,
    arrow,
    is_bare,
    rebuild,
    root,
    sets_in,
)
from dplc.passes.specialise.program import ANY, Mono


@record
class Solved:
    """`types` has the types of the nodes whose types mention arrows, by the identity of the node; `lambdas` and
    `pullbacks` are keyed in the same way, for Lam and vjp nodes; `functions` are the global functions by name."""

    datas: Datas
    items: list[tuple[str, c.Term]]
    functions: dict[str, Lambda] = field(default_factory=dict)
    types: dict[int, t.Ty] = field(default_factory=dict)
    lambdas: dict[int, Lambda] = field(default_factory=dict)
    exports: tuple[str, ...] = ()

    def type_of(self, e: c.Term) -> t.Ty:
        """The type of a term, with its lambda sets."""
        return self.types.get(id(e), e.ty)


def solve(mono: Mono) -> Solved:
    return Solver(mono).run()


class Solver:
    def __init__(self, mono: Mono) -> None:
        self.mono = mono
        self.datas = Datas(mono.datas)
        self.unify = Unifier()
        self.out = Solved(self.datas, mono.items, exports=mono.exports)
        self.functions: dict[str, tuple[Lambda, t.Ty]] = {}
        self.pending: set[str] = set()  # functions of the component being inferred
        self.values = {name: self.datas.fresh(body.ty, shared=True) for name, body in mono.items if name}
        self.env: dict[str, tuple[t.Ty, int]] = {name: (ty, 0) for name, ty in self.values.items()}
        self.frames: list[Lambda] = []  # the enclosing functions, outermost first
        self.count = 0

    def run(self) -> Solved:
        """Solves all functions, callees first (SCCs of the call graph), then the items."""
        functions = self.mono.functions
        for component in components(functions, lambda f: [g for g in self.mono.calls[f] if g in functions]):
            self.component(component)
        for name, body in self.mono.items:
            ty = self.infer(body)
            if name:
                self.unify.types(self.values[name], ty)
        return self.out

    # ---- global functions -------------------------------------------------------------------------------------------

    def component(self, names: list[str]) -> None:
        """An SCC of global functions, generalised when done.  They share their captures: the global values that they
        mention, and those that the functions they call capture."""
        captures: dict[str, t.Ty] = {}
        for mentioned in (g for name in names for g in self.mono.calls[name]):
            if mentioned in self.values:
                captures[mentioned] = self.values[mentioned]
            elif mentioned in self.functions:
                captures |= self.functions[mentioned][0].captures
        group = [(self.new_lambda(self.mono.functions[name], captures), self.mono.functions[name]) for name in names]
        for name, (made, e) in zip(names, group, strict=True):
            self.functions[name] = made, self.datas.fresh(e.ty)
            self.out.functions[name] = made
        self.pending = set(names)
        for name, (made, e) in zip(names, group, strict=True):
            self.function(made, e, self.functions[name][1])
        self.pending = set()
        for ty in captures.values():
            share(ty)

    def mention(self, name: str) -> t.Ty:
        """The type of a global function where it is mentioned.  The enclosing functions capture its captures."""
        function, ty = self.functions[name]
        for captured in function.captures:
            self.capture(captured)
        return ty if name in self.pending else self.instantiate(ty)

    def instantiate(self, ty: t.Ty) -> t.Ty:
        """A copy of a type with fresh sets, except for shared ones."""
        copies: dict[Set, Set] = {}

        def copy_set(functions: Set) -> Set:
            old = root(functions)
            if old.shared:
                return old
            if (new := copies.get(old)) is None:
                new = copies[old] = Set()
                new.members = {
                    m: [x if is_bare(x) else copy(x) for x in captures] for m, captures in old.members.items()
                }
            return new

        def copy(part: t.Ty) -> t.Ty:
            return rebuild(part, copy, copy_set) if next(sets_in(part), None) else part

        return copy(ty)

    # ---- functions --------------------------------------------------------------------------------------------------

    def new_lambda(self, e: c.Lam, captures: dict[str, t.Ty]) -> Lambda:
        self.count += 1
        made = self.out.lambdas[id(e)] = Lambda(self.count, e.name, e.span, e.param, e.body, captures)
        return made

    def function(self, made: Lambda, e: c.Lam, ty: t.Ty) -> None:
        """Infer a function's body.  The function joins the set of `ty`, its arrow type."""
        if not isinstance(ty, t.Fn):
            raise Bug(f"a function of type {ty}")
        made.arg, made.result = ty.arg, ty.result
        root(ty.eff).members.setdefault(made, made.captures.values())
        self.frames.append(made)
        self.env[e.param] = (ty.arg, len(self.frames))
        if isinstance(e.body, c.Lam):  # of several arguments: no second copy of the type
            inner = self.new_lambda(e.body, {})
            inner.peers = made.peers
            self.function(inner, e.body, ty.result)
            self.out.types[id(e.body)] = ty.result
        else:
            self.unify.types(ty.result, self.infer(e.body))
        self.frames.pop()

    def capture(self, name: str) -> t.Ty:
        """The type of a variable.  The functions between here and its binding capture it."""
        ty, depth = self.env[name]
        for function in reversed(self.frames[depth:]):
            if name in function.captures or name in function.peers:
                break
            function.captures[name] = ty
        return ty

    def bind(self, name: str, ty: t.Ty) -> None:
        """Notes the type of a local name."""
        self.env[name] = (ty, len(self.frames))

    def recursive(self, e: c.LetRec) -> None:
        """Local functions that may mention each other.  Inside, each of them is made again from the captures, which
        they share.  This holds also inside the functions that they return when applied to the first of several
        arguments."""
        captures: dict[str, t.Ty] = {}
        functions = {name: expect_type(c.Lam, rhs) for name, rhs in e.bindings}
        peers = {name: (self.new_lambda(rhs, captures), self.datas.fresh(rhs.ty)) for name, rhs in functions.items()}
        for name, (_, ty) in peers.items():
            self.env[name] = (ty, len(self.frames) + 1)
        for name, rhs in functions.items():
            made, ty = peers[name]
            made.peers = peers
            self.function(made, rhs, ty)
            self.out.types[id(rhs)] = ty
        for rhs in functions.values():
            while isinstance(rhs := rhs.body, c.Lam):
                made = self.out.lambdas[id(rhs)]
                made.captures |= {name: ty for name, ty in captures.items() if name not in made.captures}
        for name, (_, ty) in peers.items():
            self.bind(name, ty)

    # ---- terms ------------------------------------------------------------------------------------------------------

    def infer(self, e: c.Term) -> t.Ty:
        """The type of a term with lambda sets; it is noted if it has any."""
        ty = self.visit(e)
        if self.datas.has_sets(e.ty):
            self.out.types[id(e)] = ty
            return ty
        return e.ty

    def same(self, *terms: c.Term) -> t.Ty:
        """Infer several terms that have one type.  Returns that type."""
        first, *others = [self.infer(e) for e in terms]
        for other in others:
            self.unify.types(first, other)
        return first

    def visit(self, e: c.Term) -> t.Ty:  # noqa: C901 -- one case per form
        """The type of a term, by its form."""
        match e:
            case c.Var(_, _, name):
                return self.mention(name) if name in self.functions else self.capture(name)
            case c.Lit():
                return e.ty
            case c.Let() | c.LetRec():
                return self.lets(e)
            case c.Prim():
                return self.primitive(e, [self.infer(a) for a in e.args])
            case c.App(_, _, fn, arg):
                callee = self.infer(fn)
                if not isinstance(callee, t.Fn):
                    raise Bug(f"called: {callee}")
                self.unify.types(callee.arg, self.infer(arg))
                return callee.result
            case c.Lam():
                ty = self.datas.fresh(e.ty)
                self.function(self.new_lambda(e, {}), e, ty)
                return ty
            case c.Tuple(_, _, items):
                return t.Tup(tuple([self.infer(i) for i in items]))
            case c.Con(_, _, _, tag, arg):
                ty = self.datas.fresh(e.ty)
                given = None if arg is None else self.infer(arg)
                if given is not None and self.datas.has_sets(e.ty):
                    given = t.Tup((given,)) if self.datas.tuple_of_one(expect_type(t.Con, ty)) else given
                    self.unify.types(self.datas.argument(ty, tag), given)
                return ty
            case c.Field(_, _, record, index):
                return field_type(self.datas, self.infer(record), index)
            case c.Update():
                return self.update(e)
            case c.ArrayLit(_, _, items):
                return t.Arr(self.same(*items), ANY) if items else self.datas.fresh(e.ty)
            case c.If(_, _, cond, then, else_):
                self.infer(cond)
                return self.same(then, else_)
            case c.Match(_, _, scrutinee, arms):
                return self.match(self.infer(scrutinee), arms)
            case c.For() | c.While():
                return self.loop(e)
            case c.Build(_, _, index, count, body):
                self.infer(count)
                self.bind(index, t.I64)
                return t.Arr(self.infer(body), ANY)
            case c.Check(_, _, name, body, pairs):
                ty = self.infer(body)
                self.bind(name, ty)
                for actual, expected, _ in pairs:
                    self.infer(actual)
                    self.infer(expected)
                return ty
            case _:
                raise Bug(f"not a term after mono: {e}")

    def update(self, e: c.Update) -> t.Ty:
        """The type of the new record.  The functions in its new fields do not join those of the old ones."""
        old, given = self.infer(e.record), {index: self.infer(value) for index, value in e.fields}
        if not self.datas.has_sets(e.ty):
            return e.ty
        new = self.datas.fresh(e.ty)
        for index in range(len(self.datas.datas[expect_type(t.Con, e.ty).name].fields)):
            kept = field_type(self.datas, old, index) if index not in given else given[index]
            self.unify.types(field_type(self.datas, new, index), kept)
        return new

    def loop(self, e: c.For | c.While) -> t.Ty:
        """The type of the state, which every step gives again."""
        ty = self.infer(e.init)
        match e:
            case c.For(_, _, state, _, index, count, body):
                self.infer(count)
                self.bind(state, ty)
                self.bind(index, t.I64)
                self.unify.types(ty, self.infer(body))
            case c.While(_, _, state, _, cond, body):
                self.bind(state, ty)
                self.infer(cond)
                self.unify.types(ty, self.infer(body))
        return ty

    def lets(self, e: c.Term) -> t.Ty:
        while isinstance(e, c.Let | c.LetRec):
            if isinstance(e, c.LetRec):
                self.recursive(e)
            else:
                self.bind(e.name, self.infer(e.rhs))
            e = e.body
        return self.infer(e)

    def match(self, scrutinee: t.Ty, arms: tuple[c.Arm, ...]) -> t.Ty:
        result = None
        for arm in arms:
            self.pattern(scrutinee, arm.pattern)
            if arm.guard is not None:
                self.infer(arm.guard)
            ty = self.infer(arm.body)
            if result is not None:
                self.unify.types(result, ty)
            result = ty
        if result is None:
            raise Bug("a match without arms")
        return result

    def pattern(self, ty: t.Ty, p: c.Pattern) -> None:
        match p:
            case c.PVar(_, name):
                self.bind(name, ty)
            case c.PTuple(_, items):
                for part, item in zip(expect_type(t.Tup, ty).items, items, strict=True):
                    self.pattern(part, item)
            case c.PCon(_, _, tag, arg) if arg is not None:
                self.pattern(self.datas.argument(ty, tag), self.datas.opened(expect_type(t.Con, ty), arg))
            case c.PArray(_, items):
                for item in items:
                    self.pattern(expect_type(t.Arr, ty).elem, item)
            case c.PAs(_, inner, name):
                self.bind(name, ty)
                self.pattern(ty, inner)
            case c.POr(_, left, right):
                self.pattern(ty, left)
                before = {name: self.env[name][0] for name in names_of(left)}
                self.pattern(ty, right)
                for name, there in before.items():
                    self.unify.types(there, self.env[name][0])
            case _:  # binds nothing
                pass

    # ---- primitives -------------------------------------------------------------------------------------------------

    def primitive(self, e: c.Prim, args: list[t.Ty]) -> t.Ty:
        match e.op, args:
            case "vjp", [t.Fn(arg, _, result) as fn, x]:
                self.unify.types(arg, x)
                self.count += 1
                return t.Tup((result, arrow(result, Set({Pullback(self.count): [fn]}), arg)))
            case "checkpoint", [t.Fn(arg, _, result), x]:
                self.unify.types(arg, x)
                return result
            case "with_vjp" | "with_jvp" | "jvp" | "taylor" | "tree_map" | "tree_map2" | "tree_map_words", _:
                return e.ty
            case _:
                return self.moved(e, args) if self.datas.has_sets(e.ty) else e.ty

    def moved(self, e: c.Prim, args: list[t.Ty]) -> t.Ty:
        """The type of a primitive's result that holds functions of its arguments."""
        match e.op, args:
            case "index", [array, *indices]:
                for _ in indices:
                    array = expect_type(t.Arr, array).elem
                return array
            case "update", [array, value, *indices]:
                inner = array
                for _ in indices:
                    inner = expect_type(t.Arr, inner).elem
                self.unify.types(inner, value)
                return array
            case (("slice" | "transpose" | "stop_grad" | "sized"), [first, *_]):
                return first
            case "append", [left, right]:
                self.unify.types(left, right)
                return left
            case "fill", [_, x]:
                return t.Arr(x, ANY)
            case "reshape" | "flatten", [array, *_]:
                result = self.datas.fresh(e.ty)
                self.unify.types(innermost(result), innermost(array))
                return result
            case "error" | "exit", _:
                return self.datas.fresh(e.ty)
            case _:
                raise Bug(f"`{e.op}` is not expected to give functions")


def innermost(ty: t.Ty) -> t.Ty:
    while isinstance(ty, t.Arr):
        ty = ty.elem
    return ty


def field_type(datas: Datas, record: t.Ty, index: int) -> t.Ty:
    payload = datas.argument(record, 0)
    return payload if datas.lone_field(expect_type(t.Con, record)) else expect_type(t.Tup, payload).items[index]


def share(ty: t.Ty) -> None:
    """Mark all sets that a global value's type reaches as shared: they are not generalised."""
    todo = list(sets_in(ty))
    seen: set[Set] = set()
    while todo:
        functions = root(todo.pop())
        if functions not in seen:
            seen.add(functions)
            functions.shared = True
            for captures in functions.members.values():
                for captured in captures:
                    todo += sets_in(captured)
