"""Sizes as terms: ints that compute sizes, and run-time checks of sizes that inference only assumed.

xs : float[?1] where float[3] is wanted   ->   Check(x, xs, dim(x, 0) = 3)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from dpl.core import term, ty
from dpl.core.walk import subterms
from dpl.diagnostics import DplError, Label
from dpl.source import Span
from dpl.types.messages.pretty import Printer
from dpl.types.solve import sizes
from dpl.types.solve.meta import Meta, Type, dimensions, prune
from dpl.types.solve.scheme import replace
from dpl.types.solve.sizes import Verdict
from dpl.types.state.deferred import Deferred
from dpl.types.state.scope import Scope


def int_lit(span: Span, value: int) -> term.Lit:
    """An integer of core."""
    return term.Lit(span, ty.I64, value)


def dim(array: term.Term, k: int, span: Span) -> term.Term:
    """A term for the length of dimension `k` of an array."""
    if k == 0:
        return term.Prim(span, ty.I64, "length", (array,))
    return term.Prim(span, ty.I64, "dim", (array, int_lit(span, k)))


def learn(cx: Scope, variable: term.Term, t: Type, seen: tuple[Type, ...] = ()) -> None:
    """Records how the named sizes in a variable's type can be computed from the variable."""
    t = prune(t)
    if isinstance(variable, term.Var) and type(dimensions(t)[1]) is Meta:  # further dimensions become known later
        cx.unlearned = (*cx.unlearned, variable)
    match t:
        case ty.Arr():
            for k, size in enumerate(dimensions(t)[0]):
                _learn_size(cx, size, dim(variable, k, variable.span))
        case ty.Con(name, args) if args and name in cx.datas and cx.datas[name].fields:
            _learn_fields(cx, variable, cx.datas[name], args)
        case ty.Tup(items):
            for index, item in enumerate(items):
                item = prune(item)
                if type(item) in (ty.Arr, ty.Con, ty.Tup) and not any(item is s for s in seen):
                    seen = (*seen, item)
                    learn(cx, component(variable, items, index), item, seen)
        case _:
            pass


def _learn_size(cx: Scope, size: ty.Size, actual: term.Term) -> None:
    size = cx.solver.sizes.norm(size)
    match size.terms:
        case (((name,), factor),) if name not in cx.evidence and factor > 0:
            for op, number in (("sub", size.const), ("div", factor)):
                if number != (op == "div"):
                    actual = term.Prim(actual.span, ty.I64, op, (actual, int_lit(actual.span, number)))
            cx.evidence[name] = actual
            if name[0] not in "!?":  # a parameter that fixes a size counts as used
                mention(cx, actual)
        case (((name,), 1),) if not size.const and isinstance(cx.evidence[name], term.Var):
            cx.claims.append((actual, cx.evidence[name]))  # `(n : int) (xs : float[n])`: to be compared
        case _:
            pass


def mention(cx: Scope, t: term.Term) -> None:
    """Marks the variables in a term as used."""
    if isinstance(t, term.Var):
        cx.unused.pop(t.name, None)
    for part in subterms(t):
        mention(cx, part)


def _learn_fields(cx: Scope, variable: term.Term, data: term.Data, args: tuple) -> None:
    env = {p.name: a for p, a in zip(data.params, args)}
    content = data.cases[0][1]
    parts = content.items if type(content) is ty.Tup else (content,)
    for index, part in enumerate(parts):
        if type(part) is ty.Arr:
            t = replace(part, env, {})
            learn(cx, term.Field(variable.span, t, variable, index), t)


def component(tuple_: term.Term, items: tuple, index: int) -> term.Term:
    """A term for one item of a tuple."""
    patterns = tuple(term.PVar(t, "item") if i == index else term.PWild(t) for i, t in enumerate(items))
    arm = term.Arm(tuple_.span, term.PTuple(tuple_.ty, patterns), None, term.Var(tuple_.span, items[index], "item"))
    return term.Match(tuple_.span, items[index], tuple_, (arm,))


def alone(size: ty.Size) -> str:
    """The name of a size that is a single run-time unknown (`?`); else ""."""
    match size:
        case ty.Size(0, (((name,), 1),)) if name[0] == "?":
            return name
        case _:
            return ""


def compute(size: ty.Size, evidence: dict[str, term.Term], span: Span) -> term.Term | None:
    """An int term for a size; None if some name in it cannot be computed."""
    if not all(n in evidence for n in sizes.names(size)):
        return None
    total: term.Term | None = int_lit(span, size.const) if size.const or not size.terms else None
    for names, factor in size.terms:
        product: term.Term | None = int_lit(span, factor) if factor != 1 else None
        for n in names:
            product = evidence[n] if product is None else term.Prim(span, ty.I64, "mul", (product, evidence[n]))
        assert product is not None
        total = product if total is None else term.Prim(span, ty.I64, "add", (product, total))
    return total


