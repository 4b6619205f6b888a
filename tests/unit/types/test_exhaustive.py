"""Exhaustiveness: what matches miss and what they never reach."""

import itertools
import random
import time

import pytest
from dpl.core import ty as t
from dpl.core.term import Arm, Data, Lit, PArray, PAs, PCon, PLit, POr, PTuple, PVar, PWild
from dpl.source import NOWHERE
from dpl.types.rules.exhaustive import check

INT, LIST = t.I64, t.list_of(t.I64)
OPTION, RECORD, BIG = t.Con("main.option"), t.Con("main.point"), t.Con("main.big")
DATA = {
    "main.option": Data("main.option", (), (("main.None", None), ("main.Some", INT))),
    "main.point": Data("main.point", (), (("main.point", t.Tup((INT, INT))),), ("x", "y")),
    "main.big": Data("main.big", (), tuple((f"main.C{i}", t.Tup((INT, INT)) if i % 2 else None) for i in range(1000))),
}
ANY = PWild(INT)
NIL = PCon(LIST, "[]", 0, None)
NONE = PCon(OPTION, "main.None", 0, None)


def cons(head, tail):
    return PCon(LIST, "::", 1, PTuple(t.Tup((INT, LIST)), (head, tail)))


def some(arg):
    return PCon(OPTION, "main.Some", 1, arg)


def num(value):
    return PLit(INT, value)


def boolean(value):
    return PLit(t.BOOL, value)


def tup(*items):
    return PTuple(t.Tup(()), items)


def run(*patterns, guards=()):
    arms = [
        Arm(NOWHERE, p, Lit(NOWHERE, t.BOOL, True) if i in guards else None, Lit(NOWHERE, INT, 0))
        for i, p in enumerate(patterns)
    ]
    return check(DATA, INT, arms)


@pytest.mark.parametrize(
    ("patterns", "guards", "missing", "unreached"),
    [
        ([NIL, cons(ANY, ANY)], (), None, []),
        ([NIL, cons(ANY, NIL), NIL], (1,), "_ :: _ :: _", [2]),
        ([cons(cons(ANY, ANY), ANY)], (), "[]", []),
        ([NIL, cons(NIL, ANY)], (), "(_ :: _) :: _", []),
        ([boolean(True)], (), "false", []),
        ([boolean(True), boolean(False), ANY], (), None, [2]),
        ([tup(boolean(True), ANY), tup(ANY, boolean(False))], (), "(false, true)", []),
        ([num(0), num(1)], (), "2", []),
        ([PLit(t.STRING, ""), PVar(t.STRING, "s")], (), None, []),
        ([PLit(t.STRING, "")], (), '"a"', []),
        ([PLit(t.F64, 0.0)], (), "1.0", []),
        ([*(PLit(t.Con("u8"), i) for i in range(256))], (), None, []),
        ([*(PLit(t.Con("i8"), i) for i in range(128))], (), "-128", []),
        ([some(num(0)), NONE], (), "Some 1", []),
        ([some(some(NONE)), NONE], (), "Some None", []),
        ([POr(OPTION, NONE, PAs(OPTION, some(ANY), "x"))], (), None, []),
        ([POr(OPTION, NONE, NONE), some(ANY), POr(OPTION, NONE, some(ANY))], (), None, [2]),
        ([PCon(RECORD, "main.point", 0, tup(num(0), ANY))], (), "{ x = 1; _ }", []),
        ([PArray(t.Arr(INT, t.Size(2)), (ANY, ANY))], (), None, []),
        ([PArray(t.Arr(INT, t.Size(2)), (ANY, num(-1)))], (), "[_, 0]", []),
        ([PArray(t.Arr(INT, t.Size(0, ((("n",), 1),))), (ANY, ANY))], (), "[]", []),
        ([ANY, ANY], (0,), None, []),
        ([ANY], (0,), "_", []),
        ([], (), "_", []),
        ([tup()], (), None, []),
    ],
)
def test_small(patterns, guards, missing, unreached):
    assert run(*patterns, guards=guards) == (missing, unreached)


def test_against_all_values():
    """Random matches on triples of booleans, against trying every value."""
    chance = random.Random(2)
    for _ in range(300):
        rows = [[chance.choice([None, None, True, False]) for _ in range(3)] for _ in range(chance.randrange(1, 7))]
        guards = {i for i in range(len(rows)) if chance.random() < 0.2}
        reached, missed = set(), False
        for value in itertools.product((True, False), repeat=3):
            for i, row in enumerate(rows):
                if all(p is None or p == v for p, v in zip(row, value, strict=True)):
                    reached.add(i)
                    if i not in guards:
                        break
            else:
                missed = True
        missing, unreached = run(
            *(tup(*(ANY if p is None else boolean(p) for p in row)) for row in rows), guards=guards
        )
        assert (missing is not None) == missed
        assert unreached == [i for i in range(len(rows)) if i not in reached]


@pytest.mark.clock
def test_speed():
    start = time.process_time()
    arms = [PCon(BIG, f"main.C{i}", i, ANY if i % 2 else None) for i in range(1000)]
    assert run(*arms) == (None, []) and run(*arms[:501], *arms[502:])[0] == "C501 (_, _)"
    assert run(*arms, ANY) == (None, [1000])
    diagonal = [tup(*(boolean(b) if i == j else ANY for j in range(20))) for b in (True, False) for i in range(20)]
    assert run(*diagonal)[0] is None
    chance = random.Random(3)
    run(*(tup(*(chance.choice([ANY, ANY, ANY, boolean(True), boolean(False)]) for _ in range(12))) for _ in range(20)))
    assert time.process_time() - start < 1.5
