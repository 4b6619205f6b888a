"""Warns of derivatives in the wrong mode: a loop that differentiates once for each input, or once for each output.

    [for i < n -> diff (fun t -> f { x with [i] = t }) x[i]]     n forward sweeps, where  grad f x  is one reverse sweep
    [for i < n -> diff (fun t -> f (x + t * unit i)) 0.0]        the same
    [for i < n -> grad (fun t -> (f t)[i]) x]                    n reverse sweeps, where  diff f x  is one forward sweep

A function that calls itself with the next index, also by way of others, is such a loop, too, and so is a `while` that
counts.  The derivative may be in a function that the loop calls.  The warning is given only
if nothing but the input (or output) differs from step to step, and the function has one number as its result (or
argument).  In loops of fewer than FEW steps either mode is good.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set

from dpl.core import term, ty
from dpl.core.names import mentioned
from dpl.core.term import Def, Program, Term
from dpl.core.walk import changed, within
from dpl.diagnostics import Diagnostic
from dpl.node import node, record
from dpl.source import Source, Span
from dpl.types.warnings.activity import NONE, variables

FEW = 16
NEAR = 8  # functions that are followed from one that calls itself through them
FORWARD = ("Prelude.diff", "Ad.diff", "Ad.diff'")
REVERSE = ("Prelude.grad", "Prelude.value_and_grad", "Ad.grad", "Ad.grad'")
DIRECTIONAL = ("Ad.gradv", "Ad.gradv'", "Ad.jacobianv", "Ad.jacobianv'")
MAPS = ("Prelude.map", "Array.map", "List.map", "List.iter")
FOLDS = ("Prelude.fold", "List.fold")
COUNTED = ("Prelude.tabulate", "List.init")
NUMBERED = ("Prelude.mapi", "List.mapi")


def warnings(program: Program, own: set[Source]) -> Iterator[Diagnostic]:
    """The warnings for a program, one for each place."""
    told = set[Span]()
    for found in wasted(program, own):
        assert found.span
        if found.span not in told:
            told.add(found.span)
            yield found


def wasted(program: Program, own: set[Source]) -> Iterator[Diagnostic]:
    """The warnings.  Functions that call each other may find the same derivative, each for itself."""
    recursive = {item.name: item.body for item in program.items if isinstance(item, Def) and item.group}
    helpers = dict[str, Term]()  # functions that differentiate, as far as they are known here
    for item in program.items:
        if item.body.span.source not in own:
            continue
        if isinstance(item, Def) and not item.group and differentiates(item.body):
            helpers[item.name] = item.body
        if isinstance(item, Def) and item.name in item.group[:1]:
            yield from of_group({name: recursive[name] for name in item.group})
        for t in within(item.body):
            if t.span.source not in own:
                continue
            if loop := repeated(t):
                body = inlined(loop.body, dict(helpers), len(helpers) - NEAR)
                yield from wasteful(loop.index, loop.steps, body, loop.others)
            elif isinstance(t, term.LetRec):
                yield from of_group(dict(t.bindings))
            elif isinstance(t, term.Let) and differentiates(t.rhs):
                helpers[t.name] = t.rhs


def differentiates(f: Term) -> bool:
    """Whether a term is a function in which a derivative is taken."""
    return isinstance(f, term.Lam) and any(map(is_derivative, within(f)))


@node
class Repeated:
    """A loop: its index, the number of its steps if that is known, its body, and the `others` of its variables that
    change from step to step."""

    index: str
    steps: int | None
    body: Term
    others: Set[str] = frozenset()


def repeated(t: Term) -> Repeated | None:
    """The loop that a term is, if it is one."""
    match t:
        case term.Build(index=index, count=count, body=body):
            return Repeated(index, number(count), body)
        case term.For(index=index, count=count, body=body, state=state):
            return Repeated(index, number(count), body, {state})
        case term.While():
            return counting(t)
        case _:
            return of_library(*application(t))


def counting(loop: term.While) -> Repeated | None:
    """A `while` with a variable that grows or shrinks by one, its index."""
    names, after = taken_apart(loop.state, loop.body)
    while isinstance(after, term.Let):
        after = after.body
    if not isinstance(after, term.Tuple) or len(after.items) != len(names):
        return None
    changing = {x for x, new in zip(names, after.items) if not (isinstance(new, term.Var) and new.name == x)}
    for k, (index, new) in enumerate(zip(names, after.items)):
        if index and steps_from(new) == index:
            tested, cond = taken_apart(loop.state, loop.cond)
            return Repeated(index, ends_at(tested[k], cond) if tested else None, loop.body, changing)
    return None


def taken_apart(state: str, t: Term) -> tuple[list[str], Term]:
    """The names that a term gives to the parts of a tuple (empty where it gives none), and what it does with them."""
    match t:
        case term.Match(scrutinee=term.Var(name=name), arms=(term.Arm(pattern=term.PTuple(items=parts)) as arm,)):
            return [p.name if isinstance(p, term.PVar) else "" for p in parts] if name == state else [], arm.body
        case _:
            return [], t


def of_library(name: str, args: list[Term]) -> Repeated | None:
    """The same of a function that is called for each index or element."""
    match args:
        case [term.Lam(param=index, body=body), _] if name in MAPS:
            return Repeated(index, None, body)
        case [count, term.Lam(param=index, body=body)] if name in COUNTED:
            return Repeated(index, number(count), body)
        case [term.Lam(param=index, body=term.Lam() as body), _] if name in NUMBERED:
            return Repeated(index, None, body)
        case [term.Lam(param=state, body=term.Lam(param=index, body=body)), _, _] if name in FOLDS:
            return Repeated(index, None, body, {state})
        case _:
            return None


def number(count: Term) -> int | None:
    return count.value if isinstance(count, term.Lit) and isinstance(count.value, int) else None


def of_group(group: Mapping[str, Term]) -> Iterator[Diagnostic]:
    """The same in functions that call each other."""
    if any(is_derivative(t) for f in group.values() for t in within(f)):
        for name in group:
            yield from of_recursion(name, group)


def of_recursion(name: str, group: Mapping[str, Term]) -> Iterator[Diagnostic]:
    """The same in a function that calls itself with one parameter, its index, greater or smaller by one: by itself or
    through the other functions of its `group`."""
    params, f = parameters(group[name])
    others = {other: g for other, g in group.items() if other != name}
    f = inlined(f, others, len(others) - NEAR)
    calls = (args for t in within(f) for called, args in [application(t)] if called == name)
    if call := next((args for args in calls if len(args) == len(params)), None):
        changing = {p for p, arg in zip(params, call) if not (isinstance(arg, term.Var) and arg.name == p)}
        for index in [p for p, arg in zip(params, call) if steps_from(arg) == p]:
            yield from wasteful(index, ends_at(index, f), f, changing)


def parameters(f: Term) -> tuple[list[str], Term]:
    """The parameters of a function, and its body."""
    params = list[str]()
    while isinstance(f, term.Lam):
        params.append(f.param)
        f = f.body
    return params, f


def inlined(t: Term, left: dict[str, Term], fewest: int) -> Term:
    """A term with the bodies of functions in place of their first calls.  A function that is inlined leaves `left`, in
    which the fewest stay."""
    name, args = application(t)
    if name in left and len(left) > fewest:
        params, body = parameters(left[name])
        if len(args) == len(params):
            del left[name]
            return inlined(called(params, args, body), left, fewest)
    return changed(t, lambda part: inlined(part, left, fewest), lambda ty: ty) if left else t


def called(params: list[str], args: list[Term], body: Term) -> Term:
    """A function's body with its arguments.  Those that may be an index stand in place of their parameters."""
    indices = {p: arg for p, arg in zip(params, args) if isinstance(arg, term.Var) or steps_from(arg)}

    def go(t: Term) -> Term:
        return indices.get(t.name, t) if isinstance(t, term.Var) else changed(t, go, lambda ty: ty)

    body = go(body)
    for param, arg in zip(params, args):
        if param not in indices:
            body = term.Let(body.span, body.ty, param, (), arg, body)
    return body


