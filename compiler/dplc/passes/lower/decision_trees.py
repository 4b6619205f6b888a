"""match -> decision tree -> flat Switches and Ifs (Maranget 2008).

    match (a, b) with            switch a
    | (Some x, 0) -> e1            Some x -> switch b { 0 -> e1; default -> e2 }
    | _           -> e2            None   -> e2

The tree is grown on *paths* into the value first: a path is a tuple of steps, an int for a tuple's component,
`("of", tag)` for a constructor's argument, `("at", i)` for an array's element.  An arm that several leaves reach
becomes a function unless it is tiny, and so does its guard.  No part of the value is tested twice on the way to a leaf.

Of the alternatives of an arm the first one that matches is taken.  If the arm's guard is false then, the arm is left:
its other alternatives are not tried.

A tree can be far larger than its match: of rows that test now one part and now another, each leaf of the one has all
tests of the other.  Then the later half of the rows has a tree of its own, an arm for all that the first half leaves
over (the mixture rule of Wadler 1987), which tests parts again.  An or-pattern is several rows, so both trees can reach
one arm.  Or-patterns beside each other are as many rows as their product; where these are many, those that bind
nothing are tested as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import prod
from typing import Any

from dpl.core import term as c
from dpl.core import ty as t
from dpl.core.names import bound, names_of
from dpl.diagnostics import Bug
from dpl.node import node

from dplc.flat import term as f
from dplc.flat.values import Value, pieces, type_of
from dplc.narrow import expect_type
from dplc.passes.closures.set_types import Datas
from dplc.passes.lower.body import Body
from dplc.passes.lower.dissect import payloads_of

ASIDE = ("span", "ty", "inst", "pattern")  # fields that hold no terms
TINY = 12  # terms; larger arms are not duplicated
LEAVES = 64, 8  # of a tree at most, and as many more for each row
ROWS = 64  # of an arm at most, unless its or-patterns are not beside each other
Path = tuple


@node
class Row:
    """The tests that remain for an arm, as patterns by path and in order, and the paths of its variables."""

    tests: dict[Path, c.Pattern]
    binds: dict[str, Path]
    arm: int


@node
class Leaf:
    """An arm is chosen.  `otherwise` is the tree to take when the arm's guard is false."""

    row: Row
    otherwise: Tree | None


@node
class Test:
    """A test of the value at `path` against constructor tags, literals or lengths (`kind`: con, lit, len)."""

    path: Path
    kind: str
    cases: dict[Any, Tree]
    default: Tree | None


@node
class Whole:
    """A test of the value at `path` against an or-pattern that binds nothing."""

    path: Path
    pattern: c.POr
    passed: Tree
    failed: Tree


Tree = Leaf | Test | Whole | None


class TooLarge(Exception):
    """A tree has more leaves than its match should have."""


