"""Unbound names -> messages with suggestions.

inv a              ->   here it is written  Linalg.inverse           (`names.toml`)
hessian f          ->   did you mean  Ad.hessian ?                   (another module has it)
lenght xs          ->   did you mean  length ?                       (a typing error)
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from dpl.core import ty
from dpl.diagnostics import DplError, Edit, Label
from dpl.node import node
from dpl.regex import regex
from dpl.source import Span
from dpl.syntax import tree
from dpl.syntax.foreign import COMPOSED, OPERATORS, SAME, WORDS, table, without_modifier
from dpl.types.messages.axes import of_method, of_named_axis
from dpl.types.messages.parts import FORGOTTEN_DO, at_the_margin, printer
from dpl.types.solve.meta import Type, prune
from dpl.types.state.env import TYPES, Failed, TypeName, Value

SUGGESTING = "did you mean  "
HERE = "here it is written  "
NAME = regex(r"[^\W\d][\w.']*")
MOST = 2  # most names in one help


@node
class Way:
    """Helps for an unknown name, and an edit if the fix is certain."""

    helps: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()


def unbound(cx, kind: str, name: str, span: Span, wanted: Type | None = None) -> DplError:
    """The error for an unbound name.  `kind` is value, type, constructor or field; `wanted` is a constructor's type."""
    qualifier, dot, member = name.rpartition(".")
    if dot and qualifier and qualifier[0].isalpha():
        return unknown_member(cx, kind, qualifier, member, span)
    code = "E0202" if kind == "value" else "E0203"
    forgotten_rec = kind == "value" and name == cx.defining
    python = kind == "value" and name == "f" and span.source.text[span.end : span.end + 1] == '"'
    below = None if forgotten_rec or python else cx.ahead.get((kind, name))
    if python:
        way = misread(cx, name, span)
    elif forgotten_rec and at_the_margin(span):
        way = Way((FORGOTTEN_DO,))
    elif forgotten_rec:
        way = own_name(name, span)
    elif below is not None:
        together = "; functions that call each other:  let rec f x = ... and g y = ..." if kind == "value" else ""
        way = Way((f"declare it before its use{together}",))
    else:
        way = elsewhere_called(kind, name, span)
    if not way.helps and kind == "value":
        way = misread(cx, name, span)
    if not way.helps and kind == "type" and len(name) == 1:
        way = Way((f"a type variable is written  '{name}",))
    if kind == "field" and below is None:
        way = of_field(cx, name, span, way)
    if not way.helps:
        way = mistyped(cx, kind, name, span)
    if not way.helps and kind == "constructor":
        named = named_arguments(name, span)
        way = Way(named) if named else as_value(cx, name, span)
    if not way.helps and kind == "constructor":
        way = Way(constructors(cx, name, wanted))
    labels = (Label(below, f"`{name}` is declared below"),) if below is not None else ()
    return cx.fail(code, f"there is no {kind} `{name}` here", span, labels=labels, helps=way.helps, edits=way.edits)


def own_name(name: str, span: Span) -> Way:
    """Suggestions for a name in its own definition: a function needs `rec`, a value another name."""
    before = span.source.text[: span.start]
    if re.search(rf"\blet\s+{re.escape(name)}\s*(:[^=]*)?=(?!\s*(fun|grad)\b)[^=]*$", before):
        return Way((f"what is needed to make `{name}` has another name:  let {name} = f {name}0",))
    return Way((f"a function that calls itself is defined with  let rec {name} ...",))


