"""Operations of flat -> LLVM text: those on strings, references, files and the output here; others by their own
files."""

from __future__ import annotations

from collections.abc import Callable

from dpl.prims.convolution import WANTED

from dplc.flat import term as f
from dplc.flat.ops.row import Fails
from dplc.flat.ops.table import OPS
from dplc.machine.emit.bodies.body import BodyEmitter
from dplc.machine.emit.module.emitter import BYTES, OPERATIONS, Emitter, zeros
from dplc.machine.emit.module.layout import HEADER, header, leaves, struct
from dplc.machine.emit.module.memory import FREED
from dplc.machine.emit.operations import accumulators, array_ops
from dplc.machine.emit.scalars.operations import scalar, scalar_type
from dplc.machine.llvm.writer import Values
from dplc.machine.runtime.failure_codes import Failure
from dplc.narrow import expect_type

Emit = Callable[[BodyEmitter, f.Op, tuple[f.Var, ...]], Values]
"""Writes an operation; the leaves of the variables that it binds."""


def op(e: BodyEmitter, op: f.Op, variables: tuple[f.Var, ...]) -> Values:
    """An operation, by its row in EMITTERS."""
    return EMITTERS[op.op](e, op, variables)


def elementwise(e: BodyEmitter, op: f.Op, variables: tuple[f.Var, ...]) -> Values:
    return [scalar(e, op, [e.one(atom) for atom in op.args])]


# ---- the runtime library, the end, C


def call(e: BodyEmitter, callee: str, op: f.Op, variables: tuple[f.Var, ...]) -> Values:
    """A call of the runtime library; what may fail is told where."""
    args = [f"{t} {v}" for atom in op.args for t, v in zip(leaves(atom.ty), e.value(atom), strict=True)]
    if OPS[op.op].fails is not Fails.NEVER:
        args.insert(0, f"i64 {e.site(op.span)}")
    return e.w.call([leaf for var in variables for leaf in leaves(var.ty)], callee, args)


def library(e: BodyEmitter, op: f.Op, variables: tuple[f.Var, ...]) -> Values:
    """A function of the runtime library that has the operation's name."""
    return call(e, f"@rt.{op.op}", op, variables)


def buf_num(e: BodyEmitter, op: f.Op, variables: tuple[f.Var, ...]) -> Values:
    return call(e, f"@rt.buf_num.{scalar_type(op.args[0].ty)}", op, variables)


def buf_format(e: BodyEmitter, op: f.Op, variables: tuple[f.Var, ...]) -> Values:
    kind = op.args[1].ty.name if isinstance(op.args[1].ty, f.Num) else "str"
    return call(e, f"@rt.buf_format.{kind}", op, variables)


def fail(e: BodyEmitter, op: f.Op, variables: tuple[f.Var, ...]) -> Values:
    _, text, size = e.value(op.args[0])
    e.fail(Failure.MESSAGE, e.site(op.span, op.attr("code", "")), text=text, size=size)
    return _unreachable(e, variables)


def exit_(e: BodyEmitter, op: f.Op, variables: tuple[f.Var, ...]) -> Values:
    e.fail(Failure.EXIT, 0, e.one(op.args[0]))
    return _unreachable(e, variables)


def _unreachable(e: BodyEmitter, variables: tuple[f.Var, ...]) -> Values:
    """The program has ended.  Code that follows is unreachable, but is written all the same."""
    e.w.do("unreachable")
    e.w.start(e.w.block("never"))
    return [leaf for var in variables for leaf in zeros(var.ty)]


def extern(e: BodyEmitter, op: f.Op, variables: tuple[f.Var, ...]) -> Values:
    """A call of a C function.  Its name in LLVM begins with \\01, so that the runtime may declare the same function."""
    symbol = f'@"\\01{op.attr("symbol")}"'
    e.unit.sites.externs.setdefault(op.attr("symbol"), e.site(op.span))
    results = [leaf for var in variables for leaf in leaves(var.ty)]
    is_bool = results == ["i1"]
    if is_bool:  # C returns a byte, 0 or 1
        results = ["i8"]
    types = [f"{leaf}{_extension(atom.ty)}" for atom in op.args for leaf in leaves(atom.ty)]
    result = f"{_extension(variables[0].ty).strip()} {results[0]}" if results else "void"
    e.unit.externs[symbol] = f"declare {result} {symbol}({', '.join(types)})\n"
    values = e.values(op.args)
    args = ", ".join(f"{t} {v}" for t, v in zip(types, values, strict=True))
    if not results:
        e.w.do(f"call void {symbol}({args})")
        return []
    made = e.w.let(f"call {result} {symbol}({args})")
    return [e.w.let(f"icmp ne i8 {made}, 0") if is_bool else made]


def _extension(ty: f.Type) -> str:
    """The attributes with which C passes small integers."""
    if not isinstance(ty, f.Num) or ty.name[0] == "f" or ty.name.endswith("64"):
        return ""
    return " signext" if ty.name[0] == "i" else " zeroext"


# ---- references, checks, owners


def ref_new(e: BodyEmitter, op: f.Op) -> Values:
    (content,) = op.args
    return [e.cell(content.ty, e.value(content))]


def state(e: BodyEmitter, op: f.Op, variables: tuple[f.Var, ...]) -> Values:
    """A cell that exists from the start, filled with zeros, and is never freed."""
    size = struct(expect_type(f.Ref, variables[0].ty).elem).size
    return [e.unit.state(op.attr("name"), size)]


