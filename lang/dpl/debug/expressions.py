"""Expressions of DPL, evaluated in the scope of a stopped program.

The variables in scope become names of a session for the checker, and their values are put where the interpreter looks
for those of definitions.  Of definitions of one name, the last one before the place of the frame counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpl.core import term as c
from dpl.core import ty as t
from dpl.debug.breakpoints import Refused
from dpl.debug.inspect import Variable
from dpl.debug.run import Run
from dpl.diagnostics import DplError
from dpl.eval.code.code import Code, root
from dpl.eval.values.instance import type_params
from dpl.eval.values.value import Value
from dpl.source import NOWHERE, Source, Span
from dpl.syntax import tree
from dpl.syntax.load import MAIN, Module
from dpl.syntax.parse import parse_expr
from dpl.types.messages.pretty import show_scheme
from dpl.types.session import Session
from dpl.types.solve.scheme import mono
from dpl.types.state import env

RESULT = "it"


class Expressions:
    def __init__(self, modules: Sequence[Module]) -> None:
        self.modules = modules
        self.session: Session | None = None
        self.busy = False  # an expression is evaluated now
        self.checked: dict[tuple, c.Def] = {}  # by text, and names and types in scope

    def value(self, run: Run, text: str, scope: Sequence[Variable], place: Span) -> tuple[Value, t.Ty]:
        """The value of an expression at a place of the program, and its type.  Raises DplError, and Refused if
        KeyboardInterrupt is raised in the thread meanwhile."""
        definition = self.definition(text, scope, place)
        values = run.interpreter._values
        names = {local(v.name): v.value for v in scope}
        values.update({(name, (), ()): value for name, value in names.items()})
        on = run._watching(False)
        mark, meta = run.journal.mark(), run.machine.meta
        try:
            code = run.interpreter._compiler.compile(definition.body, root(definition.group))
            value = self.evaluated(run, code)
            if mark.answers != run.journal.answered or mark.printed != run.journal.printed:
                raise DplError.at("R0706", "the debugger evaluates only expressions without output and input")
            return value, definition.ty
        finally:
            run.journal.back_to(mark)
            run.machine.meta = meta
            run._watching(on)
            for name in names:
                values.pop((name, (), ()), None)

    def evaluated(self, run: Run, code: Code) -> Value:
        self.busy = True
        try:
            return run.interpreter._finish(code, run.interpreter.types)
        except KeyboardInterrupt:
            raise Refused("the expression was interrupted") from None
        finally:
            self.busy = False

    def definition(self, text: str, scope: Sequence[Variable], place: Span) -> c.Def:
        """The expression as a checked definition."""
        key = text, place, tuple((v.name, v.ty) for v in scope)
        if key not in self.checked:
            self.checked[key] = self.check(text, scope, place)
        return self.checked[key]

    def parsed(self, text: str) -> tree.Expr:
        """Raises Refused if it is no expression."""
        try:
            return parse_expr(Source("<debug>", text))
        except DplError as error:
            raise Refused(f"`{text}` is not an expression: {error.diagnostics[0].title}") from None

    def derivatives(self, text: str) -> list[tuple[bool, int, int, str]]:
        """The parts `d x` of an expression, from left to right: whether it is all of it, where it begins and ends, and
        the text of x."""
        expr = self.parsed(text)
        return [(a is expr, a.span.start, a.span.end, a.arg.span.text) for a in applications(expr, "d")]

    def check(self, text: str, scope: Sequence[Variable], place: Span) -> c.Def:
        """The definition of an expression with these variables in scope.  Raises the errors of its types."""
        if self.session is None:
            self.session = Session()
            self.session.add(self.modules)
            self.session.settle()
        session, cx = self.session, self.session.cx
        expr = self.parsed(text)
        kept = session.state()
        try:
            cx.new_layer()
            cx.own.values.update(self.declared(place))
            for v in scope:
                cx.own.values[v.name] = env.Value(local(v.name), mono(v.ty), NOWHERE)
            binding = tree.Binding(expr.span, tree.PatVar(expr.span, RESULT), (), None, expr)
            decl = tree.DeclLet(expr.span, False, (binding,))
            items = session.check(Module(MAIN, expr.span.source, tree.File(expr.span, (decl,), ())))
        finally:
            session.forget(*kept)
        found = next(item for item in items if isinstance(item, c.Def))
        if type_params(found.params):
            raise Refused(f"`{text}` is of many types; a value has one.  It is  {show_scheme(found)}")
        return found

    def declared(self, place: Span) -> dict[str, env.Entry]:
        """What the names mean at a place that its module declares or opens: later declarations are not there yet."""
        module = next((m for m in self.modules if m.source == place.source), None)
        if module is None or self.session is None:
            return {}
        home = self.session.cx if module is self.modules[-1] else self.session.run.home(module.name)
        assert home is not None
        opens = [decl for decl in module.tree.decls if isinstance(decl, tree.DeclOpen)]
        opened = [(decl.span.start < place.start, home.modules[decl.name].public().values) for decl in opens]
        outer = [*(layer.values for layer in home.layers[:2]), *(names for is_before, names in opened if is_before)]
        found = {}
        for name in {*home.history, *self.session.cx.history, *(name for _, names in opened for name in names)}:
            meanings = [entry for _, entry in home.history.get(name, ()) if isinstance(entry, env.Value)]
            before = [e for e in meanings if e.span.source == place.source and e.span.start <= place.start]
            meant = before[-1] if before else next((names[name] for names in reversed(outer) if name in names), None)
            if meant is not None:
                found[name] = meant
        return found


def applications(part: object, name: str) -> Iterator[tree.App]:
    """The outermost applications of a name in a tree, from left to right."""
    if isinstance(part, tree.App) and isinstance(part.fn, tree.Var) and part.fn.name == name:
        yield part
    elif isinstance(part, tuple):
        for item in part:
            yield from applications(item, name)
    elif isinstance(part, tree.Node) and not isinstance(part, Span):
        for field in type(part).__match_args__:
            yield from applications(getattr(part, field), name)


def local(name: str) -> str:
    return f"debug.{name}"
