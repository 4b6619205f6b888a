"""Core -> text, for debugging the compiler.

def main.f['a] : 'a -> 'a =
  fun x.1 -> add(x.1, x.1)
"""

from __future__ import annotations

from dpl.core import term, ty

FUN, PRODUCT, ATOM = range(3)


def show(program: term.Program, library: bool = False) -> str:
    """The items and the data types that they mention; with `library`, also the standard library's definitions."""
    parts = [show_item(item) for item in program.items]
    if library:
        parts += [show_item(program.library[name]) for name in sorted(program.library)]
    return "\n".join([*mentioned(program, "\n".join(parts)), *parts]) + "\n"


def mentioned(program: term.Program, text: str) -> list[str]:
    """The data types whose names occur in a text, directly or through other data types."""
    found: dict[str, str] = {}
    grown = True
    while grown:
        new = [d for d in program.datas.values() if d.name not in found and d.name in text]
        found.update((d.name, show_data(d)) for d in new)
        text, grown = " ".join(found[d.name] for d in new), bool(new)
    return [found[name] for name in program.datas if name in found]


def show_data(data: term.Data) -> str:
    """The declaration of a data type, as DPL writes it: a record by its fields, others by their constructors."""
    params = "".join(f" {'' if p.sort == 'size' else chr(39)}{p.name}" for p in data.params)
    if data.fields:
        content = data.cases[0][1]
        types = content.items if isinstance(content, ty.Tup) and len(data.fields) != 1 else (content,)
        return (
            f"type {data.name}{params} = {{ {'; '.join(f'{f} : {show_type(t)}' for f, t in zip(data.fields, types))} }}"
        )
    cases = " | ".join(name if arg is None else f"{name} of {show_type(arg)}" for name, arg in data.cases)
    return f"type {data.name}{params} = {cases}"


def show_item(item: term.Def | term.Do | term.Expect) -> str:
    match item:
        case term.Def(name, params, t, body, group):
            rec = f"  (* with {', '.join(group)} *)" if len(group) > 1 else ""
            return f"def {name}{show_params(params)} : {show_type(t)} ={rec}\n  {show_term(body, 1)}"
        case term.Do(body):
            return f"do\n  {show_term(body, 1)}"
        case _:
            pass
    return f'expect "{item.name}"\n  {show_term(item.body, 1)}'


def show_params(params) -> str:
    return f"[{', '.join(show_type(p) for p in params)}]" if params else ""


# ---- types


def show_type(t, level: int = FUN) -> str:
    match t:
        case ty.Var(name, sort):
            return ("'" if sort == "type" else "") + name
        case ty.Con(name, args):
            return name + (f"({', '.join(show_type(a) for a in args)})" if args else "")
        case ty.Tup(()):
            return "unit"
        case ty.Tup(items):
            return parens(" * ".join(show_type(i, ATOM) for i in items), level == ATOM)
        case ty.Arr(elem, size):
            return f"{show_type(elem, ATOM)}[{show_size(size)}]"
        case ty.Fn(arg, eff, result):
            arrow = "->" if isinstance(eff, ty.Pure) else f"-{{{show_type(eff)}}}->"
            return parens(f"{show_type(arg, PRODUCT)} {arrow} {show_type(result)}", level > FUN)
        case ty.Lift(_, items):
            return parens(f"lift {' '.join(show_type(i, ATOM) for i in items)}", level == ATOM)
        case ty.Size():
            return show_size(t)
        case ty.Ctl(answer):
            return f"ctl {show_type(answer)}"
        case _:
            pass
    return "pure"


def show_size(size: ty.Size) -> str:
    products = [" * ".join((*([str(k)] if k != 1 else []), *names)) for names, k in size.terms]
    return " + ".join([*products, *([str(size.const)] if size.const or not products else [])])


def parens(text: str, needed: bool) -> str:
    return f"({text})" if needed else text


# ---- terms


