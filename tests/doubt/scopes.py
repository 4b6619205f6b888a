"""The types of random programs, and scopes: what an expression may use where it stands."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Ty:
    """A type: `name` is a scalar's, that of a declared type, or one of `* -> [] list option ref`.

    An array has its `size`, a function that may `shift` the type of the `answer` it needs around it.
    """

    name: str
    args: tuple[Ty, ...] = ()
    size: int = 0
    answer: Ty | None = None

    def __str__(self) -> str:
        match self.name:
            case "*":
                return "(" + " * ".join(map(str, self.args)) + ")"
            case "->":
                arrow = f"-{{ctl {self.answer}}}->" if self.answer else "->"
                return f"({self.args[0]} {arrow} {self.args[1]})"
            case "[]":
                return array_text(self)
        return " ".join((*map(str, self.args), self.name))


def array_text(ty: Ty) -> str:
    sizes = []
    while ty.name == "[]":
        sizes.append(str(ty.size))
        ty = ty.args[0]
    return f"({ty})[{', '.join(sizes)}]" if ty.args else f"{ty}[{', '.join(sizes)}]"


FLOAT, F32, INT, BOOL, STRING, UNIT = map(Ty, ("float", "f32", "int", "bool", "string", "unit"))
PARAMETER = Ty("'a")  # of declared types that have one


def tuple_of(*items: Ty) -> Ty:
    return Ty("*", items)


def array(item: Ty, size: int) -> Ty:
    return Ty("[]", (item,), size)


def list_of(item: Ty) -> Ty:
    return Ty("list", (item,))


def option(item: Ty) -> Ty:
    return Ty("option", (item,))


def ref(item: Ty) -> Ty:
    return Ty("ref", (item,))


def function(a: Ty, b: Ty, answer: Ty | None = None) -> Ty:
    return Ty("->", (a, b), answer=answer)


def rank(ty: Ty) -> int:
    """Of an array of floats; 0 for all else."""
    found = 0
    while ty.name == "[]":
        found, ty = found + 1, ty.args[0]
    return found if ty == FLOAT else 0


@dataclass(frozen=True)
class Declared:
    """A type of the program's own: a record with fields, or data with constructors and what they hold, if anything."""

    name: str
    parts: tuple[tuple[str, Ty | None], ...]
    is_record: bool = False
    parametric: bool = False

    def __str__(self) -> str:
        head = f"type {PARAMETER} {self.name}" if self.parametric else f"type {self.name}"
        if self.is_record:
            return f"{head} = {{ {'; '.join(f'{field} : {ty}' for field, ty in self.parts)} }}"
        return f"{head} = {' | '.join(c if ty is None else f'{c} of {ty}' for c, ty in self.parts)}"

    @property
    def is_recursive(self) -> bool:
        return any(ty is not None and mentions(ty, self.name) for _, ty in self.parts)


def mentions(ty: Ty, name: str) -> bool:
    return ty.name == name or any(mentions(item, name) for item in ty.args)


def instance(ty: Ty, at: Ty) -> Ty:
    """`ty` with the parameter replaced."""
    return at if ty == PARAMETER else replace(ty, args=tuple(instance(item, at) for item in ty.args))


@dataclass(frozen=True)
class Var:
    """`touches` references from outside of it: a function that is differentiated does not use it."""

    name: str
    ty: Ty
    touches: bool = False


@dataclass(frozen=True)
class Scope:
    """Variables, innermost last, the answer type of the `reset` around, if `shift` may be used here, and how many
    derivatives are taken of what stands here.

    `refs` and `functions` name the types that hold such things, declared ones among them.
    """

    vars: tuple[Var, ...] = ()
    answer: Ty | None = None
    order: int = 0
    refs: frozenset[str] = frozenset({"ref"})
    functions: frozenset[str] = frozenset({"->"})

    def add(self, *named: tuple[str, Ty]) -> Scope:
        tainted = any(var.touches for var in self.vars)
        suspect = self.refs | self.functions if tainted else self.refs
        more = (Var(name, ty, any(mentions(ty, kind) for kind in suspect)) for name, ty in named)
        shadowed = {name for name, _ in named}
        return replace(self, vars=(*(var for var in self.vars if var.name not in shadowed), *more))

    def of(self, ty: Ty) -> list[str]:
        """The variables of that type, the innermost first."""
        return [var.name for var in reversed(self.vars) if var.ty == ty]

    def apart(self) -> Scope:
        """In the body of a function that may be called from anywhere."""
        return replace(self, answer=None)

    def differentiated(self) -> Scope:
        """In a function whose derivative is taken: pure of control, and of references that are not its own."""
        return replace(self, vars=tuple(var for var in self.vars if not var.touches), answer=None)

    def delimited(self, answer: Ty) -> Scope:
        """Inside of a `reset`."""
        return replace(self, answer=answer)
