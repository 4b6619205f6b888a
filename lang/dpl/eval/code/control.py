"""Terms that use their continuation: `shift`, `reset`, and the primitives that call functions of the program.

shift k -> e     runs e on an empty chain, with k bound to the chain up to the prompt
jvp f x dx       pushes a frame that splits value and tangent, then applies f to duals
"""
# ruff: noqa: RUF005 (environments grow by concatenation: it is the fastest way)

from __future__ import annotations

from collections.abc import Callable

from dpl import host
from dpl.core import term as c
from dpl.core import ty as t
from dpl.diagnostics import DplError, foreign
from dpl.eval.code.calls import entering
from dpl.eval.code.code import Code, Scope
from dpl.eval.code.compiler import Compiler
from dpl.eval.derivatives import custom_rules, derive
from dpl.eval.machine.failure import Site, located
from dpl.eval.machine.machine import Frame, Machine, State
from dpl.eval.values.value import Builtin, Cont, Tagged, Value

# ---- delimited continuations --------------------------------------------------------------------------------------


def compile_delimited(compiler: Compiler, term: c.Shift | c.Reset, scope: Scope) -> Code:
    """`shift` and `reset` (Danvy and Filinski 1990).  A `reset` with a direct body is its body."""
    machine, end = compiler.machine, compiler.machine.end
    if isinstance(term, c.Shift):
        body = compiler.compile(term.body, scope.bind(term.name)).run
        return Code(lambda env, k: body(env + (Cont(k),), end))
    inside = compiler.compile(term.body, scope)
    run = inside.run

    def reset(env: tuple, k: Frame) -> State:
        if k is not end:  # otherwise the chain is empty already: nothing to delimit
            machine.meta = (k, machine.meta)
        return run(env, end)

    return inside if inside.direct else Code(reset)


# ---- primitives that call functions -------------------------------------------------------------------------------


def compile_primitive(compiler: Compiler, term: c.Prim, scope: Scope) -> Code:
    """Primitives that call functions of the program, such as `jvp`: each starts calls on the machine."""
    start, machine = PRIMITIVES[term.op], compiler.machine
    told = term.op in ("jvp", "vjp") and not term.span.source.in_library  # as are calls of the library's `grad`
    enter = entering(Site(term.op, term.span)) if told else None

    def done(env: tuple, values: tuple, k: Frame) -> State:
        try:
            return start(machine, values, enter(k, None) if enter else k)
        except DplError as error:
            raise located(error, term.span) from None

    return Code(compiler.gather([compiler.compile(arg, scope) for arg in term.args], term.args, done))


def _jvp(machine: Machine, args: tuple, k: Frame) -> State:
    f, x, dx = args
    level = machine.levels.fresh()
    return machine.apply(f, (derive.lift_forward(level, x, dx),), (split, level, k))


def split(y: Value, frame: Frame) -> State:
    """The frame after `jvp`'s call: the result's value and its tangent."""
    _, level, k = frame
    return k[0], derive.split_forward(level, y), k


def _taylor(machine: Machine, args: tuple, k: Frame) -> State:
    order, f, x = args
    level = machine.levels.fresh()
    return machine.apply(f, (derive.lift_jet(level, x, order),), (coefficients, (level, order), k))


def coefficients(y: Value, frame: Frame) -> State:
    """The frame after `taylor`'s call: the coefficients of the result."""
    _, (level, order), k = frame
    return k[0], derive.split_jet(level, y, order), k


def _vjp(machine: Machine, args: tuple, k: Frame) -> State:
    f, x = args
    level = machine.levels.fresh()
    inside = derive.lift_reverse(level, x)
    return machine.apply(f, (inside,), (with_pullback, (level, inside), k))


def with_pullback(y: Value, frame: Frame) -> State:
    """The frame after `vjp`'s call: the result's value, and the function from its cotangent to the point's."""
    _, (level, x), k = frame
    return k[0], (derive.primal(y, level), derive.pullback(level, x, y)), k


def _record_sweep(machine: Machine, args: tuple, k: Frame) -> State:
    f, x = args
    level = machine.levels.fresh()
    inside = derive.lift_reverse(level, x)
    return machine.apply(f, (inside,), (recorded, (machine, level, inside), k))


def recorded(y: Value, frame: Frame) -> State:
    _, (machine, level, x), k = frame
    return k[0], machine.recorded(derive.pullback(level, x, y)), k


def _checkpoint(machine: Machine, args: tuple, k: Frame) -> State:
    """The interpreter stores all intermediate values anyway, so a checkpoint is a plain call."""
    return machine.apply(args[0], args[1:], k)


def _ruled(with_rule: Callable) -> Callable:
    def start(machine: Machine, args: tuple, k: Frame) -> State:
        f, rule, x = args
        if custom_rules.highest(x):
            return k[0], with_rule(machine.call, machine.levels, rule, x), k
        return machine.apply(f, (x,), k)

    return start


PRIMITIVES: dict[str, Callable[[Machine, tuple, Frame], State]] = {
    "jvp": _jvp,
    "taylor": _taylor,
    "vjp": _vjp,
    "record_sweep": _record_sweep,
    "checkpoint": _checkpoint,
    "with_vjp": _ruled(custom_rules.with_vjp),
    "with_jvp": _ruled(custom_rules.with_jvp),
}


# ---- foreign functions --------------------------------------------------------------------------------------------


def extern(term: c.Extern) -> Value:
    """A C function of scalars, curried; C knows of no `()`.  Raises R0507 if no library has the symbol."""
    params: list[t.Ty] = []
    result = term.ty
    while isinstance(result, t.Fn):
        params.append(result.arg)
        result = result.result
    types = [ty.name if isinstance(ty, t.Con) else "" for ty in (*params, result)]
    function = host.current.function(term.symbol, [*filter(None, types[:-1]), types[-1]])
    if function is None:
        raise DplError.at("R0507", f"no C library in use has a function `{term.symbol}`", term.span)

    def called(*args: Value) -> Value:
        made = function(*[arg for arg in args if arg != ()])
        return () if made is None else made

    return _curried(term, called, len(params), ())


def _curried(term: c.Extern, function: Callable, missing: int, args: tuple) -> Builtin:
    def run(x: Value) -> Value:
        if isinstance(x, Tagged):
            raise foreign(term.symbol, term.span)
        given = (*args, x)
        return function(*given) if missing == 1 else _curried(term, function, missing - 1, given)

    return Builtin(run)
