"""A flat function being built (`Body`), and the state that all functions of a program share (`Lowering`).

Each lambda becomes one flat function for each (ground types of captures, argument, result) at which it is needed.  Its
parameters are its captures, then its own parameter.  Where only one lambda is possible, a function value is the tuple
of its captures: calling it is a direct call, and a partial application is only a longer tuple.  Otherwise it is a Data
with one constructor for each lambda, and an `apply` function switches on it (defunctionalisation).

The function that lowers terms is passed in (`Lowering.term`), so code that builds a body needs only this file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from dpl.core import term as c
from dpl.core import ty as t
from dpl.diagnostics import Bug
from dpl.node import record
from dpl.source import NOWHERE, Span
from dpl.syntax.load import module_name

from dplc.flat import term as f
from dplc.flat.local_names import LocalNames, Named
from dplc.flat.values import UNIT, Bundle, Value, ValueBuilder, block_of, leaves, pieces
from dplc.narrow import expect_type
from dplc.passes.closures.ground import Interner, Layout, Scope, ground_set
from dplc.passes.closures.lambda_sets import Solved
from dplc.passes.closures.set_types import Lambda, Member

RULED = ("with_vjp", "with_jvp")

LowerTerm = Callable[["Body", c.Term, bool], Value]  # lowers a term into a body; `True`: tuples may stay whole


@record
class Instance:
    """A lambda at ground types.  It is lowered only if it is called."""

    name: str
    source: Lambda
    captures: tuple[t.Ty, ...]
    ty: t.Fn
    scope: Scope
    called: bool = False


class Lowering:
    """The state that the functions of a program share.  `term` lowers a term; `lower.py` passes it in."""

    def __init__(self, solved: Solved, term: LowerTerm, names: LocalNames | None = None) -> None:
        self.solved = solved
        self.names = names  # of local variables, if debuggers ask for them
        self.term = term
        self.datas = solved.datas
        self.interner = Interner()
        self.layout = Layout(solved.datas)
        self.program = f.Program(datas=self.layout.declared)
        self.instances: dict[tuple, Instance] = {}
        self.made: dict[tuple, str] = {}  # functions that come from no lambda, by key
        self.todo: deque[Callable[[], None]] = deque()

    # ---- functions --------------------------------------------------------------------------------------------------

    def name(self, hint: str) -> str:
        """A new name for a function, which is reserved."""
        name = f"{hint}.{len(self.program.fns)}"
        self.program.fns[name] = f.Fn(name, (), (), f.Block((), ()))  # to be replaced
        return name

    def instance(self, source: Lambda, captures: tuple[t.Ty, ...], ty: t.Fn) -> Instance:
        """The function of flat for a lambda with captures of these types."""
        key = (source.id, captures, ty.arg, ty.result)
        found = self.instances.get(key)
        if found is None:
            scope = Scope(self.interner)
            for solved, ground in zip(source.captures.values(), captures, strict=True):
                scope.bind(solved, ground)
            scope.bind(source.arg, ty.arg)
            scope.bind(source.result, ty.result)
            found = self.instances[key] = Instance("", source, captures, ty, scope)
        return found

    def called(self, instance: Instance) -> str:
        """The name of an instance's function.  The function will be lowered."""
        if not instance.called:
            instance.called = True
            instance.name = self.name(last_name(instance.source.label) or "fun")
            self.todo.append(lambda: self.lower_instance(instance))
        return instance.name

    def lower_instance(self, instance: Instance) -> None:
        source = instance.source
        body = Body(self, instance.scope)
        params = [*zip(source.captures, instance.captures, strict=True), (source.param, instance.ty.arg)]
        vars_ = tuple([body.b.var(name, self.layout.flat(ty)) for name, ty in params])
        for (name, _), var in zip(params, vars_, strict=True):
            body.env[name] = body.b.explode(var)
            body.name(name, var, source.body)
        body.env |= body.peers(instance, body.env)
        self.finish(instance.name, vars_, body, body.whole(source.body), label=qualified(source), span=source.span)

    def finish(
        self, name: str, params: tuple[f.Var, ...], body: Body, *results: f.Atom, label: str = "", span: Span = NOWHERE
    ) -> None:
        """Adds a function that is complete."""
        types = tuple([r.ty for r in results])
        fn = f.Fn(name, params, types, block_of(body.b.binds, results), label, span)
        self.program.fns[name] = self.names.given(fn, body.named) if self.names else fn

    def function(self, key: tuple, params: Sequence[f.Type], make: Callable[..., Sequence[f.Atom] | f.Atom]) -> str:
        """A function made by the compiler, once for each key.  `make(body, *parameters as values)` returns its
        results."""
        name = self.made.get(key)
        if name is None:
            name = self.made[key] = self.name(key[0])
            self.todo.append(lambda: self.lower_made(name, params, make))
        return name

    def lower_made(self, name: str, params: Sequence[f.Type], make: Callable) -> None:
        body = Body(self, Scope(self.interner))
        vars_ = tuple([body.b.var("x", ty) for ty in params])
        results = make(body, *[body.b.explode(v) for v in vars_])
        self.finish(name, vars_, body, *(results if isinstance(results, list) else [results]))

    def applying(self, ty: t.Fn) -> str:
        """The function that applies any closure of an arrow type: (closure, argument) -> result."""
        functions = ground_set(ty)

        def make(body: Body, closure: Value, arg: Value) -> f.Atom:
            if not functions.boxed:
                return body.b.atom(body.apply(closure, ty, arg, NOWHERE, whole=True))
            closure = body.b.atom(closure)
            payloads = [self.layout.payload(m, captures) for m, captures in functions.members.items()]
            vars_ = [body.b.var("captured", p) if p.items else None for p in payloads]

            def case(member: Member, captures: tuple[t.Ty, ...], var: f.Var | None) -> Value:
                payload = () if var is None else pieces(body.b.explode(var))
                return body.enter(member, captures, payload, ty, arg, NOWHERE, whole=True)

            thunks = [lambda m=m, cs=cs, v=v: case(m, cs, v) for (m, cs), v in zip(functions.members.items(), vars_)]
            return body.b.atom(
                body.join(
                    thunks,
                    lambda blocks: f.Switch(
                        closure,
                        tuple(
                            [
                                f.Case(tag, var, block)
                                for tag, (var, block) in enumerate(zip(vars_, blocks, strict=True))
                            ]
                        ),
                        None,
                    ),
                    whole=True,
                )
            )

        return self.function(("apply", ty), (self.layout.flat(ty), self.layout.flat(ty.arg)), make)


