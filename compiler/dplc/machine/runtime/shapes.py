"""LLVM text with vectors: what kernels are written with."""

from __future__ import annotations

from dpl.node import node

from dplc.machine.llvm.types import SCALARS, SIZES

AVX = {"f64": "pd", "f32": "ps"}  # how its instructions call the types


@node
class Vectors:
    """The vector unit: bytes in a vector, and whether it has fused multiply-add."""

    bytes: int = 64
    fused: bool = True

    @property
    def masks(self) -> bool:
        """Whether it has masked loads; without, they are a branch for each element."""
        return self.bytes > 16

    @staticmethod
    def of(features: dict[str, bool]) -> Vectors:
        """From a host's features, by LLVM's names."""
        width = 64 if features.get("avx512f") else 32 if features.get("avx") else 16
        return Vectors(width, features.get("fma", False) or features.get("neon", False))


class Shape:
    """Vectors of one element type, in LLVM text."""

    def __init__(self, ty: str, lanes: int, machine: Vectors) -> None:
        self.ty = ty
        self.lanes = lanes
        self.elem = SCALARS[ty]
        self.bytes = SIZES[self.elem]
        self.type = f"<{lanes} x {self.elem}>"
        self.suffix = f"v{lanes}{ty}"
        self.mask = f"<{lanes} x i1>"
        self.fused = machine.fused
        # AVX2 has masks in registers of vectors: those of LLVM would be made anew at each step of a loop
        self.whole_masks = machine.bytes == self.bytes * lanes == 32

    def load(self, place: str) -> str:
        """The instruction that reads a vector."""
        return f"load {self.type}, ptr {place}, align {self.bytes}"

    def masked_load(self, place: str, mask: str) -> str:
        """The instruction that reads the lanes of a mask; the others are zero."""
        if self.whole_masks:
            args = f"ptr {place}, <{self.lanes} x i{8 * self.bytes}> {mask}.bits"
            return f"call {self.type} @llvm.x86.avx.maskload.{AVX[self.ty]}.256({args})"
        args = f"ptr align {self.bytes} {place}, {self.mask} {mask}, {self.type} zeroinitializer"
        return f"call {self.type} @llvm.masked.load.{self.suffix}.p0({args})"

    def store(self, value: str, place: str) -> str:
        """The instruction that writes a vector."""
        return f"store {self.type} {value}, ptr {place}, align {self.bytes}"

    def masked_store(self, value: str, place: str, mask: str) -> str:
        """The instruction that writes the lanes of a mask."""
        if self.whole_masks:
            args = f"ptr {place}, <{self.lanes} x i{8 * self.bytes}> {mask}.bits, {self.type} {value}"
            return f"call void @llvm.x86.avx.maskstore.{AVX[self.ty]}.256({args})"
        args = f"{self.type} {value}, ptr align {self.bytes} {place}, {self.mask} {mask}"
        return f"call void @llvm.masked.store.{self.suffix}.p0({args})"

    def at(self, base: str, index: str) -> str:
        """The instruction for the address of an element."""
        return f"getelementptr {self.elem}, ptr {base}, i64 {index}"

    def add_product(self, out: list[str], name: str, a: str, b: str, total: str) -> None:
        """Writes `name = a * b + total`, fused where the machine is."""
        if self.fused:
            args = ", ".join(f"{self.type} {x}" for x in (a, b, total))
            out.append(f"{name} = call {self.type} @llvm.fma.{self.suffix}({args})")
        else:
            out.append(f"{name}.p = fmul {self.type} {a}, {b}")
            out.append(f"{name} = fadd {self.type} {name}.p, {total}")

    def splat(self, out: list[str], name: str, scalar: str) -> None:
        """Writes a vector whose lanes are one scalar."""
        out.append(f"{name}.e = insertelement {self.type} poison, {self.elem} {scalar}, i32 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        out.append(f"{name} = shufflevector {self.type} {name}.e, {self.type} poison, {zeros}")

    def tail_mask(self, out: list[str], name: str, count: str) -> None:
        """A mask of the lanes below `count`, which is at most that of a block."""
        bits = max(32, 8 * self.bytes)
        vector = f"<{self.lanes} x i{bits}>"
        lanes = "<" + ", ".join(f"i{bits} {i}" for i in range(self.lanes)) + ">"
        if bits < 64:
            out.append(f"{name}.n = trunc i64 {count} to i{bits}")
            count = f"{name}.n"
        out.append(f"{name}.e = insertelement {vector} poison, i{bits} {count}, i32 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        out.append(f"{name}.s = shufflevector {vector} {name}.e, {vector} poison, {zeros}")
        out.append(f"{name} = icmp sgt {vector} {name}.s, {lanes}")
        if self.whole_masks:
            out.append(f"{name}.bits = sext {self.mask} {name} to {vector}")

    def fold(self, out: list[str], name: str, vector: str) -> None:
        """The sum of the lanes in a fixed order: the upper half is added to the lower half, again and again."""
        value, lanes = vector, self.lanes
        while lanes > 1:
            half = lanes // 2
            low = "<" + ", ".join(f"i32 {i}" for i in range(half)) + ">"
            high = "<" + ", ".join(f"i32 {i + half}" for i in range(half)) + ">"
            ty, to = f"<{lanes} x {self.elem}>", f"<{half} x {self.elem}>"
            out.append(f"{name}.l{half} = shufflevector {ty} {value}, {ty} poison, <{half} x i32> {low}")
            out.append(f"{name}.h{half} = shufflevector {ty} {value}, {ty} poison, <{half} x i32> {high}")
            out.append(f"{name}.s{half} = fadd {to} {name}.l{half}, {name}.h{half}")
            value, lanes = f"{name}.s{half}", half
        out.append(f"{name} = extractelement <1 x {self.elem}> {value}, i32 0")


def function(head: str, lines: list[str]) -> str:
    """An internal function of LLVM. The attribute lets vectors of 512 bits stay whole where the machine has them."""
    body = "\n".join(line if line.endswith(":") else f"  {line}" for line in lines)
    return f'define internal {head} nounwind "min-legal-vector-width"="512" {{\n{body}\n}}'
