"""A function of flat -> LLVM text: every kind of right-hand side, and control as basic blocks.

A block is written either *for its values* (`bodies/body.py`) or *to return them*.  In the second way, the arms of an
`If` at the end return by themselves, and a call at the end is a tail call.

Up to three integers and two floats are returned in registers.  More results are stored through a pointer, the first
parameter, so that every function can make tail calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpl.diagnostics import Bug

from dplc.flat import term as f
from dplc.flat.nans import tells_nan
from dplc.machine.emit import loops
from dplc.machine.emit.bodies import resume
from dplc.machine.emit.bodies.body import BodyEmitter
from dplc.machine.emit.module.constants import are_constant
from dplc.machine.emit.module.layout import HEADER, boxed, has_nullary, header, leaves, spread, struct
from dplc.machine.emit.module.memory import tag_of
from dplc.machine.emit.module.unit import Unit, symbol
from dplc.machine.emit.operations import emitters
from dplc.machine.emit.points.sums import BlockSums
from dplc.machine.llvm.writer import LIKELY, Values, function, typed
from dplc.machine.runtime.failure_codes import Failure
from dplc.narrow import expect_type
from dplc.passes.recursion.modulo_cons import Cell, Hole, hole


class FunctionEmitter(BodyEmitter):
    """One function under construction."""

    def __init__(self, unit: Unit, fn: f.Fn) -> None:
        super().__init__(unit, fn)
        self.result = f.Tup(fn.results)
        self.outs: list[str] = []  # where results are stored
        self.sound: set[str] = set()  # outcomes of x = x, which is true unless x is NaN, and of several
        if fn.name in unit.kernels:
            self.loop = self._kernel_loop
        self.apart = unit.apart or fn.name in unit.independence.callees
        self.deep = False  # calls its own group outside of tail position, so it checks the stack

    def text(self) -> str:
        """The function as LLVM text.  Addresses of results, if it fills cells, are its first parameters."""
        self.outs = [f"%out{i or ''}" for i in range(self.unit.addresses(self.fn.name))]
        params = [f"ptr {out}" for out in self.outs]
        for i, var in enumerate(self.fn.params):
            names = [f"%p{i}.{k}" for k in range(len(leaves(var.ty)))]
            self.env[var.name] = names
            params += typed(leaves(var.ty), names)
        self.finish(self.fn.body)
        convention = self.unit.convention(self.fn.name)
        head = f"{convention} {self.unit.returned(self.fn.name)} {symbol(self.fn.name)}({', '.join(params)})"
        if self.is_cold:
            head += " optnone noinline"
        if self.unit.interruptible:  # the stack check is also the poll for an interrupt
            self.deep = self.deep or self.unit.group[self.fn.name] in self.unit.tailcc
        start = self.with_locations(self._check_depth()) if self.deep else None
        if self.unit.debug:
            self.w.lines = self.unit.debug.with_locations(self.w.lines, self.fn, self.scope)
            self.w.lines = self.unit.debug.with_locals(self.w, self.fn, self.scope, self.seen)
            arguments = self.unit.debug.arguments(self.w, self.fn, self.scope)
            start = [*arguments, *(start or ["  br label %start"])]
        else:
            self.w.lines = self.with_locations(self.w.lines)
        linkage = "dso_local" if self.fn.name in self.unit.replaceable else "internal"
        return function(head, self.w, end="", start=start, place=f" !dbg {self.scope}", linkage=linkage)

    def block_sums(self, types: Sequence[str], count: str) -> Any:
        return BlockSums(self, types, count)

    def _kernel_loop(self, *loop: Any) -> Values:
        """The outermost loop of a kernel, which can be resumed."""
        self.loop = self.w.loop  # those inside cannot
        return resume.loop(self, *loop)

    def with_locations(self, lines: list[str]) -> list[str]:
        debug = self.unit.debug
        somewhere = debug.location(self.scope, self.fn.span) if debug else self.unit.location(self.scope, 0)

        def lost(line: str) -> bool:
            return " call " in line and ("@rt." in line or '@"dpl ' in line) and "!dbg" not in line

        return [line + somewhere if lost(line) else line for line in lines]

    def _check_depth(self) -> list[str]:
        """The lines at the entry that check the stack limit."""
        site = self.unit.sites.number(self.fn.span)
        return [
            "  %here = call ptr @llvm.frameaddress.p0(i32 0)",
            "  %limit = load ptr, ptr @rt.stack_limit",
            "  %room = icmp ugt ptr %here, %limit",
            "  br i1 %room, label %start, label %deep, !prof !0",
            "deep:",
            f"  call void @rt.fail(i64 {int(Failure.DEPTH)}, i64 {site}, i64 0, i64 0, ptr null, i64 0)",
            "  unreachable",
        ]

    # ---- blocks

    def finish(self, block: f.Block) -> None:
        """Writes a block, and returns its results."""
        if self.fn.name in self.unit.holed and (end := hole(block, self.fn.name)) is not None:
            self._leave_hole(end)
            return
        last = block.binds[-1] if block.binds and block.binds[-1].vars == block.results else None
        self.run(block.binds[: -1 if last else None])
        match last:
            case f.Bind(_, f.If(cond, then, else_)):
                yes, no = self.w.block("then"), self.w.block("else")
                self.w.branch(self.one(cond), yes, no)
                for label, arm in ((yes, then), (no, else_)):
                    self.w.start(label)
                    self.finish(arm)
            case f.Bind(_, f.Switch() as switch):
                for label, case, arm in self._arms(switch):
                    self._enter(label, switch, case)
                    self.finish(arm)
            case f.Bind(_, f.Call(name, args, span)):
                self._tail_call(name, args, span)
            case None:
                self._return(self.values(block.results))
            case f.Bind():
                self.run((last,))
                self._return(self.values(block.results))

    def _return(self, values: Values) -> None:
        w, types = self.w, leaves(self.result)
        if self.outs:
            self._store(values)
            w.do("ret void")
        else:
            w.give(types, values)

    def _store(self, values: Values) -> None:
        """Stores results: at an address each, or all at one."""
        if len(self.outs) == 1:
            self.put(self.result, values, self.outs[0])
        else:
            starts = spread(self.result).starts
            for out, ty, i, j in zip(self.outs, self.fn.results, starts, starts[1:], strict=False):
                self.put(ty, values[i:j], out)

    # ---- right-hand sides

    def rhs(self, bind: f.Bind) -> Values:
        if isinstance(bind.rhs, f.Op):
            if tells_nan(bind.rhs, self.sound):
                self.sound.add(bind.vars[0].name)
            return emitters.op(self, bind.rhs, bind.vars)
        match bind.rhs:
            case f.Call(name, args, span):
                return self._call(name, args, span)
            case f.TupMake(items):
                return self.values(items)
            case f.TupGet(tup, index):
                return self._project(tup, index)
            case f.ConMake(data, tag, arg):
                return [self._construct(self.unit.program.datas[data], tag, arg)]
            case f.If() | f.Switch() as choice:
                return self._choose(choice, leaves(f.Tup(tuple(var.ty for var in bind.vars))))
            case f.For() | f.While():
                return loops.loop(self, bind.rhs, bind.vars)
            case f.Par():
                from dplc.machine.emit.par import par  # not every program has parallel loops

                return par(self, bind.rhs, bind.vars)
            case f.Ad() | f.Build() | f.Map():
                raise Bug(f"an earlier stage has left this: {bind.rhs}")

    def _project(self, tup: f.Atom, index: int) -> Values:
        start, end = spread(expect_type(f.Tup, tup.ty)).starts[index : index + 2]
        return self.value(tup)[start:end]

    # ---- calls

    def _arguments(self, name: str, args: tuple[f.Atom, ...]) -> list[str]:
        """The arguments with their types, which are those of the callee's parameters."""
        return [arg for atom, p in zip(args, self.unit.program.fns[name].params, strict=True)
                for arg in typed(leaves(p.ty), self.value(atom))]  # fmt: skip

    def _call(self, name: str, args: tuple[f.Atom, ...], span: f.Span) -> Values:
        result = f.Tup(self.unit.program.fns[name].results)
        callee, arguments, how = symbol(name), self._arguments(name, args), f"call {self.unit.convention(name)}"
        if self.unit.group[name] == self.unit.group[self.fn.name]:
            self.deep = True
            how = f"notail {how}"  # or LLVM makes a loop of `1 + f (x + 1)`, which never exhausts the stack
        if not self.unit.indirect(name):
            return self.w.call(leaves(result), callee, arguments, how, self.place_of(span))
        kept = result.items if self.unit.addresses(name) > 1 else (result,)
        outs = [self.w.slot(f"[{struct(ty).size} x i8]") for ty in kept]
        self.w.call((), callee, [*(f"ptr {out}" for out in outs), *arguments], how, self.place_of(span))
        return [value for ty, out in zip(kept, outs, strict=True) for value in self.get(ty, out)]

    def _tail_call(self, name: str, args: tuple[f.Atom, ...], span: f.Span) -> None:
        result = f.Tup(self.unit.program.fns[name].results)
        if leaves(result) != leaves(self.result):
            raise Bug(f"{self.fn.name} cannot return what {name} does")
        if self.unit.addresses(name) != len(self.outs):  # one leaves holes: not in our group
            self._return(self._call(name, args, span))
            return
        self._jump(name, args, span, self.outs)

    def _jump(self, name: str, args: tuple[f.Atom, ...], span: f.Span, outs: Sequence[str]) -> None:
        """A tail call.  Results that are stored go to `outs`.  A call of another group keeps our frame, so
        that the path of a failure has this call."""
        result = self.unit.returned(name)
        arguments = [*(f"ptr {out}" for out in outs), *self._arguments(name, args)]
        how = "tail" if self.unit.group[name] == self.unit.group[self.fn.name] else "notail"
        text = f"{how} call {self.unit.convention(name)} {result} {symbol(name)}({', '.join(arguments)})"
        text += self.place_of(span)
        if result == "void":
            self.w.do(text)
            self.w.do("ret void")
        else:
            self.w.do(f"ret {result} {self.w.let(text)}")

    def _leave_hole(self, end: Hole) -> None:
        """Makes cells with holes, which the tail call fills."""
        self.run(end.before)
        outs = [out if cell is None else self._cell_with_hole(cell, out)
                for cell, out in zip(end.cells, self.outs, strict=True)]  # fmt: skip
        self._jump(end.call.fn, end.call.args, end.call.span, outs)

    def _cell_with_hole(self, end: Cell, out: str) -> str:
        """Makes a cell, and stores it; the address of its hole."""
        decl = self.unit.program.datas[end.make.data]
        payload = decl.payloads[end.make.tag]
        assert payload is not None
        first = sum(len(leaves(field.ty)) for field in end.fields[: end.place])
        parts = (self.value(field) if i != end.place else ["null"] for i, field in enumerate(end.fields))
        cell = self.cell(payload, [leaf for part in parts for leaf in part], header(decl, end.make.tag))
        self.w.store("ptr", cell, out)
        return self.w.at(cell, HEADER + struct(payload).offsets[first])

    # ---- data

    def _construct(self, decl: f.DataDecl, tag: int, arg: f.Atom | None) -> str:
        payload = decl.payloads[tag]
        if payload is None or arg is None:
            return f"inttoptr (i64 {2 * tag + 1} to ptr)"
        values = self.value(arg)
        if are_constant(values):
            return self.unit.cell(decl, tag, payload, values)
        return self.cell(payload, values, header(decl, tag))

    # ---- branches

    def _choose(self, choice: f.If | f.Switch, types: tuple[str, ...]) -> Values:
        join = self.w.block("join")
        edges: list[tuple[Values, str]] = []
        self._branch(choice, join, edges)
        self.w.start(join)
        return self.w.phis(types, edges)

    def _branch(self, choice: f.If | f.Switch, join: str, edges: list[tuple[Values, str]]) -> None:
        """Writes a choice whose arms jump to `join`, with the values that they come with: `edges`."""
        if isinstance(choice, f.If):
            yes, no = self.w.block("then"), self.w.block("else")
            sound = isinstance(choice.cond, f.Var) and choice.cond.name in self.sound
            cond, before = self.one(choice.cond), self.w.place()
            self.w.branch(cond, yes, no, LIKELY if sound else "")
            for label, arm in ((yes, choice.then), (no, choice.else_)):
                self.w.start(label)
                self._arm(arm, join, edges)
                self.w.shorten(before, label, join, edges)
        else:
            for label, case, arm in self._arms(choice):
                self._enter(label, choice, case)
                self._arm(arm, join, edges)

    def _arm(self, block: f.Block, join: str, edges: list[tuple[Values, str]]) -> None:
        """An arm.  The arms of a choice at its end jump to the same join: LLVM needs long for chains of joins."""
        last = block.binds[-1] if block.binds else None
        if last and isinstance(last.rhs, f.If | f.Switch) and last.vars == block.results:
            self.run(block.binds[:-1])
            self._branch(last.rhs, join, edges)
        else:
            edges.append((self.block(block), self.w.label))
            self.w.jump(join)

    def _arms(self, switch: f.Switch) -> list[tuple[str, f.Case | None, f.Block]]:
        """Writes the jump to one of the arms; gives their labels, cases and blocks.  The default has no case."""
        w = self.w
        arms: list[tuple[str, f.Case | None, f.Block]] = []
        arms += [(w.block(f"case{case.tag}."), case, case.body) for case in switch.cases]
        if switch.default is not None:
            arms.append((w.block("default"), None, switch.default))
        if len(arms) == 1:
            w.jump(arms[0][0])
            return arms
        match switch.scrutinee.ty:
            case f.Data(name):
                tag, ty = self._tag(self.unit.program.datas[name], self.one(switch.scrutinee)), "i64"
            case ty:
                tag, ty = self.one(switch.scrutinee), leaves(ty)[0]
        other = arms[-1][0]  # the default; without one, the last case
        listed = [(case.tag, label) for label, case, _ in arms[:-1] if case]
        if len(listed) == 1:
            w.branch(w.let(f"icmp eq {ty} {tag}, {listed[0][0]}"), listed[0][1], other)
        else:
            table = " ".join(f"{ty} {t}, label %{label}" for t, label in listed)
            w.do(f"switch {ty} {tag}, label %{other} [ {table} ]")
        return arms

    def _enter(self, label: str, switch: f.Switch, case: f.Case | None) -> None:
        """The start of an arm; the payload is a view into the cell."""
        self.w.start(label)
        if case is None or case.payload is None:
            return
        self.define((case.payload,), self.get(case.payload.ty, self.w.at(self.one(switch.scrutinee), HEADER)))

    def _tag(self, decl: f.DataDecl, cell: str) -> str:
        w, kinds = self.w, boxed(decl)
        if not has_nullary(decl):
            return tag_of(w, cell)
        immediate = w.let(f"lshr i64 {w.let(f'ptrtoint ptr {cell} to i64')}, 1")
        if not kinds:
            return immediate
        small = w.let(f"icmp ult i64 {immediate}, {len(decl.payloads)}")
        if len(kinds) == 1:
            return w.let(f"select i1 {small}, i64 {immediate}, i64 {kinds[0][0]}")
        return w.choose(small, ("i64",), lambda: [immediate], lambda: [tag_of(w, cell)])[0]
