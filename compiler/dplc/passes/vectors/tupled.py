"""Tupling: a function -> one that does the work of several calls of it, where these differ only in some arguments.

    fn f(x, d, n)                                fn f.2(x, d, e, n)
      (y, t) = for i < n state (y = x, t = d)      (y, t, u) = for i < n state (y = x, t = d, u = e)
        a = sin y                            =>      a = sin y
        b = t * cos y                                c = cos y;  b = t * c;  b' = u * c
        yield a, b                                   yield a, b, b'
      return y, t                                  return y, t, u

Parameters in which the calls differ are *varied*, as are values computed from them.  Everything else is equal in all
calls and is computed once; varied values are computed for each call, in step.  A branch on a varied condition, or a
loop of varied length, is written once for each call.  (Tupling: Chin, "Towards an automated tupling strategy", 1993.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpl.node import field, node, record

from dplc.flat import term as f
from dplc.flat.copy import Copier
from dplc.flat.nans import guarded
from dplc.flat.walk import atoms, blocks, every, rhs_mentions

Mask = tuple[bool, ...]
LARGE = 4000  # operations that a group of calls adds to those of one
GUARDED = 256  # guards against NaN of all calls in a step: with more, a step takes longer than one after the other
JOINING = {f.Call, f.If, f.Switch, f.Build, f.For, f.While}  # whose results need not be varied if an operand is
HOT = 16  # weight of an operation in a loop or recursion


@node
class Key:
    """A function, and the mask of its varied parameters."""

    fn: str
    params: Mask


@record
class Facts:
    """The varied variables of a function, and the mask of its varied results."""

    varied: set[str] = field(default_factory=set)
    results: Mask = ()


class Tupled:
    """Several calls of one function as one call, and the functions that this needs."""

    def __init__(self, program: f.Program, supply: f.Supply, key: Key, calls: int) -> None:
        self.program = program
        self.supply = supply
        self.calls = calls
        self.key = key
        self.facts: dict[Key, Facts] = {}
        self.need(key)
        self.settle()
        self.names: dict[Key, str] = {}

    # ---- what is varied ------------------------------------------------------------------------------------------

    def need(self, key: Key) -> Facts:
        if key not in self.facts:
            self.facts[key] = Facts(results=(False,) * len(self.program.fns[key.fn].results))
        return self.facts[key]

    def settle(self) -> None:
        """A fixpoint: runs until no more variables become varied."""
        size = -1
        while size != (size := sum(len(x.varied) + sum(x.results) + 1 for x in self.facts.values())):
            for key, facts in list(self.facts.items()):
                fn = self.program.fns[key.fn]
                facts.varied.update(p.name for p, varied in zip(fn.params, key.params, strict=True) if varied)
                self.spread(fn.body, facts.varied)
                facts.results = mask(fn.body.results, facts.varied)

    def spread(self, block: f.Block, varied: set[str]) -> None:
        for bind in block.binds:
            if type(bind.rhs) not in JOINING:
                if is_varied(atoms(bind.rhs), varied):
                    varied.update([v.name for v in bind.vars])
            else:
                varied.update([v.name for v, on in zip(bind.vars, self.gives(bind, varied), strict=True) if on])

    def gives(self, bind: f.Bind, varied: set[str]) -> Mask:
        """The mask of the varied variables of a call, or of a binding with inner blocks."""
        rhs = bind.rhs
        if isinstance(rhs, f.Call):
            given = mask(rhs.args, varied)
            return self.need(Key(rhs.fn, given)).results if any(given) else (False,) * len(bind.vars)
        columns = self.columns(rhs, varied)
        if parts(rhs, varied):
            return (True,) * len(bind.vars)
        return tuple([is_varied(column, varied) for column in columns])

    def columns(self, rhs: f.Rhs, varied: set[str]) -> list[tuple[f.Atom, ...]]:
        """For each result of blocks or of a loop, the atoms that it may be."""
        for inner in blocks(rhs):
            self.spread(inner, varied)
        if not isinstance(rhs, f.For | f.While):
            return list(zip(*(block.results for block in blocks(rhs)), strict=True))
        varied.update(s.name for s, *given in zip(rhs.state, rhs.inits, rhs.body.results) if is_varied(given, varied))
        return [*((s,) for s in rhs.state), *([kept(rhs)] if rhs.collect else [])]

    # ---- whether it is worth it ----------------------------------------------------------------------------------

    def worth(self, recursive: set[str]) -> int:
        """How many calls are worth making as one: as many as code does not become too large for, 0 if they share too
        little, or steps have too many guards against NaN."""
        once = each = more = guards = 0
        for key, facts in self.reached().items():
            body, hot = self.program.fns[key.fn].body, key.fn in recursive
            guards = max(guards, most_guards(body, facts.varied))
            for weight, on in self.work(body, facts.varied, hot, False):
                once += 0 if on else weight
                each += weight if on else 0
                more += on
        many = min(1 + LARGE // max(1, more), GUARDED // max(1, guards))
        return many if once >= HOT and 8 * once >= each else 0

    def reached(self) -> dict[Key, Facts]:
        """The facts that are still needed.  Keys are left out that only an earlier approximation needed."""
        found: dict[Key, Facts] = {}
        todo = [self.key]
        while todo:
            if (key := todo.pop()) not in found:
                found[key] = facts = self.facts[key]
                calls = (bind.rhs for bind in every(self.program.fns[key.fn].body) if isinstance(bind.rhs, f.Call))
                todo += [Key(c.fn, given) for c in calls if any(given := mask(c.args, facts.varied))]
        return found

    def work(self, block: f.Block, varied: set[str], hot: bool, apart: bool) -> Iterator[tuple[int, bool]]:
        """The weight of each operation, and whether it is computed for each call; all are, inside branches where the
        calls go `apart`.  Sharing integer operations gains nothing."""
        for bind in block.binds:
            on = apart or is_varied(atoms(bind.rhs), varied)
            match bind:
                case f.Bind(_, f.Call()):
                    yield HOT, on
                case f.Bind((), f.Op()):
                    pass
                case f.Bind((var, *_), f.Op()) if on or not is_small(var.ty):
                    yield HOT if hot else 1, on
                case f.Bind(_, f.Switch(scrutinee)) if isinstance(scrutinee.ty, f.Data):
                    yield HOT if hot else 1, on  # it reads residuals
                case _:
                    pass
            if inner := blocks(bind.rhs):
                looping = isinstance(bind.rhs, f.For | f.While | f.Build)
                parting = parts(bind.rhs, varied)
                for body in inner:
                    yield from self.work(body, varied, hot or looping, apart or parting)

    # ---- the functions -------------------------------------------------------------------------------------------

    def functions(self) -> dict[str, f.Fn]:
        """All functions that are called, directly or not, from the one that `name` was first asked for."""
        made: dict[str, f.Fn] = {}
        while missing := [(key, name) for key, name in self.names.items() if name not in made]:
            for key, name in missing:
                made[name] = _Copies(self, key).function(name)
        return made

    def name(self, key: Key) -> str:
        if key not in self.names:
            self.names[key] = self.supply.fresh(key.fn)
        return self.names[key]


def most_guards(body: f.Block, varied: set[str]) -> int:
    """How many guards of varied numbers the block with the most of them has, of those in a function."""
    defs = {b.vars[0].name: b.rhs for b in every(body) if isinstance(b.rhs, f.Op) and len(b.vars) == 1}

    def most(block: f.Block) -> int:
        here = sum(b.vars[0].name in varied for b in block.binds if guarded(defs, b.rhs))
        return max(here, *(most(inner) for bind in block.binds for inner in blocks(bind.rhs)), 0)

    return most(body)


def is_small(ty: f.Type) -> bool:
    return isinstance(ty, f.Num) and not f.is_float(ty)


def is_varied(given: Sequence[f.Atom], varied: set[str]) -> bool:
    for atom in given:  # noqa: SIM110 (a generator takes twice as long)
        if type(atom) is f.Var and atom.name in varied:
            return True
    return False


def mask(given: Sequence[f.Atom], varied: set[str]) -> Mask:
    return tuple([isinstance(a, f.Var) and a.name in varied for a in given])


def kept(loop: f.For | f.While) -> tuple[f.Atom, ...]:
    return loop.body.results[len(loop.state) :]


def parts(rhs: f.Rhs, varied: set[str]) -> bool:
    """True if the calls may take different paths here."""
    match rhs:
        case f.If(one) | f.Switch(one):
            return is_varied((one,), varied)
        case f.Build():
            return is_varied(atoms(rhs), varied)
        case f.For(_, count):
            return is_varied((count, *kept(rhs)), varied)
        case f.While():
            return is_varied((*rhs.cond.results, *kept(rhs)), varied)
        case _:
            return True


class _Copies:
    """Writes a function for all calls.  `same` maps variables that are equal in all calls, `each` those of each
    call."""

    def __init__(self, tupled: Tupled, key: Key) -> None:
        self.tupled = tupled
        self.supply = tupled.supply
        self.fn = tupled.program.fns[key.fn]
        self.facts = tupled.facts[key]
        self.same: dict[str, f.Atom] = {}
        self.each: list[dict[str, f.Atom]] = [{} for _ in range(tupled.calls)]

    def function(self, name: str) -> f.Fn:
        params = tuple(self.vars(self.fn.params))
        body = self.block(self.fn.body, self.facts.results)
        results = tuple([a.ty for a in body.results])
        return f.Fn(name, params, results, body, self.fn.label, self.fn.span)

    def vars(self, vars_: Sequence[f.Var]) -> Iterator[f.Var]:
        """New variables; one for each call where they are varied."""
        for var in vars_:
            for env in self.each if var.name in self.facts.varied else [self.same]:
                new = f.Var(self.supply.fresh(var.name), var.ty)
                env[var.name] = new
                yield new

    def atom(self, atom: f.Atom, env: dict[str, f.Atom]) -> f.Atom:
        return env.get(atom.name) or self.same[atom.name] if isinstance(atom, f.Var) else atom

    def atoms(self, given: Sequence[f.Atom], on: Mask) -> tuple[f.Atom, ...]:
        """The atoms of all calls; one for each call where `on`."""
        return tuple([
            self.atom(a, env)
            for a, several in zip(given, on, strict=True)
            for env in (self.each if several else [self.same])
        ])  # fmt: skip

    def block(self, block: f.Block, on: Mask) -> f.Block:
        binds = tuple([made for bind in block.binds for made in self.bind(bind)])
        return f.Block(binds, self.atoms(block.results, on))

    def bind(self, bind: f.Bind) -> Iterator[f.Bind]:
        rhs, varied = bind.rhs, self.facts.varied
        if not any(name in varied for name in rhs_mentions(rhs)):
            yield self.copy(bind, self.same)
        elif isinstance(rhs, f.Call):
            key = Key(rhs.fn, mask(rhs.args, varied))
            call = f.Call(self.tupled.name(key), self.atoms(rhs.args, key.params), rhs.span)
            yield f.Bind(tuple(self.vars(bind.vars)), call)
        elif blocks(rhs) and not parts(rhs, varied):
            made = self.together(rhs, mask(bind.vars, varied))
            yield f.Bind(tuple(self.vars(bind.vars)), made)
        else:
            for env in self.each:
                yield self.copy(bind, env)

    def copy(self, bind: f.Bind, env: dict[str, f.Atom]) -> f.Bind:
        (copied,) = _Copier(self, env).binds((bind,))
        env.update((v.name, new) for v, new in zip(bind.vars, copied.vars, strict=True))
        return copied

    def together(self, rhs: f.Rhs, on: Mask) -> f.Rhs:
        """A branch or loop that all calls run in step."""
        match rhs:
            case f.If(cond, then, else_):
                return f.If(self.atom(cond, self.same), self.block(then, on), self.block(else_, on))
            case f.Switch(scrutinee, cases, default):
                arms = []
                for case in cases:
                    payload = None if case.payload is None else next(self.vars((case.payload,)))
                    arms.append(f.Case(case.tag, payload, self.block(case.body, on)))
                other = None if default is None else self.block(default, on)
                return f.Switch(self.atom(scrutinee, self.same), tuple(arms), other)
            case f.Build(index, count, body, span, inner):
                sizes = [tuple([self.atom(n, self.same) for n in one]) for one in inner]
                copied = tuple([one for one, own in zip(sizes, on) for _ in (self.each if own else (0,))])
                count, index = self.atom(count, self.same), next(self.vars((index,)))
                return f.Build(index, count, self.block(body, on), span, copied)
            case f.For(index, count, state, inits, body, collect):
                on, count = mask(state, self.facts.varied), self.atom(count, self.same)
                inits, state = self.atoms(inits, on), tuple(self.vars(state))
                index = next(self.vars((index,)))
                return f.For(index, count, state, inits, self.block(body, (*on, *(False,) * collect)), collect)
            case f.While(state, inits, cond, body, collect):
                on = mask(state, self.facts.varied)
                inits, state = self.atoms(inits, on), tuple(self.vars(state))
                cond = self.block(cond, (False,))
                return f.While(state, inits, cond, self.block(body, (*on, *(False,) * collect)), collect)
            case _:
                raise AssertionError(rhs)


class _Copier(Copier):
    """Copies the code of one call, or of all calls."""

    def __init__(self, copies: _Copies, env: dict[str, f.Atom]) -> None:
        super().__init__(copies.supply, {})
        self.copies = copies
        self.env = env

    def atom(self, atom: f.Atom) -> f.Atom:
        own = super().atom(atom)
        return self.copies.atom(atom, self.env) if own is atom else own
