"""Products of matrices by kernels of our own.

    matmul_T(c, a, b, m, n, k, ar, ac, br, bc, add, masked)      tiles of 64 x 64, by blocks of 256 threads
    dots_T(the same)                                             a warp for each element: few elements, long sums
    mend_T(the same, t)                                          t is the product, by cuBLAS: masks it, and adds it

c = a b, or c + a b if `add`, where c is m x n; `ar`, `ac`, `br`, `bc` lead from a row, or column, to the next.  Where a
zero of `a` (bit 0 of `masked`) or of `b` (bit 1) meets infinity, the product is NaN: such elements are computed again,
as on the host.  The terms of a sum are added in one order, by fused multiply-add.

A block of threads keeps 16 columns of its rows of a, and 16 rows of its columns of b, in shared memory.  A thread adds
up 4 x 4 elements; or a warp 16 x 32 of them in f64, by matrix instructions of the hardware (sm_80 on).
"""

from __future__ import annotations

from dplc.machine.llvm.literals import number
from dplc.machine.llvm.types import SCALARS, SIZES
from dplc.machine.llvm.writer import Values, Writer
from dplc.passes.device.kernels import THREADS

SIDE = 64  # of a tile
DEPTH = 16  # columns of a that are kept
PART = 4  # the side of a thread's part
PITCH = SIDE + 8  # from one column in shared memory to the next: threads read from different banks
MATRIX = 80  # the first compute capability with matrix instructions for f64
FEW_ELEMENTS = 4096  # so many have a warp each
WIDE = 16  # threads of a row of a tile
LENGTHS = ("m", "n", "k", "ar", "ac", "br", "bc", "add", "masked")


