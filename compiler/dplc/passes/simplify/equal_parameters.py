"""flat -> flat in which parameters that are equal in every call are one parameter.

    fn k(walk: (f64[]), i: i64, xs: f64[]) { ys = walk.0; x = index xs i; r = go(i, ys, x) ... }
    t = (xs);  a = k(t, i, xs)
        =>
    fn k(i: i64, xs: f64[]) { x = index xs i; r = go(i, xs, x) ... }
    a = k(i, xs)

A continuation, and each local function that it calls, captures what it uses, so an array may come in twice.  Its
cotangent would then be two: one would begin anew in each call, and be added to the other one, in full, after it.

The parts of tuples count as parameters here.  This is an optimistic fixpoint (congruence by partition refinement,
Alpern, Wegman and Zadeck 1988, between functions): all parts of one type start as one; each call splits those to which
it gives different values, until nothing changes.  A part of a parameter that a call passes on is one with those equal
to it.

Why it is correct: at the end, two parts in one class are given equal values by each call, if the parts of the caller's
parameters in one class are equal.  Functions that are called from elsewhere have classes of one part only, so by
induction on the depth of calls the values are equal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of
from dplc.flat.call_graph import callees
from dplc.flat.copy import Renamed
from dplc.flat.walk import every, mentioned, supply_for, with_binds, with_blocks, with_body, with_rhs
from dplc.passes.simplify.constant_parameters import fixed_functions
from dplc.passes.simplify.value_numbers import expression_of

Leaf = tuple[str, tuple[int, ...]]  # a variable, and the way to a part of it through tuples
Same = dict[Leaf, Leaf]  # parts of parameters -> the first one that is equal


def equal_parameters(program: f.Program) -> f.Program:
    found = classes(program)
    if not found:
        return program
    supply = supply_for(program)
    fns = {name: merged(fn, found[name], supply) if name in found else fn for name, fn in program.fns.items()}
    gone = {name: {k for k, p in enumerate(program.fns[name].params) if p not in fns[name].params} for name in found}
    for name, fn in fns.items():
        if not gone.keys().isdisjoint(callees(fn.body)):
            fns[name] = with_body(fn, without(fn.body, gone))
    return replace(program, fns=fns)


# ---- which parts are equal ------------------------------------------------------------------------------------------


def classes(program: f.Program) -> dict[str, Same]:
    """The functions that only known calls reach, and of which parts of parameters are equal: these with the first of
    each class."""
    binds = [bind for fn in program.fns.values() for bind in every(fn.body)]
    taken = {bind.rhs.fn for bind in binds if isinstance(bind.rhs, f.Ad)}
    called = {bind.rhs.fn for bind in binds if isinstance(bind.rhs, f.Call)} - taken - fixed_functions(program)
    rough = {name: by_key(fn, lambda leaf: ()) for name, fn in program.fns.items() if name in called}
    found = {name: same for name, same in rough.items() if several(same)}
    values = {name: Values(fn, found) for name, fn in program.fns.items()}
    todo = deque(program.fns)
    while todo:
        name = todo.popleft()
        for call in values[name].calls:
            if call.fn not in found:
                continue
            now = split(program.fns[call.fn], found[call.fn], call, values[name])
            if now != found[call.fn]:
                found[call.fn] = now
                todo.append(call.fn)
            if not several(now):
                del found[call.fn]
    return found


def several(same: Same) -> bool:
    """True if a class has several parts."""
    return any(leaf is not first for leaf, first in same.items())


def split(fn: f.Fn, before: Same, call: f.Call, values: Values) -> Same:
    """The parts that were equal before, and to which a call gives equal values."""
    given = dict(zip([p.name for p in fn.params], call.args, strict=True))
    return by_key(fn, lambda leaf: (before[leaf], values.token(given[leaf[0]], leaf[1])))


def by_key(fn: f.Fn, key: Callable[[Leaf], object]) -> Same:
    """The parts of a function's parameters, each with the first that has its type and key.  Whole parameters come
    first."""
    first = dict[object, Leaf]()
    return {leaf: first.setdefault((key(leaf), ty), leaf) for leaf, ty in leaves(fn)}


def leaves(fn: f.Fn) -> list[tuple[Leaf, f.Type]]:
    found = [((param.name, path), ty) for param in fn.params for path, ty in parts(param.ty)]
    return sorted(found, key=lambda one: len(one[0][1]))


def parts(ty: f.Type) -> Iterator[tuple[tuple[int, ...], f.Type]]:
    """What a tuple is made of, tuples in it taken apart."""
    if not isinstance(ty, f.Tup):
        yield (), ty
        return
    for k, item in enumerate(ty.items):
        yield from [((k, *path), part) for path, part in parts(item)]


class Values:
    """Value numbers of the parts of a function's variables, if the parts of its parameters are equal as `found`."""

    def __init__(self, fn: f.Fn, found: Mapping[str, Same]) -> None:
        self.fn = fn
        self.found = found
        self.calls = [bind.rhs for bind in every(fn.body) if isinstance(bind.rhs, f.Call)]
        self.makers = {bind.vars[0].name: bind.rhs for bind in every(fn.body)
                       if isinstance(bind.rhs, f.TupMake | f.TupGet)}  # fmt: skip

    @property
    def same(self) -> Same:
        return self.found.get(self.fn.name, {})

    def token(self, atom: f.Atom, path: tuple[int, ...]) -> object:
        """The same for parts that are equal."""
        while isinstance(atom, f.Var):
            match self.makers.get(atom.name):
                case f.TupMake(items) if path:
                    atom, path = items[path[0]], path[1:]
                case f.TupGet(tup, index):
                    atom, path = tup, (index, *path)
                case _:
                    return self.same.get((atom.name, path), (atom.name, path))
        return expression_of(atom), path


