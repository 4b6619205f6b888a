"""Loops and comprehensions.  With direct parts they become Python loops; otherwise a frame holds the iteration.

Data of the frames:    for: (environment, iteration, count)    build: (environment, count, elements so far)

A `build` may append to the one list of elements because its body captures no continuation.
"""
# ruff: noqa: RUF005 (environments grow by concatenation: it is the fastest way)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpl.core import term as c
from dpl.core.shapes import rank
from dpl.diagnostics import DplError
from dpl.eval.code.code import Code, Run, Scope, at_once
from dpl.eval.code.compiler import Compiler
from dpl.eval.machine.failure import located
from dpl.eval.values.arrays import check_row, count_checked, stack
from dpl.eval.values.instance import staged
from dpl.eval.values.memory import SLICE, gathered
from dpl.eval.values.value import Value
from dpl.source import Span


def compile_for(compiler: Compiler, term: c.For, scope: Scope) -> Code:
    """A counted loop -> a Python loop if all parts are direct, else a frame with the number of the next step."""
    init, count = compiler.compile(term.init, scope), compiler.compile(term.count, scope)
    body = compiler.compile(term.body, scope.bind(term.state, term.index))
    if (first := init.direct) and (times := count.direct) and (turn := body.direct):

        def loop(env: tuple) -> Value:
            state = first(env)
            for i in range(times(env)):
                state = turn(env + (state, i))
            return state

        return at_once(loop)
    run = body.run

    def resume(state: Value, frame: tuple) -> tuple:
        env, i, n = frame[1]
        if i == n:
            k = frame[2]
            return k[0], state, k
        return run(env + (state, i), (resume, (env, i + 1, n), frame[2]))

    def start(env: tuple, values: tuple, k: tuple) -> tuple:
        state, n = values
        return resume(state, (resume, (env, 0, max(n, 0)), k))

    compiler.note(resume, term.body)
    return Code(compiler.gather([init, count], [term.init, term.count], start))


def compile_while(compiler: Compiler, term: c.While, scope: Scope) -> Code:
    """A while loop -> a Python loop if all parts are direct, else a frame that tests and turns."""
    init = compiler.compile(term.init, scope)
    inner = scope.bind(term.state)
    cond, body = compiler.compile(term.cond, inner), compiler.compile(term.body, inner)
    if (first := init.direct) and (test := cond.direct) and (turn := body.direct):

        def loop(env: tuple) -> Value:
            inside = env + (first(env),)
            while test(inside):
                inside = env + (turn(inside),)
            return inside[-1]

        return at_once(loop)
    choose = compiler.gather([cond], [term.cond], _turn(body))

    def resume(state: Value, frame: tuple) -> tuple:
        return choose(frame[1] + (state,), frame)

    compiler.note(resume, term.body)
    return Code(compiler.gather([init], [term.init], lambda env, values, k: resume(values[0], (resume, env, k))))


def _turn(body: Code):
    run = body.run

    def turn(inside: tuple, values: tuple, frame: tuple) -> tuple:
        """Run the body again and return to the loop's frame, or pass the last state to the next frame."""
        if values[0]:
            return run(inside, frame)
        k = frame[2]
        return k[0], inside[-1], k

    return turn


def placed(function: Callable, span: Span) -> Callable:
    """The function; its errors get a place."""

    def call(*args: Any) -> Any:
        try:
            return function(*args)
        except DplError as error:
            raise located(error, span) from None

    return call


def compile_build(compiler: Compiler, term: c.Build, scope: Scope, steps: Callable | None = None) -> Code:
    """A comprehension.  If it needs frames, `steps` makes them (`growing`, unless the caller has another way)."""
    count = compiler.compile(term.count, scope)
    body = compiler.compile(term.body, scope.bind(term.index))
    known, later = staged((term.ty,), lambda types: rank(types[0]))

    finish = placed(lambda elements, env: stack(elements, later(env) if later else known), term.span)
    check = placed(check_row, term.span)
    many = placed(gathered, term.span)
    checked = placed(count_checked, term.span)

    if (times := count.direct) and (element := body.direct):

        def build(env: tuple) -> Value:
            n = checked(times(env))
            one = lambda i: element(env + (i,))  # noqa: E731  # pyrefly: ignore[not-callable]
            if (later(env) if later else known) != 1:
                return finish(many(n, in_order(one)), env)
            if n > SLICE:
                return finish(many(n, one), env)
            return finish([element(env + (i,)) for i in range(n)], env)  # pyrefly: ignore[not-callable]

        return at_once(build)
    start, resume = (steps or growing)(body.run, finish, check)
    compiler.note(resume, term.body)
    return Code(compiler.gather([count], [term.count], lambda env, values, k: start(env, checked(values[0]), k)))


def in_order(one: Callable[[int], Value]) -> Callable[[int], Value]:
    """The function that gives the elements: each row is compared with the first one before the next one is made."""
    first: Value = None

    def compared(i: int) -> Value:
        nonlocal first
        element = one(i)
        if i == 0:
            first = element
        check_row(first, element)
        return element

    return compared


def growing(run: Run, finish: Callable, check: Callable) -> tuple[Callable, Callable]:
    """The start of a comprehension and its frame's resumption; one list grows."""

    def resume(element: Value, frame: tuple) -> tuple:
        env, n, elements = frame[1]
        if elements:
            check(elements[-1], element)
        elements.append(element)
        return turn(env, n, elements, frame)

    def turn(env: tuple, n: int, elements: list, frame: tuple) -> tuple:
        if len(elements) < n:
            return run(env + (len(elements),), frame)
        k = frame[2]
        return k[0], finish(elements, env), k

    def start(env: tuple, n: int, k: tuple) -> tuple:
        elements: list = []
        return turn(env, n, elements, (resume, (env, n, elements), k))

    return start, resume
