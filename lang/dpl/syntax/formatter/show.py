"""The formatter: tree -> text, in the one style of `dpl fmt`.

    let f x=if x>0 then x else(-x)   ->   let f x = if x > 0 then x else -x

Lines have at most 100 columns where possible; indentation is 2.  A construct that the author broke over lines stays
broken, and one blank line between steps stays; the tree determines everything else.
"""

from __future__ import annotations

import itertools
from typing import Any

from dpl.node import replace
from dpl.syntax import tree
from dpl.syntax.formatter.comments import Comments, parts_of
from dpl.syntax.formatter.doc import (
    FLUSH,
    HARD,
    LINE,
    Doc,
    Suffix,
    align,
    concat,
    fill,
    flat_width,
    group,
    is_hard,
    join,
    layout,
    nest,
)
from dpl.syntax.formatter.notation import escape, literal, name, parameter, pattern, string, type_
from dpl.syntax.formatter.shape import (
    ARGUMENT,
    ATOM,
    FREE,
    ITEM,
    PART,
    STEP,
    Place,
    branches_are_broken,
    comment_ends_line,
    embraces,
    flatten,
    has_blank_line,
    is_negative,
    is_prefixed,
    is_swallowed,
    level_of,
    needs_parentheses,
    newlines,
    partial,
    run_is_broken,
    spine,
    starts_line,
    starts_with_symbol,
)
from dpl.syntax.operators import PIPE, POWER, UNARY

WIDTH = 100
DEEP = 8  # columns kept free for the indentation of a body below


def show(file: tree.File) -> str:
    """A file's formatted text."""
    text = layout(_Show(Comments(file)).file(file), WIDTH)
    return text if text.strip() else ""


def show_expr(expr: tree.Expr) -> str:
    """An expression's formatted text, without comments."""
    return layout(_Show(Comments(tree.File(expr.span, (), ()))).expr(expr, FREE), WIDTH).rstrip("\n")


