"""Types -> text, in the language's notation.

Fn(Arr(f64, n), pure, f64)   ->   float[n] -> float
"""

from __future__ import annotations

from dpl.core import ty
from dpl.diagnostics import marked
from dpl.types.solve.constraints import NUMERIC, Constraint, Elem, Fits, Within
from dpl.types.solve.meta import Meta, prune, prune_effect
from dpl.types.solve.scheme import Scheme

NAMES = {"i64": "int", "f64": "float"}
CLASS_ORDER = ("num", "real", "integer", "scalar", "data", "content", "diff", "active")
IMPLIED = ("data", "content", "diff", "active")  # classes that every number is in
FUN, PRODUCT, ATOM = range(3)
LARGEST = 500  # the most parts of a type that are shown: through sharing, a type may be exponentially large


class Highlighted(ty.Hole):
    """Marks a part of a type for highlighting in its text."""

    __slots__ = ("part",)

    def __init__(self, part) -> None:
        self.part = part


class Printer:
    """The pretty-printer of types.  It names variables in order of appearance; use one printer for a whole message."""

    def __init__(self, sizes=None, home: str = "") -> None:
        self.sizes = sizes
        self.home = home
        self.names: dict = {}
        self.size_names: dict[str, str] = {}
        self.within: dict = {}  # effect variables of parameters -> their upper bounds
        self.left: int | None = None  # how many more parts of the current type may be shown

    def variable(self, key, wish: str = "") -> str:
        """The letter of a type variable; one letter for each, in the order in which they come."""
        if key not in self.names:
            used = set(self.names.values())
            letters = [wish] if wish else [chr(c) for c in range(ord("a"), ord("z") + 1)]
            stem = letters[0]
            free = [x for x in letters if x not in used] or [
                f"{stem}{i}" for i in range(1, 1000) if f"{stem}{i}" not in used
            ]
            self.names[key] = free[0]
        return "'" + self.names[key]

    def type(self, t, level: int = FUN) -> str:
        """The text of a type; a very large type is cut short with `...`."""
        if self.left is None:
            self.left = LARGEST
            try:
                return self._type(t, level)
            finally:
                self.left = None
        self.left -= 1
        return self._type(t, level) if self.left > 0 else "..."

    def _type(self, t, level: int) -> str:
        t = prune(t)
        match t:
            case Highlighted():
                return marked(self.type(t.part, level))
            case Meta() if "scalar" in t.classes and not t.rigid:  # the type of a literal that nothing else determines
                return "float" if "real" in t.classes else "int"
            case Meta():
                return self.variable(t, t.rigid)
            case ty.Var(name):
                return self.variable(name)
            case ty.Con(name, args):
                return self.applied(name, args)
            case ty.Tup(()):
                return "unit"
            case ty.Tup(items):
                return parens(" * ".join(self.type(i, ATOM) for i in items), level == ATOM)
            case ty.Arr():
                dims = []
                while type(t) is ty.Arr:
                    dims.append(self.size(t.size))
                    t = prune(t.elem)
                return f"{self.type(t, ATOM)}[{', '.join(dims)}]"
            case ty.Lift(_, items):
                return parens(f"lift {' '.join(self.type(i, ATOM) for i in items)}", level == ATOM)
            case ty.Fn(arg, eff, result):
                return parens(f"{self.type(arg, PRODUCT)} {self.arrow(eff)} {self.type(result, FUN)}", level > FUN)
            case _:
                raise AssertionError(t)

    def applied(self, name: str, args) -> str:
        shown = NAMES.get(name, self.data_name(name))
        texts = [self.argument(a) for a in args]
        if len(texts) > 1:
            return f"({', '.join(texts)}) {shown}"
        if texts and " " in texts[0] and type(args[0]) is ty.Size:
            return f"({texts[0]}) {shown}"
        return f"{texts[0]} {shown}" if texts else shown

    def argument(self, a) -> str:
        if type(a) is Highlighted:
            return marked(self.argument(a.part))
        return self.size(a) if type(a) is ty.Size else self.type(a, ATOM)

    def data_name(self, name: str) -> str:
        """The name of a type, with its module unless that is the reader's."""
        module, _, member = name.partition("#")[0].rpartition(".")
        return member if module in ("", "Prelude", "main", self.home) else f"{module}.{member}"

    def arrow(self, eff) -> str:
        eff = prune_effect(eff)
        eff = self.within.get(eff, eff) if type(eff) is ty.Var else eff
        return f"-{{ctl {self.type(eff.answer)}}}->" if type(eff) is ty.Ctl else "->"

    def size(self, size: ty.Size | Highlighted) -> str:
        """A size as a sum."""
        if isinstance(size, Highlighted):
            return marked(self.size(size.part))
        size = self.sizes.norm(size) if self.sizes else size
        parts = []
        for names, factor in sorted(size.terms, key=lambda term: term[1] < 0):
            product = " * ".join(self.size_name(n) for n in names)
            text = product if abs(factor) == 1 else f"{numeral(factor)} * {product}"
            parts.append(("- " if factor < 0 else "+ ") + text)
        if size.const or not parts:
            parts.append(("- " if size.const < 0 else "+ ") + numeral(size.const))
        text = " ".join(parts)
        return text[2:] if text.startswith("+ ") else "-" + text[2:]

    def size_name(self, name: str) -> str:
        if name[0] == "?":
            return "?"
        if name[0] != "!":
            return self.size_names.setdefault(name, name)
        if name not in self.size_names:
            used = set(self.size_names.values())
            self.size_names[name] = next((x for x in "nmkpq" if x not in used), f"n{len(used)}")
        return self.size_names[name]

    def scheme(self, scheme: Scheme) -> str:
        """A type with its constraints behind `where`."""
        self.within |= {c.types[0]: c.types[1] for c in scheme.constraints if type(c) is Within}
        text = self.type(scheme.ty)
        said = [self.constraint(c) for c in scheme.constraints if type(c) not in (Elem, Within)]
        said = list(dict.fromkeys((*said, *self.elements(scheme), *self.classes(scheme))))
        return f"{text} with {', '.join(said)}" if said else text

    def classes(self, scheme: Scheme) -> list[str]:
        """`'a 'b : num`.  A numeric class is omitted for a variable that a printed constraint already describes."""
        told = {t.name for c in scheme.constraints if self.tells(c) and isinstance(t := prune(c.types[0]), ty.Var)}
        members: dict[str, list[str]] = {}
        for name, classes in scheme.classes.items():
            if name in self.names:
                shown = [c for c in CLASS_ORDER if c in classes and not (c == "num" and {"real", "integer"} & classes)]
                shown = [c for c in shown if c not in IMPLIED or not {"num", "real"} & classes]
                for c in shown:
                    if c not in NUMERIC or name not in told:
                        members.setdefault(c, []).append("'" + self.names[name])
        return [f"{' '.join(names)} : {c}" for c, names in members.items()]

    def elements(self, scheme: Scheme) -> list[str]:
        """The constraints on elements: `'a 'b : float or array of it`."""
        members: dict[str, list[str]] = {}
        for c in scheme.constraints:
            if type(c) is Elem and self.tells(c):
                members.setdefault(self.type(c.types[1]), []).append(self.type(c.types[0], ATOM))
        return [f"{' '.join(dict.fromkeys(names))} : {elem} or array of it" for elem, names in members.items()]

    def tells(self, c: Constraint) -> bool:
        """True if the constraint shows which numbers its first type is made of."""
        elem = prune(c.types[-1])
        return type(c) is Fits or (type(c) is Elem and not (type(elem) is ty.Var and elem.name not in self.names))

    def constraint(self, c: Constraint) -> str:
        texts = [self.type(t) for t in c.types]
        match c.name:
            case "fits":
                return f"{texts[0]} fits {texts[1]}"
            case "lift":
                return f"lift {' '.join(texts[:-1])} = {texts[-1]}"
            case "pow":
                return f"{texts[0]} ** {texts[1]} = {texts[2]}"
            case "matmul":
                return f"{texts[0]} @ {texts[1]} = {texts[2]}"
            case "format":
                return f"{texts[0]} formatted by {c.extra}"
            case "append":
                return f"{texts[0]} ++ {texts[1]} = {texts[2]}"
            case _:
                pass
        return f"{c.name} {' '.join(texts)}"


def numeral(number: int) -> str:
    """The absolute value of a number; one too large for any array size is abbreviated."""
    number = abs(number)
    return str(number) if number < 10**40 else f"{number >> (number.bit_length() - 10)}·2^{number.bit_length() - 10}"


def parens(text: str, needed: bool) -> str:
    return f"({text})" if needed else text


def show(t, sizes=None) -> str:
    """One type as text."""
    return Printer(sizes).type(t)


def show_scheme(what, home: str = "") -> str:
    """The type of a scheme or of a core definition as text."""
    scheme = what if isinstance(what, Scheme) else Scheme(what.params, what.ty)
    return Printer(home=home).scheme(scheme)
