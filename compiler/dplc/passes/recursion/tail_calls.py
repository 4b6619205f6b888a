"""flat -> flat where a function that calls itself only in tail position becomes a loop.

    fn go(n, acc)                            fn go(n, acc)
      c = eq n 0                               (n', acc') = while state (n' = n, acc' = acc)
      r = if c then { yield acc }         =>     cond { c = eq n' 0; d = not c; yield d }
               else { m = sub n 1; ...           body { m = sub n' 1; ...; yield m, a }
                      q = go m a; yield q }      return acc'
      return r

This comes before differentiation: reverse mode keeps the residuals of a loop in an array, those of a recursion in
linked records.

The constructor of a value chooses like a condition: the loop goes on while a list is not empty, and what comes of an
empty one is computed after it.

A function with several exits, or with effects before its condition, becomes a loop whose state has a flag and the
results so far:

    (go, n', r) = while state (go = true, n' = n, r = 0) cond { yield go }
                    body { if ... then { ...; yield false, n', result } else { ...; yield true, next n, r } }
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpl.diagnostics import Bug

from dplc.flat import term as f
from dplc.flat.call_graph import callees
from dplc.flat.copy import Copier
from dplc.flat.ops.table import OPS
from dplc.flat.walk import blocks, supply_for

TRUE, FALSE = f.Const(True, f.BOOL), f.Const(False, f.BOOL)


def tail_calls_to_loops(program: f.Program) -> f.Program:
    supply = supply_for(program)
    for name, fn in program.fns.items():
        calls = callees(fn.body).count(name)
        if calls and calls == sum(1 for _ in tail_calls(fn.body, name)):
            body = rotated(fn, supply) or flagged(fn, supply)
            if body is not None:
                program.fns[name] = f.Fn(name, fn.params, fn.results, body, fn.label, fn.span)
    return program


def is_call(rhs: f.Rhs | None, name: str) -> bool:
    """True for a call of this function."""
    return isinstance(rhs, f.Call) and rhs.fn == name


def tail(block: f.Block) -> f.Rhs | None:
    """The last right-hand side, if its results are exactly the results of the block."""
    if block.binds and block.binds[-1].vars == block.results:
        return block.binds[-1].rhs
    return None


def tail_calls(block: f.Block, name: str) -> Iterator[f.Call]:
    rest = [block]
    while rest:
        match tail(rest.pop()):
            case f.Call() as call if call.fn == name:
                yield call
            case f.If() | f.Switch() as choice:
                rest += reversed(blocks(choice))
            case _:
                pass


def rotated(fn: f.Fn, supply: f.Supply) -> f.Block | None:
    """The simple form: one pure condition, or the constructor of a value, chooses between a result without calls and
    the next step."""
    choice, prefix = tail(fn.body), fn.body.binds[:-1]
    if not isinstance(choice, f.If | f.Switch) or not all(is_pure(bind.rhs) for bind in prefix):
        return None
    goes = [all_tails(arm, fn.name) for arm in blocks(choice)]
    asked = None if None in goes or len(set(goes)) == 1 else question(choice, goes, supply)
    if asked is None:
        return None
    state = tuple(f.Var(supply.fresh(p.name), p.ty) for p in fn.params)
    here = {p.name: s for p, s in zip(fn.params, state)}
    cond = Copier(supply, here).block(f.Block((*prefix, *asked.binds), asked.results))

    step = arms(fn.body, choice, goes, True)
    step = Copier(supply, here).block(f.Block((*prefix, *step.binds), ()))
    step = next_state(step, fn.params)

    last = tuple(f.Var(supply.fresh(p.name), p.ty) for p in fn.params)
    loop = f.Bind(last, f.While(state, fn.params, cond, step))
    end = arms(fn.body, choice, goes, False)
    after = Copier(supply, {p.name: v for p, v in zip(fn.params, last)})
    end = after.block(f.Block((*prefix, *end.binds), end.results))
    return f.Block((loop, *end.binds), end.results)


def question(choice: f.If | f.Switch, goes: Sequence[bool | None], supply: f.Supply) -> f.Block | None:
    """The block that asks whether the arm of a branch that runs goes on; None if it would ask for several numbers."""
    answer = f.Var(supply.fresh("go"), f.BOOL)
    match choice:
        case f.If(cond):
            return f.Block((), (cond,)) if goes[0] else f.Block((f.Bind((answer,), f.Op("not", (cond,))),), (answer,))
        case f.Switch(f.Var(_, f.Num() as ty) as number, cases):
            test = f.Bind((answer,), f.Op("ne" if goes[-1] else "eq", (number, f.Const(cases[0].tag, ty))))
            return f.Block((test,), (answer,)) if len(cases) == 1 else None
        case _:
            told = [f.Block((), (TRUE if going else FALSE,)) for going in goes]
            cases = tuple([f.Case(case.tag, None, block) for case, block in zip(choice.cases, told, strict=False)])
            asked = f.Switch(choice.scrutinee, cases, None if choice.default is None else told[-1])
            return f.Block((f.Bind((answer,), asked),), (answer,))


def arms(body: f.Block, choice: f.If | f.Switch, goes: Sequence[bool | None], going: bool) -> f.Block:
    """What the branch at the end of a body does where it goes on, or where it does not."""
    chosen = [arm for arm, goes_on in zip(blocks(choice), goes, strict=True) if goes_on == going]
    if isinstance(choice, f.If) or (len(chosen) == 1 and chosen[0] is choice.default):
        return chosen[0]
    cases = tuple([case for case in choice.cases if any(case.body is arm for arm in chosen)])
    if len(chosen) == 1 and cases[0].payload is None:
        return chosen[0]
    default = choice.default if any(choice.default is arm for arm in chosen) else None
    vars_ = body.binds[-1].vars
    return f.Block((f.Bind(vars_, f.Switch(choice.scrutinee, cases, default)),), vars_)


def all_tails(block: f.Block, name: str) -> bool | None:
    """True: every path ends in a call of `name`; False: none does; None: some do."""
    match tail(block):
        case f.Call(fn) if fn == name:
            return True
        case f.If() | f.Switch() as choice:
            answers = {all_tails(inner, name) for inner in blocks(choice)}
            return answers.pop() if len(answers) == 1 else None
        case _:
            return False


def next_state(block: f.Block, params: tuple[f.Var, ...]) -> f.Block:
    """A block in which every path ends in a call.  It yields the arguments of the call instead."""
    *before, last = block.binds
    if isinstance(last.rhs, f.Call):
        return f.Block(tuple(before), last.rhs.args)
    vars_ = tuple(f.Var(f"{last.vars[0].name}.{i}", p.ty) for i, p in enumerate(params))
    return f.Block((*before, f.Bind(vars_, with_ends(last.rhs, lambda inner: next_state(inner, params)))), vars_)


def with_ends(choice: f.Rhs, end) -> f.Rhs:
    """An If or Switch with its blocks replaced."""
    match choice:
        case f.If(cond, then, else_):
            return f.If(cond, end(then), end(else_))
        case f.Switch(scrutinee, cases, default):
            new = tuple(f.Case(case.tag, case.payload, end(case.body)) for case in cases)
            return f.Switch(scrutinee, new, None if default is None else end(default))
        case _:
            raise Bug(f"no branch: {choice}")


def is_pure(rhs: f.Rhs) -> bool:
    """True for operations without effects, which may be done before or after one another."""
    match rhs:
        case f.Op(op):
            return OPS[op].pure
        case f.TupGet() | f.TupMake():
            return True
        case _:
            return False


def flagged(fn: f.Fn, supply: f.Supply) -> f.Block | None:
    """The general form.  None if some result has a type without a placeholder."""
    nothing: list[f.Bind] = []
    try:
        blanks = tuple(blank(ty, nothing, supply) for ty in fn.results)
    except ValueError:
        return None
    go, go_on = f.Var(supply.fresh("go"), f.BOOL), f.Var(supply.fresh("go"), f.BOOL)
    state = tuple(f.Var(supply.fresh(p.name), p.ty) for p in fn.params)
    sofar = tuple(f.Var(supply.fresh("r"), ty) for ty in fn.results)
    body = Copier(supply, {p.name: s for p, s in zip(fn.params, state)}).block(fn.body)
    body = Flags(fn.name, state, sofar, supply).ends(body)
    last = tuple(f.Var(supply.fresh(v.name), v.ty) for v in state)
    results = tuple(f.Var(supply.fresh("r"), ty) for ty in fn.results)
    loop = f.While((go, *state, *sofar), (TRUE, *fn.params, *blanks), f.Block((), (go,)), body)
    return f.Block((*nothing, f.Bind((go_on, *last, *results), loop)), results)


class Flags:
    """Lets every path yield (whether to continue, arguments, results)."""

    def __init__(self, name: str, state: tuple[f.Var, ...], sofar: tuple[f.Var, ...], supply: f.Supply) -> None:
        self.name, self.state, self.sofar, self.supply = name, state, sofar, supply
        self.calls: dict[int, bool] = {}  # blocks by identity: does a path end in a call?

    def ends(self, block: f.Block) -> f.Block:
        match tail(block):
            case f.Call(fn, args) if fn == self.name:
                return f.Block(block.binds[:-1], (TRUE, *args, *self.sofar))
            case f.If() | f.Switch() as choice if self.calling(block):
                types = (f.BOOL, *(v.ty for v in (*self.state, *self.sofar)))
                vars_ = tuple(f.Var(self.supply.fresh("s"), ty) for ty in types)
                return f.Block((*block.binds[:-1], f.Bind(vars_, with_ends(choice, self.ends))), vars_)
            case _:
                return f.Block(block.binds, (FALSE, *self.state, *block.results))

    def calling(self, block: f.Block) -> bool:
        """Whether a path through a block ends in a call, remembered for the blocks inside."""
        if id(block) not in self.calls:
            last = tail(block)
            inner = blocks(last) if isinstance(last, f.If | f.Switch) else ()
            self.calls[id(block)] = is_call(last, self.name) or any(map(self.calling, inner))
        return self.calls[id(block)]


def blank(ty: f.Type, binds: list[f.Bind], supply: f.Supply) -> f.Atom:
    """A placeholder of a type, never read.  Raises ValueError if the type has none."""
    match ty:
        case f.Num("bool"):
            return FALSE
        case f.Num(name):
            return f.Const(0.0 if name[0] == "f" else 0, ty)
        case f.Str():
            return f.Const("", ty)
        case f.Arr() | f.Data():
            return f.Const(None, ty)
        case f.Tup(()):
            return f.Const((), ty)
        case f.Tup(items):
            made = f.Var(supply.fresh("t"), ty)
            binds.append(f.Bind((made,), f.TupMake(tuple(blank(item, binds, supply) for item in items))))
            return made
        case f.Ref() | f.Res():
            raise ValueError(ty)


def filler(ty: f.Type, binds: list[f.Bind], supply: f.Supply) -> f.Atom:
    """A placeholder of a type.  Unlike `blank`, it also makes references."""
    if not isinstance(ty, f.Ref):
        return blank(ty, binds, supply)
    cell = f.Var(supply.fresh("ref"), ty)
    content = filler(ty.elem, binds, supply)
    binds.append(f.Bind((cell,), f.Op("ref_new", (content,))))
    return cell
