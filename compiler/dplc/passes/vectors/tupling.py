"""Tupling: flat -> flat where calls of one function that differ only in some arguments become one call (`tupled`).

    (y, t) = f.jvp(x, 1.0, 0.0)                (y, t, u) = f.jvp.2(x, 1.0, 0.0, 0.0, 1.0)
    (z, u) = f.jvp(x, 0.0, 1.0)          =>    z = y

So derivatives in several directions take one run of the function, and several pullbacks read the residuals once.  A
repeated call with equal arguments is made once.

Only functions without effects are tupled.  Small ones are not, unless they loop: they are inlined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from dpl.node import field, record, replace

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of
from dplc.flat.call_graph import callees, grouped
from dplc.flat.dims import dims_of
from dplc.flat.walk import blocks, every, names, rhs_mentions, supply_for, with_binds, with_blocks, with_rhs
from dplc.passes.simplify.inlined import SMALL, has_at_most
from dplc.passes.simplify.purity import movable, quiet
from dplc.passes.simplify.value_numbers import expression_of
from dplc.passes.vectors.guards import Shapes, can_go_first, either, fitting, guards, is_shape_check

if TYPE_CHECKING:
    from dplc.passes.vectors.tupled import Mask, Tupled

MOST = 8  # calls in one tupled call

Item = TypeVar("Item")


def tupling(program: f.Program) -> f.Program:
    work = _Tupling(program)
    if not work.hosts:
        return program
    fns = {name: work.function(fn) if name in work.hosts else fn for name, fn in program.fns.items()}
    while work.made.keys() - fns.keys():
        fns |= {name: work.function(fn) for name, fn in work.made.items() if name not in fns}
    return replace(program, fns=fns)


@record
class Line:
    """The bindings of a block.  `effects` are the positions of those with effects, `gone` of those that have moved
    elsewhere."""

    binds: tuple[f.Bind, ...]
    effects: set[int]
    gone: set[int] = field(default_factory=set)
    last: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        """Finds the last call of each function."""
        self.last = {bind.rhs.fn: at for at, bind in enumerate(self.binds) if isinstance(bind.rhs, f.Call)}

    def before(self, given: Iterable[str], at: int, after: dict[str, int], lengths: set[str]) -> set[int] | None:
        """The bindings after position `at` that must come before it if what mentions `given` moves there.  `after` has
        the positions of names bound from `at` on, `lengths` are numbers that are not negative.  None if it cannot
        move."""
        found: set[int] = set()
        todo = [after[name] for name in given if name in after]
        while todo:
            if (i := todo.pop()) in found:
                continue
            rhs = self.binds[i].rhs
            if i == at or not (movable(rhs) or isinstance(rhs, f.TupMake) or can_go_first(rhs, lengths)):
                return None
            found.add(i)
            todo += [after[name] for name in rhs_mentions(rhs) if name in after]
        return found


@record
class Partner:
    """A call at position `at`, what it is given where it is made with an earlier one, the positions of bindings that
    must move before that, and new bindings."""

    at: int
    call: f.Call
    given: tuple[f.Atom, ...]
    moved: set[int] = field(default_factory=set)
    binds: tuple[f.Bind, ...] = ()


class _Tupling:
    def __init__(self, program: f.Program) -> None:
        self.program = program
        self.made: dict[str, f.Fn] = {}
        self.known: dict[tuple, tuple[f.Var, ...]] = {}  # the results of calls since the last effect
        self.tupled: dict[tuple[str, Mask, int], Tupled] = {}
        self.most: dict[tuple[str, Mask], int] = {}  # calls that are worth making as one
        self.items: dict[str, tuple[f.Atom, ...]] = {}  # the items of tuples, in this function
        self.same: dict[str, f.Atom] = {}  # variables taken from a tuple -> equal atoms
        self.taken: list[dict[tuple[str, int], f.Var]] = []  # items taken from other tuples, by enclosing block
        self.holder: dict[str, str] = {}  # variables taken from a tuple of which the items are not known -> the tuple
        self.lengths: set[str] = set()  # numbers that are not negative: lengths, here
        self.survey()

    def survey(self) -> None:
        """Finds the functions with effects, the candidates for tupling, and the functions that make several calls of
        candidates."""
        calls: dict[str, list[str]] = {name: [] for name in self.program.fns}
        looping, effects = set[str](), set[str]()
        for name, fn in self.program.fns.items():
            for bind in every(fn.body):
                match bind.rhs:
                    case f.Call(callee):
                        calls[name].append(callee)
                    case f.For() | f.While() | f.Build():
                        looping.add(name)
                    case f.Op() as op if not quiet(op):
                        effects.add(name)
                    case _:
                        pass
        number, groups = grouped({name: list(dict.fromkeys(callees)) for name, callees in calls.items()})
        self.recursive = {name for name in calls if number[name] in groups}
        self.effects = callers_of(effects, calls)
        large = {name for name, fn in self.program.fns.items() if not has_at_most(SMALL, fn.body)}
        self.worthy = (callers_of(looping | self.recursive, calls) | large) - self.effects
        self.hosts = {
            name for name, callees in calls.items()
            if any(n > 1 and callee in self.worthy for callee, n in Counter(callees).items())
        }  # fmt: skip
        self.supply = supply_for(self.program) if self.hosts else f.Supply()

    def function(self, fn: f.Fn) -> f.Fn:
        self.items, self.same, self.holder, self.body = {}, {}, {}, fn.body
        self.lengths = {var.name for bind in every(fn.body) if is_length(bind.rhs) for var in bind.vars}
        return replace(fn, body=self.block(fn.body))

    def block(self, block: f.Block) -> f.Block:
        before, self.known = self.known, dict(self.known)
        lengths, self.lengths = self.lengths, set(self.lengths)
        self.taken.append({})
        line = Line(block.binds, {at for at, bind in enumerate(block.binds) if self.has_effects(bind.rhs)})
        out = list[f.Bind]()
        for at, bind in enumerate(block.binds):
            self.note(bind)
            if isinstance(bind.rhs, f.Build):
                self.lengths |= set(names((bind.rhs.count,)))
            match bind.rhs:
                case _ if at in line.gone:
                    pass
                case f.Call(fn) if self.is_worthy(bind.rhs):
                    call = self.settled(bind.rhs)
                    if done := self.known.get(token(call)):
                        out += self.named(bind.vars, done)
                    else:
                        self.known[token(call)] = bind.vars
                        more = line.last[fn] > at and fn not in self.made
                        out += self.together(line, at, call) if more else [bind]
                case rhs:
                    if any(self.calls_worthy(callee) for inner in blocks(rhs) for callee in callees(inner)):
                        bind = with_rhs(bind, with_blocks(rhs, self.block))
                    out.append(bind)
                    if at in line.effects:
                        self.known = {}
        self.taken.pop()
        self.known, self.lengths = before, lengths
        return with_binds(block, out)

    def is_worthy(self, rhs: f.Rhs) -> bool:
        return isinstance(rhs, f.Call) and self.calls_worthy(rhs.fn)

    def calls_worthy(self, name: str) -> bool:
        return name in self.worthy or name in self.made

    def note(self, bind: f.Bind) -> None:
        """Records the items of tuples that are made or taken here."""
        match bind:
            case f.Bind((var,), f.TupMake(items)):
                self.items[var.name] = tuple(map(self.known_as, items))
            case f.Bind((var,), f.TupGet(tup, index)):
                tup = self.known_as(tup)
                assert isinstance(tup, f.Var)
                place = (tup.name, index)
                if tup.name in self.items:
                    self.same[var.name] = self.items[tup.name][index]
                elif (first := next((scope[place] for scope in self.taken if place in scope), var)) is not var:
                    self.same[var.name] = first
                else:
                    self.taken[-1][place] = var
                    self.holder[var.name] = tup.name
            case _:
                pass

    def known_as(self, atom: f.Atom) -> f.Atom:
        return self.same.get(atom.name, atom) if isinstance(atom, f.Var) else atom

    def settled(self, call: f.Call) -> f.Call:
        return f.Call(call.fn, tuple(map(self.known_as, call.args)), call.span)

    def has_effects(self, rhs: f.Rhs) -> bool:
        """True if later calls must not move before it.  Raising a run-time error is an effect, too."""
        match rhs:
            case f.Call(fn):
                return fn in self.effects
            case f.Op(name):
                return name == "fail" or not quiet(rhs)
            case _:
                return any(self.has_effects(bind.rhs) for inner in blocks(rhs) for bind in inner.binds)

    def named(self, vars_: Sequence[f.Var], atoms: Sequence[f.Atom]) -> list[f.Bind]:
        """Bindings that give variables known values."""
        tup = f.Var(self.supply.fresh("t"), f.Tup(tuple([a.ty for a in atoms])))
        return [f.Bind((tup,), f.TupMake(tuple(atoms))), *(f.Bind((v,), f.TupGet(tup, i)) for i, v in enumerate(vars_))]

    def together(self, line: Line, at: int, call: f.Call) -> list[f.Bind]:
        """A call, combined with later calls that can be made at the same time, and the bindings that move before it."""
        group, varied = self.group(line, at, call)
        if len(group) == 1:
            return [line.binds[at]]
        tupled = self.tupling_of(call.fn, varied, len(group))
        calls, vars_ = [p.given for p in group], [line.binds[p.at].vars for p in group]
        on = tupled.facts[tupled.key].results
        made = f.Call(tupled.name(tupled.key), flattened(calls, varied), call.span)
        moved = set[int]().union(*(p.moved for p in group))
        out = [*(line.binds[i] for i in sorted(moved)), *(bind for p in group for bind in p.binds)]
        out.append(f.Bind(flattened(vars_, on), made))
        for partner, own in zip(group[1:], vars_[1:], strict=True):
            self.known[token(partner.call)] = own
            out += self.named(alike(own, on), alike(vars_[0], on)) if not all(on) else []
        line.gone |= moved | {p.at for p in group}
        return out

    def group(self, line: Line, at: int, call: f.Call) -> tuple[list[Partner], Mask]:
        """The calls that are made with this one, as many as are worth it, and in which arguments they differ."""
        most = MOST
        while True:
            group = self.partners(line, at, call, most)
            varied = tuple([len(set(map(expression_of, column))) > 1
                            for column in zip(*(p.given for p in group), strict=True)])  # fmt: skip
            if len(group) == 1 or (worth := self.worth(call.fn, varied)) >= len(group):
                return group, varied
            most = max(1, worth)

    def partners(self, line: Line, at: int, call: f.Call, most: int) -> list[Partner]:
        """The calls of the same function, with other arguments, that can be made at position `at`: at most so many."""
        group, tokens = [Partner(at, call, call.args)], {token(call)}
        self.taken.append({})  # items taken here are not yet available at `at`
        after = {v.name: at for v in line.binds[at].vars}
        for i in range(at + 1, line.last[call.fn] + 1):
            if len(group) == most or i in line.effects:
                break
            if i in line.gone:
                continue
            bind = line.binds[i]
            self.note(bind)
            if isinstance(bind.rhs, f.Call) and bind.rhs.fn == call.fn:
                another = self.settled(bind.rhs)
                partner = self.partner(line, group[0], i, another, after) if token(another) not in tokens else None
                if partner is not None:
                    group.append(partner)
                    tokens.add(token(another))
            after |= {v.name: i for v in bind.vars}
        self.taken.pop()
        return group

    def partner(self, line: Line, first: Partner, i: int, call: f.Call, after: dict[str, int]) -> Partner | None:
        """The call at position `i`, made with the first one; None if it cannot."""
        moved = line.before(names(call.args), first.at, after, self.lengths)
        if moved is None:
            return None
        between = [line.binds[j] for j in range(first.at + 1, i) if j not in line.gone]
        parts = {name for arg in names(call.args) for name in self.parts(arg)}
        if not (checks := guards(between, self.holders, parts)):
            return Partner(i, call, call.args, moved)
        shapes = Shapes(dims_of(self.body), line.binds[: first.at])
        if not (checks := [check for check in checks if not shapes.holds(check)]):
            return Partner(i, call, call.args, moved)
        asked = line.before([n for check in checks for n in rhs_mentions(check.rhs)], first.at, after, self.lengths)
        if asked is None or not all(is_shape_check(check.rhs) for check in checks):
            return None
        b = Builder(self.supply)
        ok = fitting(b, checks)
        pairs = zip(call.args, first.given, strict=True)
        given = [arg if isinstance(arg.ty, f.Num) or arg == one else either(b, ok, arg, one) for arg, one in pairs]
        return Partner(i, call, tuple(given), moved | asked, tuple(block_of(b.binds, ()).binds))

    def parts(self, name: str) -> Iterator[str]:
        """A variable, and the parts that it is made of."""
        yield name
        for item in names(self.items.get(name, ())):
            yield from self.parts(item)

    def holders(self, name: str) -> Iterator[str]:
        """A variable, the tuple that it is in, the tuple that this one is in, and so on."""
        known: f.Atom | None = self.same.get(name)
        holder: str | None = known.name if isinstance(known, f.Var) else name
        while holder is not None:
            yield holder
            holder = self.holder.get(holder)

    def worth(self, fn: str, varied: Mask) -> int:
        """The number of calls that are worth making as one; 0 if they share too little."""
        if (fn, varied) not in self.most:
            from dplc.passes.vectors.tupled import Key, Tupled  # many programs have nothing to tuple

            self.most[fn, varied] = Tupled(self.program, self.supply, Key(fn, varied), MOST).worth(self.recursive)
        return self.most[fn, varied]

    def tupling_of(self, fn: str, varied: Mask, calls: int) -> Tupled:
        if (made := self.tupled.get((fn, varied, calls))) is None:
            from dplc.passes.vectors.tupled import Key, Tupled

            made = self.tupled[fn, varied, calls] = Tupled(self.program, self.supply, Key(fn, varied), calls)
            made.name(made.key)
            self.made |= made.functions()
        return made


def is_length(rhs: f.Rhs) -> bool:
    return isinstance(rhs, f.Op) and rhs.op == "dim"


def flattened(columns: Sequence[Sequence[Item]], on: Mask) -> tuple[Item, ...]:
    """The items of each call where `on`, else the one item that all calls share."""
    return tuple([column[i] for i, several in enumerate(on) for column in (columns if several else columns[:1])])


def alike(items: Sequence[Item], on: Mask) -> list[Item]:
    return [item for item, several in zip(items, on, strict=True) if not several]


def token(call: f.Call) -> tuple:
    """A key that is equal for equal calls."""
    return call.fn, tuple([expression_of(a) for a in call.args])


def callers_of(found: Iterable[str], calls: dict[str, list[str]]) -> set[str]:
    """These functions, and all functions that call them, directly or not."""
    callers: dict[str, list[str]] = {}
    for name, called in calls.items():
        for callee in called:
            callers.setdefault(callee, []).append(name)
    done, todo = set(found), list(found)
    while todo:
        new = set(callers.get(todo.pop(), ())) - done
        done |= new
        todo += new
    return done