def show_term(t: term.Term, depth: int) -> str:
    """A term as text.  Simple terms take one line; binders start new lines, indented by `depth`."""
    line = "\n" + "  " * depth
    match t:
        case term.Let():
            parts = []
            while isinstance(t, term.Let):
                parts.append(f"let {t.name}{show_params(t.params)} = {show_term(t.rhs, depth + 1)} in")
                t = t.body
            return line.join([*parts, show_term(t, depth)])
        case term.LetRec(_, _, params, bindings, body):
            group = f"{line}and ".join(f"{n}{show_params(params)} = {show_term(v, depth + 1)}" for n, v in bindings)
            return f"let rec {group} in{line}{show_term(body, depth)}"
        case term.Lam(_, ty.Fn(arg, _, _), param, body):
            return f"fun ({param} : {show_type(arg)}) ->{line}  {show_term(body, depth + 1)}"
        case term.If(_, _, cond, then, else_):
            chosen, other = (show_term(branch, depth + 1) for branch in (then, else_))
            return f"if {atom(cond, depth)} then{line}  {chosen}{line}else{line}  {other}"
        case term.Match(_, _, scrutinee, arms):
            shown = "".join(
                f"{line}| {show_pattern(a.pattern)}{f' when {atom(a.guard, depth)}' if a.guard is not None else ''}"
                f" ->{line}    {show_term(a.body, depth + 2)}"
                for a in arms
            )
            return f"match {atom(scrutinee, depth)} with{shown}"
        case term.For(_, _, state, init, index, count, body):
            head = f"loop {state} = {atom(init, depth)} for {index} < {atom(count, depth)} do"
            return f"{head}{line}  {show_term(body, depth + 1)}"
        case term.While(_, _, state, init, cond, body):
            return (
                f"loop {state} = {atom(init, depth)} while {atom(cond, depth)} do{line}  {show_term(body, depth + 1)}"
            )
        case term.Build(_, _, index, count, body):
            return f"[for {index} < {atom(count, depth)} ->{line}  {show_term(body, depth + 1)}]"
        case term.Shift(_, _, name, body):
            return f"shift {name} ->{line}  {show_term(body, depth + 1)}"
        case term.Check(_, _, name, body, pairs):
            shown = ", ".join(f"{show_term(a, depth)} = {show_term(b, depth)}" for a, b, _ in pairs)
            return f"check {name} = {atom(body, depth)} where {shown}"
        case _:
            pass
    return simple(t, depth)


def simple(t: term.Term, depth: int) -> str:
    match t:
        case term.Var(_, _, name, inst):
            return name + (f"[{', '.join(show_type(i) for i in inst)}]" if inst else "")
        case term.Lit(_, u, value):
            return f'"{value}"' if isinstance(value, str) else f"{str(value).lower()}:{show_type(u)}"
        case term.App(_, _, fn, arg):
            return f"{simple(fn, depth) if isinstance(fn, term.App) else atom(fn, depth)} {atom(arg, depth)}"
        case term.Tuple(_, _, items):
            return f"({', '.join(show_term(i, depth) for i in items)})"
        case term.Con(_, _, name, _, arg):
            return name if arg is None else f"{name} {atom(arg, depth)}"
        case term.Field(_, _, record, index):
            return f"{atom(record, depth)}.{index}"
        case term.Update(_, _, record, fields):
            return f"{{ {atom(record, depth)} with {'; '.join(f'.{i} = {show_term(v, depth)}' for i, v in fields)} }}"
        case term.ArrayLit(_, _, items):
            return f"[{', '.join(show_term(i, depth) for i in items)}]"
        case term.Prim(_, _, op, args):
            return f"{op}({', '.join(show_term(a, depth) for a in args)})"
        case term.Reset(_, _, body):
            return f"reset {atom(body, depth)}"
        case term.Extern(_, _, symbol):
            return f'extern "{symbol}"'
        case _:
            pass
    raise TypeError(t)


def atom(t: term.Term, depth: int) -> str:
    """A term as text, in parentheses unless they are unnecessary."""
    closed = isinstance(t, term.Var | term.Lit | term.Tuple | term.ArrayLit | term.Prim | term.Field | term.Build)
    return show_term(t, depth) if closed or (isinstance(t, term.Con) and t.arg is None) else f"({show_term(t, depth)})"


def show_pattern(p: term.Pattern) -> str:
    match p:
        case term.PWild():
            return "_"
        case term.PVar(_, name):
            return name
        case term.PLit(_, value):
            return f'"{value}"' if isinstance(value, str) else str(value).lower()
        case term.PTuple(_, items):
            return f"({', '.join(show_pattern(i) for i in items)})"
        case term.PCon(_, name, _, arg):
            return name if arg is None else f"{name} ({show_pattern(arg)})"
        case term.PArray(_, items):
            return f"[{', '.join(show_pattern(i) for i in items)}]"
        case term.PAs(_, inner, name):
            return f"({show_pattern(inner)} as {name})"
        case term.POr(_, left, right):
            return f"({show_pattern(left)} | {show_pattern(right)})"
    raise TypeError(p)
