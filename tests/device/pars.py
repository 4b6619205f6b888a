"""Programs of flat whose Pars run twice: by the evaluator of flat, and as kernels in the interpreter of PTX.

compared(source) -> list of Launched        runs a program; every Par that can be a kernel gives the same results
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from dpl.node import replace
from dpl.source import Source
from dplc.flat import interp
from dplc.flat import term as f
from dplc.flat.interp_ops import Array, Failure
from dplc.flat.ops.table import OPS
from dplc.flat.types import elem_of
from dplc.flat.walk import every
from dplc.machine.cuda.kernels import Kernels
from dplc.machine.cuda.ptx import ptx
from dplc.machine.emit.module.layout import Struct
from dplc.machine.emit.module.layout import struct as layout
from dplc.passes.device.kernels import BLOCK, THREADS, Kernel, Made, grid, groups_of
from dplc.passes.kernels.independence import is_plain
from dplc.pipeline import Context, compile_to
from ptx_memory import Blocks
from ptx_run import Machine

ARENA = 1 << 14  # bytes for each thread
PROCESSORS = 1
LETTERS = {
    "i1": "?", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "half": "e", "float": "f", "double": "d",
}  # fmt: skip


@dataclass(slots=True)
class Launched:
    """A kernel that ran, with its name in the program."""

    kernel: Kernel
    name: str
    failed: bool


def compared(text: str, sm: int = 80) -> list[Launched]:
    """Runs a program; what the points of its Pars give is what kernels give.  Returns the kernels that ran."""
    machine = Both(program_of(text), sm)
    machine.call(machine.program.main)
    return machine.launched


def program_of(text: str) -> f.Program:
    """The program before it is written as LLVM text."""
    return compile_to("reference_counts", Source("test.dp", text), Context())[1]


class Both(interp.Machine):
    """The evaluator of flat, which compares."""

    def __init__(self, program: f.Program, sm: int = 80) -> None:
        super().__init__(program)
        self.kernels = Kernels(program)
        self.sm = sm
        self.launched: list[Launched] = []
        self.refused: list[str] = []
        self.deep = False
        self.texts: dict[str, tuple[Kernel, str]] = {}

    def par(self, par: f.Par, vars_: tuple[f.Var, ...], env: dict[str, Any]) -> tuple:
        kernel = "inside of a kernel" if self.deep else self.kernels.made(par)
        counts = [interp.value(n, env) for _, n in par.space]
        if not isinstance(kernel, str) and not all(is_plain(arg.ty) for arg in kernel.args):
            kernel = "it reads data, which the runtime of the host copies"
        if isinstance(kernel, str) or min(counts) <= 0:
            if isinstance(kernel, str) and not self.deep:
                self.refused.append(kernel)
            return super().par(par, vars_, env)
        self.deep = True
        try:
            wanted: tuple | Failure = super().par(par, vars_, env)
        except Failure as failure:
            wanted = failure
        self.deep = False
        kernel, text = self.alone(kernel)
        launch = Launch(kernel, text, env)
        given = launch.run() if launch.suits() else None
        if given is not None or launch.failed:
            self.launched.append(Launched(kernel, vars_[0].name if vars_ else "", launch.failed))
            if isinstance(wanted, Failure):
                assert launch.failed, f"{kernel.name} does not fail: {wanted}"
            else:
                assert not launch.failed, f"{kernel.name} fails at {vars_}"
                assert given is not None
                compare(kernel, given, wanted)
        if isinstance(wanted, Failure):
            raise wanted
        return wanted

    def alone(self, kernel: Kernel) -> tuple[Kernel, str]:
        """A kernel in a module of its own, with what completes its results."""
        if kernel.name not in self.texts:
            kernels = Kernels(self.program)
            made = kernels.of(kernel.par)
            assert made is not None
            self.texts[kernel.name] = made, ptx(kernels.text(), self.sm)
        made, text = self.texts[kernel.name]
        return replace(kernel, name=made.name), text


@dataclass
class Launch:
    """A kernel with its arguments in a memory of its own."""

    kernel: Kernel
    text: str
    env: dict[str, Any]
    blocks: Blocks = field(default_factory=Blocks)
    next: int = 1 << 33
    failed: bool = False

    def suits(self) -> bool:
        """Whether the host would launch it."""
        self.counts = [interp.value(n, self.env) for n in self.kernel.space]
        self.points = math.prod(self.counts)
        self.groups = 0
        if self.kernel.geometry == "groups":
            arrays = [dim[0].name for made in self.kernel.outs for dim in made.dims if isinstance(dim, tuple)]
            if any(self.env[name] is None for name in arrays):
                return False  # what is added to is null, and nothing else tells its lengths
            sizes = [math.prod(self.dims(made.dims)) for made in self.kernel.outs if made.dims and not made.own]
            self.groups = min(groups_of(self.points, sum(sizes)) or min(self.points, 3), 40)
        return True

    def dims(self, dims: tuple) -> list[int]:
        return [self.env[d[0].name].shape[d[1]] if isinstance(d, tuple) else interp.value(d, self.env) for d in dims]

    def memory(self, size: int, fill: int = 0xA5) -> int:
        base, data = self.next, np.full(max(size, 1), fill, np.uint8)
        self.next += -(-size // 256) * 256 + 512
        self.blocks.add(base, data)
        return base

    def run(self) -> list[Any] | None:
        """The results; None if it leaves a record of a failure."""
        machine = Machine(self.text, self.blocks)
        machine.place_globals(1 << 32, np.zeros(machine.size_of_globals() + 8, np.uint8))
        columns = math.prod(self.counts[len(self.counts) - rank :]) if (rank := self.rank()) else 0
        team = self.kernel.geometry == "team"
        blocks = grid(self.kernel, self.points, columns, self.groups, PROCESSORS)
        blocks = 2 if self.kernel.arena and not team else blocks
        arena = self.memory(ARENA * (blocks + team) * THREADS if self.kernel.arena else 16)
        self.global_(machine, "dpl_arena")[:] = [arena, ARENA if self.kernel.arena else 0]
        arguments = [bits for var in self.kernel.args for bits in self.argument(var.ty, self.env[var.name])]
        arguments += [n for n, atom in zip(self.counts, self.kernel.space, strict=True) if isinstance(atom, f.Var)]
        places = []
        for made in self.kernel.outs:
            places.append(self.result(made))
            dims = made.row if made.out.kind == "keep" else made.dims
            told = zip(self.dims(dims), dims, strict=True)
            arguments += [places[-1], *(n for n, dim in told if not isinstance(dim, f.Const))]
        arguments += [self.groups] if self.kernel.geometry == "groups" else []
        machine.launch(self.kernel.name, blocks, THREADS, arguments)
        record = self.global_(machine, "dpl_record")
        self.failed = bool(record[0] or record[1])
        if self.failed:
            return None
        return [self.completed(machine, made, place) for made, place in zip(self.kernel.outs, places, strict=True)]

    def rank(self) -> int:
        return max([made.out.rank for made in self.kernel.outs], default=0)

    def global_(self, machine: Machine, name: str) -> np.ndarray:
        if name not in machine.globals:
            return np.zeros(4, np.int64)
        return machine.blocks.data[machine.globals[name]].view(np.int64)[:2]

    # ---- arguments

    def argument(self, ty: f.Type, value: Any) -> list[int]:
        match ty:
            case f.Num():
                return [int.from_bytes(packed(layout(ty), [value]), "little")]
            case f.Tup(items):
                return [bits for item, part in zip(items, value, strict=True) for bits in self.argument(item, part)]
            case f.Arr(elem, rank) if value is not None:
                data = b"".join(packed(layout(elem), flat(item)) for item in value.items)
                place = self.memory(len(data))
                self.blocks.data[place][: len(data)] = np.frombuffer(data, np.uint8)
                return [place, *value.shape]
            case f.Arr(_, rank):
                return [0] * (1 + rank)
            case _:
                raise AssertionError(ty)

    # ---- results

    def result(self, made: Made) -> int:
        size = layout(made.elem).size
        if made.out.kind == "keep":
            return self.memory(self.points * math.prod(self.dims(made.row)) * size)
        if made.own:
            return self.target(made)
        if made.out.kind == "add":
            return self.memory(self.groups * math.prod(self.dims(made.dims)) * size, 0)
        if self.kernel.geometry == "groups":
            return self.memory(self.points * size)
        columns = math.prod(self.counts[len(self.counts) - made.out.rank :]) if made.out.rank else 1
        rows = self.points // columns
        return self.memory(max(1, -(-rows // BLOCK)) * columns * size)

    def target(self, made: Made) -> int:
        """A copy of what is added to, or zeros."""
        dims, out = tuple(self.dims(made.dims)), made.out
        target = interp.value(out.target, self.env) if out.target is not None else None
        return self.argument(f.Arr(made.elem, 1), target or Array(dims, [0.0] * math.prod(dims)))[0]

    def completed(self, machine: Machine, made: Made, place: int) -> Any:
        ty, out = made.elem, made.out
        name = ty.name if isinstance(ty, f.Num) else ""
        if out.kind == "keep":
            return self.read(place, ty, (*self.counts, *self.dims(made.row)))
        if made.own:
            return self.read(place, ty, tuple(self.dims(made.dims)))
        if out.kind == "add":
            dims, to = tuple(self.dims(made.dims)), self.target(made)
            size = math.prod(dims)
            machine.launch(f"add_{name}", max(1, -(-size // 8)), THREADS, [to, place, self.groups, size])
            return self.read(to, ty, dims)
        if out.rank:
            columns = math.prod(self.counts[len(self.counts) - out.rank :])
            blocks = -(-(self.points // columns) // BLOCK)
            if blocks > 1:
                machine.launch(f"columns_{name}", 1, THREADS, [place, blocks, columns])
            return self.read(place, ty, tuple(self.counts[len(self.counts) - out.rank :]))
        blocks = -(-self.points // BLOCK)
        if self.kernel.geometry == "groups":
            sums = self.memory(blocks * layout(ty).size)
            machine.launch(f"blocks_{name}", 1, THREADS, [sums, place, self.points])
            place = sums
        if blocks > 1:
            machine.launch(f"tree_{name}", 1, THREADS, [place, place, blocks, 1])
        return self.read(place, ty, (1,)).items[0]

    def read(self, place: int, ty: f.Type, shape: tuple[int, ...]) -> Array:
        shape_of, data = layout(ty), self.blocks.data[place].tobytes()
        items = [unpacked(ty, shape_of, data, i * shape_of.size) for i in range(math.prod(shape))]
        return Array(shape, items)


def flat(value: Any) -> list:
    """The leaves of a value of numbers."""
    return [leaf for part in value for leaf in flat(part)] if isinstance(value, tuple) else [value]


def packed(shape: Struct, leaves: list) -> bytes:
    data = bytearray(shape.size)
    for leaf, offset, value in zip(shape.leaves, shape.offsets, leaves, strict=True):
        form = LETTERS[leaf]
        if leaf[0] == "i" and leaf != "i1":
            bits = int(leaf[1:])
            value = (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
        struct.pack_into("<" + form, data, offset, value)
    return bytes(data)


def unpacked(ty: f.Type, shape: Struct, data: bytes, at: int) -> Any:
    leaves = [struct.unpack_from("<" + LETTERS[leaf], data, at + offset)[0]
              for leaf, offset in zip(shape.leaves, shape.offsets, strict=True)]  # fmt: skip
    return nested(ty, leaves)


def nested(ty: f.Type, leaves: list) -> Any:
    if isinstance(ty, f.Tup):
        return tuple([nested(item, leaves) for item in ty.items])
    value = leaves.pop(0)
    if isinstance(ty, f.Num) and ty.name[0] == "u" and value < 0:
        return value + (1 << int(ty.name[1:]))
    return value


# ---- comparison


def compare(kernel: Kernel, given: list[Any], wanted: tuple) -> None:
    products = any(isinstance(bind.rhs, f.Op) and OPS[bind.rhs.op].cubic for bind in every(kernel.par.body))
    for made, one, other in zip(kernel.outs, given, wanted, strict=True):
        loose = products or (made.out.kind == "add" and not made.own)
        if other is None:  # nothing was added
            assert all(x == 0 for x in one.items), kernel.name
            continue
        if isinstance(other, Array):
            assert one.shape == other.shape, (kernel.name, one.shape, other.shape)
            pairs = list(zip(flat(tuple(one.items)), flat(tuple(other.items)), strict=True))
        else:
            pairs = [(one, other)]
        ty = elem_of(made.value.ty)
        for k, (x, y) in enumerate(pairs):
            assert same(x, y, loose), f"{kernel.name}, {made.out.kind}, {ty}: number {k} is {x}, not {y}"


def same(x: Any, y: Any, loose: bool) -> bool:
    if x != x or y != y:
        return x != x and y != y
    if isinstance(x, float) and x == y:
        return math.copysign(1.0, x) == math.copysign(1.0, y) or loose
    return x == y or (loose and math.isclose(x, y, rel_tol=1e-9, abs_tol=1e-12))
