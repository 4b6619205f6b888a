"""Flat: the first-order IR.  Functions are named, with several parameters and several results.  Control is structured,
and every value has a name (A-normal form).  Closures have become data.  Types have no sizes: arrays carry them at run
time.

A block is a list of bindings and a tuple of results.  Inner blocks see the variables of the outer ones.  Variable names
are unique within a function.

    fn f(x: f64, n: i64) -> (f64)
      y = mul x x
      (r) = for i < n state (s = y) { t = mul s x; yield t }
      return r

Two conventions about zeros, for derivatives (`ad/`): a value of type Arr or Data that stands for a tangent or cotangent
may be *null*, meaning zero of any shape; only operations whose documentation says so accept null.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeVar

from dpl.node import field, node, record
from dpl.source import NOWHERE, Span

T = TypeVar("T")

# ---- types ------------------------------------------------------------------------------------------------------


@node
class Num:
    """`bool i8 ... i64 u8 ... u64 f16 f32 f64`"""

    name: str


@node
class Str:
    pass


@node
class Tup:
    """Unboxed.  () is unit."""

    items: tuple[Type, ...]


@node
class Arr:
    """Row-major, `rank` >= 1 dimensions; the element is never itself an Arr (Tup or Data may contain one)."""

    elem: Type
    rank: int


@node
class Data:
    """A boxed sum, declared in `Program.datas`."""

    name: str


@node
class Ref:
    elem: Type


@node
class Res:
    """The residual of one `Ad` site: the values that reverse mode keeps for the pullback.  `ad/` replaces it by a real
    type (`Program.residuals`)."""

    site: str


Type = Num | Str | Tup | Arr | Data | Ref | Res
BOOL, I64, F64, F32, UNIT, STR = Num("bool"), Num("i64"), Num("f64"), Num("f32"), Tup(()), Str()


def is_float(ty: Type) -> bool:
    """True for the types that have a derivative: f16, f32, f64."""
    return isinstance(ty, Num) and ty.name in ("f16", "f32", "f64")


# ---- atoms ------------------------------------------------------------------------------------------------------


@node
class Var:
    name: str
    ty: Type

    def __eq__(self, other: object) -> bool:
        """Of all nodes these are compared most, and most have other names."""
        return self is other or (isinstance(other, Var) and self.name == other.name and self.ty == other.ty)

    def __hash__(self) -> int:
        return hash(self.name)


@node
class Const:
    """A number, boolean, string; unit is Const((), UNIT); null is Const(None, ty) of type Arr or Data."""

    value: int | float | bool | str | tuple | None
    ty: Type


Atom = Var | Const


# ---- right-hand sides -------------------------------------------------------------------------------------------


@node
class Op:
    """A primitive operation (`flat/ops` has the list, with types and effects).

    Scalar rows of the primitive table are operations under their own names.  On arrays they work elementwise;
    operands of lower rank are lifted over the leading dimensions.  `attrs` holds static data, as (name, value)
    pairs."""

    op: str
    args: tuple[Atom, ...]
    attrs: tuple[tuple[str, object], ...] = ()
    span: Span = NOWHERE

    def attr(self, name: str, default: Any = None) -> Any:
        """The attribute of this name, or the default."""
        for key, value in self.attrs:
            if key == name:
                return value
        return default


@node
class Call:
    fn: str
    args: tuple[Atom, ...]
    span: Span = NOWHERE


@node
class Ad:
    """A derivative still to be taken: of the *first* result of `fn` by its *last* argument.  The other arguments (the
    captures of a closure) are constants.  The other results (the new contents of stores) are returned as they are.

    jvp: args = (captured ..., x, dx), binds (y, dy, others ...); dx and dy have the types of x and y.
    jet: args = (captured ..., n, x), x a float, binds (y, an array of the Taylor coefficients from y on, others ...).
    vjp: args = (captured ..., x), binds (y, residual : Res(site), others ...).
    pullback: args = (residual, dy), binds (dx); `fn` is the one in the vjp of the same site."""

    mode: Literal["jvp", "jet", "vjp", "pullback"]
    fn: str
    args: tuple[Atom, ...]
    site: str
    span: Span = NOWHERE


@node
class TupMake:
    items: tuple[Atom, ...]


@node
class TupGet:
    tup: Atom
    index: int


@node
class ConMake:
    """A value of a Data type: constructor number `tag` with its payload (None for a nullary constructor)."""

    data: str
    tag: int
    arg: Atom | None


@node
class If:
    cond: Atom
    then: Block
    else_: Block


@node
class Case:
    """One arm of a Switch.  `payload` is bound to the constructor's argument (None: unused, or nullary)."""

    tag: int
    payload: Var | None
    body: Block


