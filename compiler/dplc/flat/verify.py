"""The verifier: flat -> the same flat, or a Bug.  It checks scoping, unique names and all types, against
`flat/term.py` and `flat/ops`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dpl.diagnostics import Bug

from dplc.flat import term as f
from dplc.flat.effects import Effects
from dplc.flat.ops.table import OPS
from dplc.flat.remembered import remembered
from dplc.flat.show import bind_head, show_type
from dplc.flat.types import elem_of, of_rank, rank_of
from dplc.flat.walk import accumulators, every

VALUES: dict[str, type] = {
    "bool": bool,
    **dict.fromkeys(("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"), int),
    **dict.fromkeys(("f16", "f32", "f64"), float),
}
NO_ATTRS: dict[str, object] = {}


class Right:
    """The bodies that were right when a program was last verified, and what they depended on.  A stage that leaves
    functions as they are need not pay for them."""

    def __init__(self, program: f.Program) -> None:
        self.declared = dict(program.datas), dict(program.residuals)
        self.interfaces = {name: interface(fn) for name, fn in program.fns.items()}
        self.bodies = {name: fn.body for name, fn in program.fns.items()}

    def within(self, program: f.Program) -> dict[str, f.Block]:
        """The bodies that are right in this program as well: nothing that they depend on has changed or gone."""
        if self.declared != (program.datas, program.residuals):
            return {}
        changed = {name for name, known in self.interfaces.items() if interface(program.fns.get(name)) != known}
        return {
            name: body for name, body in self.bodies.items()
            if name not in changed and (not changed or changed.isdisjoint(named(body)))
        }  # fmt: skip


def interface(fn: f.Fn | None) -> tuple[tuple[f.Var, ...], tuple[f.Type, ...]] | None:
    return None if fn is None else (fn.params, fn.results)


@remembered
def named(body: f.Block) -> frozenset[str]:
    """The functions that a body calls or differentiates."""
    return frozenset([bind.rhs.fn for bind in every(body) if isinstance(bind.rhs, (f.Call, f.Ad))])


last = Right(f.Program())


def verify(program: f.Program) -> f.Program:
    """Raises a Bug unless the program is well formed.  Functions that were right in the last call are skipped."""
    global last
    right = last.within(program)
    known: dict[int, f.Type] = {}
    effects = Effects(program)
    for decl in program.datas.values():
        for payload in decl.payloads:
            _Fn(program, decl.name, known, effects).type(payload if payload is not None else f.UNIT)
    for name, fn in program.fns.items():
        if name != fn.name:
            raise Bug(f"flat: {fn.name} is filed under {name}")
        if right.get(name) is not fn.body:
            _Fn(program, name, known, effects).function(fn)
    for what, name in mentioned_functions(program):
        if name not in program.fns:
            raise Bug(f"flat: {what} {name}, which is no function")
    last = Right(program)
    return program


def mentioned_functions(program: f.Program) -> Iterator[tuple[str, str]]:
    """The functions that are named outside of functions, and by what."""
    for name in program.exports.values():
        yield "an export is", name
    for name in program.checkpoints:
        yield "a checkpoint is", name
    for name, rule in program.rules.items():
        for used in (name, rule.fn, *([rule.pullback] if rule.pullback else [])):
            yield f"the rule of {name} names", used


class _Fn:
    """Checks one function.  `seen` holds every name bound so far; `scope` holds the visible names, in the order of
    their binding.  `known` holds the types checked before, by identity, because captured variables nest types
    deeply."""

    def __init__(self, program: f.Program, name: str, known: dict[int, f.Type], effects: Effects) -> None:
        self.program = program
        self.effects = effects
        self.name = name
        self.known = known
        self.seen: set[str] = set()
        self.scope: dict[str, f.Type] = {}
        self.bind_: f.Bind | None = None

    def wrong(self, what: str) -> Bug:
        at = "\n  " + bind_head(self.bind_) if self.bind_ else ""
        return Bug(f"flat: in {self.name}: {what}{at}")

    def expect(self, ok: bool, what: str) -> None:
        if not ok:
            raise self.wrong(what)

    # -- names and types ---------------------------------------------------------------------------------------

    def function(self, fn: f.Fn) -> None:
        self.declare(fn.params)
        self.block(fn.body, fn.results)

    def declare(self, vars_: tuple[f.Var, ...]) -> None:
        seen, scope, known = self.seen, self.scope, self.known
        for var in vars_:
            name, ty = var.name, var.ty
            if name in seen:
                raise self.wrong(f"{name} is bound twice")
            if id(ty) not in known:
                self.type(ty)
            seen.add(name)
            scope[name] = ty

    def type(self, ty: f.Type) -> None:
        if id(ty) in self.known:
            return
        self.known[id(ty)] = ty
        match ty:
            case f.Tup(items):
                for item in items:
                    self.type(item)
            case f.Arr(elem, rank):
                if rank < 1 or isinstance(elem, f.Arr):
                    raise self.wrong(f"no array type: {ty}")
                self.type(elem)
            case f.Ref(elem):
                self.type(elem)
            case f.Data(name):
                self.expect(name in self.program.datas, f"no data type {name}")
            case _:
                pass

    def atom(self, atom: f.Atom) -> f.Type:
        ty = atom.ty
        if isinstance(atom, f.Var):
            if (known := self.scope.get(atom.name)) is not ty:
                if known is None:
                    raise self.wrong(f"{atom.name} is not in scope")
                self.same(known, ty, atom.name)
        elif not _fits(atom.value, ty):
            raise self.wrong(f"{atom.value!r} is no constant of type {show_type(ty)}")
        return ty

    def atoms(self, atoms: tuple[f.Atom, ...]) -> tuple[f.Type, ...]:
        scope = self.scope
        for atom in atoms:  # most are variables of the very type
            if type(atom) is not f.Var or scope.get(atom.name) is not atom.ty:
                self.atom(atom)
        return tuple([atom.ty for atom in atoms])

    def same(self, actual: f.Type, expected: f.Type, what: str) -> None:
        if actual is not expected and actual != expected:
            raise self.wrong(f"{what} has type {show_type(actual)}, not {show_type(expected)}")

    def all_same(self, actual: tuple[f.Type, ...], expected: tuple[f.Type, ...], what: str) -> None:
        if actual == expected:
            return
        self.expect(len(actual) == len(expected), f"{what}: {len(actual)} for {len(expected)}")
        for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
            if a is not e:
                self.same(a, e, f"{what} {i}")

    # -- blocks and right-hand sides ---------------------------------------------------------------------------

    def block(self, block: f.Block, results: tuple[f.Type, ...] | None, *params: f.Var) -> tuple[f.Type, ...]:
        visible = len(self.scope)
        self.declare(params)
        for bind in block.binds:
            self.bind_, vars_, rhs = bind, bind.vars, bind.rhs
            bound = tuple([v.ty for v in vars_])
            found = RULES[type(rhs)](self, rhs, bound)
            if found != bound:
                self.all_same(bound, found, "binding")
            self.bind_ = bind
            self.declare(vars_)
        types = self.atoms(block.results)
        if results is not None:
            self.all_same(types, results, "result")
        while len(self.scope) > visible:
            self.scope.popitem()
        return types

    def call(self, call: f.Call, bound: tuple[f.Type, ...]) -> tuple[f.Type, ...]:
        callee = self.program.fns.get(call.fn)
        if callee is None:
            raise self.wrong(f"no function {call.fn}")
        self.all_same(self.atoms(call.args), tuple([p.ty for p in callee.params]), "argument")
        return callee.results

    def tuple_of(self, made: f.TupMake, bound: tuple[f.Type, ...]) -> tuple[f.Type, ...]:
        return (f.Tup(self.atoms(made.items)),)

    def component_of(self, get: f.TupGet, bound: tuple[f.Type, ...]) -> tuple[f.Type, ...]:
        return (self.component(self.atom(get.tup), get.index),)

    def if_(self, branch: f.If, bound: tuple[f.Type, ...]) -> tuple[f.Type, ...]:
        self.same(self.atom(branch.cond), f.BOOL, "condition")
        self.block(branch.then, bound)
        self.block(branch.else_, bound)
        return bound

    def component(self, ty: f.Type, index: int) -> f.Type:
        if not isinstance(ty, f.Tup) or index >= len(ty.items):
            raise self.wrong(f"no component {index}")
        return ty.items[index]

    def construction(self, con: f.ConMake, bound: tuple[f.Type, ...]) -> tuple[f.Type, ...]:
        payload = self.payload(con.data, con.tag)
        self.expect((con.arg is None) == (payload is None), "a payload too many or missing")
        if con.arg is not None and payload is not None:
            self.same(self.atom(con.arg), payload, "payload")
        return (f.Data(con.data),)

    def build(self, build: f.Build, bound: tuple[f.Type, ...]) -> tuple[f.Type, ...]:
        for n in (build.count, *[n for sizes in build.inner for n in sizes]):
            self.same(self.atom(n), f.I64, "count")
        self.same(build.index.ty, f.I64, "index")
        made = tuple(of_rank(t, 1) for t in self.block(build.body, None, build.index))
        for ty, sizes in zip(made, build.inner, strict=True) if build.inner else ():
            if sizes and len(sizes) != rank_of(ty) - 1:
                raise self.wrong(f"{len(sizes)} inner sizes of {ty}")
        return made

    def map(self, map_: f.Map, bound: tuple[f.Type, ...]) -> tuple[f.Type, ...]:
        for param, given in zip(map_.params, self.atoms(map_.inputs), strict=True):
            self.same(param.ty, elem_of(given), "parameter")
        elems = self.block(map_.body, None, *map_.params)
        return tuple(of_rank(t, rank) for t, rank in zip(elems, map_.ranks, strict=True))

    def par(self, par: f.Par, bound: tuple[f.Type, ...]) -> tuple[f.Type, ...]:
        for index, count in par.space:
            self.same(self.atom(count), f.I64, "count")
            self.same(index.ty, f.I64, "index")
        for atom in (n for out in par.outs for n in out.inner):
            self.same(self.atom(atom), f.I64, "inner size")
        self.expect(bool(par.space), "no dimensions")
        targets = [out.target for out in par.outs if isinstance(out.target, f.Var)]
        self.expect(len(set(targets)) == len(targets), "a target is used twice")
        if not par.ordered and (effect := self.effects.of(par.body)) is not None:
            raise self.wrong(f"{effect} in points that have no order")
        accs = accumulators(par)
        values = self.block(par.body, None, *(index for index, _ in par.space), *accs)
        self.expect(len(values) == len(par.outs), "not one result for each out")
        kinds = {out.kind for out in par.outs}
        self.expect("last" not in kinds or "done" in kinds, "only a device knows who is the last")
        self.expect(not any(out.team for out in par.outs) or par.space[0][1] == f.Const(1, f.I64), "a team of points")
        return tuple(self.out(out, len(par.space), ty) for out, ty in zip(par.outs, values, strict=True))

    def out(self, out: f.Out, dimensions: int, value: f.Type) -> f.Type:
        """The type of what an out makes of the points' values."""
        if (out.kind == "add") != (out.acc is not None) or (out.kind == "add" and out.target is None):
            raise self.wrong("only what is added to has a name in the body")
        match out.kind:
            case "keep":
                made = of_rank(value, dimensions)
                self.expect(not out.inner or len(out.inner) == rank_of(value), "not one size for each dimension")
                self.expect(sorted(out.order) in ([], [*range(rank_of(made))]), "no order of dimensions")
                self.expect(not out.order or (bool(out.inner) and out.target is None), "an order of what is not new")
            case "fold":
                self.expect(isinstance(value, f.Num) and out.rank < dimensions, "no sum of numbers")
                made = of_rank(value, 1 if out.kept else out.rank)
            case "add":
                made = value
                assert out.acc is not None
                self.same(out.acc.ty, value, "accumulator")
                self.expect(not out.inner or len(out.inner) == rank_of(value), "not one size for each dimension")
            case "done":
                self.same(value, f.BOOL, "done")
                made = f.BOOL
            case "last":
                self.same(value, f.I64, "place")
                self.expect(len(out.inner) == 1, "places have one length")
                made = f.Arr(f.I64, 1)
        if out.target is not None:
            self.same(self.atom(out.target), made, "target")
        return made

    def loop(self, loop: f.For | f.While, bound: tuple[f.Type, ...]) -> tuple[f.Type, ...]:
        state, collect = loop.state, loop.collect
        types = tuple(s.ty for s in state)
        index: tuple[f.Var, ...] = ()
        match loop:
            case f.For():
                self.same(self.atom(loop.count), f.I64, "count")
                self.same(loop.index.ty, f.I64, "index")
                index = (loop.index,)
            case f.While():
                self.block(loop.cond, (f.BOOL,), *state)
                for s in state:
                    self.seen.discard(s.name)
        self.all_same(self.atoms(loop.inits), types, "initial state")
        results = self.block(loop.body, None, *index, *state)
        self.all_same(results[: len(results) - collect], types, "next state")
        kept = results[len(results) - collect :]
        return (*types, f.Arr(f.Tup(kept), 1)) if collect else types

    def switch(self, switch: f.Switch, bound: tuple[f.Type, ...]) -> tuple[f.Type, ...]:
        ty = self.atom(switch.scrutinee)
        for case in switch.cases:
            if case.payload is None:
                self.block(case.body, bound)
                continue
            payload = self.payload(ty.name, case.tag) if isinstance(ty, f.Data) else None
            if payload is None:
                raise self.wrong(f"constructor {case.tag} has no payload")
            self.same(case.payload.ty, payload, "payload")
            self.block(case.body, bound, case.payload)
        if switch.default is not None:
            self.block(switch.default, bound)
        return bound

    def payload(self, data: str, tag: int) -> f.Type | None:
        self.expect(data in self.program.datas, f"no data type {data}")
        payloads = self.program.datas[data].payloads
        self.expect(0 <= tag < len(payloads), f"{data} has no constructor {tag}")
        return payloads[tag]

    def ad(self, ad: f.Ad, bound: tuple[f.Type, ...]) -> tuple[f.Type, ...]:
        self.expect(ad.fn in self.program.fns, f"no function {ad.fn}")
        fn = self.program.fns[ad.fn]
        types = self.atoms(ad.args)
        params, (result, *others) = tuple(p.ty for p in fn.params), fn.results
        match ad.mode:
            case "jvp":
                self.all_same(types, (*params, params[-1]), "argument")
                return (result, result, *others)
            case "jet":
                self.all_same(types, (*params[:-1], f.I64, params[-1]), "argument")
                self.expect(f.is_float(params[-1]), "a jet is by a float")
                return (result, of_rank(result, 1), *others)
            case "vjp":
                self.all_same(types, params, "argument")
                return (result, f.Res(ad.site), *others)
            case "pullback":
                self.all_same(types, (f.Res(ad.site), result), "argument")
                return (params[-1],)

    def op(self, op: f.Op, bound: tuple[f.Type, ...]) -> tuple[f.Type, ...]:
        types, attrs = self.atoms(op.args), dict(op.attrs) if op.attrs else NO_ATTRS
        try:
            row = OPS[op.op]
            if row.second is not None:
                self.same(types[1], row.second(types, attrs), "second operand")
            results = row.result(types, attrs)
        except (Bug, KeyError, IndexError) as problem:
            raise self.wrong(str(problem)) from problem
        return bound if results is None else results


# How each right-hand side is checked: (checker, it, the types of the variables that it binds) -> the types that it has.
RULES: dict[type, Callable[..., tuple[f.Type, ...]]] = {
    f.Op: _Fn.op, f.Call: _Fn.call, f.Ad: _Fn.ad, f.TupMake: _Fn.tuple_of, f.TupGet: _Fn.component_of,
    f.ConMake: _Fn.construction, f.If: _Fn.if_, f.Switch: _Fn.switch, f.For: _Fn.loop, f.While: _Fn.loop,
    f.Build: _Fn.build, f.Map: _Fn.map, f.Par: _Fn.par,
}  # fmt: skip


def _fits(value: object, ty: f.Type) -> bool:
    if isinstance(ty, f.Num):
        return type(value) is VALUES.get(ty.name)
    match ty:
        case f.Str():
            return isinstance(value, str)
        case f.Tup(items):
            return value == () and not items
        case _:
            return value is None
