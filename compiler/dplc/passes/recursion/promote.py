"""flat -> flat where references that do not escape become variables (escape analysis, mem2reg).

    r = ref_new 0.0                                     s' = for i < n state (s = 0.0)
    for i < n { x = ref_get r; y = add x a;       =>      y = add s a
                ref_set r y }                             yield y
    z = ref_get r                                       ... s' instead of z

A reference that is only read and written, never passed on, needs no cell: its content becomes a result of branches and
a state of loops.  A reference that is written inside a comprehension keeps its cell: otherwise the elements would have
to be computed one after the other.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.walk import atoms, binders, blocks, every, names, supply_for, with_body
from dplc.passes.recursion.state_passing import Env, Threads


def promote(program: f.Program) -> f.Program:
    """The program itself if all references escape."""
    local = {name: found for name, fn in program.fns.items() if (found := private(fn.body))}
    if not local:
        return program
    supply = supply_for(program)
    made = {name: with_body(fn, _Promote(supply, local[name]).block(fn.body, {})) if name in local else fn
            for name, fn in program.fns.items()}  # fmt: skip
    return replace(program, fns=made)


def private(body: f.Block) -> dict[str, f.Type]:
    """The references that a body makes and only reads and writes, with the types of their contents."""
    made = {b.vars[0].name: b.rhs.args[0].ty for b in every(body) if isinstance(b.rhs, f.Op) and b.rhs.op == "ref_new"}
    if made:
        for name in seen(body):
            made.pop(name, None)
        for name in written_in_comprehensions(body):
            made.pop(name, None)
    return made


def seen(block: f.Block) -> Iterable[str]:
    """The variables that escape: they are mentioned otherwise than as the reference of a read or a write."""
    yield from names(block.results)
    for bind in every(block):
        given = atoms(bind.rhs)
        yield from names(given[1:] if isinstance(bind.rhs, f.Op) and bind.rhs.op in ("ref_get", "ref_set") else given)
        for inner in blocks(bind.rhs):
            yield from names(inner.results)


def written_in_comprehensions(block: f.Block) -> Iterable[str]:
    """References from outside a comprehension that are written in it."""
    for build in every(block):
        if isinstance(build.rhs, f.Build):
            inside = list(every(build.rhs.body))
            own = {var.name for bind in inside for var in (*bind.vars, *binders(bind.rhs))}
            for bind in inside:
                if isinstance(bind.rhs, f.Op) and bind.rhs.op == "ref_set":
                    yield from (name for name in names(bind.rhs.args[:1]) if name not in own)


class _Promote(Threads):
    """The keys are the names of the references.  `same` maps variables to their replacements."""

    def __init__(self, supply: f.Supply, local: dict[str, f.Type]) -> None:
        super().__init__(supply)
        self.local = local
        self.same: dict[str, f.Atom] = {}

    def type(self, key: Hashable) -> f.Type:
        return self.local[str(key)]

    def writes(self, rhs: f.Rhs) -> Iterable[Hashable]:
        return names(rhs.args[:1]) if isinstance(rhs, f.Op) and rhs.op == "ref_set" else ()

    def atom(self, atom: f.Atom) -> f.Atom:
        return self.same.get(atom.name, atom) if isinstance(atom, f.Var) else atom

    def plain(self, bind: f.Bind, env: Env, out: list[f.Bind]) -> None:
        match bind.rhs:
            case f.Op("ref_new", (content,)) if bind.vars[0].name in self.local:
                env[bind.vars[0].name] = self.atom(content)
            case f.Op("ref_get", (f.Var(name),)) if name in self.local:
                self.same[bind.vars[0].name] = env[name]
            case f.Op("ref_set", (f.Var(name), content)) if name in self.local:
                env[name] = self.atom(content)
            case rhs:
                out.append(f.Bind(bind.vars, self.again(rhs)))
