"""functions in a small language -> LLVM text.

The runtime library (`rt/*.rt`) is written in a language of the machine's level with Python's syntax, so that its text
can be read, and Python's own parser read it.  There are four kinds of values, int (64 bits), float (double), ptr and
bool; narrower types occur in signatures and in memory, and are widened when read.

    def skip(data: ptr, at: i64) -> i64:         define internal i64 @rt.skip(ptr %a.data, i64 %a.at) nounwind {
        while data.u8[at] == 32:             =>    ...
            at += 1                                %3 = load i8, ptr %2
        return at                                  ...

`p.i32[k]` is element k of an array of i32 at p, to read or to assign.  Operators on int are those of signed machine
integers (`//` and `%` truncate).  `__` in a name stands for a dot.  Decorators are attributes; `@extern` declares what
the C library defines, `@made` what `kernels.py` does.  `name: i64 = 0` at the top is a global, `name: space[100]` one of 100 bytes, known by its
address, as is a table `name: f64 = [...]`; `NAME = 5` is a constant.

Functions are inlined where they say `@inline`, and nowhere else: programs should not grow by what they print with.
"""

from __future__ import annotations

import ast
import struct
from dataclasses import dataclass, field

from dpl.diagnostics import Bug

# name in signatures and memory: LLVM type, kind of value, instruction that widens, instruction that narrows
STORED = {
    "i8": ("i8", "int", "sext", "trunc"), "i16": ("i16", "int", "sext", "trunc"), "i32": ("i32", "int", "sext", "trunc"),
    "u8": ("i8", "int", "zext", "trunc"), "u16": ("i16", "int", "zext", "trunc"), "u32": ("i32", "int", "zext", "trunc"),
    "i64": ("i64", "int", "", ""), "u64": ("i64", "int", "", ""), "ptr": ("ptr", "ptr", "", ""), "bool": ("i1", "bool", "", ""),
    "f16": ("half", "float", "fpext", "fptrunc"), "f32": ("float", "float", "fpext", "fptrunc"), "f64": ("double", "float", "", ""),
}  # fmt: skip
KINDS = {"int": "i64", "float": "double", "ptr": "ptr", "bool": "i1"}
ATTRIBUTES = {
    "inline": "alwaysinline", "cold": "cold", "noreturn": "noreturn", "pure": "memory(none) willreturn nobuiltin",
}  # fmt: skip

INT_OPS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "sdiv", ast.Mod: "srem", ast.BitAnd: "and",
    ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "shl", ast.RShift: "ashr",
}  # fmt: skip
FLOAT_OPS = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
ORDERS = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}

