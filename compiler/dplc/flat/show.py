"""flat -> text, to be read by people.

fn main.f(x: f64, n: i64) -> (f64)
  y: f64 = mul x x
  (r: f64) = for i < n state (s: f64 = y)
    t: f64 = mul s x
    yield t
  return r
"""

from __future__ import annotations

from collections.abc import Iterator

from dplc.flat import term as f


def show(program: f.Program) -> str:
    parts = [show_data(d) for d in program.datas.values()]
    parts += [f"residual {site} = {show_type(ty)}" for site, ty in program.residuals.items()]
    parts += [show_fn(fn) for fn in program.fns.values()]
    return "\n\n".join(parts) + "\n"


def show_type(ty: f.Type) -> str:
    match ty:
        case f.Num(name):
            return name
        case f.Str():
            return "str"
        case f.Tup(items):
            return f"({', '.join(map(show_type, items))})"
        case f.Arr(elem, rank):
            return f"{show_type(elem)}[{',' * (rank - 1)}]"
        case f.Data(name):
            return name
        case f.Ref(elem):
            return f"ref {show_type(elem)}"
        case f.Res(site):
            return f"res {site}"


def show_data(decl: f.DataDecl) -> str:
    names = decl.names or tuple(map(str, range(len(decl.payloads))))
    cases = (n if p is None else f"{n} {show_type(p)}" for n, p in zip(names, decl.payloads, strict=True))
    return f"data {decl.name} = {' | '.join(cases)}"


def show_fn(fn: f.Fn) -> str:
    head = f"fn {fn.name}({', '.join(map(typed, fn.params))}) -> ({', '.join(map(show_type, fn.results))})"
    return "\n".join([head, *block_lines(fn.body, "return")])


def typed(var: f.Var) -> str:
    return f"{var.name}: {show_type(var.ty)}"


def atom(a: f.Atom) -> str:
    match a:
        case f.Var(name, _):
            return name
        case f.Const(None, ty):
            return f"null:{show_type(ty)}"
        case f.Const(bool(value), _):
            return "true" if value else "false"
        case f.Const(str(value), _):
            return repr(value)
        case f.Const(value, ty):
            return str(value) if ty in (f.I64, f.F64, f.UNIT) else f"{value}:{show_type(ty)}"


def atoms(items: tuple[f.Atom, ...]) -> str:
    return " ".join(map(atom, items))


def listed(items: tuple[f.Atom, ...]) -> str:
    return ", ".join(map(atom, items))


def block_lines(block: f.Block, verb: str) -> Iterator[str]:
    for bind in block.binds:
        for line in bind_lines(bind):
            yield "  " + line
    if block.results or verb == "return":
        yield f"  {verb} {listed(block.results)}".rstrip()


def bind_lines(bind: f.Bind) -> Iterator[str]:
    head, *rest = rhs_lines(bind.rhs)
    match bind.vars:
        case ():
            yield head
        case (var,):
            yield f"{typed(var)} = {head}"
        case several:
            yield f"({', '.join(map(typed, several))}) = {head}"
    yield from rest


def states(state: tuple[f.Var, ...], inits: tuple[f.Atom, ...], collect: int) -> str:
    kept = f" collect {collect}" if collect else ""
    return f"state ({', '.join(f'{typed(s)} = {atom(i)}' for s, i in zip(state, inits, strict=True))}){kept}"


def rhs_lines(rhs: f.Rhs) -> Iterator[str]:
    match rhs:
        case f.Op(op, args, attrs):
            yield " ".join([op, *(f"{k}={v}" for k, v in attrs), *map(atom, args)])
        case f.Call(fn, args):
            yield f"{fn}({listed(args)})"
        case f.Ad(mode, fn, args, site):
            yield f"{mode} {fn} site={site} ({listed(args)})"
        case f.TupMake(items):
            yield f"({listed(items)})"
        case f.TupGet(tup, index):
            yield f"{atom(tup)}.{index}"
        case f.ConMake(data, tag, arg):
            yield f"{data}#{tag}" + (f" {atom(arg)}" if arg is not None else "")
        case f.If(cond, then, else_):
            yield f"if {atom(cond)}"
            yield from block_lines(then, "yield")
            yield "else"
            yield from block_lines(else_, "yield")
        case f.Switch(scrutinee, cases, default):
            yield f"switch {atom(scrutinee)}"
            for case in cases:
                yield f"case {case.tag}" + (f" ({typed(case.payload)})" if case.payload else "")
                yield from block_lines(case.body, "yield")
            if default is not None:
                yield "default"
                yield from block_lines(default, "yield")
        case f.For(index, count, state, inits, body, collect):
            yield f"for {index.name} < {atom(count)} {states(state, inits, collect)}"
            yield from block_lines(body, "yield")
        case f.While(state, inits, cond, body, collect):
            yield f"while {states(state, inits, collect)}"
            yield from block_lines(cond, "test")
            yield "do"
            yield from block_lines(body, "yield")
        case f.Build(index, count, body, _, inner):
            sizes = ", ".join(f"({' '.join(map(atom, one))})" for one in inner)
            yield f"build {index.name} < {atom(count)}{f' of {sizes}' if any(inner) else ''}"
            yield from block_lines(body, "yield")
        case f.Map(params, inputs, body, ranks):
            pairs = ", ".join(f"{typed(p)} in {atom(i)}" for p, i in zip(params, inputs, strict=True))
            yield f"map {pairs} to ranks {' '.join(map(str, ranks))}"
            yield from block_lines(body, "yield")
