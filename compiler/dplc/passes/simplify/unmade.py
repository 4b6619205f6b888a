"""Dead code elimination by constructors: flat -> flat without the arms for constructors that no reachable code makes.

    type mark = Path of ... | Cells of ...         m = mark#0 xs
    m = mark#0 xs                             =>   switch m
    switch m                                       case 0 (xs) ...
    case 0 (xs) ...
    case 1 (cells) ...

This is an optimistic fixpoint: at first no constructor is made; the arms of those that are made are followed, from the
roots on, until nothing is added.  A switch that is left without an arm stays as it is, so all of its arms are followed
then.  So a program pays for the parts of a library's data that it uses.  What comes from outside, such as a value of an
earlier input of a session, may have any constructor.
"""

from __future__ import annotations

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.types import datas_reached
from dplc.flat.walk import BLOCKS, blocks, every, remade, same, with_binds, with_blocks, with_body, with_rhs

Made = set[tuple[str, int]]  # constructors: data type and tag


def without_unmade(program: f.Program) -> f.Program:
    """The program without arms that nothing reaches."""
    made = constructors(program)
    fns = {name: with_body(fn, pruned(fn.body, made)) for name, fn in program.fns.items()}
    return program if same([*fns.values()], [*program.fns.values()]) else replace(program, fns=fns)


def constructors(program: f.Program) -> Made:
    """The constructors that reachable code makes, and those of data from outside."""
    given = datas_reached(given_types(program), program.datas)
    made = {(name, tag) for name in given for tag in range(len(program.datas[name].payloads))}
    return _Reached(program, made).made


class _Reached:
    """Follows each block once.  Arms wait for their constructor."""

    def __init__(self, program: f.Program, made: Made) -> None:
        self.program = program
        self.made = made
        self.todo: list[f.Block] = []
        self.waiting: dict[tuple[str, int], list[f.Block]] = {}
        self.partial: list[f.Switch] = []  # switches on data without a default, which keep an arm in any case
        self.reached = {*program.roots}
        self.todo += [program.fns[name].body for name in program.roots]
        while self.todo:
            self.follow(self.todo.pop())
            if not self.todo:
                self.todo += self.arms_in_any_case()

    def follow(self, block: f.Block) -> None:
        for bind in block.binds:
            rhs = bind.rhs
            if isinstance(rhs, (f.Call, f.Ad)):
                self.call(rhs.fn)
            elif isinstance(rhs, f.ConMake):
                self.made.add((rhs.data, rhs.tag))
                self.todo += self.waiting.pop((rhs.data, rhs.tag), ())
            elif isinstance(rhs, f.Switch) and (data := data_of(rhs)) is not None:
                self.switch(rhs, data)
            elif type(rhs) in BLOCKS:
                self.todo += blocks(rhs)

    def call(self, name: str) -> None:
        new = {name, *ruled(self.program, name)} - self.reached
        self.reached |= new
        self.todo += [self.program.fns[one].body for one in new]

    def switch(self, switch: f.Switch, data: str) -> None:
        for case in switch.cases:
            made = (data, case.tag) in self.made
            (self.todo if made else self.waiting.setdefault((data, case.tag), [])).append(case.body)
        if switch.default is None:
            self.partial.append(switch)
        else:
            self.todo.append(switch.default)

    def arms_in_any_case(self) -> list[f.Block]:
        """All arms of the switches that stay as they are, as nothing makes what they look at."""
        whole = [one for one in self.partial if not any((data_of(one), case.tag) in self.made for case in one.cases)]
        self.partial = []
        return [case.body for one in whole for case in one.cases]


def data_of(switch: f.Switch) -> str | None:
    """The name of the data on which a switch branches; None if it is a number."""
    return switch.scrutinee.ty.name if isinstance(switch.scrutinee.ty, f.Data) else None


def ruled(program: f.Program, name: str) -> list[str]:
    """The functions of a function's own derivative."""
    rule = program.rules.get(name)
    return [fn for fn in (rule.fn, rule.pullback) if fn] if rule else []


def kept(rhs: f.Rhs, made: Made) -> f.Rhs:
    """A switch on data without the arms of constructors that are not made; one arm stays in any case."""
    if not isinstance(rhs, f.Switch) or (data := data_of(rhs)) is None:
        return rhs
    cases = tuple([case for case in rhs.cases if (data, case.tag) in made])
    if len(cases) == len(rhs.cases) or not (cases or rhs.default):
        return rhs
    return remade(rhs, rhs.scrutinee, cases, rhs.default)


def pruned(block: f.Block, made: Made) -> f.Block:
    def inner(rhs: f.Rhs) -> f.Rhs:
        return with_blocks(kept(rhs, made), lambda b: pruned(b, made))

    binds = [with_rhs(bind, inner(bind.rhs)) if type(bind.rhs) in BLOCKS else bind for bind in block.binds]
    return with_binds(block, binds)


def given_types(program: f.Program) -> list[f.Type]:
    """The types of values that come from outside: through exported functions, and from what earlier inputs of a session
    have kept."""
    given = [param.ty for root in program.roots for param in program.fns[root].params]
    for fn in program.fns.values():
        for bind in every(fn.body):
            if isinstance(bind.rhs, f.Op) and bind.rhs.op == "state":
                given += [var.ty for var in bind.vars]
    return given
