"""Helps for arguments that stand in the wrong place: a tuple for several arguments, the wrong order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import permutations

from dpl.core import term, ty
from dpl.syntax import tree
from dpl.syntax.formatter.shape import spine
from dpl.types.messages.axes import along
from dpl.types.messages.parts import as_argument, converted
from dpl.types.messages.pretty import show_scheme
from dpl.types.rules.order import (
    MOST,
    NUMBER,
    by_ranks,
    exchanged,
    fits,
    in_order,
    kind_given,
    kind_of,
    kinds_wanted,
    result_of,
    takes_in_order,
    type_seen,
    types_wanted,
)
from dpl.types.solve.constraints import NUMERIC, Lift
from dpl.types.solve.meta import Meta, Type, prune
from dpl.types.solve.scheme import mono
from dpl.types.state.context import Arg, Context
from dpl.types.state.env import Primitive, Value

OF_VECTORS = ("Ad", "Mcmc", "Optim", "Root", "Vi")  # modules whose functions take the parameters as one array
DRAWN = ("Random.uniform", "Random.normal")  # of a key and a count
WHOLE = {
    "rem": "it is for two integers, or two arrays of them; of floats too, with the sign of the divisor:  a % b",
    "quot": "it is for two integers, or two arrays of them; of floats:  a / b",
}
WITH_STATE = {"scan": "Array.scan_left", "reduce": "fold"}
COLUMNS = ("Data.numbers", "Data.texts")
RULES = {
    "with_vjp": "the rule gives the value and the pullback:  fun x -> (f x, fun g -> ... * g)",
    "with_jvp": "the rule gives the value and its tangent:  fun x dx -> (f x, ... * dx)",
}


def arranged(cx: Context, args: list[Arg], i: int, arrows: list[ty.Fn], rest: Type, name: str) -> str:
    """A help for a misplaced argument: a tuple for several arguments, or the reverse, or the wrong order."""
    value, wanted, name = args[i].value, prune(arrows[i].arg), name or "f"
    functions = tree.Fun | term.Lam
    if known := of_name(name, value, i, wanted):
        return known
    if name in ("diff", "Ad.diff") and i == 1 and kind_given(cx, value) in ("Arr", "Tup"):
        f = written(args[0].value)
        return f"it takes one number; of more:  grad {f} xs ; in a direction:  jvp {f} xs v"
    if other := of_other_module(cx, name, wanted, value):
        return other
    of_one = type(wanted) is ty.Arr and len(arrows) == 1 and type(prune(rest)) is not ty.Fn
    if of_one and all(kind_given(cx, arg.value) == NUMBER for arg in args):
        elements = [written(arg.value) for arg in args] if args[1:] else [written(value), "..."]
        return f"an array:  {name} [{', '.join(elements)}]"
    if i == 1 and name in DRAWN and isinstance(value, tree.Tuple | term.Tuple | tree.ArrayLit | term.ArrayLit):
        return drawn(name, args[0].value, [written(item) for item in value.items])
    if i == 0 and isinstance(value, tree.Tuple | tree.ArrayLit) and (shaped := of_shape(name, value.items, args)):
        return shaped
    if len(args) == 1 and type(wanted) is ty.Arr and (numbered := of_axis(name, value)):
        return numbered
    is_full = len(arrows) > 1 and len(arrows) >= len(args)
    in_tuple = isinstance(value, tree.Tuple | term.Tuple) and len(args) == 1
    together = [Arg(item, item.span) for item in value.items] if in_tuple else args
    known = object_first(cx, name, args, i, wanted) or of_sibling(cx, name, together)
    if known := known or of_tuple(cx, args, i, wanted, rest, name, is_full):
        return known
    after = args[i + 1].value if i + 1 < len(args) else None
    if type(wanted) is ty.Fn and isinstance(after, functions) and not isinstance(value, functions):
        return f"the function comes first:  {name} (fun ... -> ...) {written(value)}"
    given = [kind_given(cx, arg.value) for arg in args]
    kinds = ["" if a is not arrows[i] and prune(a.arg) is wanted else kind_of(a.arg) for a in arrows]
    kinds[:i] = ["" if is_numeric(cx, name, k) else kind for k, kind in enumerate(kinds[:i])]
    texts = [written(arg.value) for arg in args]
    types = [type_seen(cx, arg.value) for arg in args]
    takes = partial(takes_in_order, cx, name, types)
    known = exchanged(name, given, kinds, texts, i, takes)
    known = known or by_ranks(name, types, [arrow.arg for arrow in arrows], texts, i, takes)
    known = known or of_module_type(cx, name, args, i, wanted) or without_settings(cx, name, args, given, kinds)
    if known := known or of_data(cx, name, value, given[i], wanted):
        return known
    order = in_order(name, given, kinds, texts, i, takes)
    if given[i] == "Fn" and type(wanted) is not ty.Fn:  # of a call an argument was forgotten
        return order or (of_library(cx, name, 1) if isinstance(value, functions) else "")
    return order or usual_of(cx, wanted) or of_kind(cx, name, value, given[i], wanted)


def of_kind(cx: Context, name: str, value: tree.Expr | term.Term, given: str, wanted: Type) -> str:
    """A help for a number where an array is wanted, or else the function's type."""
    if type(wanted) is ty.Arr and given == NUMBER:
        size = cx.solver.sizes.norm(wanted.size)
        return f"an array of one number:  [{written(value)}]" if size.terms or size.const == 1 else ""
    return "" if {given, kind_of(wanted)} <= {"Arr", "list"} else of_library(cx, name, 2)


