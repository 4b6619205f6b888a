"""Functions, `let` and sequences -> core; generalisation.

fun x (a, b) -> e          ->   fun x -> fun p -> match p with (a, b) -> e
let f x = x in (f 1, f s)  ->   let f['a] = fun x -> x in (f[int] 1, f[string] s)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dpl.core import term, ty
from dpl.core.values import is_value
from dpl.diagnostics import Diagnostic, Edit, Label
from dpl.node import replace
from dpl.source import NOWHERE, Span
from dpl.syntax import tree
from dpl.types.messages import recursion
from dpl.types.messages.parts import Why, phrase, printer
from dpl.types.rules.annotations import Flexible, resolve, unknowns
from dpl.types.rules.asked_sizes import annotated, claimed
from dpl.types.rules.counts import size_of
from dpl.types.rules.indentation import misleading
from dpl.types.rules.lifting import simplify
from dpl.types.rules.modifiers import endless
from dpl.types.rules.patterns import bind_pattern
from dpl.types.rules.quiet import is_quiet
from dpl.types.solve.kinds import PHRASES, SCALARS
from dpl.types.solve.meta import Meta, Type, prune
from dpl.types.solve.scheme import Scheme, free, generalise, mono, unrelated
from dpl.types.state.checks import learn
from dpl.types.state.context import Context, rule
from dpl.types.state.env import Group, Value
from dpl.types.state.scope import Frame


@rule(tree.Fun)
def function(cx: Context, e: tree.Fun, expected) -> term.Term:
    with cx.scope():
        return lambdas(cx, e.params, e.body, None, e.span, "", expected, flexible=Flexible.ALL)[0]


def lambdas(
    cx: Context,
    params: tuple,
    body: tree.Expr,
    annot,
    span: Span,
    name: str,
    expected: Type | None,
    flexible: Flexible = Flexible.NOTHING,
) -> tuple[term.Term, Type]:
    """Nested functions of one parameter each, and their annotated type.  The caller opens the scope."""
    wanted = prune(expected) if expected is not None else None
    hint = wanted if type(wanted) is ty.Fn else None
    if not params:
        return _body(cx, body, annot, expected, flexible)
    pattern, *rest = params
    t = hint.arg if hint else cx.solver.fresh()
    effect = cx.solver.effect()
    param, inner, asked = parameter(cx, pattern, t, flexible)
    claims, cx.claims = cx.claims, []
    with cx.allowing(effect, "fun", span):
        made, result = lambdas(cx, tuple(rest), body, annot, span, name, hint.result if hint else None, flexible)
    if inner is not None:
        arm = term.Arm(pattern.span, inner, None, made)
        made = term.Match(pattern.span, made.ty, term.Var(pattern.span, t, param), (arm,))
    variable = term.Var(pattern.span, t, param)
    if claims:
        made = claimed(cx, made, variable, claims)
    if asked is not None:
        made = annotated(cx, made, variable, pattern, asked)
    arrow = ty.Fn(t, effect, result)
    return term.Lam(span, arrow, param, made, name), arrow


def _body(cx: Context, body: tree.Expr, annot, expected, flexible: Flexible) -> tuple[term.Term, Type]:
    if annot is None:
        made = cx.infer(body, expected)
        return made, made.ty
    wanted = resolve(cx, annot, flexible)
    whole = type(wanted) is ty.Fn and not isinstance(body, tree.Fun)
    way = "after the parameters stands the type of the result alone:  let f x : float = ..."
    return cx.check(body, wanted, Why("the result", annot.span, "as annotated", help=way if whole else "")), wanted


def parameter(
    cx: Context, p: tree.Pattern, t: Type, flexible: Flexible
) -> tuple[str, term.Pattern | None, Type | None]:
    """A parameter's core name; the pattern to match it with, None if it is just a name; the annotation whose sizes are
    to be checked, None if they are those of `t`."""
    span, asked = p.span, None
    while isinstance(p, tree.PatAnnot):
        said = resolve(cx, p.type, flexible)
        cx.solver.assumed.clear()
        cx.unify(t, said, p.span, Why("this parameter", p.type.span, "as annotated"))
        asked, p = said if cx.solver.assumed else asked, p.pattern
    match p:
        case tree.PatVar(_, name):
            core = cx.local(name, t, span)
            learn(cx, term.Var(span, t, core), t)
            return core, None, asked
        case tree.PatWild() | tree.PatTuple(_, ()):
            if isinstance(p, tree.PatTuple):
                cx.unify(t, ty.UNIT, span, Why("this parameter"))
            core = cx.unique("_")
            learn(cx, term.Var(span, t, core), t)
            return core, None, asked
        case _:
            pass
    core = cx.unique("param")
    learn(cx, term.Var(span, t, core), t)
    return core, bind_pattern(cx, p, t, flexible), asked


# ---- let


@rule(tree.Let, tree.Seq)
def block(cx: Context, e: tree.Expr, expected) -> term.Term:
    """A chain of lets and sequences of any length, without recursion."""
    steps = []
    with cx.scope():
        while True:
            match e:
                case tree.Seq(span, first, second):
                    steps.append((span, "_", (), dropped(cx, first), None))
                    if warning := misleading(first, second):
                        cx.warnings.add(warning)
                    e = second
                case tree.Let(span, rec, bindings, rest):
                    steps += recursive(cx, bindings, span) if rec else simultaneous(cx, bindings, span)
                    e = rest
                case _:
                    break
        body = cx.infer(e, expected)
        runs = {step[1]: used for step in steps if (used := unused(cx, *step[:4]))}
    for span, name, params, value, pattern in reversed(steps):
        match name:
            case list():
                body = term.LetRec(span, body.ty, params, tuple(zip(name, value)), body)
            case str() if pattern is None:
                body = term.Let(span, body.ty, cx.unique("_"), (), runs[name], body) if name in runs else body
                params, core = params.params if params else (), cx.unique("_") if name == "_" else name
                body = term.Let(span, body.ty, core, params, value, body)
            case _:
                body = term.Match(span, body.ty, value, (term.Arm(pattern[0], pattern[1], None, body),))
    return body


def unused(cx: Context, span: Span, name, scheme, value) -> term.Var | None:
    """A use of a generalised value that has none.  It runs where it is used, so its errors would be lost."""
    if not isinstance(scheme, Scheme) or not scheme.params or name not in cx.unused or is_value(value):
        return None
    t, inst = cx.instance(scheme, span)
    return term.Var(span, t, name, inst)


def compares(e: tree.Expr) -> str:
    """The help for `a[0] = 3` or `x = 3` as a statement, where the comparison has no use."""
    if not isinstance(e, tree.Binary) or e.op != "=":
        return ""
    if isinstance(e.left, tree.Index):
        return "`=` compares; an array with another element:  { a with [0] = e }"
    return "`=` compares; only references change:  let r = ref 0  and then  do r := e"


def dropped(cx: Context, e: tree.Expr) -> term.Term:
    """The expression before `;`.  Its value is dropped; a warning is given if it is not unit."""
    if isinstance(e, tree.Binary) and e.op == "=" and isinstance(e.left, tree.Var) and cx.find(e.left.name) is None:
        name = e.left.name
        helps = (f"a value is named by  let {name} = ... in ...", "a reference is changed by  r := e")
        raise cx.fail("E0202", f"there is no value `{name}` here, and `=` compares", e.span, helps=helps)
    value = cx.infer(e, ty.UNIT)
    t = prune(value.ty)
    if type(t) is Meta and not t.classes:
        cx.unify(t, ty.UNIT, e.span)
    elif t != ty.UNIT:
        shown = phrase(t) or printer(cx).type(t)
        is_function = type(t) is ty.Fn
        helps = ("is an argument missing?",) if is_function else ()
        title = f"this value is dropped: {'a function, ' if is_function else ''}{shown}"
        helps = (*helps, *filter(None, [compares(e)]), "if that is meant, say so:  ignore (...)")
        ends = replace(e.span, end=e.span.start), replace(e.span, start=e.span.end)
        edits = () if is_function else (Edit(ends[0], "ignore ("), Edit(ends[1], ")"))
        cx.warnings.add(Diagnostic("W0204", title, e.span, helps=helps, edits=edits))
    return value


def simultaneous(cx: Context, bindings: tuple, span: Span):
    """`let p = e and q = f in`: the right-hand sides are outside the scope of the names."""
    checked = [(b, *local_binding(cx, b)) for b in bindings]
    return [_bind(cx, *one) for one in checked]


def _bind(cx: Context, b: tree.Binding, value: term.Term, scheme: Scheme):
    """Puts a checked binding into scope; returns its step of the chain."""
    name = simple_name(b)
    if name is not None:
        core = cx.unique(name)
        size = size_of(cx, b.body) if not b.params else None
        if not is_quiet(cx, value):
            cx.loud.add(core)
        if name != "_":
            cx.bind(name, Value(core, scheme, b.span, size=size))
        cx.watch(name, core, b.pattern.span)
        cx.remember_local(core, b)
        if not scheme.params:
            learn(cx, term.Var(b.span, value.ty, core), value.ty)
        return b.span, core, scheme, value, None
    pattern = bind_pattern(cx, b.pattern, value.ty, watched=True)
    return b.span, "", (), value, (b.pattern.span, pattern)


def simple_name(b: tree.Binding) -> str | None:
    """The name that a binding binds; None if it binds a larger pattern."""
    p = b.pattern
    while isinstance(p, tree.PatAnnot):
        p = p.pattern
    return p.name if isinstance(p, tree.PatVar) else "_" if isinstance(p, tree.PatWild) else None


def local_binding(cx: Context, b: tree.Binding) -> tuple[term.Term, Scheme]:
    name = simple_name(b)
    with cx.deeper() as mark:
        value = right_side(cx, b, name or "")
    if name is not None and generalisable(cx, value):
        return value, counted(cx, close(cx, [value.ty], mark, type(prune(value.ty)) is ty.Fn)[0], value)
    cx.solver.lower(value.ty, cx.solver.level)
    settle_outer(cx, mark)
    return value, mono(value.ty)


def settle_outer(cx: Context, mark: int) -> None:
    """Moves the open constraints of a binding that is not generalised to the outer level."""
    for c in cx.pending[mark:]:
        for t in c.types:
            cx.solver.lower(t, cx.solver.level)
    cx.pending[mark:] = [c for c in cx.pending[mark:] if not c.done]


def right_side(
    cx: Context, b: tree.Binding, name: str, expected: Type | None = None, frame: Frame | None = None
) -> term.Term:
    """The value of a binding.  Its annotations introduce rigid variables, in a frame of their own or in `frame`."""
    params, body, is_function = b.params, b.body, bool(b.params) or isinstance(b.body, tree.Fun)
    with cx.scope():
        # a value shares the size variables around it; its type variables are its own
        cx.frames.append(frame or Frame(cx.solver.level, sizes={} if is_function else cx.frames[-1].sizes))
        annots = pattern_annotations(b.pattern)
        if params:
            value, _ = lambdas(cx, params, body, b.annot, b.span, name, expected)
        elif isinstance(body, tree.Fun):
            annot = b.annot or (annots[0] if annots else None)
            wanted = resolve(cx, annot) if annot is not None else expected
            value, _ = lambdas(cx, body.params, body.body, None, body.span, name, wanted)
            if wanted is not None:
                value = cx.coerce(value, wanted, Why("this function", (b.annot or b).span, "as annotated"))
            annots = annots[1:] if b.annot is None else annots
        else:
            value = _value(cx, b, expected)
        for annot in annots:
            wanted = resolve(cx, annot, Flexible.NOTHING if is_function else Flexible.SIZES)
            value = cx.coerce(value, wanted, Why("this value", annot.span, "as annotated"))
        said = b.annot or next(iter(pattern_annotations(b.pattern)), None)
        if said is not None and not params:
            as_general(cx, said)
        cx.frames.pop()
    return value


def as_general(cx: Context, annot: tree.Type) -> None:
    """Raises an error if a type variable in the annotation of a whole value had to be a number."""
    for name, t in cx.frames[-1].types.items():
        t = prune(t)
        cls = next((c for c in SCALARS if isinstance(t, Meta) and t.rigid and c in t.classes), None)
        if isinstance(t, Meta) and cls is not None:
            title = f"the annotation says '{name}, any type, but it must be {PHRASES[cls]} here"
            labels = (Label(t.place, f"{PHRASES[cls]} is needed because of this"),) if t.place is not NOWHERE else ()
            helps = ("write the actual type in the annotation, or leave it out",)
            raise cx.fail("E0210", title, annot.span, labels=labels, helps=helps)


def _value(cx: Context, b: tree.Binding, expected: Type | None) -> term.Term:
    annots = ([b.annot] if b.annot is not None else []) + pattern_annotations(b.pattern)
    if annots:
        expected = resolve(cx, annots[0], Flexible.SIZES)
        return cx.check(b.body, expected, Why("this value", annots[0].span, "as annotated"))
    return cx.infer(b.body, expected)


def pattern_annotations(p: tree.Pattern) -> list[tree.Type]:
    """The annotations around a pattern: `((x : t) : u)` -> [u, t]."""
    found = []
    while isinstance(p, tree.PatAnnot):
        found.append(p.type)
        p = p.pattern
    return found


def recursive(cx: Context, bindings: tuple, span: Span):
    """`let rec f x = e and g y = e in`."""
    names, values, schemes, cores = group(cx, bindings, [cx.unique(simple_name(b) or "_") for b in bindings])
    if not all(is_quiet(cx, v) for v in values):
        cx.loud.update(cores)
    for name, core, scheme, b in zip(names, cores, schemes, bindings):
        cx.bind(name, Value(core, scheme, b.span))
    for core, b in zip(cores, bindings):
        cx.remember_local(core, b)
    return [(span, cores, schemes[0].params, values, None)]


def group(cx: Context, bindings: tuple, cores: list[str], is_global: bool = False):
    """Checks mutually recursive bindings and generalises them together.

    Returns names, values, schemes and core names."""
    names = []
    with cx.scope():
        with cx.deeper() as mark:
            frame = Frame(cx.solver.level)
            knot = Group(frame.sizes)
            types = [header(cx, b, frame) for b in bindings]
            knot.unknowns += [n for t in types for n in unknowns(t) if n not in cx.tied]  # an int in scope is itself
            for b, core, t in zip(bindings, cores, types):
                name = simple_name(b)
                if name is None or not (b.params or isinstance(b.body, tree.Fun)):
                    helps = ("give it a parameter, or leave out `rec`",)
                    raise cx.fail("E0212", "`let rec` defines functions only", b.span, helps=helps)
                if name in names:
                    raise cx.fail("E0208", f"`{name}` is defined twice in this group", b.span)
                names.append(name)
                cx.bind(name, Value(core, mono(t), b.span, knot, is_global=is_global))
                if not is_global:
                    cx.watch(name, core, b.pattern.span)
            values = []
            for b, name, core, t in zip(bindings, names, cores, types):
                mentioned = core not in cx.unused
                value = right_side(cx, b, name, t, frame)
                if warning := endless(cx, b, name, value):
                    cx.warnings.add(warning)
                if (guess := recursion.guessed(cx)) in names:
                    cx.guessed.add(cores[names.index(guess)])
                if not (mentioned or is_global):  # a mention inside its own definition does not count as a use
                    cx.watch(name, core, b.pattern.span)
                cx.unify(value.ty, t, b.pattern.span, Why(span=knot.uses.get(core), recursive=name))
                values.append(value)
        schemes = close(cx, types, mark, defaults=True)
    knot.params = schemes[0].params
    return names, values, [counted(cx, scheme, value) for scheme, value in zip(schemes, values)], cores


def counted(cx: Context, scheme: Scheme, value: term.Term) -> Scheme:
    """The scheme, with the unknown sizes that are int parameters: `let init (n : int) : float[n] = ...`."""
    if not any(unknown in cx.tied for unknown in scheme.unknowns):
        return scheme
    params = []
    while True:
        match value:
            case term.Lam(_, _, param, value):
                params.append(param)
            case term.Let(body=value) | term.Match(arms=(term.Arm(body=value),)):
                pass
            case _:
                break
    indices = {unknown: params.index(cx.tied[unknown]) for unknown in scheme.unknowns if cx.tied.get(unknown) in params}
    return replace(scheme, counts=tuple(indices.items()))


def header(cx: Context, b: tree.Binding, frame: Frame) -> Type:
    """A function's type by its annotations, so that it may call itself at other sizes; or else an unknown."""
    ints = {p.pattern.name for p in b.params if isinstance(p, tree.PatAnnot) and isinstance(p.pattern, tree.PatVar)}
    if not b.params or ints & mentioned_sizes(b):
        return cx.solver.fresh()
    cx.frames.append(frame)
    annots = [p.type if isinstance(p, tree.PatAnnot) else None for p in b.params] + [b.annot]
    *params, t = [cx.solver.fresh() if a is None else resolve(cx, a) for a in annots]
    for param in reversed(params):
        t = ty.Fn(param, cx.solver.effect(), t)
    cx.frames.pop()
    return t


