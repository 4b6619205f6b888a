"""Applications -> core: calls of functions, constructors and primitives, saturated or not.

max 0.0          ->   let a = 0.0 in fun b -> max(a, b)
x |> f y         ->   let t = x in f y t
"""

from __future__ import annotations

import re
from functools import partial, reduce

from dpl.core import term, ty
from dpl.diagnostics import Label
from dpl.prims import TABLE
from dpl.source import Span
from dpl.syntax import tree
from dpl.types.messages.parts import Why, at_the_margin, negated, phrase, printed, printer
from dpl.types.rules.annotations import unknowns
from dpl.types.rules.asked_sizes import asked
from dpl.types.rules.counts import size_of
from dpl.types.rules.shaped import agreeing, together
from dpl.types.solve import sizes
from dpl.types.solve.meta import Meta, Type, dimensions, is_scalar, prune
from dpl.types.solve.scheme import NOTHING, Scheme, replace
from dpl.types.state.checks import compute, int_lit, learn
from dpl.types.state.context import Arg, Context, rule
from dpl.types.state.deferred import Deferred
from dpl.types.state.env import Constructor, Primitive, Value


def _as_function(form):
    """A special form used as a value: `( && )` is `fun a b -> a && b`."""

    def function(span: Span) -> tree.Fun:
        names = ("a", "b")
        return tree.Fun(
            span, tuple(tree.PatVar(span, n) for n in names), form(span, *(tree.Var(span, n) for n in names))
        )

    return function


FORMS = {
    "&&": _as_function(lambda span, a, b: tree.Logic(span, "&&", a, b)),
    "||": _as_function(lambda span, a, b: tree.Logic(span, "||", a, b)),
    "::": _as_function(tree.Cons),
    "|>": _as_function(tree.Pipe),
}
GRADIENTS = frozenset(
    ["Prelude.grad", "Prelude.value_and_grad", "Ad.check_grad"]
    + [
        f"Ad.{name}{prime}"
        for name in ("grad", "gradv", "hessian", "hessianv", "hvp", "gradhessian", "gradhessianv", "laplacian")
        for prime in ("", "'")
    ]
)


@rule(tree.App)
def application(cx: Context, e: tree.App, expected) -> term.Term:
    head, args = spine(e)
    return apply(cx, head, args, expected)


def spine(e: tree.Expr) -> tuple[tree.Expr, list[Arg]]:
    """`f x y` -> `f` and its arguments, each with the span from the head to its end."""
    args: list[Arg] = []
    while isinstance(e, tree.App):
        args.append(Arg(e.arg, e.span))
        e = e.fn
    return e, args[::-1]


@rule(tree.Pipe)
def pipe(cx: Context, e: tree.Pipe, expected) -> term.Term:
    head, args = spine(e.fn)
    first = cx.infer(e.arg, wanted_record(cx, head, len(args)) if isinstance(e.arg, tree.Record) else None)
    name = cx.unique("piped")
    rest = apply(cx, head, [*args, Arg(term.Var(e.arg.span, first.ty, name), e.span)], expected)
    return term.Let(e.span, rest.ty, name, (), first, rest)


def wanted_record(cx: Context, head: tree.Expr, given: int) -> Type | None:
    """The record type of the next parameter of a named function after `given` arguments; None if it is not a record."""
    entry = cx.find(head.name) if isinstance(head, tree.Var) else None
    t = prune(entry.scheme.ty) if isinstance(entry, Value) else None
    for _ in range(given):
        t = prune(t.result) if type(t) is ty.Fn else None
    wanted = prune(t.arg) if type(t) is ty.Fn else None
    if type(wanted) is not ty.Con or wanted.name not in cx.datas:
        return None
    params = cx.datas[wanted.name].params
    return ty.Con(wanted.name, tuple(cx.solver.size() if p.sort == "size" else cx.solver.fresh() for p in params))


@rule(tree.Var)
def variable(cx: Context, e: tree.Var, expected) -> term.Term:
    return apply(cx, e, [], expected)


