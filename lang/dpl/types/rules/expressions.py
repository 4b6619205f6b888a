"""Expressions -> core: all forms except bindings, applications, records and arrays.

e1; e2           ->   let _ = e1 in e2
a && b           ->   if a then b else false
$"x = {x:.2f}"   ->   "x = " ++ format ".2f" x
"""

from __future__ import annotations

from dpl.core import term, ty
from dpl.diagnostics import Diagnostic, DplError, Edit, Label
from dpl.node import replace
from dpl.source import Span
from dpl.syntax import tree
from dpl.types.messages.parts import Why, as_argument
from dpl.types.rules import formats
from dpl.types.rules.annotations import Flexible, resolve
from dpl.types.rules.apply import Arg, apply, find_primitive, primitive
from dpl.types.rules.join import join, open_sizes
from dpl.types.rules.literals import literal_type
from dpl.types.rules.patterns import bind_pattern
from dpl.types.rules.shaped import agreeing, sized
from dpl.types.solve import sizes
from dpl.types.solve.constraints import Pow
from dpl.types.solve.meta import PURE, Meta, Type, dimensions, prune
from dpl.types.state.context import Context, rule
from dpl.types.state.deferred import Deferred
from dpl.types.state.env import CONSTRUCTORS, TYPES


@rule(tree.Lit)
def literal(cx: Context, e: tree.Lit, expected) -> term.Term:
    return term.Lit(e.span, literal_type(cx, e.value, e.suffix), e.value)


@rule(tree.Interp)
def interpolation(cx: Context, e: tree.Interp, expected) -> term.Term:
    parts: list[term.Term] = []
    for part in e.parts:
        if isinstance(part, str):
            parts.append(term.Lit(e.span, ty.STRING, part))
        else:
            value = cx.infer(part[0])
            if part[1]:
                formats.check(cx, part[1], value.ty, formats.place(e, *part))
            spec = (term.Lit(e.span, ty.STRING, part[1]),) if part[1] else ()
            parts.append(term.Prim(part[0].span, ty.STRING, "format" if spec else "show", (*spec, value)))
    whole = parts[0] if parts else term.Lit(e.span, ty.STRING, "")
    for part in parts[1:]:
        whole = term.Prim(e.span, ty.STRING, "append", (whole, part))
    return whole


@rule(tree.Tuple)
def tuple_(cx: Context, e: tree.Tuple, expected) -> term.Term:
    wanted = prune(expected) if expected is not None else None
    hints = wanted.items if type(wanted) is ty.Tup and len(wanted.items) == len(e.items) else [None] * len(e.items)
    items = tuple(cx.infer(i, hint) for i, hint in zip(e.items, hints))
    return term.Tuple(e.span, ty.Tup(tuple(i.ty for i in items)), items)


@rule(tree.ListLit)
def list_literal(cx: Context, e: tree.ListLit, expected) -> term.Term:
    wanted = prune(expected) if expected is not None else None
    if not e.items and type(wanted) is ty.Arr:
        return sized(cx, term.ArrayLit(e.span, ty.Arr(wanted.elem, ty.Size(0)), ()))
    elem = cx.solver.fresh()
    t = ty.list_of(elem)
    if type(wanted) is ty.Con and wanted.name == "list":
        cx.solver.unify(t, wanted)
    items = elements(cx, e.items, elem, "list")
    result: term.Term = term.Con(e.span, t, "[]", 0, None)
    pairs: dict[int, Type] = {}  # one for all elements whose type is one object: what follows looks at each type once
    for item in reversed(items):
        head = prune(item.ty)
        pair = pairs.setdefault(id(head), ty.Tup((head, t)))
        result = cons_cell(e.span, t, term.Tuple(e.span, pair, (item, result)))
    return result


def is_ragged(items: tuple) -> bool:
    """Whether these are arrays of several lengths, as a parameter `'a[?] list` takes them."""
    return len({len(item.items) for item in items if isinstance(item, tree.ArrayLit)}) > 1


def elements(cx: Context, items: tuple, elem: Type, kind: str) -> list[term.Term]:
    """The items of a list or an array, all of one type."""
    first = items[0].span if items else None
    ways = "rows of one array have one size; rows of several, as a list:  [[a; b]; [c;]]" if is_ragged(items) else ""
    if len({type(item.value) for item in items if isinstance(item, tree.Lit)} - {float}) > 1:
        written = ", ".join(item.span.text for item in items)
        ways = f"elements have one type; values of several are a tuple:  ({written})"
    why = Why(f"an element of this {kind}", first, "the first element", help=ways)
    return [cx.check(item, elem, why if i else None) for i, item in enumerate(items)]