def mentioned_sizes(b: tree.Binding) -> set[str]:
    """The size variables in a function's annotations."""
    found: set[str] = set()
    stack: list[tree.Type | tree.Size | None] = [b.annot, *(p.type for p in b.params if isinstance(p, tree.PatAnnot))]
    while stack:
        match stack.pop():
            case tree.SizeVar(_, name) | tree.TyName(_, name, ()):
                found.add(name)
            case tree.SizeOp(_, _, left, right):
                stack += (left, right)
            case tree.TyArray(_, elem, sizes):
                stack += (elem, *sizes)
            case tree.TyName(_, _, args) | tree.TyTuple(_, args):
                stack += args
            case tree.TyFun(_, arg, result, ctl):
                stack += (arg, result, ctl)
            case _:
                pass
    return found


# ---- generalisation


def generalisable(cx: Context, value: term.Term) -> bool:
    """True for values, and for quiet terms with a type variable to generalise."""
    return is_value(value) or (bool(free(cx.solver, [value.ty], cx.solver.level).metas) and is_quiet(cx, value))


def close(cx: Context, types: list[Type], mark: int, defaults: bool) -> list[Scheme]:
    """Generalises what was inferred since `mark`.  With `defaults`, some constraints on unknowns are decided first."""
    if defaults:
        decide_inner(cx, mark)
        decide_results(cx, types, mark)
        simplify(cx, mark)
    else:
        keep_constrained(cx, types, mark)
    decide_unrelated(cx, types, mark)
    schemes, cx.pending[mark:] = generalise(cx.solver, types, cx.pending[mark:], cx.taken)
    settle_outer(cx, mark)
    cx.hold(schemes)
    return schemes