@rule(tree.Con)
def constructor(cx: Context, e: tree.Con, expected) -> term.Term:
    return apply(cx, e, [], expected)


def find_primitive(cx: Context, name: str) -> Primitive | None:
    """The primitive that a name denotes here, or None.  In the standard library, `Prim.x` denotes any row."""
    entry = cx.find(name)
    return entry if isinstance(entry, Primitive) else None


def apply(cx: Context, head: tree.Expr, args: list[Arg], expected: Type | None) -> term.Term:
    """An application of a head that is no application: a constructor, a primitive, a name, or any other expression."""
    match head:
        case tree.Con(span, name):
            found = cx.constructor(name, span, expected if len(args) < 2 else None)
            return build(cx, found, args, span, expected)
        case tree.Var(span, name):
            if name in FORMS and cx.find(name) is None:
                return call(cx, cx.infer(FORMS[name](span)), args, name)
            entry = cx.lookup(name, span)
            if isinstance(entry, Primitive):
                return primitive(cx, entry, args, span)
            if cx.replay is not None and isinstance(entry, Value):
                args = cx.replay.follow(cx, entry, name, args, expected, span)
            known = sizes_of(cx, entry.scheme, args) if isinstance(entry, Value) else NOTHING
            cx.held = []
            function = cx.use(name, span, known, args[-1].span if args else None)
            held = cx.held
            made = call(cx, function, args, name, entry)
            if args:
                cx.release(held, made.ty)
            return made
        case _:
            pass
    return call(cx, cx.infer(head), args, "")


def sizes_of(cx: Context, scheme: Scheme, args: list[Arg]) -> dict[str, ty.Size]:
    """Sizes in a function's type that are the values of its arguments, as far as these are known: `zeros 3`."""
    found = {}
    for unknown, index in scheme.counts:
        size = size_of(cx, args[index].value) if index < len(args) else None
        if size is not None:
            found[unknown] = size
    return found


# ---- functions


def call(cx: Context, fn: term.Term, args: list[Arg], name: str, entry=None, before: tuple[Arg, ...] = ()) -> term.Term:
    """A call of `fn` with `args`; `before` holds arguments that an earlier call already consumed."""
    gradient = isinstance(entry, Value) and entry.name in GRADIENTS
    open_ = len(cx.solver.undecided)
    terms, arrows = arguments(cx, fn.ty, args, fn.span, name, gradient, before)
    bound: list[tuple[str, term.Term]] = []
    if len(cx.solver.undecided) > open_:
        bound, terms = compared(cx, terms, arrows)
    for arg, t, arrow in zip(args, terms, arrows):
        cx.perform(arrow.eff, arg.span, name)
        fn = term.App(arg.span, arrow.result, fn, t)
    arrays = sum(not is_scalar(t.ty) for t in terms)
    if arrays > 1 or (arrays and type(prune(fn.ty)) is ty.Fn):
        fn = together(cx, fn, len(terms))
    for core, value in reversed(bound):
        fn = term.Let(fn.span, fn.ty, core, (), value, fn)
    return fn


def is_composite(cx: Context, t: Type) -> bool:
    """True if a size of the array is a sum or a product, which tells less than a name."""
    found = [cx.solver.sizes.norm(size) for size in dimensions(t)[0]]
    return any(size.const or len(size.terms) > 1 or any(factor != 1 for _, factor in size.terms) for size in found)


def compared(
    cx: Context, terms: list[term.Term], arrows: list[ty.Fn]
) -> tuple[list[tuple[str, term.Term]], list[term.Term]]:
    """Binds all arguments, and compares sizes that are related by products.

    Returns the bindings and the checked arguments."""
    bound = [(cx.unique("argument"), t) for t in terms]
    variables = [term.Var(t.span, arrow.arg, core) for (core, t), arrow in zip(bound, arrows)]
    for variable in sorted(variables, key=lambda v: is_composite(cx, v.ty)):
        learn(cx, variable, variable.ty)
    return bound, [cx.confirm(v, v.ty, actual=t.ty) for v, t in zip(variables, terms)]


