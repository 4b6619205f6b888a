"""core -> core where each expectation runs only on request.

    expect "it holds" = e      =>      if Test._asked 0 then assert e else ()

A failure is reported as for `assert` (`core/told.py`).  The program is compiled once; the number of the expectation to
run is an input at run time.
"""

from __future__ import annotations

from dpl.core import term as c
from dpl.core import ty as t
from dpl.core.told import told
from dpl.node import replace
from dpl.source import Source

ASKED = "Test._asked"  # in stdlib/test.dp


def expectations(program: c.Program, source: Source) -> list[c.Expect]:
    """The program with the expectations of one file, not those of imported modules."""
    return [item for item in program.items if isinstance(item, c.Expect) and item.span.source == source]


def asked_for(program: c.Program, source: Source) -> c.Program:
    """The program, in which each expectation of this source first asks by its number if it is wanted."""
    numbers = {id(item): i for i, item in enumerate(expectations(program, source))}
    question = program.library[ASKED]
    items = [
        c.Do(asked(question, numbers[id(item)], item)) if isinstance(item, c.Expect) and id(item) in numbers else item
        for item in program.items
    ]
    return replace(program, items=items)


def asked(question: c.Def, number: int, item: c.Expect) -> c.Term:
    span, body = item.span, item.body
    test = c.Var(span, t.Fn(t.I64, t.PURE, t.BOOL), ASKED, tuple(t.PURE for _ in question.params))
    holds = told(body) if body.ty == t.BOOL else body
    return c.If(span, t.UNIT, c.App(span, t.BOOL, test, c.Lit(span, t.I64, number)), holds, c.Tuple(span, t.UNIT, ()))