def decide_unrelated(cx: Context, types: list[Type], mark: int) -> None:
    """Decides the constraints of a binding about which neither its type nor an outer unknown can tell more.

    This comes before sizes are generalised, as it may tell what they are."""
    while alone := unrelated(cx.solver, types, cx.pending[mark:]):
        for c in alone:
            if not c.done:
                cx.decide(c)


def decide_inner(cx: Context, mark: int) -> None:
    """Decides open conversions and powers inside a binding: the operand becomes a scalar, a scalar exponent an int."""
    i = mark
    while i < len(cx.pending):
        c = cx.pending[i]
        if not c.done and c.eager and inner_only(cx, c):
            cx.decide(c)
        i += 1


def decide_results(cx: Context, types: list[Type], mark: int) -> None:
    """An integer literal that a function only returns becomes an int: `fun b -> if b then 1 else 2` returns ints.

    Decimal literals and elements of arrays stay polymorphic, because these are meant for arithmetic."""
    level = cx.solver.level
    related = (t for c in cx.pending[mark:] if not c.done for t in c.types)
    open_ = free(cx.solver, [*arguments_and_elements(types), *related], level).metas
    metas = [m for m in free(cx.solver, types, level).metas if m not in open_]
    literals = {prune(t) for t in cx.literals if type(prune(t)) is Meta} if metas else ()
    for meta in metas:
        if meta in literals and not meta.rigid and "real" not in meta.classes:
            cx.unify(meta, ty.I64, meta.place)


