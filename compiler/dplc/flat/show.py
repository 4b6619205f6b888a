"""flat -> text for people, which `flat/parse.py` reads back.  Only the source spans are left out.

fn main.f(x: f64, n: i64) -> (f64) as f
  y: f64 = mul x x
  r: f64 = for i < n state (s: f64 = y)
    t: f64 = mul s x
    yield t
  return r

`as f` is the function's name in messages.  `xs: &list.0` is a borrowed parameter.  A constant has its type after a
colon unless it is an i64, an f64, a bool, a string or ().  A name with characters that a word cannot have is in
backticks.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from dpl.regex import regex

from dplc.flat import term as f

WORD = regex(r"[^\s()\[\]{},:;=&`'\"#]+")
CONSTANT = regex(r"true|false|null|nan|-?inf|-?\d.*")
PLAIN = (f.I64, f.F64, f.UNIT, f.BOOL, f.STR)  # constants of these types are shown without their type


def show(program: f.Program) -> str:
    parts = [show_data(d) for d in program.datas.values()]
    parts += [f"residual {name(site)} = {show_type(ty)}" for site, ty in program.residuals.items()]
    parts += [f"checkpoint {name(fn)}" for fn in sorted(program.checkpoints)]
    parts += [show_rule(fn, rule) for fn, rule in program.rules.items()]
    parts += [f"export {name(public)} = {name(fn)}" for public, fn in program.exports.items()]
    parts += [f"main = {name(program.main)}"] if program.main != "main" else []
    parts += [show_fn(fn) for fn in program.fns.values()]
    return "\n\n".join(parts) + "\n"


@lru_cache(maxsize=1 << 16)
def name(text: str) -> str:
    """A name as a word, or else in backticks."""
    return text if WORD.fullmatch(text) and not CONSTANT.fullmatch(text) else f"`{text}`"


@lru_cache(maxsize=1 << 12)
def show_type(ty: f.Type) -> str:
    """A type as text.  Arrays have a comma less than dimensions."""
    match ty:
        case f.Num(num):
            return num
        case f.Str():
            return "str"
        case f.Tup(items):
            return f"({', '.join(map(show_type, items))})"
        case f.Arr(f.Ref() | f.Res() as elem, rank):
            return f"{{{show_type(elem)}}}[{',' * (rank - 1)}]"
        case f.Arr(elem, rank):
            return f"{show_type(elem)}[{',' * (rank - 1)}]"
        case f.Data(data):
            return name(data)
        case f.Ref(elem):
            return f"ref {show_type(elem)}"
        case f.Res(site):
            return f"res {name(site)}"


def show_data(decl: f.DataDecl) -> str:
    names = decl.names or tuple(map(str, range(len(decl.payloads))))
    cases = (n if p is None else f"{n} {show_type(p)}" for n, p in zip(names, decl.payloads, strict=True))
    return f"data {name(decl.name)} = {' | '.join(cases)}".rstrip()


def show_rule(fn: str, rule: f.Rule) -> str:
    pullback = f", {name(rule.pullback)}" if rule.pullback else ""
    return f"rule {name(fn)} = {rule.kind} {name(rule.fn)}{pullback}"


def show_fn(fn: f.Fn) -> str:
    """A function: its head, with `&` at borrowed parameters, and its body."""
    params = ", ".join(typed(p, "&" if i in fn.borrowed else "") for i, p in enumerate(fn.params))
    label = f" as {name(fn.label)}" if fn.label else ""
    head = f"fn {name(fn.name)}({params}) -> ({', '.join(map(show_type, fn.results))}){label}"
    lines = [head]
    add_block(lines, fn.body, "return", "  ")
    return "\n".join(lines)


def typed(var: f.Var, mark: str = "") -> str:
    return f"{name(var.name)}: {mark}{show_type(var.ty)}"


def atom(a: f.Atom) -> str:
    if isinstance(a, f.Var):
        return name(a.name)
    value = literal(a.value)
    return value if a.ty in PLAIN else f"{value}:{show_type(a.ty)}"


def literal(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case _:
            return repr(value)


def attribute(key: str, value: object) -> str:
    if isinstance(value, str):
        return f"{key}={value if name(value) == value else repr(value)}"
    return f"{key}={literal(value)}"


def atoms(items: tuple[f.Atom, ...]) -> str:
    return " ".join(map(atom, items))


def listed(items: tuple[f.Atom, ...]) -> str:
    return ", ".join(map(atom, items))


def add_block(lines: list[str], block: f.Block, verb: str, indent: str) -> None:
    """Adds the lines of a block."""
    for bind in block.binds:
        lines.append(indent + bind_head(bind))
        for title, inner, ending in sections(bind.rhs):
            if title:
                lines.append(indent + title)
            add_block(lines, inner, ending, indent + "  ")
    if block.results or verb == "return":
        lines.append(f"{indent}{verb} {listed(block.results)}".rstrip())


def bind_head(bind: f.Bind) -> str:
    """The first line of a binding."""
    head = rhs_head(bind.rhs)
    match bind.vars:
        case ():
            return head
        case (var,):
            return f"{typed(var)} = {head}"
        case several:
            return f"({', '.join(map(typed, several))}) = {head}"


def states(state: tuple[f.Var, ...], inits: tuple[f.Atom, ...], collect: int) -> str:
    kept = f" collect {collect}" if collect else ""
    return f"state ({', '.join(f'{typed(s)} = {atom(i)}' for s, i in zip(state, inits, strict=True))}){kept}"


def out(out: f.Out) -> str:
    sizes = f" of ({' '.join(map(atom, out.inner))})" if out.inner else ""
    match out:
        case f.Out("fold", rank):
            return f"fold {rank}" + " kept" * out.kept
        case f.Out("add", _, f.Var() | f.Const() as target, f.Var() as acc):
            return f"add{sizes} ({typed(acc)} = {atom(target)})"
        case f.Out("last", inner=(length,)):
            return f"last {atom(length)}"
        case f.Out("done"):
            return "done" + " kept" * out.kept + " team" * out.team
        case _:
            order = f" order ({' '.join(map(str, out.order))})" if out.order else ""
            return "keep" + sizes + order + (f" in {atom(out.target)}" if out.target is not None else "")


def rhs_head(rhs: f.Rhs) -> str:  # noqa: C901 -- one case per form
    """The first line of a right-hand side."""
    match rhs:
        case f.Op(op, args, attrs):
            return " ".join([op, *(attribute(k, v) for k, v in attrs), *map(atom, args)])
        case f.Call(fn, args):
            return f"{name(fn)}({listed(args)})"
        case f.Ad(mode, fn, args, site):
            return f"{mode} {name(fn)} site={name(site)} ({listed(args)})"
        case f.TupMake(items):
            return f"({listed(items)})"
        case f.TupGet(tup, index):
            return f"{atom(tup)}.{index}"
        case f.ConMake(data, tag, arg):
            return f"{name(data)}#{tag}" + (f" {atom(arg)}" if arg is not None else "")
        case f.If(cond):
            return f"if {atom(cond)}"
        case f.Switch(scrutinee):
            return f"switch {atom(scrutinee)}"
        case f.For(index, count, state, inits, _, collect):
            return f"for {name(index.name)} < {atom(count)} {states(state, inits, collect)}"
        case f.While(state, inits, _, _, collect):
            return f"while {states(state, inits, collect)}"
        case f.Build(index, count, _, _, inner):
            sizes = ", ".join(f"({' '.join(map(atom, one))})" for one in inner)
            return f"build {name(index.name)} < {atom(count)}{f' of {sizes}' if inner else ''}"
        case f.Map(params, inputs, _, ranks):
            pairs = ", ".join(f"{typed(p)} in {atom(i)}" for p, i in zip(params, inputs, strict=True))
            return f"map {pairs} to ranks {' '.join(map(str, ranks))}"
        case f.Par(space, _, outs, _, ordered):
            ranges = ", ".join(f"{name(i.name)} < {atom(n)}" for i, n in space)
            return f"par {'in order ' if ordered else ''}{ranges} to {', '.join(map(out, outs)) or 'nothing'}"


def sections(rhs: f.Rhs) -> Iterator[tuple[str, f.Block, str]]:
    """The inner blocks, each with the line before it, if any, and the word before its results."""
    match rhs:
        case f.If(_, then, else_):
            yield "", then, "yield"
            yield "else", else_, "yield"
        case f.Switch(_, cases, default):
            for case in cases:
                yield f"case {case.tag}" + (f" ({typed(case.payload)})" if case.payload else ""), case.body, "yield"
            if default is not None:
                yield "default", default, "yield"
        case f.While(_, _, cond, body):
            yield "", cond, "test"
            yield "do", body, "yield"
        case f.For() | f.Build() | f.Map() | f.Par():
            yield "", rhs.body, "yield"
        case _:
            pass
