"""What a program reaches: whether it can be run again, whether its beginning is worth interpreting, and whether it
reads its arguments."""

from __future__ import annotations

from collections.abc import Iterator

from dpl.core import term as c
from dpl.core.walk import subterms
from dpl.prims.repeatable import ARGUMENTS, CHANGES, PRINTS, REFUSED


def promising(program: c.Program) -> bool:
    """Whether a program prints something before it does what cannot be repeated: the first item that prints, and all
    before it, reach nothing that is refused."""
    seen: set[str] = set()
    for item in program.items:
        prints = False
        for term in reached(program, item, seen):
            if isinstance(term, c.Prim):
                if term.op in REFUSED:
                    return False
                prints = prints or term.op in PRINTS
        if prints:
            return True
    return False


def is_repeatable(program: c.Program) -> bool:
    """Whether a second run of a program asks and changes nothing outside that the first one has changed."""
    seen: set[str] = set()
    return not any(
        isinstance(term, c.Extern) or (isinstance(term, c.Prim) and term.op in CHANGES)
        for item in program.items
        for term in reached(program, item, seen)
    )


def reads_arguments(program: c.Program) -> bool:
    """Whether a program asks for the words after its file on the command line."""
    seen: set[str] = set()
    return any(
        isinstance(term, c.Prim) and term.op in ARGUMENTS
        for item in program.items
        for term in reached(program, item, seen)
    )


def reached(program: c.Program, item: c.Def | c.Do | c.Expect, seen: set[str]) -> Iterator[c.Term]:
    """The terms that an item reaches, but those of definitions that are in `seen`."""
    if isinstance(item, c.Def) and (item.params or isinstance(item.body, c.Lam)):
        return  # it runs where it is used
    own = {item.name: item for item in program.items if isinstance(item, c.Def)}
    todo: list[c.Term] = [item.body]
    while todo:
        term = todo.pop()
        yield term
        if isinstance(term, c.Var) and term.name not in seen:
            seen.add(term.name)
            if definition := own.get(term.name) or program.library.get(term.name):
                todo.append(definition.body)
        todo += subterms(term)
