"""A module under construction: what the functions of one program share."""

from __future__ import annotations

from dpl.node import field, record

from dplc.flat import term as f
from dplc.machine.emit.module.constants import FOREVER, cell
from dplc.machine.emit.module.debug import DebugInfo
from dplc.machine.emit.module.device import WITH_DEVICE, Device
from dplc.machine.emit.module.layout import leaves
from dplc.machine.emit.module.memory import Droppers
from dplc.machine.failure.failures import Sites
from dplc.machine.llvm.literals import escape
from dplc.machine.llvm.writer import Values, result_type
from dplc.passes.kernels.independence import Independence

FIRST_NODE = 10  # of the metadata; the others are in the prelude (`program.py`)
MASKS_FROM = 32  # bytes of a vector; smaller ones have no masked loads


@record
class Unit:
    """The module of one program."""

    program: f.Program
    sites: Sites
    droppers: Droppers
    group: dict[str, int]  # functions -> their group: functions that call each other
    tailcc: set[int]  # groups whose tail calls are guaranteed
    holed: set[str]  # functions that get an address for each result (`passes/recursion/modulo_cons.py`)
    independence: Independence  # which loops have points that threads may share (`threads.py`)
    cold: set[str]  # functions that are not optimised (`passes/kernels/frequency.py`)
    kernels: set[str] = field(default_factory=set)  # functions whose loop can be resumed (`bodies/resume.py`)
    replaceable: set[str] = field(default_factory=set)  # functions that the quick version lets the other one replace
    device: Device | None = None  # the kernels, if the program may use a device
    debug: DebugInfo | None = None  # debug information, if it is wanted
    placed: bool = False  # every instruction knows its site, for the profiler
    apart: bool = False  # whether all of its code runs in several threads at the same time
    counting: bool = False  # whether operations and bytes are counted (`flat/operation_counts.py`)
    vector_bytes: int = 0  # of a vector; 0: functions of vectors are not called
    interruptible: bool = False  # whether loops poll for an interrupt (`interrupts.py`)
    globals: list[str] = field(default_factory=list)
    arrays: dict[str, tuple[str, list[str]]] = field(default_factory=dict)  # elements of constant ones, by address
    helpers: dict[str, str] = field(default_factory=dict)  # outlined functions, by name
    states: dict[str, str] = field(default_factory=dict)  # cells that exist as long as the program, by symbol
    externs: dict[str, str] = field(default_factory=dict)  # declarations of C functions, by symbol
    nodes: list[str] = field(default_factory=list)  # metadata
    _strings: dict[bytes, str] = field(default_factory=dict)
    _locations: dict[tuple[str, int], str] = field(default_factory=dict)
    _groups: dict[tuple[str, ...], str] = field(default_factory=dict)

    @property
    def has_masks(self) -> bool:
        """Whether vectors are loaded and stored in part."""
        return self.vector_bytes >= MASKS_FROM

    def string(self, text: str) -> tuple[str, int]:
        """The address and length of a constant string."""
        data = text.encode("utf-8", "surrogatepass")
        if data not in self._strings:
            self._strings[data] = self.constant(f"[{len(data)} x i8]", f'c"{escape(data)}"', 1) if data else '@"empty"'
        return self._strings[data], len(data)

    def constant(self, llvm_type: str, value: str, align: int = 64) -> str:
        """Puts a constant into the data section; its address."""
        name = f'@"constant {len(self.globals)}"'
        self.globals.append(f"{name} = private unnamed_addr constant {llvm_type} {value}, align {align}\n")
        return name

    def elements(self, kind: str, items: list[str]) -> str:
        """Puts the elements of a constant array into the data section; their address."""
        address = self.constant(f"[{len(items)} x {kind}]", f"[{', '.join(items)}]")
        self.arrays[address] = kind, items
        return address

    def cell(self, decl: f.DataDecl, tag: int, payload: f.Type, values: Values) -> str:
        """Puts a constructor of constants into the data section; its address.  Its reference count changes, so LLVM
        must not treat it as constant."""
        name, (kind, text) = f'@"constant {len(self.globals)}"', cell(decl, tag, payload, values)
        self.globals.append(f"{name} = internal global {kind} {text}, align 16\n")
        return name

    def state(self, name: str, size: int) -> str:
        """The address of a cell that exists as long as the program."""
        symbol = f'@"state {escape(name.encode())}"'
        self.states[symbol] = f"{symbol} = internal global {{ i64, [{size} x i8] }} {{ i64 {FOREVER},"
        self.states[symbol] += f" [{size} x i8] zeroinitializer }}, align 16\n"
        return symbol

    def metadata(self, text: str) -> str:
        """Adds a metadata node; its number.  `SELF` in the text stands for the node itself."""
        number = f"!{len(self.nodes) + FIRST_NODE}"
        self.nodes.append(f"{number} = {text.replace('SELF', number)}\n")
        return number

    def group_of(self, groups: tuple[str, ...]) -> str:
        """The metadata of accesses that belong to several groups."""
        if groups not in self._groups:
            self._groups[groups] = self.metadata(f"!{{{', '.join(groups)}}}")
        return self._groups[groups]

    def loop_mark(self, *properties: str) -> str:
        """The mark of a loop's back edge, with these properties."""
        nodes = ", ".join(("SELF", *properties))
        return f", !llvm.loop {self.metadata(f'distinct !{{{nodes}}}')}"

    def parallel(self) -> str:
        """The mark of a loop whose accesses that are marked ACCESS do not overlap in different steps."""
        return self.loop_mark("!2")

    def location(self, scope: str, line: int) -> str:
        """The debug location of a call; `line` is the number of a site, plus one."""
        key = scope, line
        if key not in self._locations:
            self._locations[key] = self.metadata(f"!DILocation(line: {line}, scope: {scope})")
        return f", !dbg {self._locations[key]}"

    def scope(self, fn: f.Fn) -> str:
        """The metadata node of a function, the scope of its locations."""
        if self.debug:
            return self.debug.function(fn)
        return self.metadata(
            f'distinct !DISubprogram(name: "{escape(fn.name.encode())}", scope: !5, file: !5, line: 1, type: !7,'
            " spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !6)"
        )

    @property
    def start(self) -> str:
        """The symbol of the function that runs the program."""
        return symbol(self.program.main) if self.device is None else WITH_DEVICE

    def convention(self, name: str) -> str:
        """The calling convention of a function: `tailcc` where tail calls are guaranteed."""
        return "tailcc" if self.group[name] in self.tailcc else "fastcc"

    def indirect(self, name: str) -> bool:
        """True if a function stores its results through pointers, its first parameters."""
        return name in self.holed or many(f.Tup(self.program.fns[name].results))

    def addresses(self, name: str) -> int:
        """The number of the addresses that a function gets for its results: one for all, if it leaves no holes."""
        return len(self.program.fns[name].results) if name in self.holed else int(self.indirect(name))

    def returned(self, name: str) -> str:
        """The LLVM type that a function returns."""
        return "void" if self.indirect(name) else result_type(leaves(f.Tup(self.program.fns[name].results)))


def many(result: f.Type) -> bool:
    """True if a result has more parts than fit into registers."""
    floats = sum(leaf in ("half", "float", "double") for leaf in leaves(result))
    return floats > 2 or len(leaves(result)) - floats > 3


def symbol(name: str) -> str:
    """The symbol of a function in LLVM text."""
    return f'@"dpl {escape(name.encode())}"'