def misread(cx, name: str, span: Span) -> Way:
    """Suggestions for misreadings: Python's `f"{x}"`, `y = 1` as a step of its own, `let mut x`, `point { x = 1 }`."""
    text, line = span.source.text, span.source.line(span.line)
    following = text[span.end :]
    if helps := named_arguments(name, span) or after_loop(name, text[: span.start]) or of_file(name, following):
        return Way(helps)
    if following.startswith('"') and name in ("f", "r", "b", "u", "s"):
        edits = (Edit(span, "$"),) if name in ("f", "s") else ()
        return Way(('a string has no letter before it; with values in it:  $"x = {x}"',), edits)
    before = re.search(rf"\blet\s+(\w+)\s+{re.escape(name)}\b", text[: span.start])
    if before and (helps := without_modifier(before[1], name)):
        return Way((f"`let {before[1]} {name}` defines a function `{before[1]}`; {helps[0]}", *helps[1:]))
    if applied := re.search(r"\b((?:value_and_)?grad|diff|vjp|jvp) \(([^()]*)$", text[: span.start]):
        body = f"{applied[2]}{name}{following.partition(')')[0]}"
        if re.search(r"[-+*/]", body) and "fun" not in body and "\n" not in body:
            return Way((f"it takes a function:  {applied[1]} (fun {name} -> {body})",))
    if re.match(r"\s*\{", following) and name in known(cx, "type")[0]:
        return Way(("a record has no name before it:  { x = e; ... }",))
    if name.endswith(("²", "³")) and cx.find(name[:-1]) is not None:
        return Way((f"a power is written  {name[:-1]} ** {'2' if name.endswith('²') else '3'}",))
    if name.endswith("'") and cx.find(name.rstrip("'")) is not None:
        return Way((f"the derivative:  grad {name.rstrip(chr(39))}", "or  diff  of a function of one number"))
    if re.search(r"\bwhere\b", line + rest_of(following)) and cx.find("where") is None:
        return Way(WORDS["where"])
    if re.search(r";\s*$", text[: span.start]) and re.match(r"\s*=[^=]", following) and line.startswith("let "):
        return Way((f"each value has a `let` of its own, in a line of its own:  let {name} = e",))
    if line.strip() == line[line.find(name) :].strip() and re.match(r"\s*=[^=]", text[span.end :]):
        return Way((f"to name a value:  let {name} = e in ...",))
    return Way()


def rest_of(following: str) -> str:
    """The rest of a line, and the indented lines after it."""
    found = re.match(r"[^\n]*(\n[ \t]+[^\n]*)*", following)
    return found[0] if found else ""


def of_file(name: str, following: str) -> tuple[str, ...]:
    """A help for `Data.read_csv iris.csv`."""
    file = re.match(r"\.(csv|txt|json|npy|npz|png|pgm|safetensors|gz)\b", following)
    return (f'the name of a file is a string:  "{name}{file[0]}"',) if file else ()


def after_loop(name: str, before: str) -> tuple[str, ...]:
    """A help for the index or state of a loop whose body has ended at a `;` of the same declaration."""
    declaration = re.split(r"\n(?=\w)", before)[-1]
    bound = rf"(?:[^;=]*\b{re.escape(name)}\b[^;=]*=|[^;]*\bfor\s+{re.escape(name)}\s*<)"
    if re.search(rf"\bloop\b{bound}[^;]*\bdo\b[^;]*;", declaration):
        return (f"the loop of `{name}` ends at the `;`; several steps of it are put in parentheses:  (a; b)",)
    return ()


def named_arguments(name: str, span: Span) -> tuple[str, ...]:
    """Helps for `f(x=1.0)`, at its function or at the name of an argument."""
    text = span.source.text
    if called := re.match(r"\(\s*([a-z]\w*)\s*=[^=]", text[span.end :]):
        return (f"arguments have no names; a record has:  {{ {called[1]} = ...; ... }}",)
    if name == "axis" and (along := of_named_axis(text[: span.start], text[span.start :])):
        return (along,)
    in_call = re.search(r"\w(?<!\bif)(?<!\bwhen) ?\(([^()]*,)?\s*$", text[: span.start])
    if in_call and re.match(r"\s*=[^=]", text[span.end :]):
        return (f"arguments have no names, and `=` compares; a record has names:  {{ {name} = ...; ... }}",)
    return ()


def as_value(cx, name: str, span: Span) -> Way:
    """Suggestions for a class of another library that is a function here, or a constructor that is written in another
    way: `Conv2d` is `Nn.conv2d`, `LogNormal` is `Dist.Lognormal`."""
    same: list[str] = []
    for scope, others in (known(cx, "constructor"), known(cx, "value")):
        same += [q for other in others if bare(other) == bare(name) for q in others[other]]
        same += [other for other in scope if bare(other) == bare(name)]
    return Way((f"{HERE}{' or '.join(same[:MOST])}",)) if same else elsewhere_called("value", name, span)


