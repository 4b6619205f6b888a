"""Custom derivative rules (`with_jvp`, `with_vjp`) in forward and reverse mode.  (Taylor: `taylor/custom_rules.py`.)

A rule replaces the derivative of its function in its own mode.  In the other mode it is transposed, as it is linear in
its tangent:

    vjp rule, forward     (y, k) = rule.fn c x;  dy: the transpose of  cy -> pullback k cy  at dx
    jvp rule, reverse     y = rule.fn c x 0;     cx: the transpose of  dx -> rule.fn c x dx  at cy

The transpose of a linear function is its reverse mode, taken at zero.  A jvp rule runs once, forwards, and keeps what
its transpose needs; only where captures vary, too, it runs again in the backward sweep.

A rule gives no derivative with respect to the captures (c).  The value is computed by the rule, and the ordinary
derivative of that value with respect to the captures is added.  Where the argument is constant, the rule is not used:
the function is differentiated like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dpl.node import node

from dplc.ad.custom import linearity
from dplc.ad.derivatives import Derivatives, Forwarded, Reversed
from dplc.ad.tangents import shape_check
from dplc.ad.tangents.symbolic_zeros import MAYBE_ZERO, Part, Zeros, signed
from dplc.ad.tangents.types import zero
from dplc.flat import term as f
from dplc.flat.build import UNIT_ATOM, Builder

# ---- rules ----------------------------------------------------------------------------------------------------------


def forward(d: Derivatives, fn: f.Fn, made: Forwarded, active: Sequence[tuple[int, Zeros]]) -> None:
    """Writes f.jvp of a function with a rule."""
    if not asks_rule(d, fn, [i for i, _ in active]):
        return forward_body(d, fn, made, active)
    rule, x, start = d.program.rules[fn.name], fn.params[-1], d.last_leaves(fn)[0]
    b = Builder(d.supply)
    given = given_tangents(d, b, fn, active)
    tangent = [given.get(start + k) for k in range(len(d.tangents.leaves(x.ty)))]
    captured = [(i, given[i]) for i in carried(d, fn, given)]
    if rule.kind == "jvp":
        dx = d.convert.from_tan(b, [None if part is None else part.atom for part in tangent], x)
        (y, dy), slopes = along(d, b, linear_rule(d, fn), (*fn.params, dx), captured)
        shape_check.check(d.convert, b, dy, y, "rule_tangent", fn.span)
        outs = d.convert.to_tan(b, dy)
    else:
        (y, kept), slopes = along(d, b, rule.fn, fn.params, captured)
        linear = linearise(d, b, rule.pullback, (kept,), y, tangent, fn)
        shape_check.check(d.convert, b, linear.values[-1], x, "rule_cotangent", fn.span)
        outs = linear.transpose(b, linear.residual, tangent)
    outs = [signed(b, Part(out), out.ty) for out in outs]
    chosen = [d.convert.add(b, outs[i], slopes[i]) if i in slopes else outs[i] for i in made.results]
    finish_forward(d, fn, made, b, given, (y,), chosen)


def forward_body(d: Derivatives, fn: f.Fn, made: Forwarded, active: Sequence[tuple[int, Zeros]]) -> None:
    """Writes f.jvp where the argument is constant: the function itself is differentiated with respect to its captures.
    The value is still that of the function with its rule, as the argument may vary in another derivative around this
    one."""
    b = Builder(d.supply)
    given = given_tangents(d, b, fn, active)
    values = b.calls(fn.name, fn.params, fn.results, fn.span)
    _, slopes = along(d, b, without_rule(d, fn), fn.params, list(given.items()), again=True)
    types = [leaf for ty in fn.results for leaf in d.tangents.leaves(ty)]
    finish_forward(d, fn, made, b, given, values, [slopes.get(i, signed(b, None, types[i])) for i in made.results])


def given_tangents(d: Derivatives, b: Builder, fn: f.Fn, active: Sequence[tuple[int, Zeros]]) -> dict[int, Part]:
    """The tangent parameters of f.jvp, by the number of the leaf."""
    types = [leaf for p in fn.params for leaf in d.tangents.leaves(p.ty)]
    return {i: Part(b.var("d", types[i]), zeros) for i, zeros in active}


def along(
    d: Derivatives, b: Builder, name: str, args: Sequence[f.Atom], captured: Sequence[tuple[int, Part]],
    again: bool = False,
) -> tuple[Sequence[f.Var], dict[int, f.Atom]]:  # fmt: skip
    """Calls a function.  Returns its values, and the tangents of their leaves along those of the captures.  With
    `again`, the function runs for its tangents only, and prints nothing."""
    fn = d.body(name)
    made = d.forward(name, tuple([(i, part.zeros) for i, part in captured]), fn.span) if captured else None
    if made is None or not made.results:
        return () if again else b.calls(name, args, fn.results, fn.span), {}
    types = [leaf for ty in fn.results for leaf in d.tangents.leaves(ty)]
    given = (*args, *(part.atom for _, part in captured))
    name = d.silent.name(made.name) if again else made.name
    values = b.calls(name, given, (*fn.results, *(types[i] for i in made.results)), fn.span)
    width = len(fn.results)
    outs = [out if zeros is MAYBE_ZERO else signed(b, Part(out, zeros), out.ty)
            for out, zeros in zip(values[width:], made.zeros, strict=True)]  # fmt: skip
    return values[:width], dict(zip(made.results, outs, strict=True))


def finish_forward(
    d: Derivatives, fn: f.Fn, made: Forwarded, b: Builder, given: dict[int, Part], values: Sequence[f.Atom],
    outs: Sequence[f.Atom],
) -> None:  # fmt: skip
    params = (*fn.params, *(part.atom for part in given.values() if isinstance(part.atom, f.Var)))
    results = (*fn.results, *(a.ty for a in outs))
    d.program.fns[made.name] = f.Fn(made.name, params, results, b.block(*values, *outs), fn.label, fn.span)


def reverse(
    d: Derivatives, fn: f.Fn, made: Reversed, active: Sequence[int], wanted: Sequence[tuple[int, Zeros]]
) -> None:
    """Writes f.fwd and f.bwd of a function with a rule."""
    if not asks_rule(d, fn, active):
        return reverse_body(d, fn, made, active, wanted)
    rule, x, start = d.program.rules[fn.name], fn.params[-1], d.last_leaves(fn)[0]
    name = rule.fn if rule.kind == "vjp" else linear_rule(d, fn)
    there, back = Builder(d.supply), Builder(d.supply)
    seeds, accs = given_cotangents(d, back, fn, active, wanted)
    side = flowing(d, name, carried(d, fn, active), wanted)
    if rule.kind == "vjp":
        (y, kept), more = there_and_kept(d, there, name, fn.params, side)
        formed = (x,) if shape_check.has_form(x.ty) else ()
        value = there.make((kept, y, *more, *formed))
        param = back.var("res", value.ty)
        dy = d.convert.from_tan(back, [seeds.get(i) for i in range(width(d, fn))], back.get(param, 1))
        (dx,) = back.calls(rule.pullback, (back.get(param, 0), dy), (x.ty,), fn.span)
        if formed:
            shape_check.check(d.convert, back, dx, back.get(param, 2 + len(more)), "rule_cotangent", fn.span)
        parts = d.convert.to_tan(back, dx)
    else:
        zeros = dict(wanted)
        cts = [Part(seeds[i], zeros[i]) if i in seeds else None for i in range(width(d, fn))]
        asked = frozenset(active)
        if side is None:
            linear = linearise(d, there, name, fn.params, x, cts, fn, asked)
            (y, dy), value = linear.values, there.make((linear.residual,))
            param = back.var("res", value.ty)
            parts = linear.transpose(back, back.get(param, 0), cts)
        else:
            nothing = no_tangent(d, there, x)
            (y, dy), more = there_and_kept(d, there, name, (*fn.params, nothing), side)
            value = there.make((*fn.params, *more))
            param = back.var("res", value.ty)
            params = [back.get(param, i) for i in range(len(fn.params))]
            linear = linearise(d, back, name, params, params[-1], cts, fn, asked, again=True)
            parts = linear.transpose(back, linear.residual, cts)
        shape_check.check(d.convert, there, dy, y, "rule_tangent", fn.span)
    parts = [signed(back, Part(part), part.ty) for part in parts]
    totals = {i: d.convert.add(back, acc, parts[i - start]) if i >= start else acc for i, acc in accs.items()}
    if side is not None:
        totals |= taken_back(back, side, back.get(param, 2 if rule.kind == "vjp" else len(fn.params)), seeds, accs)
    finish_reverse(d, fn, made, there.block(y, value), (param, seeds, accs), back.block(*totals.values()))


def reverse_body(
    d: Derivatives, fn: f.Fn, made: Reversed, active: Sequence[int], wanted: Sequence[tuple[int, Zeros]]
) -> None:
    """Writes f.fwd and f.bwd where the argument is constant."""
    name = without_rule(d, fn)
    there, back = Builder(d.supply), Builder(d.supply)
    seeds, accs = given_cotangents(d, back, fn, active, wanted)
    side = flowing(d, name, active, wanted)
    values = there.calls(fn.name, fn.params, fn.results, fn.span)
    _, more = there_and_kept(d, there, name, fn.params, side, again=True)
    value = there.make(more)
    param = back.var("res", value.ty)
    totals: dict[int, f.Atom] = {**accs}
    if side is not None:
        totals |= taken_back(back, side, back.get(param, 0), seeds, accs)
    finish_reverse(d, fn, made, there.block(*values, value), (param, seeds, accs), back.block(*totals.values()))


# ---- what is captured -----------------------------------------------------------------------------------------------


def asks_rule(d: Derivatives, fn: f.Fn, active: Iterable[int]) -> bool:
    return not set(d.last_leaves(fn)).isdisjoint(active)


def without_rule(d: Derivatives, fn: f.Fn) -> str:
    """The name of the same function without a rule."""
    bare = f"{fn.name}.bare"
    if bare not in d.program.fns:
        d.program.fns[bare] = f.Fn(bare, fn.params, fn.results, fn.body, fn.label, fn.span)
    return bare


def linear_rule(d: Derivatives, fn: f.Fn) -> str:
    """The name of the jvp rule with a check that it is linear."""
    name = d.program.rules[fn.name].fn
    count = width(d, fn)
    return linearity.checked(d, name, frozenset(d.last_leaves(d.body(name))), frozenset(range(count, 2 * count)))


def width(d: Derivatives, fn: f.Fn) -> int:
    """The number of leaves of the results."""
    return sum(len(d.tangents.leaves(ty)) for ty in fn.results)


def carried(d: Derivatives, fn: f.Fn, active: Iterable[int]) -> list[int]:
    """The active leaves of the captures on which the rule's value depends."""
    by_rule = frozenset[int]().union(*d.deps(d.program.rules[fn.name].fn)[: width(d, fn)])
    return [i for i in active if i in by_rule and i not in d.last_leaves(fn)]


