"""What the code of the host knows of a device: which Pars have kernels, and the cells by which it names them.

A cell is data of the program: the kernel's name, its handle once it is loaded, a label for people, and counters
(`rt/device.rt`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dpl.node import field, record
from dpl.regex import regex

from dplc.flat import term as f
from dplc.machine.emit.module.uploads import Layouts
from dplc.machine.llvm.literals import escape

if TYPE_CHECKING:
    from dplc.passes.device.kernels import Kernel

CONSTANTS = '@"constants for a device"'
WITH_DEVICE = '@"dpl with device"'
RECURSIVE_STACK = 20480  # bytes of stack for each thread of a program with recursive kernels, beside its largest frames
FRAME = regex(r"__local_depot\d+\[(\d+)\]")


@record
class Device:
    """The kernels of a program under construction.  `of` makes the kernel of a Par of a function, if it can be one,
    `product` adds those of products of matrices of a type, `convolution` those of one of the three kinds of
    convolutions, and `ptx` gives the text of all of them.  `told` are lines about the Pars that have none.  `layouts`
    tell how data that they read is copied."""

    of: Callable[[f.Par, f.Fn], Kernel | None]
    product: Callable[[str], None]
    convolution: Callable[[int, str], None]
    ptx: Callable[[], str]
    told: Callable[[], str]
    layouts: Layouts
    cells: dict[str, str] = field(default_factory=dict)
    recursive: bool = False

    def cell(self, name: str, label: str) -> str:
        """The address of a kernel's cell."""
        symbol = f'@"kernel {name}"'
        if name not in self.cells:
            self.cells[name] = (
                text_constant(f'@"name of {name}"', name)
                + text_constant(f'@"label of {name}"', label)
                + f'{symbol} = internal global [8 x ptr] [ptr @"name of {name}", ptr null, ptr @"label of {name}", '
                "ptr null, ptr null, ptr null, ptr null, ptr null]\n"
            )
        return symbol

    def started(self, main: str, constants: dict[str, tuple[str, list[str]]]) -> str:
        """A function that runs `main`, which knows its device then, and the arrays that are constants."""
        text = self.ptx() if self.cells else ""
        frame = max(map(int, FRAME.findall(text)), default=0)  # those that do not look at what is left have it twice
        stack = RECURSIVE_STACK + 2 * frame if self.recursive else 0
        return (
            "".join((*self.cells.values(), *self.layouts.texts))
            + table_of(constants)
            + text_constant('@"device code"', text)
            + text_constant('@"on the host"', self.told())
            + f"define internal fastcc void {WITH_DEVICE}() noinline {{\n"
            f'  call void @rt.device_begin(ptr @"device code", i64 {stack}, ptr {CONSTANTS}, ptr @"on the host")\n'
            f"  call fastcc void {main}() noinline\n  call void @rt.device_end()\n  ret void\n}}\n"
        )


def table_of(constants: dict[str, tuple[str, list[str]]]) -> str:
    """A table of constant arrays: how many there are, then for each its address, its bytes, and its place on the device
    once it is there."""
    row = "{ ptr, i64, i64 }"
    rows = [f"{row} {{ ptr {address}, {bytes_of(kind, len(items))}, i64 0 }}"
            for address, (kind, items) in constants.items()]  # fmt: skip
    table = f"[{len(rows)} x {row}]"
    return f"{CONSTANTS} = internal global {{ i64, {table} }} {{ i64 {len(rows)}, {table} [{', '.join(rows)}] }}\n"


def bytes_of(kind: str, count: int) -> str:
    return f"i64 ptrtoint (ptr getelementptr ({kind}, ptr null, i64 {count}) to i64)"


def text_constant(symbol: str, text: str) -> str:
    """A text with a NUL after it."""
    data = text.encode() + b"\0"
    return f'{symbol} = private constant [{len(data)} x i8] c"{escape(data)}"\n'
