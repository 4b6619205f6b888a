"""Arrays and loops -> core.

[for i < n, x in xs -> e]   ->   Build(i, n, let xs' = xs in Build(k, length xs', let x = xs'[k] in e))
[for i < n when p -> e]     ->   Build(k, count, let i = places[k] in e); p holds at these places
                            ->   kept(Build(i, n, if p then Some e else None)), if p or e may have effects
a[1:3, j]                   ->   Build(k, 2, slice(a, 1, 3)[k, j])
{ a with [i] = e }          ->   update(a, e, i)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpl.core import term, ty
from dpl.core.walk import subterms
from dpl.diagnostics import Diagnostic
from dpl.node import node
from dpl.source import Span
from dpl.syntax import tree
from dpl.types.messages.parts import Why, as_argument, phrase, printer, taken_apart
from dpl.types.rules.counts import extent, inner_size_of, size_of
from dpl.types.rules.expressions import elements
from dpl.types.rules.indentation import STEPS, ends_at_semicolon
from dpl.types.rules.patterns import bind_pattern
from dpl.types.rules.quiet import in_any_order
from dpl.types.rules.shaped import sized
from dpl.types.solve import sizes
from dpl.types.solve.meta import PURE, Meta, Type, dimensions, prune
from dpl.types.state.checks import dim, int_lit, learn
from dpl.types.state.context import Context, rule


@rule(tree.ArrayLit)
def array_literal(cx: Context, e: tree.ArrayLit, expected) -> term.Term:
    wanted = prune(expected) if expected is not None else None
    elem = wanted.elem if type(wanted) is ty.Arr else cx.solver.fresh()
    items = elements(cx, e.items, elem, "array")
    size = cx.solver.sizes.written(ty.Size(len(items)), e.span)
    return term.ArrayLit(e.span, ty.Arr(elem, size), tuple(items))


# ---- comprehensions

OPTION = "Prelude.option"


@rule(tree.Comprehension)
def comprehension(cx: Context, e: tree.Comprehension, expected) -> term.Term:
    return clause(cx, e, 0, expected)


def clause(cx: Context, e: tree.Comprehension, k: int, expected: Type | None) -> term.Term:
    wanted = prune(expected) if expected is not None else None
    hint = wanted.elem if type(wanted) is ty.Arr else None
    if k == len(e.clauses):
        with cx.allowing(PURE, "bulk", e.span):
            return cx.infer(e.body, expected)
    match e.clauses[k]:
        case tree.ForRange() as counted:
            return ranging(cx, e, k, counted, hint)
        case tree.ForIn(span, pattern, source):
            return over(cx, e, k, pattern, cx.infer(source), span, hint)
    raise AssertionError


def ranging(cx: Context, e: tree.Comprehension, k: int, clause: tree.ForRange, hint: Type | None) -> term.Term:
    """The array for `for i < n`."""
    n = cx.check(clause.count, ty.I64, Why("the number of elements"))
    known = inner_size_of if cx.ambient.reason == "bulk" else size_of
    size = known(cx, clause.count) or cx.solver.unknown_size()
    with cx.scope(), cx.allowing(PURE, "bulk", e.span):
        index = cx.local(clause.name, ty.I64, clause.span)
        cond, body = element(cx, e, k, hint)
    return gathered(cx, Steps(e.span, index, n, size, lambda part: part), cond, body)


def element(cx: Context, e: tree.Comprehension, k: int, hint: Type | None) -> tuple[term.Term | None, term.Term]:
    """In the scope of clause `k`: the condition, if it is the last one and there is one, and what comes after."""
    cond = None
    if e.cond is not None and k + 1 == len(e.clauses):
        cond = cx.check(e.cond, ty.BOOL, Why("the condition after `when`"))
    return cond, clause(cx, e, k + 1, hint)


@node
class Steps:
    """The steps of a clause, by index.  `around` binds the names of the clause in a part of a step."""

    span: Span
    index: str
    count: term.Term
    size: ty.Size
    around: Callable[[term.Term], term.Term]


def gathered(cx: Context, steps: Steps, cond: term.Term | None, body: term.Term) -> term.Term:
    """The array of what the steps give, or those for which the condition holds."""
    span = steps.span

    def build(part: term.Term) -> term.Term:
        return term.Build(span, ty.Arr(part.ty, steps.size), steps.index, steps.count, steps.around(part))

    if cond is None:
        return sized(cx, build(body))
    if in_any_order(cx, cond, body):
        return selected(cx, steps, build(cond), body)
    t = ty.Con(OPTION, (body.ty,))
    some, none = option(cx, body.span, t, body), option(cx, span, t, None)
    return kept(cx, build(term.If(span, t, cond, some, none)), span)


def option(cx: Context, span: Span, t: Type, content: term.Term | None) -> term.Term:
    tag = 0 if content is None else 1
    return term.Con(span, t, cx.datas[OPTION].cases[tag][0], tag, content)


def selected(cx: Context, steps: Steps, conditions: term.Term, body: term.Term) -> term.Term:
    """The elements of the steps for which a condition holds: all conditions are computed before the elements."""
    name = cx.unique("conditions")
    known = term.Var(steps.span, conditions.ty, name)

    def element(at: term.Term) -> term.Term:
        return term.Let(steps.span, body.ty, steps.index, (), at, steps.around(body))

    found = compacted(cx, known, lambda at, one, other: term.If(steps.span, one.ty, at, one, other), element)
    return term.Let(steps.span, found.ty, name, (), conditions, found)


def kept(cx: Context, options: term.Term, span: Span) -> term.Term:
    """The values present in an array of options."""
    maybe, _size = element_type(cx, options)
    assert isinstance(maybe, ty.Con)
    (t,) = maybe.args
    assert not isinstance(t, ty.Size)
    name, content = cx.unique("options"), cx.unique("element")
    xs = term.Var(span, options.ty, name)

    def cases(at: term.Term, some: term.Term, none: term.Term) -> term.Term:
        """`match at with Some element -> some | None -> none`"""
        there = term.PCon(maybe, cx.datas[OPTION].cases[1][0], 1, term.PVar(t, content))
        arms = (term.Arm(span, there, None, some), term.Arm(span, term.PWild(maybe), None, none))
        return term.Match(span, some.ty, at, arms)

    def element(at: term.Term) -> term.Term:
        never = term.Prim(span, t, "error", (term.Lit(span, ty.STRING, ""),))
        return cases(term.Prim(span, maybe, "index", (xs, at)), term.Var(span, t, content), never)

    found = compacted(cx, xs, cases, element)
    return term.Let(span, found.ty, name, (), options, found)


Cases = Callable[[term.Term, term.Term, term.Term], term.Term]


def compacted(cx: Context, marks: term.Var, cases: Cases, element: Callable[[term.Term], term.Term]) -> term.Term:
    """The elements at the indices at which an array of marks says so: `cases mark yes no` tells.  A first loop counts
    them and records their indices, in order: each step records its own, and the next one writes over it if there was
    no element (as `Prelude._places`)."""
    span = marks.span
    mark, size = element_type(cx, marks)
    state, i, count, places, k = map(cx.unique, ("state", "i", "count", "places", "k"))
    ints = ty.Arr(ty.I64, size)
    noted = ty.Tup((ty.I64, ints))

    def var(name: str, of: Type) -> term.Term:
        return term.Var(span, of, name)

    def prim(of: Type, op: str, *args: term.Term) -> term.Term:
        return term.Prim(span, of, op, args)

    def open_(scrutinee: term.Term, body: term.Term) -> term.Term:
        """`match scrutinee with (count, places) -> body`"""
        pattern = term.PTuple(noted, (term.PVar(ty.I64, count), term.PVar(ints, places)))
        return term.Match(span, body.ty, scrutinee, (term.Arm(span, pattern, None, body),))

    one_more = prim(ty.I64, "add", var(count, ty.I64), int_lit(span, 1))
    more = cases(prim(mark, "index", marks, var(i, ty.I64)), one_more, var(count, ty.I64))
    written = prim(ints, "update", var(places, ints), var(i, ty.I64), var(count, ty.I64))
    step = term.Tuple(span, noted, (more, written))
    n = dim(marks, 0, span)
    start = term.Tuple(span, noted, (int_lit(span, 0), prim(ints, "fill", n, int_lit(span, 0))))
    note = term.For(span, noted, state, start, i, n, open_(var(state, noted), step))
    item = element(prim(ty.I64, "index", var(places, ints), var(k, ty.I64)))
    found = term.Build(span, ty.Arr(item.ty, cx.solver.unknown_size()), k, var(count, ty.I64), item)
    return open_(note, sized(cx, found))


def over(cx: Context, e, k: int, pattern, source: term.Term, span: Span, hint) -> term.Term:
    """The array for `for x in xs`, built by index."""
    elem, size = element_type(cx, source, pattern.span.text)
    name, index = cx.unique("source"), cx.unique("k")
    xs = term.Var(span, source.ty, name)
    item = term.Prim(span, elem, "index", (xs, term.Var(span, ty.I64, index)))
    with cx.scope():
        learn(cx, xs, xs.ty)
        with cx.scope(), cx.allowing(PURE, "bulk", e.span):
            matched = bind_pattern(cx, pattern, elem)
            cond, body = element(cx, e, k, hint)

    def around(part: term.Term) -> term.Term:
        if isinstance(matched, term.PVar):
            return term.Let(span, part.ty, matched.name, (), item, part)
        return term.Match(span, part.ty, item, (term.Arm(span, matched, None, part),))

    built = gathered(cx, Steps(e.span, index, dim(xs, 0, span), size, around), cond, body)
    return term.Let(e.span, built.ty, name, (), source, built)


def element_type(cx: Context, a: term.Term, each: str = "") -> tuple[Type, ty.Size]:
    """The element type and size of an array, whose elements a comprehension may name `each`.  Raises an error if `a`
    cannot be an array."""
    t = prune(a.ty)
    ways = taken_apart(t)
    if each and (t == ty.I64 or phrase(t) == "a number"):
        ways = (f"to count from 0:  [for {each} < {a.span.text} -> e]",)
    elif each and type(t) is ty.Con and t.name == "list":
        ways = (f"over a list:  List.map (fun {each} -> e) xs", "or make an array of it first:  List.to_array xs")
    if type(t) is not ty.Arr:
        if type(t) in (ty.Con, ty.Tup, ty.Fn):
            title = f"an array is wanted here, not {printer(cx).type(t)}"
            raise cx.fail("E0213", title, a.span, helps=ways)
        wanted = ty.Arr(cx.solver.fresh(), cx.solver.size())
        cx.unify(t, wanted, a.span, Why("an array", help=ways[0] if ways else ""))
        t = wanted
    return t.elem, t.size


# ---- indexing


@rule(tree.Index)
def index(cx: Context, e: tree.Index, expected) -> term.Term:
    source = cx.infer(e.array)
    if type(prune(source.ty)) is ty.Con:
        element_type(cx, source)  # the error about it, before one about the index: `m["key"]`
    enough_dimensions(cx, source, e.indices)
    if not any(isinstance(i, tree.Slice) for i in e.indices):
        return indexed(cx, source, [int_index(cx, i) for i in e.indices if not isinstance(i, tree.Slice)], e.span)
    name = cx.unique("source")
    body = sliced(cx, term.Var(e.array.span, source.ty, name), list(e.indices), e.span)
    return term.Let(e.span, body.ty, name, (), source, body)


def enough_dimensions(cx: Context, source: term.Term, indices: Sequence[tree.Expr | tree.Slice]) -> None:
    """Raises an error for more indices than an array has dimensions."""
    known, inner = dimensions(source.ty)
    rank = len(known)
    if not 0 < rank < len(indices) or type(inner) is Meta:
        return
    p = printer(cx)
    title = f"{p.type(source.ty)} has {rank} dimension{'s' * (rank > 1)}, but {len(indices)} indices are given"
    element = f"its elements are of type {p.type(inner)}:  {source.span.text}[{', '.join('ijklmnop'[:rank])}]"
    raise cx.fail("E0213", title, indices[rank].span.to(indices[-1].span), helps=(element, *taken_apart(inner)))


def int_index(cx: Context, e: tree.Expr) -> term.Term:
    at = cx.infer(e, ty.I64)
    return cx.coerce(at, ty.I64, Why("an index", help=several(prune(at.ty), e.span.text)))


def several(t: Type, text: str) -> str:
    """A help for an index that is an array or `None`, as in NumPy."""
    if type(t) is ty.Arr and prune(t.elem) == ty.BOOL:
        return "what fulfils a condition:  filter (fun x -> ...) xs  or  [for i < length xs when ... -> xs[i]]"
    if type(t) is ty.Arr:
        return f"elements at several places:  gather xs {as_argument(text)}"
    return "a dimension of size 1 is made by brackets:  [xs]" if text == "None" else ""


def indexed(cx: Context, source: term.Term, indices: list[term.Term], span: Span) -> term.Term:
    if not indices:
        return source
    t = source.ty
    for _ in indices:
        t, _size = element_type(cx, term.Var(source.span, t, "element"))
    return term.Prim(span, t, "index", (source, *indices))


def sliced(cx: Context, source: term.Term, indices: list, span: Span) -> term.Term:
    """Indexes by the leading ints.

    A slice cuts the outermost dimension; later indices apply to each of its elements."""
    first = next((k for k, i in enumerate(indices) if isinstance(i, tree.Slice)), len(indices))
    source = indexed(cx, source, [int_index(cx, i) for i in indices[:first]], span)
    if first == len(indices):
        return source
    cut = slice_of(cx, source, indices[first], span)
    rest = indices[first + 1 :]
    if not rest:
        return cut
    elem, size = element_type(cx, cut)
    name, k = cx.unique("cut"), cx.unique("k")
    part = term.Var(span, cut.ty, name)
    row = term.Prim(span, elem, "index", (part, term.Var(span, ty.I64, k)))
    with cx.scope():
        learn(cx, part, part.ty)
        body = sliced(cx, row, rest, span)
        built = sized(cx, term.Build(span, ty.Arr(body.ty, size), k, dim(part, 0, span), body))
    return term.Let(span, built.ty, name, (), cut, built)


def slice_of(cx: Context, source: term.Term, s: tree.Slice, span: Span) -> term.Term:
    elem, size = element_type(cx, source)
    if s.low is None and s.high is None:
        return source
    low_size = ty.Size(0) if s.low is None else size_of(cx, s.low)
    high_size = size if s.high is None else size_of(cx, s.high)
    name = cx.unique("whole")
    whole = term.Var(source.span, source.ty, name)
    low = int_lit(span, 0) if s.low is None else int_index(cx, s.low)
    high = dim(whole, 0, span) if s.high is None else int_index(cx, s.high)
    known = None
    if low_size is not None and high_size is not None:
        known = sizes.sub(cx.solver.sizes.norm(high_size), low_size)
    elif s.low is not None and s.high is not None:
        known = extent(cx, s.low, s.high)
    if known is None or (not known.terms and known.const < 0):
        known = cx.solver.unknown_size()
    t = ty.Arr(elem, known)
    return term.Let(span, t, name, (), source, term.Prim(span, t, "slice", (whole, low, high)))


@rule(tree.ArrayWith)
def array_with(cx: Context, e: tree.ArrayWith, expected) -> term.Term:
    """Array update.  All places and values are computed first, from left to right, so
    `{ a with [i] = a[j]; [j] = a[i] }` swaps."""
    old = cx.infer(e.array, expected)
    name = cx.unique("array")
    result: term.Term = term.Var(e.array.span, old.ty, name)
    bound = [(name, old)]
    for indices, value in e.updates:
        enough_dimensions(cx, old, indices)
        places = [int_index(cx, i) for i in indices]
        elem = old.ty
        for _ in indices:
            elem, _size = element_type(cx, term.Var(e.array.span, elem, "element"))
        new = cx.check(value, elem, Why("the new element"))
        if len(e.updates) > 1 or not all(map(is_plain, places)):
            places = [named(cx, place, bound) for place in places]
        if len(e.updates) > 1:
            new = named(cx, new, bound)
        result = term.Prim(e.span, old.ty, "update", (result, new, *places))
    for name, value in reversed(bound):
        result = term.Let(e.span, old.ty, name, (), value, result)
    return result


def is_plain(index: term.Term) -> bool:
    """True for an index that may as well be computed later: it neither fails nor does anything."""
    match index:
        case term.Prim(_, _, "add" | "sub" | "mul", args):
            return all(map(is_plain, args))
        case term.Prim(_, _, "mod" | "div", (left, term.Lit(_, _, right))):
            return right != 0 and is_plain(left)
        case _:
            return isinstance(index, term.Var | term.Lit)


def named(cx: Context, value: term.Term, bound: list[tuple[str, term.Term]]) -> term.Term:
    """A variable for a value that is computed beforehand; `bound` receives its binding."""
    if isinstance(value, term.Var | term.Lit):
        return value
    name = cx.unique("operand")
    bound.append((name, value))
    return term.Var(value.span, value.ty, name)


# ---- loops


@rule(tree.LoopFor)
def loop_for(cx: Context, e: tree.LoopFor, expected) -> term.Term:
    init = cx.infer(e.init, expected)
    count = cx.check(e.count, ty.I64, Why("the number of steps"))
    state = cx.unique("state")
    with cx.scope():
        i = cx.local(e.index, ty.I64, e.span)
        body = loop_body(cx, e, state, init, e.body, init.ty)
    return term.For(e.span, init.ty, state, init, i, count, body)


@rule(tree.LoopWhile)
def loop_while(cx: Context, e: tree.LoopWhile, expected) -> term.Term:
    init = cx.infer(e.init, expected)
    state = cx.unique("state")
    cond = loop_body(cx, e, state, init, e.cond, ty.BOOL, "the condition of `while`")
    body = loop_body(cx, e, state, init, e.body, init.ty)
    warn_of_exact(cx, cond)
    return term.While(e.span, init.ty, state, init, cond, body)


def warn_of_exact(cx: Context, cond: term.Term) -> None:
    """Warns of a loop that ends when floats are equal: it may never end."""
    stack = [cond]
    while stack:
        t = stack.pop()
        stack += subterms(t)
        if isinstance(t, term.Prim) and t.op in ("eq", "ne") and is_float(t.args[0].ty):
            title = "floats are compared exactly in the condition of a loop"
            note = "rounding may keep this from ever being so"
            helps = ("compare with  <  or within a tolerance:  abs (a - b) > 1e-9",)
            cx.warnings.add(Diagnostic("W0205", title, t.span, note, helps=helps))


def is_float(t: Type) -> bool:
    t = prune(t)
    return "real" in t.classes if isinstance(t, Meta) else isinstance(t, ty.Con) and t.name in ty.FLOATS


def loop_body(
    cx: Context, e, state: str, init: term.Term, body: tree.Expr, t: Type, what="the body of the loop"
) -> term.Term:
    """The core of `body`, with the loop's pattern bound to its state."""
    variable = term.Var(e.state.span, init.ty, state)
    with cx.scope():
        if isinstance(e.state, tree.PatVar):
            learn(cx, variable, init.ty)
        pattern = bind_pattern(cx, e.state, init.ty)
        help = STEPS if ends_at_semicolon(body) else ""
        if isinstance(body, tree.Binary) and body.op == "=":
            help = f"`=` compares; the body is the next state itself:  {body.right.span.text}"
        made = cx.check(body, prune(t), Why(what, e.init.span, "the loop's state starts as this", help=help))
    if isinstance(pattern, term.PVar):
        return term.Let(e.state.span, t, pattern.name, (), variable, made)
    return term.Match(e.state.span, t, variable, (term.Arm(e.state.span, pattern, None, made),))
