"""The numbers at which the tiles of a scan start: those of the loop, to the last bit, though tiles are done at once.

    s = a; for i < n { s = s + xs[i] }         starts[t] is s before step 128 t

Whole numbers, and what is greatest, are combined tile by tile, as their order does not matter.  The order of sums of
floats does matter, but not as long as the sum keeps its sign and exponent.  Then the sum is a whole number N of units,
and so is what a step adds to it: x rounded to units.  A tie is rounded to the even sum, so the number depends on
whether N is even; after a whole tile, on whether it was even at its start.  So a tile is two numbers, for both cases,
with the least and the greatest sum on the way, which tell if the exponent has changed:

    sizes    the sums of tiles, in any order, tell about where each starts: its exponent            (device)
    moves    what each tile adds, if it starts with an even or an odd number of these units         (device)
    starts   from tile to tile: one addition; where the exponent changes, the loop itself           (host)

The host does few of the steps: those of a tile in which a growing sum doubles.  A sum that stays around zero changes
its sign and exponent in every tile; then the host reads all terms, once, and does all steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dplc.flat import term as f
from dplc.flat.build import Builder, all_hold, block_of, integer
from dplc.flat.types import elem_of, nothing

SHIFT = 7
TILE = 1 << SHIFT  # steps of a tile
BIAS, EXPONENTS, PLACE = 1023, 2047, 52  # of an f64: its exponent is in the bits from 52 on
DIGITS = {"f64": 52, "f32": 23}  # bits of a fraction
NORMAL = {"f64": (BIAS - 969, 2046), "f32": (BIAS - 126, BIAS + 127)}  # exponents with units that are normal numbers
FAR = float(1 << 51)  # units: who goes as far changes the exponent
FEW = 32  # tiles whose terms the host asks for one by one
HALF = f.Const(0.5, f.F64)
ZERO = f.Const(0.0, f.F64)

Step = Callable[[f.Var, Sequence[f.Var]], Sequence[f.Atom]]  # the index and the state -> the state after it


class Tiles:
    """Starts of tiles.  `fns` are the functions that the host calls for them."""

    def __init__(self, supply: f.Supply) -> None:
        self.supply = supply
        self.fns: dict[str, f.Fn] = {}

    def starts(self, b: Builder, op: str, xs: f.Var, n: f.Atom, first: f.Atom | f.Op) -> tuple[f.Var, f.Var]:
        """The array of starts, and the number after the last step.  A first number that is an operation is done by the
        device, for each tile."""
        tiles = b.op("shift_right", (b.op("add", (n, integer(TILE - 1))), integer(SHIFT)))
        if op == "add" and f.is_float(elem_of(xs.ty)):
            return self.exact(b, xs, n, first, tiles)
        return self.plain(b, op, xs, n, first, tiles)

    def before(self, b: Builder, op: str, xs: f.Var, starts: f.Var, step: f.Var) -> f.Var:
        """The number before a step, from the start of its tile on."""
        rank = b.op("bit_and", (step, integer(TILE - 1)))
        (start,) = parts(b, starts, b.op("shift_right", (step, integer(SHIFT))))
        return self.combined(b, op, xs, b.op("sub", (step, rank)), rank, start)

    def combined(self, b: Builder, op: str, xs: f.Var, first: f.Atom, count: f.Atom, start: f.Atom) -> f.Var:
        """A number combined with `count` others, in order."""

        def step(j: f.Var, state: Sequence[f.Var]) -> Sequence[f.Atom]:
            return [b.op(op, (state[0], b.op("index", (xs, b.op("add", (first, j))), unchecked=True)))]

        return loop(b, count, (start,), step)[0]

    def plain(
        self, b: Builder, op: str, xs: f.Var, n: f.Atom, first: f.Atom | f.Op, tiles: f.Atom
    ) -> tuple[f.Var, f.Var]:  # fmt: skip
        def total(begin: f.Var, size: f.Var) -> Sequence[f.Atom]:
            start = b.op("index", (xs, begin), unchecked=True)
            rest = (b.op("add", (begin, integer(1))), b.op("sub", (size, integer(1))))
            return [given(b, first), self.combined(b, op, xs, *rest, start)]

        totals = self.of_tiles(b, n, tiles, total)

        def step(t: f.Var, state: Sequence[f.Var]) -> Sequence[f.Atom]:
            return [b.op(op, (state[0], parts(b, totals, t)[1]))]

        return collected(b, tiles, (parts(b, totals, integer(0))[0],), step)

    def of_tiles(
        self, b: Builder, n: f.Atom, tiles: f.Atom, body: Callable[[f.Var, f.Var], Sequence[f.Atom]]
    ) -> f.Var:  # fmt: skip
        """The array of what is computed of each tile, by its first step and how many it has: tuples, which the host
        copies at once."""
        t = b.var("t", f.I64)
        with b.inside() as binds:
            begin = b.op("shift_left", (t, integer(SHIFT)))
            results = tuple(body(begin, b.op("min", (integer(TILE), b.op("sub", (n, begin))))))
            both = b.one(f.TupMake(results), f.Tup(tuple([x.ty for x in results])), "tile")
            block = block_of(binds, (both,))
        return b.one(f.Par(((t, tiles),), block, (f.Out("keep"),), b.span), f.Arr(both.ty, 1), "tiles")

    # ---- sums of floats

    def exact(self, b: Builder, xs: f.Var, n: f.Atom, first: f.Atom | f.Op, tiles: f.Atom) -> tuple[f.Var, f.Var]:
        def size(begin: f.Var, count: f.Var) -> Sequence[f.Atom]:
            def step(j: f.Var, state: Sequence[f.Var]) -> Sequence[f.Atom]:
                x = b.op("index", (xs, b.op("add", (begin, j))), unchecked=True)
                return [b.op("add", (state[0], x)), b.op("add", (state[1], b.op("abs", (x,))))]

            zero = f.Const(0.0, elem_of(xs.ty))
            return [given(b, first), *loop(b, count, (zero, zero), step)]

        sizes = self.of_tiles(b, n, tiles, size)

        def near(t: f.Var, state: Sequence[f.Var]) -> Sequence[f.Atom]:
            return [b.op("add", (state[0], parts(b, sizes, t)[1]))]

        start = parts(b, sizes, integer(0))[0]
        about, _ = collected(b, tiles, (start,), near)
        moves = self.moves(b, xs, n, tiles, about)
        chain = _Chain(b, self.alone(xs.ty), xs, n, about, sizes, moves)
        return collected(b, tiles, (start, integer(0)), chain.step)

    def moves(self, b: Builder, xs: f.Var, n: f.Atom, tiles: f.Atom, about: f.Var) -> f.Var:
        """What each tile adds in units, with the least and the greatest sum on the way: if the sum at its start is
        even, and if it is odd.  Then, whether each term is less than FAR."""

        def move(begin: f.Var, count: f.Var) -> Sequence[f.Atom]:
            (start,) = parts(b, about, b.op("shift_right", (begin, integer(SHIFT))))
            per_unit, _ = units(b, start.ty, exponent_of(b, start))

            def step(j: f.Var, state: Sequence[f.Var]) -> Sequence[f.Atom]:
                x = b.op("index", (xs, b.op("add", (begin, j))), unchecked=True)
                q = b.op("mul", (wide(b, x), per_unit))
                below = b.op("floor", (q,))
                tie = b.op("eq", (b.op("sub", (q, below)), HALF))
                whole, nearest = (b.op("cast", (y,), to="i64") for y in (below, b.op("round", (q,))))
                near = b.op("lt", (b.op("abs", (q,)), f.Const(FAR, f.F64)))
                after: list[f.Atom] = []
                for odd in (0, 1):
                    moved, least, most = state[3 * odd : 3 * odd + 3]
                    at = b.op("add", (b.op("add", (moved, integer(odd))), whole))
                    up = b.op("add", (whole, b.op("bit_and", (at, integer(1)))))
                    moved = b.op("add", (moved, b.op("select", (tie, up, nearest))))
                    after += [moved, b.op("min", (least, moved)), b.op("max", (most, moved))]
                return [*after, b.op("and", (state[6], near))]

            return loop(b, count, (*[integer(0)] * 6, f.Const(True, f.BOOL)), step)

        return self.of_tiles(b, n, tiles, move)

    def alone(self, array: f.Type) -> str:
        """The function that adds some numbers of an array in order, if `done` tiles were done so before.  The first few
        times it asks the device for these numbers alone."""
        ty = elem_of(array)
        assert isinstance(ty, f.Num)
        name = f"running sum of {ty.name}"
        if name not in self.fns:
            b = Builder(self.supply)
            numbers = [b.var(hint, f.I64) for hint in ("i", "n", "done")]
            xs, start, (first, count, done) = b.var("xs", array), b.var("s", ty), numbers
            i, types = b.var("i", f.I64), (f.BOOL, array)
            with b.inside() as points:
                x = b.op("index", (xs, b.op("add", (first, i))), unchecked=True)
                body = block_of(points, (f.Const(True, f.BOOL), x))
            own = tuple([b.var("part", x) for x in types])
            copy = f.Par(((i, count),), body, (f.Out("done", kept=True), f.Out("keep")))
            few, nothing_ = f.Block((f.Bind(own, copy),), own), f.Block((), tuple(map(nothing, types)))
            there, part = b.bind(f.If(b.op("lt", (done, integer(FEW))), few, nothing_), types, "part")
            total = either(b, there, ty, lambda: self.combined(b, "add", part, integer(0), count, start),
                           lambda: self.combined(b, "add", xs, first, count, start))  # fmt: skip
            self.fns[name] = f.Fn(name, (xs, *numbers, start), (ty,), block_of(b.binds, (total,)))
        return name


class _Chain:
    """The host's way from tile to tile."""

    def __init__(
        self, b: Builder, alone: str, xs: f.Var, n: f.Atom, about: f.Var, sizes: f.Var, moves: f.Var
    ) -> None:  # fmt: skip
        self.b, self.alone, self.xs, self.n = b, alone, xs, n
        self.about, self.sizes, self.moves = about, sizes, moves

    def step(self, t: f.Var, state: Sequence[f.Var]) -> Sequence[f.Atom]:
        """The start of the next tile, and how many tiles the host has done alone until then."""
        b, (start, alone) = self.b, state
        exponent, (about,) = exponent_of(b, start), parts(b, self.about, t)
        per_unit, unit = units(b, start.ty, exponent)
        number = b.op("cast", (b.op("mul", (wide(b, start), per_unit)),), to="i64")
        odd = b.op("eq", (b.op("bit_and", (number, integer(1))), integer(1)))
        *both, near = parts(b, self.moves, t)
        moved, least, most = (b.op("add", (number, b.op("select", (odd, both[k + 3], both[k])))) for k in range(3))
        tests = [b.op("ne", (unit, ZERO)), near, within(b, start.ty, least, most)]
        fine = all_hold(b, [b.op("eq", (exponent, exponent_of(b, about))), *tests])

        def quick() -> f.Atom:
            total = b.op("mul", (b.op("cast", (moved,), to="f64"), unit))
            return total if start.ty == f.F64 else b.op("cast", (total,), to="f32")

        same = b.op("and", (b.op("not", (fine,)), self.is_same(t, start)))
        left = b.op("not", (b.op("or", (fine, same)),))

        def other() -> f.Atom:
            return either(b, left, start.ty, lambda: self.steps(t, start, alone), lambda: start)

        return [either(b, fine, start.ty, quick, other), b.op("add", (alone, b.op("cast", (left,), to="i64")))]

    def is_same(self, t: f.Var, start: f.Var) -> f.Var:
        """Tests whether a tile has nothing but zeros: they change nothing but a zero that is negative."""
        b, zero = self.b, f.Const(0.0, start.ty)
        none = b.op("eq", (parts(b, self.sizes, t)[2], zero))
        positive = b.op("ge", (b.op("bitcast", (wide(b, start),), to="i64"), integer(0)))
        return b.op("and", (none, b.op("or", (positive, b.op("ne", (start, zero))))))

    def steps(self, t: f.Var, start: f.Var, alone: f.Var) -> f.Atom:
        """The start of the next tile by the loop itself."""
        b, begin = self.b, self.b.op("shift_left", (t, integer(SHIFT)))
        count = b.op("min", (integer(TILE), b.op("sub", (self.n, begin))))
        return b.call(self.alone, (self.xs, begin, count, alone, start), start.ty)


