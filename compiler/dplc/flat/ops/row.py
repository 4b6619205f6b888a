"""The row of an operation: every property that a pass, the derivatives or the machine ask for, as a column.

    OPS["index"].fails          Fails.BOUNDS
    OPS["matmul"].derivative    linear in each of its two operands

The rows are in the files beside this one, `table.py` has them all.  Columns have no defaults: a new operation says all
of them, or is of a kind that does (`elementwise`, `string`, ...).  Three columns follow from others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, Flag, auto
from typing import Any, Protocol

from dpl.prims import Row as Primitive

from dplc.flat.term import Atom, Op, Type, Var

Dim = Atom | tuple[Var, int]
"""A dimension of an array: a number, or that of another array."""


class Fails(Enum):
    """When an operation fails: a run-time error of the program."""

    NEVER = "never"
    SHAPES = "when shapes do not agree, which the type checker or a check before it has seen to"
    ZERO = "when an integer is divided by zero"
    COUNT = "when its first operand, a count, is negative"
    BOUNDS = "when an index is out of bounds, unless attr `unchecked` is true"
    VALUES = "for some operands; only running it tells"
    CHECK = "to fail is what it is for"


class Effect(Flag):
    """What an operation does besides giving results, and what it sees besides its operands."""

    NONE = 0
    READ = auto()  # a reference is read,
    WRITE = auto()  # or written,
    NEW = auto()  # or made
    OUTPUT = auto()  # it prints
    APPEND = auto()  # text goes to the buffer,
    TAKE = auto()  # or leaves it
    LOAD = auto()  # a file is read,
    STORE = auto()  # or written
    CLOCK = auto()
    ENVIRONMENT = auto()  # the program's arguments, the environment's variables
    FOREIGN = auto()  # whatever a C function does
    EXIT = auto()
    COUNTERS = auto()  # of operations
    OWNERS = auto()  # reference counts


REFERENCE = Effect.READ | Effect.WRITE | Effect.NEW


class Rule(Enum):
    """Where the derivative of an operation comes from."""

    TABLE = "the primitive table has a rule for each operand"
    LINEAR = "it is linear in the operands `flows`; the transpose is in `ad/reverse/transpose.py`"
    ZERO = "none is needed: zero, or the derivative is taken by another pass"
    NONE = "there is none: a program that needs one is refused"


@dataclass(frozen=True, slots=True)
class Derivative:
    """What differentiation asks of an operation.

    flows       the operands whose tangents matter to the result's (None: all)
    bilinear    two operands in each of which it is linear, the other being fixed
    sums        operands that it adds up
    curved      operands in which it is not linear
    chooses     it gives one operand or another: what is not chosen gets nothing
    multiplies  its derivative multiplies the tangent by something: zero times infinity is not zero
    algebraic   its Taylor series is written out, not derived from its rule
    chain       the operand that changes from term to term if its rule leads to ever new ones, and by how much"""

    rule: Rule
    flows: tuple[int, ...] | None
    bilinear: tuple[int, ...]
    sums: tuple[int, ...]
    curved: tuple[int, ...]
    chooses: bool
    multiplies: bool
    algebraic: bool
    chain: tuple[int, int] | None


class Measure(Protocol):
    """Writes code that counts; `flat/operation_counts.py` has the one that does."""

    def elements(self, array: Atom) -> Atom:
        """How many there are; of null, none."""
        ...

    def dim(self, array: Atom, k: int) -> Atom: ...

    def made(self, array: Atom, dims: tuple[Atom, ...]) -> Atom:
        """How many elements of these dimensions are made if an array is null."""
        ...

    def op(self, name: str, left: Atom | int, right: Atom | int) -> Atom: ...

    def product(self, *factors: Atom | int) -> Atom: ...


Types = tuple[Type, ...]
Attrs = Mapping[str, Any]
DimOf = Callable[[Atom, int], Dim | None]

Result = Callable[[Types, Attrs], Types | None]
Second = Callable[[Types, Attrs], Type] | None
Dims = Callable[[DimOf, Op, int, int], Dim | None]
Solid = Callable[[Op, Callable[[Atom], bool]], bool]
Cost = Callable[[Measure, Op], Atom | int]


@dataclass(frozen=True, slots=True)
class Row:
    """`name` and `doc` (operands -> results; `k` is the rank of the array concerned), and the columns:

    scalar       the row of the primitive table, if it is one of its scalar operations
    elementwise  it works on numbers, and elementwise on arrays; operands of lower rank are lifted
    result       (types of operands, attrs) -> types of results; None: any
    second       (types of operands, attrs) -> the type that the second operand must have; None: nothing is asked
    dims         (dimension of an atom, operation, rank, k) -> dimension k of the result of that rank, if it is known

    own          the operands that it consumes, to reuse them in place when nobody else holds them; others are borrowed
    fresh        each result is to be changed in place: two that are equal are not shared
    solid        (operation, whether an atom is known not to be null) -> whether its result is not null
    changes      it stores to some elements of its first operand, and gives that
    accumulates  it adds to some elements of its first operand; if that is null, zeros of the lengths that follow the
                 second, as many as attr `rank` says
    reduces      a sum over elements, which the loop that makes them may do

    fails        when
    effects      which

    cost         (measure, operation) -> how many operations it counts as; an atom if that is computed
    cheap        computing it again costs less than keeping it
    light        it takes the same time whatever the size of its arrays
    short        of an array of numbers it looks at an element or a length, or it counts owners

    derivative

    pure         no effect, not even an error
    quiet        no effect, but it may fail
    repeatable   a second one with the same operands gives the same, so one is enough"""

    name: str
    doc: str
    scalar: Primitive | None
    elementwise: bool
    result: Result
    second: Second
    dims: Dims
    own: tuple[int, ...]
    fresh: bool
    solid: Solid
    changes: bool
    accumulates: bool
    reduces: bool
    fails: Fails
    effects: Effect
    cost: Cost
    cheap: bool
    light: bool
    short: bool
    derivative: Derivative
    pure: bool = field(init=False)
    quiet: bool = field(init=False)
    repeatable: bool = field(init=False)

    def __post_init__(self) -> None:
        quiet = self.effects is Effect.NONE
        object.__setattr__(self, "quiet", quiet)
        object.__setattr__(self, "pure", quiet and self.fails is Fails.NEVER)
        object.__setattr__(self, "repeatable", quiet and not self.fresh and self.fails is not Fails.CHECK)
