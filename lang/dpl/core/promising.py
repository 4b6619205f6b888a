"""What a program reaches: whether it can be run again, whether its beginning is worth interpreting, and whether it
reads its arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dpl.core import term as c
from dpl.core.walk import subterms
from dpl.prims.repeatable import ARGUMENTS, CHANGES, PRINTS, REFUSED


def promising(program: c.Program) -> bool:
    """Whether a program prints something before it does what cannot be repeated: the first item that prints, and all
    before it, reach nothing that is refused."""
    for terms in reached(program):
        prints = False
        for term in terms:
            if isinstance(term, c.Prim):
                if term.op in REFUSED:
                    return False
                prints = prints or term.op in PRINTS
        if prints:
            return True
    return False


def is_repeatable(program: c.Program) -> bool:
    """Whether a second run of a program asks and changes nothing outside that the first one has changed."""
    return not any(
        isinstance(term, c.Extern) or (isinstance(term, c.Prim) and term.op in CHANGES)
        for terms in reached(program)
        for term in terms
    )


def reads_arguments(program: c.Program) -> bool:
    """Whether a program asks for the words after its file on the command line."""
    return any(isinstance(term, c.Prim) and term.op in ARGUMENTS for terms in reached(program) for term in terms)


def reached(program: c.Program) -> Iterator[Iterator[c.Term]]:
    """For each item of a program, the terms that it reaches, but those of definitions that items before it reach."""
    own = {item.name: item for item in program.items if isinstance(item, c.Def)}
    seen: set[str] = set()
    for item in program.items:
        if not isinstance(item, c.Def) or not (item.params or isinstance(item.body, c.Lam)):  # these run where used
            yield reached_from(item.body, (own, program.library), seen)


def reached_from(body: c.Term, definitions: tuple[Mapping[str, c.Def], ...], seen: set[str]) -> Iterator[c.Term]:
    """All subterms of `body` and of the definitions that it mentions, directly or not.  `seen` gets their names."""
    todo = [body]
    while todo:
        term = todo.pop()
        yield term
        if isinstance(term, c.Var) and term.name not in seen:
            seen.add(term.name)
            todo += [known[term.name].body for known in definitions if term.name in known]
        todo += subterms(term)