def arguments(
    cx: Context, t: Type, args: list[Arg], head: Span, name: str, gradient: bool = False, before: tuple[Arg, ...] = ()
) -> tuple[list[term.Term], list[ty.Fn]]:
    """Checks the arguments against a function's type; lambdas come last, when most is known about their parameters.

    Returns the arguments as terms, and the function type that each was applied at."""
    terms: dict[int, term.Term] = {}
    arrows: list[ty.Fn] = []
    start = 0
    while start < len(args):
        batch = []
        while len(arrows) < len(args):
            t = prune(t)
            if type(t) is not ty.Fn:
                if batch:
                    break
                t = _arrow(cx, t, [*before, *args], head, name, len(before) + len(arrows))
            batch.append(len(arrows))
            arrows.append(t)
            t = t.result
        late = tree.Fun if cx.replay is None else tree.Node  # when calls are followed, only functions are still trees
        ranks = {i: 2 * (isinstance(args[i].value, late) or (gradient and i == 0)) for i in batch}
        for i in batch:  # another argument may tell which record this is, unless it is a lambda
            if type(prune(arrows[i].arg)) is Meta and is_nothing(args[i].value):
                ranks[i] = 3
            elif type(prune(arrows[i].arg)) is Meta and isinstance(args[i].value, tree.Record):
                ranks[i] = 1
                ranks.update({0: 0} if gradient and not isinstance(args[0].value, tree.Fun) else {})
        order = sorted(batch, key=ranks.__getitem__)
        for i in order:
            what = f"argument {i + 1} of `{name}`" if name else f"argument {i + 1}"
            if gradient and i == 0:
                terms[i], f = differentiated(cx, args[i], arrows[i].arg, name, head)
                terms |= {j: asked(cx, terms[j], arrows[j].arg, f, arrows[i].arg) for j in order[: order.index(i)]}
            else:
                ways = partial(_other_ways, cx, args, i, arrows, t, name)
                terms[i] = args[i].check(cx, arrows[i].arg, Why(what, head, help=ways))
        start = len(arrows)
    return [terms[i] for i in range(len(args))], arrows


def _other_ways(cx: Context, args: list[Arg], i: int, arrows: list[ty.Fn], rest: Type, name: str) -> str:
    """The help for an argument that does not fit."""
    from dpl.types.rules.misplaced import arranged, of_one_type
    from dpl.types.rules.superfluous import hiding

    hidden = hiding(cx, args[i].value.span.text)[0] if type(prune(arrows[i].arg)) is ty.Fn else ()
    return "".join(hidden) or arranged(cx, args, i, arrows, rest, name) or of_one_type(cx, arrows[i], name)


def is_nothing(value: tree.Expr | term.Term) -> bool:
    """True for `[]`, which is a list or an array, as its context says."""
    return isinstance(value, tree.ListLit) and not value.items


def _arrow(cx: Context, t: Type, args: list[Arg], head: Span, name: str, given: int) -> ty.Fn:
    """`t`, not known to be a function, unified with a function type.  Raises an error if it cannot be one."""
    arg = args[given]
    arrow = ty.Fn(cx.solver.fresh(), cx.solver.effect(), cx.solver.fresh())
    if type(t) in (ty.Con, ty.Tup, ty.Arr, ty.Var) or phrase(t):
        from dpl.types.rules.superfluous import applied, hiding, on_next_line, superfluous

        shown = phrase(t) or printer(cx).type(t)
        who = f"`{name}`" if name else "this"
        if given:
            title = f"{who} takes {given} argument{'s' * (given != 1)}, but is given more; its result is {shown}"
        else:
            title = f"{who} is not a function but {shown}, and cannot be applied"
        below = arg.value.span.line > head.line
        meant, labels = ((), ()) if below else hiding(cx, name)
        ways, edits = superfluous(cx, args, name, given) if given else (applied(cx, t, head, arg.value), ())
        helps = on_next_line(arg.value) if below else meant or negated(head) or ways
        note = "one argument too many" if given else "applied to this"
        if below and at_the_margin(arg.value.span):
            title, note = f"this line is read as an argument of {f'`{name}`' if name else 'what stands'} above", ""
        raise cx.fail("E0207", title, arg.value.span, note=note, labels=labels, helps=helps, edits=edits)
    cx.unify(t, arrow, head, Why("what is applied"))
    return arrow


