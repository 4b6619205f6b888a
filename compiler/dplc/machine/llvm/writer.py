"""Writing LLVM text: the lines of one function, its basic blocks, and structured control.

Values are operand texts (`%12`, `7`, `null`).  Control is written in SSA form at once: a join makes phis for its
values, a loop for its state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpl.node import node, replace

from dplc.machine.llvm.versions import FINAL

Values = list[str]
Edge = tuple[Values, str]  # values, and the label that they come from
Place = tuple[int, int, str]  # the numbers of lines and slots, and the label of the block being written
Loop = Callable[..., Values]  # `Writer.loop`, or what does the same
LIKELY = ", !prof !0"  # branch weights: the first target is nearly always taken (`emit/program.py`)


@node
class Halves:
    """The metadata of a loop that is written twice: for whole pieces of so many steps, and for the rest."""

    whole: str
    rest: str
    steps: int


@node
class Bordered:
    """The metadata of a loop without a state, over `count` steps in all, that is written twice: for the first `low` and
    the last `high` steps, with the metadata `edge`; and for those between, after `inside` was told so.  The last ones
    are done first, with the first ones, unless all are to be done `in_order`.  The loop may be a piece of these steps,
    after `done` others."""

    count: str
    low: int
    high: int
    in_order: bool
    edge: str
    mark: str | Halves
    inside: Callable[[bool], None]
    done: str = "0"

    def after(self, done: str) -> Bordered:
        """That of a piece of the loop."""
        return replace(self, done=done)


Mark = str | Halves | Bordered  # the metadata of a loop


class Writer:
    """The body of one function under construction."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0
        self.label = "start"  # of the block being written
        self.slots: list[str] = []  # allocas, all in the entry block
        self.shortened: set[str] = set()  # blocks whose branch goes to its join itself

    # ---- lines

    def fresh(self) -> str:
        """The name of a new register."""
        self.count += 1
        return f"%v{self.count}"

    def do(self, text: str) -> None:
        """Writes an instruction that gives nothing."""
        self.lines.append("  " + text)

    def let(self, text: str) -> str:
        """Writes an instruction, and gives the register of its result."""
        name = self.fresh()
        self.lines.append(f"  {name} = {text}")
        return name

    def extend(self, lines: Sequence[str]) -> None:
        """Writes lines that others have made."""
        self.lines.extend("  " + line.strip() for line in lines)

    def slot(self, llvm_type: str, align: int = 16) -> str:
        """The address of memory in the stack frame."""
        name = self.fresh()
        self.slots.append(f"  {name} = alloca {llvm_type}, align {align}")
        return name

    def place(self) -> Place:
        """Where the next line goes."""
        return len(self.lines), len(self.slots), self.label

    def cut(self, place: Place) -> Writer:
        """Moves all that was written since then into a function of its own."""
        lines, slots, self.label = place
        inner = Writer()
        inner.lines, inner.slots = self.lines[lines:], self.slots[slots:]
        del self.lines[lines:], self.slots[slots:]
        return inner

    # ---- blocks

    def block(self, hint: str) -> str:
        """A new label; `start` begins its block."""
        self.count += 1
        return f"{hint}{self.count}"

    def start(self, label: str) -> None:
        """Begins a basic block."""
        self.lines.append(f"{label}:")
        self.label = label

    def jump(self, label: str) -> None:
        """Ends a basic block by a jump."""
        self.do(f"br label %{label}")

    def branch(self, cond: str, yes: str, no: str, hint: str = "") -> None:
        """Ends a basic block by a conditional jump; `hint` is metadata, such as weights."""
        self.do(f"br i1 {cond}, label %{yes}, label %{no}{hint}")

    def phi(self, llvm_type: str, edges: Sequence[tuple[str, str]]) -> str:
        """`edges` are pairs of a value and the label that it comes from."""
        return self.let(f"phi {llvm_type} " + ", ".join(f"[ {v}, %{label} ]" for v, label in edges))

    def phis(self, types: Sequence[str], edges: Sequence[Edge]) -> Values:
        """One phi for each value, at the start of a join; a join of one edge needs none, nor does one number."""
        if len(edges) == 1:
            return list(edges[0][0])
        made = []
        for i, t in enumerate(types):
            first = edges[0][0][i]
            alike = first.isdigit() and all(values[i] == first for values, _ in edges)
            made.append(first if alike else self.phi(t, [(values[i], label) for values, label in edges]))
        return made

    # ---- shapes of control

    def choose(
        self, cond: str, types: Sequence[str], yes: Callable[[], Values], no: Callable[[], Values], hint: str = ""
    ) -> Values:
        """if cond then yes () else no ()"""
        then, other, join = self.block("then"), self.block("else"), self.block("join")
        before = self.place()
        self.branch(cond, then, other, hint)
        edges: list[Edge] = []
        for label, arm in ((then, yes), (other, no)):
            self.start(label)
            edges.append((arm(), self.label))
            self.jump(join)
            self.shorten(before, label, join, edges)
        self.start(join)
        return self.phis(types, edges)

    def shorten(self, before: Place, label: str, join: str, edges: list[Edge]) -> None:
        """If the arm that was written last, of the branch written at `before`, only jumps to the join, the branch goes
        there itself; one arm of a branch may."""
        line, _, source = before
        values, end = edges[-1]
        if end == label and self.lines[-2] == f"{label}:" and source not in self.shortened:
            self.shortened.add(source)
            del self.lines[-2:]
            self.lines[line] = self.lines[line].replace(f"label %{label}", f"label %{join}")
            edges[-1] = values, source

    def unless_cold(self, cond: str, otherwise: Callable[[], None]) -> None:
        """Continues if `cond` holds; `otherwise` must not return."""
        good, bad = self.block("ok"), self.block("bad")
        self.branch(cond, good, bad, LIKELY)
        self.start(bad)
        otherwise()
        self.do("unreachable")
        self.start(good)

    def loop(
        self,
        types: Sequence[str],
        inits: Values,
        cond: Callable[[Values], str],
        body: Callable[[Values], Values],
        mark: str = "",
        quick: Callable[[str, Values], None] | None = None,
    ) -> Values:
        """state = inits; while cond state { state = body state }; gives the last state.  `mark` is loop metadata.
        `quick`, given the label of the head and the new state, writes the end of a step for the quick version."""
        head, inside, done = self.block("head"), self.block("body"), self.block("done")
        before = self.label
        self.jump(head)
        self.start(head)
        state = [self.fresh() for _ in types]
        here = len(self.lines)
        self.lines.extend(f"  {s} = phi {t} " for s, t in zip(state, types, strict=True))  # edges follow
        self.branch(cond(state), inside, done)
        self.start(inside)
        after = body(state)
        for i, t in enumerate(types):
            self.lines[here + i] = f"  {state[i]} = phi {t} [ {inits[i]}, %{before} ], [ {after[i]}, %{self.label} ]"
        here = FINAL if quick else ""
        self.do(f"br label %{head}{mark}{here}")
        if quick:
            quick(head, after)
        self.start(done)
        return state

    def count_to(
        self,
        n: str,
        body: Callable[[str, Values], Values],
        types: Sequence[str] = (),
        inits: Sequence[str] = (),
        mark: Mark = "",
        first: str = "0",
        loop: Loop | None = None,
    ) -> Values:
        """for i from `first` to n - 1, with a state.  `loop` writes the loop, instead of the method of that name."""
        if isinstance(mark, Bordered):
            return self.bordered(first, n, body, mark, loop)
        if isinstance(mark, Halves):
            middle = self.middle(first, n, mark.steps)
            if middle != first:
                inits = self.count_to(middle, body, types, inits, mark.whole, first, loop)
            return self.count_to(n, body, types, inits, mark.rest, middle) if middle != n else list(inits)

        def step(state: Values) -> Values:
            after = body(state[0], state[1:])
            return [self.let(f"add nuw nsw i64 {state[0]}, 1"), *after]

        def below(state: Values) -> str:
            return self.let(f"icmp slt i64 {state[0]}, {n}")

        return (loop or self.loop)(("i64", *types), [first, *inits], below, step, mark)[1:]

    def bordered(
        self, first: str, n: str, body: Callable[[str, Values], Values], how: Bordered, loop: Loop | None
    ) -> Values:
        """for i from `first` to n - 1: the steps at the borders, then the others; or those at the last border last."""
        if not (how.low or how.high):
            how.inside(True)
            made = self.count_to(n, body, mark=how.mark, first=first, loop=loop)
            how.inside(False)
            return made

        def either(which: str, a: str, b: str) -> str:
            return self.let(f"call i64 @llvm.{which}.i64(i64 {a}, i64 {b})")

        def here(place: str) -> str:
            return place if how.done == "0" else self.let(f"sub i64 {place}, {how.done}")

        start = either("smin", n, either("smax", first, here(str(how.low))))
        end = either("smax", start, either("smin", n, here(self.let(f"sub i64 {how.count}, {how.high}"))))
        late_ones = bool(how.high) and how.in_order
        before = self.let(f"sub i64 {start}, {first}")
        both = before if late_ones else self.add(before, self.let(f"sub i64 {n}, {end}"))

        def edge(k: str, _: Values) -> Values:
            late = self.add(end, self.let(f"sub i64 {k}, {before}"))
            is_early = self.let(f"icmp slt i64 {k}, {before}")
            return body(self.let(f"select i1 {is_early}, i64 {self.add(first, k)}, i64 {late}"), [])

        self.count_to(both, edge, mark=how.edge)
        how.inside(True)
        self.count_to(end, body, mark=how.mark, first=start, loop=loop)
        how.inside(False)
        if late_ones:
            self.count_to(n, body, mark=how.edge, first=end)
        return []

    def middle(self, first: str, n: str, steps: int) -> str:
        """The end of the last whole piece of so many steps, in a loop from `first` to n - 1."""
        if first == "0" and n.isdigit():
            return str(int(n) // steps * steps)
        count = n if first == "0" else self.let(f"sub i64 {n}, {first}")
        return self.add(first, self.let(f"and i64 {count}, {-steps}"))

    def repeat(self, n: str, body: Callable[[str], object], mark: Mark = "") -> None:
        """for i < n, without a state."""

        def step(i: str, _: Values) -> Values:
            body(i)
            return []

        self.count_to(n, step, mark=mark)

    def strided(self, first: str, n: str, step: str, body: Callable[[str], object]) -> None:
        """for i = first; i < n; i += step"""

        def below(state: Values) -> str:
            return self.let(f"icmp slt i64 {state[0]}, {n}")

        def run(state: Values) -> Values:
            body(state[0])
            return [self.let(f"add nsw i64 {state[0]}, {step}")]

        self.loop(("i64",), [first], below, run)

    # ---- arithmetic on lengths

    def is_between(self, place: str, low: str, high: str) -> str:
        """Whether low <= place < high."""
        after = self.let(f"icmp sge i64 {place}, {low}")
        return self.let(f"and i1 {after}, {self.let(f'icmp slt i64 {place}, {high}')}")

    def add(self, a: str, b: str) -> str:
        """The sum of two i64; literals 0 are left out."""
        return b if a == "0" else a if b == "0" else self.let(f"add i64 {a}, {b}")

    def sub(self, a: str, b: str) -> str:
        """The difference of two i64; that of literals is computed here, unless it is negative."""
        known = a.isdigit() and b.isdigit() and int(a) >= int(b)
        return str(int(a) - int(b)) if known else self.let(f"sub i64 {a}, {b}")

    def mul(self, a: str, b: str) -> str:
        """The product of two i64; products of literals are computed here."""
        if a == "1" or b == "1":
            return b if a == "1" else a
        if a.isdigit() and b.isdigit():
            return str(int(a) * int(b))
        return self.let(f"mul i64 {a}, {b}")

    def scale(self, number: str, size: int) -> str:
        """The byte offset of an element.  It lies within an object in memory, so the product cannot overflow."""
        if size == 1 or number == "0":
            return number
        return self.let(f"mul nuw nsw i64 {number}, {size}")

    def product(self, lengths: Sequence[str]) -> str:
        """The product of some i64, 1 if there are none."""
        total = "1"
        for n in lengths:
            total = self.mul(total, n)
        return total

    # ---- memory

    def at(self, base: str, offset: str | int) -> str:
        """The address `offset` bytes after `base`."""
        return base if str(offset) == "0" else self.let(f"getelementptr inbounds i8, ptr {base}, i64 {offset}")

    def element(self, base: str, number: str, size: int) -> str:
        """The address of an element.  It lies within an object in memory, so nothing overflows."""
        if number == "0":
            return base
        return self.let(f"getelementptr inbounds nuw [{size} x i8], ptr {base}, i64 {number}")

    def load(self, leaf: str, address: str, mark: str = "") -> str:
        """Loads a leaf; in memory a boolean is a byte."""
        if leaf == "i1":
            return self.let(f"trunc i8 {self.let(f'load i8, ptr {address}{mark}')} to i1")
        return self.let(f"load {leaf}, ptr {address}{mark}")

    def store(self, leaf: str, value: str, address: str, mark: str = "") -> None:
        """Writes a leaf to memory, where a boolean is a byte."""
        if leaf == "i1":
            leaf, value = "i8", self.let(f"zext i1 {value} to i8")
        self.do(f"store {leaf} {value}, ptr {address}{mark}")

    def copy(self, to: str, source: str, size: str) -> None:
        """Copies so many bytes between places that do not overlap."""
        self.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {size}, i1 false)")

    # ---- calls

    def give(self, types: Sequence[str], values: Values) -> None:
        """Returns values; several as a struct."""
        if len(types) < 2:
            self.do(f"ret {types[0]} {values[0]}" if types else "ret void")
            return
        whole, ty = "poison", result_type(types)
        for i, (t, value) in enumerate(zip(types, values, strict=True)):
            whole = self.let(f"insertvalue {ty} {whole}, {t} {value}, {i}")
        self.do(f"ret {ty} {whole}")

    def call(
        self, results: Sequence[str], callee: str, args: Sequence[str], how: str = "call", place: str = ""
    ) -> Values:
        """A call; `args` include their types, several results come as a struct.  `how` is the instruction with the
        calling convention, `place` the debug location."""
        text = f"{how} {result_type(results)} {callee}({', '.join(args)}){place}"
        if not results:
            self.do(text)
            return []
        value = self.let(text)
        if len(results) == 1:
            return [value]
        return [self.let(f"extractvalue {result_type(results)} {value}, {i}") for i in range(len(results))]


def result_type(leaves: Sequence[str]) -> str:
    """The type of what a function returns: nothing, one value, or a struct of several."""
    return "void" if not leaves else leaves[0] if len(leaves) == 1 else "{ " + ", ".join(leaves) + " }"


def typed(types: Sequence[str], values: Sequence[str]) -> list[str]:
    """Operands as LLVM writes them, each with its type."""
    return [f"{t} {v}" for t, v in zip(types, values, strict=True)]


def function(
    head: str, w: Writer, end: str = "  ret void\n", start: Sequence[str] | None = None, place: str = "",
    linkage: str = "internal",
) -> str:  # fmt: skip
    """The text of a function.  `start` are lines before the body, which must branch to the label `start`; `place` is
    its debug scope."""
    before = ["entry:", *w.slots, *start, "start:"] if start else ["start:", *w.slots]
    body = "\n".join([*before, *filter(None, w.lines)])
    return f"define {linkage} {head} nounwind{place} {{\n{body}\n{end}}}\n"
