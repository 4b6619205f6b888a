"""Functions of the runtime's language -> LLVM text: statements become basic blocks."""

from __future__ import annotations

import ast

from dpl.diagnostics import Bug

from dplc.machine.rtl.expressions import Expressions, Value
from dplc.machine.rtl.parse import (
    KINDS,
    STORED,
    Source,
    declaration,
    is_decorated,
    parameters,
    result_type,
    results,
    symbol,
)


def translate(source: Source, name: str) -> str:
    """The LLVM text of a function or global."""
    if name in source.globals:
        return source.globals[name][1]
    fn = source.functions[name]
    return declaration(fn) if is_decorated(fn, "extern") else Function(source, fn).text()


class Function(Expressions):
    """One function, whose statements are translated in order."""

    def text(self) -> str:
        fn = self.fn
        params = ", ".join(f"{STORED[ty][0]} %a.{name}" for name, ty in parameters(fn))
        for name, ty in parameters(fn):
            if name in self.source.globals:
                raise Bug(f"runtime library: {fn.name}: the parameter {name} has the name of a global")
            self.assign(name, self.widened(ty, f"%a.{name}"))
        self.statements(fn.body)
        if self.open:
            self.end("unreachable" if results(fn) else "ret void")
        head = f"define internal {result_type(fn)} @{self.symbol}({params}) {self.source.attributes(fn)} {{"
        return "\n".join([*self.strings, head, "entry:", *self.head, *self.lines, "}"])

    def statements(self, body: list[ast.stmt]) -> None:
        for node in body:
            if not self.open:
                return
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(value):
                self.expr(value)
            case ast.Assign([target], value):
                self.store(target, value)
            case ast.AugAssign(target, op, value):
                self.store(target, ast.BinOp(_loaded(target), op, value))
            case ast.Return(value):
                self.ret(value)
            case ast.If(test, body, orelse):
                self.branch(test, body, orelse)
            case ast.While(test, body):
                self.loop(test, body, [])
            case ast.For(ast.Name() as name, ast.Call(ast.Name("range"), [low, high]), body):
                self.store(name, low)
                step = ast.AugAssign(name, ast.Add(), ast.Constant(1))
                self.loop(ast.Compare(_loaded(name), [ast.Lt()], [high]), body, [step])
            case ast.Break() | ast.Continue():
                self.end(f"br label %{self.loops[-1][isinstance(node, ast.Break)]}")
            case _:
                raise Bug(f"runtime library: {self.fn.name}: no statement {ast.unparse(node)}")

    def store(self, target: ast.expr, value: ast.expr) -> None:
        match target:
            case ast.Tuple(names):
                for name, part in zip(names, self.parts(value), strict=True):
                    self.assign(ast.unparse(name), part)
            case ast.Name(name):
                self.assign(name, self.expr(value))
            case ast.Subscript(ast.Attribute(base, ty), index):
                place = self.element(base, ty, index)
                self.do(f"store {STORED[ty][0]} {self.narrowed(ty, self.expr(value))}, ptr {place}")
            case _:
                raise Bug(f"runtime library: {self.fn.name}: cannot assign {ast.unparse(target)}")

    def assign(self, name: str, value: Value) -> None:
        if name in self.source.globals:
            ty = self.source.globals[name][0]
            self.do(f"store {STORED[ty][0]} {self.narrowed(ty, value)}, ptr @{symbol(name)}")
            return
        if name not in self.slots:
            self.slots[name] = value.kind
            self.head.append(f"  %v.{name} = alloca {KINDS[value.kind]}")
        self.expect(value, self.slots[name])
        self.do(f"store {KINDS[value.kind]} {value.text}, ptr %v.{name}")

    def ret(self, value: ast.expr | None) -> None:
        types = results(self.fn)
        if value is None:
            self.end("ret void")
        elif len(types) == 1:
            self.end(f"ret {STORED[types[0]][0]} {self.narrowed(types[0], self.expr(value))}")
        else:
            whole, record = "poison", result_type(self.fn)
            for i, (ty, part) in enumerate(zip(types, self.parts(value), strict=True)):
                whole = self.op(f"insertvalue {record} {whole}, {STORED[ty][0]} {self.narrowed(ty, part)}, {i}")
            self.end(f"ret {record} {whole}")

    def branch(self, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]) -> None:
        then, other, after = self.label(), self.label(), self.label()
        condition = self.expect(self.expr(test), "bool").text
        self.end(f"br i1 {condition}, label %{then}, label %{other if orelse else after}")
        self.start(then)
        self.statements(body)
        reached = self.open
        self.end(f"br label %{after}")
        if orelse:
            self.start(other)
            self.statements(orelse)
            reached = reached or self.open
            self.end(f"br label %{after}")
        if reached or not orelse:
            self.start(after)

    def loop(self, test: ast.expr, body: list[ast.stmt], step: list[ast.stmt]) -> None:
        head, inside, following, after = (self.label() for _ in range(4))
        self.start(head)
        if not (isinstance(test, ast.Constant) and test.value is True):
            condition = self.expect(self.expr(test), "bool").text
            self.end(f"br i1 {condition}, label %{inside}, label %{after}")
        self.start(inside)
        self.loops.append((following, after))
        self.statements(body)
        self.loops.pop()
        self.start(following)
        self.statements(step)
        self.end(f"br label %{head}")
        self.start(after)


def _loaded(target: ast.expr) -> ast.expr:
    """An assignment's target, to be read."""
    match target:
        case ast.Name(name):
            return ast.Name(name, ast.Load())
        case ast.Subscript(value, index):
            return ast.Subscript(value, index, ast.Load())
        case _:
            raise Bug(f"runtime library: cannot update {ast.unparse(target)}")