def differentiated(cx: Context, arg: Arg, wanted: Type, name: str, head: Span) -> tuple[term.Term, Type]:
    """Checks the function given to `grad`: its result must be one float.  The second result is its own type."""
    from dpl.types.rules.order import one_after_the_other

    if isinstance(arg.value, tree.Var) and arg.value.name == name:  # `grad grad f x`
        title = f"`{name}` takes functions of data with floats, and `{name}` is none"
        raise cx.fail("E0402", title, arg.value.span, helps=(f"the second derivative:  {name} ({name} f) x",))
    parts = arg.value.items if isinstance(arg.value, tree.Tuple | term.Tuple) else ()
    if isinstance(arg.value, tree.App | term.App):  # `grad (f x)`
        parts = (arg.value.fn, arg.value.arg)
    way = one_after_the_other(cx, name, parts)
    wanted = prune(wanted)
    assert type(wanted) is ty.Fn
    hint = ty.Fn(wanted.arg, wanted.eff, cx.solver.fresh())
    f = cx.infer(arg.value, hint) if isinstance(arg.value, tree.Node) else arg.value
    actual = prune(f.ty)
    if type(actual) is ty.Fn:
        ways = by_arguments(arg.value, actual, name)
        if prune(wanted.arg) == ty.STRING:
            ways = ("a derivative is taken at a point: a number, an array or other data with floats",)
        why = Why(f"the argument of what is given to `{name}`", help=ways[0] if ways else "")
        cx.unify(actual.arg, wanted.arg, arg.value.span, why)
        result = prune(actual.result)
        if type(result) in (ty.Arr, ty.Tup, ty.Fn) or (type(result) is ty.Con and result.name not in ty.FLOATS):
            raise not_one_number(cx, arg.value, actual, name, head)
    if type(actual) is not ty.Fn and not way:
        from dpl.types.rules.superfluous import hiding

        way = "".join(hiding(cx, arg.value.span.text)[0])
    return cx.coerce(f, wanted, Why(f"argument 1 of `{name}`", head, help=way)), actual


def by_arguments(f: tree.Expr | term.Term, t: ty.Fn, name: str) -> tuple[str, ...]:
    """Helps for a function of several arguments given to `grad`, which takes functions of one."""
    text = f.name if isinstance(f, tree.Var) else "f"
    if type(prune(t.result)) is ty.Fn:
        both = f"by both arguments:  {name} (fun (x, y) -> {text} x y) (x, y)"
        return (both, f"by the first:  {name} (fun x -> {text} x y) x")
    if type(prune(t.arg)) is ty.Tup:
        return (f"`{text}` takes one argument, a tuple:  {name} {text} (x, y)",)
    return ()


def not_one_number(cx: Context, f: tree.Expr | term.Term, t: ty.Fn, name: str, head: Span):
    p = printer(cx)
    arg, result, outcome = p.type(t.arg), p.type(t.result), prune(t.result)
    shown = f"`{f.name}`" if isinstance(f, tree.Var) else "this function"
    gradient = re.fullmatch(r"\(?grad ([\w.]+)\)?", f.span.text)
    text = f.name if isinstance(f, tree.Var) else f"grad {gradient[1]}" if gradient else "f"
    what = "the gradient of a total" if name.endswith("grad") else "of a total"
    helps = [f"{what}:  {name} (fun x -> sum ({text} x))"] if type(outcome) is ty.Arr else []
    if gradient and type(outcome) is ty.Arr:
        helps.append(f"all second derivatives:  Ad.hessian {gradient[1]}  ; by a direction:  Ad.hvp {gradient[1]} x v")
    else:
        helps += by_arguments(f, t, name) or [f"all derivatives:  Ad.jacobian {text}  or  vjp {text}"]
    if type(outcome) is ty.Con and outcome.name in ty.INTS:
        helps = ["only floats have derivatives: convert with  float (...)"]
    if outcome in (ty.STRING, ty.BOOL):
        helps = [f"a {result} has no derivative; the number from which it is made may have one"]
    return cx.fail(
        "E0401",
        f"`{name}` needs a function that returns one number, but {shown} returns {result}",
        head.to(f.span),
        note=f"expected  {arg} -> float",
        labels=tuple(Label(place, f"the result is {result}") for place in results(cx, f)),
        helps=tuple(helps),
    )