# ---- one parameter for them -----------------------------------------------------------------------------------------


def merged(fn: f.Fn, same: Same, supply: f.Supply) -> f.Fn:
    """The function that uses the first of equal parts, without the parameters that are not needed for that."""
    b = Builder(supply)
    params = {p.name: p for p in fn.params}
    made = dict[Leaf, f.Atom]()

    def part(leaf: Leaf) -> f.Atom:
        """The part itself, taken out of its parameter."""
        name, path = leaf
        if not path:
            return params[name]
        if leaf not in made:
            tup = part((name, path[:-1]))
            assert isinstance(tup.ty, f.Tup)
            made[leaf] = b.one(f.TupGet(tup, path[-1]), tup.ty.items[path[-1]], name)
        return made[leaf]

    def whole(leaf: Leaf, ty: f.Type) -> f.Atom:
        """The part, made of the first ones of equal parts."""
        if not isinstance(ty, f.Tup):
            return part(same[leaf])
        name, path = leaf
        items = [whole((name, (*path, k)), item) for k, item in enumerate(ty.items)]
        return b.one(f.TupMake(tuple(items)), ty, name)

    values = Values(fn, {fn.name: same})
    known: dict[str, f.Atom] = {p.name: params[rest[0]] for p in fn.params
                                if (rest := same.get((p.name, ()))) and not rest[1]}  # fmt: skip
    body = renamed(fn.body, known, values, part)
    own = [p for p in fn.params if any(leaf[0] == p.name and first != leaf for leaf, first in same.items())]
    used = mentioned(body)
    body = Renamed({p.name: whole((p.name, ()), p.ty) for p in own if p.name in used}).block(body)
    body = block_of([*b.binds, *body.binds], body.results)
    left = mentioned(body)
    return replace(fn, params=tuple([p for p in fn.params if p not in own or p.name in left]), body=body)


def renamed(block: f.Block, known: dict[str, f.Atom], values: Values, part: Callable[[Leaf], f.Atom]) -> f.Block:
    """The code with `known` variables replaced, and with those that take an equal part out of a parameter."""
    firsts: dict[object, Leaf] = {first: first for first in values.same.values()}
    for bind in every(block):
        if isinstance(bind.rhs, f.TupGet) and (first := firsts.get(values.token(bind.vars[0], ()))):
            known[bind.vars[0].name] = part(first)
    return Renamed(known).block(dropped(block, known))


def dropped(block: f.Block, known: dict[str, f.Atom]) -> f.Block:
    """The code without bindings of known variables."""
    binds = [with_rhs(bind, with_blocks(bind.rhs, lambda inner: dropped(inner, known)))
             for bind in block.binds if not (len(bind.vars) == 1 and bind.vars[0].name in known)]  # fmt: skip
    return with_binds(block, binds)


def without(block: f.Block, gone: dict[str, set[int]]) -> f.Block:
    """The code without the arguments for parameters that are gone."""

    def rewrite(rhs: f.Rhs) -> f.Rhs:
        if isinstance(rhs, f.Call) and rhs.fn in gone:
            return replace(rhs, args=tuple([arg for k, arg in enumerate(rhs.args) if k not in gone[rhs.fn]]))
        return with_blocks(rhs, lambda inner: without(inner, gone))

    return with_binds(block, [with_rhs(bind, rewrite(bind.rhs)) for bind in block.binds])