def application(t: Term) -> tuple[str, list[Term]]:
    """The name of the function that a term calls, and its arguments; "" if it is no call of a named function."""
    found = list[Term]()
    while isinstance(t, term.App):
        found.append(t.arg)
        t = t.fn
    return (t.name if found and isinstance(t, term.Var) else ""), found[::-1]


def steps_from(arg: Term) -> str:
    """The name to which a term adds one, or from which it takes one; "" if it does not."""
    match arg:
        case term.Prim(op="add" | "sub", args=(term.Var(name=name), term.Lit(value=1))):
            return name
        case _:
            return ""


def ends_at(index: str, body: Term) -> int | None:
    """The number with which a recursion compares its index; None if there is none, or if it counts down to 0."""
    for t in within(body):
        match t:
            case term.Prim(op="eq" | "lt" | "le" | "ge", args=(term.Var(name=name), term.Lit(value=int() as end))) if (
                name == index
            ):
                return end if end > 0 else None
            case _:
                pass
    return None


def wasteful(index: str, steps: int | None, body: Term, others: Set[str] = frozenset()) -> Iterator[Diagnostic]:
    """The derivatives in the body of a loop that are parts of one sweep of the other mode.  `others` are names from
    outside of the body that change from step to step."""
    if steps is not None and steps < FEW:
        return
    changing: set[str] | None = None
    for t in within(body):
        if is_derivative(t):
            changing = changing or with_aliases({index, *others, *bound(body)}, body)
            if is_partial(t, index, changing):
                yield message(t.span, steps, "input", "grad f x")
            elif is_component(t, index, changing):
                yield message(t.span, steps, "output", "diff f x")


