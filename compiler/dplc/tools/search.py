"""Names found by a part of them, by words of their documentation, by what other systems call them, or by a type.

float[n] -> float      Prelude.mean : 's[n] -> 's ...      what fits with the fewest choices comes first
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations

from dpl.core import ty as t
from dpl.core.term import Data
from dpl.diagnostics import DplError
from dpl.node import field, node, record
from dpl.syntax.foreign import table
from dpl.syntax.parse import parse_type
from dpl.syntax.type_tree import Size, SizeNum, SizeVar, TyArray, TyFun, TyName, Type, TyTuple, TyVar
from dpl.types.library import library
from dpl.types.messages.pretty import show_scheme
from dpl.types.solve import constraints, sizes
from dpl.types.solve.kinds import contents
from dpl.types.solve.scheme import Scheme
from dpl.types.state.env import TYPES, Constructor, Exports, Primitive, Value
from dpl.types.state.unbound import HERE, bare, nearest, renamed

WORD = re.compile(r"[^\W_]+")
NAME = re.compile(r"[A-Za-z_][\w.']*")
SHOWN = 20
MISSING = 10  # the cost of a word that is not found
ORDERS = 4  # arguments that are tried in any order, at most


@node
class Known:
    """A value, constructor or data type that can be found: its name with its module, its type, its documentation, and
    what its definition calls its arguments."""

    name: str
    scheme: Scheme
    doc: str
    declared: bool = False  # by the declaration of a data type
    parameters: tuple[str, ...] = ()

    @property
    def last(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def heading(self) -> str:
        return heading(self.name, self.scheme, self.parameters)

    @property
    def line(self) -> str:
        first = self.doc.split("\n")[0]
        return self.heading + (f"\n    {first}" if first else "")


def heading(name: str, scheme: Scheme, parameters: Sequence[str] = ()) -> str:
    """A value with its arguments, as it is applied, and its type."""
    return f"{' '.join((name, *parameters))} : {show_scheme(scheme)}"


def known_in(modules: Mapping[str, Exports]) -> Iterator[Known]:
    """The public values, data types and constructors of modules; those of the Prelude and primitives without a module's
    name."""
    for name, value in library().primitives.values.items():
        if isinstance(value, Primitive) and (name[0].isalpha() or name == value.row.op):
            yield Known(name, value.scheme, value.row.doc)
    for module, exports in modules.items():
        for name, value in exports.values.items():
            if isinstance(value, Value) and not name.startswith("_"):
                full = name if module == "Prelude" else f"{module}.{name}"
                yield Known(full, value.scheme, value.doc, False, value.parameters)
        yield from declared_in("" if module == "Prelude" else f"{module}.", exports)


def declared_in(prefix: str, exports: Exports) -> Iterator[Known]:
    """The data types of a module, each with what it consists of, and their constructors."""
    datas = {one.data.name: one.data for one in exports.constructors.values() if isinstance(one, Constructor)}
    datas |= {data.name: data for data in exports.fields.values() if isinstance(data, Data)}
    for data in datas.values():
        last = data.name.rpartition(".")[2]
        if last.startswith("_"):
            continue
        made = t.Con(data.name, data.params)
        yield Known(prefix + last, Scheme(data.params, made), consists(data), True)
        for name, argument in () if data.fields else data.cases:
            ty = made if argument is None else t.Fn(argument, t.PURE, made)
            yield Known(prefix + name, Scheme(data.params, ty), f"a constructor of {prefix}{last}", True)


def consists(data: Data) -> str:
    """What a data type consists of: its fields with their types, or its constructors."""
    if not data.fields:
        return "a data type: " + " | ".join(name for name, _ in data.cases)
    fields = (f"{name} : {show_scheme(Scheme(data.params, ty))}" for name, ty in contents(data))
    return "a record: { " + "; ".join(fields) + " }"


def search(query: str, known: Iterable[Known]) -> list[Known]:
    """What a query finds, the best first."""
    everything = list(known)
    wanted = asked_type(query)
    ranked = by_type(wanted, everything) if wanted else by_words(query, everything)

    def place(pair: tuple[float, Known]) -> tuple:
        score, one = pair
        return score, one.declared, len(one.name), one.name

    return [found for _, found in sorted(ranked, key=place)]


def told(query: str, known: Iterable[Known]) -> str:
    """The answer to a search as text; empty if there is none.  A name of other systems comes with how it is written
    here, and without what has its letters somewhere in a name."""
    found, otherwise = search(query, known), elsewhere_said(query)
    if not found and not otherwise:
        otherwise = next(filter(None, map(elsewhere_said, in_words(query))), "")
    if otherwise:
        meaning, start = meant(query.strip()), query.strip().rpartition(".")[2].lower()
        found = [one for one in found if one.name in meaning or one.last.lower().startswith(start)]
    more = [f"... and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return "\n".join([*([otherwise] if otherwise else []), *[one.line for one in found[:SHOWN]], *more])


def named(name: str, known: Iterable[Known]) -> list[Known]:
    """The values with a name, in any module; or those that stand for what another system calls so."""
    everything = list(known)
    exact = [one for one in everything if one.name == name and not one.declared]
    return exact or [one for one in everything if one.last == name] or [
        one for one in everything if one.name == name
    ] or [one for one in everything if one.name in meant(name)]  # fmt: skip


# ---- by words -------------------------------------------------------------------------------------------------------


def near(name: str, known: Iterable[Known]) -> list[str]:
    """The values whose names, here or in another system, differ from this one by a typing error."""
    everything = list(known)
    others = nearest(name, [*table()["same"], *table()["like"]])
    meant_by = [one for other in others for one in named(other, everything)]
    own = nearest(name, [one.last for one in everything])
    return [one.name for one in everything if one.last in own] or [one.name for one in meant_by]


def by_words(query: str, known: list[Known]) -> list[tuple[float, Known]]:
    """What has all the words; if nothing has, what has most of them."""
    other = meant(query.strip())
    words = [word.lower() for word in WORD.findall(query)]
    scored = []
    for one in known if words else ():
        score = of_words(query.strip().lower(), words, one)
        if one.name in other:
            score = 1 if score is None else min(1, score)
        if score is not None:
            scored.append((score, one))
    fewest = min((score // MISSING for score, _ in scored), default=0)
    return [(score, one) for score, one in scored if score // MISSING == fewest]


def of_words(query: str, words: list[str], one: Known) -> float | None:
    name, doc = one.name.lower(), {stem(word.lower()) for word in WORD.findall(one.doc)}
    if query == name or bare(joined(query)) == bare(one.last):
        return 0
    if bare(query.rpartition(".")[2]) == bare(one.last):  # `np.histogram`
        return 1
    if one.last.lower().startswith(query):
        return 2
    in_name = sum(stem(word) in name for word in words)
    if in_name == len(words):
        return 3
    missing = sum(stem(word) not in name and stem(word) not in doc for word in words)
    return None if missing == len(words) else missing * MISSING + 4 - in_name / len(words)


def stem(word: str) -> str:
    """A word without the ending of its plural."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def joined(query: str) -> str:
    """The words of a query as one name: `moving average` as `moving_average`."""
    return re.sub(r"[\s-]+", "_", query.strip())


