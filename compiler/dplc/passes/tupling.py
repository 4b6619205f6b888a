"""flat -> flat where calls of one function that differ in some arguments only are one call (`tupled`).

    (y, t) = f.jvp(x, 1.0, 0.0)                (y, t, u) = f.jvp.2(x, 1.0, 0.0, 0.0, 1.0)
    (z, u) = f.jvp(x, 0.0, 1.0)          =>    z = y

So derivatives in several directions take one run of the function; several pullbacks read what was kept once.
A call that is made again with all its arguments the same is made once.

Only functions without effects, and with loops or recursion: of others, machine code shares what they have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.recursion import callees, groups
from dplc.flat.walk import blocks, every, names, rhs_mentions, supply_for, with_blocks
from dplc.passes.purity import movable, quiet
from dplc.passes.simplify import expression_of, simplify
from dplc.passes.tupled import Key, Tupled

MOST = 8  # calls in one
ROUNDS = 3  # what is in a function that was made may be done together in the next

Made = tuple[f.Bind, f.Call]  # a call, its arguments as far as they are known


def tupling(program: f.Program) -> f.Program:
    for _ in range(ROUNDS):
        work = _Tupling(program)
        fns = {name: replace(fn, body=work.block(fn.body)) for name, fn in program.fns.items()}
        if not work.changed:
            break
        program = simplify(replace(program, fns=fns | work.made))
    return program


class _Tupling:
    def __init__(self, program: f.Program) -> None:
        self.program = program
        self.supply = supply_for(program)
        self.made: dict[str, f.Fn] = {}
        self.changed = False
        self.known: dict[tuple, tuple[f.Var, ...]] = {}  # what calls gave that were made since the last effect
        self.tupled: dict[tuple[Key, int], Tupled] = {}
        self.items: dict[str, tuple[f.Atom, ...]] = {}  # of tuples
        self.same: dict[object, f.Atom] = {}  # what variables and parts of tuples are, by name and by place
        self.effects = spreading(program, lambda rhs: isinstance(rhs, f.Op) and not quiet(rhs))
        self.worthy = long(program) - self.effects

    def block(self, block: f.Block) -> f.Block:
        before = self.known, self.same
        self.known, self.same = dict(self.known), dict(self.same)
        binds, out = list(block.binds), list[f.Bind]()
        while binds:
            bind, *binds = binds
            self.note(bind)
            match bind.rhs:
                case f.Call(fn) if fn in self.worthy:
                    call = self.settled(bind.rhs)
                    done = self.known.get(token(call))
                    made, binds = ([], binds) if done else self.together(bind, call, binds)
                    out += made or self.named(bind.vars, done or ())
                case rhs:
                    out.append(f.Bind(bind.vars, with_blocks(rhs, self.block)))
                    if self.has_effects(rhs):
                        self.known = {}
        self.known, self.same = before
        return f.Block(tuple(out), block.results)

    def note(self, bind: f.Bind) -> None:
        """What tuples hold, as far as one sees it here."""
        match bind:
            case f.Bind((var,), f.TupMake(items)):
                self.items[var.name] = tuple(map(self.known_as, items))
            case f.Bind((var,), f.TupGet(tup, index)):
                tup = self.known_as(tup)
                assert isinstance(tup, f.Var)
                here = self.items[tup.name][index] if tup.name in self.items else var
                self.same[var.name] = self.same.setdefault((tup.name, index), here)
            case _:
                pass

    def known_as(self, atom: f.Atom) -> f.Atom:
        return self.same.get(atom.name, atom) if isinstance(atom, f.Var) else atom

    def settled(self, call: f.Call) -> f.Call:
        return f.Call(call.fn, tuple(map(self.known_as, call.args)), call.span)

    def has_effects(self, rhs: f.Rhs) -> bool:
        if isinstance(rhs, f.Call):
            return rhs.fn in self.effects
        return (isinstance(rhs, f.Op) and not quiet(rhs)) or any(
            self.has_effects(bind.rhs) for inner in blocks(rhs) for bind in inner.binds
        )  # fmt: skip

    def named(self, vars_: Sequence[f.Var], atoms: Sequence[f.Atom]) -> list[f.Bind]:
        """Gives variables what is known already."""
        self.changed = True
        if not vars_:
            return []
        tup = f.Var(self.supply.fresh("t"), f.Tup(tuple([a.ty for a in atoms])))
        return [f.Bind((tup,), f.TupMake(tuple(atoms))), *(f.Bind((v,), f.TupGet(tup, i)) for i, v in enumerate(vars_))]

    def together(self, bind: f.Bind, call: f.Call, rest: list[f.Bind]) -> tuple[list[f.Bind], list[f.Bind]]:
        """A call with those after it that can be made at the same time; and what then is left of these."""
        group, moved = self.partners(bind, call, rest)
        varied = tuple([len(set(column)) > 1 for column in zip(*(token(c)[1] for _, c in group), strict=True)])
        tupled = self.tupling_of(Key(call.fn, varied), len(group)) if len(group) > 1 else None
        if tupled is None:
            self.known[token(call)] = bind.vars
            return [bind], rest
        given = tuple([
            c.args[i] for i, several in enumerate(varied) for _, c in (group if several else group[:1])
        ])  # fmt: skip
        on = tupled.facts[tupled.key].results
        vars_ = tuple([b.vars[i] for i, several in enumerate(on) for b, _ in (group if several else group[:1])])
        out = [*moved, f.Bind(vars_, f.Call(tupled.name(tupled.key), given, call.span))]
        shared = [i for i, several in enumerate(on) if not several]
        for b, c in group:
            self.known[token(c)] = b.vars
            if b is not bind:
                out += self.named([b.vars[i] for i in shared], [bind.vars[i] for i in shared])
        gone = [*moved, *(b for b, _ in group)]
        return out, [b for b in rest if not any(b is other for other in gone)]

    def partners(self, bind: f.Bind, call: f.Call, rest: list[f.Bind]) -> tuple[list[Made], list[f.Bind]]:
        """The calls of the same function that can be made here, with other arguments; and of what comes after, what is
        then to be computed before."""
        group, moved, tokens = [(bind, call)], set[int](), {token(call)}
        after = {v.name: -1 for v in bind.vars}
        for at, other in enumerate(rest):
            if len(group) == MOST or self.has_effects(other.rhs):
                break
            self.note(other)
            if isinstance(other.rhs, f.Call) and other.rhs.fn == call.fn:
                another = self.settled(other.rhs)
                needed = before(another, rest, after) if token(another) not in tokens else None
                if needed is not None:
                    group.append((other, another))
                    tokens.add(token(another))
                    moved |= needed
            after |= {v.name: at for v in other.vars}
        return group, [rest[at] for at in sorted(moved)]

    def tupling_of(self, key: Key, calls: int) -> Tupled | None:
        """None if it is not worth it."""
        if (key, calls) not in self.tupled:
            self.tupled[key, calls] = made = Tupled(self.program, self.supply, key, calls)
            if made.worth():
                made.name(key)
                self.made |= made.functions()
        made = self.tupled[key, calls]
        return made if made.names else None


def before(call: f.Call, rest: list[f.Bind], after: dict[str, int]) -> set[int] | None:
    """Of what comes `after` some place, by name, what must come before it if the call does; None if that cannot be."""
    found: set[int] = set()
    todo = [after[name] for name in names(call.args) if name in after]
    while todo:
        at = todo.pop()
        if at in found:
            continue
        if at < 0 or not (movable(rest[at].rhs) or isinstance(rest[at].rhs, f.TupMake)):
            return None
        found.add(at)
        todo += [after[name] for name in rhs_mentions(rest[at].rhs) if name in after]
    return found


def token(call: f.Call) -> tuple:
    """Equal for calls that are the same."""
    return call.fn, tuple([expression_of(a) for a in call.args])


def spreading(program: f.Program, is_one: Callable[[f.Rhs], bool]) -> set[str]:
    """The functions in which there is such a thing, or that call one of these."""
    callers: dict[str, list[str]] = {}
    for name, fn in program.fns.items():
        for callee in callees(fn.body):
            callers.setdefault(callee, []).append(name)
    todo = [name for name, fn in program.fns.items() if any(is_one(bind.rhs) for bind in every(fn.body))]
    found = set(todo)
    while todo:
        new = set(callers.get(todo.pop(), ())) - found
        found |= new
        todo += new
    return found


def long(program: f.Program) -> set[str]:
    """The functions with loops or recursion."""
    number, recursive = groups(program)
    return spreading(
        program,
        lambda rhs: (
            isinstance(rhs, f.For | f.While | f.Build) or (isinstance(rhs, f.Call) and number[rhs.fn] in recursive)
        ),
    )