def with_aliases(names: set[str], t: Term) -> set[str]:
    """Names, and those that stand for one of them in a term."""
    for part in within(t):
        if isinstance(part, term.Let) and isinstance(part.rhs, term.Var) and part.rhs.name in names:
            names.add(part.name)
    return names


def is_derivative(t: Term) -> bool:
    match t:
        case term.App(fn=term.App(fn=term.Var(name=name))):
            return name in FORWARD or name in REVERSE
        case _:
            return directional(t) is not None


def directional(t: Term) -> tuple[Term, Term, Term] | None:
    """The function, the point and the direction of a derivative in a direction."""
    match t:
        case term.Prim(op="jvp", args=(f, point, direction)):
            return f, point, direction
        case term.App(fn=term.App(fn=term.App(fn=term.Var(name=name), arg=f), arg=point), arg=direction):
            return (f, point, direction) if name in DIRECTIONAL else None
        case _:
            return None


def bound(t: Term) -> Iterator[str]:
    """The names that a term binds, without those that only stand for another name."""
    for part in within(t):
        match part:
            case term.Let(name=name, rhs=rhs):
                if not isinstance(rhs, term.Var):
                    yield name
            case term.LetRec(bindings=bindings):
                yield from (name for name, _ in bindings)
            case term.Lam(param=name) | term.Shift(name=name) | term.Build(index=name):
                yield name
            case term.For(state=state, index=name):
                yield from (state, name)
            case term.While(state=state):
                yield state
            case term.Match(arms=arms):
                yield from (name for arm in arms for name, _ in variables(arm.pattern, NONE))
            case _:
                pass


def uses(t: Term) -> Counter[str]:
    return Counter(mentioned(t))


@record
class Moved:
    """The input that a derivative moves, in a loop.  The parts of one gradient have one point: an input that stands
    for an element starts at it, and so `follows` from the index; one that is added to it starts at zero."""

    name: str
    index: str
    inner: Set[str]  # bound in the function that is differentiated: the indices of elements
    start: term.Value | None  # if that is written out
    follows: bool  # whether the start changes from step to step


def is_partial(t: Term, index: str, changing: set[str]) -> bool:
    """Whether this is the derivative by one input of a function whose result is one number."""
    match t:
        case term.App(fn=term.App(fn=term.Var(name=name), arg=term.Lam(param=x, body=inner) as f), arg=point) if (
            name in FORWARD
        ):
            start = point.value if isinstance(point, term.Lit) else None
            moved = Moved(x, index, set(bound(f)), start, not uses(point).keys().isdisjoint(changing))
            used = uses(f)
            places = sum(is_place(part, moved) or is_direction(part, moved) for part in within(f))
            is_one = is_number(inner.ty) or (isinstance(f.ty, ty.Fn) and inner.ty == f.ty.arg)  # `diff` takes one
            return is_one and changes_by(index, f, changing) and used[index] == used[x] == places
        case _ if found := directional(t):
            f, point, direction = found
            same = not (uses(f) + uses(point)).keys() & (changing - set(bound(f)) - set(bound(point)))
            is_one = isinstance(f.ty, ty.Fn) and is_number(f.ty.result) and isinstance(point.ty, ty.Arr)
            return is_one and same and changes_by(index, direction, changing)
        case _:
            return False


