"""Checks that core is well formed: names are in scope, types agree, primitives are saturated.

Sizes are not compared: the program checks at run time what inference could not prove about them.
"""

from __future__ import annotations

from collections.abc import Mapping

from dpl.core import term as c
from dpl.core import ty
from dpl.diagnostics import Bug
from dpl.prims import TABLE

VARIED = {"index": 2, "update": 3, "reshape": 2, "sized": 1}  # the least number of arguments
Signature = tuple[tuple[ty.Var, ...], ty.Ty]


def verify(program: c.Program, library: bool = False) -> None:
    """Raises Bug if the program is not well formed.  With `library`, checks the whole standard library too."""
    globals_ = {item.name: (item.params, item.ty) for item in program.items if isinstance(item, c.Def)}
    items = list(program.items)
    if library:
        items += [program.library[name] for name in program.library]
    for item in items:
        checker = Checker(program, globals_, item.name if isinstance(item, c.Def) else "do")
        if isinstance(item, c.Def):
            checker.same(item.body.ty, item.ty, item.body)
        checker.term(item.body, {})


class Checker:
    def __init__(self, program: c.Program, globals_: Mapping[str, Signature], where: str) -> None:
        self.program, self.globals, self.where = program, globals_, where

    def wrong(self, what: str, t: c.Term) -> Bug:
        """The Bug that core is not well formed at a term."""
        return Bug(f"core of {self.where}: {what} at {t.span}")

    def same(self, a: ty.Ty | None, b: ty.Ty | None, t: c.Term) -> None:
        """Raises a Bug unless two types are equal."""
        if not equal(a, b):
            raise self.wrong(f"{a} is not {b}", t)

    def signature(self, name: str, env: Mapping[str, Signature], t: c.Term) -> Signature:
        """The type parameters and the type of a name.  Raises a Bug if it is not in scope."""
        found = env.get(name) or self.globals.get(name)
        if found is None:
            definition = self.program.library.get(name)
            if definition is None:
                raise self.wrong(f"{name} is not in scope", t)
            found = definition.params, definition.ty
        return found

    def term(self, t: c.Term, env: dict[str, Signature]) -> None:
        """Checks a term and all of its parts."""
        while True:  # along the spine of lets
            match t:
                case c.Let(_, u, name, params, rhs, body):
                    self.term(rhs, env)
                    self.same(u, body.ty, t)
                    env = {**env, name: (params, rhs.ty)} if mentions_little(env) else add(env, name, (params, rhs.ty))
                    t = body
                case c.LetRec(_, u, params, bindings, body):
                    env = {**env, **{n: (params, v.ty) for n, v in bindings}}
                    for _, value in bindings:
                        if not isinstance(value, c.Lam):
                            raise self.wrong("a recursive definition that is no function", t)
                        self.term(value, env)
                    self.same(u, body.ty, t)
                    t = body
                case _:
                    return self.shape(t, env)

    def shape(self, t: c.Term, env: dict[str, Signature]) -> None:
        """Checks that the types of a term's parts fit together."""
        match t:
            case c.Var():
                self.variable(t, env)
            case c.Lam(_, ty.Fn(arg, _, result), param, body):
                self.same(body.ty, result, t)
                self.term(body, {**env, param: ((), arg)})
            case c.App(_, u, fn, arg):
                if not isinstance(fn.ty, ty.Fn):
                    raise self.wrong(f"{fn.ty} is applied", t)
                self.same(fn.ty.arg, arg.ty, t)
                self.same(fn.ty.result, u, t)
                self.term(fn, env)
                self.term(arg, env)
            case c.If(_, u, cond, then, else_):
                self.same(cond.ty, ty.BOOL, t)
                self.same(then.ty, u, t)
                self.same(else_.ty, u, t)
                for part in (cond, then, else_):
                    self.term(part, env)
            case c.Match():
                self.match(t, env)
            case c.Shift(_, u, name, body):
                self.term(body, {**env, name: ((), ty.Fn(u, ty.PURE, body.ty))})
            case c.Check(_, u, name, body, pairs):
                self.same(u, body.ty, t)
                self.term(body, env)
                for actual, expected, _ in pairs:
                    self.term(actual, {**env, name: ((), u)})
                    self.term(expected, {**env, name: ((), u)})
            case _:
                for part in self.parts(t, env):
                    self.term(part, env)

    def variable(self, t: c.Var, env: dict[str, Signature]) -> None:
        for one in t.sizes:
            for n in one:
                self.same(n.ty, ty.I64, t)
                self.term(n, env)
        params, general = self.signature(t.name, env, t)
        if len(params) != len(t.inst):
            raise self.wrong(f"{t.name} wants {len(params)} instances, has {len(t.inst)}", t)
        wanted = ty.substitute(general, {p.name: i for p, i in zip(params, t.inst)}) if params else general
        self.same(t.ty, wanted, t)

    def match(self, t: c.Match, env: dict[str, Signature]) -> None:
        self.term(t.scrutinee, env)
        for arm in t.arms:
            self.same(arm.body.ty, t.ty, t)
            inner = {**env, **{n: ((), v) for n, v in self.pattern(arm.pattern, t.scrutinee.ty, t).items()}}
            for part in (arm.guard, arm.body):
                if part is not None:
                    self.term(part, inner)

    def parts(self, t: c.Term, env: dict[str, Signature]) -> tuple[c.Term, ...]:
        """Check a form.  Returns its parts with the same names in scope, which are still to be checked."""
        match t:
            case c.Prim(_, _, op, args):
                wanted = VARIED.get(op, 2 if op == "dim" else TABLE[op].arity if op in TABLE else -1)
                if len(args) < wanted or (op not in VARIED and len(args) != wanted):
                    raise self.wrong(f"{op} of {len(args)} arguments", t)
                return args
            case c.Tuple(_, u, items):
                self.same(u, ty.Tup(tuple(i.ty for i in items)), t)
                return items
            case c.ArrayLit(_, ty.Arr(elem, _), items):
                for item in items:
                    self.same(item.ty, elem, t)
                return items
            case c.Con():
                return self.construction(t)
            case c.Field() | c.Update():
                return self.record(t)
            case c.For() | c.While() | c.Build():
                return self.loop(t, env)
            case c.Reset(_, u, body):
                self.same(u, body.ty, t)
                return (body,)
            case c.Lit() | c.Extern():
                return ()
            case _:
                raise self.wrong(f"no term of core: {t}", t)

    def record(self, t: c.Field | c.Update) -> tuple[c.Term, ...]:
        wanted = self.fields(t.record.ty, t)
        if isinstance(t, c.Field):
            self.same(wanted[t.index], t.ty, t)
            return (t.record,)
        self.same(t.record.ty, t.ty, t)
        for index, value in t.fields:
            self.same(value.ty, wanted[index], t)
        return (t.record, *(value for _, value in t.fields))

    def fields(self, u: ty.Ty, t: c.Term) -> tuple[ty.Ty | None, ...]:
        """The types of a record's fields."""
        content = self.case(u, 0, t)[1]
        return content.items if isinstance(content, ty.Tup) and len(self.data(u, t)[0].fields) != 1 else (content,)

    def construction(self, t: c.Con) -> tuple[c.Term, ...]:
        case_name, content = self.case(t.ty, t.tag, t)
        if case_name != t.name or (t.arg is None) != (content is None):
            raise self.wrong(f"constructor {t.name} of {t.ty}", t)
        if t.arg is None:
            return ()
        self.same(t.arg.ty, content, t)
        return (t.arg,)

    def loop(self, t: c.For | c.While | c.Build, env: dict[str, Signature]) -> tuple[c.Term, ...]:
        """Check a loop.  Returns the terms outside the scope of its variables, which are still to be checked."""
        match t:
            case c.For(_, u, state, init, index, count, body):
                self.same(init.ty, u, t)
                self.same(body.ty, u, t)
                self.term(body, {**env, state: ((), u), index: ((), ty.I64)})
                return init, count
            case c.While(_, u, state, init, cond, body):
                self.same(init.ty, u, t)
                self.same(body.ty, u, t)
                self.term(cond, {**env, state: ((), u)})
                self.term(body, {**env, state: ((), u)})
                return (init,)
            case c.Build(_, ty.Arr(elem, _), index, count, body):
                self.same(body.ty, elem, t)
                self.term(body, {**env, index: ((), ty.I64)})
                return (count,)
            case _:
                raise self.wrong(f"a comprehension of type {t.ty}", t)

    def data(self, u: ty.Ty, t: c.Term) -> tuple[c.Data, ty.Con]:
        if isinstance(u, ty.Con):
            data = c.LIST if u.name == "list" else self.program.datas.get(u.name)
            if data is not None:
                return data, u
        raise self.wrong(f"{u} is no data type", t)

    def case(self, u: ty.Ty, tag: int, t: c.Term) -> tuple[str, ty.Ty | None]:
        """The name of a constructor, and the type of its argument in this type; None if it has none."""
        data, con = self.data(u, t)
        name, content = data.cases[tag]
        env = {p.name: a for p, a in zip(data.params, con.args)}
        return name, None if content is None else ty.substitute(content, env)

    def pattern(self, p: c.Pattern, u: ty.Ty, t: c.Term) -> dict[str, ty.Ty]:
        """The variables of a pattern for values of type `u`, with their types."""
        self.same(p.ty, u, t)
        match p, u:
            case ((c.PWild() | c.PLit() | c.PCon(arg=None)), _):
                return {}
            case c.PVar(_, name), _:
                return {name: u}
            case c.PTuple(_, items), ty.Tup(parts) if len(items) == len(parts):
                return {n: v for i, part in zip(items, parts) for n, v in self.pattern(i, part, t).items()}
            case c.PArray(_, items), ty.Arr(elem):
                return {n: v for i in items for n, v in self.pattern(i, elem, t).items()}
            case c.PCon(_, name, tag, arg), _:
                content = self.case(u, tag, t)[1]
                if arg is None or content is None:
                    raise self.wrong(f"constructor {name} of {u}", t)
                return self.pattern(arg, content, t)
            case c.PAs(_, inner, name), _:
                return {**self.pattern(inner, u, t), name: u}
            case c.POr(_, left, right), _:
                found = self.pattern(left, u, t)
                if found.keys() != self.pattern(right, u, t).keys():
                    raise self.wrong("an or-pattern with different variables", t)
                return found
            case _:
                raise self.wrong(f"the pattern {p} for {u}", t)