# built-in functions: kinds of the arguments, kind of the result, instruction with the arguments in its holes
BUILTINS = {
    "below": (("int", "int"), "bool", "icmp ult i64 {}, {}"),
    "above": (("int", "int"), "bool", "icmp ugt i64 {}, {}"),
    "ushr": (("int", "int"), "int", "lshr i64 {}, {}"),
    "udiv": (("int", "int"), "int", "udiv i64 {}, {}"),
    "urem": (("int", "int"), "int", "urem i64 {}, {}"),
    "float": (("int",), "float", "sitofp i64 {} to double"),
    "ufloat": (("int",), "float", "uitofp i64 {} to double"),
    "int": (("float",), "int", "call i64 @llvm.fptosi.sat.i64.f64(double {})"),
    "bits": (("float",), "int", "bitcast double {} to i64"),
    "of_bits": (("int",), "float", "bitcast i64 {} to double"),
    "address": (("ptr",), "int", "ptrtoint ptr {} to i64"),
    "abs": (("float",), "float", "call double @llvm.fabs.f64(double {})"),
    "floor": (("float",), "float", "call double @llvm.floor.f64(double {})"),
    "sqrt": (("float",), "float", "call double @llvm.sqrt.f64(double {})"),
    "round": (("float",), "float", "call double @llvm.roundeven.f64(double {})"),
    "copysign": (("float", "float"), "float", "call double @llvm.copysign.f64(double {}, double {})"),
    "max": (("int", "int"), "int", "call i64 @llvm.smax.i64(i64 {}, i64 {})"),
    "min": (("int", "int"), "int", "call i64 @llvm.smin.i64(i64 {}, i64 {})"),
    "copy": (("ptr", "ptr", "int"), "", "call void @llvm.memcpy.p0.p0.i64(ptr {}, ptr {}, i64 {}, i1 false)"),
    "move": (("ptr", "ptr", "int"), "", "call void @llvm.memmove.p0.p0.i64(ptr {}, ptr {}, i64 {}, i1 false)"),
    "fill": (("ptr", "int", "int"), "", ""),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Value:
    kind: str
    text: str


@dataclass(slots=True)
class Source:
    """What the files define, by symbol; functions are translated when asked for."""

    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    globals: dict[str, tuple[str, str]] = field(default_factory=dict)  # name: (type or "", definition)
    constants: dict[str, int | float] = field(default_factory=dict)
    symbols: dict[str, str] = field(default_factory=dict)  # LLVM's name: name here
    small: set[str] = field(default_factory=set)  # functions whose size matters more than their speed

    def read(self, text: str, small: bool) -> None:
        for node in ast.parse(text).body:
            match node:
                case ast.FunctionDef():
                    self.functions[node.name] = node
                    if small:
                        self.small.add(node.name)
                    if not _is(node, "made"):
                        self.symbols[called(node)] = node.name
                case ast.Assign([ast.Name(name)], value):
                    self.constants[name] = ast.literal_eval(value)
                case ast.AnnAssign(ast.Name(name), annotation, value):
                    self.globals[name] = _global(symbol(name), annotation, value)
                    self.symbols[symbol(name)] = name
                case ast.Expr(ast.Constant()):
                    pass  # the file's docstring
                case _:
                    raise Bug(f"runtime library: line {node.lineno} is no definition")

    def translate(self, name: str) -> str:
        if name in self.globals:
            return self.globals[name][1]
        fn = self.functions[name]
        return _declaration(fn) if _is(fn, "extern") else Function(self, fn).text()

    def attributes(self, fn: ast.FunctionDef) -> str:
        """Of a definition."""
        alone = "" if _is(fn, "inline") else " noinline minsize optsize" if fn.name in self.small else " noinline"
        return _attributes(fn) + alone


def symbol(name: str) -> str:
    return "rt." + name.replace("__", ".")


def called(fn: ast.FunctionDef) -> str:
    """A function's symbol.  Where the C library's name is taken here, ours has `c_` in front."""
    return fn.name.removeprefix("c_") if _is(fn, "extern") else symbol(fn.name)


def _is(fn: ast.FunctionDef, decorator: str) -> bool:
    return any(isinstance(d, ast.Name) and d.id == decorator for d in fn.decorator_list)


def _global(name: str, annotation: ast.expr, value: ast.expr | None) -> tuple[str, str]:
    match annotation, value:
        case ast.Subscript(ast.Name("space"), ast.Constant(int(size))), None:
            return "", f"@{name} = internal global [{size} x i8] zeroinitializer, align 64"
        case ast.Name(ty), ast.List(items):
            llvm = STORED[ty][0]
            texts = [_literal(ast.literal_eval(item), STORED[ty][1]) for item in items]
            values = ", ".join(f"{llvm} {text}" for text in texts)
            return "", f"@{name} = internal unnamed_addr constant [{len(items)} x {llvm}] [{values}], align 8"
        case ast.Name(ty), ast.Constant(initial):
            llvm, kind = STORED[ty][:2]
            return ty, f"@{name} = internal global {llvm} {_literal(initial, kind)}"
    raise Bug(f"runtime library: {name} is no global")


def _literal(value: int | float | bool | None, kind: str) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() if kind == "int":
            return str(value)
    return "0x" + struct.pack(">d", float(value)).hex()


def _attributes(fn: ast.FunctionDef) -> str:
    names = [d.id for d in fn.decorator_list if isinstance(d, ast.Name) and d.id in ATTRIBUTES]
    return " ".join(["nounwind", *(ATTRIBUTES[n] for n in names)])


def _result(fn: ast.FunctionDef) -> tuple[str, ...]:
    match fn.returns:
        case None:
            return ()
        case ast.Tuple(items):
            return tuple(ast.unparse(item) for item in items)
        case one:
            return (ast.unparse(one),)


def _result_type(fn: ast.FunctionDef) -> str:
    types = [STORED[name][0] for name in _result(fn)]
    return types[0] if len(types) == 1 else f"{{ {', '.join(types)} }}" if types else "void"


def _params(fn: ast.FunctionDef) -> list[tuple[str, str]]:
    return [(a.arg, ast.unparse(a.annotation)) for a in fn.args.args if a.annotation]


def _declaration(fn: ast.FunctionDef) -> str:
    types = [STORED[ty][0] for _, ty in _params(fn)] + ["..."] * (fn.args.vararg is not None)
    return f"declare {_result_type(fn)} @{called(fn)}({', '.join(types)}) {_attributes(fn)}"


class Function:
    """One function being translated.  Variables live in stack slots, which the optimiser turns into registers."""

    def __init__(self, source: Source, fn: ast.FunctionDef) -> None:
        self.source = source
        self.fn = fn
        self.symbol = symbol(fn.name)
        self.count = 0
        self.slots: dict[str, str] = {}  # variable: kind
        self.head: list[str] = []
        self.lines: list[str] = []
        self.strings: list[str] = []
        self.block = "entry"
        self.open = True  # whether the current block still lacks its last instruction
        self.loops: list[tuple[str, str]] = []  # where `continue` and `break` go

    def text(self) -> str:
        fn = self.fn
        params = ", ".join(f"{STORED[ty][0]} %a.{name}" for name, ty in _params(fn))
        for name, ty in _params(fn):
            self.assign(name, self.widened(ty, f"%a.{name}"))
        self.statements(fn.body)
        if self.open:
            self.end("unreachable" if _result(fn) else "ret void")
        head = f"define internal {_result_type(fn)} @{self.symbol}({params}) {self.source.attributes(fn)} {{"
        return "\n".join([*self.strings, head, "entry:", *self.head, *self.lines, "}"])

    # ---- instructions and blocks

    def fresh(self) -> str:
        self.count += 1
        return f"%t{self.count}"

    def op(self, text: str) -> str:
        name = self.fresh()
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def end(self, text: str) -> None:
        if self.open:
            self.do(text)
        self.open = False

    def label(self) -> str:
        self.count += 1
        return f"b{self.count}"

    def start(self, label: str) -> None:
        self.end(f"br label %{label}")
        self.lines.append(f"{label}:")
        self.block, self.open = label, True

    def widened(self, ty: str, text: str) -> Value:
        llvm, kind, widen, _ = STORED[ty]
        return Value(kind, self.op(f"{widen} {llvm} {text} to {KINDS[kind]}") if widen else text)

    def narrowed(self, ty: str, value: Value) -> str:
        llvm, kind, _, narrow = STORED[ty]
        self.expect(value, kind)
        return self.op(f"{narrow} {KINDS[kind]} {value.text} to {llvm}") if narrow else value.text

    def expect(self, value: Value, kind: str) -> Value:
        if value.kind != kind:
            raise Bug(f"runtime library: {self.fn.name}: {value.kind} {value.text} where {kind} is expected")
        return value

    # ---- statements

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
                parts = self.parts(value)
                for name, part in zip(names, parts, strict=True):
                    assert isinstance(name, ast.Name)
                    self.assign(name.id, part)
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
        types = _result(self.fn)
        if value is None:
            self.end("ret void")
        elif len(types) == 1:
            self.end(f"ret {STORED[types[0]][0]} {self.narrowed(types[0], self.expr(value))}")
        else:
            whole, record = "poison", _result_type(self.fn)
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

    # ---- expressions

    def expr(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(str(text)):
                return Value("ptr", self.string(text))
            case ast.Constant(value):
                kinds = {bool: "bool", int: "int", float: "float", type(None): "ptr"}
                kind = kinds[type(value)]
                return Value(kind, _literal(value, kind))
            case ast.Name(name):
                return self.variable(name)
            case ast.BinOp(left, op, right):
                return self.binary(op, left, right)
            case ast.UnaryOp(ast.USub(), ast.Constant(value)):
                return self.expr(ast.Constant(-value))
            case ast.UnaryOp(ast.USub(), operand):
                value = self.expr(operand)
                text = f"fneg double {value.text}" if value.kind == "float" else f"sub i64 0, {value.text}"
                return Value(value.kind, self.op(text))
            case ast.UnaryOp(ast.Not(), operand):
                return Value("bool", self.op(f"xor i1 {self.expect(self.expr(operand), 'bool').text}, true"))
            case ast.Compare(left, ops, rights):
                return self.compare(left, ops, rights)
            case ast.BoolOp(op, [first, *rest]):
                return self.logic(isinstance(op, ast.And), first, rest)
            case ast.IfExp(test, yes, no):
                return self.choice(test, yes, no)
            case ast.Subscript(ast.Attribute(base, ty), index):
                place = self.element(base, ty, index)
                return self.widened(ty, self.op(f"load {STORED[ty][0]}, ptr {place}"))
            case ast.Call():
                parts = self.parts(node)
                return parts[0] if parts else Value("", "")
        raise Bug(f"runtime library: {self.fn.name}: no expression {ast.unparse(node)}")

    def variable(self, name: str) -> Value:
        if name in self.slots:
            kind = self.slots[name]
            return Value(kind, self.op(f"load {KINDS[kind]}, ptr %v.{name}"))
        if name in self.source.constants:
            value = self.source.constants[name]
            kind = "int" if isinstance(value, int) else "float"
            return Value(kind, _literal(value, kind))
        if name in self.source.globals:
            ty = self.source.globals[name][0]
            if not ty:
                return Value("ptr", f"@{symbol(name)}")
            return self.widened(ty, self.op(f"load {STORED[ty][0]}, ptr @{symbol(name)}"))
        raise Bug(f"runtime library: {self.fn.name}: {name} is not defined")

    def string(self, text: str) -> str:
        data = text.encode() + b"\0"
        name = f"@{self.symbol}.text{len(self.strings)}"
        coded = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02x}" for b in data)
        self.strings.append(f'{name} = private unnamed_addr constant [{len(data)} x i8] c"{coded}"')
        return name

    def element(self, base: ast.expr, ty: str, index: ast.expr) -> str:
        pointer = self.expect(self.expr(base), "ptr").text
        at = self.expect(self.expr(index), "int").text
        return self.op(f"getelementptr {STORED[ty][0]}, ptr {pointer}, i64 {at}")

    def binary(self, op: ast.operator, left: ast.expr, right: ast.expr) -> Value:
        a, b = self.expr(left), self.expr(right)
        match a.kind, b.kind:
            case "ptr", "int":
                at = b.text if isinstance(op, ast.Add) else self.op(f"sub i64 0, {b.text}")
                return Value("ptr", self.op(f"getelementptr i8, ptr {a.text}, i64 {at}"))
            case "ptr", "ptr":
                x, y = (self.op(f"ptrtoint ptr {p.text} to i64") for p in (a, b))
                return Value("int", self.op(f"sub i64 {x}, {y}"))
            case "float", "float":
                return Value("float", self.op(f"{FLOAT_OPS[type(op)]} double {a.text}, {b.text}"))
            case "int", "int":
                return Value("int", self.op(f"{INT_OPS[type(op)]} i64 {a.text}, {b.text}"))
        raise Bug(f"runtime library: {self.fn.name}: {ast.unparse(left)} and {ast.unparse(right)} do not combine")

    def compare(self, left: ast.expr, ops: list[ast.cmpop], rights: list[ast.expr]) -> Value:
        if len(ops) > 1:
            first = ast.Compare(left, ops[:1], rights[:1])
            return self.logic(True, first, [ast.Compare(rights[0], ops[1:], rights[1:])])
        a, b = self.expr(left), self.expr(rights[0])
        self.expect(b, a.kind)
        order = ORDERS[type(ops[0])]
        if a.kind == "float":
            code = f"fcmp {'une' if order == 'ne' else 'o' + order} double"
        else:
            code = f"icmp {order if order in ('eq', 'ne') else 's' + order} {KINDS[a.kind]}"
        return Value("bool", self.op(f"{code} {a.text}, {b.text}"))

    def logic(self, both: bool, first: ast.expr, rest: list[ast.expr]) -> Value:
        value = self.expect(self.expr(first), "bool")
        if not rest:
            return value
        more, after, came_from = self.label(), self.label(), self.block
        targets = (more, after) if both else (after, more)
        self.end(f"br i1 {value.text}, label %{targets[0]}, label %{targets[1]}")
        self.start(more)
        second = self.logic(both, rest[0], rest[1:])
        last = self.block
        self.start(after)
        short = "false" if both else "true"
        return Value("bool", self.op(f"phi i1 [ {short}, %{came_from} ], [ {second.text}, %{last} ]"))

    def choice(self, test: ast.expr, yes: ast.expr, no: ast.expr) -> Value:
        then, other, after = self.label(), self.label(), self.label()
        self.end(f"br i1 {self.expect(self.expr(test), 'bool').text}, label %{then}, label %{other}")
        self.start(then)
        a = self.expr(yes)
        a_block = self.block
        self.end(f"br label %{after}")
        self.start(other)
        b = self.expect(self.expr(no), a.kind)
        b_block = self.block
        self.start(after)
        return Value(a.kind, self.op(f"phi {KINDS[a.kind]} [ {a.text}, %{a_block} ], [ {b.text}, %{b_block} ]"))

    # ---- calls

    def parts(self, node: ast.expr) -> list[Value]:
        """The values of a tuple, or of a call with several results."""
        match node:
            case ast.Tuple(items):
                return [self.expr(item) for item in items]
            case ast.Call(ast.Name("stack"), [ast.Constant(int(size))]):
                place = self.fresh()
                self.head.append(f"  {place} = alloca [{size} x i8], align 16")
                return [Value("ptr", place)]
            case ast.Call(ast.Name("unreachable"), []):
                self.end("unreachable")
                return []
            case ast.Call(ast.Name(name), args) if name in BUILTINS:
                return self.builtin(name, args)
            case ast.Call(ast.Name(name), args):
                return self.call(name, args)
        return [self.expr(node)]

    def builtin(self, name: str, args: list[ast.expr]) -> list[Value]:
        kinds, result, template = BUILTINS[name]
        texts = [self.expect(self.expr(a), kind).text for a, kind in zip(args, kinds, strict=True)]
        if name == "fill":
            byte = self.op(f"trunc i64 {texts[1]} to i8")
            self.do(f"call void @llvm.memset.p0.i64(ptr {texts[0]}, i8 {byte}, i64 {texts[2]}, i1 false)")
            return []
        if not result:
            self.do(template.format(*texts))
            return []
        return [Value(result, self.op(template.format(*texts)))]

    def call(self, name: str, args: list[ast.expr]) -> list[Value]:
        fn = self.source.functions.get(name)
        if fn is None:
            raise Bug(f"runtime library: {self.fn.name} calls {name}, which is not defined")
        params = _params(fn)
        texts = [
            f"{STORED[ty][0]} {self.narrowed(ty, self.expr(arg))}"
            for (_, ty), arg in zip(params, args, strict=fn.args.vararg is None)
        ]
        for arg in args[len(params) :]:
            value = self.expr(arg)
            texts.append(f"{KINDS[value.kind]} {value.text}")
        types = _result(fn)
        signature = _result_type(fn)
        if fn.args.vararg is not None:
            signature += f" ({', '.join([STORED[ty][0] for _, ty in params] + ['...'])})"
        text = f"call {signature} @{called(fn)}({', '.join(texts)})"
        if not types:
            self.do(text)
            return []
        result = self.op(text)
        if len(types) == 1:
            return [self.widened(types[0], result)]
        picks = [self.op(f"extractvalue {_result_type(fn)} {result}, {i}") for i in range(len(types))]
        return [self.widened(ty, pick) for ty, pick in zip(types, picks, strict=True)]


def _loaded(target: ast.expr) -> ast.expr:
    """An assignment's target, to be read."""
    match target:
        case ast.Name(name):
            return ast.Name(name, ast.Load())
        case ast.Subscript(value, index):
            return ast.Subscript(value, index, ast.Load())
    raise Bug(f"runtime library: cannot update {ast.unparse(target)}")