class Grower:
    """Rows -> tree.  `uses` counts the leaves that reach each arm."""

    def __init__(self, datas: Datas, arms: tuple[c.Arm, ...]) -> None:
        self.datas = datas
        self.arms = list(arms)
        self.uses = [0] * len(arms)
        self.rests: dict[int, Tree] = {}  # by the arm that stands for the rows of the tree
        self.held: dict[int, list[Row]] = {}  # these rows
        self.left: dict[tuple[int, int], Row | None] = {}  # by the arm, and one that is left
        self.wide = [rows_of(arm.pattern) > max(ROWS, rows_of(arm.pattern, sum)) for arm in arms]
        self.room = 0
        self.divisible = True

    def tree(self, rows: list[Row]) -> Tree:
        used, left = list(self.uses), dict(self.left)
        self.room = LEAVES[0] + LEAVES[1] * len(rows)
        self.divisible = len(rows) > 2  # a row and the others are not less
        try:
            return self.grow(rows)
        except TooLarge:
            self.uses = used + [0] * (len(self.arms) - len(used))
            self.left = left
        half = len(rows) // 2
        return self.tree([*rows[:half], self.rest(rows[half:])])

    def rest(self, rows: list[Row]) -> Row:
        """A row for all that is left over: its arm is a match with the arms of `rows`, which have their own tree."""
        number = len(self.arms)
        name = f"match.{number}"  # no variable of a program; the value is read where it is bound
        arms = tuple([self.arms[i] for i in dict.fromkeys(row.arm for row in rows)])
        span, ty, of = arms[0].span, arms[0].body.ty, arms[0].pattern.ty
        self.arms.append(c.Arm(span, c.PVar(of, name), None, c.Match(span, ty, c.Var(span, of, name), arms)))
        self.uses.append(0)
        self.held[number] = rows
        self.rests[number] = self.tree(rows)
        return Row({}, {name: ()}, number)

    def after(self, arm: int, rows: list[Row]) -> list[Row]:
        """The rows without the alternatives of an arm."""
        kept = [self.without_arm(row, arm) if row.arm in self.rests else row for row in rows if row.arm != arm]
        return [row for row in kept if row is not None]

    def without_arm(self, row: Row, arm: int) -> Row | None:
        """What is left over, without the alternatives of an arm."""
        key = row.arm, arm
        if key not in self.left:
            held, room, divisible = self.held[row.arm], self.room, self.divisible
            rows = self.after(arm, held)
            same = len(rows) == len(held) and all(a is b for a, b in zip(rows, held, strict=True))
            self.left[key] = row if same else self.rest(rows) if rows else None
            self.room, self.divisible = room, divisible
        return self.left[key]

    def rows(self) -> list[Row]:
        return [row for i, arm in enumerate(self.arms) for row in self.spread(Row({}, {}, i), (), arm.pattern)]

    def spread(self, row: Row, path: Path, p: c.Pattern) -> list[Row]:
        """The row, with the further test that `p` matches at `path`.  An or-pattern gives several rows."""
        match p:
            case c.PWild():
                return [row]
            case c.PVar(_, name):
                return [Row(row.tests, {**row.binds, name: path}, row.arm)]
            case c.PAs(_, inner, name):
                return self.spread(Row(row.tests, {**row.binds, name: path}, row.arm), path, inner)
            case c.PTuple(_, items):
                return self.spread_all(row, [((*path, i), item) for i, item in enumerate(items)])
            case c.POr(_, left, right) if not self.wide[row.arm] or names_of(p):
                return [*self.spread(row, path, left), *self.spread(row, path, right)]
            case c.PCon(t.Con(name) as ty, _, _, arg) if self.datas.unboxed(ty):
                return [row] if arg is None else self.spread(row, path, self.datas.opened(ty, arg))
            case _:
                return [Row({**row.tests, path: p}, row.binds, row.arm)]

    def spread_all(self, row: Row, demands: list[tuple[Path, c.Pattern]]) -> list[Row]:
        rows = [row]
        for path, p in demands:
            rows = [new for old in rows for new in self.spread(old, path, p)]
        return rows

    def grow(self, rows: list[Row]) -> Tree:
        if not rows:
            return None
        first = rows[0]
        if not first.tests:
            self.uses[first.arm] += 1
            self.room -= 1
            if self.room < 0 and self.divisible:
                raise TooLarge
            guarded = self.arms[first.arm].guard is not None
            return Leaf(first, self.grow(self.after(first.arm, rows[1:])) if guarded else None)
        path, pattern = next(iter(first.tests.items()))
        if isinstance(pattern, c.POr):
            return self.whole(rows, path, pattern)
        cases: dict[Any, list[Row]] = {}
        others: list[Row] = []
        for row in rows:
            p = row.tests.get(path)
            if p is None or isinstance(p, c.POr):  # that is tested when its row is the first
                for case in cases.values():
                    case.append(row)
                others.append(row)
            else:
                rest = Row(without(row.tests, path), row.binds, row.arm)
                if key_of(p) not in cases:
                    cases[key_of(p)] = list(others)
                cases[key_of(p)] += self.spread_all(rest, parts(self.datas, path, p))
        full = isinstance(pattern, c.PCon) and len(cases) == self.count_of(pattern)
        kind = "con" if isinstance(pattern, c.PCon) else "len" if isinstance(pattern, c.PArray) else "lit"
        grown = {key: self.grow(case) for key, case in cases.items()}
        return Test(path, kind, grown, None if full else self.grow(others))

    def whole(self, rows: list[Row], path: Path, pattern: c.POr) -> Tree:
        """A test of an or-pattern that binds nothing."""
        failed = [row for row in rows if row.tests.get(path) is not pattern]
        passed = [
            Row(without(row.tests, path), row.binds, row.arm) if row.tests.get(path) is pattern else row for row in rows
        ]
        return Whole(path, pattern, self.grow(passed), self.grow(failed))

    def count_of(self, pattern: c.PCon) -> int:
        """The number of constructors of the pattern's type."""
        return len(self.datas.datas[expect_type(t.Con, pattern.ty).name].cases)