def either(b: Builder, cond: f.Atom, ty: f.Type, then: Callable[[], f.Atom], else_: Callable[[], f.Atom]) -> f.Var:
    """What one of two blocks gives."""
    arms: list[f.Block] = []
    for arm in (then, else_):
        with b.inside() as binds:
            result = arm()
            arms.append(block_of(binds, (result,)))
    return b.one(f.If(cond, *arms), ty, "start")


def within(b: Builder, ty: f.Type, least: f.Var, most: f.Var) -> f.Var:
    """Tests whether sums, in units, keep sign and exponent."""
    assert isinstance(ty, f.Num)
    low, high = 1 << DIGITS[ty.name], 2 << DIGITS[ty.name]

    def both(a: tuple[f.Var, int], c: tuple[int, f.Var]) -> f.Var:
        return b.op("and", (b.op("gt", (a[0], integer(a[1]))), b.op("gt", (integer(c[0]), c[1]))))

    return b.op("or", (both((least, low), (high, most)), both((least, -high), (-low, most))))


def exponent_of(b: Builder, number: f.Atom) -> f.Var:
    bits = b.op("bitcast", (wide(b, number),), to="i64")
    return b.op("bit_and", (b.op("shift_right", (bits, integer(PLACE))), integer(EXPONENTS)))