def of_name(name: str, value: tree.Expr | term.Term, i: int, wanted: Type) -> str:
    """A help for argument `i` of a function that is often misunderstood, and for `()`."""
    if isinstance(value, tree.Tuple | term.Tuple) and not value.items:
        is_key = type(wanted) is ty.Con and wanted.name == "Random.key"
        return f"a key of random numbers:  {name} (Random.key 1) ..." if is_key else f"leave  ()  out:  {name}"
    if name == "reshape" and isinstance(value, tree.Lit | term.Lit):
        return reshaped("xs", ("2", "3"))
    if name == "range" and isinstance(value, tree.Tuple):
        return counted([operand(item) for item in value.items])
    if name in COLUMNS and i == 1:
        return 'a table with names and texts:  Data.read_table "data.csv" ","'
    if name == ":=" and i == 0:
        return unchanging(value)
    if name in ("Fft.fft", "Fft.ifft") and not isinstance(value, tree.Tuple | term.Tuple):
        return f"of real numbers:  Fft.rfft {written(value)}"
    if name in WHOLE:
        return WHOLE[name]
    if name in WITH_STATE and i > 0:
        return f"a state of another type than the elements:  {WITH_STATE[name]} f start xs"
    return f"a condition is put in parentheses:  {name} (a = b)" if name in ("assert", "not") else ""


def of_tuple(cx: Context, args: list[Arg], i: int, wanted: Type, rest: Type, name: str, fits: bool) -> str:
    """A help for a tuple where none belongs, and for the want of one.  `fits`: the function takes so many arguments."""
    value = args[i].value
    last = i == len(args) - 1 and type(wanted) is not ty.Tup and type(prune(rest)) is ty.Fn
    if isinstance(value, tree.Tuple | term.Tuple) and last:
        if found := apart(cx, name, [*(arg.value for arg in args[:i]), *value.items]):
            return f"arguments stand one after the other:  {name} {' '.join(map(operand, found))}"
    if type(wanted) is ty.Tup and fits and isinstance(value, tree.Lit | term.Lit):
        return f"one for each:  {name} ({', '.join([written(value)] * len(wanted.items))}) ..."
    together = type(wanted) is ty.Tup and not fits and not isinstance(value, tree.Tuple)
    if together and len(wanted.items) == len(args) - i > 1:
        return f"it takes a tuple:  {name} ({', '.join(arg.value.span.text for arg in args[i:])})"
    if name in ("fst", "snd") and isinstance(value, tree.Tuple | term.Tuple):
        parts = ["x", *"_" * (len(value.items) - 1)] if name == "fst" else ["_", "x", *"_" * (len(value.items) - 2)]
        return f"they are for pairs; a part of more:  let ({', '.join(parts)}) = e"
    if type(wanted) is ty.Fn and isinstance(value, tree.Tuple) and isinstance(value.items[0], tree.Fun):
        return "a function that gives a tuple:  fun x -> (a, b)"
    return ""


