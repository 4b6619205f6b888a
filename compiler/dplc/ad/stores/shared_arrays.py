"""Arrays that many data hold: flat -> flat where each is behind a reference, which the data hold in its place.

    fn make(a: f64[], i)                      fn make(a: f64[], i, r: ref f64[])
      rest = make(a, i + 1)                     rest = make(a, i + 1, r)
      t = (a, rest)                    =>       t = (r, rest)
      l = list#1 t                              l = list#1 t

Reverse mode gives each part of data a cotangent of its own.  Where n closures hold one array of n numbers, these are
n * n numbers.  References become places in a store (`store_passing`), so all that hold an array share the cotangent at
its place.  The reference is made where the array is bound, and is passed to functions that put the array into data.

A data type is changed if an array from outside of a loop or of a recursion goes into it, or if a loop or a recursion
makes its values of arrays of such values, as the states of a generator.  It is not if derivatives are taken by its
values, or if a comprehension makes them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.call_graph import callees, groups
from dplc.flat.types import datas_reached
from dplc.flat.walk import binders, blocks, every, supply_for, with_binds, with_blocks, with_rhs

Path = tuple[int, ...]  # to a part of a tuple
Place = tuple[str, Path]  # a part of a variable


def share_arrays(program: f.Program) -> f.Program:
    taken = [bind for fn in program.fns.values() for bind in every(fn.body) if isinstance(bind.rhs, f.Ad)]
    holding = {name for name, decl in program.datas.items() if any(map(holds_array, filter(None, decl.payloads)))}
    if not (taken and holding):
        return program
    search = _Search(program, taken, holding)
    search.run()
    return _Boxing(search).program() if search.chosen else program


def is_array(ty: f.Type) -> bool:
    return isinstance(ty, f.Arr) and f.is_float(ty.elem)


def holds_array(ty: f.Type) -> bool:
    return next(arrays(ty), None) is not None


def arrays(ty: f.Type) -> Iterator[Path]:
    """The places of arrays of floats in a payload."""
    if is_array(ty):
        yield ()
    elif isinstance(ty, f.Tup):
        for i, item in enumerate(ty.items):
            yield from ((i, *path) for path in arrays(item))


def part(ty: f.Type, path: Path) -> f.Type:
    for i in path:
        assert isinstance(ty, f.Tup)
        ty = ty.items[i]
    return ty


def reached(start: Iterable[str], successors: Callable[[str], Iterable[str]]) -> set[str]:
    """The names that these lead to, with these."""
    found, todo = set[str](), list(start)
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += successors(name)
    return found


class _Body:
    """What a function binds, where, and the data and calls in it.  The depth is the number of loops around."""

    def __init__(self, fn: f.Fn) -> None:
        self.params = {param.name: k for k, param in enumerate(fn.params)}
        self.defs: dict[str, f.Rhs] = {}
        self.depth = dict.fromkeys(self.params, 0)
        self.opened: dict[str, str] = {}  # the payloads of data, with the names of the data
        self.makes: list[tuple[f.ConMake, int, bool]] = []
        self.calls: list[tuple[f.Call, int, bool]] = []
        self.block(fn.body, 0, False)

    def block(self, block: f.Block, depth: int, built: bool) -> None:
        for bind in block.binds:
            rhs = bind.rhs
            self.depth.update((var.name, depth) for var in bind.vars)
            if len(bind.vars) == 1:
                self.defs[bind.vars[0].name] = rhs
            match rhs:
                case f.ConMake(_, _, arg) if arg is not None:
                    self.makes.append((rhs, depth, built))
                case f.Call():
                    self.calls.append((rhs, depth, built))
                case f.Switch(scrutinee, cases) if isinstance(scrutinee.ty, f.Data):
                    data = scrutinee.ty.name
                    self.opened.update((case.payload.name, data) for case in cases if case.payload is not None)
                case _:
                    pass
            inside = depth + isinstance(rhs, f.For | f.While | f.Build)
            self.depth.update((var.name, inside) for var in binders(rhs))
            for inner in blocks(rhs):
                self.block(inner, inside, built or isinstance(rhs, f.Build))

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


class _Search:
    """Finds the data types to change, `chosen`; the arrays that need a reference, `made` by function; and the parts of
    parameters whose references are parameters, too, `lifted` by function."""

    def __init__(self, program: f.Program, taken: list[f.Bind], holding: set[str]) -> None:
        self.program = program
        self.bodies = {name: _Body(fn) for name, fn in program.fns.items()}
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
        self.holding = holding - datas_reached(types, program.datas)
        self.chosen: set[str] = set()
        self.made = defaultdict[str, set[Place]](set)
        self.lifted = defaultdict[str, list[tuple[int, Path]]](list)

    def run(self) -> None:
        self.chosen = self.choose() if self.holding else set()
        for name, body in self.bodies.items():
            for make, _, _ in body.makes:
                if make.data in self.chosen and make.arg is not None:
                    for path in arrays(make.arg.ty):
                        self.demand(name, make.arg, path)

    # ---- which data types

    def choose(self) -> set[str]:
        repeated, built = self.spread(False), self.spread(True)
        found, refused = set[str](), set[str]()
        copies = defaultdict[str, set[str]](set)  # data made of arrays that other data held
        again: list[tuple[str, str]] = []  # the same, many times
        for name in self.below(self.differentiated):
            body = self.bodies[name]
            for make, depth, in_build in body.makes:
                if make.data not in self.holding or make.arg is None:
                    continue
                if in_build or name in built:
                    refused.add(make.data)
                for path in arrays(make.arg.ty):
                    root, _ = body.origin(make.arg, path)
                    if isinstance(root, f.Const):
                        continue
                    if root.name in body.opened:
                        copies[body.opened[root.name]].add(make.data)
                        if depth or name in repeated:
                            again.append((body.opened[root.name], make.data))
                    elif body.depth[root.name] < depth or (root.name in body.params and name in repeated):
                        found.add(make.data)
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


class _Boxing:
    """Writes the program.  `boxes` has the references to parts of variables of the function that is being written."""

    def __init__(self, search: _Search) -> None:
        self.search = search
        self.supply = supply_for(search.program)
        self.boxes: dict[Place, f.Atom] = {}
        self.body: _Body
        self.made: dict[str, list[Path]]

    def program(self) -> f.Program:
        old = self.search.program
        datas = {name: self.data(decl) if name in self.search.chosen else decl for name, decl in old.datas.items()}
        return replace(old, fns={name: self.function(fn) for name, fn in old.fns.items()}, datas=datas)

    def data(self, decl: f.DataDecl) -> f.DataDecl:
        return replace(decl, payloads=tuple([None if p is None else self.boxed(p) for p in decl.payloads]))

    def boxed(self, ty: f.Type) -> f.Type:
        match ty:
            case f.Tup(items):
                return f.Tup(tuple(map(self.boxed, items)))
            case _:
                return f.Ref(ty) if is_array(ty) else ty

    def function(self, fn: f.Fn) -> f.Fn:
        self.boxes, self.body = {}, self.search.bodies[fn.name]
        self.made = defaultdict(list)
        for name, path in sorted(self.search.made[fn.name]):
            self.made[name].append(path)
        params = [self.param(fn.params[k], path) for k, path in self.search.lifted[fn.name]]
        body = self.block(fn.body, fn.params)
        return fn if body is fn.body and not params else replace(fn, params=(*fn.params, *params), body=body)

    def param(self, of: f.Var, path: Path) -> f.Var:
        var = self.boxes[of.name, path] = self.fresh("shared", f.Ref(part(of.ty, path)))
        return var

    def fresh(self, hint: str, ty: f.Type) -> f.Var:
        return f.Var(self.supply.fresh(hint), ty)

    # ---- blocks

    def block(self, block: f.Block, bound: Iterable[f.Var] = (), begin: Iterable[f.Bind] = ()) -> f.Block:
        """A block for which some variables are bound."""
        out = list(begin)
        self.make(bound, out)
        for bind in block.binds:
            out.append(self.bind(bind, out))
            self.make(bind.vars, out)
        return with_binds(block, out)

    def make(self, bound: Iterable[f.Var], out: list[f.Bind]) -> None:
        """Makes the references to what was just bound."""
        for var in bound:
            for path in self.made.get(var.name, ()):
                self.boxes[var.name, path] = self.new(self.get(var, path, out), out)

    def new(self, array: f.Atom, out: list[f.Bind]) -> f.Var:
        ref = self.fresh("shared", f.Ref(array.ty))
        out.append(f.Bind((ref,), f.Op("ref_new", (array,))))
        return ref

    def get(self, atom: f.Atom, path: Path, out: list[f.Bind]) -> f.Atom:
        for i in path:
            atom, tup = self.fresh("t", part(atom.ty, (i,))), atom
            out.append(f.Bind((atom,), f.TupGet(tup, i)))
        return atom

    def bind(self, bind: f.Bind, out: list[f.Bind]) -> f.Bind:
        match bind.rhs:
            case f.ConMake(data, tag, arg) if data in self.search.chosen and arg is not None:
                return f.Bind(bind.vars, f.ConMake(data, tag, self.closed(arg, (), out)))
            case f.Switch(scrutinee, cases, default):
                data = scrutinee.ty.name if isinstance(scrutinee.ty, f.Data) else ""
                opened = tuple([self.case(case, data in self.search.chosen) for case in cases])
                return f.Bind(bind.vars, f.Switch(scrutinee, opened, None if default is None else self.block(default)))
            case f.Call(name, args, span) if self.search.lifted[name]:
                more = [self.box(args[k], path, out) for k, path in self.search.lifted[name]]
                return f.Bind(bind.vars, f.Call(name, (*args, *more), span))
            case rhs:
                bound = binders(rhs)
                return with_rhs(bind, with_blocks(rhs, lambda inner: self.block(inner, bound)))

    def box(self, atom: f.Atom, path: Path, out: list[f.Bind]) -> f.Atom:
        """The reference to a part of an atom."""
        root, rest = self.body.origin(atom, path)
        known = self.boxes.get((root.name, rest)) if isinstance(root, f.Var) else None
        return self.new(self.get(atom, path, out), out) if known is None else known

    def closed(self, atom: f.Atom, path: Path, out: list[f.Bind]) -> f.Atom:
        """A part of a payload, with references in place of arrays."""
        ty = part(atom.ty, path)
        if is_array(ty):
            return self.box(atom, path, out)
        if not holds_array(ty) or not isinstance(ty, f.Tup):
            return self.get(atom, path, out)
        items = tuple([self.closed(atom, (*path, i), out) for i in range(len(ty.items))])
        return self.make_tuple(items, out)

    def make_tuple(self, items: tuple[f.Atom, ...], out: list[f.Bind]) -> f.Var:
        made = self.fresh("t", f.Tup(tuple([item.ty for item in items])))
        out.append(f.Bind((made,), f.TupMake(items)))
        return made

    def case(self, case: f.Case, chosen: bool) -> f.Case:
        old = case.payload
        if old is None or not chosen or not holds_array(old.ty):
            return f.Case(case.tag, old, self.block(case.body, () if old is None else (old,)))
        payload, begin = self.fresh("p", self.boxed(old.ty)), list[f.Bind]()
        self.opened(old, payload, (), begin)
        begin[-1] = f.Bind((old,), begin[-1].rhs)
        return f.Case(case.tag, payload, self.block(case.body, (), begin))

    def opened(self, old: f.Var, payload: f.Var, path: Path, out: list[f.Bind]) -> f.Atom:
        """A part of a payload as it was, with arrays."""
        ty = part(old.ty, path)
        if is_array(ty):
            ref = self.boxes[old.name, path] = self.get(payload, path, out)
            array = self.fresh("shared", ty)
            out.append(f.Bind((array,), f.Op("ref_get", (ref,))))
            return array
        if not holds_array(ty) or not isinstance(ty, f.Tup):
            return self.get(payload, path, out)
        items = tuple([self.opened(old, payload, (*path, i), out) for i in range(len(ty.items))])
        return self.make_tuple(items, out)