def is_place(t: Term, moved: Moved) -> bool:
    """True if a term moves the input at the index of the loop: it sets the element there, `{ x with [i] = t }`, or asks
    each index whether it is that one, `if i = j then x[j] + t else x[j]`."""
    match t:
        case term.Prim(op="update"):
            return moved.follows and is_set(t, moved)
        case term.Let(name=name, rhs=array, body=term.Prim(op="update", args=(term.Var(name=base), *_)) as body):
            return name == base and moved.start is not None and moved.start == filling(array) and is_set(body, moved)
        case term.If(cond=term.Prim(op="eq", args=(term.Var(name=a), term.Var(name=b))), then=then, else_=rest):
            other = b if a == moved.index else a
            return moved.index in (a, b) and other in moved.inner and is_moved(then, moved, rest)
        case _:
            return False


def is_set(update: term.Prim, moved: Moved) -> bool:
    """Whether the element at the index of the loop becomes the input that is moved."""
    _, value, *places = update.args
    here = any(isinstance(p, term.Var) and p.name == moved.index for p in places)
    return here and isinstance(value, term.Var) and value.name == moved.name


def filling(t: Term) -> term.Value | None:
    """The number that all elements of an array are, if it is written out: `ones n`, `zeros n`, `fill n 1.5`."""
    match t:
        case term.Prim(op="ones"):
            return 1.0
        case term.Prim(op="zeros"):
            return 0.0
        case term.Prim(op="fill", args=(_, term.Lit(value=value))):
            return value
        case _:
            return None


def is_moved(t: Term, moved: Moved, rest: Term) -> bool:
    """Whether a term is the input that is moved, or has it added to the `rest`, which the other elements are."""
    match t:
        case term.Var(name=name):
            return name == moved.name and (moved.start == rest.value if isinstance(rest, term.Lit) else moved.follows)
        case term.Prim(op="add", args=(a, term.Var(name=name)) | (term.Var(name=name), a)):
            return name == moved.name and moved.start == 0 and a.span.text == rest.span.text
        case _:
            return False


def is_direction(t: Term, moved: Moved) -> bool:
    """Whether a term multiplies the input that is moved by an array that belongs to the index: `t * unit i`."""
    match t:
        case term.Prim(op="mul", args=(a, b)):
            number, direction = (a, b) if isinstance(a, term.Var) else (b, a)
            is_number = isinstance(number, term.Var) and number.name == moved.name
            belongs = isinstance(direction.ty, ty.Arr) and uses(direction)[moved.index] == 1
            return is_number and belongs and moved.start == 0
        case _:
            return False


def is_component(t: Term, index: str, changing: set[str]) -> bool:
    """Whether this is the derivative of one output, by one number."""
    match t:
        case term.App(fn=term.App(fn=term.Var(name=name), arg=term.Lam(body=inner) as f), arg=point) if name in REVERSE:
            while isinstance(inner, term.Let):
                inner = inner.body
            match inner:
                case term.Prim(op="index", args=(_, term.Var(name=place))) if place == index:
                    is_one = is_number(point.ty) or point.ty == inner.ty  # of a function for `grad`
                    return is_one and changes_by(index, f, changing) and uses(f)[index] == 1
                case _:
                    return False
        case _:
            return False


def changes_by(index: str, t: Term, changing: set[str]) -> bool:
    """Whether a term differs from step to step by the index only."""
    return uses(t).keys() & (changing - set(bound(t))) == {index}


def is_number(t: ty.Ty) -> bool:
    return isinstance(t, ty.Con) and t.name in ty.FLOATS


def message(span: Span, steps: int | None, what: str, instead: str) -> Diagnostic:
    times = f"{steps} times" if steps is not None else "at each step"
    mode, other = ("forward", "reverse") if what == "input" else ("reverse", "forward")
    title = f"the wrong mode: this loop takes a derivative {times}, once for each {what}"
    note = f"each is a {mode} sweep through the whole function; one {other} sweep gives all of them"
    return Diagnostic("W0403", title, span, note=note, helps=(f"write  {instead}  in place of the loop",))
