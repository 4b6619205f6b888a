"""The actions of the grammar's rules: they build nodes from the values of the parts.

Each method has the name of its rule in `grammar/dpl.lark`.  Its arguments are the span of the rule and the values of
its parts: nodes, tokens, None for a missing optional part, and the members of lists one by one.
"""

from __future__ import annotations

import re

from dpl.diagnostics import Diagnostic
from dpl.node import replace
from dpl.regex import regex
from dpl.source import Source, Span
from dpl.syntax import literals, tree
from dpl.syntax.lexer import Token
from dpl.syntax.operators import resolve

C_NAME = regex(r"[A-Za-z_][\w.$@]*", re.ASCII)


class Builder:
    """Builds the nodes of one source.  Errors in literals and operators go to `problems`."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.problems: list[Diagnostic] = []
        self.extremes: dict[int, Diagnostic] = {}  # errors of literals that are valid only after a minus sign

    def span_of(self, token: Token) -> Span:
        return Span(self.source, token.start, token.end)

    # ---- declarations ------------------------------------------------------------------------------------------

    def file(self, span, *decls):
        return tree.File(Span(self.source, 0, len(self.source.text)), decls, ())

    def expression(self, span, expr):
        return expr

    def type_alone(self, span, type_):
        return type_

    def let_plain(self, span):
        return False

    def let_rec(self, span):
        return True

    def decl_let(self, span, rec, *bindings):
        return tree.DeclLet(span, rec, bindings)

    def decl_export(self, span, rec, *bindings):
        return tree.DeclLet(span, rec, bindings, export=True)

    def decl_type(self, span, *defs):
        return tree.DeclType(span, defs)

    def import_module(self, span, name, alias=None):
        return tree.DeclImport(span, name.value, False, alias and alias.value)

    def import_path(self, span, path, alias):
        return tree.DeclImport(span, path.value, True, alias and alias.value)

    def decl_open(self, span, name):
        return tree.DeclOpen(span, name.value)

    def decl_extern(self, span, symbol, name, type_):
        if not C_NAME.fullmatch(symbol.value):
            title = f"{self.span_of(symbol).text} is no name of a C function"
            self.problems.append(Diagnostic("E0105", title, self.span_of(symbol)))
        return tree.DeclExtern(span, symbol.value, name.value, type_)

    def decl_do(self, span, body):
        return tree.DeclDo(span, body)

    def decl_expect(self, span, name, body):
        return tree.DeclExpect(span, name.value, body)

    def bind_pattern(self, span, pattern, annot, body):
        return tree.Binding(span, pattern, (), annot, body)

    def bind_function(self, span, name, *rest):
        *params, annot, body = rest
        return tree.Binding(span, tree.PatVar(self.span_of(name), name.value), tuple(params), annot, body)

    def operator(self, span, token):
        return token

    def operator_name(self, span, token):
        return Token("LOWER", span.start, span.end, token.value)

    def type_plain(self, span, name, body):
        return tree.TypeDef(span, name.value, (), body)

    def type_one(self, span, param, name, body):
        return tree.TypeDef(span, name.value, (param,), body)

    def type_many(self, span, *parts):
        *params, name, body = parts
        return tree.TypeDef(span, name.value, tuple(params), body)

    def param(self, span, token):
        return tree.Param(span, token.value, token.kind == "LOWER")

    def variants(self, span, *cases):
        return tree.Variants(span, cases)

    def case(self, span, name, type_):
        return name.value, type_, span

    def fields(self, span, *fields):
        return tree.Fields(span, fields)

    def field_type(self, span, name, type_):
        return name.value, type_, span

    # ---- expressions -------------------------------------------------------------------------------------------

    def sequence(self, span, first, second):
        return tree.Seq(span, first, second)

    def expr(self, span, *chain):
        if len(chain) == 1:
            return chain[0]
        made = resolve(self.source, list(chain), self.problems)
        for item in chain:
            if isinstance(item, Token) and item.value == "-":
                self.extremes.pop(self._after(item), None)
        return made

    def infix(self, span, token):
        return token

    sign = infix

    def let_in(self, span, rec, *parts):
        *bindings, body = parts
        return tree.Let(span, rec, tuple(bindings), body)

    def fun(self, span, *parts):
        *params, body = parts
        return tree.Fun(span, tuple(params), body)

    def match(self, span, scrutinee, *arms):
        return tree.Match(span, scrutinee, arms)

    def shift(self, span, name, body):
        return tree.Shift(span, name.value, body)

    def loop_for(self, span, state, init, index, count, body):
        return tree.LoopFor(span, state, init, index.value, count, body)

    def loop_while(self, span, state, init, cond, body):
        return tree.LoopWhile(span, state, init, cond, body)

    def conditional(self, span, cond, then, otherwise):
        return tree.If(span, cond, then, otherwise)

    def arm(self, span, pattern, guard, body):
        return tree.Arm(span, pattern, guard, body)

    def wild_name(self, span):
        return Token("LOWER", span.start, span.end, "_")

    def reset(self, span, body):
        return tree.Reset(span, body)

    def apply(self, span, fn, arg):
        return tree.App(span, fn, arg)

    def apply_not(self, span, fn):
        return tree.App(span, fn, tree.Var(Span(self.source, span.end - 3, span.end), "not"))

    def field(self, span, record, name):
        return tree.Field(span, record, name.value)

    def index(self, span, array, *indices):
        indices = indices[1:]  # the bracket
        return tree.Index(span, array, indices)

    def slice(self, span, low, high):
        return tree.Slice(span, low, high)

    def variable(self, span, token):
        return tree.Var(span, token.value)

    def constructor(self, span, token):
        return tree.Con(span, token.value)

    def prefix(self, span, token, arg):
        if token.value == "!":
            return tree.Unary(span, "!", arg)
        return tree.App(span, tree.Var(self.span_of(token), token.value), arg)

    def number(self, span, token):
        value, suffix = self.read_number(span, token, 1)
        return tree.Lit(span, value, suffix, token.value)

    def string(self, span, token):
        return tree.Lit(span, token.value, "", span.text)

    def interp(self, span, *pieces):
        """Tokens (format, text) with expressions between them; a format belongs to the expression before it."""
        parts: list = [pieces[0].value[1]]
        for expr, token in zip(pieces[1::2], pieces[2::2], strict=True):
            form, text = token.value
            parts += [(expr, form), text]
        return tree.Interp(span, tuple(p for p in parts if p != ""))

    def true(self, span):
        return tree.Lit(span, True, "", "true")

    def false(self, span):
        return tree.Lit(span, False, "", "false")

    def operator_value(self, span, token):
        return tree.Var(span, token.value)

    def not_value(self, span):
        return tree.Var(span, "not")

    def unit(self, span):
        return tree.Tuple(span, ())

    def parens(self, span, expr):
        return replace(expr, span=span)

    def tuple(self, span, *items):
        return tree.Tuple(span, items)

    def annot(self, span, expr, type_):
        return tree.Annot(span, expr, type_)

    def coerce(self, span, expr, type_):
        return tree.Coerce(span, expr, type_)

    def list(self, span, *items):
        return tree.ListLit(span, items)

    def array(self, span, *items):
        return tree.ArrayLit(span, items)

    def comprehension(self, span, *parts):
        *clauses, cond, body = parts
        return tree.Comprehension(span, tuple(clauses), cond, body)

    def record(self, span, *fields):
        return tree.Record(span, fields)

    def record_with(self, span, record, *fields):
        return tree.RecordWith(span, record, fields)

    def array_with(self, span, array, *updates):
        return tree.ArrayWith(span, array, updates)

    def for_range(self, span, name, count):
        return tree.ForRange(span, name.value, count)

    def for_in(self, span, pattern, array):
        return tree.ForIn(span, pattern, array)

    def field_value(self, span, name, value):
        return name.value, value or tree.Var(span, tree.member(name.value))

    def update(self, span, *parts):
        *indices, value = parts
        return tuple(indices), value

    # ---- patterns ----------------------------------------------------------------------------------------------

    def pat_as(self, span, pattern, name):
        return tree.PatAs(span, pattern, name.value)

    def pat_alternative(self, span, left, right):
        return tree.PatOr(span, left, right)

    def pat_cell(self, span, head, tail):
        return tree.PatCons(span, head, tail)

    def pat_con(self, span, name, arg=None):
        return tree.PatCon(span, name.value, arg)

    def pat_var(self, span, name):
        return tree.PatVar(span, name.value)

    def pat_wild(self, span):
        return tree.PatWild(span)

    def pat_number(self, span, token):
        return tree.PatLit(span, *self.read_number(span, token, 1))

    def pat_negative(self, span, token):
        return tree.PatLit(span, *self.read_number(span, token, -1))

    def pat_string(self, span, token):
        return tree.PatLit(span, token.value)

    def pat_true(self, span):
        return tree.PatLit(span, True)

    def pat_false(self, span):
        return tree.PatLit(span, False)

    def pat_parens(self, span, pattern):
        return replace(pattern, span=span)

    def pat_tuple(self, span, *items):
        return tree.PatTuple(span, items)

    def pat_annot(self, span, pattern, type_):
        return tree.PatAnnot(span, pattern, type_)

    def pat_list(self, span, *items):
        return tree.PatList(span, items)

    def pat_array(self, span, *items):
        return tree.PatArray(span, items)

    def pat_record(self, span, *fields):
        return tree.PatRecord(span, tuple(f for f in fields if f), None in fields)

    def pat_field(self, span, name, pattern):
        return name.value, pattern or tree.PatVar(span, tree.member(name.value))

    def pat_rest(self, span):
        return None

    # ---- types and sizes ---------------------------------------------------------------------------------------

    def arrow(self, span, arg, result):
        return tree.TyFun(span, arg, result)

    def ctl_arrow(self, span, arg, _, answer, result):
        return tree.TyFun(span, arg, result, answer)

    def type_tuple(self, span, *items):
        return tree.TyTuple(span, items)

    def type_apply(self, span, *parts):
        *args, name = parts
        return tree.TyName(span, name.value, tuple(args))

    def type_array(self, span, elem, *sizes):
        return tree.TyArray(span, elem, tuple(s for s in sizes if not isinstance(s, Token)))

    def type_name(self, span, name):
        return tree.TyName(span, name.value)

    def type_var(self, span, token):
        return tree.TyVar(span, token.value)

    def type_open(self, span):
        return tree.TyOpen(span)

    def type_parens(self, span, type_):
        return replace(type_, span=span)

    size_parens = type_parens

    def size_add(self, span, left, right):
        return tree.SizeOp(span, "+", left, right)

    def size_sub(self, span, left, right):
        return tree.SizeOp(span, "-", left, right)

    def size_mul(self, span, left, right):
        return tree.SizeOp(span, "*", left, right)

    def size_var(self, span, name):
        return tree.SizeVar(span, name.value)

    size_name = size_var

    def size_num(self, span, token):
        return tree.SizeNum(span, int(self.read_number(span, token, 1)[0]))

    def size_unknown(self, span):
        return tree.SizeUnknown(span)

    def size_open(self, span):
        return tree.SizeOpen(span)

    # ---- numbers -----------------------------------------------------------------------------------------------

    def read_number(self, span: Span, token: Token, sign: int) -> tuple[int | float, str]:  # pyrefly: ignore[unsupported-operation]  (`tuple` is a rule too)
        value, suffix, problem = literals.number(token, sign, span)
        if problem and sign == 1 and literals.fits(-value, suffix):
            self.extremes[token.start] = problem
        elif problem:
            self.problems.append(problem)
        return value, suffix

    def _after(self, token: Token) -> int:
        """The offset of the token after a sign."""
        text, at = self.source.text, token.end
        while at < len(text) and text[at].isspace():
            at += 1
        return at
