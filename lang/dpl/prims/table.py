"""The table of primitives: one row each.  Both engines read it; it imports no other module of DPL.

A row has the primitive's name, its type in DPL's own syntax (with a `where` clause for constraints), its documentation,
how to evaluate it on plain scalars, its derivative, and the function that native code calls for it.

**Types.**  `'a : num` is any number or array of numbers, `real` floats or arrays of floats, `scalar` no array,
`integer` integers; `data` has equality and order (no functions, no references), `diff` can be differentiated (the same
types).  `lift 'a 'b 'c`: 'c has the shape of the operand of higher rank, to which the other is lifted.  `pow`,
`matmul`, `append`, `convert 'a f64 'b` are the typing rules of those operations.

**Derivatives.**  `linear` has one entry for each argument: None (derivative zero), or a rule `(t, args, y) -> value`
written with Python's operators on `Val`s, linear in `t`.  One rule serves both modes: it maps the argument's tangent to
its contribution to the result's tangent, and the result's cotangent to its contribution to the argument's, because a
linear map of scalars is its own transpose.  Rules use other primitives, so they can be differentiated again.
`sharing` are such rules, too, for when all arguments have derivatives.

**Evaluation.**  `eval` takes Python ints, floats, bools; the caller must wrap integers and round floats to the row's
result type.  Rows without `eval` are structural: each engine implements them by name.

**Native code.**  Elementary functions are described once for all engines (`elementary/`).  `llvm` names a function of
the runtime library (`rt.lgamma`), which takes and returns doubles, or an intrinsic for every float type (`llvm.floor`).
"""

from __future__ import annotations

from collections.abc import Callable

from dpl.node import node


@node
class Row:
    name: str
    type: str
    doc: str
    eval: Callable | None = None
    linear: tuple[Callable | None, ...] | None = None
    llvm: str = ""  # the function that native code calls; without one, `emit/scalars/maths.py` writes instructions
    op: str = ""  # the operator that it implements
    public: bool = True  # in scope everywhere; others only as `Prim.name`, in the standard library
    pure: bool = True  # no effect, not even an error
    native: bool = True  # native code has it; else the interpreter runs the program
    outside: bool = False  # it asks or changes the world: files, the screen, the clock, processes
    own_digits: bool = False  # its last digits depend on the engine (docs/numbers.md)
    samples: tuple[tuple[float, ...], ...] = ()  # arguments at which the tests check the derivative
    aliases: tuple[str, ...] = ()
    sharing: tuple[Callable | None, ...] | None = None  # rules where all arguments have tangents, if these share work

    @property
    def arity(self) -> int:
        return arity(self.type)

    def rules(self, all_flow: bool) -> tuple[Callable | None, ...] | None:
        """The derivative's rules, where all arguments have tangents, or only some."""
        return self.sharing or self.linear if all_flow else self.linear

    @property
    def elementwise(self) -> bool:
        return self.eval is not None


def arity(type_: str) -> int:
    """The number of arguments of a row's type: its arrows outside parentheses."""
    depth = count = 0
    text = type_.split(" where ")[0]
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        count += depth == 0 and text.startswith("->", i)
    return count


class Val:
    """A wrapper around a value of an engine, so that rules can be written with operators.

    The engine's `world` has the methods `apply(name, *raw) -> raw` (applies a primitive), `literal(number, like) ->
    raw` (a number of the scalar type of `like`; it lifts to the shape of `like`) and `integer(value) -> raw`."""

    __slots__ = ("raw", "world")

    def __init__(self, world, raw) -> None:
        self.world = world
        self.raw = raw

    def of(self, other) -> Val:
        return other if isinstance(other, Val) else Val(self.world, self.world.literal(other, self.raw))

    def call(self, name: str, *others) -> Val:
        return Val(self.world, self.world.apply(name, self.raw, *(self.of(o).raw for o in others)))

    def __add__(self, o):
        return self.call("add", o)

    def __radd__(self, o):
        return self.of(o).call("add", self)

    def __sub__(self, o):
        return self.call("sub", o)

    def __rsub__(self, o):
        return self.of(o).call("sub", self)

    def __mul__(self, o):
        return self.call("mul", o)

    def __rmul__(self, o):
        return self.of(o).call("mul", self)

    def __truediv__(self, o):
        return self.call("div", o)

    def __rtruediv__(self, o):
        return self.of(o).call("div", self)

    def __neg__(self):
        return self.call("neg")

    def __lt__(self, o):
        return self.call("lt", o)

    def __le__(self, o):
        return self.call("le", o)

    def __gt__(self, o):
        return self.call("gt", o)

    def __ge__(self, o):
        return self.call("ge", o)

    def same(self, o):
        return self.call("eq", o)

    def both(self, o):
        return self.call("and", o)

    def either(self, o):
        return self.call("or", o)

    def where(self, cond: Val) -> Val:
        """`self` where `cond` holds, exactly 0 elsewhere."""
        return Val(self.world, self.world.apply("select", cond.raw, self.raw, self.of(0.0).raw))

    def unless(self, cond: Val) -> Val:
        """Exactly 0 where `cond` holds, `self` elsewhere."""
        return Val(self.world, self.world.apply("select", cond.raw, self.of(0.0).raw, self.raw))

    def integer(self, value: int) -> Val:
        """A scalar `int`."""
        return Val(self.world, self.world.integer(value))


def contribution(world, rule: Callable, t, args: tuple, y):
    """Apply a derivative rule in an engine's world."""
    return rule(Val(world, t), tuple(Val(world, a) for a in args), Val(world, y)).raw