def constructors(cx, name: str, wanted: Type | None) -> tuple[str, ...]:
    """A help that lists the constructors of the wanted type, or else one about names in lower case."""
    t = prune(wanted) if wanted is not None else None
    data = cx.datas.get(t.name) if type(t) is ty.Con else None
    if data is not None and not data.fields:
        shown = ", ".join(name for name, _ in data.cases)
        return (f"the constructors of `{printer(cx).data_name(data.name)}` are  {shown}",)
    return (f"names of values begin with a small letter:  {name[:1].lower()}{name[1:]}",)


def of_field(cx, name: str, span: Span, way: Way) -> Way:
    """Suggestions for a field of no record type here: a module's record type may have it.  `f . g` is read as one."""
    if re.search(r"\s\.\s", span.text):
        return Way((COMPOSED,))
    datas = [exports.fields[name] for exports in cx.modules.values() if name in exports.fields]
    known_datas = [data for data in datas if not isinstance(data, Failed)]
    if way.helps and not span.text.startswith("{"):  # in a record, the name is the user's
        return way
    for data in known_datas:
        owner = printer(cx).data_name(data.name)
        module = owner.partition(".")[0]
        if re.search(rf"\b{module}\.", span.source.text):  # the program names the module
            usual = cx.modules[module].values.get("usual")
            is_usual = isinstance(usual, Value) and type(made := usual.scheme.ty) is ty.Con and made.name == data.name
            if is_usual and span.text.startswith("{"):  # a record with some of its fields
                return Way((f"{owner} has it, and other fields:  {{ {module}.usual with {name} = ... }}",))
            return Way((f"{owner} has it: annotate what is one:  (e : {owner})",))
    near = suggest(name, known(cx, "field")[0])
    owner, point, _ = span.text.rpartition(".")
    if not near and point and span.source.text[span.end : span.end + 1] == "(":  # `x.to_float()`, of an unknown `x`
        return Way((f"functions stand before what they are given:  {renamed('value', name, 'same') or 'f'} {owner}",))
    return Way(near or (f"no record type has it; declare one:  type t = {{ {name} : ...; ... }}",))


def called_on_function(cx, name: str, owner: str, is_near: bool) -> str:
    """The help for `f.grad`, for `map .x rs`, which is read as `map.x rs`, and for `f . g`."""
    if name == "grad":
        return f"{HERE}grad {owner}"
    if cx.is_field(name):
        return f"a field as a function:  fun r -> r.{name}"
    if is_near and (way := renamed("value", name, "like")):  # SciPy: `norm.cdf x`
        return HERE + way
    return f"functions are composed by  fun x -> {owner} ({name} x)"


def of_inner_field(cx, e: tree.Field, t: Type) -> tuple[str, ...]:
    """The help for `r.x` where `r` is no record, but an option, a list, a tuple of records, or a function that gives
    one."""
    name, owner = e.name, e.record.span.text if len(e.record.span.text) < 30 else "x"

    def has(inner: Type | ty.Size) -> bool:
        found = inner if isinstance(inner, ty.Size) else prune(inner)
        data = cx.datas.get(found.name) if isinstance(found, ty.Con) else None
        return data is not None and name in data.fields

    match t:
        case ty.Con("Prelude.option", (inner,)) if has(inner):
            return (f"where there is one:  match {owner} with | Some r -> r.{name} | None -> ...",)
        case ty.Con("Prelude.result", (inner, _)) if has(inner):
            return (f"where it succeeded:  match {owner} with | Ok r -> r.{name} | Error _ -> ...",)
        case ty.Con("list", (inner,)) if has(inner):
            return (f"of each element:  List.map (fun r -> r.{name}) {owner}",)
        case ty.Fn(arg, _, result) if has(result):
            return (f"what the function gives has it:  ({owner} {'()' if prune(arg) == ty.UNIT else '...'}).{name}",)
        case ty.Tup(items) if True in (having := [has(item) for item in items]):
            parts = ["r" if i == having.index(True) else "_" for i in range(len(items))]
            return (f"a part of it has it:  let ({', '.join(parts)}) = {owner} in r.{name}",)
        case _:
            return ()