@node
class Switch:
    """A branch on the constructor of a Data value, or on an integer (then `tag` is its value).  `default` may be None
    if the cases cover everything."""

    scrutinee: Atom
    cases: tuple[Case, ...]
    default: Block | None


@node
class For:
    """`state` starts as `inits` and becomes the body's results for `index` = 0 .. count - 1.  Binds the last state.

    With `collect` = k > 0, the body has k more results, which are collected: the loop also binds one array of their
    tuples (type Arr(Tup(...), 1), a 1-tuple included), of length `count`."""

    index: Var
    count: Atom
    state: tuple[Var, ...]
    inits: tuple[Atom, ...]
    body: Block
    collect: int = 0


@node
class While:
    """Like For, while `cond` (a block over the state with one boolean result) holds.  The length of the collected array
    is the number of steps."""

    state: tuple[Var, ...]
    inits: tuple[Atom, ...]
    cond: Block
    body: Block
    collect: int = 0


@node
class Build:
    """Arrays of the body's results, for `index` = 0 .. count - 1; binds one array for each result (a result that is an
    array of rank k gives one of rank k + 1; inner shapes must agree: a run-time error otherwise).

    Without steps, the inner shapes come from `inner`, for each result.  They are 0 if it has none."""

    index: Var
    count: Atom
    body: Block
    span: Span = NOWHERE
    inner: tuple[tuple[Atom, ...], ...] = ()


@node
class Map:
    """Elementwise operations fused into one loop (`passes/arrays/fuse.py`): `params`, scalars, run over the elements of
    `inputs`, which are lifted to the highest rank among them; `body` holds scalar operations only.

    Binds a value for each result of the body: `ranks[i]` is the rank that the array of these results is summed down to
    over its leading dimensions (0: a scalar), or that of the inputs if it is kept whole.  Owns the inputs."""

    params: tuple[Var, ...]
    inputs: tuple[Atom, ...]
    body: Block
    ranks: tuple[int, ...]
    span: Span = NOWHERE


@node
class Out:
    """What a Par makes of one result of its points; the space has r dimensions.

    keep    an array of all values: the dimensions of the space, then those of the value.  If there are no points, the
            dimensions of a value are `inner`.  `target` is an array of this shape that may be overwritten: the body
            only reads its element at the own point.  With `order`, dimension d of the array is number
            order[d] of these: points keep numbers that do not lie side by side.
    fold    the sum of the values over the leading dimensions, until `rank` are left; 0 < rank < r means sums of rows.
            A sum that is `kept` is an array of one element, which may stay on a device
    add     `target` (null: zeros) with what the points add to it.  In the body it is called `acc`, and all that happens
            to it there is that something is added; the result is `acc` after that.  If it is null and nothing is added,
            a later operation gives it the lengths `inner`, if they are told.
    done    whether a device has done all points.  If not, all results are zero or null: the host does not do them.  If
            it is `kept`, a device does them however few they are: what they read is there.  With `team`, there is one
            point, which threads of a device do together (`passes/device/team_steps.py`).
    last    the values are places in an array of length `inner`: for each place, one more than the number of the last
            point that gives it, or 0.  Only in a Par that tells whether a device has done it."""

    kind: Literal["keep", "fold", "add", "done", "last"]
    rank: int = 0
    target: Atom | None = None
    acc: Var | None = None
    inner: tuple[Atom, ...] = ()
    kept: bool = False
    team: bool = False
    order: tuple[int, ...] = ()

    def ordered(self, dims: Sequence[T]) -> list[T]:
        """What there is for each dimension of the space, and then of the value, in the order of the array's.
        Those of Pars around come first."""
        around = len(dims) - len(self.order)
        return [*dims[:around], *[dims[around + k] for k in self.order]]


