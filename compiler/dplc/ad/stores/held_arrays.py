"""Finds the arrays that many values hold, for `shared_arrays`.

What holds an array is a data type, the type of the elements of arrays, or that of a reference:

    l = list#1 (a, rest)              data `list`
    rows = build i { yield (a, i) }   elements (f64[], i64)
    r = ref_new a                     references to f64[]

It is *chosen* if an array from outside of a loop or of a recursion goes into it, or if a loop or a recursion makes its
values of arrays of such values, as the states of a generator.  It is not if derivatives are taken by its values, or if
each element of a comprehension would make a reference.  Elements and references are not chosen either if what a loop
puts into them may be an array that it updates: the reference would be a second owner, and each update a copy.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from dpl.node import node

from dplc.flat import term as f
from dplc.flat.call_graph import callees, groups
from dplc.flat.ops.table import OPS
from dplc.flat.walk import binders, blocks, every

Path = tuple[int, ...]  # to a part of a tuple
Place = tuple[str, Path]  # a part of a variable


@node
class Elements:
    """What holds arrays is the element of an array."""

    elem: f.Type


Holder = f.Data | f.Ref | Elements
Found = TypeVar("Found")


def is_array(ty: f.Type) -> bool:
    """True for arrays of floats."""
    return isinstance(ty, f.Arr) and f.is_float(ty.elem)


def holds_array(ty: f.Type) -> bool:
    """True if a value of this type is, or has in a component, an array of floats."""
    return next(arrays(ty), None) is not None


def arrays(ty: f.Type) -> Iterator[Path]:
    """The places of arrays of floats in a payload."""
    if is_array(ty):
        yield ()
    elif isinstance(ty, f.Tup):
        for i, item in enumerate(ty.items):
            yield from ((i, *path) for path in arrays(item))


def part(ty: f.Type, path: Path) -> f.Type:
    """The type at a path into nested tuples."""
    for i in path:
        assert isinstance(ty, f.Tup)
        ty = ty.items[i]
    return ty


def holders(types: Iterable[f.Type], datas: Mapping[str, f.DataDecl]) -> set[Holder]:
    """What holds arrays in values of some types, or reached from them."""
    found, seen, todo = set[Holder](), set[f.Type](), list(types)
    while todo:
        ty = todo.pop()
        if ty in seen:
            continue
        seen.add(ty)
        inside: tuple[f.Type, ...] = ()
        match ty:
            case f.Tup(items):
                todo += items
            case f.Data(name):
                inside = tuple([payload for payload in datas[name].payloads if payload is not None])
            case f.Arr(elem) | f.Ref(elem):
                inside = (elem,)
            case _:
                pass
        todo += inside
        if any(map(holds_array, inside)) and not is_array(ty):
            assert isinstance(ty, f.Data | f.Ref | f.Arr)
            found.add(Elements(ty.elem) if isinstance(ty, f.Arr) else ty)
    return found


def reached(start: Iterable[Found], successors: Callable[[Found], Iterable[Found]]) -> set[Found]:
    """What these lead to, with these."""
    found, todo = set[Found](), list(start)
    while todo:
        one = todo.pop()
        if one not in found:
            found.add(one)
            todo += successors(one)
    return found


@node
class Make:
    """An atom goes into what holds arrays, in so many loops."""

    holder: Holder
    atom: f.Atom
    depth: int


class Body:
    """What a function binds, where, and what goes into data, elements and references in it.  The depth is the number of
    loops around."""

    def __init__(self, fn: f.Fn) -> None:
        self.params = {param.name: k for k, param in enumerate(fn.params)}
        self.defs: dict[str, f.Rhs] = {}
        self.depth = dict.fromkeys(self.params, 0)
        self.in_builds = set[str]()  # what elements of comprehensions bind
        self.opened: dict[str, Holder] = {}  # what was in a holder
        self.makes: list[Make] = []
        self.calls: list[tuple[f.Call, int, bool]] = []
        self.lasting = set[Holder]()  # what cells and collected arrays hold
        self.block(fn.body, 0, False)

    def block(self, block: f.Block, depth: int, built: bool) -> None:
        for bind in block.binds:
            rhs = bind.rhs
            self.bound(bind.vars, depth, built)
            if len(bind.vars) == 1:
                self.defs[bind.vars[0].name] = rhs
            inside, in_build = depth + isinstance(rhs, f.For | f.While | f.Build), built or isinstance(rhs, f.Build)
            self.bound(binders(rhs), inside, in_build)
            self.holders(bind, depth)
            if isinstance(rhs, f.Call):
                self.calls.append((rhs, depth, built))
            for inner in blocks(rhs):
                self.block(inner, inside, in_build)

    def bound(self, vars_: Iterable[f.Var], depth: int, built: bool) -> None:
        for var in vars_:
            self.depth[var.name] = depth
            if built:
                self.in_builds.add(var.name)

    def holders(self, bind: f.Bind, depth: int) -> None:
        """Notes what goes into holders of arrays, and what comes out of them."""
        match bind.rhs:
            case f.ConMake(data, _, arg) if arg is not None:
                self.makes.append(Make(f.Data(data), arg, depth))
            case f.Switch(scrutinee, cases) if isinstance(scrutinee.ty, f.Data):
                self.opened.update((case.payload.name, scrutinee.ty) for case in cases if case.payload is not None)
            case f.Build(body=body):
                self.makes += [Make(Elements(atom.ty), atom, depth + 1) for atom in body.results if in_element(atom.ty)]
            case f.For(collect=collect) | f.While(collect=collect) if collect:
                kept = bind.vars[-1].ty
                assert isinstance(kept, f.Arr)
                self.lasting.add(Elements(kept.elem))
            case f.Op("state"):
                self.lasting |= {bind.vars[0].ty} if isinstance(bind.vars[0].ty, f.Ref) else set()
            case f.Op("ref_new" | "ref_set", (*_, content)):
                self.makes.append(Make(f.Ref(content.ty), content, depth))
            case f.Op("ref_get"):
                self.opened[bind.vars[0].name] = f.Ref(bind.vars[0].ty)
            case f.Op() as op:
                many = depth + (op.op == "fill")
                self.makes += [Make(Elements(a.ty), a, many) for a in op.args if enters(bind, a)]
                self.opened.update((v.name, Elements(v.ty)) for v in bind.vars if in_element(v.ty) and leaves(op, v))
            case _:
                pass

    def origin(self, atom: f.Atom, path: Path) -> tuple[f.Atom, Path]:
        """The variable, or constant, of which a part is a part, through tuples."""
        while isinstance(atom, f.Var):
            match self.defs.get(atom.name):
                case f.TupMake(items) if path:
                    atom, path = items[path[0]], path[1:]
                case f.TupGet(tup, i):
                    atom, path = tup, (i, *path)
                case _:
                    break
        return atom, path


def in_element(ty: f.Type) -> bool:
    """True for a type of elements that hold arrays."""
    return isinstance(ty, f.Tup) and holds_array(ty)


def enters(bind: f.Bind, atom: f.Atom) -> bool:
    """True if an operand of an operation becomes an element of the array that it makes."""
    return in_element(atom.ty) and any(isinstance(v.ty, f.Arr) and v.ty.elem == atom.ty for v in bind.vars)


def leaves(op: f.Op, var: f.Var) -> bool:
    """True if a result of an operation is an element of an operand."""
    return any(isinstance(a.ty, f.Arr) and a.ty.elem == var.ty for a in op.args)


class Search:
    """Finds what is to hold references, `chosen`; the arrays that need a reference, `made` by function; and the parts
    of parameters whose references are parameters, too, `lifted` by function."""

    def __init__(self, program: f.Program) -> None:
        self.program = program
        taken = [bind for name in program.fns for bind in every(program.fns[name].body) if isinstance(bind.rhs, f.Ad)]
        self.chosen: set[Holder] = set()
        self.forget()
        if not taken:
            return
        self.bodies = {name: Body(fn) for name, fn in program.fns.items()}
        self.callers = defaultdict[str, list[tuple[str, f.Call]]](list)
        for name, body in self.bodies.items():
            for call, _, _ in body.calls:
                self.callers[call.fn].append((name, call))
        self.differentiated = {bind.rhs.fn for bind in taken if isinstance(bind.rhs, f.Ad)}
        ruled = {name for key, rule in program.rules.items() for name in (key, rule.fn, rule.pullback) if name}
        self.fixed = {*self.differentiated, *ruled, *program.checkpoints, *program.roots}  # their parameters stay
        types = [atom.ty for bind in taken if isinstance(bind.rhs, f.Ad) for atom in (*bind.vars, *bind.rhs.args)]
        for name in ruled | program.checkpoints | set(program.roots):
            types += [*(p.ty for p in program.fns[name].params), *program.fns[name].results]
        kept = {holder for body in self.bodies.values() for holder in body.lasting}
        self.refused = holders(types, program.datas) | kept
        self.repeated, self.built = self.spread(False), self.spread(True)
        self.chosen = self.choose()
        while self.chosen and (wrong := self.find()):
            self.chosen -= wrong

    # ---- what holds them

    def choose(self) -> set[Holder]:
        found, refused = set[Holder](), set(self.refused)
        copies = defaultdict[Holder, set[Holder]](set)  # what is made of arrays that others held
        again: list[tuple[Holder, Holder]] = []  # the same, many times
        for name in self.below(self.differentiated):
            body = self.bodies[name]
            for make in body.makes:
                for path in arrays(make.atom.ty):
                    root, _ = body.origin(make.atom, path)
                    if isinstance(root, f.Const):
                        continue
                    many = make.depth > 0 or name in self.repeated
                    if root.name in body.opened:
                        copies[body.opened[root.name]].add(make.holder)
                        if many:
                            again.append((body.opened[root.name], make.holder))
                    elif body.depth[root.name] < make.depth or (root.name in body.params and name in self.repeated):
                        found.add(make.holder)
                    elif many and not isinstance(make.holder, f.Data) and may_be_updated(body.defs.get(root.name)):
                        refused.add(make.holder)
        found |= {made for held, made in again if held in reached((made,), copies.__getitem__)}
        return reached(found, copies.__getitem__) - refused

    def spread(self, in_builds: bool) -> set[str]:
        """The functions that may run many times for one run of their callers: recursive ones, those called in loops,
        and those that these call; or those called in comprehensions only."""
        number, recursive = groups(self.program)
        found = set() if in_builds else {name for name in self.program.fns if number[name] in recursive}
        for body in self.bodies.values():
            found |= {call.fn for call, depth, built in body.calls if (built if in_builds else depth)}
        return self.below(found)

    def below(self, names: Iterable[str]) -> set[str]:
        """Some functions, and those that they call."""
        return reached(names, lambda name: callees(self.program.fns[name].body))

    # ---- which arrays

    def forget(self) -> None:
        self.made = defaultdict[str, set[Place]](set)
        self.lifted = defaultdict[str, list[tuple[int, Path]]](list)

    def find(self) -> set[Holder]:
        """Finds the arrays.  Returns what would have each element of a comprehension make a reference."""
        wrong = set[Holder]()
        for holder in sorted(self.chosen, key=str):
            self.forget()
            self.demand_for({holder})
            if any(name in self.built or self.bodies[name].in_builds & {var for var, _ in self.made[name]}
                   for name in self.made if self.made[name]):  # fmt: skip
                wrong.add(holder)
        self.forget()
        self.demand_for(self.chosen)
        return wrong

    def demand_for(self, chosen: set[Holder]) -> None:
        for name, body in self.bodies.items():
            for make in body.makes:
                if make.holder in chosen:
                    for path in arrays(make.atom.ty):
                        self.demand(name, make.atom, path)

    def demand(self, name: str, atom: f.Atom, path: Path) -> None:
        """A part of an atom needs a reference."""
        body = self.bodies[name]
        root, rest = body.origin(atom, path)
        if isinstance(root, f.Const) or body.opened.get(root.name) in self.chosen:
            return
        if root.name not in body.params or name in self.fixed:
            self.made[name].add((root.name, rest))
        elif (key := (body.params[root.name], rest)) not in self.lifted[name]:
            self.lifted[name].append(key)
            for caller, call in self.callers[name]:
                self.demand(caller, call.args[key[0]], rest)


def may_be_updated(rhs: f.Rhs | None) -> bool:
    """True if an array may be one that its loop changes in place, step after step."""
    return not (isinstance(rhs, f.Build) or (isinstance(rhs, f.Op) and not OPS[rhs.op].changes))