def cons_cell(span: Span, t: Type, pair: term.Tuple) -> term.Term:
    return term.Con(span, t, "::", CONSTRUCTORS["::"].tag, pair)


@rule(tree.Cons)
def cons(cx: Context, e: tree.Cons, expected) -> term.Term:
    head = cx.infer(e.head)
    t = ty.list_of(head.ty)
    ending = f"a list ends with []:  {e.tail.span.text} :: []" if isinstance(e.tail, tree.Lit) else ""
    if isinstance(e.tail, tree.Var) and e.tail.name in TYPES:
        ending = f"a type follows `:`, in parentheses:  ({e.head.span.text} : {e.tail.name})"
    tail = cx.check(e.tail, t, Why("what follows `::`", e.head.span, "the element in front", help=ending))
    return cons_cell(e.span, t, term.Tuple(e.span, ty.Tup((head.ty, t)), (head, tail)))


# ---- operators


@rule(tree.Binary)
def binary(cx: Context, e: tree.Binary, expected) -> term.Term:
    found = find_primitive(cx, e.op)
    if found is None:
        return apply(cx, tree.Var(e.op_span, e.op), [Arg(e.left, e.left.span), Arg(e.right, e.span)], expected)
    if found.row.name == "pow":
        return power(cx, e)
    if "lift" in found.row.type or found.row.name in ("append", "matmul"):
        left, right = cx.infer(e.left), cx.infer(e.right)
        (relation,) = found.scheme.constraints
        *operands, last = relation.types
        result = cx.solver.fresh(*found.scheme.classes.get(last.name, ()))
        types = dict(zip((*operands, last), (left.ty, right.ty, result)))
        cx.constrain(relation.mapped(types.__getitem__, e.span, (e.left.span, e.right.span)))
        made = term.Prim(e.span, result, found.row.name, (left, right))
        if e.op == "/" and is_integer_literal(e.left) and is_integer_literal(e.right):
            return of_whole_numbers(cx, made, integer(e.left), integer(e.right))
        return made if found.row.name == "append" else agreeing(cx, made)
    if found.row.type.startswith("'a -> 'a -> bool"):
        if warning := default_value(e):
            cx.warnings.add(warning)
        left = cx.infer(e.left)
        if type(prune(left.ty)) is ty.Fn:  # it lacks an argument: the right side, which is none, is not to blame
            cx.require(left.ty, "data", e.left.span)
        way = applied_first(e, left.ty) or by_elements(cx, e, left.ty)
        why = Why(f"the right side of `{e.op}`", e.left.span, "its left side", help=way)
        _, right = branch(cx, e.right, left.ty, None, why)
        cx.require(left.ty, "data", e.span)
        return term.Prim(e.span, ty.BOOL, found.row.name, (left, right))
    return primitive(cx, found, [Arg(e.left, e.left.span), Arg(e.right, e.span)], e.op_span)


def default_value(e: tree.Binary) -> Diagnostic | None:
    """The warning for `let f x y=2.0 = x + y`, whose body is a comparison."""
    text, start = e.span.source.text, e.left.span.start
    if e.op != "=" or not isinstance(e.left, tree.Lit) or text[start - 1] != "=" or text[start - 2].isspace():
        return None
    title = f"this compares {e.left.text} with what follows; a parameter has no default value"
    helps = ("one function with it:  let f x y = e  and one without:  let g x = f x 2.0",
             f"if a comparison is meant, write  = {e.left.text} = ...")  # fmt: skip
    return Diagnostic("W0210", title, e.span, helps=helps)


def of_whole_numbers(cx: Context, quotient: term.Prim, a: int, b: int) -> term.Term:
    """The quotient of the integer literals a and b.  Warns if it is an int and a is smaller: `x ** (1 / 2)` is 1."""

    def build(zonk) -> term.Term:
        made = zonk(quotient)
        if made.ty == ty.I64 and 0 < abs(a) < abs(b):
            helps = (f"of floats:  {a}.0 / {b}.0",)
            title = f"this is {a // b}, as both numbers are integers"
            cx.warnings.add(Diagnostic("W0209", title, quotient.span, helps=helps))
        return made

    return Deferred(quotient.span, quotient.ty, build, (quotient,))


