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
from dpl.eval.machine.machine import FunctionCode, entered
from dpl.eval.values.value import Closure, Partial, Value


def compile_call(compiler: Compiler, term: c.App, scope: Scope) -> Code:
    """An application -> code.  A known function gets as many arguments as it takes; what it gives gets the rest."""
    head, args = spine(term)
    known = known_function(compiler, head, scope)
    if known and known.code.arity <= len(args):
        n = known.code.arity
        code = _known(compiler, known, _prefix(term, len(args) - n), args[:n], scope)
        more = [compiler.compile(arg, scope) for arg in args[n:]]
        return _more(compiler, code, term, more, scope)
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
    if not code.direct and (enter := _entering(compiler, term, scope, True)):
        told = lambda env, values, k: (code.run, captured + values, enter(k, code))  # noqa: E731
        return Code(compiler.gather(operands, args, told, term))
    direct = [operand.direct for operand in operands if operand.direct]
    if code.direct and len(direct) == len(operands):
        return at_once(_inline(code.direct, captured, direct, site(term)))
    if body := code.direct:
        called = _body(body, site(term))
        return Code(compiler.gather(operands, args, lambda env, values, k: (k[0], called(captured + values), k), term))
    if len(direct) < len(operands):
        return Code(compiler.gather(operands, args, lambda env, values, k: (code.run, captured + values, k), term))
    match direct:
        case [a]:
            return Code(lambda env, k: (code.run, captured + (a(env),), k))
        case [a, b]:
            return Code(lambda env, k: (code.run, captured + (a(env), b(env)), k))
        case _:
            return Code(lambda env, k: (code.run, captured + tuple([f(env) for f in direct]), k))


Enter = Callable[[tuple, FunctionCode | None], tuple]  # frames, the function that is called -> frames


def _entering(compiler: Compiler, term: c.App, scope: Scope, known: bool) -> Enter | None:
    """How the frames grow at a call of the user that leaves a frame of its own, so that an error inside is told there:
    of a library function; of a function that is `known`, in tail position; of one that is known by its value only.
    Calls in the recursion of which this code is a part leave none.  None for others."""
    head, called = spine(term)[0], site(term)
    if term.span.source.in_library:
        return None
    if not is_of_library(called):
        if isinstance(head, c.Var) and head.name in scope.recursive:
            return None
        if known and not compiler.is_tail(term):
            return None
        if not known:  # continuations and pullbacks are no functions of the program
            unnamed = Site("", term.span)
            return lambda k, code: entered(k, unnamed, code) if code else k
    return entering(called)


def entering(called: Site) -> Enter:
    """How the frames grow at a call that leaves a frame even in tail position."""
    return lambda k, code: entered(k, called, code)


def function_of(f: Value) -> FunctionCode | None:
    """The code of a function of the program."""
    match f:
        case Closure(code=code) | Partial(closure=Closure(code=code)):
            return code
        case _:
            return None


def _inline(body: Direct, captured: tuple, args: list[Direct], site: Site) -> Direct:
    called = _body(body, site)
    return lambda env: called(captured + tuple([f(env) for f in args]))


def _body(body: Direct, called: Site) -> Direct:
    """The body of a function, whose failures tell the call."""

    def call(inner: tuple) -> Value:
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
        return Code(_all_direct(compiler, fn.direct, tuple(direct), term, scope))
    call = _prefix(term, len(args) - 1)
    if fn.direct and operands[0].direct:
        first = Code(_all_direct(compiler, fn.direct, (operands[0].direct,), call, scope))
    else:
        first = Code(_apply_next(compiler, fn, operands[0], call, scope))
    return _more(compiler, first, term, operands[1:], scope)


def _more(compiler: Compiler, code: Code, term: c.App, operands: list[Code], scope: Scope) -> Code:
    """Apply the function that `code` evaluates to to the last arguments, one after the other."""
    for i, operand in enumerate(operands):
        code = Code(_apply_next(compiler, code, operand, _prefix(term, len(operands) - 1 - i), scope))
    return code


def _apply_next(compiler: Compiler, fn: Code, arg: Code, call: c.App, scope: Scope) -> Run:
    apply, enter, sites = compiler.machine.apply, _entering(compiler, call, scope, False), compiler.machine.sites

    def done(env: tuple, values: tuple, k: tuple) -> tuple:
        try:
            return apply(values[0], values[1:], enter(k, function_of(values[0])) if enter else k)
        except DplError as error:  # of a call that has begun
            failed = located(error, call.span)
            raise (in_path(failed, [begun]) if (begun := sites.get(k[0])) == site(call) else failed) from None

    return compiler.gather([fn, arg], [call.fn, call.arg], done, call)


def _all_direct(compiler: Compiler, fn: Direct, args: tuple[Direct, ...], term: c.App, scope: Scope) -> Run:
    """The usual case: function and arguments are direct.  A Closure of just this arity is called at once."""
    machine, count = compiler.machine, len(args)
    first, enter = args[0], _entering(compiler, term, scope, False)

    def run(env: tuple, k: tuple) -> tuple:
        f = fn(env)
        if f.__class__ is Closure and f.code.arity == count:
            values = (first(env),) if count == 1 else tuple([a(env) for a in args])
            return f.code.run, f.env + values, enter(k, f.code) if enter else k
        try:
            return machine.apply_late(f, args, env, enter(k, function_of(f)) if enter else k)
        except DplError as error:
            raise located(error, term.span) from None

    return run
