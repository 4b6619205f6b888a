"""Convolutions by kernels of our own, as products of matrices that are nowhere in memory.

    conv0_T(y, x, w, lengths)    lines of the first factor are places of y, depths the terms of a window
    conv1_T(x, y, w, lengths)    lines are places of x, depths the places of the window and the channels of y
    conv2_T(w, x, y, lengths)    lines are the terms of a window, depths places of y
    conv0_few_T ...              the same for few elements, which have a warp each

The result is m x n for each group of channels, and sums have k terms.  A factor's number is read where the image or the
window has it; in the padding there is none.  A sum that is NaN is computed again, from the terms that there are, as a
padding's zero may have met infinity.  `lengths` are those of `rt/convolution.rt`.  Numbers of elements are below 2^31,
so they are divided in 32 bits.
"""

from __future__ import annotations

from dplc.machine.cuda.products import Matrices, Product, Tiles, dots, matrix_instructions
from dplc.machine.llvm.literals import number
from dplc.machine.llvm.writer import Values

LENGTHS = (
    "m", "n", "k", "channels", "height", "width", "outputs", "columns", "rows", "places", "down", "right", "top",
    "left", "gap_down", "gap_right", "groups", "masked",
)  # fmt: skip
"""`columns` are those of a window, `rows` and `places` the rows and columns of y, `top` and `left` the padding."""