def applied_first(e: tree.Binary, left: Type) -> str:
    """The help for `assert x > 0`, which parses as `(assert x) > 0`."""
    if prune(left) != ty.UNIT or not isinstance(e.left, tree.App):
        return ""
    text = e.left.span.source.text
    start = e.left.fn.span.end
    return f"`{e.left.fn.span.text}` comes first:  {e.left.fn.span.text} ({text[start : e.right.span.end].strip()})"


def by_elements(cx: Context, e: tree.Binary, left: Type) -> str:
    """The help for `xs > 0.0`: comparisons take whole values."""
    from dpl.types.rules.order import NUMBER, NUMBERS, kind_given

    if len(dimensions(left)[0]) != 1 or kind_given(cx, e.right) not in (NUMBER, *NUMBERS):
        return ""
    xs, bound = e.left.span.text, e.right.span.text
    return f"`{e.op}` compares whole values; each element:  map (fun x -> x {e.op} {bound}) {as_argument(xs)}"


def power(cx: Context, e: tree.Binary) -> term.Term:
    """`a ** b`; an integer literal as exponent is an int."""
    base, exponent = cx.infer(e.left), cx.infer(e.right)
    if is_integer_literal(e.right):
        cx.solver.unify(exponent.ty, ty.I64)
    cx.require(base.ty, "num", e.left.span)
    result = cx.solver.fresh("num")
    cx.constrain(Pow((base.ty, exponent.ty, result), e.span, operands=(e.left.span, e.right.span)))
    return agreeing(cx, term.Prim(e.span, result, "pow", (base, exponent)))


def integer(e: tree.Expr) -> int:
    """The value of an integer literal, which may have a sign."""
    match e:
        case tree.Unary(_, _, arg):
            return -integer(arg)
        case tree.Lit(_, int() as value):
            return value
        case _:
            raise AssertionError(e)


def is_integer_literal(e: tree.Expr) -> bool:
    match e:
        case tree.Lit(_, int() as value, ""):
            return not isinstance(value, bool)
        case tree.Unary(_, "-", arg):
            return is_integer_literal(arg)
        case _:
            pass
    return False


@rule(tree.Unary)
def unary(cx: Context, e: tree.Unary, expected) -> term.Term:
    if e.op == "-":
        arg = cx.infer(e.arg, expected)
        cx.require(arg.ty, "num", e.span)
        return term.Prim(e.span, arg.ty, "neg", (arg,))
    if e.op != "!":
        return apply(cx, tree.Var(e.span, e.op), [Arg(e.arg, e.span)], expected)
    arg = cx.infer(e.arg)
    if prune(arg.ty) == ty.BOOL:
        title = "`!` is the content of a reference, and this is a bool"
        edit = Edit(Span(e.span.source, e.span.start, e.span.start + 1), "not ")
        raise cx.fail("E0201", title, e.span, helps=("not is written  not x",), edits=(edit,))
    return apply(cx, tree.Var(e.span, e.op), [Arg(arg, e.span)], expected)


@rule(tree.Assign)
def assign(cx: Context, e: tree.Assign, expected) -> term.Term:
    return apply(cx, tree.Var(e.span, ":="), [Arg(e.ref, e.span), Arg(e.value, e.span)], expected)


@rule(tree.Logic)
def logic(cx: Context, e: tree.Logic, expected) -> term.Term:
    left, right = (cx.check(side, ty.BOOL, Why(f"an operand of `{e.op}`")) for side in (e.left, e.right))
    if e.op == "&&":
        return term.If(e.span, ty.BOOL, left, right, term.Lit(e.span, ty.BOOL, False))
    return term.If(e.span, ty.BOOL, left, term.Lit(e.span, ty.BOOL, True), right)


# ---- choice


@rule(tree.If)
def conditional(cx: Context, e: tree.If, expected) -> term.Term:
    cond = cx.check(e.cond, ty.BOOL, Why("the condition of `if`"))
    if e.else_ is None:
        then = cx.check(e.then, ty.UNIT, Why("an `if` without `else`", help="say what it is otherwise:  else ..."))
        return term.If(e.span, ty.UNIT, cond, then, term.Tuple(e.span, ty.UNIT, ()))
    result, then = branch(cx, e.then, joint(expected), expected, Why("the `then` branch"))
    result, other = branch(cx, e.else_, result, expected, Why("the `else` branch", e.then.span, "the `then` branch"))
    return term.If(e.span, result, cond, then, other)


