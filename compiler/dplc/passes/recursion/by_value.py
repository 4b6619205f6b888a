"""flat -> flat where references are passed by value: a function takes the contents of a reference and returns the
contents afterwards.

    fn step(r: ref, n)                        fn step(a, n)
      ref_set r (ref_get r + n)                 r = ref_new a
                                                ref_set r (ref_get r + n)
    z = ref_new 0.0                  =>         b = ref_get r;  return b
    step(z, n)
                                              z = ref_new 0.0;  a = ref_get z
                                              b = step(a, n);   ref_set z b

The functions are those of one SCC of the call graph.  Suppose that they, or their callers, make a reference and only
read it, write it and pass it to each other.  Then no other code sees it while one of them runs.  So each function may
have a cell of its own, which `promote` then turns into a variable.

Two parameters may be one reference (they alias), and a parameter may come from outside in one call and not in another.
So a function has a copy for each way of calling it.  A *key* describes each parameter that is a reference: which
earlier parameter it is equal to, and whether the callers made it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpl.node import field, node, record, replace

from dplc.flat import term as f
from dplc.flat.copy import Copier
from dplc.flat.walk import atoms, blocks, every, names, supply_for

VARIANTS = 8  # copies per function, on average; an SCC that needs more is left as it is

Param = tuple[str, str]  # function, parameter


@node
class Cell:
    """A reference as a function knows it: its name, the same for aliases, and whether the callers of the function made
    it."""

    name: str
    own: bool


Key = tuple[Cell, ...]  # a cell for each parameter that is a reference; the names are numbers


def references_by_value(program: f.Program, scc: set[str]) -> tuple[f.Program, set[str]]:
    """Rewrites one SCC.  Returns the program and the new names of its functions; no names if the SCC stays as it is."""
    work = _Scc(program, scc)
    return (work.rewritten(), set(work.made)) if work.outside() else (program, set())


@record
class _Scc:
    program: f.Program
    members: set[str]
    names: dict[tuple[str, Key], str] = field(default_factory=dict)
    made: dict[str, f.Fn] = field(default_factory=dict)
    supply: f.Supply = field(init=False)
    callers: list[str] = field(init=False)
    refs: dict[str, list[int]] = field(init=False)
    kept: dict[str, set[str]] = field(init=False)

    def __post_init__(self) -> None:
        self.supply = supply_for(self.program)
        self.callers = [n for n, fn in self.program.fns.items() if n not in self.members and self.called(fn)]
        self.refs = {
            name: [i for i, p in enumerate(self.program.fns[name].params) if isinstance(p.ty, f.Ref)]
            for name in (*self.members, *self.callers)
        }
        self.kept = self.keeping()

    def called(self, fn: f.Fn) -> list[f.Call]:
        """The calls that a function makes within the SCC."""
        return [bind.rhs for bind in every(fn.body) if isinstance(bind.rhs, f.Call) and bind.rhs.fn in self.members]

    # ---- escape analysis -----------------------------------------------------------------------------------------

    def keeping(self) -> dict[str, set[str]]:
        """The references of each function that escape: they are stored, or passed to functions outside the SCC."""
        kept = {name: set(self.elsewhere(self.program.fns[name].body)) for name in self.refs}
        while True:
            before = sum(map(len, kept.values()))
            for name in self.refs:
                for call in self.called(self.program.fns[name]):
                    given = zip(self.program.fns[call.fn].params, call.args, strict=True)
                    kept[name].update(names(a for p, a in given if p.name in kept[call.fn]))
            if sum(map(len, kept.values())) == before:
                return kept

    def elsewhere(self, block: f.Block) -> Iterator[str]:
        """The references of a block that are used for anything except reading, writing and passing on."""
        yield from names(block.results)
        for bind in block.binds:
            match bind.rhs:
                case f.Op("ref_get" | "ref_set", (_, *rest)):
                    yield from names(rest)
                case f.Call(fn) if fn in self.members:
                    pass
                case rhs:
                    yield from names(atoms(rhs))
            for inner in blocks(bind.rhs):
                yield from self.elsewhere(inner)

    # ---- copies --------------------------------------------------------------------------------------------------

    def outside(self) -> bool:
        """Makes the copies that are called from outside the SCC, and all copies that these call.  False if there are
        too many, or if no copy has a reference of its own."""
        todo = [call for name in self.callers for call in self.caller(name).calls()]
        while todo:
            fn, key = todo.pop()
            if (fn, key) not in self.names:
                self.names[fn, key] = self.supply.fresh(fn)
                todo += _Copy(self, self.program.fns[fn], key).calls()
                if len(self.names) > VARIANTS * len(self.members):
                    return False
        if not any(cell.own for _, key in self.names for cell in key):
            return False
        for (fn, key), name in self.names.items():
            self.made[name] = _Copy(self, self.program.fns[fn], key).function(name)
        return True

    def key(self, call: f.Call, cells: dict[str, Cell]) -> Key:
        """The key of a call, given the cells that its caller knows."""
        numbers: dict[Cell, int] = {}
        key = []
        for i in self.refs[call.fn]:
            name = next(names([call.args[i]]), "")
            cell = cells.get(name, Cell(name, False))
            key.append(Cell(str(numbers.setdefault(cell, len(numbers))), cell.own))
        return tuple(key)

    def caller(self, name: str) -> _Copy:
        """A caller outside the SCC: its parameters are unknown."""
        return _Copy(self, self.program.fns[name], tuple([Cell(str(i), False) for i in self.refs[name]]))

    def rewritten(self) -> f.Program:
        fns = {name: fn for name, fn in self.program.fns.items() if name not in self.members}
        callers = {name: self.caller(name).function(name) for name in self.callers}
        return replace(self.program, fns=fns | callers | self.made)

    def again(self, fn: str, key: Key) -> dict[int, int]:
        """Maps each parameter that is the same reference as an earlier one to that one."""
        first: dict[Cell, int] = {}
        return {i: first[cell] for i, cell in zip(self.refs[fn], key, strict=True) if first.setdefault(cell, i) != i}


class _Copy(Copier):
    """A copy of a function for one key."""

    def __init__(self, scc: _Scc, fn: f.Fn, key: Key) -> None:
        super().__init__(scc.supply, {})
        self.scc = scc
        self.fn = fn
        self.cells = {fn.params[i].name: cell for i, cell in zip(scc.refs[fn.name], key, strict=True)}
        self.again = scc.again(fn.name, key)
        for bind in every(fn.body):
            match bind:
                case f.Bind((f.Var(name),), f.Op("ref_new")) if name not in scc.kept[fn.name]:
                    self.cells[name] = Cell(name, True)
                case _:
                    pass

    def calls(self) -> list[tuple[str, Key]]:
        return [(call.fn, self.scc.key(call, self.cells)) for call in self.scc.called(self.fn)]

    def own(self, var: f.Atom) -> bool:
        return isinstance(var, f.Var) and var.name in self.cells and self.cells[var.name].own

    def function(self, name: str) -> f.Fn:
        params, begin, held = list[f.Var](), list[f.Bind](), list[f.Var]()
        for i, p in enumerate(self.fn.params):
            if i in self.again:
                self.atoms[p.name] = self.atoms[self.fn.params[self.again[i]].name]
            elif self.own(p) and isinstance(p.ty, f.Ref):
                content = f.Var(self.supply.fresh(p.name), p.ty.elem)
                params.append(content)
                held.append(self.var(p))
                begin.append(f.Bind((held[-1],), f.Op("ref_new", (content,))))
            else:
                params.append(self.var(p))
        body = self.block(self.fn.body)
        after, outs = self.read(held)
        block = f.Block((*begin, *body.binds, *after), (*body.results, *outs))
        results = (*self.fn.results, *[v.ty for v in outs])
        return f.Fn(name, tuple(params), results, block, self.fn.label, self.fn.span)

    def binds(self, binds: tuple[f.Bind, ...]) -> tuple[f.Bind, ...]:
        out: list[f.Bind] = []
        for bind in binds:
            if isinstance(bind.rhs, f.Call) and bind.rhs.fn in self.scc.members:
                self.call(bind, bind.rhs, out)
            else:
                out += super().binds((bind,))
        return tuple(out)

    def call(self, bind: f.Bind, call: f.Call, out: list[f.Bind]) -> None:
        key = self.scc.key(call, self.cells)
        again = self.scc.again(call.fn, key)
        args: list[f.Atom] = []
        held: list[f.Atom] = []
        for i, a in enumerate(call.args):
            if i in again:
                continue
            args.append(self.atom(a))
            if self.own(a):
                held.append(self.atom(a))
                before, (args[-1],) = self.read(held[-1:])
                out += before
        outs = [f.Var(self.supply.fresh("held"), content_of(cell)) for cell in held]
        rhs = f.Call(self.scc.names[call.fn, key], tuple(args), call.span)
        out.append(f.Bind((*map(self.var, bind.vars), *outs), rhs))
        out += [f.Bind((), f.Op("ref_set", pair)) for pair in zip(held, outs, strict=True)]

    def read(self, held: Sequence[f.Atom]) -> tuple[list[f.Bind], list[f.Var]]:
        """Bindings that read the contents of references, and the variables for them."""
        outs = [f.Var(self.supply.fresh("held"), content_of(cell)) for cell in held]
        return [f.Bind((v,), f.Op("ref_get", (cell,))) for v, cell in zip(outs, held, strict=True)], outs


def content_of(cell: f.Atom) -> f.Type:
    assert isinstance(cell.ty, f.Ref)
    return cell.ty.elem
