"""Loops that better code can continue: on-stack replacement (Hölzle, Ungar 1994).

    fn loop.3f2a(n)                    define void @"dpl loop.3f2a"(n) { ...; call @"dpl loop.3f2a loop"(0, s0, n) ... }
      r = for i < n state (s = s0)     define void @"dpl loop.3f2a loop"(i0, s0, n) {
        ...                      =>      i = phi [i0], [i + 1];  s = phi [s0], [...]
                                         ...
                                         if another version is there: return its "dpl loop.3f2a loop"(i + 1, s, n) }

The first version of a program is quick to make and slow.  While it runs, LLVM optimises a second one
(`machine/run/tiers.py`).  A kernel may run long, so its loop is a function of its own: its parameters are the loop's
state and the values that it uses from outside.  After each step, the first version looks whether the second one is
there, and lets it do the remaining steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from dpl.node import replace
from dpl.regex import regex

from dplc.machine.emit.bodies.body import BodyEmitter
from dplc.machine.emit.module.debug import MARK
from dplc.machine.emit.module.layout import leaves
from dplc.machine.emit.module.unit import symbol
from dplc.machine.llvm.versions import QUICK, REPLACED
from dplc.machine.llvm.writer import Values, function, typed

NAME = regex(r"%[\w.]+")
FREE = "<free>"  # in place of the values from outside, until they are known
RESULTS = "%results"


def loop(
    e: BodyEmitter,
    types: Sequence[str],
    inits: Values,
    cond: Callable[[Values], str],
    body: Callable[[Values], Values],
    mark: str = "",
) -> Values:
    """As `Writer.loop`, with the loop in a function of its own, which stores the last state."""
    w, outer, place = e.w, e.scope, e.w.place()
    name = f"{e.fn.name} loop"
    e.scope, w.label = e.unit.scope(replace(e.fn, name=name, label="")), "start"
    firsts = [f"%first{i}" for i in range(len(types))]
    last = w.loop(types, firsts, cond, body, mark, lambda head, after: _again(e, name, types, head, after))
    for i, (leaf, value) in enumerate(zip(types, last, strict=True)):
        w.store(leaf, value, w.at(RESULTS, 8 * i))
    w.do("ret void")
    inner = w.cut(place)
    free = _free(e, [*inner.lines, *inner.slots])
    more = "".join(f", {value}" for value in free)
    inner.lines = e.with_locations([line.replace(FREE, more) for line in inner.lines])
    params = ", ".join([f"ptr {RESULTS}", *typed(types, firsts)]) + more
    e.unit.helpers[name] = function(
        f"fastcc void {symbol(name)}({params}) noinline", inner, end="", place=f" !dbg {e.scope}", linkage="dso_local"
    )
    e.scope = outer
    results = w.slot(f"[{8 * len(types)} x i8]")
    w.call((), symbol(name), [f"ptr {results}", *typed(types, inits), *free], "call fastcc")
    return [w.load(leaf, w.at(results, 8 * i)) for i, leaf in enumerate(types)]


def _again(e: BodyEmitter, name: str, types: Sequence[str], head: str, after: Values) -> None:
    """The end of a step.  In the quick version: the rest of the loop is done by the other version, if that is there."""
    w = e.w
    flag, there, leave = w.fresh(), w.fresh(), w.block("leave")
    args = ", ".join([f"ptr {RESULTS}", *typed(types, after)])
    quick = (
        f"  {flag} = load volatile i8, ptr {REPLACED}",
        f"  {there} = icmp ne i8 {flag}, 0",
        f"  br i1 {there}, label %{leave}, label %{head}",
        f"{leave}:",
        f"  call fastcc void {symbol(name)}({args}{FREE}){e.unit.location(e.scope, 0)}",
        "  ret void",
    )
    w.lines += [line + QUICK for line in quick]


def _free(e: BodyEmitter, lines: Sequence[str]) -> list[str]:
    """The values that lines use and do not define, with their types."""
    wanted = free(lines, ("%first", RESULTS))
    types = types_of(e, set(wanted))
    return [f"{types[name]} {name}" for name in wanted]


def free(lines: Sequence[str], known: tuple[str, ...]) -> list[str]:
    """The values that lines use and do not define, except those whose names begin with `known`."""
    own = {"%start", *(f"%{line.split(':', 1)[0]}" for line in lines if not line.startswith(" "))}  # labels
    own |= {line.split(" = ", 1)[0].strip() for line in lines if " = " in line}
    used = dict.fromkeys(name for line in lines for name in NAME.findall(line))
    return [name for name in used if name not in own and not name.startswith(known)]


def types_of(e: BodyEmitter, wanted: set[str]) -> dict[str, str]:
    """The types of values that are defined before the loop, by what defines them."""
    found = {"%out": "ptr"}
    for i, var in enumerate(e.fn.params):
        found |= {f"%p{i}.{k}": leaf for k, leaf in enumerate(leaves(var.ty))}
    for line in (*e.w.slots, *e.w.lines):
        name, equals, text = line.strip().partition(" = ")
        if equals and name in wanted:
            found[name] = type_of(MARK.sub("", text))
    return found


def type_of(text: str) -> str:
    """The type of an instruction's result."""
    word, _, rest = text.removeprefix("tail ").removeprefix("notail ").partition(" ")
    match word:
        case "icmp" | "fcmp":
            return "i1"
        case "getelementptr" | "alloca" | "inttoptr":
            return "ptr"
        case "zext" | "sext" | "trunc" | "fptosi" | "sitofp" | "uitofp" | "fptoui" | "fpext" | "fptrunc" | "bitcast":
            return rest.rpartition(" to ")[2].split(",")[0].strip()
        case "ptrtoint":
            return rest.rpartition(" to ")[2].strip()
        case "select":
            return rest.partition(", ")[2].partition(" ")[0]
        case "call":
            return _first_type(re.sub(r"^(fastcc|tailcc|nnan|ninf) ", "", rest))
        case "extractelement":
            return rest.partition(" x ")[2].partition(">")[0]
        case "extractvalue":
            fields, _, index = rest.rpartition(", ")
            return fields[2 : fields.index(" }")].split(", ")[int(index)]
        case _:  # a load, a phi, arithmetic with flags
            return _first_type(re.sub(r"^((volatile|nuw|nsw|exact|disjoint|inbounds) )*", "", rest))


def _first_type(text: str) -> str:
    return text[: text.index("}") + 1] if text.startswith("{") else text.replace(",", " ").split(" ", 1)[0]