def mentions_little(env: dict) -> bool:
    """True if copying the scope is cheap.  A long chain of lets updates one scope instead, since names are unique."""
    return len(env) < 64


def add(env: dict, name: str, signature: Signature) -> dict:
    env[name] = signature
    return env


def equal(a, b) -> bool:
    """Equality up to sizes; effects are equal if both or neither are ctl.  A lift equals every type, because inference
    may have resolved it by relations that core does not record."""
    if a is b:
        return True
    match a, b:
        case (ty.Lift(), _) | (_, ty.Lift()):
            return True
        case (ty.Size(), _) | (_, ty.Size()):
            return isinstance(a, ty.Size) and isinstance(b, ty.Size)
        case ty.Var(m), ty.Var(n):
            return m == n
        case ty.Con(m, xs), ty.Con(n, ys):
            return m == n and len(xs) == len(ys) and all(map(equal, xs, ys))
        case ty.Tup(xs), ty.Tup(ys):
            return len(xs) == len(ys) and all(map(equal, xs, ys))
        case ty.Arr(x, _), ty.Arr(y, _):
            return equal(x, y)
        case ty.Fn(x, e, r), ty.Fn(y, f, s):
            return equal(x, y) and isinstance(e, ty.Ctl) == isinstance(f, ty.Ctl) and equal(r, s)
        case ty.Ctl(r), ty.Ctl(s):
            return equal(r, s)
        case _:
            pass
    return type(a) is type(b) and a == b


__all__ = ["verify"]