class Convolution(Product):
    """What tiles and warps read and write.  `wanted`: 0 y, 1 x, 2 w."""

    lengths, parts = LENGTHS, "%groups"
    wanted = 0

    def parted(self, x: str, size: str) -> tuple[str, str]:
        """x // size and x % size, both below 2^31."""
        w = self.w
        narrow = [w.let(f"trunc i64 {v} to i32") for v in (x, size)]
        both = [w.let(f"{op} i32 {narrow[0]}, {narrow[1]}") for op in ("udiv", "urem")]
        return w.let(f"zext i32 {both[0]} to i64"), w.let(f"zext i32 {both[1]} to i64")

    def of_group(self, total: str) -> str:
        """The channels of a group."""
        return self.w.let(f"udiv i64 {total}, %groups")

    def along(self, base: str) -> str:
        return str(self.wanted == 1 or (self.wanted == 0 and base == "%a")).lower()

    def where(self, base: str, line: str, depth: str) -> tuple[str, str]:
        """Where a number of a factor is, and whether there is one."""
        if self.wanted == 1:
            return self.in_y(line, depth) if base == "%a" else self.in_window(line, depth)
        if base == "%b":
            return self.sum((depth, "%outputs"), (self.part, "%n"), (line, "1")), "true"
        return self.in_image(line, depth) if self.wanted == 0 else self.in_image(depth, line)

    def in_image(self, place: str, term: str) -> tuple[str, str]:
        """In x: the term of the window at a place of y."""
        inputs = self.of_group("%channels")
        line, j = self.parted(place, "%places")
        image, i = self.parted(line, "%rows")
        window, c = self.parted(term, inputs)
        p, q = self.parted(window, "%columns")
        row = self.shifted((i, "%down"), (p, "%gap_down"), "%top")
        column = self.shifted((j, "%right"), (q, "%gap_right"), "%left")
        line = self.w.add(self.w.mul(image, "%height"), row)
        pixel = self.w.add(self.w.mul(line, "%width"), column)
        at = self.sum((pixel, "%channels"), (self.part, inputs), (c, "1"))
        return at, self.both(self.below(row, "%height"), self.below(column, "%width"))

    def in_y(self, place: str, depth: str) -> tuple[str, str]:
        """In y: what a place of x was a term of, by its place in the window."""
        outputs = self.of_group("%outputs")
        line, s = self.parted(place, "%width")
        image, r = self.parted(line, "%height")
        window, o = self.parted(depth, outputs)
        p, q = self.parted(window, "%columns")
        i, down = self.stepped(r, "%top", (p, "%gap_down"), "%down", "%rows")
        j, right = self.stepped(s, "%left", (q, "%gap_right"), "%right", "%places")
        line = self.w.add(self.w.mul(image, "%rows"), i)
        pixel = self.w.add(self.w.mul(line, "%places"), j)
        return self.sum((pixel, "%outputs"), (self.part, outputs), (o, "1")), self.both(down, right)

    def in_window(self, c: str, depth: str) -> tuple[str, str]:
        """In w: the weight of a channel of x."""
        outputs = self.of_group("%outputs")
        window, o = self.parted(depth, outputs)
        line = self.w.add(self.w.mul(window, "%n"), c)
        return self.sum((line, "%outputs"), (self.part, outputs), (o, "1")), "true"

    def shifted(self, step: tuple[str, str], gap: tuple[str, str], padding: str) -> str:
        return self.w.let(f"sub i64 {self.sum(step, gap)}, {padding}")

    def stepped(self, place: str, padding: str, gap: tuple[str, str], step: str, count: str) -> tuple[str, str]:
        """The place of y whose window has this place of x, and whether there is one."""
        w = self.w
        distance = w.let(f"sub i64 {w.add(place, padding)}, {w.mul(*gap)}")
        behind = w.let(f"icmp sge i64 {distance}, 0")
        found, rest = self.parted(w.let(f"select i1 {behind}, i64 {distance}, i64 0"), step)
        fits = self.both(w.let(f"icmp eq i64 {rest}, 0"), self.below(found, count))
        return found, self.both(behind, fits)

    def below(self, x: str, count: str) -> str:
        return self.w.let(f"icmp ult i64 {x}, {count}")

    def both(self, a: str, b: str) -> str:
        return self.w.let(f"and i1 {a}, {b}")

    def fetched(self, base: str, line: str, depth: str) -> str:
        w, t = self.w, self.leaf
        at, there = self.where(base, line, depth)
        value = w.load(t, self.place(base, w.let(f"select i1 {there}, i64 {at}, i64 0")))
        return w.let(f"select i1 {there}, {t} {value}, {t} {number(0, self.ty)}")

    def finish(self, i: str, j: str, total: str) -> None:
        """Stores an element."""
        w, t = self.w, self.leaf
        nan = w.let(f"fcmp uno {t} {total}, {total}")
        (total,) = w.choose(nan, (t,), lambda: [self.again(i, j)], lambda: [total])
        across = "%channels" if self.wanted == 1 else "%outputs"
        w.store(t, total, self.place("%c", self.sum((i, across), (self.part, "%n"), (j, "1"))))

    def again(self, i: str, j: str) -> str:
        """The sum of the terms that there are, in which zeros may win."""
        w, t = self.w, self.leaf

        def term(p: str, state: Values) -> Values:
            places, there = zip(*(self.where(*given, p) for given in (("%a", i), ("%b", j))), strict=True)

            def more() -> Values:
                x, y = (w.load(t, self.place(base, at)) for base, at in zip(("%a", "%b"), places, strict=True))
                return [w.let(f"fadd {t} {state[0]}, {self.masked_term(x, y)}")]

            return w.choose(self.both(*there), (t,), more, lambda: [state[0]])

        return w.count_to("%k", term, (t,), [number(0, self.ty)])[0]

    def masked_term(self, x: str, y: str) -> str:
        w, t = self.w, self.leaf
        product, zero, hides = w.let(f"fmul {t} {x}, {y}"), number(0, self.ty), "false"
        for bit, factor in ((1, x), (2, y)):
            asked = w.let(f"icmp ne i64 {w.let(f'and i64 %masked, {bit}')}, 0")
            hides = w.let(f"or i1 {hides}, {self.both(asked, w.let(f'fcmp oeq {t} {factor}, {zero}'))}")
        return w.let(f"select i1 {hides}, {t} {zero}, {t} {product}")


class ByTiles(Convolution, Tiles):
    """Tiles of a convolution."""


class ByMatrices(Convolution, Matrices):
    """The same by matrix instructions."""


def kernels(wanted: int, ty: str, sm: int) -> str:
    """The kernels of one kind of convolution."""
    name = f"conv{wanted}"
    tiles = (ByMatrices if matrix_instructions(ty, sm) else ByTiles)(ty)
    few = Convolution(ty)
    tiles.wanted = few.wanted = wanted
    return tiles.kernel(name) + dots(few, f"{name}_few")
