"""Inner sizes of arrays as int terms, taken from types where an array without rows cannot tell them.

[for x in xs -> [x, x]]   ->   sized(Build(k, length xs, ...), 2)
map f xs                  ->   map[float[m], float[2], n] with the sizes ((m), (2), ()) applied to f, xs

A run-time size (`?`) that nothing in scope tells is 0.
"""

from __future__ import annotations

from typing import Any

from dpl.core import term, ty
from dpl.node import replace
from dpl.source import Span
from dpl.types.solve.meta import dimensions, is_scalar
from dpl.types.solve.sizes import names
from dpl.types.state.checks import alone, compute, dim, int_lit, named, or_guess, unlike
from dpl.types.state.deferred import Deferred
from dpl.types.state.scope import Scope

Evidence = dict[str, term.Term]  # name of a size -> the term that computes it


def inner_sizes(
    zonk: Any, t: Any, evidence: Evidence, others: tuple[term.Var, ...], span: Span
) -> tuple[term.Term, ...]:
    """The sizes of type `t` as terms, outermost first; () if it is not an array.

    `others` are variables in scope whose types were unknown when the evidence was collected."""
    sizes = [zonk.size(size) for size in dimensions(t)[0]]
    if others and any(compute(size, evidence, span) is None for size in sizes):
        evidence = {**_late(zonk, others), **evidence}
    return tuple([zonk(_size(size, evidence, span)) for size in sizes])


def _late(zonk: Any, variables: tuple[term.Var, ...]) -> Evidence:
    found: Evidence = {}
    for v in variables:
        known = zonk.type(v.ty)
        for k, size in enumerate(zonk.size(n) for n in dimensions(known)[0]):
            if not size.const and len(size.terms) == 1 and len(size.terms[0][0]) == size.terms[0][1] == 1:
                found.setdefault(size.terms[0][0][0], dim(term.Var(v.span, known, v.name), k, v.span))
    return found


def _size(size: ty.Size, evidence: Evidence, span: Span) -> term.Term:
    found = compute(size, evidence, span)
    if found is None:
        return int_lit(span, 0)
    if size.const < 0 or any(factor < 0 for _, factor in size.terms):  # a negative count that is never used
        return term.Prim(span, ty.I64, "max", (found, int_lit(span, 0)))
    return found


def sized(cx: Scope, array: term.Term) -> term.Term:
    """An array that may have no rows, with the inner sizes that its type gives."""
    evidence, others = cx.known_sizes() if cx.ints else dict(cx.evidence), cx.unlearned

    def build(zonk: Any) -> term.Term:
        t = zonk.type(array.ty)
        if not isinstance(t.elem, ty.Arr | ty.Var):
            return zonk(array)
        return term.Prim(
            array.span, t, "sized", (zonk(array), *inner_sizes(zonk, t.elem, evidence, others, array.span))
        )

    return Deferred(array.span, array.ty, build, (array,))


def agreeing(cx: Scope, operation: term.Prim) -> term.Term:
    """An elementwise operation or product whose operands must agree in sizes that inference cannot compare.

    The inner sizes of an operand without rows may be guesses; they become those of the other operands."""
    if all(is_scalar(t.ty) for t in operation.args):
        return operation

    def build(zonk: Any) -> term.Term:
        made = zonk(operation)
        operands = tuple([term.Var(t.span, t.ty, cx.unique("operand")) for t in made.args])
        fitted = tuple([_like(a, _others(made.op, a, operands)) for a in operands])
        if all(a is b for a, b in zip(operands, fitted)):
            return made
        whole: term.Term = term.Prim(made.span, made.ty, made.op, fitted)
        for operand, t in reversed(list(zip(operands, made.args))):
            whole = term.Let(made.span, made.ty, operand.name, (), t, whole)
        return whole

    return Deferred(operation.span, operation.ty, build, (operation,))


def _others(op: str, array: term.Var, operands: tuple[term.Var, ...]) -> dict[int, list[term.Term]]:
    """For inner dimensions of an operand, the dimensions of others that must agree but differ in their types."""
    own = dimensions(array.ty)[0]
    found: dict[int, list[term.Term]] = {}
    for other in operands:
        sizes = dimensions(other.ty)[0]
        if op == "matmul":
            pairs = [(len(own) - 1, 0)] if array is operands[0] and other is operands[1] and sizes else []
        else:
            pairs = [(len(own) - k, len(sizes) - k) for k in range(1, min(len(own), len(sizes)) + 1)]
        for i, j in pairs:
            if i > 0 and own[i] != sizes[j]:
                found.setdefault(i, []).append(dim(other, j, other.span))
    return found


def _like(array: term.Var, others: dict[int, list[term.Term]]) -> term.Term:
    """`array`; if it has no rows, its inner sizes become those in `others`."""
    if not others:
        return array
    sizes = [dim(array, k, array.span) for k in range(1, len(dimensions(array.ty)[0]))]
    for k, known in others.items():
        for n in known:
            sizes[k - 1] = term.Prim(array.span, ty.I64, "max", (sizes[k - 1], n))
    return term.Prim(array.span, array.ty, "sized", (array, *sizes))