def without(tests: dict[Path, c.Pattern], path: Path) -> dict[Path, c.Pattern]:
    return {other: p for other, p in tests.items() if other != path}


def rows_of(p: c.Pattern, together: Callable[[Iterable[int]], int] = prod) -> int:
    """How many rows a pattern is, if every or-pattern in it is several; `sum` tells how many its parts are."""
    match p:
        case c.POr(_, left, right):
            return rows_of(left, together) + rows_of(right, together)
        case c.PTuple(_, items) | c.PArray(_, items):
            return together([rows_of(item, together) for item in items])
        case c.PAs(_, inner, _) | c.PCon(_, _, _, inner) if inner is not None:
            return rows_of(inner, together)
        case _:
            return 1


def alternatives(p: c.Pattern) -> list[c.Pattern]:
    return [*alternatives(p.left), *alternatives(p.right)] if isinstance(p, c.POr) else [p]


def key_of(p: c.Pattern) -> int | float | str | bool:
    match p:
        case c.PCon(_, _, tag):
            return tag
        case c.PArray(_, items):
            return len(items)
        case c.PLit(_, value):
            return value
        case _:
            raise Bug(f"not to be tested: {p}")


def parts(datas: Datas, path: Path, p: c.Pattern) -> list[tuple[Path, c.Pattern]]:
    """The patterns of a value's parts, once the pattern itself has been tested."""
    match p:
        case c.PCon(ty, _, tag, arg) if arg is not None:
            return [((*path, ("of", tag)), datas.opened(expect_type(t.Con, ty), arg))]
        case c.PArray(_, items):
            return [((*path, ("at", i)), item) for i, item in enumerate(items)]
        case _:
            return []


# ---- emission -------------------------------------------------------------------------------------------------------


def lower_match(body: Body, value: Value, arms: tuple[c.Arm, ...], ty: f.Type, whole: bool) -> Value:
    """The value of the arm that matches.  `ty` is the type of all."""
    grower = Grower(body.up.datas, arms)
    tree = grower.tree(grower.rows())
    return Emitter(body, grower, {}, ty, whole).emit(tree, {(): value})


Outlined = dict[tuple[str, int], tuple[str, list[str]]]


