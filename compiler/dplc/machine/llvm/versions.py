"""The versions of a program's text: one that is compiled quickly, and others in which LLVM optimises some functions.

All have the same functions.  Lines of a function that only one of its versions has end in a mark.  Functions that a
later version can replace while an earlier one runs are `dso_local`.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator

from dpl.node import node, replace
from dpl.regex import regex

from dplc.machine.llvm.sampler import sampler

QUICK, FINAL = " ; quick", " ; final"
REPLACED = "@dpl_replaced"  # a byte of a version: 1 if there is a later one
SHARED = "define dso_local "  # how functions begin that a later version may replace
OWN = regex(r'define [^\n]*?@"(dpl [^"]*)"\(')
INLINED = regex(r"define internal ([^\n]*?@([\w.]+)\([^\n]*?\)) [^\n]*\balwaysinline\b")
CALLED = regex(r'@"(dpl [^"]*)"\(')
PLACES = "emissionKind: LineTablesOnly"  # the debug information, which tells the place of a failure
SMALL = 60  # lines of a function that is optimised if one that calls it is, as it may be inlined there


@node
class Function:
    """A function: its first line, the program's name for it (none for others), and its lines without the last brace."""

    head: str
    name: str
    body: str

    @property
    def text(self) -> str:
        return f"{self.head}{self.body}}}\n"


def parts(text: str) -> Iterator[str | Function]:
    """The functions of a text, and what is between them.  To look for where they begin and end takes a fraction of the
    time of a regular expression for them."""
    text = f"\n{text}"
    end = 1
    while (start := text.find("\ndefine ", end - 1) + 1) > 0:
        yield text[end:start]
        inside, end = text.index("\n", start) + 1, text.index("\n}\n", start) + 3
        head = text[start:inside]
        own = OWN.match(head)
        yield Function(head, own[1] if own else "", text[inside : end - 2])
    yield text[end:]


def functions(text: str) -> Iterator[Function]:
    """The functions of the program itself."""
    return (part for part in parts(text) if isinstance(part, Function) and part.name)


def final(text: str) -> str:
    """The version that LLVM optimises as a whole."""
    return _without(text, QUICK)


def quick(text: str, shared: Container[str] = ()) -> str:
    """The version that is compiled quickly: it calls replaceable functions through the linker's stubs, and those of the
    `shared` runtime that other versions inline."""
    made = [part if isinstance(part, str) else declared(part, shared) or _alone(part).text for part in parts(text)]
    return _without("".join(made), FINAL) + _watched(text)


def without_places(text: str) -> str:
    """The text without debug information in its code, which LLVM takes a fifth of the time to make.  The instructions
    are the same."""
    return text.replace(PLACES, "emissionKind: NoDebug", 1)


def plain(text: str, shared: Container[str]) -> str:
    """The only version, for code that LLVM does not optimise."""
    return called(final(text), shared)


def called(text: str, shared: Container[str]) -> str:
    """The text with the inlined functions of the `shared` runtime declared: without optimisation, a copy at each call
    takes long to compile and is slower than the call."""
    return "".join(p if isinstance(p, str) else declared(p, shared) or p.text for p in parts(text))


def declared(function: Function, shared: Container[str]) -> str:
    """The declaration of a function of the `shared` runtime that would be inlined; empty for others."""
    found = None if function.name else INLINED.match(function.head)
    return f"declare {found[1]}\n" if found and found[2] in shared else ""


def mixed(text: str, hot: Collection[str]) -> str:
    """The version in which LLVM optimises the hot functions, and the small ones that these call."""
    chosen = _with_small(text, hot)

    def version(function: Function) -> str:
        if not function.name:
            return function.text
        if function.name in chosen:
            return _without(function.text, QUICK)
        cold = _alone(function)
        head = cold.head
        if " optnone " not in head:
            head = head.replace(' "frame-pointer"', ' optnone noinline "frame-pointer"', 1)
        return f"{head}{_without(cold.body, FINAL)}}}\n"

    return "".join(part if isinstance(part, str) else version(part) for part in parts(text)) + _watched(text)


def sizes(text: str) -> dict[str, int]:
    """The functions that LLVM may optimise, each with its number of lines."""
    return {one.name: one.body.count("\n") for one in functions(text) if " optnone " not in one.head}


def has_versions(text: str) -> bool:
    """True if a later version has functions to replace."""
    return any(one.head.startswith(SHARED) for one in functions(text))


def _alone(function: Function) -> Function:
    """The function as one of the program's own that no other version replaces."""
    shared = function.name and function.head.startswith(SHARED)
    return replace(function, head=function.head.replace(SHARED, "define ", 1)) if shared else function


def _with_small(text: str, hot: Collection[str]) -> set[str]:
    bodies = {one.name: one.body for one in functions(text)}
    chosen, new = set(hot), list(hot)
    while new:
        for name in CALLED.findall(bodies.get(new.pop(), "")):
            if name not in chosen and bodies.get(name, "").count("\n") <= SMALL:
                chosen.add(name)
                new.append(name)
    return chosen


def _watched(text: str) -> str:
    return f"{REPLACED} = global i8 0\n{sampler(text)}"


def _without(text: str, mark: str) -> str:
    return "\n".join([line for line in text.split("\n") if not line.endswith(mark)]) if mark in text else text
