"""The text of PTX -> functions, whose instructions are taken apart.

It reads what LLVM writes for GPUs: one instruction a line, labels, `.reg`, `.local`, `.shared` and `.param`
declarations, variables in constant, global and shared memory, and functions that are called by name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache

NAME = r"[\w$.%]+"
LABEL = re.compile(rf"({NAME}):\s*(.*)", re.S)
HEAD = re.compile(rf"(?:\.(?:visible|weak|extern)\s+)*\.(entry|func)\s*(?:\(([^)]*)\))?\s*({NAME})\s*(?:\(([^)]*)\))?")
PARAMETER = re.compile(rf"\.param\s+(?:\.align\s+\d+\s+)?\.([busf])(\d+)(?:\s+\.ptr.*?)?\s+({NAME})(?:\[(\d+)\])?\s*$")
VARIABLE = re.compile(
    rf"(?:\.(?:visible|weak|extern)\s+)*\.(global|const|shared|local)\s+(?:\.align\s+(\d+)\s+)?\.([busf]\d+)\s+"
    rf"({NAME})(?:\[(\d*)\])?(?:\s*=\s*(.*))?$",
    re.S,
)
OPERAND = re.compile(r"\{[^}]*\}|\[[^\]]*\]|\([^)]*\)|[^,\s][^,]*")
IGNORED = (".reg", ".param", ".loc", ".file", ".pragma", ".maxntid", ".minnctapersm", ".reqntid", ".callprototype")
MOST_THREADS = re.compile(r"\.maxntid\s+(\d+)")
WARP_WIDE = ("shfl", "match", "vote")
BYTES = {"8": 1, "16": 2, "32": 4, "64": 8}


@dataclass(slots=True)
class Instruction:
    """`@!%p1 add.s64 %rd1, %rd2, 8;` has the parts add and s64, the type s64, and is for threads where %p1 is 0."""

    text: str
    parts: list[str]
    operands: list[str]
    predicate: str = ""
    negated: bool = False
    type: str = field(init=False)
    carries: bool = field(init=False)  # it takes or sets the carry

    def __post_init__(self) -> None:
        self.type = self.parts[-1]
        self.carries = "cc" in self.parts or self.parts[0] in ("addc", "subc", "madc")


@dataclass(slots=True)
class Variable:
    """A variable in memory; `data` is what it contains at first, and `links` addresses of others in it, by place."""

    name: str
    space: str
    align: int
    size: int
    data: bytes
    links: dict[int, str] = field(default_factory=dict)


@dataclass(slots=True)
class Function:
    name: str
    entry: bool
    results: dict[str, int]  # names and sizes
    params: dict[str, int]
    code: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    tables: dict[str, list[str]] = field(default_factory=dict)  # of jumps
    local: dict[str, int] = field(default_factory=dict)  # places in the frame
    frame: int = 0  # bytes
    shared: list[Variable] = field(default_factory=list)
    most_threads: int = 0  # of a block; 0 if nothing says so

    @property
    def whole_frame(self) -> int:
        return -(-self.frame // 16) * 16

    def called(self) -> set[str]:
        """The functions that it calls itself."""
        calls = (one for one in self.code if one.parts[0] == "call")
        return {part for one in calls for part in one.operands if not part.startswith("(")}

    def leaders(self) -> set[int]:
        """Where basic blocks begin."""
        after = {i + 1 for i, one in enumerate(self.code) if one.parts[0] in ("bra", "brx", "ret", "exit", "bar")}
        return {0, len(self.code), *self.labels.values(), *after}


@dataclass(slots=True)
class Module:
    functions: dict[str, Function]
    variables: list[Variable]

    def exchanging(self) -> set[str]:
        """The functions in which threads of a warp exchange values, or that call such."""
        found = {f.name for f in self.functions.values() if any(one.parts[0] in WARP_WIDE for one in f.code)}
        while more := {f.name for f in self.functions.values() if f.called() & found} - found:
            found |= more
        return found

    def recursive(self) -> set[str]:
        """The functions from which a function that calls itself is reached."""
        calls = {name: f.called() & self.functions.keys() for name, f in self.functions.items()}

        def reached(name: str) -> set[str]:
            found: set[str] = set()
            todo = [name]
            while todo:
                todo += (new := calls[todo.pop()] - found)
                found |= new
            return found

        whole = {name: reached(name) for name in self.functions}
        looping = {name for name, found in whole.items() if name in found}
        return {name for name, found in whole.items() if found & looping}

    @property
    def entries(self) -> list[Function]:
        return [function for function in self.functions.values() if function.entry]


def parse(text: str) -> Module:
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S).split("\t.section")[0]
    module = Module({}, [])
    at = 0
    while match := re.compile(r"[^{;]*[{;]", re.S).match(text, at):
        statement, at = match[0], match.end()
        head = re.sub(r"^\s*(\.(version|target|address_size)[^\n]*\n\s*)*", "", statement)
        if not re.match(r"(\.(visible|weak|extern)\s+)*\.(entry|func)\b", head):
            if statement.endswith("{"):  # the initial contents of a variable
                end = text.index(";", at)
                statement, at = statement + text[at : end + 1], end + 1
                head = re.sub(r"^\s*(\.(version|target|address_size)[^\n]*\n\s*)*", "", statement)
            if found := VARIABLE.match(head.rstrip("; \n")):
                module.variables.append(variable(found))
        elif statement.endswith("{"):
            end = closing(text, at)
            function = parse_function(head, text[at:end])
            module.functions[function.name] = function
            at = end + 1
    return module


def closing(text: str, at: int) -> int:
    """The place of the brace that closes the one before `at`."""
    depth = 1
    for match in re.compile(r"[{}]").finditer(text, at):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.start()
    raise ValueError("a brace that is not closed")


def variable(found: re.Match[str]) -> Variable:
    space, align, ty, name, count, init = found.groups()
    size = BYTES[ty[1:]]
    total = size * int(count or 1)
    items = re.findall(rf"generic\(({NAME})\)|(0[df]\w+|-?\w+)", init or "")
    data = b"".join(number(item or "0").to_bytes(8, "little")[:size] for _, item in items)
    links = {i * size: other for i, (other, _) in enumerate(items) if other}
    return Variable(name, space, int(align or size), total, data.ljust(total, b"\0"), links)


def number(text: str) -> int:
    """The bits of a literal: an integer, 0d and the bits of a double, or 0f and those of a float."""
    value = int(text[2:], 16) if text[:2] in ("0d", "0f", "0D", "0F") else int(text.rstrip("U"), 0)
    return value & (1 << 64) - 1


def parse_function(head: str, body: str) -> Function:
    found = HEAD.match(head.rstrip("{ \n"))
    assert found, head
    function = Function(found[3], found[1] == "entry", parameters(found[2]), parameters(found[4]))
    if most := MOST_THREADS.search(head):
        function.most_threads = int(most[1])
    for line in statements(body):
        if line.startswith((".local", ".shared")):
            declare(function, line)
        elif match := re.match(rf"({NAME}):\s*\.branchtargets\s+(.*)", line, re.S):
            function.tables[match[1]] = [label.strip() for label in match[2].split(",")]
        else:
            while label := LABEL.match(line):
                function.labels[label[1]] = len(function.code)
                line = label[2].lstrip("{} \t\n")
            if line and not line.startswith(IGNORED):
                function.code.append(instruction(line))
    return function


def statements(body: str) -> list[str]:
    """The statements of a body.  The braces of its scopes mean nothing, those of operands do."""
    body = re.sub(rf"(?m)^\s*({NAME}:)\s*$", r"\1", body)
    return [line for part in body.split(";") if (line := part.strip().lstrip("{} \t\n"))]


def declare(function: Function, line: str) -> None:
    found = VARIABLE.match(line)
    assert found, line
    made = variable(found)
    if made.space == "shared":
        function.shared.append(made)
    else:
        place = -(-function.frame // made.align) * made.align
        function.local[made.name], function.frame = place, place + made.size


def parameters(text: str | None) -> dict[str, int]:
    made = {}
    for part in (text or "").split(","):
        if part.strip():
            found = PARAMETER.match(part.strip())
            assert found, part
            made[found[3]] = BYTES[found[2]] * int(found[4] or 1)
    return made


def instruction(line: str) -> Instruction:
    predicate = ""
    if line.startswith("@"):
        predicate, line = line[1:].split(None, 1)
    op, _, rest = line.partition(" ") if " " in line.split("\t")[0] else line.partition("\t")
    operands = [part.strip() for part in OPERAND.findall(rest)]
    return Instruction(line, op.strip().split("."), operands, predicate.lstrip("!"), predicate.startswith("!"))


@cache
def names_in(operand: str) -> tuple[str, ...]:
    """The registers of a vector operand, or of a list of arguments."""
    return tuple([name.strip() for name in operand.strip("{}() ").split(",")])


@cache
def place_in(operand: str) -> tuple[str, int]:
    """`[name+8]`: the name, and the offset."""
    name, _, offset = operand.strip("[] ").partition("+")
    return name, int(offset or 0)