def in_words(query: str) -> list[str]:
    """The names of other systems that have all words of a query among theirs, the shortest first: `find_peaks`."""
    words = {stem(word.lower()) for word in WORD.findall(query)}
    names = {*table()["like"], *table()["said"]}
    return sorted((name for name in names if words and words <= set(map(stem, parts(name)))), key=len)


def parts(name: str) -> list[str]:
    """The words of a name: those of `find_peaks` and of `findPeaks`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_")


def meant(name: str) -> set[str]:
    """What DPL calls something that has this name in another language or library, such as `np.linalg.inv`."""
    name = joined(name)
    last = name.rpartition(".")[2]
    written = [renamed("value", key, part) for part in ("same", "like") for key in (name, last)]
    return {word for text in written for word in NAME.findall(text) if len(word) > 1}


def elsewhere_said(name: str) -> str:
    """How something is written here that has this name elsewhere, and no name in DPL: `pow` is  x ** y, `torch.save`
    no `save` of pictures.  Words are one name: `moving average`."""
    whole = joined(name)
    for key in (whole, stem(whole), whole.rpartition(".")[2]):
        if like := renamed("value", key, "like"):
            return HERE + like
        if key in table()["said"]:
            return table()["said"][key]
    return ""


# ---- by type --------------------------------------------------------------------------------------------------------


def asked_type(query: str) -> t.Ty | None:
    """The type that a query is, if it is one with an arrow."""
    if "->" not in query:
        return None
    try:
        return of_tree(parse_type(query))
    except (DplError, ValueError):
        return None


def of_tree(written: Type) -> t.Ty:
    match written:
        case TyVar(_, name):
            return t.Con(f"'{name}")
        case TyName(_, name, args):
            known = TYPES.get(name)
            inner = tuple(of_tree(a) for a in args if isinstance(a, Type))
            alias = known.alias if known else None
            return alias if alias else t.Con(known.name if known else name, inner)  # pyrefly: ignore[bad-return]
        case TyTuple(_, items):
            return t.Tup(tuple(of_tree(i) for i in items))
        case TyFun(_, arg, result, _):
            return t.Fn(of_tree(arg), t.PURE, of_tree(result))
        case TyArray(_, elem, dims):
            inner = of_tree(elem)
            for dim in reversed(dims):
                inner = t.Arr(inner, of_size(dim))
            return inner
        case _:
            raise ValueError(written)


def of_size(written: Size | TyName) -> t.Size:
    match written:
        case SizeVar(_, name) | TyName(_, name, ()):
            return sizes.name(name)
        case SizeNum(_, value):
            return t.Size(value)
        case _:
            return sizes.name("?")


def by_type(wanted: t.Ty, known: list[Known]) -> Iterator[tuple[float, Known]]:
    arguments, result = uncurried(wanted)
    for one in known:
        own, own_result = uncurried(one.scheme.ty)
        if len(own) != len(arguments):
            continue
        orders = permutations(arguments) if len(arguments) <= ORDERS else [tuple(arguments)]
        for moved, order in enumerate(orders):
            fit = Fit(one.scheme)
            if all(map(fit.fits, own, order)) and fit.fits(own_result, result) and fit.holds():
                yield fit.cost + (10 if moved else 0), one
                break


def uncurried(ty: t.Ty) -> tuple[list[t.Ty], t.Ty]:
    arguments = []
    while isinstance(ty, t.Fn):
        arguments.append(ty.arg)
        ty = ty.result
    return arguments, ty


@record
class Fit:
    """Whether a scheme has an instance of a type: what its variables stand for, and the cost of these choices."""

    scheme: Scheme
    chosen: dict[str, t.Ty | t.Size] = field(default_factory=dict)
    cost: float = 0

    def fits(self, own: t.Ty, wanted: t.Ty) -> bool:
        match own, wanted:
            case t.Var(name) | t.Lift(name), _:
                return self.choose(name, wanted)
            case t.Con(name, args), t.Con(other, others):
                inner, outer = types_in(args), types_in(others)
                return name.rpartition(".")[2] in (other, other.rpartition(".")[2]) and (
                    not outer or (len(inner) == len(outer) and all(map(self.fits, inner, outer)))
                )
            case t.Tup(items), t.Tup(others):
                return len(items) == len(others) and all(map(self.fits, items, others))
            case t.Arr(elem, size), t.Arr(inner, other):
                return self.fits_size(size, other) and self.fits(elem, inner)
            case t.Fn(arg, _, result), t.Fn(other, _, end):
                return self.fits(arg, other) and self.fits(result, end)
            case _:
                return False

    def choose(self, name: str, wanted: t.Ty) -> bool:
        if name in self.chosen:
            return self.chosen[name] == wanted
        self.chosen[name] = wanted
        classes = self.scheme.classes.get(name, frozenset())
        self.cost += 1 if classes else 1.5
        return all(in_class(wanted, cls) for cls in classes)

    def fits_size(self, own: t.Size, wanted: t.Size) -> bool:
        if own == wanted:
            return True
        name = single(own)
        if name is None:
            self.cost += 1
            return bool(own.terms) or bool(wanted.terms)
        if name.startswith("?") or single(wanted) == "?":
            self.cost += 0.5
            return True
        self.cost += 0.1 if name not in self.chosen else 0
        return self.chosen.setdefault(name, wanted) == wanted

    def holds(self) -> bool:
        """Whether the relations between the ranks of the types that were chosen hold."""
        return all(self.related(relation) for relation in self.scheme.relations)

    def related(self, relation: constraints.Constraint) -> bool:
        types = [self.chosen.get(x.name, x) if isinstance(x, t.Var | t.Lift) else x for x in relation.types]
        ranks = [rank(x) for x in types]
        match relation:
            case constraints.Lift():
                return ranks[-1] == max(ranks[:-1])
            case constraints.Fits():
                return ranks[0] <= ranks[1]
            case constraints.Matmul():
                return all(in_class(x, "num") and rank(x) for x in types[:2])
            case constraints.Pow() | constraints.Convert():
                return all(in_class(x, "num") for x in types)
            case constraints.Append():
                return types[0] == types[1] == types[2]
            case _:
                return True


def single(size: t.Size) -> str | None:
    """The name that a size is, if it is one."""
    match size:
        case t.Size(0, (((name,), 1),)):
            return name
        case _:
            return None


def types_in(args: tuple[t.Ty | t.Size, ...]) -> list[t.Ty]:
    return [a for a in args if not isinstance(a, t.Size)]


def rank(ty: object) -> int:
    return 1 + rank(ty.elem) if isinstance(ty, t.Arr) else 0


def in_class(ty: object, cls: str) -> bool:
    inner = ty
    while isinstance(inner, t.Arr):
        inner = inner.elem
    name = inner.name if isinstance(inner, t.Con) else ""
    match cls:
        case "num":
            return name in (*t.INTS, *t.FLOATS)
        case "real":
            return name in t.FLOATS
        case "integer":
            return name in t.INTS
        case "scalar":
            return not isinstance(ty, t.Arr)
        case "data" | "diff":
            return not isinstance(inner, t.Fn)
        case _:
            return True
