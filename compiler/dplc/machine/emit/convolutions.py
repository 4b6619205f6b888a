"""Convolutions -> a call of the runtime library (`rt/convolution.each.rt`), which writes a new array."""

from __future__ import annotations

from dpl.prims.convolution import WANTED

from dplc.flat import term as f
from dplc.flat.masked import masked
from dplc.machine.emit import arrays
from dplc.machine.emit.array_ops import operand
from dplc.machine.emit.body import BodyEmitter
from dplc.machine.llvm.writer import Values


def convolution(e: BodyEmitter, op: f.Op) -> Values:
    w, wanted = e.w, WANTED[op.op]
    a, b = (operand(e, atom) for atom in op.args[:2])
    *steps, rows, columns = (e.one(atom) for atom in op.args[2:])
    groups = steps[-1]
    outputs = b.dims[3]
    if wanted == 0:
        channels, windows, places, images = a.dims[3], b.dims[:2], [rows, columns], a.dims[1:3]
        made = [a.dims[0], rows, columns, outputs]
    elif wanted == 1:
        channels, windows, places, images = w.mul(groups, b.dims[2]), b.dims[:2], a.dims[1:3], [rows, columns]
        made = [a.dims[0], rows, columns, channels]
    else:
        channels, windows, places, images = a.dims[3], [rows, columns], b.dims[1:3], a.dims[1:3]
        made = [rows, columns, w.let(f"sdiv i64 {channels}, {groups}"), outputs]
    fresh = arrays.new_array(e, a.elem, made)
    data = {0: (fresh, a, b), 1: (a, fresh, b), 2: (b, a, fresh)}[wanted]
    numbers = [a.dims[0], channels, *images, outputs, *windows, *places, *steps, str(masked(op))]
    arguments = ", ".join([*(f"ptr {x.data}" for x in data), *(f"i64 {x}" for x in numbers)])
    w.do(f"call void @rt.convolve.{a.number.name}(i64 {wanted}, {arguments})")
    return fresh.values


OPS = dict.fromkeys(WANTED, convolution)