def results(cx: Context, f: tree.Expr | term.Term) -> list[Span]:
    """The place that determines a function's result; [] if it is unknown."""
    entry = cx.find(f.name) if isinstance(f, tree.Var) else None
    definition = cx.definition(entry) if isinstance(entry, Value) else None
    if isinstance(f, tree.Fun):
        body = f.body
    elif definition is not None:
        body = definition.function[1]
    else:
        return []
    while isinstance(body, tree.Let | tree.Seq):
        body = body.body if isinstance(body, tree.Let) else body.second
    return [body.span]


# ---- constructors


def build(cx: Context, found: Constructor, args: list[Arg], span: Span, expected: Type | None = None) -> term.Term:
    """A constructor, applied or as a function."""
    t, arg_type = constructor_type(cx, found)
    if arg_type is None:
        if args:
            raise cx.fail("E0207", f"the constructor `{found.name}` takes no argument", args[0].span)
        return term.Con(span, t, found.name, found.tag, None)
    if not args:
        name = cx.unique("content")
        body = term.Con(span, t, found.name, found.tag, term.Var(span, arg_type, name))
        return term.Lam(span, ty.Fn(arg_type, cx.solver.effect(), t), name, body, found.name)
    if len(args) > 1:
        parts = ", ".join("abcdefgh"[: len(arg_type.items)]) if type(arg_type) is ty.Tup else ""
        raise cx.fail(
            "E0207",
            f"the constructor `{found.name}` takes one argument, not {len(args)}",
            args[1].span,
            helps=(f"several values go in a tuple:  {found.name} ({parts})",) if parts else (),
        )
    value, why = args[0].value, Why(f"the argument of `{found.name}`", span)
    hint = hinted(cx, found, expected)
    if hint is not None and not isinstance(value, term.Node):
        value = cx.infer(value, hint)
    arg = Arg(value, args[0].span).check(cx, arg_type, why)
    return term.Con(args[0].span, t, found.name, found.tag, arg)


def hinted(cx: Context, found: Constructor, expected: Type | None) -> Type | None:
    """The type of a constructor's argument as the context gives it: float[3] for e in `(Some e : float[3] option)`."""
    known = prune(expected) if expected is not None else None
    if type(known) is not ty.Con or known.name != found.data.name or found.arg is None:
        return None
    return replace(found.arg, {p.name: a for p, a in zip(found.data.params, known.args)}, {})


def constructor_type(cx: Context, found: Constructor) -> tuple[Type, Type | None]:
    """A fresh instance of the constructor's data type, and its argument type there."""
    s, data = cx.solver, found.data
    env: dict = {p.name: s.size() if p.sort == "size" else s.fresh() for p in data.params}
    t = ty.Con(data.name, tuple(env[p.name] for p in data.params))
    if found.arg is None:
        return t, None
    return t, replace(found.arg, {**env, **{n: s.unknown_size() for n in unknowns(found.arg)}}, {})


# ---- primitives


def _function_in(t: Type) -> str:
    """`it is` if the type is that of a function, `a part of it is` if it is of a tuple with one; else ""."""
    t = prune(t)
    if type(t) is ty.Tup:
        return "a part of it is" if any(map(_function_in, t.items)) else ""
    return "it is" if type(t) is ty.Fn else ""


