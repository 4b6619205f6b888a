"""Programs of flat built by hand, and what they print: by the evaluator of flat, and by native code."""

from __future__ import annotations

from contextlib import contextmanager

from dplc.flat import interp
from dplc.flat import term as f
from dplc.flat.build import Builder
from dplc.flat.verify import verify
from dplc.machine.emit.llvm import emit_text
from dplc.machine.llvm.versions import final
from dplc.machine.object.assemble import assemble
from dplc.machine.object.compiled import Compiled
from dplc.machine.run.linked import linked
from dplc.machine.run.program import execute
from dplc.passes.arrays.fuse import fuse
from dplc.passes.memory.reference_counts import count_references
from dplc.passes.parallel.parallel import parallel


class Main(Builder):
    """Builds `main`, with what tests need most."""

    def int(self, value: int) -> f.Const:
        return f.Const(value, f.I64)

    def float(self, value: float) -> f.Const:
        return f.Const(value, f.F64)

    def say(self, text: str) -> None:
        self.effect("buf_str", (f.Const(text, f.STR),))

    def number(self, x: f.Atom) -> None:
        """Prints a scalar and a space."""
        self.effect("buf_num", (x,))
        self.say(" ")

    def numbers(self, a: f.Atom) -> None:
        """Prints the elements of an array of rank 1 or 2."""
        if not isinstance(a.ty, f.Arr):
            self.number(a)
            return
        with self.counting(self.op("dim", (a,), k=0)) as i:
            self.numbers(self.op("index", (a, i)))

    @contextmanager
    def counting(self, count: f.Atom):
        """A For without state around what is built inside."""
        index = self.var("i", f.I64)
        with self.inside() as binds:
            yield index
        self.bind(f.For(index, count, (), (), f.Block(tuple(binds), ())), ())

    def build(self, count: f.Atom, make, ty: f.Type) -> f.Var:
        """An array of `make(index)`."""
        index = self.var("i", f.I64)
        with self.inside() as binds:
            result = make(index)
        return self.one(f.Build(index, count, f.Block(tuple(binds), (result,))), ty, "a")

    def program(self, fns: tuple[f.Fn, ...] = (), datas: tuple[f.DataDecl, ...] = ()) -> f.Program:
        out = self.op("buf_take", ())
        self.effect("write", (out,))
        main = f.Fn("main", (), (), f.Block(tuple(self.binds), ()))
        return f.Program({fn.name: fn for fn in (*fns, main)}, {d.name: d for d in datas})


def native(program: f.Program, capfd) -> str:
    """What native code prints."""
    verify(program)
    ready = parallel(fuse(program))
    verify(ready)
    text, sites = emit_text(count_references(ready))
    assert execute(linked(Compiled(assemble(final(text)), sites.to_json()))) == 0
    return capfd.readouterr().out


def agree(program: f.Program, capfd) -> str:
    """The same by both, number by number."""
    expected, got = interp.run(program).split(), native(program, capfd).split()
    assert len(expected) == len(got), (expected, got)
    for a, b in zip(expected, got, strict=True):
        assert a == b or abs(float(a) - float(b)) <= 1e-12 * abs(float(a)), (expected, got)
    return " ".join(got)