def qualified(source: Lambda) -> str:
    """The name of a function in messages.  A library function has its module in front.  A function with a rule has no
    name: users call it by another than `with_vjp`."""
    if source.label in RULED:
        return ""
    where = source.span.source
    return f"{module_name(Path(where.name))}.{source.label}" if source.label and where.in_library else source.label


def last_name(label: str) -> str:
    return label.rpartition(".")[2]


def written(name: str) -> str:
    """The name of a variable as the program has it: `scaled.3` and `main.scaled#2` are both `scaled`."""
    first, _, last = name.rpartition(".")
    return first if last.isdigit() else last.partition("#")[0]


def text_of(e: c.Term) -> Span:
    """The text of a term.  The span of a Let is that of its binding, also where the binding is a pattern."""
    last = e
    while isinstance(last, c.Let | c.LetRec | c.Match):
        last = last.arms[-1].body if isinstance(last, c.Match) else last.body
    return Span(e.span.source, e.span.start, last.span.end)


class Body:
    """A flat function being built."""

    def __init__(self, up: Lowering, scope: Scope, env: dict[str, Value] | None = None) -> None:
        self.up = up
        self.scope = scope
        self.env: dict[str, Value] = {} if env is None else env
        self.named: list[Named] = []  # what debuggers show
        self.b = ValueBuilder()

    def bind(self, name: str, value: Value, scope: c.Term) -> None:
        """Binds a variable of the program, which is seen in `scope`."""
        self.env[name] = value
        self.name(name, value, scope)

    def name(self, name: str, value: Value, scope: c.Term) -> None:
        """Tells debuggers what a value is called in a term, if any ask."""
        if self.up.names:
            self.named.append(Named(written(name), value, text_of(scope)))

    def type_of(self, e: c.Term) -> t.Ty:
        """The ground type of a term."""
        ty = self.up.solved.types.get(id(e))
        return e.ty if ty is None else self.scope.ground(ty)

    def flat(self, e: c.Term) -> f.Type:
        """The type of flat that a term has."""
        return self.up.layout.flat(self.type_of(e))

    # ---- closures ---------------------------------------------------------------------------------------------------

    def close(self, ty: t.Ty, member: Member, payload: Sequence[Value]) -> Value:
        """The function value of arrow type `ty` for this lambda or pullback and these captures."""
        functions = ground_set(ty)
        if not functions.boxed:
            return Bundle(tuple(payload)) if payload else UNIT
        data = self.up.layout.flat(ty)
        tag = list(functions.members).index(member)
        arg = self.b.atom(Bundle(tuple(payload))) if payload else None
        return self.b.one(f.ConMake(expect_type(f.Data, data).name, tag, arg), data, "fn")

    def peers(self, instance: Instance, known: dict[str, Value]) -> dict[str, Value]:
        """The local functions that an instance's body may mention without having captured them."""
        return {
            name: self.close(instance.scope.ground(ty), peer, [known[captured] for captured in peer.captures])
            for name, (peer, ty) in instance.source.peers.items()
        }

    def apply(self, closure: Value, ty: t.Fn, arg: Value, span: Span, whole: bool = False) -> Value:
        """The application of a closure: by a call if one function is meant, else by a switch over the lambda set."""
        functions = ground_set(ty)
        if functions.boxed:
            result = self.b.call(self.up.applying(ty), (closure, arg), self.up.layout.flat(ty.result), span)
            return result if whole else self.b.explode(result)
        for member, captures in functions.members.items():
            return self.enter(member, captures, pieces(closure), ty, arg, span, whole)
        return self.fail("this function does not exist", self.up.layout.flat(ty.result), span)

    def enter(
        self,
        member: Member,
        captures: tuple[t.Ty, ...],
        payload: Sequence[Value],
        ty: t.Fn,
        arg: Value,
        span: Span,
        whole: bool,
    ) -> Value:
        """Apply a known function.  If its body is a lambda again, the result is only a closure with more captures."""
        if not isinstance(member, Lambda):
            result = self.up.layout.flat(ty.result)
            name = self.differentiated(expect_type(t.Fn, captures[0]))
            rhs = f.Ad("pullback", name, self.b.atoms((payload[0], arg)), self.up.layout.site(captures[0]), span)
            return self.b.explode(self.b.one(rhs, result, "d"))
        if isinstance(member.body, c.Lam):
            inner = self.up.solved.lambdas[id(member.body)]
            known = dict(zip(member.captures, payload, strict=True)) | {member.param: arg}
            if not known.keys() >= inner.captures.keys():
                known |= self.peers(self.up.instance(member, captures, ty), known)
            return self.close(ty.result, inner, [known[name] for name in inner.captures])
        name = self.up.called(self.up.instance(member, captures, ty))
        result = self.up.layout.flat(ty.result)
        called = self.b.call(name, (*payload, arg), result, span, last_name(member.label) or "v")
        return called if whole else self.b.explode(called)

    def differentiated(self, ty: t.Fn) -> str:
        """The flat function to differentiate for closures of this arrow type.  Its first parameters are their
        captures."""
        functions = ground_set(ty)
        if not functions.boxed:
            for member, captures in functions.members.items():
                if isinstance(member, Lambda):
                    return self.up.called(self.up.instance(member, captures, ty))
        return self.up.applying(ty)

    def captured(self, closure: Value, ty: t.Ty) -> list[f.Atom]:
        """A closure as the first arguments of the function that `differentiated` names."""
        functions = ground_set(ty)
        if not functions.boxed and any(isinstance(m, Lambda) for m in functions.members):
            return list(self.b.atoms(pieces(closure)))
        return [self.b.atom(closure)]

    # ---- control ----------------------------------------------------------------------------------------------------

    def fail(self, message: str, ty: f.Type, span: Span, code: str = "R0706") -> Value:
        """Code that fails with a message, in place of a value of this type."""
        rhs = f.Op("fail", (f.Const(message, f.STR),), (("code", code),), span)
        return self.b.explode(self.b.one(rhs, ty, "never"))

    def join(
        self, thunks: Sequence[Callable[[], Value]], rhs: Callable[[list[f.Block]], f.Rhs], whole: bool = False
    ) -> Value:
        """Branches whose values have one type; `rhs` makes the branching from their blocks.  Returns its value.  With
        `whole`, each branch gives its value in one piece, so that a call at its end stays a tail call."""
        blocks, form = [], None
        for thunk in thunks:
            with self.b.inside() as binds:
                value = thunk()
                form = self.b.atom(value) if whole else value
                results = tuple(leaves(form))
            blocks.append(block_of(binds, results))
        if form is None:
            raise Bug("no branches")
        result, vars_ = self.b.fresh_like(form, "v")
        self.b.binds.append(f.Bind(vars_, rhs(blocks)))
        return result

    def branch(self, cond: f.Atom, then: Callable[[], Value], else_: Callable[[], Value], whole: bool = False) -> Value:
        """A branch, whose arms are written by these functions."""
        return self.join((then, else_), lambda blocks: f.If(cond, *blocks), whole)

    # ---- terms ------------------------------------------------------------------------------------------------------

    def term(self, e: c.Term, whole: bool = False) -> Value:
        """`whole`: a tuple may stay in one piece."""
        return self.up.term(self, e, whole)

    def atom(self, e: c.Term) -> f.Atom:
        """A term's value as one atom."""
        return self.b.atom(self.term(e))

    def whole(self, e: c.Term) -> f.Atom:
        """A term in tail position."""
        return self.b.atom(self.term(e, whole=True))

    def construct(self, ty: t.Ty, tag: int, arg: Value | None) -> Value:
        """The value of a constructor.  A type of one constructor is represented by the argument alone."""
        data = self.up.layout.flat(ty)
        if not isinstance(data, f.Data) or self.up.datas.unboxed(expect_type(t.Con, ty)):
            return UNIT if arg is None else arg
        return self.b.one(f.ConMake(data.name, tag, None if arg is None else self.b.atom(arg)), data, "data")