def together(cx: Scope, application: term.Term, count: int) -> term.Term:
    """A call with `count` arguments, several of which may share a size.

    The inner size of an argument without rows may be a guess; it becomes the size of the others.  A run-time size is
    compared between all arguments, including those given later."""

    def build(zonk: Any) -> term.Term:
        made = whole = zonk(application)
        calls: list[term.App] = []
        while len(calls) < count:
            assert isinstance(whole, term.App)
            calls.append(whole)
            whole = whole.fn
        calls.reverse()
        given = [call.arg for call in calls]
        operands = [term.Var(t.span, t.ty, cx.unique("argument")) for t in given]
        fitted = [_like(a, _shared(a, operands)) for a in operands]
        wanted = [_argument(call.fn.ty) for call in calls]
        told = _told(operands, wanted)
        fitted = [_compared(cx, b, a, t, told) for b, a, t in zip(fitted, operands, wanted)]
        if all(a is b for a, b in zip(operands, fitted)) and not _tells_later(made.ty, told):
            return made
        for call, operand in zip(calls, fitted):
            whole = replace(call, fn=whole, arg=operand)
        whole = _awaiting(cx, whole, told)
        for operand, t in reversed(list(zip(operands, given))):
            whole = term.Let(made.span, made.ty, operand.name, (), t, whole)
        return whole

    return Deferred(application.span, application.ty, build, (application,))


def _tells_later(function: ty.Ty, told: Evidence) -> bool:
    """True if the arguments so far tell sizes of later arguments."""
    while isinstance(function, ty.Fn):
        if any(name in told for size in dimensions(function.arg)[0] for name in names(size)):
            return True
        function = function.result
    return False


def _awaiting(cx: Scope, partial: term.Term, told: Evidence) -> term.Term:
    """A partial application that checks the sizes of its next arguments when they arrive.

    f xs   ->   let partial = f xs in fun next -> partial (next, checked)
    """
    function = partial.ty
    if not isinstance(function, ty.Fn) or not _tells_later(function, told):
        return partial
    span = partial.span
    applied = term.Var(span, function, cx.unique("partial"))
    arrived = term.Var(span, function.arg, cx.unique("next"))
    value = term.Var(span, function.arg, cx.unique("checked"))
    pairs = []
    for k, size in enumerate(dimensions(function.arg)[0]):
        if any(name in told for name in names(size)) and (wanted := compute(size, told, span)) is not None:
            of = "the next argument's size" if k == 0 else f"the size of the next argument's dimension {k}"
            actual = dim(value, k, span)
            pairs.append((actual, or_guess(wanted, actual), f"{of} is not that of {named(wanted) or 'the other'}"))
    given = term.Check(span, function.arg, value.name, arrived, tuple(pairs)) if pairs else arrived
    body = _awaiting(cx, term.App(span, function.result, applied, given), told)
    return term.Let(span, function, applied.name, (), partial, term.Lam(span, function, arrived.name, body))


def _argument(function: ty.Ty) -> ty.Ty:
    assert isinstance(function, ty.Fn)
    return function.arg


def fields_together(cx: Scope, fields: term.Tuple, wanted: list[Any]) -> term.Term:
    """The fields of a record, with run-time checks of the sizes that several fields share."""
    if sum(not is_scalar(t.ty) for t in fields.items) < 2:
        return fields

    def build(zonk: Any) -> term.Term:
        made = zonk(fields)
        types = [zonk.type(t) for t in wanted]
        operands = [term.Var(t.span, t.ty, cx.unique("field")) for t in made.items]
        told = _told(operands, types)
        checked = [_compared(cx, v, v, t, told) for v, t in zip(operands, types)]
        if all(a is b for a, b in zip(operands, checked)):
            return made
        whole: term.Term = replace(made, items=tuple(checked))
        for operand, t in reversed(list(zip(operands, made.items))):
            whole = term.Let(made.span, made.ty, operand.name, (), t, whole)
        return whole

    return Deferred(fields.span, fields.ty, build, (fields,))


def _told(operands: list[term.Var], wanted: list[ty.Ty]) -> Evidence:
    """The run-time sizes that the operands tell, each with the first dimension of an operand that has it."""
    found: Evidence = {}
    for types in ([v.ty for v in operands], wanted):
        for v, t in zip(operands, types):
            for k, size in enumerate(dimensions(t)[0]):
                if name := alone(size):
                    found.setdefault(name, dim(v, k, v.span))
    return found


def _compared(cx: Scope, array: term.Term, operand: term.Var, expected: ty.Ty, told: Evidence) -> term.Term:
    """An argument or a field, with a check that it has the sizes that the others tell."""
    value = term.Var(array.span, array.ty, cx.unique("checked"))
    pairs = []
    for k, (have, want) in enumerate(zip(dimensions(operand.ty)[0], dimensions(expected)[0])):
        wanted = compute(want, told, array.span) if have != want and any(n[0] == "?" for n in names(want)) else None
        if wanted is not None and wanted != dim(operand, k, operand.span):
            actual = dim(value, k, array.span)
            pairs.append((actual, or_guess(wanted, actual), unlike(operand, k, wanted)))
    return term.Check(array.span, expected, value.name, array, tuple(pairs)) if pairs else array


def _shared(array: term.Var, operands: list[term.Var]) -> dict[int, list[term.Term]]:
    """For each inner dimension of run-time size, the dimensions of other arguments of the same size."""
    return {
        k: found
        for k, size in enumerate(dimensions(array.ty)[0])
        if k and any(n[0] == "?" for n in names(size))
        and (found := [dim(a, j, a.span) for a in operands if a is not array
                       for j, other in enumerate(dimensions(a.ty)[0]) if other == size])
    }  # fmt: skip