@node
class Side:
    """Reverse mode of a value with respect to captures: the derivative, the active leaves, and the leaves of the
    value."""

    made: Reversed
    active: tuple[int, ...]
    wanted: tuple[int, ...]


def flowing(d: Derivatives, name: str, active: Sequence[int], wanted: Sequence[tuple[int, Zeros]]) -> Side | None:
    """The reverse mode of a function at the active leaves; None if no derivative flows."""
    deps, given = d.deps(name), frozenset(active)
    chosen = tuple([(i, zeros) for i, zeros in wanted if deps[i] & given])
    on = given & frozenset[int]().union(*(deps[i] for i, _ in chosen))
    if not on:
        return None
    leaves = tuple(sorted(on))
    return Side(d.reverse(name, leaves, chosen, d.body(name).span), leaves, tuple([i for i, _ in chosen]))


def there_and_kept(
    d: Derivatives, b: Builder, name: str, args: Sequence[f.Atom], side: Side | None, again: bool = False
) -> tuple[Sequence[f.Var], tuple[f.Var, ...]]:
    """The values of a function, and its residual, if any.  With `again`, the function runs for the residual only, and
    prints nothing."""
    fn = d.body(name)
    if side is None:
        return () if again else b.calls(name, args, fn.results, fn.span), ()
    there = d.silent.name(side.made.fwd) if again else side.made.fwd
    *values, kept = b.calls(there, args, (*fn.results, side.made.residual), fn.span)
    return values, (kept,)


