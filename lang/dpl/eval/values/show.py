"""value, type -> text: the output of `print` and `show`.  Native code must write the same.

* Floats: the shortest decimal that reads back at the type's own precision, laid out as Python's `repr` does: `1.0`,
  `1e-05`, `1e+16`, `-0.0`, `inf`, `-inf`, `nan`.  Integers in decimal; `true`, `false`; `()`; functions `<fun>`.
* Strings without quotes at the top level; inside data in double quotes, with only `\\"`, `\\\\`, `\\n`, `\\t`, `\\r`
  escaped.
* Tuples `(a, b)`, arrays `[a, b]` nested by rank, lists `[a; b]`, `[a;]`; both are `[]` if empty.
* Records `{ w = a; b = c }` in order of declaration.  Constructors `None`, `Some a`, `Node (a, b)`, references `ref a`:
  the argument stands in parentheses if it begins with `-` or is itself an application (a constructor with an argument,
  a reference); a tuple brings its own.  There are no other parentheses.
* Abridged (`print`, not `show`): every list and every array (at each rank separately) of more than 1,000 elements shows
  its first 500, then `...` as if it were one element, then its last 500.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import copysign, frexp

from dpl.core import formats
from dpl.core import ty as t
from dpl.diagnostics import Bug
from dpl.eval.values.datatypes import DataTypes
from dpl.eval.values.instance import is_type
from dpl.eval.values.scalar import FIT
from dpl.eval.values.value import Array, Con, Value, list_items, number

Form = tuple[str, frozenset[str]]  # a format, and the kinds of numbers to which it applies

LIMIT = 1000
KEPT = 500
ELLIPSIS = "..."
ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"})
DIGITS = {"f32": 9, "f16": 5}  # enough digits to read any value back exactly


class Shower:
    """Shows values of a program with these data types."""

    def __init__(self, datas: DataTypes) -> None:
        self.datas = datas

    def format(self, spec: str, value: Value, ty: t.Ty) -> str:
        """A value with its numbers formatted as by Python's `format`; a value without numbers is padded as text."""
        form = formats.read(spec)
        kinds = formats.numbers(form, formats.kinds_of(ty, self.datas.declared))
        shown = self.show(value, ty, form=(spec, kinds))
        return format(shown, spec) if not kinds and form.suits_text else shown

    def show(self, value: Value, ty: t.Ty, abridged: bool = False, form: Form = ("", frozenset())) -> str:
        """The text of a value; a string is itself.  Values that nest deeply take no stack."""
        if ty == t.STRING:
            return value
        out: list[str] = []
        todo: list = [(value, ty, False)]
        while todo:
            item = todo.pop()
            if isinstance(item, str):
                out.append(item)
            else:
                inner, its, is_argument = item
                todo.extend(reversed(self._parts(inner, its, is_argument, abridged, form)))
        return "".join(out)

    def _parts(self, value: Value, ty: t.Ty, is_argument: bool, abridged: bool, form: Form) -> list:
        """A value as a list of texts and of parts (value, type, True if it is a constructor's argument)."""
        match ty:
            case t.Con(name) if name in FIT or name in ("bool", "string"):
                spec, kinds = form
                text = formatted(value, name, spec) if formats.kind_of(name) in kinds else scalar_text(value, name)
                return [f"({text})"] if is_argument and text.startswith("-") else [text]
            case t.Con("list", (elem,)) if is_type(elem):
                texts = _abridge(list(list_items(value)), abridged)
                closing = ";]" if len(texts) == 1 else "]"
                return ["[", *_joined([_item(x, elem) for x in texts], "; "), closing]
            case t.Con("ref", (content,)):
                return _application("ref", (value.content, content, True), is_argument)
            case t.Con():
                return self._data(value, ty, is_argument)
            case t.Tup(items):
                return ["(", *_joined([(v, ty, False) for v, ty in zip(value, items, strict=True)], ", "), ")"]
            case t.Arr(elem):
                items = _abridge(rows(value), abridged)
                return ["[", *_joined([_item(x, elem) for x in items], ", "), "]"]
            case t.Fn():
                return ["<fun>"]
            case t.Var() | t.Lift() | t.Hole():
                raise Bug(f"cannot show a value of type {ty}")

    def _data(self, value: Con, ty: t.Con, is_argument: bool) -> list:
        data, argument = self.datas.data(ty), self.datas.argument(ty, value.tag)
        if data.fields:
            parts = ["{ "]
            for i, (name, content, its) in enumerate(self.datas.fields(ty, value)):
                parts += [f"{'; ' if i else ''}{name} = ", (content, its, False)]
            return [*parts, " }"]
        name = data.cases[value.tag][0].rpartition(".")[2]
        return [name] if argument is None else _application(name, (value.arg, argument, True), is_argument)


def _application(name: str, argument: tuple, is_argument: bool) -> list:
    parts = [name, " ", argument]
    return ["(", *parts, ")"] if is_argument else parts


def _item(value: Value, ty: t.Ty):
    return value if value is ELLIPSIS else (value, ty, False)


def _joined(items: list, separator: str) -> list:
    return [part for i, item in enumerate(items) for part in ((separator, item) if i else (item,))]


def _abridge(items: list, abridged: bool) -> list:
    return [*items[:KEPT], ELLIPSIS, *items[-KEPT:]] if abridged and len(items) > LIMIT else items


def rows(value: Array) -> list:
    """The elements along the outermost dimension."""
    n, *inner = value.shape
    if not inner:
        return value.data
    size = len(value.data) // n if n else 0
    return [Array(tuple(inner), value.data[i * size : (i + 1) * size]) for i in range(n)]


def formatted(value: Value, kind: str, spec: str) -> str:
    """A number by a format.  A format without letter and precision keeps the number's digits."""
    plain = number(value)
    form = formats.read(spec)
    if kind in t.FLOATS and not (form.letter or form.precision):
        plain = float(scalar_text(plain, kind))  # the digits of its own precision
    return format(plain, spec)


def scalar_text(value: Value, kind: str) -> str:
    """A number, boolean or string as text.  Floats have the fewest digits that read back as the same number."""
    value = number(value)
    match kind:
        case "string":
            return f'"{value.translate(ESCAPES)}"'
        case "bool":
            return "true" if value else "false"
        case "f32" | "f16" if value == value:
            fit = FIT[kind]
            tries = (x for digits in range(1, DIGITS[kind] + 1) for x in of_digits(value, digits))
            return repr(next((x for x in tries if fit(x) == value), value))
        case _:
            return repr(value)


def of_digits(value: float, digits: int) -> Iterator[float]:
    """The nearest number of so many digits, and the next one away from 0: beyond a power of two numbers lie twice as
    far apart as before it, so that one may read back where the nearest does not."""
    yield float(f"{value:.{digits}g}")
    if abs(frexp(value)[0]) == 0.5:
        mantissa, _, exponent = f"{abs(value):.{digits - 1}e}".partition("e")
        yield copysign(float(f"{int(mantissa.replace('.', '')) + 1}e{int(exponent) - digits + 1}"), value)