def copied(e: BodyEmitter, op: f.Op) -> Values:
    (atom,) = op.args
    _, data, *lengths = e.value(atom)
    unit = struct(atom.ty.elem).size if isinstance(atom.ty, f.Arr) else 1
    size = e.w.scale(e.w.product(lengths), unit)
    return [*e.w.call(("ptr", "ptr"), "@rt.settled", ["ptr null", f"ptr {data}", f"i64 {size}"]), *lengths]


def ref_get(e: BodyEmitter, op: f.Op) -> Values:
    content = expect_type(f.Ref, op.args[0].ty).elem
    values = e.get(content, e.w.at(e.one(op.args[0]), HEADER))
    if not op.attr("taken"):
        e.dup(content, values)
    return values


def ref_set(e: BodyEmitter, op: f.Op) -> Values:
    content, place = expect_type(f.Ref, op.args[0].ty).elem, e.w.at(e.one(op.args[0]), HEADER)
    old = e.get(content, place)
    e.put(content, e.value(op.args[1]), place)
    if not op.attr("taken"):
        e.drop(content, old)
    return []


def check_equal(e: BodyEmitter, op: f.Op) -> Values:
    actual, expected = (e.one(atom) for atom in op.args)
    site = e.site(op.span, op.attr("what", ""))
    e.require(e.w.let(f"icmp eq i64 {actual}, {expected}"), Failure.CHECK, site, actual, expected)
    return []


def same(e: BodyEmitter, op: f.Op) -> Values:
    return e.value(op.args[0])


def dup(e: BodyEmitter, op: f.Op) -> Values:
    e.dup(op.args[0].ty, e.value(op.args[0]))
    return []


def drop(e: BodyEmitter, op: f.Op) -> Values:
    e.drop(op.args[0].ty, e.value(op.args[0]))
    return []


def take(e: BodyEmitter, op: f.Op) -> Values:
    """Moves the payload out of a cell: a unique cell is freed, else the payload gets one more owner."""
    cell, decl, tag = e.one(op.args[0]), e.unit.program.datas[op.attr("data")], op.attr("tag")
    payload = decl.payloads[tag]
    if payload is None:
        return []
    count = e.w.let(f"load i64, ptr {cell}")

    def free() -> Values:
        e.w.do(f"call void @rt.cell.free(ptr {cell}, i64 {HEADER + struct(payload).size})")
        return []

    def share(inner: Emitter, values: Values) -> Values:
        (shared,) = values
        inner.unit.droppers.one_less(inner.w, shared)
        inner.dup(payload, inner.get(payload, inner.w.at(shared, HEADER)))
        return []

    def shared() -> Values:
        return e.outlined(f"share {decl.name} {tag}", ["ptr"], [cell], (), share)

    e.w.choose(e.w.let(f"icmp eq i64 {count}, {header(decl, tag)}"), (), free, shared)
    return []


# ---- counting


def tick(e: BodyEmitter, op: f.Op) -> Values:
    e.count(OPERATIONS, e.one(op.args[0]))
    return []


def tally(e: BodyEmitter, op: f.Op) -> Values:
    which = e.one(op.args[0])
    memory = e.w.let(f"select i1 {e.w.let(f'icmp eq i64 {which}, 1')}, ptr {BYTES}, ptr {FREED}")
    return [e.w.load("i64", e.w.let(f"select i1 {e.w.let(f'icmp eq i64 {which}, 0')}, ptr {OPERATIONS}, ptr {memory}"))]


def need_host(e: BodyEmitter, op: f.Op) -> Values:
    if e.unit.device is not None:
        from dplc.machine.emit.launches import launching

        launching.need_host(e, op.args[0])
    return []


def convolution(e: BodyEmitter, op: f.Op, _: tuple[f.Var, ...]) -> Values:
    from dplc.machine.emit.operations.convolutions import convolution  # few programs have one

    return convolution(e, op)


# ---- all of them


def alone(emit: Callable[[BodyEmitter, f.Op], Values]) -> Emit:
    """One that asks nothing of the variables."""
    return lambda e, op, variables: emit(e, op)


EMITTERS: dict[str, Emit] = {
    **{name: elementwise for name, row in OPS.items() if row.elementwise},
    **dict.fromkeys(WANTED, convolution),
    **{name: alone(emit) for name, emit in (array_ops.OPS | accumulators.OPS).items()},
    "str_append": library, "str_length": library, "str_codes": library, "str_of_codes": library, "str_bytes": library,
    "str_of_bytes": library, "str_cmp": library,
    "str_to_table": library,
    "str_to_int": library, "str_to_float": library,
    "buf_str": library, "buf_quoted": library, "buf_num": buf_num, "buf_format": buf_format, "buf_take": library,
    "write": library, "progress": library, "read_text": library, "write_text": library, "read_bytes": library,
    "write_bytes": library, "read_line": library, "arg_count": library, "arg": library, "env": library, "time": library,
    "mpi": library,
    "fail": fail, "exit": exit_, "extern": extern, "state": state,
    "check_equal": alone(check_equal), "copied": alone(copied), "stop_grad": alone(same),
    "ref_new": alone(ref_new), "ref_get": alone(ref_get), "ref_set": alone(ref_set),
    "need_host": alone(need_host), "dup": alone(dup), "drop": alone(drop), "take": alone(take),
    "tick": alone(tick), "tally": alone(tally),
}  # fmt: skip