def called_on(cx, e: tree.Field, t: Type) -> tuple[str, ...]:
    """Helps for `xs.map f`, where `xs`, of type `t`, is not a record."""
    name, owner = e.name, e.record.span.text if len(e.record.span.text) < 30 else "x"
    if name == "at" and (at := re.match(r"\[[^]\n]{1,20}]", e.span.source.text[e.span.end :])):  # JAX: `x.at[i].set(e)`
        return (f"an array does not change; one with another element:  {{ {owner} with {at[0]} = e }}",)
    if type(t) is ty.Fn:
        return (called_on_function(cx, name, owner, e.span.text == f"{owner}.{name}"),)
    if type(t) is ty.Arr and cx.is_field(name):
        return (f"of each element:  map (fun r -> r.{name}) {owner}",)
    if type(t) is ty.Con and t.name == "ref":
        return (f"the content of a reference:  !{owner}",)
    if type(t) is ty.Arr and re.search(r"\s\.\s", e.span.text):
        return (f"a product of vectors:  dot {owner} {name} ; of matrices:  {owner} @ {name}",)
    if t == ty.STRING and name == "format":
        return ('values in a string:  $"x = {x}"',)
    module = {"string": "String", "list": "List"}.get(t.name, t.name.partition(".")[0]) if type(t) is ty.Con else ""
    own = module in cx.modules and name in cx.modules[module].values
    if not own and (target := renamed("field", name, "same")):
        return (f"{HERE}{target}",)
    ours = name if own else renamed("value", name, "same") or name
    if module in cx.modules and ours in cx.modules[module].values:
        ours = f"{module}.{ours}"
    elif module == "Map":
        return (f'the value of a key:  match Map.find "{name}" {owner} with | Some v -> ... | None -> ...',)
    elif ours == name and cx.find(name) is None:
        return (of_no_function(e, owner, t),)
    if type(t) is ty.Arr and (along := of_method(ours, owner, e.span.source.text[e.span.end :])):
        return (along,)
    others = " ..." if re.match(r"\s*\(\s*[^)\s]|\s+\w", e.span.source.text[e.span.end :]) else ""
    return (f"functions stand before what they are given:  {ours}{others} {owner}",)


def of_no_function(e: tree.Field, owner: str, t: Type) -> str:
    """The help for `xs.foo` and `xs.foo()` where there is no function `foo`."""
    if like := renamed("value", e.name, "like"):
        return f"{HERE}{like}"
    if type(t) is ty.Arr and not re.match(r"\s*\(", e.span.source.text[e.span.end :]):
        return f"an array has places, not names:  {owner}[0]"
    return f"functions stand before what they are given:  f {owner}"


def unknown_member(cx, kind: str, qualifier: str, member: str, span: Span) -> DplError:
    """The error for `Model.f` where there is no such module, or no `f` in it."""
    target = table()["members"].get(f"{qualifier}.{member}")
    if qualifier not in cx.modules:
        near = suggest(qualifier, dict.fromkeys(cx.modules))
        way = Way(near) if near else called_plainly(cx, kind, member, span)
        way = written(target, span, False) if target else way
        own = (f"a module of your own is imported first:  import {qualifier}",)
        title = f"there is no module `{qualifier}` in scope"
        return cx.fail("E0560", title, span, helps=way.helps or own, edits=way.edits)
    names = getattr(cx.modules[qualifier], kind + "s")
    if member.startswith("_"):
        title = f"`{member}` is private to module `{qualifier}`, as its underscore says"
        return cx.fail("E0561", title, span, helps=suggest(member.lstrip("_"), dict.fromkeys(names)))
    ours = renamed(kind, member, "same")
    ours = own if (own := ours.rpartition(".")[2]) in names else ours  # `List.find_index`
    near = suggest(member, (), {member: [f"{qualifier}.{name}" for name in nearest(member, names)]})
    small = member[:1].lower() + member[1:]
    if kind == "constructor" and small in cx.modules[qualifier].values:  # `Nn.Linear`
        ours, names = small, cx.modules[qualifier].values
    if target:
        way = written(target, span, False)
    elif ours in names:  # `List.fold_left` is `List.fold`
        way = written(f"{qualifier}.{ours}", span, True)
    elif kind == "value" and (found := cx.modules[qualifier].types.get(member)) is not None:
        way = Way(of_type(cx, found, f"{qualifier}.{member}", qualifier))
    elif kind == "value" and not isinstance(data := cx.modules[qualifier].fields.get(member), Failed | None):
        way = Way((f"`{member}` is a field of {printer(cx).data_name(data.name)}:  e.{member}",))
    else:
        plainly = kind == "value" and any(member in layer.values for layer in cx.layers[:2])  # `Stats.mean` is `mean`
        like = elsewhere_called(kind, member, span) if kind == "value" and not ours else Way()
        way = like if like.helps else Way(near) if near and not plainly else called_plainly(cx, kind, member, span)
        if kind == "value" and not way.helps:
            way = Way(suggest(member, (), {member: [f"{qualifier}.{name}" for name in of_its_words(member, names)]}))
        if plainly and qualifier == "List" and "to_array" in names:
            way = Way((f"of an array it is  {member} , which  List.to_array xs  makes of a list",))
        if kind == "constructor" and not names and not way.helps:
            way = called_plainly(cx, "value", small, span)
        if kind == "constructor" and names and not near and not any(f" {qualifier}." in help for help in way.helps):
            way = Way((*way.helps, f"the constructors of `{qualifier}`:  {', '.join(names)}"))
    title = f"module `{qualifier}` has no {kind} `{member}`"
    return cx.fail("E0561", title, span, helps=way.helps or inventory(qualifier, names), edits=way.edits)


