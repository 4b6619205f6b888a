"""Writing functions in flat for tests, and taking their derivatives in every way there is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dplc.ad.differentiate import differentiate
from dplc.flat import term as f
from dplc.flat.build import Builder
from dplc.flat.interp import Array, Machine
from dplc.flat.verify import verify

F, INT = f.F64, f.I64
VEC, MAT = f.Arr(F, 1), f.Arr(F, 2)


def num(x: float) -> f.Const:
    return f.Const(x, F)


def array(*xs: float) -> Array:
    return Array((len(xs),), list(xs))


def fn(
    name: str,
    params: Sequence[f.Type],
    write: Callable[..., f.Atom | tuple],
    supply: f.Supply,
    results: Sequence[f.Type] = (),
) -> f.Fn:
    """A function of which `write(builder, *params)` writes the body."""
    b = Builder(supply)
    vars_ = tuple(b.var("p", ty) for ty in params)
    given = write(b, *vars_)
    outs = given if isinstance(given, tuple) else (given,)
    return f.Fn(name, vars_, tuple(results) or tuple(a.ty for a in outs), b.block(*outs), name)


def for_(
    b: Builder, count: f.Atom, inits: Sequence[f.Atom], write: Callable[..., Sequence[f.Atom]]
) -> tuple[f.Var, ...]:
    index, state, inner = b.var("i", INT), [b.var("s", a.ty) for a in inits], b.inner()
    body = inner.block(*write(inner, index, *state))
    return b.bind(f.For(index, count, tuple(state), tuple(inits), body), [a.ty for a in inits])


def while_(
    b: Builder, inits: Sequence[f.Atom], test: Callable[..., f.Atom], write: Callable[..., Sequence[f.Atom]]
) -> tuple[f.Var, ...]:
    state, cond, inner = [b.var("s", a.ty) for a in inits], b.inner(), b.inner()
    tested = cond.block(test(cond, *state))
    return b.bind(
        f.While(tuple(state), tuple(inits), tested, inner.block(*write(inner, *state))), [a.ty for a in inits]
    )


def build(b: Builder, count: f.Atom, write: Callable[..., f.Atom]) -> f.Var:
    index, inner = b.var("i", INT), b.inner()
    body = inner.block(write(inner, index))
    ty = body.results[0].ty
    return b.bind(f.Build(index, count, body), [f.Arr(getattr(ty, "elem", ty), getattr(ty, "rank", 0) + 1)])[0]


def if_(b: Builder, cond: f.Atom, then: Callable[[Builder], f.Atom], else_: Callable[[Builder], f.Atom]) -> f.Var:
    blocks = []
    for write in (then, else_):
        inner = b.inner()
        blocks.append(inner.block(write(inner)))
    return b.choose(cond, *blocks)[0]


# ---- derivatives ----------------------------------------------------------------------------------------------------


def with_ad(program: f.Program, name: str, supply: f.Supply) -> f.Program:
    """Adds `name.J(x, dx) -> (y, dy)` and `name.V(x, dy) -> (y, dx)`."""
    of = program.fns[name]
    x, y = of.params[-1].ty, of.results[0]

    def jvp(b: Builder, x: f.Var, dx: f.Var) -> tuple:
        return b.bind(f.Ad("jvp", name, (x, dx), f"{name}.j"), (y, y))

    def vjp(b: Builder, x: f.Var, dy: f.Var) -> tuple:
        out, residual = b.bind(f.Ad("vjp", name, (x,), f"{name}.v"), (y, f.Res(f"{name}.v")))
        return out, b.bind(f.Ad("pullback", name, (residual, dy), f"{name}.v"), (x.ty,))[0]

    for made in (fn(f"{name}.J", (x, x), jvp, supply), fn(f"{name}.V", (x, y), vjp, supply)):
        program.fns[made.name] = made
    return program


def gradient(program: f.Program, name: str, supply: f.Supply) -> str:
    """Adds `name.G(x) -> gradient`, for a function with a float result."""
    of = program.fns[name]

    def grad(b: Builder, x: f.Var) -> f.Atom:
        _, residual = b.bind(f.Ad("vjp", name, (x,), f"{name}.g"), (F, f.Res(f"{name}.g")))
        return b.bind(f.Ad("pullback", name, (residual, num(1.0)), f"{name}.g"), (x.ty,))[0]

    program.fns[f"{name}.G"] = fn(f"{name}.G", (of.params[-1].ty,), grad, supply)
    return f"{name}.G"


def expanded(program: f.Program) -> Machine:
    return Machine(verify(differentiate(verify(program))))


# ---- values as vectors ----------------------------------------------------------------------------------------------


def floats(x: object) -> list[float]:
    match x:
        case float():
            return [x]
        case Array(_, items) | tuple(items):
            return [y for item in items for y in floats(item)]
        case None | bool() | int() | str():
            return []
    return floats(x.payload)


def like(x: object, values: list[float]) -> object:
    """A value of the shape of `x` from floats (taken from the front)."""
    match x:
        case float():
            return values.pop(0)
        case Array(shape, items):
            return Array(shape, [like(item, values) for item in items])
        case tuple():
            return tuple(like(item, values) for item in x)
        case None | bool() | int() | str():
            return type(x)() if x is not None else None
    return type(x)(x.tag, like(x.payload, values))


def check(program: f.Program, name: str, x: object, supply: f.Supply, tol: float = 1e-5) -> tuple[list, list]:
    """jvp and vjp of `name` against slopes, at `x`; gives the Jacobian both ways."""
    machine = expanded(with_ad(program, name, supply))
    at = floats(x)
    (y,) = machine.call(name, x)
    n, m = len(at), len(floats(y))
    h = 1e-6
    slopes, forward = [], []
    for i in range(n):
        up, down = (floats(machine.call(name, like_keeping(x, [*at[:i], at[i] + s, *at[i + 1 :]]))[0]) for s in (h, -h))
        slopes.append([(u - d) / (2 * h) for u, d in zip(up, down, strict=True)])
        y1, dy = machine.call(f"{name}.J", x, like(x, [float(k == i) for k in range(n)]))
        assert y1 == y
        forward.append(floats(dy))
    reverse = []
    for j in range(m):
        y1, dx = machine.call(f"{name}.V", x, like(y, [float(k == j) for k in range(m)]))
        assert y1 == y
        reverse.append(floats(dx))
    for i in range(n):
        for j in range(m):
            for got in (forward[i][j], reverse[j][i]):
                want = slopes[i][j]
                assert abs(got - want) <= tol * max(1.0, abs(want)), (name, i, j, forward, reverse, slopes)
    return forward, reverse


def like_keeping(x: object, values: list[float]) -> object:
    """As `like`, with integers and the rest kept."""
    match x:
        case None | bool() | int() | str():
            return x
        case Array(shape, items):
            return Array(shape, [like_keeping(item, values) for item in items])
        case tuple():
            return tuple(like_keeping(item, values) for item in x)
        case float():
            return values.pop(0)
    return type(x)(x.tag, like_keeping(x.payload, values))
