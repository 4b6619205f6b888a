"""Elementary functions, described in `dpl/prims/elementary`, as LLVM text: for one number, and for vectors.

    @rt.exp.f64(double)                 which other code calls
    @rt.exp.f64.v8(<8 x double>)        which LLVM calls in its place, where it makes vectors of a loop

The attribute `vector-function-abi-variant` of the first names the others.  All compute the same bits: no step has
fast-math flags, and LLVM fuses none without them.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Sequence

from dpl.diagnostics import Bug
from dpl.prims import elementary
from dpl.prims.elementary.steps import Step, Steps
from dpl.regex import regex

from dplc.machine.llvm.types import SCALARS, SIZES

SYMBOL = regex(r"rt\.(\w+)\.(f64|f32)(?:\.v(\d+))?")
VARIANT = regex(r"_ZGV_LLVM_[^(]*\(([^)]*)\)")
FRACTION = {"f64": 52, "f32": 23}
BIAS = {"f64": 1023, "f32": 127}
WHOLE = {"f64": "i64", "f32": "i32"}
PURE = "nounwind willreturn memory(none)"
PLAIN = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "neg": "fneg"}
ZERO = {"f64": -1076.0, "f32": -151.0}  # for a k up to here, 2^k p is 0
LOWEST = {"f64": 0x3FE6A09E667F3BCD, "f32": 0x3F3504F3}  # the bits of sqrt(1/2)
SCALED = {"f64": "pd", "f32": "ps"}  # AVX-512's instructions for 2^k p
AVX2 = 32  # bytes of its vectors
AS_IN_CODE, ALL = 4, -1  # its ways to round, all lanes
ORDERS = {"lt": "olt", "le": "ole", "eq": "oeq", "ne": "une"}


def vector_lengths(name: str, ty: str, width: int) -> list[int]:
    """The lengths of the vectors that a machine with vectors of `width` bytes has a function for."""
    most = width // SIZES[SCALARS[ty]] if elementary.has_vectors(name, ty) else 0
    return [n for n in (2, 4, 8, 16) if n in (most, most // 2)]


def symbols(width: int) -> list[str]:
    """All functions, those for vectors of `width` bytes included."""
    made = []
    for name in elementary.NAMES:
        for ty in elementary.types(name):
            made += [f"rt.{name}.{ty}", *(f"rt.{name}.{ty}.v{n}" for n in vector_lengths(name, ty, width))]
    return made


def declaration(symbol: str, width: int) -> str:
    """The text in a module that does not define the function."""
    return f"declare {_signature(symbol)} {PURE}{_more(symbol, width)}"


def definition(symbol: str, width: int, apart: bool) -> str | None:
    """The text of the function; None if it is none of these.  If `apart`, it has a section of its own, which the linker
    takes if something refers to it."""
    match = _matched(symbol)
    if match is None:
        return None
    steps = elementary.described(match[1], match[2])
    params = [f"%x{i}" for i in range(steps.arity)]
    made = _Text(steps, int(match[3] or 0), width)
    lines = made.text(params)
    section = f' section ".text.{symbol}"' if apart else ""
    head = f"define internal {_signature(symbol, params)} {PURE} noinline{_more(symbol, width)}{section} {{"
    return "\n".join([*made.tables, head, "entry:", *lines, "}"])


def keep(symbols: Iterable[str]) -> str:
    """Keeps the vector functions among these symbols until LLVM makes vectors; nothing calls them before."""
    kept = sorted(symbol for symbol in symbols if (match := _matched(symbol)) and match[3])
    names = ", ".join(f"ptr @{symbol}" for symbol in kept)
    text = f'@llvm.compiler.used = appending global [{len(kept)} x ptr] [{names}], section "llvm.metadata"\n'
    return text if kept else ""


def _matched(symbol: str) -> re.Match[str] | None:
    match = SYMBOL.fullmatch(symbol)
    return match if match and match[1] in elementary.NAMES else None


def _type(ty: str, lanes: int) -> str:
    leaf = WHOLE[ty[:3]] if ty.endswith(".bits") else SCALARS[ty]
    return f"<{lanes} x {leaf}>" if lanes else leaf


def _signature(symbol: str, params: Sequence[str] = ()) -> str:
    match = SYMBOL.fullmatch(symbol)
    assert match
    ty = _type(match[2], int(match[3] or 0))
    names = params or [""] * elementary.arity(match[1])
    return f"{ty} @{symbol}({', '.join(f'{ty} {name}'.rstrip() for name in names)})"


def _more(symbol: str, width: int) -> str:
    """More attributes: those of vectors in registers, or the names of the functions for vectors."""
    match = SYMBOL.fullmatch(symbol)
    assert match
    if match[3]:
        return ' "min-legal-vector-width"="512"'
    kinds = "v" * elementary.arity(match[1])
    lengths = vector_lengths(match[1], match[2], width)
    names = ",".join(f"_ZGV_LLVM_N{n}{kinds}_{symbol}({symbol}.v{n})" for n in lengths)
    return f' "vector-function-abi-variant"="{names}"' if names else ""


def variants(text: str) -> list[str]:
    """The functions for vectors that a text names in its attributes."""
    return VARIANT.findall(text) if "vector-function-abi-variant" in text else []


class _Text:
    """The instructions of a function of vectors with so many lanes, or of one number (0), for a machine with vectors of
    `width` bytes."""

    def __init__(self, steps: Steps, lanes: int, width: int) -> None:
        self.steps = steps
        self.lanes = lanes
        self.width = width
        self.lines: list[str] = []
        self.names: list[str] = []  # of the steps' values
        self.tables: list[str] = []
        self.constants: list[tuple[str, str]] = []  # in memory: types and values
        self.shifted: dict[int, str] = {}  # whole numbers, by step: plus MAGIC
        self.pairs: dict[int, tuple[str, str]] = {}
        self.count = 0
        self.block = "entry"
        # `scaled` steps, with the value before and within its bounds, where the branch for what is rare sees to these
        self.unbound = {step.args[2]: step.args[:2] for step in steps.steps
                        if step.op == "unbound" and self.branches(step.type)}  # fmt: skip
        self.loose = {inside: x for x, inside in self.unbound.values()}

    def branches(self, ty: str) -> bool:
        """Whether 2^k p has a branch for what is rare: AVX-512 has an instruction for all of it, and the threads of a
        device would wait for each other."""
        return self.width > 0 and (self.width < 64 or self.lanes * SIZES[SCALARS[ty]] != self.width)

    def text(self, params: list[str]) -> list[str]:
        names = self.names
        for number, step in enumerate(self.steps.steps):
            args = [names[arg] for arg in step.args]
            if number in self.loose:
                names.append(names[self.loose[number]])
            else:
                names.append(params[int(str(step.detail))] if step.op == "argument" else self.step(number, step, args))
        result = self.steps.result
        self.keep_constants()
        return [*self.lines, f"  ret {self.type(self.steps.steps[result].type)} {names[result]}"]

    def type(self, ty: str) -> str:
        return _type(ty, self.lanes)

    def let(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"  %t{self.count} = {text}")
        return f"%t{self.count}"

    def start(self, block: str) -> None:
        self.lines.append(f"{block}:")
        self.block = block

    def constant(self, value: float, ty: str) -> str:
        bits = f"0x{struct.pack('>d', value).hex().upper()}"
        return self.repeated(ty, f"{SCALARS[ty]} {bits}", bits) if value else self.splat(f"{SCALARS[ty]} {bits}", bits)

    def whole(self, value: int, ty: str) -> str:
        number = f"{WHOLE[ty]} {value}"
        return self.repeated(ty + ".bits", number, str(value)) if value else self.splat(number, "0")

    def splat(self, number: str, alone: str) -> str:
        return f"splat ({number})" if self.lanes else alone

    def distance(self, value: int, ty: str) -> str:
        """Of a shift: part of the instruction."""
        return self.splat(f"{WHOLE[ty]} {value}", str(value))

    def repeated(self, ty: str, number: str, alone: str) -> str:
        """For vectors of AVX2, a number is in memory as often as there are lanes, and an operation takes it from there.
        LLVM would make a vector of it by an instruction of its own; these are a third of a function."""
        if self.width != AVX2 or self.lanes * SIZES[SCALARS[ty[:3]]] != AVX2:
            return self.splat(number, alone)
        at, vector = len(self.constants), self.type(ty)
        self.constants.append((vector, f"splat ({number})"))
        place = self.let(f"getelementptr i8, ptr %constants, i64 {AVX2 * at}")
        return self.let(f"load {vector}, ptr {place}, align {AVX2}, !invariant.load !{{}}")

    def keep_constants(self) -> None:
        """The constants in memory, and the address of the first one, of which LLVM is not to know more."""
        if self.constants:
            name, types = (
                f"@rt.constants.{self.steps.name}.{self.steps.type}",
                ", ".join(ty for ty, _ in self.constants),
            )
            items = ", ".join(f"{ty} {value}" for ty, value in self.constants)
            head = f"{name} = internal unnamed_addr constant"
            self.tables.append(f"{head} {{ {types} }} {{ {items} }}, align {AVX2}")
            self.lines.insert(0, f'  %constants = call ptr asm "", "=r,0"(ptr {name})')

    def called(self, intrinsic: str, ty: str, *args: str) -> str:
        suffix = f"v{self.lanes}{ty}" if self.lanes else ty
        operands = ", ".join(f"{self.type(ty)} {arg}" for arg in args)
        return self.let(f"call {self.type(ty)} @llvm.{intrinsic}.{suffix}({operands})")

    def step(self, number: int, step: Step, args: list[str]) -> str:
        if step.op in ("first", "second"):
            return self.pairs[step.args[0]][step.op == "second"]
        ty = self.steps.steps[step.args[0]].type if step.args else step.type  # of the operands
        t = self.type(ty)
        match step.op:
            case "constant":
                return self.constant(float.fromhex(str(step.detail)), step.type)
            case op if op in PLAIN:
                return self.let(f"{PLAIN[op]} {t} {', '.join(args)}")
            case op if op in ORDERS:
                return self.let(f"fcmp {ORDERS[op]} {t} {args[0]}, {args[1]}")
            case "and" | "or":
                return self.let(f"{step.op} {t} {args[0]}, {args[1]}")
            case "select":
                result = self.type(step.type)
                return self.let(f"select {t} {args[0]}, {result} {args[1]}, {result} {args[2]}")
            case "abs":
                return self.called("fabs", ty, *args)
            case "sqrt" | "copysign":
                return self.called(step.op, ty, *args)
            case "widen" | "narrow":
                how = "fpext" if step.op == "widen" else "fptrunc"
                return self.let(f"{how} {t} {args[0]} to {self.type(step.type)}")
            case "rarely":
                return self.rarely(step, args)
            case _:
                return self.of_bits(number, step, args, ty)

    def of_bits(self, number: int, step: Step, args: list[str], ty: str) -> str:
        """Steps that LLVM has no instruction for: whole numbers and exponents, by the bits of floats."""
        t, i, first = self.type(ty), self.type(ty + ".bits"), step.args[0]
        magic = 1.5 * 2.0 ** FRACTION[ty]
        match step.op:
            case "nearest":
                self.shifted[number] = self.let(f"fadd {t} {args[0]}, {self.constant(magic, ty)}")
                return self.let(f"fsub {t} {self.shifted[number]}, {self.constant(magic, ty)}")
            case "two_to":
                return self.power(self.bits(first, args[0], ty), ty)
            case "scaled":
                return self.scaled(number, args[0], args[1], step.args[1], ty)
            case "bit":
                bits = self.let(f"and {i} {self.bits(first, args[0], ty)}, {self.whole(int(str(step.detail)), ty)}")
                return self.let(f"icmp ne {i} {bits}, {self.whole(0, ty)}")
            case "unbound" if step.args[2] in self.unbound:
                return args[2]
            case "unbound":
                odd = self.let(f"fcmp uno {t} {args[0]}, {args[0]}")
                return self.let(f"select {self.type('bool')} {odd}, {t} {args[0]}, {t} {args[2]}")
            case "split":
                self.pairs[number] = self.split(args[0], ty)
                return ""
            case "entry":
                index = self.let(f"shl i64 {self.bits(first, args[0], ty)}, 32")
                return self.entry(step, self.let(f"ashr i64 {index}, 32"))
            case _:
                raise Bug(f"no text of the step {step.op}")

    def bits(self, number: int, value: str, ty: str) -> str:
        """The bits of a whole number plus MAGIC: the lowest are its own."""
        if number not in self.shifted:
            magic = self.constant(1.5 * 2.0 ** FRACTION[ty], ty)
            self.shifted[number] = self.let(f"fadd {self.type(ty)} {value}, {magic}")
        return self.let(f"bitcast {self.type(ty)} {self.shifted[number]} to {self.type(ty + '.bits')}")

    def power(self, bits: str, ty: str) -> str:
        """2^k, of the bits of k plus MAGIC."""
        i = self.type(ty + ".bits")
        bits = self.let(f"add {i} {bits}, {self.whole(BIAS[ty], ty)}")
        bits = self.let(f"shl {i} {bits}, {self.distance(FRACTION[ty], ty)}")
        return self.let(f"bitcast {i} {bits} to {self.type(ty)}")

    def scaled(self, step: int, p: str, k: str, number: int, ty: str) -> str:
        """2^k p, which AVX-512 has as an instruction.  Elsewhere, a branch multiplies by two factors if 2^k may be no
        normal number, or is NaN."""
        t = self.type(ty)
        if not self.width:
            return self.two_factors(p, k, ty)
        if not self.branches(ty):
            p = self.unless_zero(p, k, ty)
            operands = f"{t} {p}, {t} {k}, {t} zeroinitializer, i{self.lanes} {ALL}, i32 {AS_IN_CODE}"
            return self.let(f"call {t} @llvm.x86.avx512.mask.scalef.{SCALED[ty]}.512({operands})")
        square = self.let(f"fmul {t} {k}, {k}")
        far = self.let(f"fcmp ugt {t} {square}, {self.constant(float((BIAS[ty] - 2) ** 2), ty)}")
        usual = self.let(f"fmul {t} {p}, {self.power(self.bits(number, k, ty), ty)}")
        return self.branch(self.some(far), usual, t, lambda: self.rare(step, p, k, ty))

    def rare(self, step: int, p: str, k: str, ty: str) -> str:
        """2^k p by two factors; or infinity, 0 and NaN for values that should have been within bounds."""
        made = self.two_factors(p, k, ty)
        if step not in self.unbound:
            return made
        x, inside = self.unbound[step]
        t, value, steps = self.type(ty), self.names[x], self.steps.steps
        _, below, least = steps[inside].args
        _, _, most = steps[below].args
        bounds = (("olt", self.names[most], self.constant(float("inf"), ty)),
                  ("ogt", self.names[least], self.constant(0.0, ty)), ("ord", value, value))  # fmt: skip
        for order, bound, instead in bounds:
            good = self.let(f"fcmp {order} {t} {value}, {bound}")
            made = self.let(f"select {self.type('bool')} {good}, {t} {made}, {t} {instead}")
        return made

    def unless_zero(self, p: str, k: str, ty: str) -> str:
        """p, or 0 where 2^k p is 0: a product that underflows takes processors a hundred cycles, and weights such as
        e^-1000 are common."""
        above = self.let(f"fcmp ogt {self.type(ty)} {k}, {self.constant(ZERO[ty], ty)}")
        return self.let(
            f"select {self.type('bool')} {above}, {self.type(ty)} {p}, {self.type(ty)} {self.constant(0.0, ty)}"
        )

    def two_factors(self, p: str, k: str, ty: str) -> str:
        t, i, magic = self.type(ty), self.type(ty + ".bits"), self.constant(1.5 * 2.0 ** FRACTION[ty], ty)
        p, half = self.unless_zero(p, k, ty), self.let(f"fmul {t} {k}, {self.constant(0.5, ty)}")
        moved = self.let(f"fadd {t} {half}, {magic}")
        rest = self.let(f"fsub {t} {k}, {self.let(f'fsub {t} {moved}, {magic}')}")
        for part in (moved, self.let(f"fadd {t} {rest}, {magic}")):
            p = self.let(f"fmul {t} {p}, {self.power(self.let(f'bitcast {t} {part} to {i}'), ty)}")
        return p

    def split(self, x: str, ty: str) -> tuple[str, str]:
        """The exponent as a float, and the number without it."""
        t, i, fraction = self.type(ty), self.type(ty + ".bits"), FRACTION[ty]
        root = LOWEST[ty]
        moved = self.let(f"sub {i} {self.let(f'bitcast {t} {x} to {i}')}, {self.whole(root, ty)}")
        rest = self.let(f"and {i} {moved}, {self.whole((1 << fraction) - 1, ty)}")
        m = self.let(f"bitcast {i} {self.let(f'add {i} {rest}, {self.whole(root, ty)}')} to {t}")
        above = BIAS[ty] + 1  # a shift by so much makes the exponent positive
        shifted = self.let(f"add {i} {moved}, {self.whole(above << fraction, ty)}")
        k = self.let(f"lshr {i} {shifted}, {self.distance(fraction, ty)}")
        k = self.let(f"or {i} {k}, {self.whole((BIAS[ty] + fraction) << fraction, ty)}")
        k = self.let(f"bitcast {i} {k} to {t}")
        return self.let(f"fsub {t} {k}, {self.constant(2.0**fraction + above, ty)}"), m

    def entry(self, step: Step, index: str) -> str:
        values = step.detail
        assert isinstance(values, tuple) and not self.lanes
        name = f"@rt.table.{self.steps.name}.{self.steps.type}.{len(self.tables)}"
        items = ", ".join(f"double {self.constant(value, 'f64')}" for value in values)
        self.tables.append(f"{name} = internal unnamed_addr constant [{len(values)} x double] [{items}]")
        return self.let(f"load double, ptr {self.let(f'getelementptr double, ptr {name}, i64 {index}')}")

    def rarely(self, step: Step, args: list[str]) -> str:
        """A branch.  For vectors, a call of a function for vectors if there is one, or else a loop over the lanes."""
        condition, usual, *given = args
        ty = self.type(step.type)
        if not self.lanes:
            return self.branch(condition, usual, ty, lambda: self.other(step, given))
        n = self.lanes
        condition = self.let(f"freeze <{n} x i1> {condition}")  # lanes without a number may be poison
        some = self.some(condition)
        if not elementary.has_vectors(str(step.detail), step.type):
            return self.branch(some, usual, ty, lambda: self.by_lanes(step, condition, usual, given))

        def all_lanes() -> str:
            made = self.other(step, given, n)
            return self.let(f"select <{n} x i1> {condition}, {ty} {made}, {ty} {usual}")

        return self.branch(some, usual, ty, all_lanes)

    def some(self, condition: str) -> str:
        """Whether it holds in a lane."""
        n = self.lanes
        return self.let(f"call i1 @llvm.vector.reduce.or.v{n}i1(<{n} x i1> {condition})") if n else condition

    def branch(self, condition: str, usual: str, ty: str, make: Callable[[], str]) -> str:
        """The usual value, or what is made where the condition holds."""
        before = self.block
        self.count += 1
        rare, after = f"rare{self.count}", f"after{self.count}"
        self.lines.append(f"  br i1 {condition}, label %{rare}, label %{after}")
        self.start(rare)
        value = make()
        last = self.block
        self.lines.append(f"  br label %{after}")
        self.start(after)
        return self.let(f"phi {ty} [ {usual}, %{before} ], [ {value}, %{last} ]")

    def other(self, step: Step, args: Sequence[str], lanes: int = 0) -> str:
        """A call of another function, for one number or for vectors."""
        ty = _type(step.type, lanes)
        operands = ", ".join(f"{ty} {arg}" for arg in args)
        return self.let(f"call {ty} @rt.{step.detail}.{step.type}{f'.v{lanes}' if lanes else ''}({operands})")

    def by_lanes(self, step: Step, condition: str, usual: str, given: Sequence[str]) -> str:
        """A loop over the lanes, with a call where the condition holds."""
        ty, n, before = self.type(step.type), self.lanes, self.block
        self.count += 1
        lane, run, next_, done = (f"{name}{self.count}" for name in ("lane", "run", "next", "done"))
        self.lines.append(f"  br label %{lane}")
        self.start(lane)
        i = self.let(f"phi i32 [ 0, %{before} ], [ %{next_}.i, %{next_} ]")
        all_ = self.let(f"phi {ty} [ {usual}, %{before} ], [ %{next_}.all, %{next_} ]")
        here = self.let(f"extractelement <{n} x i1> {condition}, i32 {i}")
        self.lines.append(f"  br i1 {here}, label %{run}, label %{next_}")
        self.start(run)
        one = self.other(step, [self.let(f"extractelement {ty} {arg}, i32 {i}") for arg in given])
        more = self.let(f"insertelement {ty} {all_}, {SCALARS[step.type]} {one}, i32 {i}")
        self.lines.append(f"  br label %{next_}")
        self.start(next_)
        self.lines.append(f"  %{next_}.all = phi {ty} [ {all_}, %{lane} ], [ {more}, %{run} ]")
        self.lines.append(f"  %{next_}.i = add i32 {i}, 1")
        last = self.let(f"icmp eq i32 %{next_}.i, {n}")
        self.lines.append(f"  br i1 {last}, label %{done}, label %{lane}")
        self.start(done)
        return f"%{next_}.all"