def apart(cx: Context, name: str, parts: list[tree.Expr | term.Term]) -> list[tree.Expr | term.Term]:
    """The parts of a tuple in the first order in which the function takes them as arguments; empty if there is none."""
    types = [type_seen(cx, part) for part in parts]
    orders = permutations(range(len(parts))) if len(parts) <= MOST else ()
    order = next((order for order in orders if takes_in_order(cx, name, types, order)), ())
    return [parts[k] for k in order]


def of_library(cx: Context, name: str, least: int) -> str:
    """The form of a derivative rule, or the type of a function of a module that takes so many arguments: of several the
    order cannot be guessed."""
    if form := RULES.get(name):
        return form
    module, _, plain = name.rpartition(".")
    found = cx.modules[module].values.get(plain) if module in cx.modules else None
    if not isinstance(found, Value | Primitive) or len(kinds_wanted(found.scheme.ty)) < least:
        return ""
    parameters = found.parameters if isinstance(found, Value) else ()
    return f"the whole type:  {' '.join((name, *parameters))} : {show_scheme(found.scheme)}"


def of_sibling(cx: Context, name: str, args: list[Arg]) -> str:
    """A help for `Stats.corr xs ys`: a function of the module with a longer name, `correlation`, takes so many."""
    module, _, plain = name.rpartition(".")
    values = cx.modules[module].values if module in cx.modules else {}
    own = values.get(plain)
    if not isinstance(own, Value | Primitive) or len(kinds_wanted(own.scheme.ty)) >= len(args):
        return ""
    longer = [f for f in values if f.startswith(plain) and f != plain]
    found = [f for f in longer if takes(values[f], [kind_given(cx, arg.value) for arg in args])]
    texts = " ".join(written(arg.value) for arg in args)
    return f"of {len(args)} arguments:  {module}.{min(found)} {texts}" if found else ""


def object_first(cx: Context, name: str, args: list[Arg], i: int, wanted: Type) -> str:
    """A help for `Map.add m key value`: what the module is about comes last, ready for `|>`."""
    is_declared = i > 1 and type(wanted) is ty.Con and name.rpartition(".")[0] == wanted.name.rpartition(".")[0] != ""
    if not is_declared or i != len(args) - 1 or kind_given(cx, args[0].value) != wanted.name:
        return ""
    order = [arg.value for arg in (*args[1:], args[0])]
    fits = takes_in_order(cx, name, [type_seen(cx, value) for value in order], range(len(order)))
    return f"in this order:  {name} {' '.join(map(written, order))}" if fits else ""


def takes(entry: object, given: list[str]) -> bool:
    """Whether a function takes just these arguments, as far as can be seen."""
    wanted = kinds_wanted(entry.scheme.ty) if isinstance(entry, Value | Primitive) else []
    return len(wanted) == len(given) and all(not g or not w or g == w or fits(g, w) for g, w in zip(given, wanted))


def of_module_type(cx: Context, name: str, args: list[Arg], i: int, wanted: Type) -> str:
    """A help for an argument whose type a module declares and has values of (`Optim.usual`), and for `Optim.minimize
    Optim.lbfgs`: a method that takes the steps by itself."""
    value = args[i].value
    head = spine(value)[0] if isinstance(value, tree.App) else value
    if not isinstance(wanted, ty.Con):
        return ""
    if isinstance(head, tree.Var) and wanted.name == "Optim.descent":
        t = result_of(cx, head.name, 0)
        is_whole = type(t) is ty.Fn and kind_of(t.arg) == "Optim.goal"
        return f"it takes the steps by itself:  {head.name} Optim.usual f start" if is_whole else ""
    return usual_of(cx, wanted) if kind_given(cx, head) in (NUMBER, "Tup") else ""