def arguments_and_elements(types: Iterable) -> Iterator[Type]:
    """Yields the parameter types of functions and the element types of arrays; visits shared parts once."""
    stack, seen = list(types), set()
    while stack:
        t = stack.pop()
        t = t if isinstance(t, ty.Size) else prune(t)
        if id(t) in seen:
            continue
        seen.add(id(t))
        if isinstance(t, ty.Fn):
            yield t.arg
        if isinstance(t, ty.Arr):
            yield t.elem
        stack += ty.children(t)


def inner_only(cx: Context, c) -> bool:
    """True if every unknown in a constraint belongs to the binding just left."""
    return not free(cx.solver, c.types, cx.solver.level).is_tied


def keep_constrained(cx: Context, types: list[Type], mark: int) -> None:
    """Keeps the numbers in a value, and all on which a constraint is open, monomorphic (the monomorphism restriction of
    Haskell 2010, 4.5.5), so that a value is computed once.

    The uses of `let eps = 1e-5` decide its single type; that of `let hidden = w @ x` follows from those of `w` and `x`.
    Functions inside the value are still generalised."""
    level = cx.solver.level
    bare = free(cx.solver, types, level).bare
    kept = {meta for meta in bare if meta.classes & {"num", "real", "scalar", "integer"}}
    open_ = [(c, free(cx.solver, c.types, level).metas) for c in cx.pending[mark:] if not c.done]
    kept.update(meta for _, metas in open_ for meta in metas if meta in bare)
    while related := [(c, metas) for c, metas in open_ if not kept.isdisjoint(metas)]:
        open_ = [(c, metas) for c, metas in open_ if kept.isdisjoint(metas)]
        kept.update(meta for _, metas in related for meta in metas)
        for c, _ in related:
            for t in c.types:
                cx.solver.lower(t, level)
    for meta in kept:
        meta.level = level
