"""An interpreter of PTX, vectorised over the threads of a launch.

    machine = Machine(text, blocks)
    machine.launch("kernel", grid, block, arguments)

A register is an array with the bits of each thread.  Threads at the same instruction are a group; the group with the
lowest program counter runs to the end of its basic block, so what diverged meets again.  `bar.sync` waits for the
threads of a block, `shfl`, `match` and `vote` for those of a warp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from ptx_matrices import multiplied
from ptx_memory import LOCAL, SHARED, TOP, Blocks, Memory, Threads, spread
from ptx_scalars import SIZES, Bits, Fault, compute, mask_of, numbers
from ptx_text import Function, Instruction, names_in, number, parse, place_in
from ptx_traffic import Traffic
from ptx_warps import WARP, matched, shuffled, voted

ATOMICS = ("add", "cas", "exch", "min", "max", "or", "and")
DEEPEST = 200  # calls in calls
SAVED = 128  # bytes of the stack that a call takes beside its variables, more or less
STACK = 20480  # bytes of a thread's stack, if it calls functions that call themselves
MOST_PARAMETERS, MOST_SHARED = 4352, 48 << 10  # bytes


class Machine:
    """A loaded module."""

    def __init__(self, text: str, blocks: Blocks | None = None) -> None:
        self.module = parse(text)
        self.blocks = blocks or Blocks()
        self.exchanging = self.module.exchanging()
        self.recursive = self.module.recursive()
        for entry in self.module.entries:
            if sum(entry.params.values()) > MOST_PARAMETERS or sum(v.size for v in entry.shared) > MOST_SHARED:
                raise Fault(f"{entry.name} has too many parameters, or too much shared memory")
        self.globals: dict[str, int] = {}

    def size_of_globals(self) -> int:
        return sum(-(-v.size // 256) * 256 for v in self.module.variables if v.space != "shared")

    def place_globals(self, base: int, memory: NDArray[np.uint8]) -> None:
        """Puts the variables of the module into memory at an address."""
        at = 0
        for v in self.module.variables:
            if v.space != "shared":
                memory[at : at + v.size] = np.frombuffer(v.data, np.uint8)
                self.globals[v.name] = base + at
                self.blocks.add(base + at, memory[at : at + v.size])
                at += -(-v.size // 256) * 256
        for v in self.module.variables:
            for place, other in v.links.items():
                memory[self.globals[v.name] - base + place :][:8].view(np.uint64)[0] = self.globals[other]

    def launch(
        self, name: str, grid: int, block: int, arguments: list[int], races: bool = True, stack: int = STACK,
        traffic: Traffic | None = None,
    ) -> None:  # fmt: skip
        """Runs an entry.  Arguments are bits."""
        function = self.module.functions[name]
        if block > (function.most_threads or 1024):
            raise Fault(f"{block} threads in a block, where {function.most_threads} are the most")
        with np.errstate(all="ignore"):
            launch = Launch(self, function, grid, block, races, stack if name in self.recursive else TOP)
            launch.memory.traffic = traffic
            given = {(p, 0): np.array([a], np.uint64) for p, a in zip(function.params, arguments, strict=True)}
            launch.run(function, given, np.arange(grid * block), 0, 0)


@dataclass(slots=True)
class Launch:
    machine: Machine
    entry: Function
    grid: int
    block: int
    races: bool
    stack: int
    memory: Memory = field(init=False)
    special: dict[str, Bits] = field(init=False)
    shared: dict[str, int] = field(init=False, default_factory=dict)
    carry: Bits = field(init=False)
    gone: NDArray[np.bool_] = field(init=False)  # threads that have ended

    def __post_init__(self) -> None:
        count, at = self.grid * self.block, 0
        thread = np.arange(count, dtype=np.uint64)
        variables = [v for v in self.machine.module.variables if v.space == "shared"]
        for v in (*variables, *(v for function in self.machine.module.functions.values() for v in function.shared)):
            self.shared[v.name] = SHARED + at
            at += -(-v.size // 16) * 16
        block_of = (thread // np.uint64(self.block)).astype(np.int64)
        poisoned = np.full((self.grid, at), 0xA5, np.uint8)
        self.memory = Memory(self.machine.blocks, count, block_of, poisoned, self.races)
        self.special = {
            "%tid.x": thread % np.uint64(self.block),
            "%ctaid.x": thread // np.uint64(self.block),
            "%ntid.x": np.array([self.block], np.uint64),
            "%nctaid.x": np.array([self.grid], np.uint64),
            "%laneid": thread % np.uint64(self.block) % np.uint64(WARP),
        }
        zero, one = np.zeros(1, np.uint64), np.ones(1, np.uint64)
        for axis in "yz":
            self.special |= {f"%tid.{axis}": zero, f"%ctaid.{axis}": zero, f"%ntid.{axis}": one, f"%nctaid.{axis}": one}
        self.carry, self.gone = np.zeros(count, np.uint64), np.zeros(count, bool)

    def run(self, function: Function, given: Params, threads: Threads, frame: int, depth: int) -> Params:
        if depth > DEEPEST:
            raise Fault("too many calls inside of each other")
        if frame + function.whole_frame > self.stack:
            raise Fault(f"the stack of {self.stack} bytes is too small")
        self.memory.reserve(frame + function.whole_frame)
        return Activation(self, function, given, frame, depth).run(threads)


Params = dict[tuple[str, int], Bits]


class Activation:
    """A call of a function by some threads."""

    def __init__(self, launch: Launch, function: Function, given: Params, frame: int, depth: int) -> None:
        self.launch, self.memory, self.function = launch, launch.memory, function
        self.count = launch.memory.count
        self.frame, self.depth = frame, depth
        self.registers: dict[str, Bits] = {}
        self.given, self.passed, self.results = given, {}, {}
        self.literals: dict[str, Bits] = {}
        self.inside = np.zeros(self.count, bool)  # threads that have not returned
        self.groups: dict[int, Threads] = {}  # threads that are ready, by program counter
        self.waiting: dict[int, Threads] = {}  # threads at a barrier, by where they go on
        self.warps: dict[int, Threads] = {}  # threads that wait for others of their warp

    # ---- operands

    def read(self, name: str, threads: Threads) -> Bits:
        """The bits of an operand: one for each of the threads, or one for all."""
        if name in self.registers:
            return self.registers[name][threads]
        found = self.launch.special.get(name)
        if found is not None:
            return found[threads] if len(found) > 1 else found
        if name[0] == "%":
            raise Fault(f"{name} is read before it is written, in {self.function.name}")
        if name not in self.literals:
            self.literals[name] = np.array([self.constant(name)], np.uint64)
        return self.literals[name]

    def constant(self, name: str) -> int:
        if name in self.function.local:
            return LOCAL + TOP - self.frame - self.function.whole_frame + self.function.local[name]
        for places in (self.launch.shared, self.launch.machine.globals):
            if name in places:
                return places[name]
        return number(name)

    def write(self, name: str, value: Bits, threads: Threads) -> None:
        if name == "_":
            return
        if len(threads) == self.count:
            self.registers[name] = np.full(self.count, value[0]) if len(value) == 1 else value
            return
        if name not in self.registers:
            self.registers[name] = np.full(self.count, 0xA5A5A5A5A5A5A5A5, np.uint64)
        self.registers[name][threads] = value

    # ---- control

    def run(self, threads: Threads) -> Params:
        """Runs the function; its results."""
        leaders = self.function.leaders()
        self.inside[threads] = True
        self.groups[0] = threads
        while self.groups or self.waiting:
            if not self.groups:
                self.open_barrier()
                continue
            at = min(self.groups)
            self.basic_block(at, self.groups.pop(at), leaders)
        if self.warps:
            raise Fault("threads wait for others of their warp, which never come")
        return self.results

    def go(self, at: int, threads: Threads) -> None:
        if len(threads):
            if at in self.groups:
                threads = np.sort(np.concatenate((self.groups[at], threads)))
            self.groups[at] = threads

    def basic_block(self, at: int, threads: Threads, leaders: set[int]) -> None:
        code = self.function.code
        while True:
            if at >= len(code):
                return
            one = code[at]
            active = threads
            if one.predicate:
                holds = spread(self.read(one.predicate, threads), len(threads)) != 0
                active = threads[~holds if one.negated else holds]
            self.memory.now += 1
            control = CONTROL.get(one.parts[0])
            if control is not None:
                if not control(self, one, at, threads, active):
                    return
            elif len(active):
                self.step(one, active)
            at += 1
            if at in leaders:
                alive = threads[~self.launch.gone[threads]] if self.launch.gone.any() else threads
                self.go(at, alive)
                return

    def step(self, one: Instruction, threads: Threads) -> None:
        try:
            STEPS.get(one.parts[0], Activation.scalar)(self, one, threads)
        except Fault as fault:
            if not fault.instruction:
                fault.instruction = f"{one.text} in {self.function.name}"
            raise

    def branch(self, one: Instruction, at: int, threads: Threads, active: Threads) -> bool:
        self.go(self.function.labels[one.operands[-1]], active)
        if len(active) < len(threads):
            self.go(at + 1, np.setdiff1d(threads, active, assume_unique=True))
        return False

    def table_branch(self, one: Instruction, at: int, threads: Threads, active: Threads) -> bool:
        which = spread(self.read(one.operands[0], active), len(active))
        for i, label in enumerate(self.function.tables[one.operands[1]]):
            self.go(self.function.labels[label], active[which == i])
        return False

    def end(self, one: Instruction, at: int, threads: Threads, active: Threads) -> bool:
        self.inside[active] = False
        if one.parts[0] == "exit":
            self.launch.gone[active] = True
        if len(active) < len(threads):
            self.go(at + 1, np.setdiff1d(threads, active, assume_unique=True))
        return False

    def trap(self, one: Instruction, at: int, threads: Threads, active: Threads) -> bool:
        if len(active):
            raise Fault(f"a trap in {self.function.name}")
        return True

    def barrier(self, one: Instruction, at: int, threads: Threads, active: Threads) -> bool:
        """bar.sync: waits.  bar.warp.sync orders nothing more, as the threads of a group go together."""
        if "warp" in one.parts:
            self.memory.ordered[active] = self.memory.now
            return True
        if self.depth:
            raise Fault("a barrier inside of a function")
        self.waiting[at + 1] = np.sort(np.concatenate((self.waiting.get(at + 1, active[:0]), active)))
        if len(active) < len(threads):
            self.go(at + 1, np.setdiff1d(threads, active, assume_unique=True))
        return False

    def open_barrier(self) -> None:
        """Lets those thread blocks go on whose threads are all at a barrier, or gone."""
        block = self.launch.block
        arrived = np.zeros(self.count, bool)
        for threads in self.waiting.values():
            arrived[threads] = True
        ended = ~arrived  # nothing else runs
        free = (arrived | self.launch.gone | ended).reshape(-1, block).all(1)
        places = {at: np.unique(threads // block) for at, threads in self.waiting.items()}
        if len(places) > 1 and len(np.unique(np.concatenate(list(places.values())))) < sum(map(len, places.values())):
            raise Fault("threads of a block wait at different barriers")
        missing = arrived.reshape(-1, block).any(1) & ~(arrived | self.launch.gone).reshape(-1, block).all(1)
        if missing.any() or not free.any():
            raise Fault("a barrier that not all threads of a block reach")
        waiting, self.waiting = self.waiting, {}
        for at, threads in waiting.items():
            self.memory.ordered[threads] = self.memory.now
            fenced = np.zeros(self.launch.grid, np.int32)  # what one thread has seen, its block has seen
            np.maximum.at(fenced, threads // block, self.memory.fenced[threads])
            self.memory.fenced[threads] = fenced[threads // block]
            self.go(at, threads)

    def call(self, one: Instruction, at: int, threads: Threads, active: Threads) -> bool:
        if not len(active):
            return True
        which = 1 if one.operands[0].startswith("(") else 0
        name, back = one.operands[which], names_in(one.operands[0]) if which else ()
        given = [part for operand in one.operands[which + 1 :] for part in names_in(operand) if part]
        callee = self.launch.machine.module.functions.get(name)
        if callee is None:
            raise Fault(f"a call of {name}, which is nowhere")
        if name in self.launch.machine.exchanging:
            active = self.together(at, active)
            if not len(active):
                return False
        params = dict(zip(given, callee.params, strict=True))
        passed = {(params[p], place): value for (p, place), value in self.passed.items() if p in params}
        self.passed = {}
        frame = self.frame + self.function.whole_frame + SAVED
        made = self.launch.run(callee, passed, active, frame, self.depth + 1)
        results = dict(zip(callee.results, back))
        self.given |= {(results[r], place): value for (r, place), value in made.items()}
        if name in self.launch.machine.exchanging or self.launch.gone[active].any():
            self.inside &= ~self.launch.gone
            self.go(at + 1, active[~self.launch.gone[active]])
            return False
        return True

    def together(self, at: int, active: Threads) -> Threads:
        """Those threads whose whole warps are at this instruction.  The others wait."""
        active = np.sort(np.concatenate((self.warps.pop(at, active[:0]), active)))
        missing = self.inside & ~self.launch.gone
        missing[active] = False
        ready = ~np.any(missing.reshape(-1, WARP), axis=1)[active // WARP]
        if not ready.all():
            self.warps[at] = active[~ready]
        return active[ready]

    # ---- instructions that compute, and memory

    def scalar(self, one: Instruction, threads: Threads) -> None:
        if one.carries:
            self.write(one.operands[0], self.with_carry(one, threads), threads)
            return
        operands = [self.read(name, threads) for name in one.operands[1:]]
        self.write(one.operands[0].split("|")[0], compute(one, operands), threads)

    def with_carry(self, one: Instruction, threads: Threads) -> Bits:
        """add, sub and mad of 32 bits that take or set the carry."""
        low = np.uint64(0xFFFFFFFF)
        x = [spread(self.read(name, threads) & low, len(threads)) for name in one.operands[1:]]
        carry = self.launch.carry[threads] if one.parts[0].endswith("c") else np.uint64(0)
        if one.parts[0].startswith("mad"):
            product = x[0] * x[1]
            total = (product >> np.uint64(32) if "hi" in one.parts else product & low) + x[2] + carry
        elif one.parts[0].startswith("add"):
            total = x[0] + x[1] + carry
        else:
            total = x[0] - x[1] - carry
        if "cc" in one.parts:
            self.launch.carry[threads] = (total >> np.uint64(32)) & np.uint64(1)
        return total & low

    def move(self, one: Instruction, threads: Threads) -> None:
        """mov, which also takes registers apart and puts them together."""
        to, source = one.operands
        width = int(one.type[1:]) if one.type[1:].isdigit() else 64
        if source.startswith("{"):
            names = names_in(source)
            bits = np.uint64(width // len(names))
            mask = np.uint64((1 << int(bits)) - 1)
            value = np.zeros(len(threads), np.uint64)
            for i, name in enumerate(names):
                value |= (self.read(name, threads) & mask) << np.uint64(i) * bits
            self.write(to, value, threads)
        elif to.startswith("{"):
            names = names_in(to)
            bits = np.uint64(width // len(names))
            value = self.read(source, threads)
            for i, name in enumerate(names):
                self.write(name, value >> np.uint64(i) * bits & np.uint64((1 << int(bits)) - 1), threads)
        else:
            self.write(to, self.read(source, threads).copy(), threads)

    def address(self, one: Instruction, threads: Threads) -> None:
        """cvta: addresses of all spaces are generic here."""
        self.write(one.operands[0], self.read(one.operands[1], threads).copy(), threads)

    def load(self, one: Instruction, threads: Threads) -> None:
        names, size = names_in(one.operands[0]), SIZES[one.type]
        if "param" in one.parts:
            base, offset = place_in(one.operands[1])
            for i, name in enumerate(names):
                self.write(name, self.parameter(base, offset + i * size, one.type, threads), threads)
            return
        address = self.where(one.operands[1], threads)
        self.memory.aligned(address, size * len(names))
        for i, name in enumerate(names):
            here = address + np.uint64(i * size)
            self.write(name, self.memory.load(here, one.type, threads, "relaxed" in one.parts), threads)

    def parameter(self, base: str, offset: int, ty: str, threads: Threads) -> Bits:
        found = self.given.get((base, offset))
        if found is None:
            raise Fault(f"{base}+{offset} of {self.function.name} is read, but was not given")
        value = found[threads] if len(found) > 1 else found
        return numbers(value, ty).astype(np.int64).view(np.uint64) if ty[0] == "s" else value & mask_of(ty)

    def store(self, one: Instruction, threads: Threads) -> None:
        names = names_in(one.operands[1])
        size = SIZES[one.type]
        if "param" in one.parts:
            base, offset = place_in(one.operands[0])
            to = self.results if base in self.function.results else self.passed
            for i, name in enumerate(names):
                cell = to.setdefault((base, offset + i * size), np.zeros(self.count, np.uint64))
                cell[threads] = self.read(name, threads)
            return
        address = self.where(one.operands[0], threads)
        self.memory.aligned(address, size * len(names))
        for i, name in enumerate(names):
            self.memory.store(address + np.uint64(i * size), self.read(name, threads), one.type, threads)

    def where(self, operand: str, threads: Threads) -> Bits:
        name, offset = place_in(operand)
        return self.read(name, threads) + np.uint64(offset & (1 << 64) - 1)

    def atomic(self, one: Instruction, threads: Threads) -> None:
        how = next(part for part in one.parts if part in ATOMICS)
        to, first = (one.operands[0], 1) if one.parts[0] == "atom" else ("_", 0)
        operands = [self.read(name, threads) for name in one.operands[first + 1 :]]
        address = self.where(one.operands[first], threads)
        self.write(to, self.memory.atomic(how, address, operands, one.type, threads), threads)

    def fence(self, one: Instruction, threads: Threads) -> None:
        self.memory.fenced[threads] = self.memory.now

    # ---- warps

    def whole_warps(self, one: Instruction, at: int, threads: Threads, active: Threads) -> bool:
        """shfl, match and vote: threads wait until all that the mask names are here, or gone."""
        active = np.sort(np.concatenate((self.warps.pop(at, active[:0]), active)))
        mask = np.uint64(0xFFFFFFFF)
        if one.parts[0] != "mma":
            mask = spread(self.read(one.operands[-1], active), len(active))
        here = self.launch.gone.copy()
        here[active] = True
        lanes = here.reshape(-1, WARP) @ (np.uint64(1) << np.arange(WARP, dtype=np.uint64))
        ready = mask & ~lanes[active // WARP] & np.uint64(0xFFFFFFFF) == 0
        if not ready.all():
            self.warps[at] = active[~ready]
        if ready.any():
            WARP_STEPS[one.parts[0]](self, one, active[ready])
            self.memory.ordered[active[ready]] = self.memory.now
            self.go(at + 1, active[ready])
        return False

    def shuffle(self, one: Instruction, threads: Threads) -> None:
        """shfl: the value of another lane, or its own if that lane is outside of the segment."""
        by, clamp = (spread(self.read(operand, threads), len(threads)) for operand in one.operands[2:4])
        source, fine = shuffled(one.parts[2], by, clamp, threads)
        names = one.operands[0].split("|")
        self.write(names[0], np.broadcast_to(self.read(one.operands[1], source), len(threads)).copy(), threads)
        if len(names) > 1:
            self.write(names[1], fine.astype(np.uint64), threads)

    def match_any(self, one: Instruction, threads: Threads) -> None:
        value = spread(self.read(one.operands[1], threads), len(threads))
        self.write(one.operands[0], matched(value, threads), threads)

    def matrices(self, one: Instruction, threads: Threads) -> None:
        given = [spread(self.read(name, threads), len(threads))
                 for operand in one.operands[1:] for name in names_in(operand)]  # fmt: skip
        for name, made in zip(names_in(one.operands[0]), multiplied(given[0], given[1], given[2:]), strict=True):
            self.write(name, made, threads)

    def vote(self, one: Instruction, threads: Threads) -> None:
        name = one.operands[1].lstrip("!")
        value = spread(self.read(name, threads) != 0, len(threads)) ^ one.operands[1].startswith("!")
        self.write(one.operands[0], voted(one.parts[2], value, threads), threads)


Control = Callable[[Activation, Instruction, int, Threads, Threads], bool]

CONTROL: dict[str, Control] = {
    "bra": Activation.branch,
    "brx": Activation.table_branch,
    "ret": Activation.end,
    "exit": Activation.end,
    "trap": Activation.trap,
    "bar": Activation.barrier,
    "barrier": Activation.barrier,
    "call": Activation.call,
    "shfl": Activation.whole_warps,
    "match": Activation.whole_warps,
    "vote": Activation.whole_warps,
    "mma": Activation.whole_warps,
}
STEPS: dict[str, Callable[[Activation, Instruction, Threads], None]] = {
    "mov": Activation.move,
    "cvta": Activation.address,
    "ld": Activation.load,
    "ldu": Activation.load,
    "st": Activation.store,
    "atom": Activation.atomic,
    "red": Activation.atomic,
    "membar": Activation.fence,
    "fence": Activation.fence,
}
WARP_STEPS: dict[str, Callable[[Activation, Instruction, Threads], None]] = {
    "shfl": Activation.shuffle,
    "match": Activation.match_any,
    "vote": Activation.vote,
    "mma": Activation.matrices,
}