def primitive(cx: Context, found: Primitive, args: list[Arg], span: Span) -> term.Term:
    """A primitive with too few arguments becomes a function; one with too many gives a function that takes the rest."""
    row, arity = found.row, found.row.arity
    known = sizes_of(cx, found.scheme, args)
    t, _ = cx.instance(found.scheme, args[arity - 1].span if len(args) >= arity else span, known)
    cx.note(span, t)
    held = cx.held
    terms, arrows = arguments(cx, t, args[:arity], span, row.op or row.name)
    if row.name == "print" and terms and (part := _function_in(terms[0].ty)):
        cx.warnings.add(printed(part, terms[0].span))
    if len(args) < arity:
        return expand(cx, row, terms, arrows, t, span)
    result = arrows[-1].result
    cx.release(held, result)
    applied = saturated(cx, row.name, terms, result, args[arity - 1].span)
    if len(args) == arity:
        return applied
    return call(cx, applied, args[arity:], row.op or row.name, before=tuple(args[:arity]))


def saturated(cx: Context, name: str, terms: list[term.Term], result: Type, span: Span) -> term.Term:
    if name == "reshape":
        return reshape(cx, terms[0], result, span)
    made = term.Prim(span, result, name, tuple(terms))
    return agreeing(cx, made) if len(terms) > 1 and TABLE[name].elementwise else made


def expand(cx: Context, row, given: list[term.Term], arrows: list[ty.Fn], t: Type, span: Span) -> term.Term:
    """A partial application of a primitive: the given arguments are computed first, the rest become parameters."""
    names = [cx.unique("operand") for _ in range(row.arity)]
    types = [arrow.arg for arrow in arrows]
    t = prune(arrows[-1].result) if arrows else prune(t)
    while len(types) < row.arity:
        assert type(t) is ty.Fn
        types.append(t.arg)
        t = prune(t.result)
    variables: list[term.Term] = [term.Var(span, u, n) for u, n in zip(types, names)]
    body = saturated(cx, row.name, variables, t, span)
    for n, u in list(zip(names, types))[: len(given) - 1 if given else None : -1]:
        body = term.Lam(span, ty.Fn(u, cx.solver.effect(), body.ty), n, body, row.op or row.name)
    for n, value in list(zip(names, given))[::-1]:
        body = term.Let(span, body.ty, n, (), value, body)
    return body


def reshape(cx: Context, source: term.Term, result: Type, span: Span) -> term.Term:
    """`reshape` takes its dimensions from the final type of its result."""
    evidence = dict(cx.evidence)

    def build(zonk) -> term.Term:
        dims, inner = dimensions(result)
        element = dimensions(source.ty)[1]
        if type(element) in (Meta, ty.Var) and element is not inner and element != inner:
            title = "the type of the elements that this `reshape` is given is not known"
            helps = (f"annotate the argument:  (xs : {printer(cx).type(inner)}[n])",)
            raise cx.fail("E0306", title, span, helps=helps)
        if not dims or type(inner) is Meta:
            raise cx.fail(
                "E0306",
                "the dimensions of this `reshape` are not known",
                span,
                helps=("say them in an annotation:  (reshape e : float[2, 3])",),
            )
        same_count(cx, source.ty, result, span)
        found = [compute(cx.solver.sizes.norm(d), evidence, span) for d in dims]
        if sum(d is None for d in found) > 1:
            raise cx.fail(
                "E0306",
                "more than one dimension of this `reshape` is not known",
                span,
                helps=("at most one may be left to be computed; name the others by literals or sizes in scope",),
            )
        return zonk(term.Prim(span, result, "reshape", (source, *(d or int_lit(span, -1) for d in found))))

    return Deferred(span, result, build, (source,))


def same_count(cx: Context, source: Type, result: Type, span: Span) -> None:
    """Raises an error if `reshape` would change the number of elements, as far as it is known."""
    before, after = (cx.solver.sizes.norm(reduce(sizes.mul, dimensions(t)[0], ty.Size(1))) for t in (source, result))
    if not before.terms and not after.terms and before != after:
        p = printer(cx)
        title = f"cannot reshape {p.type(source)} to {p.type(result)}: {before.const} elements are not {after.const}"
        raise cx.fail("E0307", title, span)
