"""Monomorphisation: core -> core, one copy per type.

    let twice f x = f (f x)                      twice@1 : (i64 -> i64) -> i64 -> i64
    do print (twice succ 1, twice half 1.0)      twice@2 : (f64 -> f64) -> f64 -> f64

From the items of the program every reachable (definition, types) is copied once, with its types put in; a local
definition that was generalised becomes one Let for each of its uses' types.  Sizes are erased: an array's size is
always `ANY`.  Effects matter if the program captures contexts: a function that takes functions has one copy for pure
ones and one for those that capture.  A type variable that nothing determined becomes unit, an effect variable pure.
Literals are converted to their types, scalar constants are inlined, and `Extern` becomes functions around
`Prim("extern", (symbol, argument ...))`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Sequence

from dpl.core import term as c
from dpl.core import ty as t
from dpl.core.shapes import needed
from dpl.core.values import is_value
from dpl.core.walk import changed
from dpl.diagnostics import Bug
from dpl.node import replace
from dpl.prims import TABLE
from dpl.source import Span

from dplc.narrow import expect_type
from dplc.passes import NeedsInterpreter
from dplc.passes.specialise import lengths, operands, operators, sizes
from dplc.passes.specialise.copier import Captures, Copier, Known, Local, Operator, Scope, Types, plain
from dplc.passes.specialise.program import Mono, takes_functions
from dplc.passes.specialise.projections import is_data, opened, resolved

MOST_INSTANCES = 20_000


def monomorphise(program: c.Program, exports: Sequence[c.Def] = ()) -> Mono:
    """Copies all items except expectations, which are for `dpl test` (`passes/entry/expectations.py`), and `exports`,
    the functions for callers outside the program."""
    try:
        return Monomorphiser(program).run(exports)
    except Captures:
        return Monomorphiser(program, control=True).run(exports)


class Monomorphiser(Copier):
    def __init__(self, program: c.Program, control: bool = False) -> None:
        super().__init__(program, control)
        self.instances: dict[tuple[str, Types, Known], str] = {}
        self.lifts: dict[Hashable, str] = {}  # names of lifted operators, by key
        self.entries: set[str] = set()  # what others call
        self.constants: dict[str, c.Lit] = {}
        self.values: dict[str, list[tuple[str, c.Term]]] = {}  # the copies of a user's definition, by its name
        self.functions: dict[str, c.Def] = {}  # definitions as `let g = grad`, with their parameter
        self.current: list[dict[str, None]] = []  # mentions of the functions being copied, innermost last

    def run(self, exports: Sequence[c.Def]) -> Mono:
        """The copies that the items and exports need."""
        copied: list[c.Def | tuple[str, c.Term]] = []
        for item in self.program.items:
            match item:
                case c.Def():
                    copied.append(item)
                    self.forced(self.definition(item.name) or item)
                case c.Do(body):
                    copied.append(("", self.term(body, Scope({}))))
                case c.Expect():
                    pass
        for item in copied:
            self.out.items += self.values.get(item.name, ()) if isinstance(item, c.Def) else (item,)
        for export in exports:
            self.defs[export.name] = export
            self.entries.add(export.name)
            function = self.term(c.Var(export.body.span, export.ty, export.name), Scope({}))
            self.out.items.append((exported(export.name), function))
        self.out.exports = tuple(exported(export.name) for export in exports)
        self.out.datas = self.used_datas()
        return self.out

    def forced(self, item: c.Def) -> None:
        """Also evaluates an unused value.  A value of all types is evaluated only if it can be nothing except an
        error."""
        generic = any(p.sort == "type" for p in item.params)
        if not isinstance(item.body, c.Lam) and (not generic or isinstance(item.ty, t.Var)):
            self.instance(item, self.undetermined(item.params))

    def definition(self, name: str) -> c.Def | None:
        found = self.functions.get(name) or super().definition(name)
        if found is not None and not isinstance(found.body, c.Lam):
            body = operators.with_parameter(self, resolved(self, found.body, Scope({})), f"x@{name}")
            if body is not found.body:
                found = self.functions[name] = replace(found, body=body)
        return found

    # ---- instances --------------------------------------------------------------------------------------------------

    def instance(self, definition: c.Def, types: Types, known: Known = ()) -> str:
        """The name of a definition's copy at these types.  The copy is made if needed, depth first, so that the values
        of the library come out in an order in which they can be evaluated."""
        key = (definition.name, types, known)
        if (name := self.instances.get(key)) is not None:
            return name
        count = len(self.instances)
        if count > MOST_INSTANCES:
            reason = f"`{plain(definition.name)}` is needed at too many types"
            raise NeedsInterpreter(reason, definition.body.span)
        name = self.instances[key] = f"{definition.name}@{count}" if types or known else definition.name
        scope = Scope(
            dict(zip(self.names(definition.params), types, strict=True)),
            known=dict(known),
            lengths=None if definition.name in self.entries else {},
        )
        here = self.place
        try:
            self.copied(definition, name, scope)
        except NeedsInterpreter as need:
            if definition.name not in self.defs:  # a function of the library: the user knows the call
                raise NeedsInterpreter(f"`{plain(definition.name)}`: {need.reason}", here, need.helps) from None
            raise
        return name

    def copied(self, definition: c.Def, name: str, scope: Scope) -> None:
        """Copy a definition under a name."""
        told = sizes.told(self, self.needs.of(definition.name), scope)
        if isinstance(definition.body, c.Lam) or told:
            self.current.append(self.out.calls.setdefault(name, {}))
            self.out.functions[name] = expect_type(c.Lam, sizes.functions(told, self.term(definition.body, scope)))
            self.current.pop()
        else:
            self.current.append({})  # mentions in a value do not belong to the function that uses it
            body = self.term(definition.body, scope)
            self.current.pop()
            if isinstance(body, c.Lit):
                self.constants[name] = body
            elif definition.name in self.defs:
                self.values.setdefault(definition.name, []).append((name, body))
            else:
                self.out.items.append((name, body))

    def variable(self, e: c.Var, scope: Scope, known: Known = ()) -> c.Term:
        if (given := scope.known.get(e.name)) is not None:
            if isinstance(given.text, c.Var):
                return self.variable(given.text, given.scope, known)
            if not isinstance(given.text.ty, t.Fn):
                return c.Var(e.span, self.ty(e.ty, scope), e.name)
            return self.mention(e.span, self.ty(e.ty, scope), self.lifted(given))
        ty = self.ty(e.ty, scope)
        if (local := scope.locals.get(e.name)) is not None:
            suffix = local.instance(self.arguments(local.params, e.inst, scope), ty, known)
            given = sizes.to_tell(self, e, scope)
            local.given.setdefault(suffix, []).append(given)
            return sizes.telling(self, given, lambda ty: c.Var(e.span, ty, e.name + suffix), ty)
        definition = self.definition(e.name)
        if definition is None:
            return c.Var(e.span, ty, e.name)
        name = self.instance(definition, self.arguments(definition.params, e.inst, scope), known)
        if (constant := self.constants.get(name)) is not None:
            return replace(constant, span=e.span)
        return sizes.telling(self, sizes.to_tell(self, e, scope), lambda ty: self.mention(e.span, ty, name), ty)

    def mention(self, span: Span, ty: t.Ty, name: str) -> c.Var:
        """A mention of a copy; the function that is being copied now calls it."""
        if self.current:
            self.current[-1][name] = None
        return c.Var(span, ty, name)

    def lifted(self, given: Operator) -> str:
        """The name of the global function for an operator."""
        if (name := self.lifts.get(given.key)) is None:
            name = self.lifts[given.key] = f"operator@{len(self.lifts)}"
            self.current.append(self.out.calls.setdefault(name, {}))
            self.out.functions[name] = operators.expanded(self.knowing({}, given.text, given.scope), f"x@{name}")
            self.current.pop()
        return name

    # ---- terms ------------------------------------------------------------------------------------------------------

    def term(self, e: c.Term, scope: Scope) -> c.Term:
        self.place = e.span
        match e:
            case c.Var():
                return self.variable(e, scope)
            case c.App():
                return self.application(e, scope)
            case c.Lit(span, ty, value):
                return literal(span, self.ty(ty, scope), value)
            case c.Let() | c.LetRec():
                return self.lets(e, scope)
            case c.Lam():
                return self.function(e, scope)
            case c.Extern(span, ty, symbol):
                return external(span, self.ty(ty, scope), symbol)
            case c.Prim():
                return self.primitive(e, scope)
            case c.ArrayLit() if operands.has_several(e):
                return operands.copied(self, e, scope)
            case c.Match():
                return self.matched(opened(self, e, scope), scope)
            case c.Reset():
                self.capturing()
            case c.Hole():
                raise Bug(f"not a term: {e}")
            case _:
                pass
        return self.with_copied_parts(e, scope)

    def with_copied_parts(self, e: c.Term, scope: Scope) -> c.Term:
        return changed(e, lambda part: self.term(part, scope), lambda ty: self.ty(ty, scope), convert)

    def primitive(self, e: c.Prim, scope: Scope) -> c.Term:
        if e.op == "sized":
            return self.sized(e, scope)
        if e.op in TABLE and not TABLE[e.op].native:
            raise NeedsInterpreter("only the interpreter can do this", e.span)
        return operands.copied(self, e, scope) if operands.has_several(e) else self.with_copied_parts(e, scope)

    def sized(self, e: c.Prim, scope: Scope) -> c.Term:
        array, *known = e.args
        inner = sizes.of_type(self, expect_type(t.Arr, e.ty).elem, tuple(known), scope)
        made = self.term(array, scope)
        return c.Prim(e.span, made.ty, "sized", (made, *inner)) if inner else made

    def function(self, e: c.Lam, scope: Scope) -> c.Lam:
        e, known = lengths.of_function(e, scope.lengths, lambda ty: self.ty(ty, scope))
        body = curried(self.knowing(known, e.body, scope), e.name)
        return c.Lam(e.span, self.ty(e.ty, scope), e.param, body, e.name)

    def matched(self, e: c.Match, scope: Scope) -> c.Term:
        e, known = lengths.of_parts(e, scope.lengths, lambda ty: self.ty(ty, scope))

        def part(one: c.Term) -> c.Term:
            return self.term(one, scope) if one is e.scrutinee else self.knowing(known, one, scope)

        return changed(e, part, lambda ty: self.ty(ty, scope), convert)

    def knowing(self, known: lengths.Lengths, e: c.Term, scope: Scope) -> c.Term:
        """The copy of a term in which these lengths are known."""
        outer, scope.lengths = scope.lengths, known
        made = self.term(e, scope)
        scope.lengths = outer
        return made

    def application(self, e: c.App, scope: Scope) -> c.Term:
        calls = [e]
        while isinstance(calls[-1].fn, c.App):
            calls.append(calls[-1].fn)
        calls.reverse()
        head = resolved(self, calls[0].fn, scope)
        if (function := resolved(self, calls[0], scope)) is not calls[0]:
            head, calls = function, calls[1:]
        if isinstance(head, c.Var):
            made = self.variable(head, scope, operators.known(self, head, [call.arg for call in calls], scope))
        else:
            made = self.term(head, scope)
        for call in calls:
            made = c.App(call.span, self.ty(call.ty, scope), made, self.term(call.arg, scope))
        return made

    def lets(self, e: c.Term, scope: Scope) -> c.Term:
        """A chain of definitions of any length.  A definition that was generalised, or that takes functions, is copied
        after the code that follows it, when all its uses are known."""
        chain: list[tuple[c.Let | c.LetRec, Local | list[c.Term]]] = []
        while isinstance(e, c.Let | c.LetRec):
            if isinstance(e, c.Let):
                e = self.let(e, scope)
            function = e.rhs if isinstance(e, c.Let) and operators.is_function(self, e.rhs) else None
            takes_types = any(p.sort in self.sorts for p in e.params)
            if takes_types or (function is not None and takes_functions(self.ty(function.ty, scope))):
                needs = needed(e.params, definitions(e), lambda name: sizes.needs_in(self, name, scope))
                local = Local(e.params, e.span, function, needs)
                for name in bound(e):
                    scope.locals[name] = local
                chain.append((e, local))
            else:
                chain.append((e, [self.term(rhs, scope) for rhs in definitions(e)]))
            e = e.body
        body = self.term(e, scope)
        for let, done in reversed(chain):
            if isinstance(done, Local):
                body = self.copies(let, done, scope, body)
            else:
                body = rebuilt(let, done, "", body)
        return body

    def let(self, e: c.Let, scope: Scope) -> c.Let:
        """A definition, of a function of functions as a lambda; of data that holds one, it is remembered."""
        if is_data(e.rhs):
            scope.data[e.name] = e.params, e.rhs
        rhs = operators.with_parameter(self, resolved(self, e.rhs, scope), f"x@{e.name}")
        return e if rhs is e.rhs else replace(e, rhs=rhs)

    def copies(self, let: c.Let | c.LetRec, local: Local, scope: Scope, body: c.Term) -> c.Term:
        made = []
        names = self.names(let.params)
        if not local.instances and isinstance(let, c.Let) and isinstance(let.rhs.ty, t.Var):
            local.instances[self.undetermined(let.params), 0, ()] = "@0"  # a value of all types can only be an error
        while len(made) < len(local.instances):
            key = list(local.instances)[len(made)]
            if len(made) > MOST_INSTANCES // 20:
                raise NeedsInterpreter(f"`{bound(let)[0]}` is needed at too many types", let.span)
            types, _, known = key
            types = scope.types | dict(zip(names, types, strict=True))
            inner = Scope(
                types,
                dict(scope.locals),
                known=scope.known | dict(known),
                sizes=dict(scope.sizes),
                data=scope.data,
                lengths=scope.lengths,
            )
            told = sizes.told(self, (let.params, local.needs), inner)
            copies = [self.term(rhs, inner) for rhs in definitions(let)]
            once = None
            if told and isinstance(let, c.Let) and not is_value(let.rhs):
                once = sizes.computed_once(self, told, local.given[local.instances[key]], copies[0], body)
            made.append((local.instances[key], [once] if once else [sizes.functions(told, one) for one in copies]))
        for suffix, rhs in made:
            body = rebuilt(let, rhs, suffix, body)
        return body


def exported(name: str) -> str:
    """The name of the value that holds the exported function."""
    return f"export of {name}"


def bound(let: c.Let | c.LetRec) -> list[str]:
    """The names that a let binds."""
    return [let.name] if isinstance(let, c.Let) else [name for name, _ in let.bindings]


def definitions(let: c.Let | c.LetRec) -> list[c.Term]:
    """What the names of a let stand for."""
    return [let.rhs] if isinstance(let, c.Let) else [rhs for _, rhs in let.bindings]


def rebuilt(let: c.Let | c.LetRec, rhs: list[c.Term], suffix: str, body: c.Term) -> c.Term:
    """The let with other definitions, whose names end in `suffix`."""
    if isinstance(let, c.Let):
        return c.Let(let.span, body.ty, let.name + suffix, (), rhs[0], body)
    names = [name + suffix for name in bound(let)]
    return c.LetRec(let.span, body.ty, (), tuple(zip(names, rhs, strict=True)), body)


def external(span, ty: t.Ty, symbol: str) -> c.Term:
    params: list[c.Var] = []
    result = ty
    while isinstance(result, t.Fn):
        params.append(c.Var(span, result.arg, f"x{len(params)}"))
        result = result.result
    body: c.Term = c.Prim(span, result, "extern", (c.Lit(span, t.STRING, symbol), *params))
    for param in reversed(params):
        body = c.Lam(span, t.Fn(param.ty, t.PURE, body.ty), param.name, body, symbol)
    return body


def curried(body: c.Term, name: str) -> c.Term:
    """A function's body.  If it takes its parameter apart and then returns a function, the two are exchanged, so that
    an application to several arguments finds the inner function directly:

        fun (a, b) -> fun c -> e      fun p -> fun c -> match p with (a, b) -> e

    An inner function gets the name of the outer one."""
    match body:
        case c.Lam():
            return replace(body, name=body.name or name)
        case c.Match(span, _, c.Var() as parameter, (c.Arm(where, pattern, None, inner),)):
            again = curried(inner, name)
            return rotated(again, lambda e: c.Match(span, e.ty, parameter, (c.Arm(where, pattern, None, e),)), body)
        case c.Let(span, _, size, (), c.Prim(op="dim" | "sized", args=(c.Var(), *_)) as rhs, inner):
            return rotated(curried(inner, name), lambda e: c.Let(span, e.ty, size, (), rhs, e), body)
        case _:
            return body


def rotated(inner: c.Term, around: Callable[[c.Term], c.Term], body: c.Term) -> c.Term:
    return replace(inner, body=around(inner.body)) if isinstance(inner, c.Lam) else body


# ---- literals -------------------------------------------------------------------------------------------------------


def literal(span, ty: t.Ty, value: c.Value) -> c.Lit:
    if not isinstance(ty, t.Con):  # a number whose type nothing determined
        ty = t.F64 if isinstance(value, float) else t.I64
    return c.Lit(span, ty, convert(ty, value))


def convert(ty: t.Ty, value: c.Value) -> c.Value:
    """A literal as a value of its type: `1` at f64 is 1.0, `0.1` at f32 the nearest f32."""
    name = ty.name if isinstance(ty, t.Con) else ""
    if name in t.INTS:
        bits = int(name[1:])
        whole = int(value) & (1 << bits) - 1
        return whole - (1 << bits) if name[0] == "i" and whole >> bits - 1 else whole
    if name == "f64":
        return float(value)
    if name in t.FLOATS:
        code = "<f" if name == "f32" else "<e"
        try:
            return struct.unpack(code, struct.pack(code, float(value)))[0]
        except OverflowError:
            return float("inf") if float(value) > 0 else float("-inf")
    return value