def taken_back(
    b: Builder, side: Side, kept: f.Atom, seeds: dict[int, f.Var], accs: dict[int, f.Var]
) -> dict[int, f.Atom]:
    """The cotangents of the captures."""
    mine = [accs[i] for i in side.active]
    outs = b.calls(side.made.bwd, (kept, *(seeds[i] for i in side.wanted), *mine), [a.ty for a in mine])
    return dict(zip(side.active, outs, strict=True))


def given_cotangents(
    d: Derivatives, b: Builder, fn: f.Fn, active: Sequence[int], wanted: Sequence[tuple[int, Zeros]]
) -> tuple[dict[int, f.Var], dict[int, f.Var]]:
    """The parameters of f.bwd: the cotangents of the results' leaves, and the accumulators, by the number of the
    leaf."""
    types = [leaf for ty in fn.results for leaf in d.tangents.leaves(ty)]
    leaves = [leaf for p in fn.params for leaf in d.tangents.leaves(p.ty)]
    return {i: b.var("c", types[i]) for i, _ in wanted}, {i: b.var("c", leaves[i]) for i in active}


def finish_reverse(
    d: Derivatives, fn: f.Fn, made: Reversed, there: f.Block,
    given: tuple[f.Var, dict[int, f.Var], dict[int, f.Var]], back: f.Block,
) -> None:  # fmt: skip
    kept, seeds, accs = given
    made.residual = kept.ty
    results, types = (*fn.results, kept.ty), tuple(a.ty for a in accs.values())
    params = (kept, *seeds.values(), *accs.values())
    d.program.fns[made.fwd] = f.Fn(made.fwd, fn.params, results, there, fn.label, fn.span)
    d.program.fns[made.bwd] = f.Fn(made.bwd, params, types, back, fn.label, fn.span)