def inventory(module: str, names: Iterable[str]) -> tuple[str, ...]:
    """The help for a member that nothing resembles: what there is, if it fits on a line, or where it is told."""
    listed = "  ".join(name for name in names if name[0] != "_")
    return (f"it has  {listed}" if len(listed) < 160 else f"what it has:  dpl doc {module}",) if listed else ()


def of_type(cx, found: TypeName | Failed, shown: str, module: str) -> tuple[str, ...]:
    """A help for the name of a module's type where a value is wanted: the values of it, or its parts."""
    data = None if isinstance(found, Failed) else cx.datas.get(found.name)
    if data is None:
        return (f"`{shown}` is a type",)
    values = cx.modules[module].values.items()
    named = [f"{module}.{name}" for name, v in values if type(t := v.scheme.ty) is ty.Con and t.name == data.name]
    if named:
        return (f"`{shown}` is a type; values of it:  {'  '.join(named[:4])}",)
    parts = data.fields or [case for case, _ in data.cases]
    return (f"`{shown}` is a type, with the {'fields' if data.fields else 'constructors'}  {', '.join(parts)}",)


def of_other_library(cx, e: tree.Field, prefix: str) -> DplError:
    """The error for `np.exp x` where `np` is not bound.  `np.diff` is no `diff` of ours, so the table has it whole."""
    like = renamed("value", f"{prefix}.{e.name}", "like")
    way = written(like, e.span, False) if like else called_plainly(cx, "value", e.name, e.span)
    helps = way.helps or (f"names of the library are written without `{prefix}.`",)
    return cx.fail("E0202", f"there is no `{prefix}` here, and no need of it", e.span, helps=helps, edits=way.edits)


def called_plainly(cx, kind: str, member: str, span: Span) -> Way:
    """Suggestions for an unknown member of a module: the plain name, or the same name in another module."""
    found = cx.find(member) if kind == "value" else None
    if found is not None and not isinstance(found, Failed):
        return written(member, span, True)
    way = elsewhere_called(kind, member, span)
    return way if way.helps else Way(suggest(member, *known(cx, kind)))


# ---- names in other languages


def elsewhere_called(kind: str, name: str, span: Span) -> Way:
    """Suggestions from the table: the DPL name for what another language calls `name`."""
    if kind == "value" and name in OPERATORS:
        return Way((OPERATORS[name],), (Edit(span, SAME[name]),) if name in SAME else ())
    if target := renamed(kind, name, "same"):
        return written(target, span, NAME.fullmatch(target) is not None or kind == "value")
    if target := renamed(kind, name, "like"):
        return written(target, span, False)
    said = table()["said"].get(name) if kind == "value" else None
    return Way((said,)) if said else Way()


