"""Functions whose derivative is not that of their body: with rules of their own, and checkpoints.

A rule stands in for the derivative of its function in the mode it is for; in the other mode it is transposed, being
linear in its tangent:

    vjp rule, forward     (y, k) = rule.fn c x;  dy: the transpose of  cy -> pullback k cy  at dx
    jvp rule, reverse     y = rule.fn c x 0;     cx: the transpose of  dx -> rule.fn c x dx  at cy

A transpose is the reverse mode of the linear function, at zero.

A checkpoint's f.fwd keeps its arguments alone; its f.bwd runs the true f.fwd, without what it prints, and then f.bwd.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dplc.ad import rules
from dplc.ad.builder import Builder
from dplc.ad.presence import Part, Presence
from dplc.ad.tangent import zero
from dplc.flat import term as f
from dplc.flat.walk import every, with_blocks
from dplc.passes import NeedsInterpreter

if TYPE_CHECKING:
    from dplc.ad.activity import Deps
    from dplc.ad.expand import Derivatives, Forwarded, Reversed

OUTPUT = frozenset({"write", "progress"})


def deps(d: Derivatives, name: str, body: Deps) -> Deps:
    """A rule may give anything of its argument; of what it captures, the result depends on what the body depends on."""
    last = frozenset(d.last_leaves(d.program.fns[name]))
    return tuple(on | last for on in body)


def only_last(d: Derivatives, fn: f.Fn, active: Sequence[int]) -> None:
    """A rule says nothing of what its function captures; the interpreter differentiates the function itself then."""
    last = d.last_leaves(fn)
    if any(i not in last for i in active):
        raise NeedsInterpreter("a derivative flows to what a function with a rule of its own captures", fn.span)


def only_linear(d: Derivatives, name: str, of: f.Fn) -> None:
    """A jvp rule whose body multiplies what depends on the tangent is left to the interpreter, which knows whether it
    is linear all the same, and says so if not."""
    fn = d.body(name, of.span)
    varied = d.graph(name).varied(d.last_leaves(fn))
    for bind in every(fn.body):
        if isinstance(bind.rhs, f.Op):
            op = bind.rhs
            on = [any(node in varied for node in d.nodes((op.args[i],))) for i in rules.flows(op)]
            products = op.op in ("mul", "dot", "matmul")
            if sum(on) > 1 if products else on[1:] == [True] if op.op == "div" else any(on) and op.op in rules.CURVED:
                raise NeedsInterpreter("a rule of `with_jvp` may not be linear in its tangent", op.span)


# ---- rules ----------------------------------------------------------------------------------------------------------


def forward(d: Derivatives, fn: f.Fn, made: Forwarded, active: Sequence[tuple[int, Presence]]) -> None:
    """Writes f.jvp of a function with a rule."""
    only_last(d, fn, [i for i, _ in active])
    rule, x = d.program.rules[fn.name], fn.params[-1]
    leaves = d.tangents.leaves(x.ty)
    start = d.last_leaves(fn)[0]
    b = Builder(d.supply)
    given = {i - start: Part(b.fresh("d", leaves[i - start]), presence) for i, presence in active}
    tangent = [given.get(k) for k in range(len(leaves))]
    if rule.kind == "jvp":
        only_linear(d, rule.fn, fn)
        dx = d.convert.from_tan(b, [None if part is None else part.atom for part in tangent], x)
        y, dy = b.call(rule.fn, (*fn.params, dx), (*fn.results, *fn.results), fn.span)
        outs = d.convert.to_tan(b, dy)
    else:
        y, kept = b.call(rule.fn, fn.params, d.body(rule.fn).results, fn.span)
        outs = transpose(d, b, rule.pullback, (kept,), y, tangent, fn)
    chosen = [outs[i] for i in made.results]
    params = (*fn.params, *(part.atom for part in given.values() if isinstance(part.atom, f.Var)))
    d.program.fns[made.name] = f.Fn(
        made.name, params, (*fn.results, *(a.ty for a in chosen)), b.block(y, *chosen), fn.label, fn.span
    )  # fmt: skip


def reverse(
    d: Derivatives, fn: f.Fn, made: Reversed, active: Sequence[int], wanted: Sequence[tuple[int, Presence]]
) -> None:
    """Writes f.fwd and f.bwd of a function with a rule."""
    only_last(d, fn, active)
    rule, x = d.program.rules[fn.name], fn.params[-1]
    leaves, start = d.tangents.leaves(x.ty), d.last_leaves(fn)[0]
    there, back = Builder(d.supply), Builder(d.supply)
    types = [leaf for ty in fn.results for leaf in d.tangents.leaves(ty)]
    seeds = {i: back.fresh("c", types[i]) for i, _ in wanted}
    accs = [back.fresh("c", leaves[i - start]) for i in active]
    presence = dict(wanted)
    cts = [Part(seeds[i], presence[i]) if i in seeds else None for i in range(len(types))]
    if rule.kind == "vjp":
        y, kept = there.call(rule.fn, fn.params, d.body(rule.fn).results, fn.span)
        value = there.make((kept, y))
        param = back.fresh("res", value.ty)
        dy = d.convert.from_tan(back, [seeds.get(i) for i in range(len(types))], back.get(param, 1))
        (dx,) = back.call(rule.pullback, (back.get(param, 0), dy), (x.ty,), fn.span)
        parts = d.convert.to_tan(back, dx)
    else:
        only_linear(d, rule.fn, fn)
        (y,) = there.call(fn.name, fn.params, fn.results, fn.span)
        value = there.make(fn.params)
        param = back.fresh("res", value.ty)
        params = [back.get(param, i) for i in range(len(fn.params))]
        parts = transpose(d, back, rule.fn, params, params[-1], cts, fn)
    totals = [d.convert.add(back, acc, parts[i - start]) for i, acc in zip(active, accs, strict=True)]
    made.residual = value.ty
    d.program.fns[made.fwd] = f.Fn(
        made.fwd, fn.params, (*fn.results, value.ty), there.block(y, value), fn.label, fn.span
    )
    d.program.fns[made.bwd] = f.Fn(
        made.bwd, (param, *seeds.values(), *accs), tuple(a.ty for a in accs), back.block(*totals), fn.label, fn.span
    )


def transpose(
    d: Derivatives, b: Builder, linear: str, fixed: Sequence[f.Atom], like: f.Atom, cts: Sequence[Part | None], of: f.Fn
) -> list[f.Atom]:
    """The transpose of `linear(fixed ..., t)`, t a tangent of the type of `like`, at the cotangent leaves `cts` of its
    last result."""
    fn = d.body(linear, of.span)
    leaves = d.tangents.leaves(like.ty)
    outs: list[f.Atom] = [zero(leaf) for leaf in leaves]
    last, start = set(d.last_leaves(fn)), d.last_leaves(fn)[0]
    before = sum(len(d.tangents.leaves(ty)) for ty in fn.results[:-1])
    pairs = zip(cts, d.deps(linear)[before:], strict=True)
    wanted = [(before + i, part, on & last) for i, (part, on) in enumerate(pairs) if part is not None and on & last]
    active = tuple(sorted(frozenset[int]().union(*(on for _, _, on in wanted))))
    if not active:
        return outs
    made = d.reverse(linear, active, tuple((i, part.presence) for i, part, _ in wanted), of.span)
    nothing = d.convert.from_tan(b, [None] * len(leaves), like)
    *_, residual = b.call(made.fwd, (*fixed, nothing), (*fn.results, made.residual), of.span)
    accs = [zero(leaves[i - start]) for i in active]
    args = (residual, *(part.atom for _, part, _ in wanted), *accs)
    for i, out in zip(active, b.call(made.bwd, args, [a.ty for a in accs], of.span), strict=True):
        outs[i - start] = out
    return outs


# ---- checkpoints ----------------------------------------------------------------------------------------------------


def checkpoint(
    d: Derivatives, fn: f.Fn, made: Reversed, active: tuple[int, ...], wanted: tuple[tuple[int, Presence], ...]
) -> None:
    """Writes f.fwd and f.bwd of a checkpoint."""
    there, back = Builder(d.supply), Builder(d.supply)
    ys = there.call(fn.name, fn.params, fn.results, fn.span)
    value = there.make(fn.params)
    made.residual = value.ty
    inside = f.Fn(d.fresh(fn.name, "inside"), fn.params, fn.results, fn.body, fn.label, fn.span)
    d.program.fns[inside.name] = inside
    true = d.reverse(inside.name, active, wanted, fn.span)
    types = [leaf for ty in fn.results for leaf in d.tangents.leaves(ty)]
    params = [leaf for p in fn.params for leaf in d.tangents.leaves(p.ty)]
    param = back.fresh("res", value.ty)
    seeds = [back.fresh("c", types[i]) for i, _ in wanted]
    accs = [back.fresh("c", params[i]) for i in active]
    args = [back.get(param, i) for i in range(len(fn.params))]
    *_, residual = back.call(silent(d, true.fwd), args, (*fn.results, true.residual), fn.span)
    totals = back.call(true.bwd, (residual, *seeds, *accs), [a.ty for a in accs], fn.span)
    made.presence = true.presence
    d.program.fns[made.fwd] = f.Fn(
        made.fwd, fn.params, (*fn.results, value.ty), there.block(*ys, value), fn.label, fn.span
    )
    d.program.fns[made.bwd] = f.Fn(
        made.bwd, (param, *seeds, *accs), tuple(a.ty for a in accs), back.block(*totals), fn.label, fn.span
    )


def silent(d: Derivatives, name: str) -> str:
    """The name of a function that does the same and prints nothing; `quieten` makes it when it is wanted."""
    quiet = f"{name}.silent"
    d.quiet.setdefault(quiet, name)
    return quiet


def quieten(d: Derivatives, quiet: str) -> None:
    name = d.quiet[quiet]
    old = d.program.fns[name]
    if prints(d, name):
        body = quiet_block(d, old.body)
    else:
        vars_ = tuple(f.Var(d.supply.fresh("v"), ty) for ty in old.results)
        body = f.Block((f.Bind(vars_, f.Call(name, old.params)),), vars_)
    d.program.fns[quiet] = f.Fn(quiet, old.params, old.results, body, old.label, old.span)


def prints(d: Derivatives, name: str) -> bool:
    reached = {name}
    todo = [name]
    while todo:
        for bind in every(d.program.fns[todo.pop()].body):
            match bind.rhs:
                case f.Op(op) if op in OUTPUT:
                    return True
                case f.Call(fn) if fn not in reached and fn in d.program.fns:
                    reached.add(fn)
                    todo.append(fn)
                case _:
                    pass
    return False


def quiet_block(d: Derivatives, block: f.Block) -> f.Block:
    binds = []
    for bind in block.binds:
        match bind.rhs:
            case f.Op(op) if op in OUTPUT:
                pass
            case f.Call(fn, args, span):
                binds.append(f.Bind(bind.vars, f.Call(silent(d, fn), args, span)))
            case rhs:
                binds.append(f.Bind(bind.vars, with_blocks(rhs, lambda inner: quiet_block(d, inner))))
    return f.Block(tuple(binds), block.results)