class Emitter:
    """Trees -> flat, in one body.

    `outlined` are the parts of arms that are functions, by kind and number, with the names of their parameters."""

    def __init__(self, body: Body, grower: Grower, outlined: Outlined, ty: f.Type, whole: bool) -> None:
        self.body = body
        self.b = body.b
        self.grower = grower
        self.arms = grower.arms
        self.outlined = outlined
        self.ty = ty
        self.whole = whole

    def at(self, path: Path, values: dict[Path, Value]) -> Value:
        found = values.get(path)
        return pieces(self.at(path[:-1], values))[path[-1]] if found is None else found

    def emit(self, tree: Tree, values: dict[Path, Value]) -> Value:
        match tree:
            case None:
                return self.body.fail("no case matches", self.ty, self.arms[0].span)
            case Leaf(row, otherwise):
                for name, path in row.binds.items():
                    self.body.bind(name, self.at(path, values), self.arms[row.arm].body)
                guard = self.arms[row.arm].guard
                if guard is None:
                    return self.arm(row)
                test = self.shared("guard", row.arm, guard, lambda emitter: emitter.body.term(guard), f.BOOL)
                return self.branch(self.b.atom(test), lambda: self.arm(row), lambda: self.emit(otherwise, values))
            case Whole(path, pattern, passed, failed):
                found = lower_match(self.body, self.at(path, values), self.tests(pattern), f.BOOL, True)
                return self.branch(
                    self.b.atom(found), lambda: self.emit(passed, values), lambda: self.emit(failed, values)
                )
            case Test(path, "con"):
                return self.constructors(tree, self.b.atom(self.at(path, values)), values)
            case Test(path, "len"):
                return self.lengths(tree, self.b.atom(self.at(path, values)), values)
            case Test(path):
                return self.literals(tree, self.b.atom(self.at(path, values)), values)

    def tests(self, pattern: c.POr) -> tuple[c.Arm, ...]:
        """The arms that tell whether the pattern matches."""
        span = self.arms[0].span
        tests = [(p, True) for p in alternatives(pattern)] + [(c.PWild(pattern.ty), False)]
        return tuple([c.Arm(span, p, None, c.Lit(span, t.BOOL, known)) for p, known in tests])

    def branch(self, test: f.Atom, then: Callable[[], Value], else_: Callable[[], Value]) -> Value:
        return self.body.branch(test, then, else_, self.whole)

    def constructors(self, tree: Test, scrutinee: f.Atom, values: dict[Path, Value]) -> Value:
        payloads = payloads_of(self.body, scrutinee)
        vars_ = {tag: self.payload_var(payloads[tag]) for tag in tree.cases}

        def case(tag: int, inner: Tree) -> Value:
            var = vars_[tag]
            of = {} if var is None else {(*tree.path, ("of", tag)): self.b.explode(var)}
            return self.emit(inner, values | of)

        thunks = [lambda tag=tag, inner=inner: case(tag, inner) for tag, inner in tree.cases.items()]
        return self.switch(tree, scrutinee, thunks, vars_, values, len(payloads) == len(tree.cases))

    def payload_var(self, ty: f.Type | None) -> f.Var | None:
        return None if ty is None else self.b.var("of", ty)

    def switch(self, tree: Test, scrutinee: f.Atom, thunks: list, vars_: dict, values: dict, full: bool) -> Value:
        if not full:
            thunks.append(lambda: self.emit(tree.default, values))

        def rhs(blocks: list[f.Block]) -> f.Rhs:
            cases = zip(tree.cases, blocks, strict=False)
            return f.Switch(
                scrutinee,
                tuple([f.Case(int(key), vars_.get(key), block) for key, block in cases]),
                None if full else blocks[-1],
            )

        return self.body.join(thunks, rhs, self.whole)

    def literals(self, tree: Test, scrutinee: f.Atom, values: dict[Path, Value]) -> Value:
        if scrutinee.ty == f.BOOL:
            return self.branch(
                scrutinee,
                lambda: self.emit(tree.cases.get(True, tree.default), values),
                lambda: self.emit(tree.cases.get(False, tree.default), values),
            )
        if isinstance(scrutinee.ty, f.Num) and not f.is_float(scrutinee.ty):
            thunks = [lambda inner=inner: self.emit(inner, values) for inner in tree.cases.values()]
            return self.switch(tree, scrutinee, thunks, {}, values, False)
        return self.chain(tree, iter(list(tree.cases.items())), lambda key: self.equal(scrutinee, key), values)

    def equal(self, scrutinee: f.Atom, key) -> f.Atom:
        if scrutinee.ty == f.STR:
            order = self.b.op("str_cmp", (scrutinee, f.Const(key, f.STR)))
            return self.b.op("eq", (order, f.Const(0, f.I64)))
        return self.b.op("eq", (scrutinee, f.Const(key, scrutinee.ty)))

    def lengths(self, tree: Test, scrutinee: f.Atom, values: dict[Path, Value]) -> Value:
        length = self.b.op("dim", (scrutinee,), k=0)

        def case(count: int, inner: Tree) -> Value:
            items = {
                (*tree.path, ("at", i)): self.b.explode(self.b.op("index", (scrutinee, f.Const(i, f.I64))))
                for i in range(count)
            }
            return self.emit(inner, values | items)

        cases = iter([(n, inner) for n, inner in tree.cases.items()])
        return self.chain(tree, cases, lambda n: self.b.op("eq", (length, f.Const(n, f.I64))), values, case)

    def chain(
        self, tree: Test, cases: Iterator, test: Callable, values: dict[Path, Value], then: Callable | None = None
    ) -> Value:
        """The cases one after the other, then the default."""
        key, inner = next(cases, (None, None))
        if key is None:
            return self.emit(tree.default, values)
        enter = then or (lambda _, inner: self.emit(inner, values))
        return self.branch(test(key), lambda: enter(key, inner), lambda: self.chain(tree, cases, test, values, then))

    # ---- arms -------------------------------------------------------------------------------------------------------

    def arm(self, row: Row) -> Value:
        number = row.arm
        return self.shared("arm", number, self.arms[number].body, lambda emitter: emitter.inline(number), self.ty)

    def shared(self, part: str, number: int, e: c.Term, lower: Callable[[Emitter], Value], ty: f.Type) -> Value:
        """The value of a part `e` of an arm: a call where several leaves reach the arm and the part is not tiny."""
        tiny = number not in self.grower.rests and size(e, TINY) < TINY  # few arms can have a large tree
        if tiny or self.grower.uses[number] == 1:
            return lower(self)
        if (part, number) not in self.outlined:
            self.outlined[part, number] = self.outline(part, e, lower)
        name, params = self.outlined[part, number]
        args = [self.b.atom(self.body.env[p]) for p in params]
        called = self.b.call(name, args, ty, self.arms[number].span)
        return called if self.whole else self.b.explode(called)

    def inline(self, number: int) -> Value:
        body, rest = self.arms[number].body, self.grower.rests.get(number)
        if isinstance(body, c.Match) and rest is not None:
            return self.emit(rest, {(): self.body.term(body.scrutinee)})
        return self.body.term(body, self.whole)

    def outline(self, part: str, e: c.Term, lower: Callable[[Emitter], Value]) -> tuple[str, list[str]]:
        """A part as a function of its free variables: the function's name and the names of its parameters."""
        up, env = self.body.up, self.body.env
        params: dict[str, None] = {}
        inside = bound(e)
        for name in variables(e):
            if name in up.solved.functions:
                params |= dict.fromkeys(up.solved.functions[name].captures)
            elif name not in inside:
                params[name] = None
        types = [type_of(env[p]) for p in params]
        fn = up.name(part)

        def finish() -> None:
            inner = Body(up, self.body.scope)
            vars_ = tuple([inner.b.var(p, ty) for p, ty in zip(params, types, strict=True)])
            inner.env = {p: inner.b.explode(v) for p, v in zip(params, vars_, strict=True)}
            value = lower(Emitter(inner, self.grower, self.outlined, self.ty, True))
            up.finish(fn, vars_, inner, inner.b.atom(value))

        up.todo.append(finish)
        return fn, list(params)


def nodes(e: object) -> Iterator[object]:
    """The nodes of a term, itself first.  Types and spans are left out."""
    todo = [e]
    while todo:
        part = todo.pop()
        if isinstance(part, tuple):
            todo += reversed(part)
        elif isinstance(part, c.Node | c.Arm):
            yield part
            todo += [getattr(part, name) for name in part.__match_args__ if name not in ASIDE]


def variables(e: c.Term) -> Iterator[str]:
    return (part.name for part in nodes(e) if isinstance(part, c.Var))


def size(e: c.Term, enough: int) -> int:
    """The number of nodes of a term, or `enough` if it has more."""
    return sum(1 for _ in zip(nodes(e), range(enough), strict=False))