def renamed(kind: str, name: str, section: str) -> str:
    """The table's entry for a name in any spelling (`stopGradient`, `stop_gradient`), or ""."""
    sections = {"value": section} if section == "like" else {"value": section, "type": "types",
                "constructor": "constructors", "field": "fields"}  # fmt: skip
    return plain(sections[kind]).get(bare(name), "") if kind in sections else ""


@cache
def plain(section: str) -> dict[str, str]:
    return {bare(name): target for name, target in table()[section].items()}


def bare(name: str) -> str:
    """A name without the differences of naming conventions."""
    return re.sub(r"[_']", "", name.casefold())


def written(target: str, span: Span, certain: bool) -> Way:
    return Way((HERE + target,), (Edit(span, target),) if certain else ())


# ---- typing errors


def known(cx, kind: str) -> tuple[dict[str, None], dict[str, list[str]]]:
    """The names in scope, and the names of modules with their qualified forms."""
    scope = {name for exports in cx.layers for name in getattr(exports, kind + "s")}
    if kind == "value":
        scope |= {name for name, stack in cx.locals.items() if stack}
    if kind == "type":
        scope |= set(TYPES)
    others: dict[str, list[str]] = {}
    for module, exports in cx.modules.items():
        if module != "Prelude" and module not in table()["hidden"]["names"]:
            for name in getattr(exports, kind + "s"):
                if not name.startswith("_"):
                    others.setdefault(name, []).append(f"{module}.{name}")
    return dict.fromkeys(scope), others


def suggest(name: str, scope: Iterable[str], others: dict[str, list[str]] | None = None) -> tuple[str, ...]:
    """A help `did you mean ...`: the same name in another module, or similar names."""
    others = others or {}
    close = others.get(name) or nearest(name, scope) or [q for near in nearest(name, others) for q in others[near]]
    return (f"{SUGGESTING}{' or '.join(close[:MOST])} ?",) if close else ()


def mistyped(cx, kind: str, name: str, span: Span) -> Way:
    """Suggestions for a typing error in a name of DPL, or in one of another language."""
    large = name[:1].upper() + name[1:]
    if kind == "value" and large in known(cx, "constructor")[0]:
        return written(large, span, True)
    scope, others = known(cx, kind)
    helps = suggest(name, scope, others if kind != "constructor" or name in others else {})
    meant = [] if helps or kind != "value" else nearest(bare(name), plain("same"))
    return written(plain("same")[meant[0]], span, False) if meant else Way(helps)


def suggested(help: str) -> list[str]:
    """The names in a help made by `suggest`."""
    return help.removeprefix(SUGGESTING).removesuffix(" ?").split(" or ") if help.startswith(SUGGESTING) else []


def of_its_words(name: str, names: Iterable[str]) -> list[str]:
    """The longest names that are some words of a name in a row: `linear` of `linear_init`."""
    found = [other for other in names if len(other) > 2 and f"_{other}_" in f"_{name}_"]
    return sorted(other for other in found if len(other) == max(map(len, found)))


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """The most similar names, if they are similar enough for a typing error."""
    found: dict[int, list[str]] = {}
    for other in names:
        if other != name and (other[:1].isalpha() or other[:1] == "_"):
            slips = distance(name, other)
            if slips is not None:
                found.setdefault(slips, []).append(other)
    return sorted(found[min(found)]) if found else []


def distance(one: str, other: str) -> int | None:
    """The Damerau-Levenshtein distance of two names: letters added, left out, wrong or exchanged.

    None if it exceeds the limit for names of this length.  Names of three letters allow only an exchange; in names of
    four letters, only a letter between the first and the last may be wrong.
    """
    a, b = bare(one), bare(other)
    longest = max(len(a), len(b))
    most = 0 if longest < 2 else 1 if longest < 6 else 2 if longest < 10 else 3
    if abs(len(a) - len(b)) > most:
        return None
    ends_differ = (a[:1], a[-1:]) != (b[:1], b[-1:])
    if sorted(a) != sorted(b) and (longest < 4 or (longest < 5 and len(a) == len(b) and ends_differ)):
        return None
    before, last = [], list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and y == a[i - 2]:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    slips = last[-1]
    return slips if slips <= most and (slips < 2 or a[0] == b[0]) else None
