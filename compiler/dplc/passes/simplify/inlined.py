"""Which functions are inlined: the small ones everywhere, others where it pays.

A function that asks whether a place is inside of a grid is small in loops: the ranges of indices decide most of what it
asks (`value_ranges.py`), and what is left reads side by side.  So is one that computes places, such as (i + 1) % 3, if
they are constants where it is called.  One that computes a number of elements of arrays, as an interpolation does, is
part of the loop around it, if it is called at few places: its places are checked before the loop, and its derivative
shares what the loop has computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dpl.prims import elementary

from dplc.flat import term as f
from dplc.flat.types import width
from dplc.flat.walk import atoms, every
from dplc.passes.simplify.purity import droppable

SMALL = 12  # bindings, without tuples, of a function that is inlined at every call
STRAIGHT = 160  # the same at calls in loops, of a function whose parts may be hoisted or vectorised
CHOICE = 4  # the same of an arm that vectors compute besides the other one
REDUCING = 32  # the same of a function that gives one number of a vector
MAPPING = 32  # the same of a function that computes an array of arrays, by elements
FEW = 3  # calls of such a function, at most
ASKING = 48  # the same of a function that mostly compares whole numbers
FIELDS = 4  # of data that count as one binding: as many stores are as long as an operation with its check
CHOSEN = 32  # the same of a function with only the arms for the constructors that it is given

ASKED = (f.I64, f.BOOL)


def has_at_most(most: int, body: f.Block) -> bool:
    """True if a body has few bindings, not counting tuples."""
    for bind in every(body):
        most -= size(bind.rhs)
        if most < 0:
            return False
    return True


def size(rhs: f.Rhs) -> int:
    """How many bindings a right-hand side counts for.  Tuples are free; where data is made, they are stored."""
    if isinstance(rhs, f.TupMake | f.TupGet):
        return 0
    return 1 if not isinstance(rhs, f.ConMake) or rhs.arg is None else -(-width(rhs.arg.ty) // FIELDS)


def pays_in_loops(fn: f.Fn, others: Mapping[str, f.Fn], calls: int) -> bool:
    """True for a function with so many calls that is inlined at those in loops, as `others` are."""
    if is_straight(fn, others) or asks_of_places(fn) or is_reduction(fn) or (calls <= FEW and is_elementwise(fn)):
        return True
    return calls * len(every(fn.body)) <= STRAIGHT and interpolates(fn)


def interpolates(fn: f.Fn) -> bool:
    """True for a function that computes floats of numbers and elements of arrays, and chooses among them."""
    numbers = all(f.is_float(ty) or isinstance(ty, f.Tup) for ty in fn.results)
    return numbers and any(map(reads_array, every(fn.body))) and computes_or_chooses(fn.body, reads_array)


def reads_array(bind: f.Bind) -> bool:
    """True for an element, a row or a length of an array."""
    return isinstance(bind.rhs, f.Op) and bind.rhs.op in ("index", "dim")


def is_elementwise(fn: f.Fn) -> bool:
    """True for a function that computes an array of others, element by element, as `Tree.map2` does for a part of a
    model: what follows on it, as in a step of a method of descent, is one loop with it."""
    loops = [bind.rhs for bind in every(fn.body) if not isinstance(bind.rhs, f.Op | f.TupMake | f.TupGet)]
    arrays = len(fn.results) == 1 and isinstance(fn.results[0], f.Arr) and f.is_float(fn.results[0].elem)
    return arrays and len(loops) == 1 and isinstance(loops[0], f.Build) and has_at_most(MAPPING, fn.body)


def is_reduction(fn: f.Fn) -> bool:
    """True for a function that gives one number of a vector, by elementary functions, such as `logsumexp`: the vector
    need not be made where its elements are computed."""
    binds = every(fn.body)
    plain = len(binds) <= REDUCING and all(isinstance(bind.rhs, f.Op | f.Build | f.If) for bind in binds)
    vectors = [ty for ty in (param.ty for param in fn.params) if isinstance(ty, f.Arr)]
    one = bool(vectors) and all(ty.rank == 1 and f.is_float(ty.elem) for ty in vectors)
    costly = any(isinstance(bind.rhs, f.Op) and bind.rhs.op in elementary.NAMES for bind in binds)
    return plain and one and costly and len(fn.results) == 1 and f.is_float(fn.results[0])


def asks_of_places(fn: f.Fn) -> bool:
    """True for a function that computes and compares whole numbers, and does little besides."""
    work = [bind for bind in every(fn.body) if not is_question(bind)]
    return has_at_most(ASKING, fn.body) and len(work) <= SMALL


def is_question(bind: f.Bind) -> bool:
    """True for arithmetic on whole numbers and for comparisons of them, and for a branch between such."""
    asks = isinstance(bind.rhs, f.If) or (isinstance(bind.rhs, f.Op) and all(a.ty in ASKED for a in bind.rhs.args))
    return asks and all(var.ty in ASKED for var in bind.vars)


def choice(rhs: f.Rhs, params: tuple[f.Var, ...]) -> int | None:
    """The number of the parameter whose constructor chooses among arms."""
    if isinstance(rhs, f.Switch) and isinstance(rhs.scrutinee.ty, f.Data) and rhs.scrutinee in params:
        return params.index(rhs.scrutinee)
    return None


def decided(callee: f.Fn, args: tuple[f.Atom, ...]) -> tuple[f.Atom, ...] | None:
    """The results of a call, if the callee first tests an argument for null, this argument is null, and it then
    only returns."""
    match callee.body:
        case f.Block((f.Bind((q,), f.Op("is_null", (asked,))), f.Bind(vars_, f.If(cond, then))), results):
            given = {p.name: a for p, a in zip(callee.params, args, strict=True)}
            if cond == q and results == vars_ and not then.binds and isinstance(asked, f.Var):
                argument = given.get(asked.name)
                if isinstance(argument, f.Const) and argument.value is None:
                    return tuple([given[r.name] if isinstance(r, f.Var) else r for r in then.results])
        case _:
            pass
    return None


def is_straight(fn: f.Fn, others: Mapping[str, f.Fn]) -> bool:
    """True for a function that only computes numbers from numbers and chooses among them, and calls others that do.
    Those that compute whole numbers alone, as random generators do, stay calls."""
    called = [others.get(bind.rhs.fn) for bind in every(fn.body) if isinstance(bind.rhs, f.Call)]
    binds = [*every(fn.body), *(bind for other in called if other for bind in every(other.body))]
    made = [var.ty for bind in binds for var in bind.vars]
    floats = all(f.is_float(ty) or ty == f.BOOL or isinstance(ty, f.Tup) for ty in made)
    costly = any(isinstance(bind.rhs, f.Op) and bind.rhs.op in elementary.NAMES for bind in binds)
    short = len(binds) <= STRAIGHT and None not in called
    return short and (floats or costly) and computes_or_chooses(fn.body, is_on_numbers)


def computes_or_chooses(block: f.Block, also: Callable[[f.Bind], bool]) -> bool:
    """True for a block that computes numbers from numbers or does what may be done `also`, and for branches whose arms
    do hardly more than choose one."""
    return all(is_on_numbers(bind) or also(bind) or calls_or_chooses(bind.rhs, bind, also) for bind in block.binds)


def calls_or_chooses(rhs: f.Rhs, bind: f.Bind, also: Callable[[f.Bind], bool]) -> bool:
    match rhs:
        case f.Call(_, args):
            return all(isinstance(part.ty, f.Num) for part in (*bind.vars, *args))
        case f.If(_, then, else_):
            numbers = all(isinstance(var.ty, f.Num) for var in bind.vars)
            return numbers and all(has_at_most(CHOICE, arm) and computes_or_chooses(arm, also) for arm in (then, else_))
        case _:
            return False


def is_number(name: str, fns: Mapping[str, f.Fn], known: dict[str, bool]) -> bool:
    """True for a function that only computes numbers from numbers, with branches and without loops, and cannot fail:
    one call serves all that are alike, and may move before a loop.  `known` has what was found of others."""
    if name not in known:
        known[name] = False  # if it calls itself
        fn = fns[name]
        called = [bind.rhs.fn for bind in every(fn.body) if isinstance(bind.rhs, f.Call)]
        short = len(every(fn.body)) <= STRAIGHT and all(isinstance(p.ty, f.Num) for p in fn.params)
        known[name] = short and all(is_number(other, fns, known) for other in called) and only_numbers(fn.body, called)
    return known[name]


def only_numbers(body: f.Block, called: Sequence[str]) -> bool:
    """True for a block of numbers and branches that cannot fail, if the functions of these names are such blocks."""
    plain = [bind for bind in every(body) if not isinstance(bind.rhs, f.If)]
    return all(droppable(bind.rhs, called) and (isinstance(bind.rhs, f.Call) or is_on_numbers(bind)) for bind in plain)


def on_numbers(fn: f.Fn) -> bool:
    """True for a function without control that only computes numbers from numbers."""
    return all(map(is_on_numbers, fn.body.binds))


def is_on_numbers(bind: f.Bind) -> bool:
    """True for an operation, or a step of a tuple, that works on numbers and tuples alone."""
    parts = (*bind.vars, *atoms(bind.rhs))
    return isinstance(bind.rhs, f.Op | f.TupMake | f.TupGet) and all(isinstance(x.ty, f.Num | f.Tup) for x in parts)
