"""Dead code elimination by constructors: flat -> flat without the arms for constructors that no reachable code makes.

    type mark = Path of ... | Cells of ...         m = mark#0 xs
    m = mark#0 xs                             =>   switch m
    switch m                                       case 0 (xs) ...
    case 0 (xs) ...
    case 1 (cells) ...

This is an optimistic fixpoint: at first no constructor is made; the arms of those that are made are followed, from the
roots on, until nothing is added.  So a program pays for the parts of a library's data that it uses.  What comes from
outside, such as a value of an earlier input of a session, may have any constructor.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.walk import blocks, every, remade, same, with_binds, with_blocks, with_body, with_rhs

Made = set[tuple[str, int]]  # constructors: data type and tag


def without_unmade(program: f.Program) -> f.Program:
    """The program without arms that nothing reaches."""
    made = constructors(program)
    fns = {name: with_body(fn, pruned(fn.body, made)) for name, fn in program.fns.items()}
    return program if same([*fns.values()], [*program.fns.values()]) else replace(program, fns=fns)


def constructors(program: f.Program) -> Made:
    """The constructors that reachable code makes, and those of data from outside."""
    made = {(name, tag) for name in foreign(program) for tag in range(len(program.datas[name].payloads))}
    reached = {*program.roots}
    size = -1
    while size != len(made) + len(reached):
        size = len(made) + len(reached)
        for name in list(reached):
            for rhs in live(program.fns[name].body, made):
                if isinstance(rhs, f.ConMake):
                    made.add((rhs.data, rhs.tag))
                elif isinstance(rhs, f.Call | f.Ad):
                    reached |= {rhs.fn, *ruled(program, rhs.fn)}
    return made


def ruled(program: f.Program, name: str) -> list[str]:
    """The functions of a function's own derivative."""
    rule = program.rules.get(name)
    return [fn for fn in (rule.fn, rule.pullback) if fn] if rule else []


def live(block: f.Block, made: Made) -> Iterator[f.Rhs]:
    """All right-hand sides but those in arms of constructors that are not made."""
    for bind in block.binds:
        yield bind.rhs
        for inner in blocks(kept(bind.rhs, made)):
            yield from live(inner, made)


def kept(rhs: f.Rhs, made: Made) -> f.Rhs:
    """A switch on data without the arms of constructors that are not made; one arm stays in any case."""
    if not isinstance(rhs, f.Switch) or not isinstance(rhs.scrutinee.ty, f.Data):
        return rhs
    data = rhs.scrutinee.ty.name
    cases = tuple([case for case in rhs.cases if (data, case.tag) in made])
    if len(cases) == len(rhs.cases) or not (cases or rhs.default):
        return rhs
    return remade(rhs, rhs.scrutinee, cases, rhs.default)


def pruned(block: f.Block, made: Made) -> f.Block:
    binds = [with_rhs(bind, with_blocks(kept(bind.rhs, made), lambda b: pruned(b, made))) for bind in block.binds]
    return with_binds(block, binds)


def foreign(program: f.Program) -> set[str]:
    """The data types of which values come from outside: through exported functions, and from what earlier inputs of a
    session have kept."""
    given = [param.ty for root in program.roots for param in program.fns[root].params]
    for fn in program.fns.values():
        for bind in every(fn.body):
            if isinstance(bind.rhs, f.Op) and bind.rhs.op == "state":
                given += [var.ty for var in bind.vars]
    found: set[str] = set()
    while given:
        match given.pop():
            case f.Data(name) if name not in found:
                found.add(name)
                given += [payload for payload in program.datas[name].payloads if payload is not None]
            case f.Tup(items):
                given += items
            case f.Arr(elem) | f.Ref(elem):
                given.append(elem)
            case _:
                pass
    return found
