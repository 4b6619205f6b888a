"""Store passing: flat -> flat where references that derivatives flow through become places in a store.

    fn bump(r: ref f64, x: f64) -> ()              fn bump(held: f64[], r: i64, x: f64) -> (f64[])
      y = ref_get r                                  y = index held r
      z = add y x                           =>       z = add y x
      ref_set r z                                    held' = update held z r
      return                                         return held'

Code without effects needs no special rules in forward mode, reverse mode, loops, checkpoints, or any nesting of them.
The cotangent of the store is a shadow memory, and as the store has one owner, both are updated in place.

There is one store for each content (`ad/stores/carried.py`): an array, and the number of places in use.  A function
takes and returns it only if it uses references that others made (`ad/stores/effects.py`).  A function that is closed to
them begins with an empty store, which disappears when it returns.  Code that can return a new reference also returns
the number of places in use, and so does all code that makes some, if references can hold such references.  After any
other code the number is as before, so the references that a call or a step of a loop made there are dropped.

Only the value is differentiated: the store that a function returns is passed on unchanged.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from dpl.node import node, replace

from dplc.ad.stores.carried import carried
from dplc.ad.stores.effects import Effects, content_of, on_references
from dplc.ad.stores.shared_arrays import share_arrays
from dplc.flat import term as f
from dplc.flat.ops.row import Effect
from dplc.flat.retype import Retype
from dplc.flat.show import show_type
from dplc.flat.walk import binders, blocks, every, mentioned, supply_for
from dplc.passes import NeedsInterpreter
from dplc.passes.recursion.state_passing import Env, Threads
from dplc.passes.recursion.tail_calls import blank
from dplc.passes.simplify.simplify import simplify


def pass_stores(program: f.Program) -> f.Program:
    """Shares arrays first.  If that leads to a store that cannot be passed, the arrays stay as they are."""
    shared = share_arrays(program)
    if shared is not program:
        try:
            return passed(simplify(shared))
        except NeedsInterpreter:  # a store that could not be passed along would be for speed only
            pass
    return passed(program)


def passed(program: f.Program) -> f.Program:
    contents = carried(program)
    if not contents:
        return program
    effects = Effects(program, contents)
    refuse_rules(program, effects)
    work = _Stores(supply_for(program), effects, sorted(contents, key=show_type))
    fns = {name: work.function(fn) for name, fn in program.fns.items()}
    datas = {name: work.retype.data(decl) for name, decl in program.datas.items()}
    return replace(program, fns=fns, datas=datas)


def refuse_rules(program: f.Program, effects: Effects) -> None:
    for name, rule in program.rules.items():
        for used in filter(None, (name, rule.fn, rule.pullback)):
            if any(effects.of(used, content) is not Effect.NONE for content in effects.contents):
                message = "a function with a derivative of its own changes references through which derivatives flow"
                raise NeedsInterpreter(message, program.fns[name].span)


@node
class Held:
    """The array of the contents at all places."""

    content: f.Type


@node
class Count:
    """The number of places in use."""

    content: f.Type


class AsPlaces(Retype):
    """Replaces references to some contents by the numbers of their places."""

    def __init__(self, contents: Iterable[f.Type]) -> None:
        super().__init__(f.Res)
        self.contents = frozenset(contents)

    def _type(self, ty: f.Type) -> f.Type:
        match ty:
            case f.Ref(content) if content in self.contents:
                return f.I64
            case f.Res():
                return ty
            case _:
                return super()._type(ty)


class _Stores(Threads):
    """`same` maps references made here to their places."""

    def __init__(self, supply: f.Supply, effects: Effects, contents: list[f.Type]) -> None:
        super().__init__(supply)
        self.effects = effects
        self.contents = contents
        self.retype = AsPlaces(contents)
        self.same: dict[str, f.Atom] = {}

    def function(self, fn: f.Fn) -> f.Fn:
        self.same = {}  # names are those of one function: another one may have the same
        env: Env = {}
        begin: list[f.Bind] = []
        for content in self.contents:
            if self.effects.of(fn.name, content) is not Effect.NONE:
                env |= {key: f.Var(self.supply.fresh("held"), self.type(key)) for key in self.taken(fn.name, content)}
            elif self.touched(fn.body, content):
                self.open(content, fn.body, env, begin)
        params = [env[key] for content in self.contents for key in self.taken(fn.name, content)]
        keys = [key for content in self.contents for key in self.given(fn.name, content)]
        body = self.block(fn.body, env, keys)
        return f.Fn(
            fn.name, (*(p for p in params if isinstance(p, f.Var)), *self.vars(fn.params)),
            (*map(self.retype.type, fn.results), *map(self.type, keys)),
            f.Block((*begin, *body.binds), body.results), fn.label, fn.span,
        )  # fmt: skip

    def taken(self, fn: str, content: f.Type) -> Iterator[Hashable]:
        """The parts of the store that a function takes."""
        effect = self.effects.of(fn, content)
        if effect is not Effect.NONE:
            yield Held(content)
        if Effect.NEW in effect:
            yield Count(content)

    def given(self, fn: str, content: f.Type) -> Iterator[Hashable]:
        """The parts of the store that a function returns."""
        if Effect.WRITE in self.effects.of(fn, content):
            yield Held(content)
        if self.effects.gives(fn, content):
            yield Count(content)

    # ---- stores of one function ---------------------------------------------------------------------------------

    def open(self, content: f.Type, block: f.Block, env: Env, begin: list[f.Bind]) -> None:
        """An empty store at the beginning of a block, with room for the references that the block itself makes."""
        filler = self.wrapped(content, blank(self.retype.type(content), begin, self.supply), begin)
        (held,) = self.fresh([Held(content)])
        size = f.Const(max(1, made(block, content)), f.I64)
        begin.append(f.Bind((held,), f.Op("fill", (size, filler))))
        env |= {Held(content): held, Count(content): f.Const(0, f.I64)}

    def touched(self, block: f.Block, content: f.Type) -> bool:
        """True if a block uses references to this content."""
        for bind in every(block):
            match bind.rhs:
                case f.Op(op) if on_references(op) and content_of(bind.rhs, bind.vars) == content:
                    return True
                case f.Call(fn) | f.Ad("jvp" | "vjp" | "jet", fn) if self.effects.of(fn, content) is not Effect.NONE:
                    return True
                case _:
                    pass
        return False

    def element(self, bind: f.Bind, build: f.Build, env: Env, begin: list[f.Bind]) -> Env:
        """Elements that use only references of their own have a store each."""
        inside = {v.name for b in every(build.body) for v in (*b.vars, *binders(b.rhs))}
        outer = [var.ty for name, var in mentioned(build.body).items() if name not in inside]
        known = frozenset[f.Type]().union(*map(self.effects.holds.of, (*outer, *(v.ty for v in bind.vars))))
        env = dict(env)
        for content in self.contents:
            if content not in known:
                for key in (Held(content), Count(content)):
                    env.pop(key, None)
        if not self.changed(bind, env):
            for content in self.contents:
                if content not in known and self.touched(build.body, content):
                    self.open(content, build.body, env, begin)
        return env

    # ---- what threading asks -------------------------------------------------------------------------------------

    def type(self, key: Hashable) -> f.Type:
        match key:
            case Held(f.Arr() as content):
                return f.Arr(f.Tup((content,)), 1)
            case Held(content):
                return f.Arr(self.retype.type(content), 1)
            case _:
                return f.I64

    def matters(self, key: Hashable, vars_: tuple[f.Var, ...]) -> bool:
        if not isinstance(key, Count) or self.effects.within_others(key.content):
            return True
        return any(key.content in self.effects.holds.of(var.ty) for var in vars_)

    def writes(self, rhs: f.Rhs) -> Iterator[Hashable]:
        match rhs:
            case f.Op("ref_set", (_, content)):
                yield Held(content.ty)
            case f.Op("ref_new", (content,)):
                yield from (Held(content.ty), Count(content.ty))
            case f.Call(fn) | f.Ad("jvp" | "vjp" | "jet", fn):
                for content in self.contents:
                    yield from self.given(fn, content)
            case _:
                pass

    def atom(self, atom: f.Atom) -> f.Atom:
        return self.same[atom.name] if isinstance(atom, f.Var) and atom.name in self.same else self.retype.atom(atom)

    def var(self, var: f.Var) -> f.Var:
        return self.retype.var(var)

    # ---- bindings ------------------------------------------------------------------------------------------------

    def plain(self, bind: f.Bind, env: Env, out: list[f.Bind]) -> None:
        match bind.rhs:
            case f.Op(op) if on_references(op) and Held(content_of(bind.rhs, bind.vars)) in env:
                self.operation(bind, bind.rhs, env, out)
            case f.Call(fn) | f.Ad("jvp" | "vjp" | "jet", fn) as call:
                rhs = self.again(call)
                assert isinstance(rhs, f.Call | f.Ad)
                stores = [env[key] for content in self.contents for key in self.taken(fn, content)]
                keys = [key for content in self.contents for key in self.given(fn, content)]
                after = self.fresh(keys)
                out.append(f.Bind((*self.vars(bind.vars), *after), with_args(rhs, (*stores, *rhs.args))))
                env.update(zip(keys, after, strict=True))
            case rhs:
                out.append(f.Bind(self.vars(bind.vars), self.again(rhs)))

    def operation(self, bind: f.Bind, op: f.Op, env: Env, out: list[f.Bind]) -> None:
        content = content_of(op, bind.vars)
        held, count = Held(content), Count(content)
        match op.op:
            case "ref_get":
                if isinstance(content, f.Arr):
                    tup = f.Var(self.supply.fresh("t"), f.Tup((content,)))
                    out.append(f.Bind((tup,), unchecked("index", env[held], self.atom(op.args[0]))))
                    out.append(f.Bind(bind.vars, f.TupGet(tup, 0)))
                else:
                    out.append(f.Bind(self.vars(bind.vars), unchecked("index", env[held], self.atom(op.args[0]))))
            case "ref_set":
                self.update(held, self.atom(op.args[0]), self.atom(op.args[1]), env, out)
            case _:  # ref_new
                place = self.same[bind.vars[0].name] = env[count]
                if isinstance(place, f.Var):
                    self.grow(content, env, out)
                self.update(held, place, self.atom(op.args[0]), env, out)
                env[count] = self.after(place, out)

    def update(self, held: Held, place: f.Atom, value: f.Atom, env: Env, out: list[f.Bind]) -> None:
        (after,) = self.fresh([held])
        value = self.wrapped(held.content, value, out)
        out.append(f.Bind((after,), unchecked("update", env[held], value, place)))
        env[held] = after

    def wrapped(self, content: f.Type, value: f.Atom, out: list[f.Bind]) -> f.Atom:
        """A content as an element of a store: an array is no element of an array, but may be in a tuple."""
        if not isinstance(content, f.Arr):
            return value
        tup = f.Var(self.supply.fresh("t"), f.Tup((content,)))
        out.append(f.Bind((tup,), f.TupMake((value,))))
        return tup

    def after(self, place: f.Atom, out: list[f.Bind]) -> f.Atom:
        """The next place."""
        if isinstance(place, f.Const) and isinstance(place.value, int):
            return f.Const(place.value + 1, f.I64)
        more = f.Var(self.supply.fresh("count"), f.I64)
        out.append(f.Bind((more,), f.Op("add", (place, f.Const(1, f.I64)))))
        return more

    def grow(self, content: f.Type, env: Env, out: list[f.Bind]) -> None:
        """Doubles a store if it is full."""
        key = Held(content)
        size, full = f.Var(self.supply.fresh("dim"), f.I64), f.Var(self.supply.fresh("full"), f.BOOL)
        out.append(f.Bind((size,), f.Op("dim", (env[key],), (("k", 0),))))
        out.append(f.Bind((full,), f.Op("ge", (env[Count(content)], size))))
        more: list[f.Bind] = []
        filler = self.wrapped(content, blank(self.retype.type(content), more, self.supply), more)
        room, longer, after = self.fresh([key, key, key])
        more.append(f.Bind((room,), f.Op("fill", (size, filler))))
        more.append(f.Bind((longer,), f.Op("concat", (env[key], room))))
        out.append(f.Bind((after,), f.If(full, f.Block(tuple(more), (longer,)), f.Block((), (env[key],)))))
        env[key] = after


def unchecked(op: str, *args: f.Atom) -> f.Op:
    return f.Op(op, args, (("unchecked", True),))


def with_args(rhs: f.Call | f.Ad, args: tuple[f.Atom, ...]) -> f.Call | f.Ad:
    if isinstance(rhs, f.Call):
        return f.Call(rhs.fn, args, rhs.span)
    return f.Ad(rhs.mode, rhs.fn, args, rhs.site, rhs.span)


def made(block: f.Block, content: f.Type) -> int:
    """The greatest number of places that a block takes for references made one after the other.  The condition of a
    while loop counts twice, as it may be evaluated at two places."""
    count = 0
    for bind in block.binds:
        if isinstance(bind.rhs, f.Op) and bind.rhs.op == "ref_new":
            count += bind.rhs.args[0].ty == content
        inner = blocks(bind.rhs)
        count += sum(made(b, content) for b in inner)
        if isinstance(bind.rhs, f.While):
            count += made(bind.rhs.cond, content)
    return count
