"""Does a program print something before it does what cannot be repeated?  So its beginning is worth interpreting."""

from __future__ import annotations

from dpl.core import term as c
from dpl.core.walk import subterms
from dpl.prims.repeatable import PRINTS, REFUSED


def promising(program: c.Program) -> bool:
    """Whether the first item that prints, and all before it, reach nothing that is refused."""
    own = {item.name: item for item in program.items if isinstance(item, c.Def)}
    seen: set[str] = set()
    for item in program.items:
        if isinstance(item, c.Def) and (item.params or isinstance(item.body, c.Lam)):
            continue  # it runs where it is used
        todo: list = [item.body]
        prints = False
        while todo:
            term = todo.pop()
            match term:
                case c.Var(name=name) if name not in seen:
                    seen.add(name)
                    if definition := own.get(name) or program.library.get(name):
                        todo.append(definition.body)
                case c.Prim(op=op):
                    if op in REFUSED:
                        return False
                    prints = prints or op in PRINTS
                case _:
                    pass
            todo += subterms(term)
        if prints:
            return True
    return False