def units(b: Builder, ty: f.Type, exponent: f.Var) -> tuple[f.Var, f.Var]:
    """How many units of a sum with this exponent are 1, and its unit: 0 if the exponent is too small or great."""
    assert isinstance(ty, f.Num)
    digits, (least, most) = DIGITS[ty.name], NORMAL[ty.name]
    fine = b.op("and", (b.op("ge", (exponent, integer(least))), b.op("le", (exponent, integer(most)))))
    unit = b.op("sub", (exponent, integer(digits)))
    per_unit, one = (b.op("select", (fine, power(b, x), ZERO)) for x in (b.op("sub", (integer(2 * BIAS), unit)), unit))
    return per_unit, one


def power(b: Builder, exponent: f.Var) -> f.Var:
    """The power of two with these bits of an exponent."""
    return b.op("bitcast", (b.op("shift_left", (exponent, integer(PLACE))),), to="f64")


def wide(b: Builder, x: f.Atom) -> f.Atom:
    return x if x.ty == f.F64 else b.op("cast", (x,), to="f64")


def given(b: Builder, first: f.Atom | f.Op) -> f.Atom:
    return b.op(first.op, first.args, first.span, **dict(first.attrs)) if isinstance(first, f.Op) else first


def parts(b: Builder, array: f.Var, i: f.Atom) -> list[f.Var]:
    """The parts of an element of an array of tuples."""
    assert isinstance(array.ty, f.Arr) and isinstance(array.ty.elem, f.Tup)
    whole = b.op("index", (array, i), unchecked=True)
    return [b.one(f.TupGet(whole, k), ty, "part") for k, ty in enumerate(array.ty.elem.items)]


def loop(b: Builder, count: f.Atom, inits: Sequence[f.Atom], step: Step) -> tuple[f.Var, ...]:
    """The state after so many steps."""
    j, state = b.var("j", f.I64), [b.var("s", init.ty) for init in inits]
    with b.inside() as binds:
        after = step(j, state)
        body = block_of(binds, after)
    return b.bind(f.For(j, count, tuple(state), tuple(inits), body), [x.ty for x in inits], "s")


def collected(b: Builder, count: f.Atom, inits: Sequence[f.Atom], step: Step) -> tuple[f.Var, f.Var]:
    """The array of the first number of a state before each step, and what it is after the last one."""
    t, state = b.var("t", f.I64), [b.var("s", init.ty) for init in inits]
    with b.inside() as binds:
        after = step(t, state)
        body = block_of(binds, (*after, state[0]))
    types = (*[x.ty for x in inits], f.Arr(f.Tup((inits[0].ty,)), 1))
    made = b.bind(f.For(t, count, tuple(state), tuple(inits), body, 1), types, "starts")
    return made[-1], made[0]