def size_term(cx: Scope, size: ty.Size, span: Span, name: str) -> term.Term:
    """An int term for a size name of an annotation.  An error is reported if nothing in scope can compute the size."""
    evidence = cx.evidence
    number = f"or as a number:  let {cx.defining or 'f'} ({name} : int) ... = ..."
    if cx.hides_value(name):
        number = f"it is not the value `{name}` from above, which the annotation hides: rename one of them"

    def build(zonk: Callable) -> term.Term:
        found = compute(cx.solver.sizes.norm(size), evidence, span)
        if found is None:
            raise cx.fail(
                "E0305",
                f"the size `{name}` cannot be computed here: no array in scope has it",
                span,
                helps=(f"from an argument that has it:  (xs : float[{name}])", number),
            )
        return zonk(found)

    return Deferred(span, ty.I64, build)


def confirm(cx: Scope, t: term.Term, expected: Type, actual: Type) -> term.Term:
    """`t`, with a run-time check that it has the sizes of `expected`, where both can be computed."""
    evidence, claimed = dict(cx.evidence), tuple(cx.solver.claimed)
    name = cx.unique("checked")

    def build(zonk: Any) -> term.Term:
        value = term.Var(t.span, t.ty, name)
        known = {**_told(cx, value, actual), **evidence}
        found = _pairs(cx, value, actual, expected, known, claimed, isinstance(expected, Meta))
        pairs = tuple((zonk(a), zonk(b), text) for a, b, text in found)
        if not pairs:
            return zonk(t)
        whole = term.Var(t.span, t.ty, cx.unique("whole"))
        fitted = _fitted(cx, whole, actual, expected, evidence)
        body = t if fitted is None else term.Let(t.span, t.ty, whole.name, (), t, fitted)
        return term.Check(t.span, zonk.type(expected), name, zonk(body), pairs)

    return Deferred(t.span, expected, build, (t,))


def _told(cx: Scope, value: term.Term, t: Type) -> dict[str, term.Term]:
    """Run-time sizes (`?`) that the dimensions of arrays in `value` can tell, each with its term."""
    match t := prune(t):
        case ty.Arr():
            sizes_ = [alone(cx.solver.sizes.norm(size)) for size in dimensions(t)[0]]
            return {name: dim(value, k, value.span) for k, name in reversed(list(enumerate(sizes_))) if name}
        case ty.Tup(items):
            parts = [_told(cx, component(value, items, i), item) for i, item in enumerate(items)]
            return {name: e for part in reversed(parts) for name, e in part.items()}
        case _:
            return {}


def or_guess(wanted: term.Term, actual: term.Term) -> term.Term:
    """The wanted size, or the actual one if a wanted dimension is 0: an array without rows only guesses its sizes."""
    if not (isinstance(wanted, term.Prim) and wanted.op == "dim"):
        return wanted
    none = term.Prim(wanted.span, ty.BOOL, "eq", (wanted, int_lit(wanted.span, 0)))
    return term.If(wanted.span, ty.I64, none, actual, wanted)


def _fitted(
    cx: Scope, value: term.Term, actual: Type, expected: Type, evidence: dict[str, term.Term]
) -> term.Term | None:
    """`value`; an array without rows gets the wanted inner sizes, since no row contradicts them.

    None if the sizes need no change."""
    actual, expected = prune(actual), prune(expected)
    norm = cx.solver.sizes.norm
    match actual, expected:
        case ty.Arr(), ty.Arr():
            inner = list(zip(dimensions(actual)[0], dimensions(expected)[0]))[1:]
            wanted = [compute(norm(want), evidence, value.span) if norm(have) != norm(want) else None
                      for have, want in inner]  # fmt: skip
            if any(n is not None for n in wanted):
                own = [dim(value, k, value.span) for k in range(1, len(wanted) + 1)]
                sizes_ = [n if want is None else or_guess(want, n) for n, want in zip(own, wanted)]
                return term.Prim(value.span, value.ty, "sized", (value, *sizes_))
        case ty.Tup(xs), ty.Tup(ys) if len(xs) == len(ys):
            items = [component(value, xs, i) for i in range(len(xs))]
            fitted = [_fitted(cx, item, x, y, evidence) for item, x, y in zip(items, xs, ys)]
            if any(item is not None for item in fitted):
                return term.Tuple(value.span, value.ty, tuple(b if b is not None else a for a, b in zip(items, fitted)))
        case _:
            pass
    return None


def of_result(cx: Scope, size: ty.Size, claimed: tuple[tuple[ty.Size, ty.Size], ...]) -> ty.Size | None:
    """The claimed size of the result of an operation whose operand has this size; None if there is no claim."""
    norm = cx.solver.sizes.norm
    both = [(norm(a), norm(b)) for a, b in claimed]
    return next((b if a == norm(size) else a for a, b in both if norm(size) in (a, b)), None)


