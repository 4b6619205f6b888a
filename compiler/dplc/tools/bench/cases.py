"""The functions of a file -> expressions that call them at arguments of any size, for `dpl bench`.

    let loss (w, b) = mean ((w * xs + b - ys) ** 2)   =>   Case("loss", "loss", ("(_real (n + 0), ...)",), (0,), ...)

The values are chosen as follows.

  type variables        floats; arrays if any differentiable data is allowed; integers if they are keys
  sizes                 `n`
  integers              half of `n`; in arrays, the index
  square matrices       symmetric and positive definite
  recursive data        balanced, with about `n` parts
  function arguments    smooth and elementwise: their Jacobians and Hessians are diagonal
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpl.core import ty
from dpl.core.term import LIST, Data
from dpl.node import node, replace
from dpl.types.solve.constraints import Lift, Matmul
from dpl.types.solve.meta import Meta, array, dimensions, prune
from dpl.types.solve.scheme import Scheme
from dpl.types.solve.scheme import replace as substituted
from dpl.types.solve.unify import Clash, Solver
from dpl.types.state.env import Exports, Value

OWN = "main"  # the module whose names need no qualification
SIZE = ty.Size(0, ((("n",), 1),))


@node
class Numbers:
    """Texts of numbers: a float that depends on an integer `@`, and an integer."""

    real: str = "_real (n + @)"
    whole: str = "n / 2"


GIVEN = Numbers()

Constructor = tuple[str, ty.Ty | None]


class Unmade(Exception):
    """No arguments can be made for a function, or it cannot be differentiated; the message says why."""


@node
class Case:
    """A call of `fn`: `args` are its arguments, `active` the positions of those that hold floats, `width` the largest
    number of dimensions of an argument."""

    name: str
    fn: str
    args: tuple[str, ...]
    active: tuple[int, ...]
    inline: tuple[int, ...]  # positions of those that hold functions: written at their use
    width: int


def cases(module: str, exports: Exports, maker: Maker) -> Iterator[tuple[str, Case | str]]:
    """Each definition of a module in order: its name, and its case or the reason why there is none."""
    for name, value in sorted(exports.values.items(), key=place):
        if isinstance(value, Value):
            shown = name if module == OWN else f"{module}.{name}"
            try:
                yield shown, case(shown, name, module, value, maker)
            except Unmade as why:
                yield shown, str(why)


def place(item: tuple[str, object]) -> int:
    value = item[1]
    return value.span.start if isinstance(value, Value) else 0


def case(shown: str, name: str, module: str, value: Value, maker: Maker) -> Case:
    args, result = signature(value.scheme, maker)
    if not args:
        raise Unmade("no function")
    if not maker.floats(result):
        raise Unmade("its result holds no floats")
    inline = tuple(i for i, arg in enumerate(args) if maker.functions(arg))
    active = tuple(i for i, arg in enumerate(args) if i not in inline and maker.floats(arg))
    if not active:
        raise Unmade("its arguments hold no floats")
    if maker.functions(result):
        raise Unmade("it gives a function")
    texts = tuple(maker.value(arg, str(7 * i)) for i, arg in enumerate(args))
    written = name if name[0].isalpha() or name[0] == "_" else f"( {name} )"
    fn = written if module == OWN else f"{module}.{written}"
    return Case(shown, fn, texts, active, inline, max(maker.width(arg) for arg in args))


def signature(scheme: Scheme, maker: Maker) -> tuple[list[ty.Ty], ty.Ty]:
    """The types of the arguments and of the result, at the chosen types and the size `n`.  Raises Unmade."""
    rest = prune(substituted(scheme.ty, chosen(scheme, Solver(maker.datas)), {}))
    args = []
    while isinstance(rest, ty.Fn):
        if isinstance(rest.eff, ty.Ctl):
            raise Unmade("it captures its caller's context")
        args.append(prune(rest.arg))
        rest = prune(rest.result)
    return args, rest


def chosen(scheme: Scheme, solver: Solver) -> dict[str, Any]:
    """The choice for each variable: a float; an array if it may be any differentiable data; a vector if it is
    multiplied by a matrix; or the type that follows from the other choices.  Raises Unmade."""
    others: dict[str, Any] = {"size": SIZE, "effect": ty.PURE}
    env = {p.name: others.get(p.sort) or solver.fresh(*scheme.classes.get(p.name, frozenset())) for p in scheme.params}
    env |= {lift.name: solver.fresh(*scheme.classes.get(lift.name, frozenset())) for lift in scheme.lifts}
    related = [c.mapped(lambda t: substituted(t, env, {})) for c in scheme.relations]
    try:
        for product in [c for c in related if isinstance(c, Matmul)]:
            left, right, _ = map(prune, product.types)
            if isinstance(left, ty.Arr) != isinstance(right, ty.Arr):
                known, factor = (left, right) if isinstance(left, ty.Arr) else (right, left)
                sizes, _ = dimensions(known)
                solver.unify(factor, ty.Arr(ty.F64, sizes[-1 if known is left else 0]))
        while decided := [c for c in list(related) if c.solve(solver, related.append)]:
            related = [c for c in related if c not in decided]
        for operation in [c for c in related if isinstance(c, Lift)]:  # operands of one type
            operation.default(solver, related.append)
    except Clash as clash:
        raise Unmade("its sizes do not fit at the size n") from clash
    chosen = {name: default(scheme, name, t) for name, t in env.items()}
    return chosen | dict.fromkeys((*counters(scheme), *keys(scheme)), ty.I64)


def default(scheme: Scheme, name: str, t: Any) -> Any:
    classes = scheme.classes.get(name, frozenset())
    if isinstance(prune(t), Meta):
        return ty.Arr(ty.F64, SIZE) if classes and classes <= {"diff", "active"} else ty.F64
    if isinstance(t, ty.Var | ty.Size | ty.Pure):
        return t
    sizes, inner = dimensions(t)
    return array(sizes, ty.F64) if isinstance(inner, Meta) else t


def counters(scheme: Scheme) -> Iterator[str]:
    """The type variables of arguments that may be any scalar number, if another argument holds floats.  Such an
    argument is probably a count; if not, an integer does no harm."""
    args, _ = unfolded(scheme.ty)
    parts = [part for arg in args for part in reached(arg)]
    reals = [name for name, classes in scheme.classes.items() if "real" in classes]
    if any(part.name in (*ty.FLOATS, *reals) for part in parts if isinstance(part, ty.Con | ty.Var)):
        for arg in args:
            if isinstance(arg, ty.Var) and arg.name not in reals:
                if {"num", "scalar"} <= scheme.classes.get(arg.name, frozenset()):
                    yield arg.name


def keys(scheme: Scheme) -> Iterator[str]:
    """The type variables of arguments that are only compared, and that also occur in pairs inside another argument:
    keys."""
    args, result = unfolded(scheme.ty)
    pairs = [part for arg in args for part in reached(arg) if isinstance(part, ty.Tup)]
    held = {prune(item) for pair in pairs for item in pair.items} - set(reached(result))
    for arg in args:
        if isinstance(arg, ty.Var) and arg in held and scheme.classes.get(arg.name) == {"data"}:
            yield arg.name


def unfolded(t: ty.Ty) -> tuple[list[ty.Ty], ty.Ty]:
    """The arguments and the result of a function."""
    args, rest = [], prune(t)
    while isinstance(rest, ty.Fn):
        args.append(prune(rest.arg))
        rest = prune(rest.result)
    return args, rest


def reached(t: ty.Ty) -> Iterator[ty.Ty]:
    """The parts of a type, itself included, without those inside functions."""
    yield t
    if not isinstance(t, ty.Fn):
        for part in ty.children(t):
            if not isinstance(part, ty.Size):
                yield from reached(prune(part))


class Maker:
    """Writes expressions for values of any type.  `helpers` are the definitions that these need."""

    def __init__(self, datas: Mapping[str, Data]) -> None:
        self.datas = datas
        self.helpers: list[str] = []
        self.named: dict[ty.Ty, str] = {}
        self.making: ty.Ty | None = None  # the recursive type whose helper is being written
        self.open: list[ty.Ty] = []  # the other data types being written

    # ---- properties of types

    def parts(self, t: ty.Ty) -> list[ty.Ty]:
        """The types of the direct parts of a value of this type; functions have none.  Raises Unmade for references."""
        match t:
            case ty.Tup(items):
                return list(items)
            case ty.Arr(elem):
                return [elem]
            case ty.Con("ref"):
                raise Unmade("it is given or gives a reference")
            case ty.Con():
                return [arg for _, arg in self.constructors(t) if arg is not None]
            case _:
                return []

    def constructors(self, t: ty.Con) -> list[Constructor]:
        data = LIST if t.name == "list" else self.datas.get(t.name)
        if data is None:
            return []
        env = dict(zip((p.name for p in data.params), t.args, strict=True))
        return [(name, None if arg is None else ty.substitute(arg, env)) for name, arg in data.cases]

    def within(self, t: ty.Ty) -> set[ty.Ty]:
        """The types of all parts of a value of this type, itself included.  Raises Unmade if one is unknown."""
        seen: set[ty.Ty] = set()
        todo = [t]
        while todo:
            part = prune(todo.pop())
            if isinstance(part, Meta):
                raise Unmade("its type is not known")
            if part not in seen:
                seen.add(part)
                todo += self.parts(part)
        return seen

    def floats(self, t: ty.Ty) -> bool:
        return any(isinstance(part, ty.Con) and part.name in ty.FLOATS for part in self.within(t))

    def functions(self, t: ty.Ty) -> bool:
        return any(isinstance(part, ty.Fn) for part in self.within(t))

    def width(self, t: ty.Ty) -> int:
        """The number of dimensions of size n in a value of this type."""
        match prune(t):
            case ty.Arr(elem, size):
                return bool(size.terms) + self.width(elem)
            case ty.Con("list", (elem,)) if not isinstance(elem, ty.Size):
                return 1 + self.width(elem)
            case ty.Con():
                return max((self.width(p) for p in self.parts(t) if t not in self.within(p)), default=0)
            case ty.Tup(items):
                return max(map(self.width, items), default=0)
            case _:
                return 0

    # ---- values

    def value(self, t: ty.Ty, at: str, numbers: Numbers = GIVEN) -> str:
        """An expression of type `t`.  `at` is an integer expression that distinguishes its numbers from others.  Raises
        Unmade."""
        t = prune(t)
        match t:
            case ty.Con(name) if name in ty.FLOATS:
                made = numbers.real.replace("@", at)
                return f"({made})" if t == ty.F64 else f"({name} ({made}))"
            case ty.Con("i64"):
                return f"({numbers.whole})"
            case ty.Con(name) if name in ty.INTS:
                return f"({name} ({at}))"
            case ty.Con("bool"):
                return "true"
            case ty.Con("string"):
                return '"word"'
            case ty.Tup(items):
                return "(" + ", ".join(self.value(item, f"{at} + {i}", numbers) for i, item in enumerate(items)) + ")"
            case ty.Arr(elem, size):
                return self.array(elem, self.length(elem, size), at, numbers)
            case ty.Con("list", (elem,)) if not isinstance(elem, ty.Size):
                return f"(List.of_array {self.array(elem, self.length(elem, SIZE), at, numbers)})"
            case ty.Con():
                return self.constructed(t, at, numbers)
            case ty.Fn():
                return self.function(t, at)
            case _:
                raise Unmade(f"no value of type {t} can be made")

    def array(self, elem: ty.Ty, length: str, at: str, numbers: Numbers) -> str:
        index = index_at(at)
        if elem == ty.Arr(ty.F64, SIZE) and length == self.length(ty.F64, SIZE) and numbers.real == GIVEN.real:
            return f"(_matrix (n + {at}) n)"
        inner = self.value(elem, f"({at}) * 31 + {index}", replace(numbers, whole=index))
        return f"[for {index} < {length} -> {inner}]"

    def length(self, elem: ty.Ty, size: ty.Size) -> str:
        """The text of an array's length.  Inside a value of a recursive type, an array of that type has length two."""
        if self.making and self.making in self.within(elem):
            return "2"
        terms = [" * ".join([str(count), *("n" for _ in names)]) for names, count in size.terms]
        return " + ".join([*terms, str(size.const)]) if size.const or not terms else " + ".join(terms)

    def constructed(self, t: ty.Con, at: str, numbers: Numbers) -> str:
        if t == self.making:
            return f"({self.named[t]} (depth - 1) (2 * ({at})) n)"
        if not self.recursive(t):
            if t in self.open:
                raise Unmade("it holds functions that give such data again")
            self.open.append(t)
            made = self.applied(t, self.richest(self.constructors(t)), at, numbers)
            self.open.pop()
            return made
        if numbers.real != GIVEN.real or self.making:
            raise Unmade("recursive data inside of other recursive data, or given by a function, cannot be made")
        if t not in self.named:
            self.define(t)
        return f"({self.named[t]} {self.depth(t)} ({at}) n)"

    def recursive(self, t: ty.Ty) -> bool:
        return any(t in self.within(part) for part in self.parts(t))

    def define(self, t: ty.Con) -> None:
        """Define a helper that makes recursive data of a given depth.  Raises Unmade if the recursion cannot end."""
        ends = [c for c in self.constructors(t) if c[1] is None or t not in self.within(c[1])]
        if not ends:
            raise Unmade(f"no {t.name} without another in it")
        self.named[t], self.making = f"_make_{len(self.named)}", t
        end, more = (self.applied(t, c, "k", GIVEN) for c in (self.richest(ends), self.branching(t)))
        self.making = None
        head = f"let rec {self.named[t]} (depth : int) (k : int) (n : int) ="
        self.helpers.append(f"{head} if depth <= 0 then {end} else {more}")

    def branching(self, t: ty.Con) -> Constructor:
        return max(self.constructors(t), key=lambda c: self.occurrences(t, c[1]))

    def occurrences(self, t: ty.Ty, within: ty.Ty | None) -> int:
        """The number of values of type `t` directly inside one of type `within`; arrays and lists count twice."""
        match within:
            case None:
                return 0
            case ty.Tup(items):
                return sum(self.occurrences(t, item) for item in items)
            case ty.Arr(elem) | ty.Con("list", (ty.Con() | ty.Tup() | ty.Arr() as elem,)):
                return 2 * self.occurrences(t, elem)  # pyrefly: ignore[bad-argument-type]  (of a list: no size)
            case _:
                return int(t == within or t in self.within(within))

    def depth(self, t: ty.Con) -> str:
        """The text of the depth at which recursive data has about n parts."""
        return "n" if self.occurrences(t, self.branching(t)[1]) < 2 else "(int (log2 (float n)))"

    def richest(self, constructors: Sequence[Constructor]) -> Constructor:
        return max(constructors, key=lambda c: (c[1] is not None and self.floats(c[1]), c[1] is not None))

    def applied(self, t: ty.Con, constructor: Constructor, at: str, numbers: Numbers) -> str:
        name, arg = constructor
        data = self.datas[t.name]
        module = t.name.rpartition(".")[0]
        prefix = "" if module in (OWN, "Prelude") else f"{module}."
        if data.fields:
            items = arg.items if isinstance(arg, ty.Tup) and len(data.fields) > 1 else (arg,)
            made = (self.value(item, f"{at} + {i}", numbers) for i, item in enumerate(items) if item is not None)
            record = "{ " + "; ".join(f"{field} = {v}" for field, v in zip(data.fields, made, strict=True)) + " }"
            given = f"({', '.join('_' for _ in t.args)}) " if t.args else ""
            return f"({record} : {given}{t.name})" if prefix else record  # from a module not opened
        return f"{prefix}{name}" if arg is None else f"({prefix}{name} {self.value(arg, at, numbers)})"

    # ---- functions

    def function(self, t: ty.Fn, at: str) -> str:
        """The text of a smooth function: each float of its result is a sum of sines of its arguments."""
        args, result = unfolded(t)
        params = [f"x{i}" for i in range(len(args))]
        outer = f"[{index_at(at)}]" if isinstance(result, ty.Arr) and result.size == SIZE else ""
        terms = [
            self.term(arg, name, f"0.{i + 4}", outer) for i, (arg, name) in enumerate(zip(args, params, strict=True))
        ]
        total = " + ".join(["0.1", *filter(None, terms)])
        numbers = Numbers(f"{total} + sin (0.01 * float (@))")
        made = f"{total} > 1.0" if result == ty.BOOL else self.value(result, at, numbers)
        return f"(fun {' '.join(params)} -> {made})"

    def term(self, t: ty.Ty, name: str, scale: str, outer: str) -> str:
        """The term that a parameter adds to each float; a vector adds its element at the same position."""
        if t == ty.I64:
            return f"sin (0.001 * float {name})"
        if t == ty.F64 or (t == ty.Arr(ty.F64, SIZE) and outer):
            return f"sin ({scale} * {name}{'' if t == ty.F64 else outer})"
        if t == ty.Arr(ty.F64, SIZE):
            return f"mean (sin ({scale} * {name}))"
        if self.floats(t) and not self.functions(t):
            return f"sin ({scale} * sum (Tree.flatten {name}))"
        return ""


def index_at(at: str) -> str:
    """A new index name: one that is not in `at`, which has the indices of the enclosing arrays."""
    return f"i{at.count('i')}"
