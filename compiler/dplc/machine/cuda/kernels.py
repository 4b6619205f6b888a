"""The kernels of a program: Pars -> the LLVM text of one module for a GPU.

    kernels = Kernels(program)                 a program of counted flat
    kernel = kernels.of(par, fn)               its name and parameters; None if the Par runs on the host
    ptx(kernels.text(), 80)

Equal Pars have one kernel, as its name has the hash of its text.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from hashlib import sha256

from dpl.node import replace
from dpl.regex import regex
from dpl.source import NOWHERE

from dplc.flat import term as f
from dplc.flat.known_sizes import known_sizes
from dplc.flat.walk import blocks, every
from dplc.machine.cuda import convolutions, helpers, library, products
from dplc.machine.cuda.device import DeviceDroppers, DeviceFunction, DeviceUnit
from dplc.machine.cuda.kernel import ENTRY, KernelEmitter
from dplc.machine.cuda.ptx import PORTABLE
from dplc.machine.emit.module.emitter import NEVER
from dplc.machine.emit.module.unit import symbol
from dplc.machine.failure.failures import Sites
from dplc.passes.device.kernels import Devices, Kernel, known_lengths, shortened
from dplc.passes.device.place import in_turn
from dplc.passes.device.streams import streamed
from dplc.passes.device.team_steps import is_team
from dplc.passes.kernels.independence import Independence
from dplc.passes.recursion.modulo_cons import with_holes

FATAL = {"rt.fail", "rt.no_memory"}  # what leaves a record
DIGITS = 16  # of the hash in a name
PRELUDE = f"""
!0 = !{{!"branch_weights", i32 1000000, i32 1}}
!1 = distinct !{{}}
!2 = !{{!"llvm.loop.parallel_accesses", !1}}
@"empty" = private unnamed_addr constant [1 x i8] zeroinitializer
{NEVER} = internal constant [2 x i64] zeroinitializer
"""
MENTIONED = regex(r'@("[^"]*"|[A-Za-z_][\w.]*)')


class Kernels:
    """The kernels of one program."""

    def __init__(self, program: f.Program) -> None:
        self.devices = Devices(program)
        self.sizes = known_sizes(program)
        self.program = replace_functions(program)
        self.unit = DeviceUnit(
            self.program, Sites(), DeviceDroppers(program), self.devices.group | {ENTRY: -1}, self.devices.looping,
            with_holes(program), Independence(f.Program()), set(), apart=True,
        )  # fmt: skip
        self.kernels: dict[str, str] = {}
        self.functions: dict[str, str] = {}  # functions that points call, by symbol
        self.uses: dict[str, frozenset[str]] = {}  # what a definition mentions
        self.helpers: dict[tuple[str, str], None] = {}  # kernels that complete others, by name and type
        self.products: dict[str, None] = {}  # types of matrices that are multiplied
        self.convolutions: dict[tuple[int, str], None] = {}  # their kinds, and types
        self.refused: dict[str, None] = {}  # lines about Pars that have no kernels

    def of(self, par: f.Par, fn: f.Fn | None = None) -> Kernel | None:
        """The kernel of a Par of a function; None if it is none."""
        kernel = self.made(par, fn)
        if isinstance(kernel, str):
            self.refused[f"{place(par)}stays on the host, as {kernel}\n"] = None
            return None
        return kernel

    def told(self) -> str:
        """A line for each Par that has no kernel: where it is, and why."""
        return "".join(self.refused)

    def made(self, par: f.Par, fn: f.Fn | None = None) -> Kernel | str:
        """The kernel of a Par, or the reason why it is none."""
        plan = self.plan(par)
        if isinstance(plan, str):
            return plan
        if fn is not None:
            plan = replace(plan, known=known_lengths(plan, self.sizes.dims(fn)))
        called = list(self.called(par.body))
        recursive = any(self.unit.group[name] in self.unit.tailcc for name in called)
        plan = replace(plan, recursive=recursive)
        text = self.entry(plan)
        for name in called:
            self.function(name)
        reached = self.reached(text)
        if missing := next((name for name in reached if is_foreign(name)), ""):
            return f"there is no {missing} on a device"
        arena = recursive or "rt.taken" in reached or plan.geometry == "team"
        if not arena:
            text = text.replace("  call void @rt.begin_point()\n", "")
        name = f"par_{sha256(text.encode()).hexdigest()[:DIGITS]}"
        self.kernels[name] = text.replace("@NAME", f"@{name}")
        self.helpers |= dict.fromkeys(helpers.needed(plan))
        return replace(plan, name=name, arena=arena, fails=bool(reached & FATAL))

    def plan(self, par: f.Par) -> Kernel | str:
        """The Par as a kernel, as threads run it.  The steps of a team keep their Pars."""
        body = shortened(par.body)
        return self.devices.plan(replace(par, body=body if is_team(par) else streamed(body)))

    def entry(self, plan: Kernel) -> str:
        """The text of what threads start with."""
        if plan.geometry != "team":
            return KernelEmitter(self.unit, plan).text()
        from dplc.machine.cuda.team_kernel import TeamEmitter  # few programs have one

        def body_of(name: str) -> f.Block:
            return shortened(self.devices.program.fns[name].body)

        return TeamEmitter(self.unit, plan, self.may_fail, self.plan, body_of).text()

    def product(self, ty: str) -> None:
        """Adds the kernels of products of matrices of numbers of a type."""
        self.products[ty] = None

    def convolution(self, wanted: int, ty: str) -> None:
        """Adds the kernels of one of the three kinds of convolutions of arrays of a type."""
        self.convolutions[wanted, ty] = None

    def called(self, block: f.Block) -> Iterator[str]:
        """The functions that a block calls, directly or not."""
        found: dict[str, None] = {}
        todo = [block]
        while todo:
            for bind in every(todo.pop()):
                if isinstance(bind.rhs, f.Call) and bind.rhs.fn not in found:
                    found[bind.rhs.fn] = None
                    todo.append(self.program.fns[bind.rhs.fn].body)
        return iter(found)

    def function(self, name: str) -> None:
        key = symbol(name)[1:]
        if key not in self.functions:
            self.functions[key] = DeviceFunction(self.unit, self.program.fns[name]).text()

    # ---- what a kernel needs

    def reached(self, text: str) -> set[str]:
        """The symbols that a text mentions, directly or not."""
        found: set[str] = set()
        todo = list(mentioned(text))
        while todo:
            name = todo.pop()
            if name not in found:
                found.add(name)
                todo += self.mentioned_by(name)
        return found

    def may_fail(self, text: str) -> bool:
        """Whether what a text does may leave a record.  Functions of the program are taken to."""
        return '@"' in text or bool(self.reached(text) & FATAL)

    def mentioned_by(self, name: str) -> frozenset[str]:
        if name not in self.uses:
            own = self.functions.get(name) or (self.unit.helpers.get(name[1:-1]) if name[0] == '"' else None)
            if own is None:
                return mentioned_by_library(name)
            self.uses[name] = mentioned(own)
        return self.uses[name]

    def text(self, sm: int = PORTABLE) -> str:
        """The LLVM text of the module, for a GPU of this compute capability."""
        droppers = self.unit.droppers.text().partition("\n")[2]
        completing = [helpers.KERNELS[name](ty) for name, ty in self.helpers]
        completing += [make(ty, sm) for ty in self.products for make in products.KERNELS.values()]
        completing += [convolutions.kernels(wanted, ty, sm) for wanted, ty in self.convolutions]
        parts = (
            *self.kernels.values(), *completing, *self.functions.values(), *self.unit.helpers.values(), droppers,
            *self.unit.globals, *self.unit.nodes,
        )  # fmt: skip
        text = "".join(parts)
        text = text.replace("tailcc", "fastcc").replace(" nomerge", "").replace(" !dbg ", " ")
        return PRELUDE + library.GLOBALS + text + library.definitions(text)


def replace_functions(program: f.Program) -> f.Program:
    """The program as threads run it: without what comes before certain failures, and with streams."""
    made = program.copy()
    made.fns = {name: replace(fn, body=streamed(shortened(fn.body))) for name, fn in program.fns.items()}
    return made


def mentioned(text: str) -> frozenset[str]:
    return frozenset(MENTIONED.findall(text))


@cache
def mentioned_by_library(name: str) -> frozenset[str]:
    return mentioned(library.definition(name) or "")


@cache
def is_foreign(name: str) -> bool:
    """True for functions of the C library that device code cannot have."""
    return (library.definition(name) or "").startswith("declare")


def outermost(program: f.Program) -> Iterator[tuple[f.Fn, f.Par]]:
    """The Pars of a program that the host comes to, and may launch, with their functions."""
    for fn in program.fns.values():
        todo = [fn.body]
        while todo:
            for bind in todo.pop().binds:
                if isinstance(bind.rhs, f.Par) and not bind.rhs.ordered:
                    yield fn, bind.rhs
                if not isinstance(bind.rhs, f.Par) or in_turn(bind.rhs):
                    todo += blocks(bind.rhs)


def place(par: f.Par) -> str:
    """Where a Par is in the source."""
    spans = (par.span, *(getattr(bind.rhs, "span", NOWHERE) for bind in every(par.body)))
    span = next((span for span in spans if span != NOWHERE), NOWHERE)
    return "" if span == NOWHERE else f"{span.source.name}:{span.source.position(span.start)[0]}: "