def out_of_reach(cx: Scope, have, want) -> bool:
    """True if data holds an array of unknown size where a known size is claimed; no check could compare them."""
    if isinstance(have, ty.Size) or isinstance(want, ty.Size):
        return False
    have, want = prune(have), prune(want)
    norm = cx.solver.sizes.norm
    pairs = zip(dimensions(have)[0], dimensions(want)[0])
    return any("?" in marks(norm(h)) and not marks(norm(w)) & {"?", "!"} for h, w in pairs)


def marks(size: ty.Size) -> set[str]:
    return {n[0] for n in sizes.names(size)}


def hidden(cx: Scope, span: Span, actual: Type, expected: Type) -> DplError:
    p = Printer(cx.solver.sizes, cx.module)
    have, want = p.type(actual), p.type(expected)
    return cx.fail(
        "E0308",
        f"the sizes inside of this {have} are not known, and {want} is wanted",
        span,
        helps=("check each array where it is put there, or claim it:  List.map (fun x -> (x :> float[3])) xs",),
    )


def differ(cx: Scope, span: Span, have: ty.Size, want: ty.Size) -> DplError:
    """The error for two sizes that turn out late to differ."""
    solver, p = cx.solver, Printer(cx.solver.sizes, cx.module)
    labels = ((size, solver.sizes.origin(size)) for size in (have, want))
    return cx.fail(
        "E0301",
        f"the sizes {p.size(have)} and {p.size(want)} differ",
        span,
        note=f"this has size {p.size(have)}, where {p.size(want)} is wanted",
        labels=tuple(Label(place, f"size {p.size(size)} comes from here") for size, place in labels if place),
    )


def named(e: term.Term) -> str:
    """The source text of an array (or of the array whose size `e` takes) for a title; "" if it is too long."""
    if isinstance(e, term.Prim) and e.op in ("length", "dim"):
        e = e.args[0]
    text = e.span.text
    if re.fullmatch(r"\([^()]*\)", text):
        text = text[1:-1]
    if isinstance(e, term.Var) and (bound := re.match(r"\(?([^\W\d][\w']*)", text)):  # the place where it is bound
        name = re.sub(r"^.*\.(?=\D)|\.\d+$", "", e.name)
        text = name if name == bound[1] else text
    return f"`{text}`" if 0 < len(text) <= 30 and not set(text) & set("{}\n") else ""


def which(value: term.Term, k: int) -> str:
    """The size of dimension `k` of an array, in the words of titles."""
    array = named(value) or "this array"
    return f"{array}'s size" if k == 0 else f"the size of {array}'s dimension {k}"


def unlike(value: term.Term, k: int, wanted: term.Term) -> str:
    """The message for a size that differs from the wanted one."""
    other = named(wanted) or "the other"
    if other == named(value):  # of two parameters of one name
        other = f"the other {other}"
    return f"{which(value, k)} is not that of {other}"


def _pairs(
    cx: Scope,
    value: term.Term,
    actual: Type,
    expected: Type,
    evidence: dict[str, term.Term],
    claimed: tuple[tuple[ty.Size, ty.Size], ...],
    definite: bool,
):
    """Yields the checks for `value`: the actual size, the wanted size and the message of each doubtful dimension.

    With `definite`, only dimensions whose wanted size is known at compile time are checked."""
    actual, expected = prune(actual), prune(expected)
    norm = cx.solver.sizes.norm
    match actual, expected:
        case ty.Arr(), ty.Arr():
            for k, (have, want) in enumerate(zip(dimensions(actual)[0], dimensions(expected)[0])):
                verdict = cx.solver.sizes.unify(have, want)  # more may be known by now
                claim = of_result(cx, have, claimed) if verdict is Verdict.EQUAL else None
                if verdict is Verdict.EQUAL and claim is None:
                    continue
                want = claim or want
                rigid = any(n[0] not in "!?" for n in sizes.names(sizes.sub(norm(have), norm(want))))
                if verdict is Verdict.DIFFERENT and not rigid:  # a claim that `n` is 10 is allowed
                    raise differ(cx, value.span, have, want)
                if definite and any(n[0] == "?" for n in sizes.names(norm(want))):
                    continue
                wanted = compute(norm(want), evidence, value.span)
                if wanted is not None:
                    shown = Printer(cx.solver.sizes, cx.module)
                    other = shown.type(expected)
                    text = unlike(value, k, wanted) if "?" in other else f"{which(value, k)} is not that of {other}"
                    text = f"{which(value, k)} is not {shown.size(want)}, the result's" if claim else text
                    yield dim(value, k, value.span), or_guess(wanted, dim(value, k, value.span)), text
        case ty.Con(_, xs), ty.Con(_, ys) if any(out_of_reach(cx, x, y) for x, y in zip(xs, ys)):
            raise hidden(cx, value.span, actual, expected)
        case ty.Tup(xs), ty.Tup(ys) if len(xs) == len(ys):
            for i, (x, y) in enumerate(zip(xs, ys)):
                yield from _pairs(cx, component(value, xs, i), x, y, evidence, claimed, definite)
        case _:
            pass