class _Show:
    def __init__(self, comments: Comments) -> None:
        self.comments = comments

    # ---- comments ----------------------------------------------------------------------------------------------

    def lead(self, part: Any) -> list[Doc]:
        """The comments before a part, on their own lines or inline."""
        return [doc for comment in self.comments.pop_leading(part) for doc in self.placed(comment)]

    def placed(self, comment: tree.Comment) -> list[Doc]:
        """A comment, laid out before the text that follows it."""
        return [FLUSH, comment.text, HARD] if comment_ends_line(comment.span) else [comment.text, " "]

    def trail(self, part: Any) -> list[Doc]:
        """The comments after a part, at the end of its line or inline."""
        found = self.comments.pop_trailing(part)
        return [Suffix(c.text) if comment_ends_line(c.span) else f" {c.text}" for c in found]

    def with_comments(self, part: Any, doc: Doc) -> Doc:
        lead, trail = self.lead(part), self.trail(part)
        return concat(*lead, doc, *trail) if lead or trail else doc

    def equals(self, head: str, part: Any, *heads: Any) -> Doc:
        """`head =`, with the comments between `heads` and the `=` before `part`."""
        docs: list[Doc] = [" "]
        for comment in self.comments.pop_before("=", part, *heads):
            docs += [comment.text, HARD if comment_ends_line(comment.span) else " "]
        return concat(head, nest(2, *docs, "=")) if len(docs) > 1 else f"{head} ="

    def has_lines_before(self, part: Any) -> bool:
        """True if comments on their own lines lead the part."""
        return any(comment_ends_line(c.span) for c in self.comments.leading.get(id(part), ()))

    # ---- declarations ------------------------------------------------------------------------------------------

    def file(self, file: tree.File) -> Doc:
        """Declarations and the comments between them.  Blank lines between them are reduced to one."""
        docs: list[Doc] = []
        end: int | None = None

        def put(start: int, doc: Doc, to: int) -> None:
            nonlocal end
            if end is not None:
                docs.extend([HARD] * max(1, min(2, newlines(file, end, start))))
            docs.append(doc)
            end = to

        for decl in file.decls:
            doc = self.decl(decl)
            lost = concat(*(d for c in self.comments.pop_lost(decl.span) for d in (c.text, HARD)))
            for comment in self.comments.pop_leading(decl):
                put(comment.span.start, comment.text, comment.span.end)
            put(decl.span.start, concat(lost, doc), decl.span.end)
            for comment in self.comments.pop_trailing(decl):
                if newlines(file, decl.span.end, comment.span.start):
                    put(comment.span.start, comment.text, comment.span.end)
                else:
                    docs.append(Suffix(comment.text))
        for comment in self.comments.pop_trailing(file):
            put(comment.span.start, comment.text, comment.span.end)
        return concat("", *docs)

    def decl(self, decl: tree.Decl) -> Doc:
        match decl:
            case tree.DeclLet(_, rec, bindings, export):
                return self.bindings(f"{'export ' * export}let {'rec ' * rec}", bindings)
            case tree.DeclType(_, defs):
                return join(HARD, (self.typedef("and" if number else "type", d) for number, d in enumerate(defs)))
            case tree.DeclImport(_, target, is_path, alias):
                return f"import {string(target) if is_path else target}{f' as {alias}' if alias else ''}"
            case tree.DeclOpen(_, module):
                return f"open {module}"
            case tree.DeclExtern(_, symbol, var, annot):
                return f"extern {string(symbol)} {name(var)} : {type_(annot)}"
            case tree.DeclDo(_, body):
                return self.after("do", body, FREE)
            case tree.DeclExpect(_, title, body):
                return self.after(self.equals(f"expect {string(title)}", body), body, FREE)

    def typedef(self, keyword: str, node: tree.TypeDef) -> Doc:
        params = [p.name if p.is_size else f"'{p.name}" for p in node.params]
        shown = f"{params[0]} " if len(params) == 1 else f"({', '.join(params)}) " if params else ""
        lead = self.lead(node) if keyword == "and" else []
        first, *_ = parts_of(node.body)
        head = self.equals(f"{keyword} {shown}{node.name}", first, *node.params)
        match node.body:
            case tree.Variants(_, cases):
                body = self.variants(node, head, cases)
            case tree.Fields(span, fields):
                items = [self.with_comments(f, f"{f[0]} : {type_(f[1])}") for f in fields]
                body = self.items("{ ", items, ";", " }", newlines(node, span.start, fields[-1][-1].start) > 0)
            case other:
                body = type_(other)
        return concat(*lead, self.with_comments(node, concat(head, " ", body)))

    def variants(self, node: tree.TypeDef, head: Doc, cases: tuple) -> Doc:
        texts = [f"{con} of {type_(arg)}" if arg else con for con, arg, _ in cases]
        lines = [[*self.lead(c), f"| {text}", *self.trail(c)] for c, text in zip(cases, texts, strict=True)]
        one_line = " | ".join(texts)
        has_comments = any(len(line) > 1 for line in lines)
        broken = newlines(node, node.span.start, cases[-1][-1].start) or flat_width(head) + 1 + len(one_line) > WIDTH
        return nest(2, *(concat(HARD, *line) for line in lines)) if broken or has_comments else one_line

    def bindings(self, keyword: str, bindings: tuple[tree.Binding, ...], end: str = "") -> Doc:
        """`let a = .. and b = ..`, followed by `end` (the `in`)."""
        docs: list[Doc] = []
        for number, binding in enumerate(bindings):
            if number:
                docs += [HARD, *self.lead(binding)]
            last = end if number == len(bindings) - 1 else ""
            docs.append(self.with_comments(binding, self.binding("and " if number else keyword, binding, last)))
        return concat(*docs)

    def binding(self, keyword: str, node: tree.Binding, end: str) -> Doc:
        left = parameter(node.pattern) if node.params else pattern(node.pattern)
        parts = (node.pattern, *node.params, *([node.annot] if node.annot else []))
        annot = f" : {type_(node.annot)}" if node.annot else ""
        head = self.equals(" ".join([keyword + left, *map(parameter, node.params)]) + annot, node.body, *parts)
        lead = [d for part in parts for d in self.lead(part)]
        trail = [d for part in parts for d in self.trail(part)]
        return self.after(concat(*lead, head, *trail), node.body, FREE, end)

    def after(self, head: Doc, body: tree.Expr, place: Place, end: str = "") -> Doc:
        """`head body end`.  The body goes below, indented, if it does not fit or the author put it there."""
        below = self.has_lines_before(body) or starts_line(body)
        doc = self.expr(body, place)
        if below:
            return concat(head, nest(2, HARD, group(doc)), concat(HARD, end) if end else "")
        is_record = isinstance(body, tree.Record | tree.RecordWith)
        fits_below = is_record and not is_hard(doc) and flat_width(doc) < WIDTH - DEEP
        if not fits_below and embraces(body) and not needs_parentheses(body, place) and flat_width(head) < WIDTH // 2:
            return concat(head, " ", group(doc), f" {end}" if end else "")
        return group(head, nest(2, LINE, doc), concat(LINE, end) if end else "")

    # ---- expressions -------------------------------------------------------------------------------------------

    def expr(self, node: tree.Expr, place: Place) -> Doc:
        if needs_parentheses(node, place):
            return self.with_comments(node, self.parens(node))
        return self.with_comments(node, self.form(node, place))

    def parens(self, node: tree.Expr) -> Doc:
        inner = self.form(node, FREE)
        return group("(", inner if isinstance(node, tree.Fun) else align(inner), ")")

    def form(self, node: tree.Expr, place: Place) -> Doc:
        match node:
            case tree.Lit():
                return literal(node)
            case tree.Interp():
                return self.interp(node)
            case tree.Var(_, var):
                return "(not)" if var == "not" else name(var)
            case tree.Con(_, con):
                return con
            case tree.Reset(_, body):
                return concat("reset ", self.expr(body, ARGUMENT))
            case tree.Unary():
                return self.unary(node, place)
            case tree.Binary() | tree.Logic() | tree.Cons() | tree.Pipe() | tree.Assign():
                return self.chain(node, place)
            case tree.App():
                return self.application(node, place)
            case tree.Field(_, record, field):
                return concat(self.owner(record), ".", field)
            case tree.Index(_, array, indices):
                return group(self.owner(array), "[", align(join(concat(",", LINE), map(self.index, indices))), "]")
            case (
                tree.Let()
                | tree.Seq()
                | tree.If()
                | tree.Match()
                | tree.Fun()
                | tree.Shift()
                | tree.LoopFor()
                | tree.LoopWhile()
            ):
                return self.binder(node, replace(place, least=-1))
            case _:
                return self.bracketed(node)

    def unary(self, node: tree.Unary, place: Place) -> Doc:
        symbol = starts_with_symbol(node.arg)
        if node.op != "-":
            return concat(node.op, self.expr(node.arg, replace(PART, least=ATOM + symbol)))
        least = ATOM + 1 if symbol else UNARY.rank + 1
        return concat(*self.lead(node.arg), "-", self.expr(node.arg, replace(place, least=least, seq=False)))

    def binder(self, node: tree.Expr, right: Place) -> Doc:
        """A form that extends to the right; `right` is the place of the part that does."""
        match node:
            case tree.Fun(_, params, body):
                lead = [d for p in params for d in (*self.lead(p), *self.trail(p))]
                head = " ".join(["fun", *map(parameter, params), "->"])
                return self.after(concat(*lead, head), body, replace(right, seq=True))
            case tree.Shift(_, var, body):
                return self.after(f"shift {var} ->", body, replace(right, seq=True))
            case tree.If():
                return self.conditional(node, replace(right, seq=False))
            case tree.Match():
                return self.match(node, right)
            case tree.LoopFor(_, state, init, index, count, body):
                until = concat(f" for {index} < ", self.expr(count, ITEM))
                return self.loop(state, init, until, body, right)
            case tree.LoopWhile(_, state, init, cond, body):
                return self.loop(state, init, concat(" while ", self.asked(cond)), body, right)
            case _:
                return self.steps(node, right)

    def asked(self, node: tree.Expr) -> Doc:
        """A condition, or what a match looks at.  Steps stand in parentheses, which keep their comments inside."""
        steps = isinstance(node, tree.Let | tree.Seq)
        return self.with_comments(node, self.parens(node)) if steps else self.expr(node, ITEM)

    def loop(self, state: tree.Pattern, init: tree.Expr, until: Doc, body: tree.Expr, right: Place) -> Doc:
        head = self.equals(f"loop {pattern(state)}", init, state)
        start = concat(*self.lead(state), head, " ", *self.trail(state), self.expr(init, ITEM))
        return self.after(concat(start, until, " do"), body, replace(right, seq=False))

    def steps(self, node: tree.Expr, right: Place) -> Doc:
        """A run of `let .. in` and `e;`, one below the other."""
        docs: list[Doc] = []
        trailing: list[Doc] = []
        inner = replace(right, seq=True)
        line = HARD if run_is_broken(node) else LINE
        while True:
            match node:
                case tree.Let(_, rec, bindings, body):
                    docs.append(self.bindings(f"let {'rec ' * rec}", bindings, "in"))
                    end = bindings[-1].span.end
                case tree.Seq(_, first, body):
                    docs += [self.expr(first, STEP), ";"]
                    end = first.span.end
                case _:
                    break
            comments = self.comments.leading.get(id(body))
            blank = has_blank_line(node, end, comments[0].span.start if comments else body.span.start)
            docs += [HARD, HARD] if blank else [HARD if self.has_lines_before(body) else line]
            node = body
            if not isinstance(node, tree.Let | tree.Seq) or is_swallowed(node, inner):
                break
            docs += self.lead(node)
            trailing = [*self.trail(node), *trailing]
        return concat(*docs, self.expr(node, inner), *trailing)

    def conditional(self, node: tree.If, right: Place) -> Doc:
        """A chain of `if`s; each `else if` continues in the same column."""
        docs: list[Doc] = []
        line = HARD if branches_are_broken(node) else LINE
        while True:
            place = replace(right, orelse=True) if node.else_ else right
            docs.append(self.after(concat("if ", self.asked(node.cond), " then"), node.then, place))
            match node.else_:
                case None:
                    break
                case tree.If() as other if not self.comments.leading.get(id(other)):
                    docs += [*self.trail(other), line, "else "]
                    node = other
                case other:
                    docs += [line, self.after("else", other, right)]
                    break
        return group(*docs)

    def match(self, node: tree.Match, right: Place) -> Doc:
        docs: list[Doc] = [concat("match ", self.asked(node.scrutinee), " with")]
        line = HARD if newlines(node, node.scrutinee.span.end, node.arms[-1].span.start) else LINE
        for arm in node.arms:
            place = replace(right, seq=True, bar=right.bar or arm is not node.arms[-1])
            guard = concat(" when ", self.asked(arm.guard)) if arm.guard else ""
            left = concat("| ", *self.lead(arm.pattern), pattern(arm.pattern), *self.trail(arm.pattern), guard, " ->")
            docs += [line, *self.lead(arm), self.with_comments(arm, nest(2, self.after(left, arm.body, place)))]
        return group(*docs)

    # ---- operators and applications ----------------------------------------------------------------------------

    def chain(self, node: tree.Expr, place: Place) -> Doc:
        """A chain of operators of one precedence, without parentheses; one per line if they do not fit on one."""
        first, rest = flatten(node)
        rank = level_of(node)
        operand = Place(rank.rank + 1, seq=False, more=True)
        docs: list[Doc] = []
        start = [d for _, _, part in rest if part is not node and not rank.right for d in self.lead(part)]
        for op, right, part in rest:
            where = replace(place, least=operand.least, seq=False) if right is rest[-1][1] else operand
            if rank is POWER and is_negative(right):
                where = replace(where, least=UNARY.rank)
            inner = [part] if part is not node else []
            owners = [*inner, right] if rank.right else [right]
            before = [d for owner in owners for c in self.comments.pop_before(op, owner) for d in self.placed(c)]
            after = [d for owner in owners[:-1] for d in self.lead(owner)]
            docs += [LINE, *before, f"{op} ", align(*after, self.expr(right, where))]
            docs += [d for one in inner for d in self.trail(one)]
        return group(*start, self.expr(first, operand), nest(0 if rank is PIPE else 2, *docs))

    def application(self, node: tree.App, place: Place) -> Doc:
        if is_prefixed(node):
            op = node.fn.name if isinstance(node.fn, tree.Var) else ""
            return concat(op, self.expr(node.arg, replace(PART, least=ATOM + starts_with_symbol(node.arg))))
        head, args = spine(node)
        if isinstance(head, tree.Var) and head.name == "not" and len(args) == 1:
            return concat("not ", self.expr(args[0], replace(place, least=UNARY.rank, seq=False)))
        parts = partial(node, len(args))
        fn = concat(*(d for part in parts for d in self.lead(part)), self.expr(head, ARGUMENT))
        docs = [self.argument(arg) for arg in args]
        for number, part in enumerate(parts):
            docs[number] = concat(docs[number], *self.trail(part))
        if embraces(args[-1]) and not any(isinstance(arg, tree.Fun | tree.App) and embraces(arg) for arg in args[:-1]):
            *others, last = docs
            return concat(group(fn, nest(2, *(concat(LINE, d) for d in others))), " ", group(last))
        return group(fn, nest(2, *(concat(LINE, d) for d in docs)))

    def argument(self, node: tree.Expr) -> Doc:
        return "not" if isinstance(node, tree.Var) and node.name == "not" else self.expr(node, ARGUMENT)

    def owner(self, node: tree.Expr) -> Doc:
        """The operand of an index or a field access, in parentheses if needed."""
        match node:
            case tree.Lit() | tree.Con() | tree.Interp() | tree.App():
                return self.with_comments(node, self.parens(node))
            case tree.Unary(_, "!", tree.Lit() | tree.Con() | tree.Interp()):
                return self.with_comments(node, self.parens(node))
            case _:
                return self.expr(node, ARGUMENT)

    def index(self, node: tree.Expr | tree.Slice) -> Doc:
        match node:
            case tree.Slice(_, low, high):
                return self.with_comments(node, join(":", (self.expr(e, ITEM) if e else "" for e in (low, high))))
            case _:
                return self.expr(node, ITEM)

    # ---- brackets ----------------------------------------------------------------------------------------------

    def bracketed(self, node: tree.Expr) -> Doc:
        match node:
            case tree.Tuple(_, items):
                return self.elements("(", items, ",", ")", ITEM)
            case tree.ListLit(_, (item,)):
                return concat("[", self.expr(item, STEP), ";]")
            case tree.ListLit(_, items):
                return self.elements("[", items, ";", "]", STEP)
            case tree.ArrayLit(_, items):
                return self.elements("[", items, ",", "]", ITEM)
            case tree.Comprehension(_, clauses, cond, body):
                heads = [self.with_comments(c, self.clause(c)) for c in clauses]
                kept = [LINE, "when ", self.expr(cond, ITEM)] if cond else []
                start = concat("[for ", align(join(concat(",", LINE), heads), *kept), " ->")
                return group(self.after(start, body, FREE), "]")
            case tree.Record(_, fields):
                return self.fields("{ ", node, fields)
            case tree.RecordWith(_, record, fields):
                return self.fields(concat("{ ", self.expr(record, ITEM), " with "), node, fields)
            case tree.ArrayWith(_, array, updates):
                docs = [self.update(*update) for update in updates]
                return self.items(concat("{ ", self.expr(array, ITEM), " with "), docs, ";", " }", False)
            case tree.Annot(_, expr, annot) | tree.Coerce(_, expr, annot):
                symbol = ":" if isinstance(node, tree.Annot) else ":>"
                return group("(", align(self.expr(expr, FREE), LINE, f"{symbol} {type_(annot)})"))
            case _:
                raise TypeError(node)

    def elements(self, left: str, items: tuple[tree.Expr, ...], separator: str, right: str, place: Place) -> Doc:
        if not items:
            return left + right
        trail = self.trail(items[-1])  # trail outside: there it breaks no line
        docs = [self.expr(item, place) for item in items]
        if len(items) > 4 and all(isinstance(doc, str) for doc in docs):
            return concat(left, align(fill(separator, docs)), right, *trail)
        broken = any(newlines(a, a.span.end, b.span.start) for a, b in itertools.pairwise(items))
        return concat(self.items(left, docs, separator, right, broken), *trail)

    def items(self, left: Doc, docs: list[Doc], separator: str, right: str, broken: bool) -> Doc:
        return group(left, align(join(concat(separator, HARD if broken else LINE), docs)), right)

    def fields(self, left: Doc, node: tree.Expr, fields: tuple[tuple[str, tree.Expr], ...]) -> Doc:
        trail = self.trail(fields[-1][1])
        docs = [self.field(field, value) for field, value in fields]
        broken = newlines(node, fields[0][1].span.start, fields[-1][1].span.start) > 0
        return concat(self.items(left, docs, ";", " }", broken), *trail)

    def field(self, field: str, value: tree.Expr) -> Doc:
        lead = [d for c in self.comments.pop_before("=", value) for d in self.placed(c)]
        trail = self.trail(value)
        is_name = isinstance(value, tree.Var) and value.name == tree.member(field)
        shown = self.with_comments(value, field) if is_name else self.after(f"{field} =", value, STEP)
        return concat(*lead, shown, *trail)

    def update(self, indices: tuple[tree.Expr, ...], value: tree.Expr) -> Doc:
        lead = self.lead(indices[0])
        lead += [d for c in self.comments.pop_before("=", value) for d in self.placed(c)]
        where = join(", ", [self.expr(index, ITEM) for index in indices])
        trail = self.trail(value)
        return concat(*lead, self.after(concat("[", where, "] ="), value, STEP), *trail)

    def clause(self, node: tree.ForRange | tree.ForIn) -> Doc:
        match node:
            case tree.ForRange(_, var, count):
                return concat(f"{var} < ", self.expr(count, ITEM))
            case tree.ForIn(_, bound, array):
                return concat(*self.lead(bound), f"{pattern(bound)} in ", *self.trail(bound), self.expr(array, ITEM))

    def interp(self, node: tree.Interp) -> str:
        """The literal as written, if its text is known."""
        written = node.span.text.strip("( )\n")
        return written if written.startswith('$"') else f'$"{"".join(map(self.piece, node.parts))}"'

    def piece(self, part: str | tuple[tree.Expr, str]) -> str:
        if isinstance(part, str):
            return escape(part.replace("{", "{{").replace("}", "}}"))
        expr, form = part
        text = layout(self.expr(expr, Place(0, seq=False, more=True)), 10**9).rstrip("\n")
        return f"{{{' ' * text.startswith('{')}{text}{':' * bool(form)}{form}}}"