@node
class Par:
    """All points of an index space, in any order; binds one variable for each of `outs`, which are in the order of the
    body's results.  `space` has indices and their counts, outermost first; counts do not depend on indices.

    The body has no state and no effects, but it may fail: then the point that comes first fails.  `ordered` are those
    whose points have effects: they run one after the other."""

    space: tuple[tuple[Var, Atom], ...]
    body: Block
    outs: tuple[Out, ...]
    span: Span = NOWHERE
    ordered: bool = False


Rhs = Op | Call | Ad | TupMake | TupGet | ConMake | If | Switch | For | While | Build | Map | Par


@node
class Bind:
    vars: tuple[Var, ...]
    rhs: Rhs


@node
class Block:
    """`facts` keeps what analyses found out about the block (`flat/remembered.py`)."""

    binds: tuple[Bind, ...]
    results: tuple[Atom, ...]
    facts: dict[Any, Any] = field(init=False, compare=False)


# ---- programs ---------------------------------------------------------------------------------------------------


@node
class DataDecl:
    """Payload types by tag (None: nullary); `names` of the constructors, for dumps."""

    name: str
    payloads: tuple[Type | None, ...]
    names: tuple[str, ...] = ()


@node
class Fn:
    """`label` is its name in messages (`loss`), empty for functions made by the compiler.  `borrowed` numbers the
    parameters whose owners stay with the caller; `passes/memory` sets it."""

    name: str
    params: tuple[Var, ...]
    results: tuple[Type, ...]
    body: Block
    label: str = ""
    span: Span = NOWHERE
    borrowed: tuple[int, ...] = ()


@node
class Rule:
    """A custom derivative of a function.  The function has parameters (captured ..., x) and one result.

    vjp: `fn(captured ..., x) -> (y, k)`, and `pullback(k, dy) -> (dx)` applies the pullback k.
    jvp: `fn(captured ..., x, dx) -> (y, dy)`.
    A tangent has the type of its primal.  The captures are the same as the function's."""

    kind: Literal["vjp", "jvp"]
    fn: str
    pullback: str = ""


@record
class Program:
    """`main` has no parameters and no results.  `exports` are functions for callers outside, after `main` has run.
    `checkpoints` names functions whose reverse mode recomputes instead of storing; `rules` has custom derivatives of
    functions."""

    fns: dict[str, Fn] = field(default_factory=dict)
    datas: dict[str, DataDecl] = field(default_factory=dict)
    residuals: dict[str, Type] = field(default_factory=dict)
    checkpoints: set[str] = field(default_factory=set)
    rules: dict[str, Rule] = field(default_factory=dict)
    main: str = "main"
    exports: dict[str, str] = field(default_factory=dict)

    @property
    def roots(self) -> list[str]:
        """The functions that can be called from outside."""
        return [self.main, *self.exports.values()]

    def copy(self) -> Program:
        """A copy of the program.  It stays as it is when functions of this one are replaced."""
        return Program(
            dict(self.fns), dict(self.datas), dict(self.residuals), set(self.checkpoints), dict(self.rules), self.main,
            dict(self.exports),
        )  # fmt: skip


class Supply:
    """Fresh names."""

    def __init__(self) -> None:
        self.count = 0

    def fresh(self, hint: str) -> str:
        """A name that no other has: the hint up to its first point, and a number."""
        self.count += 1
        return f"{hint.split('.')[0] or 'v'}.{self.count}"