def chosen(ty: str, m: int, n: int) -> tuple[str, int]:
    """The kernel for a product of this size, and how many blocks of threads it takes."""
    if m * n <= FEW_ELEMENTS:
        return f"dots_{ty}", max(1, -(-m * n * 32 // THREADS))
    return f"matmul_{ty}", -(-m // SIDE) * -(-n // SIDE)


class Product:
    """A kernel under construction, for one type.  `parts` are the products that it computes, of which one is `part`."""

    lengths: tuple[str, ...] = LENGTHS
    parts, part = "1", "0"

    def __init__(self, ty: str) -> None:
        self.w, self.ty, self.leaf, self.size = Writer(), ty, SCALARS[ty], SIZES[SCALARS[ty]]

    def text(self, name: str, before: str = "", more: str = "") -> str:
        """The kernel; `more` is the name of another pointer that it takes."""
        casts = "".join(f"  %{p} = addrspacecast ptr addrspace(1) %{p}.g to ptr\n" for p in f"cab{more}")
        factors = [f"ptr addrspace(1) noalias readonly %{p}.g" for p in "ab"]
        numbers = [f"i64 %{n}" for n in self.lengths]
        head = ", ".join(["ptr addrspace(1) %c.g", *factors, *numbers, *(f"ptr addrspace(1) %{p}.g" for p in more)])
        lines = "\n".join(self.w.lines)
        return (
            f'{before}define ptx_kernel void @{name}_{self.ty}({head}) "nvvm.maxntid"="{THREADS}" nounwind {{\n'
            f"entry:\n{casts}  br label %start\nstart:\n{lines}\n  ret void\n}}\n"
        )

    def place(self, base: str, i: str) -> str:
        return self.w.let(f"getelementptr {self.leaf}, ptr {base}, i64 {i}")

    def split(self, number_: str, size: str) -> tuple[str, str]:
        """The part of something that a number is in, and its number there, if each part has this size."""
        if self.parts == "1":
            return self.part, number_
        return self.w.let(f"udiv i64 {number_}, {size}"), self.w.let(f"urem i64 {number_}, {size}")

    def sum(self, *factors: tuple[str, str]) -> str:
        """The sum of products of lengths."""
        w, total = self.w, "0"
        for a, b in factors:
            total = w.add(total, w.mul(a, b))
        return total

    def fma(self, a: str, b: str, c: str) -> str:
        t = self.leaf
        return self.w.let(f"call {t} @llvm.fma.{self.ty}({t} {a}, {t} {b}, {t} {c})")

    def fetched(self, base: str, line: str, depth: str) -> str:
        """The number of a factor on a line (a row of a, a column of b) at a depth."""
        line_step, depth_step = ("%ar", "%ac") if base == "%a" else ("%bc", "%br")
        return self.w.load(self.leaf, self.place(base, self.sum((line, line_step), (depth, depth_step))))

    def finish(self, i: str, j: str, total: str) -> None:
        """Stores an element, or adds to it; a sum that is NaN may be masked."""
        w, t = self.w, self.leaf
        nan = w.let(f"fcmp uno {t} {total}, {total}")
        again = w.let(f"and i1 {nan}, {w.let('icmp ne i64 %masked, 0')}")

        def masked() -> Values:
            x, y = self.place("%a", w.mul(i, "%ar")), self.place("%b", w.mul(j, "%bc"))
            args = f"ptr {x}, i64 %ac, ptr {y}, i64 %br, i64 %k, i64 %masked"
            wide = w.let(f"call double @rt.masked_sum.{self.ty}({args})")
            return [wide if self.ty == "f64" else w.let(f"fptrunc double {wide} to {t}")]

        (total,) = w.choose(again, (t,), masked, lambda: [total])
        at = self.place("%c", self.sum((i, "%n"), (j, "1")))
        adds = w.let("icmp ne i64 %add, 0")
        (total,) = w.choose(adds, (t,), lambda: [w.let(f"fadd {t} {w.load(t, at)}, {total}")], lambda: [total])
        w.store(t, total, at)


def dots(k: Product, name: str = "dots") -> str:
    """A warp for each element."""
    w, t = k.w, k.leaf
    thread, threads = w.let("call i64 @rt.thread()"), w.let("call i64 @rt.threads()")
    lane = w.let(f"and i64 {thread}, 31")
    size = w.mul("%m", "%n")

    def element(e: str) -> None:
        k.part, e = k.split(e, size)
        i, j = w.let(f"udiv i64 {e}, %n"), w.let(f"urem i64 {e}, %n")

        def term(state: Values) -> Values:
            p, total = state
            return [w.let(f"add i64 {p}, 32"), k.fma(k.fetched("%a", i, p), k.fetched("%b", j, p), total)]

        own = w.loop(("i64", t), [lane, number(0, k.ty)], lambda s: w.let(f"icmp slt i64 {s[0]}, %k"), term)[1]
        total = w.let(f"call {t} @rt.warp.{k.ty}({t} {own}, i64 32)")

        def store() -> Values:
            k.finish(i, j, total)
            return []

        w.choose(w.let(f"icmp eq i64 {lane}, 0"), (), store, list)

    k.w.strided(w.let(f"lshr i64 {thread}, 5"), w.mul(size, k.parts), w.let(f"lshr i64 {threads}, 5"), element)
    return k.text(name)


def mend(ty: str) -> str:
    """A thread for each element, which may be masked; the elements are added to others or take their place."""
    k = Product(ty)
    w = k.w

    def element(e: str) -> None:
        i, j = w.let(f"udiv i64 {e}, %n"), w.let(f"urem i64 {e}, %n")
        k.finish(i, j, w.load(k.leaf, k.place("%t", e)))

    k.w.strided(w.let("call i64 @rt.thread()"), w.mul("%m", "%n"), w.let("call i64 @rt.threads()"), element)
    return k.text("mend", more="t")


def matmul(ty: str, sm: int) -> str:
    return (Matrices if matrix_instructions(ty, sm) else Tiles)(ty).kernel()


def matrix_instructions(ty: str, sm: int) -> bool:
    """Whether a GPU multiplies matrices of these numbers by instructions of its own."""
    return ty == "f64" and sm >= MATRIX


class Tiles(Product):
    """A product by tiles."""

    def kernel(self, name: str = "matmul") -> str:
        """The text of a kernel whose blocks of threads compute tiles of the product, in shared memory."""
        w = self.w
        shared = [f"@{name}.{p}.{self.ty}" for p in "ab"]
        room = f"internal addrspace(3) global [{DEPTH * PITCH} x {self.leaf}] undef, align 32"
        before = "".join(f"{symbol} = {room}\n" for symbol in shared)
        self.shared = shared
        self.thread = w.let(f"zext i32 {w.let('call i32 @llvm.nvvm.read.ptx.sreg.tid.x()')} to i64")
        block = w.let(f"zext i32 {w.let('call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()')} to i64")
        blocks = w.let(f"zext i32 {w.let('call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()')} to i64")
        self.own()
        self.wide = w.let(f"udiv i64 {w.let(f'add i64 %n, {SIDE - 1}')}, {SIDE}")
        high = w.let(f"udiv i64 {w.let(f'add i64 %m, {SIDE - 1}')}, {SIDE}")
        self.tiles = w.mul(self.wide, high)
        self.w.strided(block, w.mul(self.tiles, self.parts), blocks, self.tile)
        return self.text(name, before)

    def own(self) -> None:
        """The first row and column of this thread in a tile."""
        w = self.w
        self.column = w.let(f"mul i64 {w.let(f'and i64 {self.thread}, {WIDE - 1}')}, {PART}")
        self.row = w.let(f"mul i64 {w.let(f'lshr i64 {self.thread}, 4')}, {PART}")

    def elements(self) -> list[tuple[int, int]]:
        """Which rows and columns after the first ones a thread adds up."""
        return [(r, s) for r in range(PART) for s in range(PART)]

    def tile(self, number_: str) -> None:
        w = self.w
        self.part, number_ = self.split(number_, self.tiles)
        top = w.let(f"mul i64 {w.let(f'udiv i64 {number_}, {self.wide}')}, {SIDE}")
        left = w.let(f"mul i64 {w.let(f'urem i64 {number_}, {self.wide}')}, {SIDE}")
        zeros = [number(0, self.ty)] * PART * PART

        def deeper(state: Values) -> Values:
            p, *sums = state
            self.fetch(self.shared[0], "%a", top, "%m", p)
            self.fetch(self.shared[1], "%b", left, "%n", p)
            w.do("call void @llvm.nvvm.barrier0()")
            sums = self.deep(sums)
            w.do("call void @llvm.nvvm.barrier0()")
            return [w.let(f"add i64 {p}, {DEPTH}"), *sums]

        types = ("i64", *[self.leaf] * PART * PART)
        sums = w.loop(types, ["0", *zeros], lambda s: w.let(f"icmp slt i64 {s[0]}, %k"), deeper)[1:]
        first, second = w.add(top, self.row), w.add(left, self.column)
        for (r, s), total in zip(self.elements(), sums, strict=True):
            i, j = w.add(first, str(r)), w.add(second, str(s))
            inside = w.let(f"and i1 {w.let(f'icmp slt i64 {i}, %m')}, {w.let(f'icmp slt i64 {j}, %n')}")
            w.choose(inside, (), lambda i=i, j=j, total=total: self.finished(i, j, total), list)

    def finished(self, i: str, j: str, total: str) -> Values:
        self.finish(i, j, total)
        return []

    def along(self, base: str) -> str:
        """Whether the numbers of a line of a factor are side by side."""
        return self.w.let(f"icmp eq i64 {'%ac' if base == '%a' else '%br'}, 1")

    def fetch(self, to: str, base: str, first: str, count: str, depth: str) -> None:
        """Copies a part of a factor: lines from `first` on, at depths from `depth` on.  Threads side by side read
        places side by side.  What is beyond the factor is zero."""
        w, t = self.w, self.leaf
        along = self.along(base)
        for q in range(SIDE * DEPTH // THREADS):
            e = w.let(f"add i64 {self.thread}, {q * THREADS}")
            line = w.let(f"select i1 {along}, i64 {w.let(f'lshr i64 {e}, 4')}, i64 {w.let(f'and i64 {e}, {SIDE - 1}')}")
            at = w.let(f"select i1 {along}, i64 {w.let(f'and i64 {e}, {DEPTH - 1}')}, i64 {w.let(f'lshr i64 {e}, 6')}")
            i, p = w.add(first, line), w.add(depth, at)
            inside = w.let(f"and i1 {w.let(f'icmp slt i64 {i}, {count}')}, {w.let(f'icmp slt i64 {p}, %k')}")
            i, p = (w.let(f"select i1 {inside}, i64 {x}, i64 0") for x in (i, p))
            value = w.let(f"select i1 {inside}, {t} {self.fetched(base, i, p)}, {t} {number(0, self.ty)}")
            place = w.add(w.let(f"mul i64 {at}, {PITCH}"), line)
            into = w.let(f"getelementptr {t}, ptr addrspace(3) {to}, i64 {place}")
            w.do(f"store {t} {value}, ptr addrspace(3) {into}")

    def deep(self, sums: Values) -> Values:
        """Adds the products of what is in shared memory."""
        for d in range(DEPTH):
            sums = self.outer(d, sums)
        return sums

    def outer(self, d: int, sums: Values) -> Values:
        """Adds the products of a column of a and a row of b, at depth d."""
        w, vector = self.w, f"<{PART} x {self.leaf}>"
        parts: list[list[str]] = []
        for name, start in zip(self.shared, (self.row, self.column), strict=True):
            at = w.let(f"getelementptr {self.leaf}, ptr addrspace(3) {name}, i64 {w.add(start, str(d * PITCH))}")
            whole = w.let(f"load {vector}, ptr addrspace(3) {at}, align 16")
            parts.append([w.let(f"extractelement {vector} {whole}, i32 {i}") for i in range(PART)])
        rows, columns = parts
        return [self.fma(rows[r], columns[s], sums[r * PART + s]) for r in range(PART) for s in range(PART)]


class Matrices(Tiles):
    """Tiles by matrix instructions: a warp multiplies 8 x 4 by 4 x 8 numbers.  Thread l has the number in row l / 4 and
    column l mod 4 of the first factor, that in row l mod 4 and column l / 4 of the second one, and two numbers side by
    side in row l / 4 of the product."""

    HIGH, WIDE = 2, 4  # products of a warp in a column, and in a row

    def own(self) -> None:
        w = self.w
        warp, lane = w.let(f"lshr i64 {self.thread}, 5"), w.let(f"and i64 {self.thread}, 31")
        self.quarter, self.rest = w.let(f"lshr i64 {lane}, 2"), w.let(f"and i64 {lane}, 3")
        self.top = w.let(f"mul i64 {w.let(f'lshr i64 {warp}, 1')}, {8 * self.HIGH}")
        self.left = w.let(f"mul i64 {w.let(f'and i64 {warp}, 1')}, {8 * self.WIDE}")
        self.row = w.add(self.top, self.quarter)
        self.column = w.add(self.left, w.let(f"shl i64 {self.rest}, 1"))

    def elements(self) -> list[tuple[int, int]]:
        return [(8 * r, 8 * s + e) for r in range(self.HIGH) for s in range(self.WIDE) for e in (0, 1)]

    def deep(self, sums: Values) -> Values:
        w, after = self.w, list(sums)
        for d in range(0, DEPTH, 4):
            rows = [self.load(self.shared[0], d, self.top, 8 * r) for r in range(self.HIGH)]
            columns = [self.load(self.shared[1], d, self.left, 8 * s) for s in range(self.WIDE)]
            for r, a in enumerate(rows):
                for s, b in enumerate(columns):
                    at = 2 * (r * self.WIDE + s)
                    args = ", ".join(f"double {x}" for x in (a, b, *after[at : at + 2]))
                    both = w.let(f"call {{ double, double }} @llvm.nvvm.mma.m8n8k4.row.col.f64({args})")
                    after[at : at + 2] = [w.let(f"extractvalue {{ double, double }} {both}, {e}") for e in (0, 1)]
        return after

    def load(self, name: str, d: int, start: str, more: int) -> str:
        """This thread's number of a factor, of which column (or row) d begins the part."""
        w = self.w
        place = w.add(w.let(f"mul i64 {w.add(self.rest, str(d))}, {PITCH}"), w.add(start, self.quarter))
        at = w.let(f"getelementptr double, ptr addrspace(3) {name}, i64 {w.add(place, str(more))}")
        return w.let(f"load double, ptr addrspace(3) {at}")


KERNELS = {"matmul": matmul, "dots": lambda ty, sm: dots(Product(ty)), "mend": lambda ty, sm: mend(ty)}