def usual_of(cx: Context, wanted: Type) -> str:
    """A help that names a value of a type that a module declares, or what makes one."""
    if not isinstance(wanted, ty.Con):
        return ""
    module, _, _ = wanted.name.rpartition(".")
    values = cx.modules[module].values.items() if module in cx.modules else ()
    usual = [f"{module}.{p}" for p, v in values if isinstance(v, Value) and kind_of(v.scheme.ty) == wanted.name]
    made = [(wanted.name in kinds_wanted(v.scheme.ty), p) for p, v in values if isinstance(v, Value)
            and kind_of(outcome(v.scheme.ty)) == wanted.name]  # fmt: skip
    if made and not usual:  # rather by what needs no other one
        return f"one is made by  {module}.{min(made)[1]}"
    fields = cx.datas[wanted.name].fields if usual else ()
    changed = f" ; with another field:  {{ {usual[0]} with {fields[-1]} = ... }}" if fields else ""
    return f"one is  {usual[0]}{changed}" if usual else ""


def outcome(t: Type) -> Type:
    """What a function gives when it has all its arguments."""
    while type(t := prune(t)) is ty.Fn:
        t = t.result
    return t


def without_settings(cx: Context, name: str, args: list[Arg], given: list[str], kinds: list[str]) -> str:
    """A help for `Mcmc.nuts key f start` and `Ode.tsit5 f 0.0 1.0 y`, which take settings first: a module has its usual
    ones."""
    module, _, plain = kinds[0].rpartition(".")
    usual = cx.modules[module].values.get("usual") if module in cx.modules else None
    if not isinstance(usual, Value) or kind_of(usual.scheme.ty) != kinds[0] or given[0] in ("", kinds[0]):
        return ""
    others = " ".join(written(arg.value) for arg in args)
    return f"first comes a value of the type {plain}, such as the usual one:  {name} {module}.usual {others}"


def of_data(cx: Context, name: str, value: tree.Expr | term.Term, kind: str, wanted: Type) -> str:
    """A help for a record where a vector is wanted, and for `Nn.linear layer x`: a function of a module is given data
    of this module, which others of it take."""
    module = kind.rpartition(".")[0]
    if type(wanted) is ty.Arr and (isinstance(value, tree.Record) or (kind in cx.datas and cx.datas[kind].fields)):
        return f"its floats as a vector:  Tree.flatten {written(value)} ; and back:  Tree.unflatten like v"
    if type(wanted) is ty.Arr and kind == "Tup" and name.partition(".")[0] in OF_VECTORS:
        return f"its floats as a vector:  Tree.flatten {written(value)} ; and back:  Tree.unflatten like v"
    if module not in cx.modules or not name.startswith(f"{module}."):
        return ""
    if kind == kind_of(wanted):  # it differs in a part: `float[2] Dist.continuous`
        return ""
    entry = cx.modules[module].values.get(name.removeprefix(f"{module}."))
    if kind in (own := kinds_wanted(entry.scheme.ty) if isinstance(entry, Value) else []):
        return f"it is argument {own.index(kind) + 1}:  {name} {'... ' * own.index(kind)}{written(value)}"
    return takers(cx, kind)


def takers(cx: Context, kind: str) -> str:
    """A help that names functions of a module which take what the module declares: `Nn.dense` takes a layer."""
    module, _, plain = kind.rpartition(".")
    values = sorted(cx.modules[module].values.items()) if module in cx.modules else []
    public = [(f, v) for f, v in values if f[0] != "_" and isinstance(v, Value)]
    found = "  ".join([f"{module}.{f}" for f, v in public if kind in kinds_wanted(v.scheme.ty)][:4])
    return f"functions that take a value of the type {plain}:  {found}" if found else ""


def of_shape(name: str, items: tuple[tree.Expr, ...], args: list[Arg]) -> str:
    """A help for `zeros (2, 3)`, `fill [2, 3] x` and `reshape (2, 3) xs`, as other systems write shapes."""
    if name == "reshape":
        return reshaped("xs", [written(item) for item in items])
    sizes = [operand(item) for item in items]
    if name not in ("zeros", "ones", "fill") or not sizes:
        return ""
    row = " ".join([name, sizes.pop(), *(written(arg.value) for arg in args[1:2])])
    while sizes:
        row = f"fill {sizes.pop()} ({row})"
    return f"rows of {'numbers' if name == 'fill' else name}:  {row}"


def reshaped(xs: str, sizes: Sequence[str]) -> str:
    """A help: where the shape of `reshape` is written."""
    return f"the shape is the result's type:  (reshape {xs} : float[{', '.join(sizes)}])"