def branch(cx: Context, e: tree.Expr, result: Type | None, expected: Type | None, why: Why) -> tuple[Type, term.Term]:
    """One of several branches, and the type of the branches so far.  A type that the context gives takes precedence."""
    if result is None:
        made = cx.infer(e)
        return made.ty, made
    if joint(expected) is not None:
        return result, cx.check(e, result, why)
    known = prune(result)
    made = cx.infer(e, open_sizes(cx, known) if type(known) is ty.Arr else known if type(known) is ty.Con else None)
    result = join(cx, result, made.ty)
    cx.unify(made.ty, result, made.span, why)
    return result, made


def joint(expected: Type | None) -> Type | None:
    """The type that all branches must have, if the context gives one; its sizes may be open."""
    return None if expected is None or type(prune(expected)) is Meta else expected


@rule(tree.Match)
def match_(cx: Context, e: tree.Match, expected) -> term.Term:
    scrutinee = cx.infer(e.scrutinee)
    result = joint(expected)
    arms: list[term.Arm] = []
    if len(e.arms) > 1 and type(prune(scrutinee.ty)) is Meta and isinstance(e.arms[0].pattern, tree.PatArray):
        any_size = ty.Arr(cx.solver.fresh(), cx.solver.unknown_size())  # the arms may have several sizes
        cx.unify(scrutinee.ty, any_size, e.scrutinee.span)
    for arm in e.arms:
        if isinstance(arm.body, tree.Match) and arm.body.span.text.startswith("match"):
            cx.greedy.add(id(arm.body))
        with cx.scope():
            pattern = case(cx, e, arm.pattern, scrutinee.ty)
            guard = None if arm.guard is None else cx.check(arm.guard, ty.BOOL, Why("the guard"))
            first = arms[0].body.span if arms else None
            result, body = branch(cx, arm.body, result, expected, Why("this case", first, "the first case"))
        arms.append(term.Arm(arm.pattern.span, pattern, guard, body))
    assert result is not None
    return term.Match(e.span, result, scrutinee, tuple(arms))


def case(cx: Context, e: tree.Match, p: tree.Pattern, t: Type) -> term.Pattern:
    """A pattern of a match.  An error in a nested match gets a help: the case may belong to the outer one."""
    try:
        return bind_pattern(cx, p, t, watched=True)
    except DplError as error:
        if not error.diagnostics or id(e) not in cx.greedy or p is e.arms[0].pattern:
            raise
        first, *rest = error.diagnostics
        help_ = "a `match` inside of a case takes all cases that follow: put it in parentheses"
        word = Span(e.span.source, e.span.start, e.span.start + len("match"))
        labels = (*first.labels, Label(word, "a case of this `match`"))
        raise DplError(replace(first, labels=labels, helps=(help_, *first.helps)), *rest) from None


# ---- annotations


@rule(tree.Annot)
def annotation(cx: Context, e: tree.Annot, expected) -> term.Term:
    wanted = resolve(cx, e.type, Flexible.ALL)
    return cx.check(e.expr, wanted, Why("this", e.type.span, "as annotated"))


@rule(tree.Coerce)
def coercion(cx: Context, e: tree.Coerce, expected) -> term.Term:
    """`(e :> t)`: the sizes of `t` are claimed, and checked at run time."""
    wanted = resolve(cx, e.type, Flexible.ALL)
    value = cx.infer(e.expr)
    cx.unify(open_sizes(cx, value.ty), wanted, e.span, Why("this", e.type.span, "as claimed"))
    for have, want in zip(dimensions(value.ty)[0], dimensions(wanted)[0]):
        difference = sizes.sub(cx.solver.sizes.norm(have), cx.solver.sizes.norm(want))
        if difference.const and not difference.terms:
            cx.unify(value.ty, wanted, e.span, Why("this", e.type.span, "as claimed"))
    return cx.confirm(value, wanted)


# ---- control


@rule(tree.Reset)
def reset(cx: Context, e: tree.Reset, expected) -> term.Term:
    answer = cx.solver.fresh()
    with cx.allowing(ty.Ctl(answer), "reset", e.span):
        body = cx.check(e.body, answer, Why("the body of `reset`", answer=True))
    return term.Reset(e.span, answer, body)


@rule(tree.Shift)
def shift(cx: Context, e: tree.Shift, expected) -> term.Term:
    answer, hole = cx.solver.fresh(), cx.solver.fresh()
    cx.perform(ty.Ctl(answer), e.span)
    with cx.scope():
        name = cx.local(e.name, ty.Fn(hole, PURE, answer), e.span)
        body = cx.check(e.body, answer, Why("the body of `shift`", answer=True))
    return term.Shift(e.span, hole, name, body)