# ---- the other mode -------------------------------------------------------------------------------------------------


@node
class Linear:
    """A function that is linear in its last argument, run with the argument zero: its values, and what its transpose
    needs.  None of `made` and the residual if no cotangent flows."""

    values: Sequence[f.Var]
    residual: f.Atom
    made: Reversed | None
    leaves: tuple[f.Type, ...]  # those of the last argument
    active: tuple[int, ...]  # those of them that get a cotangent
    wanted: tuple[int, ...]  # the leaves of the last result of which one comes

    def transpose(self, b: Builder, residual: f.Atom, cts: Sequence[Part | None]) -> list[f.Atom]:
        """The cotangents of the last argument from those of the last result."""
        outs: list[f.Atom] = [zero(leaf) for leaf in self.leaves]
        if self.made is not None:
            accs = [signed(b, None, self.leaves[i]) for i in self.active]
            seeds = [part.atom for part in (cts[i] for i in self.wanted) if part is not None]
            for i, out in zip(self.active, b.calls(self.made.bwd, (residual, *seeds, *accs), [a.ty for a in accs])):
                outs[i] = out
        return outs


def linearise(
    d: Derivatives, b: Builder, name: str, fixed: Sequence[f.Atom], like: f.Atom, cts: Sequence[Part | None], of: f.Fn,
    asked: frozenset[int] | None = None, again: bool = False,
) -> Linear:  # fmt: skip
    """Runs `name(fixed ..., t)` at t = 0 for the cotangents `cts` of its last result.  The tangent t has the type of
    `like`.  Only leaves of t that are the arguments' leaves `asked`, those of `of`, get a cotangent, if any are given.
    With `again`, nothing is printed."""
    fn = d.body(name, of.span)
    leaves = tuple(d.tangents.leaves(like.ty))
    last, start = frozenset(d.last_leaves(fn)), d.last_leaves(fn)[0]
    if asked is not None:
        last = frozenset(start + k for k, i in enumerate(d.last_leaves(of)) if i in asked)
    before = sum(len(d.tangents.leaves(ty)) for ty in fn.results[:-1])
    flows = [(i, part, on & last) for i, (part, on) in enumerate(zip(cts, d.deps(name)[before:], strict=True))]
    wanted = [(i, part, on) for i, part, on in flows if part is not None and on]
    args = (*fixed, no_tangent(d, b, like))
    if not wanted:
        values = b.calls(d.silent.name(name) if again else name, args, fn.results, of.span)  # it may fail
        return Linear(values, UNIT_ATOM, None, leaves, (), ())
    active = tuple(sorted(frozenset[int]().union(*(on for _, _, on in wanted))))
    made = d.reverse(name, active, tuple((before + i, part.zeros) for i, part, _ in wanted), of.span)
    there = d.silent.name(made.fwd) if again else made.fwd
    *values, residual = b.calls(there, args, (*fn.results, made.residual), of.span)
    own = tuple(i - start for i in active)
    return Linear(values, residual, made, leaves, own, tuple(i for i, _, _ in wanted))


def no_tangent(d: Derivatives, b: Builder, like: f.Atom) -> f.Atom:
    return d.convert.from_tan(b, [None] * len(d.tangents.leaves(like.ty)), like)