def drawn(name: str, key: tree.Expr | term.Term, sizes: Sequence[str]) -> str:
    """A help for `Random.normal key 2 3` and `Random.normal key (2, 3)`."""
    return reshaped(f"({name} {written(key)} ({' * '.join(map(as_argument, sizes))}))", sizes)


def counted(bounds: Sequence[str]) -> str:
    """A help for `range 1 5` and `range(0, 10, 2)`."""
    low, high, *step = bounds
    if step:
        return f"in steps of {step[0]}:  [for i < n -> {low} + {step[0]} * i]"
    return f"the numbers from {low} on, below {high}:  [for i < {high} - {low} -> {low} + i]"


def of_axis(name: str, value: tree.Expr | term.Term) -> str:
    """A help for `sum (x, 1)`, where 1 is an axis."""
    items = value.items if isinstance(value, tree.Tuple | term.Tuple) else ()
    if name == "length" or len(items) != 2:
        return ""
    if not isinstance(items[1], tree.Lit | term.Lit) or type(items[1].value) is not int:
        return ""
    return along(name, operand(items[0]), items[1].value)


def unchanging(value: tree.Expr | term.Term) -> str:
    """A help for `xs[i] := e`, `r.x := e` and `x := e` where nothing can be changed."""
    if isinstance(value, tree.Index):
        return f"an array does not change; one with another element:  {{ {written(value.array)} with [i] = e }}"
    if isinstance(value, tree.Field):
        return f"a record does not change; one with another field:  {{ {written(value.record)} with {value.name} = e }}"
    return f"only references change:  let {written(value)} = ref e"


def of_other_module(cx: Context, name: str, wanted: Type, value: tree.Expr | term.Term) -> str:
    """A help for `length s` of a string, and `List.map f xs` of an array: the same function elsewhere, or the value as
    what the function takes."""
    given = kind_given(cx, value)
    module, _, plain = name.rpartition(".")
    kinds = {"string": ("String", "a string"), "list": ("List", "a list"), "Arr": ("", "an array")}
    if given not in kinds or given == kind_of(wanted) or type(wanted) is Meta:
        return ""
    home, words = kinds[given]
    values = cx.modules[home].values if home in cx.modules else {}
    if home and plain in values and module != home:
        return f"of {words}:  {home}.{plain}" + (f" ; {converted(False, value.span)}" if home == "List" else "")
    if home or module != "List" or cx.find(plain) is None:
        return ""
    return f"of {words}:  {plain} ; {converted(True, value.span)}"


def is_numeric(cx: Context, name: str, i: int) -> bool:
    """Whether parameter `i` takes numbers of several types, or arrays of them; what was given has decided which."""
    entry = cx.find(name)
    scheme = entry.scheme if isinstance(entry, Value | Primitive) else mono(ty.UNIT)
    numeric = {var for var, classes in scheme.classes.items() if classes & NUMERIC}
    numeric |= {t.name for c in scheme.relations if isinstance(c, Lift) for t in c.types if isinstance(t, ty.Var)}
    return any(isinstance(t, ty.Var) and t.name in numeric for t in types_wanted(scheme.ty)[i : i + 1])


def written(e: tree.Expr | term.Term) -> str:
    """The source text of an argument, or `...` if it is too long."""
    bare = isinstance(e, tree.Fun | term.Lam) and not e.span.text.startswith("(")
    text = f"({e.span.text})" if bare else e.span.text
    return text if len(text) <= 30 and "\n" not in text and not text.startswith("-") else "..."


def operand(e: tree.Expr | term.Term) -> str:
    """The source text of an expression, as it is written after a function or an operator."""
    return as_argument(written(e))


def of_one_type(cx: Context, arrow: ty.Fn, name: str) -> str:
    """The help for a call of a function that is itself an argument, whose type its first use has told."""
    entry = cx.find(name)
    if not isinstance(entry, Value) or entry.is_global or entry.group or type(entry.scheme.ty) is not Meta:
        return ""
    is_told = type(arrow.arg) is Meta  # by a use, not by an annotation
    return f"an argument such as `{name}` has one type: pass a function for each type" if is_told else ""
