"""Calls: `f x y` passes all its arguments at once if the program cannot tell that from one argument at a time.

A call of a function that is known at compile time needs no checks.  If the function's body is direct, so is the call.
"""
# ruff: noqa: RUF005 (environments grow by concatenation: it is the fastest way)

from __future__ import annotations

from collections.abc import Callable

from dpl.core import term as c
from dpl.diagnostics import DplError
from dpl.eval.code.code import Code, Direct, Run, Scope, at_once
from dpl.eval.code.compiler import Compiler
from dpl.eval.code.names import constant
from dpl.eval.code.sites import site, spine
from dpl.eval.machine.failure import Site, in_path, is_of_library, located
from dpl.eval.machine.machine import CALLED, Machine
from dpl.eval.values.value import Closure, Value


def compile_call(compiler: Compiler, term: c.App, scope: Scope) -> Code:
    """An application -> code.  A known function gets as many arguments as it takes; what it gives gets the rest."""
    head, args = spine(term)
    known = known_function(compiler, head, scope)
    if known and known.code.arity <= len(args):
        n = known.code.arity
        code = _known(compiler, known, _prefix(term, len(args) - n), args[:n], scope)
        more = [compiler.compile(arg, scope) for arg in args[n:]]
        return _more(compiler, code, term, more)
    return _unknown(compiler, term, head, args, scope)


def known_function(compiler: Compiler, head: c.Term, scope: Scope) -> Closure | None:
    if not isinstance(head, c.Var) or scope.has(head.name):
        return None
    value, _ = constant(compiler, head, scope)
    return value if isinstance(value, Closure) else None


def _prefix(call: c.App, dropped: int) -> c.App:
    """A call without its last `dropped` arguments; at least one must remain."""
    for _ in range(dropped):
        assert isinstance(call.fn, c.App)
        call = call.fn
    return call


# ---- known functions ----------------------------------------------------------------------------------------------


def _known(compiler: Compiler, known: Closure, term: c.App, args: list[c.Term], scope: Scope) -> Code:
    code, captured = known.code.ready(), known.env
    operands = [compiler.compile(arg, scope) for arg in args]
    if not code.direct and (enter := _entering(compiler, term)):
        entered = lambda env, values, k: (code.run, captured + values, enter(k))  # noqa: E731
        return Code(compiler.gather(operands, args, entered, term))
    if not all(operand.direct for operand in operands):
        return Code(compiler.gather(operands, args, lambda env, values, k: (code.run, captured + values, k), term))
    direct = [operand.direct for operand in operands if operand.direct]
    if code.direct:
        return at_once(_inline(code.direct, captured, direct, site(term)))
    match direct:
        case [a]:
            return Code(lambda env, k: (code.run, captured + (a(env),), k))
        case [a, b]:
            return Code(lambda env, k: (code.run, captured + (a(env), b(env)), k))
        case _:
            return Code(lambda env, k: (code.run, captured + tuple([f(env) for f in direct]), k))


def _entering(compiler: Compiler, term: c.App) -> Callable[[tuple], tuple] | None:
    """How the frames grow at a call of a library function by the user: the call leaves a frame also in tail position,
    so that an error inside is told there.  A loop of tail calls through the library has one such frame, of the last
    call.  None for other calls."""
    return None if term.span.source.in_library or not is_of_library(site(term)) else entering(compiler, site(term))


def entering(compiler: Compiler, called: Site) -> Callable[[tuple], tuple]:
    """How the frames grow at a call that leaves a frame even in tail position.  Such calls in a row share one frame."""

    def passed(value: Value, frame: tuple) -> tuple:
        k = frame[2]
        return k[0], value, k

    compiler.machine.sites[passed] = called
    return lambda k: (passed, CALLED, k[2] if k[1] is CALLED else k)


def _inline(body: Direct, captured: tuple, args: list[Direct], called: Site) -> Direct:
    def call(env: tuple) -> Value:
        inner = captured + tuple([f(env) for f in args])
        try:
            return body(inner)
        except DplError as error:
            raise in_path(error, [called]) from None

    return call


# ---- unknown functions --------------------------------------------------------------------------------------------


def _unknown(compiler: Compiler, term: c.App, head: c.Term, args: list[c.Term], scope: Scope) -> Code:
    fn = compiler.compile(head, scope)
    operands = [compiler.compile(arg, scope) for arg in args]
    direct = [operand.direct for operand in operands if operand.direct]
    if fn.direct and len(direct) == len(args):
        return Code(_all_direct(compiler, fn.direct, tuple(direct), term))
    call = _prefix(term, len(args) - 1)
    if fn.direct and operands[0].direct:
        first = Code(_all_direct(compiler, fn.direct, (operands[0].direct,), call))
    else:
        first = Code(_apply_next(compiler, fn, operands[0], call))
    return _more(compiler, first, term, operands[1:])


def _more(compiler: Compiler, code: Code, term: c.App, operands: list[Code]) -> Code:
    """Apply the function that `code` evaluates to to the last arguments, one after the other."""
    for i, operand in enumerate(operands):
        code = Code(_apply_next(compiler, code, operand, _prefix(term, len(operands) - 1 - i)))
    return code


def _apply_next(compiler: Compiler, fn: Code, arg: Code, call: c.App) -> Run:
    apply, enter, sites = compiler.machine.apply, _entering(compiler, call), compiler.machine.sites

    def done(env: tuple, values: tuple, k: tuple) -> tuple:
        try:
            return apply(values[0], values[1:], enter(k) if enter else k)
        except DplError as error:  # of a call that has begun
            failed = located(error, call.span)
            raise (in_path(failed, [begun]) if (begun := sites.get(k[0])) == site(call) else failed) from None

    return compiler.gather([fn, arg], [call.fn, call.arg], done, call)


def _all_direct(compiler: Compiler, fn: Direct, args: tuple[Direct, ...], term: c.App) -> Run:
    """The usual case: function and arguments are direct.  A Closure of just this arity is called at once."""
    machine, count = compiler.machine, len(args)
    first = args[0]
    if enter := _entering(compiler, term):
        return _all_direct_into_library(machine, fn, args, term, enter)

    def run(env: tuple, k: tuple) -> tuple:
        f = fn(env)
        if f.__class__ is Closure and f.code.arity == count:
            if count == 1:
                return f.code.run, f.env + (first(env),), k
            return f.code.run, f.env + tuple([a(env) for a in args]), k
        try:
            return machine.apply_late(f, args, env, k)
        except DplError as error:
            raise located(error, term.span) from None

    return run


def _all_direct_into_library(
    machine: Machine, fn: Direct, args: tuple[Direct, ...], term: c.App, enter: Callable
) -> Run:
    def run(env: tuple, k: tuple) -> tuple:
        f = fn(env)
        if f.__class__ is Closure and f.code.arity == len(args):
            return f.code.run, f.env + tuple([a(env) for a in args]), enter(k)
        try:
            return machine.apply_late(f, args, env, enter(k))
        except DplError as error:
            raise located(error, term.span) from None

    return run
