"""The row of an operation.  Each property that a pass, differentiation or code generation needs is a column.

    OPS["index"].fails          Fails.BOUNDS
    OPS["matmul"].derivative    linear in each of its two operands

The rows are in the files beside this one; `table.py` has them all.  Columns have no defaults: a row gives all of them,
or is made by a function that gives some (`scalar`, `array`, `reference`, ...).  The last three columns follow from
others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, Flag, auto
from typing import Any, Protocol

from dpl.node import field, node
from dpl.prims import Row as Primitive

from dplc.flat.term import Atom, Op, Type, Var

Dim = Atom | tuple[Var, int]
"""A dimension of an array: a number, or that of another array."""


class Fails(Enum):
    """The conditions under which an operation ends the program with a run-time error."""

    NEVER = "never"
    SHAPES = "when shapes do not agree, which the type checker or a check before it has seen to"
    ZERO = "when an integer is divided by zero"
    COUNT = "when its first operand, a count, is negative"
    BOUNDS = "when an index is out of bounds, unless attr `unchecked` is true"
    VALUES = "for some operands; only running it tells"
    CHECK = "to fail is what it is for"


class Effect(Flag):
    """The effects of an operation: what it changes besides its results, and what it reads besides its operands."""

    NONE = 0
    READ = auto()  # it reads a reference
    WRITE = auto()  # it writes a reference
    NEW = auto()  # it makes a reference
    OUTPUT = auto()  # it prints
    APPEND = auto()  # it adds text to the buffer
    TAKE = auto()  # it takes the text from the buffer
    LOAD = auto()  # it reads a file
    STORE = auto()  # it writes a file
    CLOCK = auto()
    ENVIRONMENT = auto()  # the program's arguments, the environment's variables
    FOREIGN = auto()  # it calls a C function, which may do anything
    EXIT = auto()
    COUNTERS = auto()  # it reads or changes operation counts
    OWNERS = auto()  # it changes reference counts


REFERENCE = Effect.READ | Effect.WRITE | Effect.NEW


class Rule(Enum):
    """The source of an operation's derivative."""

    TABLE = "the primitive table has a rule for each operand"
    LINEAR = "it is linear in the operands `flows`; the transpose is in `ad/reverse/transpose.py`"
    ZERO = "none is needed: zero, or the derivative is taken by another pass"
    NONE = "there is none: a program that needs one is refused"


@node
class Derivative:
    """The properties of an operation that differentiation needs.

    flows       the operands whose tangents affect those of the results (None: all)
    bilinear    two operands; it is linear in each of them while the other is fixed
    sums        operands that it adds up
    curved      operands in which it is not linear
    chooses     it returns one of its operands; the others get no cotangent
    multiplies  its derivative multiplies the tangent by a factor, and zero times infinity is not zero
    algebraic   its Taylor series is written out, not derived from its rule
    chain       (operand, step): its rule leads to terms without end, each with this operand changed by the step"""

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
    """An interface to emit code that counts.  `flat/operation_counts.py` implements it."""

    def elements(self, array: Atom) -> Atom:
        """The number of elements of an array; 0 for null."""
        ...

    def dim(self, array: Atom, k: int) -> Atom:
        """The length of an array in dimension `k`."""
        ...

    def made(self, array: Atom, dims: tuple[Atom, ...]) -> Atom:
        """The number of elements allocated for an array of these dimensions if `array` is null; else 0."""
        ...

    def op(self, name: str, left: Atom | int, right: Atom | int) -> Atom:
        """An operation on numbers of operations."""
        ...

    def product(self, *factors: Atom | int) -> Atom:
        """The product of some lengths."""
        ...


Types = tuple[Type, ...]
Attrs = Mapping[str, Any]
DimOf = Callable[[Atom, int], Dim | None]

Result = Callable[[Types, Attrs], Types | None]
Second = Callable[[Types, Attrs], Type] | None
Dims = Callable[[DimOf, Op, int, int], Dim | None]
Solid = Callable[[Op, Callable[[Atom], bool]], bool]
Positive = Solid
Cost = Callable[[Measure, Op], Atom | int]


@node
class Row:
    """`name` and `doc` (operands -> results; `k` is the rank of the array concerned), and the columns:

    scalar       the row of the primitive table, if it is one of its scalar operations
    elementwise  it works on numbers, and elementwise on arrays; operands of lower rank are lifted
    result       (types of operands, attrs) -> types of results; None: any
    second       (types of operands, attrs) -> the type that the second operand must have; None: any type
    dims         (dimension of an atom, operation, rank, k) -> dimension k of the result of that rank, if it is known

    own          the operands that it consumes, and reuses in place if they have no other owner; the others are borrowed
    fresh        its result will be changed in place, so equal results must not be shared
    solid        (operation, test if an atom is known not to be null) -> true if its result is not null
    changes      it stores to some elements of its first operand, and returns that operand
    accumulates  it adds to some elements of its first operand; if that is null, zeros of the lengths that follow the
                 second, as many as attr `rank` says
    reduces      it sums elements, so it can be fused into the loop that computes them
    reads        its array operands may lie in the stack frame: it reads elements and lengths, or counts owners
    views        its result is a part of its first operand, not a copy
    framed       code generation can put its result into the stack frame
    spread       a team of threads shares the work of writing its elements (`machine/cuda/team.py`)
    keeps        it chooses one of two numbers: the comparison that is true where it chooses the first; else empty
    finds        it finds the place of an element: the operation that chooses this element of two; else empty
    sign         (factor, less): of whole numbers a and b it is true where factor * (a - b) - less is 0 or greater; else
                 None
    positive     (operation, test if no number in an atom is -0.0) -> true if none in its result is

    fails        when it ends the program with an error
    compares     it fails unless its two operands, or their shapes, are equal
    effects      what it changes besides its results, and reads besides its operands
    shared       it uses what all threads share, so only one of them may do it at a time

    cost         (measure, operation) -> how many operations it counts as; an atom if that is computed
    cheap        computing it again costs less than keeping it
    quick        on numbers, it takes an instruction or a few, none slower than a division or a root
    cubic        its time grows with the third power of the lengths of its arrays
    light        its time does not depend on the sizes of its arrays
    loops        its code has a loop over elements in place; others call the runtime library for that
    short        it takes the time of an instruction or a few, on an array of numbers and indices

    derivative   its source and its properties

    pure         it has no effects and cannot fail
    quiet        it has no effects; it may fail
    repeatable   repeated with the same operands, it gives the same results, so one is enough"""

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
    reads: bool
    views: bool
    framed: bool
    spread: bool
    keeps: str
    finds: str
    sign: tuple[int, int] | None
    positive: Positive
    compares: bool
    fails: Fails
    effects: Effect
    shared: bool
    cost: Cost
    cheap: bool
    quick: bool
    cubic: bool
    light: bool
    loops: bool
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
