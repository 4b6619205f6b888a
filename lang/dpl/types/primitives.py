"""Rows of the table of primitives -> schemes.  A row gives its type in DPL's notation, with a `where` clause."""

from __future__ import annotations

from dpl.core import ty
from dpl.prims import TABLE, Row
from dpl.source import NOWHERE
from dpl.syntax import tree
from dpl.syntax.parse import parse_type
from dpl.types.solve import sizes
from dpl.types.solve.constraints import KINDS, Constraint, Elem, Fits
from dpl.types.solve.meta import PURE, Type
from dpl.types.solve.scheme import Scheme
from dpl.types.state.env import TYPES, Primitive

SIZED = ("zeros", "ones", "range", "fill")  # the first argument is the size of the result
DERIVATIVES = ("jvp", "taylor", "vjp")  # the function's result must contain a float


class Reader:
    """Reads the type of one row and collects its variables in order of appearance."""

    def __init__(self) -> None:
        self.params: dict[str, ty.Var] = {}
        self.unknowns: list[str] = []

    def type(self, t: tree.Type) -> Type:
        """The type in a row's notation."""
        match t:
            case tree.TyVar(_, name):
                return self.params.setdefault(name, ty.Var(name))
            case tree.TyName(_, name, args):
                known = TYPES[name]
                return known.alias or ty.Con(known.name, tuple(self.type(a) for a in args if isinstance(a, tree.Type)))
            case tree.TyTuple(_, items):
                return ty.Tup(tuple(self.type(i) for i in items))
            case tree.TyFun(_, arg, result, _):
                return ty.Fn(self.type(arg), PURE, self.type(result))
            case tree.TyArray(_, elem, dims):
                inner = self.type(elem)
                for dim in reversed(dims):
                    inner = ty.Arr(inner, self.size(dim))
                return inner
            case _:
                raise AssertionError(t)

    def size(self, s: tree.Size | tree.TyName) -> ty.Size:
        """The size in a row's notation; each `?` is another one."""
        match s:
            case tree.SizeUnknown():
                self.unknowns.append(f"?{len(self.unknowns)}")
                return sizes.name(self.unknowns[-1])
            case tree.SizeVar(_, name) | tree.TyName(_, name, ()):
                self.params.setdefault(name, ty.Var(name, "size"))
                return sizes.name(name)
            case tree.SizeOp(_, "*", left, right):
                return sizes.mul(self.size(left), self.size(right))
            case _:
                raise AssertionError(s)


def read(row: Row) -> Scheme:
    text, _, where = row.type.partition(" where ")
    reader = Reader()
    t = reader.type(parse_type(text))
    classes: dict[str, frozenset[str]] = {}
    constraints: list[Constraint] = []
    for clause in filter(None, where.split(", ")):
        subject, colon, cls = clause.partition(" : ")
        if colon:
            name = subject.strip("'")
            classes[name] = classes.get(name, frozenset()) | {"content" if row.name == "ref" else cls}
        else:
            constraints.append(_relation(reader, *clause.split()))
    if row.name in DERIVATIVES:
        classes["b"] |= {"active"}
    if row.name == "reshape":
        scalar = reader.params.setdefault("s", ty.Var("s"))
        constraints += [Elem((ty.Arr(ty.Var("a"), sizes.ONE), scalar), NOWHERE), Elem((ty.Var("b"), scalar), NOWHERE)]
    counts = (("?0", 0),) if row.name in SIZED else ()
    return Scheme(tuple(reader.params.values()), t, classes, tuple(constraints), tuple(reader.unknowns), counts)


def _relation(reader: Reader, kind: str, *operands: str) -> Constraint:
    if kind == "convert":
        source, target, result = operands
        return KINDS[kind]((ty.Var(source[1:]), ty.Var(result[1:])), NOWHERE, target)
    types = tuple(ty.Var(o[1:]) for o in operands)
    if kind == "lift" and types[0] == types[2]:  # the first operand has the result's shape
        return Fits((types[1], types[0]), NOWHERE)
    return KINDS[kind](types, NOWHERE)


def primitives(public: bool) -> dict[str, Primitive]:
    """Primitives by name; the public ones also by their operators and aliases."""
    found: dict[str, Primitive] = {}
    for row in TABLE.values():
        entry = Primitive(row.name, read(row))
        if row.public or not public:
            found[row.name] = entry
        if public:
            found.update(dict.fromkeys((row.op, *row.aliases) if row.op else row.aliases, entry))
    return found
