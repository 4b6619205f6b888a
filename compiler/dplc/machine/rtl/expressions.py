"""Expressions of the runtime's language -> LLVM instructions.

data.u8[at] + 1         %1 = getelementptr i8, ptr %data, i64 %at
                        %2 = load i8, ptr %1
                        %3 = zext i8 %2 to i64
                        %4 = add i64 %3, 1
"""

from __future__ import annotations

import ast

from dpl.diagnostics import Bug
from dpl.node import node

from dplc.machine.llvm.rounding import rounded
from dplc.machine.rtl.parse import KINDS, STORED, Source, called, literal, parameters, result_type, results, symbol

INT_OPS: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "sdiv", ast.Mod: "srem", ast.BitAnd: "and",
    ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "shl", ast.RShift: "ashr",
}  # fmt: skip
FLOAT_OPS: dict[type, str] = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
ORDERS: dict[type, str] = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}

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
    "frame": ((), "ptr", "call ptr @llvm.frameaddress.p0(i32 0)"),
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
    "prefetch": (("ptr",), "", "call void @llvm.prefetch.p0(ptr {}, i32 1, i32 3, i32 1)"),  # for writing
    "swap": (("ptr", "int"), "int", "atomicrmw xchg ptr {}, i64 {} seq_cst"),
    "seen": (("ptr",), "int", "load atomic i64, ptr {} acquire, align 8"),
    "publish": (("ptr", "int"), "", "store atomic i64 {1}, ptr {0} release, align 8"),
    "add_to": (("ptr", "int"), "int", "atomicrmw add ptr {}, i64 {} seq_cst"),
    "lower": (("ptr", "int"), "int", "atomicrmw min ptr {}, i64 {} seq_cst"),
}  # fmt: skip


@node
class Value:
    kind: str
    text: str


class Expressions:
    """A function under construction.  Variables live in stack slots, which the optimiser turns into registers."""

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
        self.open = True  # whether the current block has no terminator yet
        self.loops: list[tuple[str, str]] = []  # the targets of `continue` and `break`

    # ---- instructions and blocks

    def fresh(self) -> str:
        self.count += 1
        return f"%t{self.count}"

    def op(self, text: str) -> str:
        """Writes an instruction, and gives the register of its result."""
        name = self.fresh()
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Writes an instruction that gives nothing."""
        self.lines.append(f"  {text}")

    def end(self, text: str) -> None:
        """Ends the block, unless it has ended already, as after `return`."""
        if self.open:
            self.do(text)
        self.open = False

    def label(self) -> str:
        """The name of a new block."""
        self.count += 1
        return f"b{self.count}"

    def start(self, label: str) -> None:
        """Begins a block, to which the one before it goes if it has not ended."""
        self.end(f"br label %{label}")
        self.lines.append(f"{label}:")
        self.block, self.open = label, True

    def widened(self, ty: str, text: str) -> Value:
        """A value from memory, of a type of memory, as the language computes with it."""
        llvm, kind, widen, _ = STORED[ty]
        return Value(kind, self.op(f"{widen} {llvm} {text} to {KINDS[kind]}") if widen else text)

    def narrowed(self, ty: str, value: Value) -> str:
        """A value as it is stored in memory."""
        llvm, kind, _, narrow = STORED[ty]
        self.expect(value, kind)
        if ty == "f16":
            return rounded(value.text, ty, self.op)
        return self.op(f"{narrow} {KINDS[kind]} {value.text} to {llvm}") if narrow else value.text

    def expect(self, value: Value, kind: str) -> Value:
        """The value.  Raises a Bug if it is of another kind."""
        if value.kind != kind:
            raise Bug(f"runtime library: {self.fn.name}: {value.kind} {value.text} where {kind} is expected")
        return value

    # ---- expressions

    def expr(self, node: ast.expr) -> Value:
        """The value of an expression."""
        match node:
            case ast.Constant(str(text)):
                return Value("ptr", self.string(text))
            case ast.Constant(value):
                kinds: dict[type, str] = {bool: "bool", int: "int", float: "float", type(None): "ptr"}
                kind = kinds[type(value)]
                return Value(kind, literal(value, kind))
            case ast.Name(name):
                return self.variable(name)
            case ast.BinOp(left, op, right):
                return self.binary(op, left, right)
            case ast.UnaryOp():
                return self.unary(node)
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
            case _:
                raise self.unknown(node)

    def unknown(self, node: ast.expr) -> Bug:
        return Bug(f"runtime library: {self.fn.name}: no expression {ast.unparse(node)}")

    def unary(self, node: ast.UnaryOp) -> Value:
        match node.op, node.operand:
            case ast.USub(), ast.Constant(int() | float() as value):
                return self.expr(ast.Constant(-value))
            case ast.USub(), operand:
                value = self.expr(operand)
                text = f"fneg double {value.text}" if value.kind == "float" else f"sub i64 0, {value.text}"
                return Value(value.kind, self.op(text))
            case ast.Not(), operand:
                return Value("bool", self.op(f"xor i1 {self.expect(self.expr(operand), 'bool').text}, true"))
            case _:
                raise self.unknown(node)

    def variable(self, name: str) -> Value:
        """The value of a local variable, or of a constant of the file."""
        if name in self.slots:
            kind = self.slots[name]
            return Value(kind, self.op(f"load {KINDS[kind]}, ptr %v.{name}"))
        if name in self.source.constants:
            value = self.source.constants[name]
            kind = "int" if isinstance(value, int) else "float"
            return Value(kind, literal(value, kind))
        if name in self.source.globals:
            ty = self.source.globals[name][0]
            if not ty:
                return Value("ptr", f"@{symbol(name)}")
            return self.widened(ty, self.op(f"load {STORED[ty][0]}, ptr @{symbol(name)}"))
        if name in self.source.functions:
            return Value("ptr", f"@{called(self.source.functions[name])}")
        raise Bug(f"runtime library: {self.fn.name}: {name} is not defined")

    def string(self, text: str) -> str:
        """The address of a text that ends with a zero byte."""
        data = text.encode() + b"\0"
        name = f"@{self.symbol}.text{len(self.strings)}"
        coded = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02x}" for b in data)
        self.strings.append(f'{name} = private unnamed_addr constant [{len(data)} x i8] c"{coded}"')
        return name

    def element(self, base: ast.expr, ty: str, index: ast.expr) -> str:
        """The address of an element, by its type and its index."""
        pointer = self.expect(self.expr(base), "ptr").text
        at = self.expect(self.expr(index), "int").text
        element = "[8 x i8]" if ty == "ptr" else STORED[ty][0]  # whatever the size of a pointer
        return self.op(f"getelementptr {element}, ptr {pointer}, i64 {at}")

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
            case _:
                raise Bug(
                    f"runtime library: {self.fn.name}: {ast.unparse(left)} and {ast.unparse(right)} do not combine"
                )

    def compare(self, left: ast.expr, ops: list[ast.cmpop], rights: list[ast.expr]) -> Value:
        """A comparison; `a < b < c` is two of them, as in Python."""
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

    def promoted(self, value: Value) -> str:
        """An argument beyond the parameters, which C takes for an int if it is one."""
        if value.kind == "int":
            return f"i32 {self.op(f'trunc i64 {value.text} to i32')}"
        return f"{KINDS[value.kind]} {value.text}"

    def parts(self, node: ast.expr) -> list[Value]:
        """The values of a tuple, or of a call with several results."""
        match node:
            case ast.Tuple(items):
                return [self.expr(item) for item in items]
            case ast.Call(ast.Name("stack"), [ast.Constant(int(size))]):
                place = self.fresh()
                self.head.append(f"  {place} = alloca [{size} x i8], align 16")
                return [Value("ptr", place)]
            case ast.Call(ast.Name("through"), [function, *args]):
                self.through(function, args)
                return []
            case ast.Call(ast.Name("outcome"), [function, *args]):
                return [self.outcome(function, args)]
            case ast.Call(ast.Name("unreachable"), []):
                self.end("unreachable")
                return []
            case ast.Call(ast.Name(name), args) if name in BUILTINS:
                return self.builtin(name, args)
            case ast.Call(ast.Name(name), args):
                return self.call(name, args)
            case _:
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

    def through(self, function: ast.expr, args: list[ast.expr]) -> None:
        """A call of the function at an address, which gives nothing."""
        address = self.expect(self.expr(function), "ptr").text
        values = [self.expr(arg) for arg in args]
        self.do(f"call void {address}({', '.join(f'{KINDS[v.kind]} {v.text}' for v in values)})")

    def outcome(self, function: ast.expr, args: list[ast.expr]) -> Value:
        """A call of the function at an address, which gives an i32."""
        address = self.expect(self.expr(function), "ptr").text
        values = [self.expr(arg) for arg in args]
        got = self.op(f"call i32 {address}({', '.join(f'{KINDS[v.kind]} {v.text}' for v in values)})")
        return Value("int", self.op(f"sext i32 {got} to i64"))

    def call(self, name: str, args: list[ast.expr]) -> list[Value]:
        fn = self.source.functions.get(name)
        if fn is None:
            raise Bug(f"runtime library: {self.fn.name} calls {name}, which is not defined")
        params = parameters(fn)
        texts = [
            f"{STORED[ty][0]} {self.narrowed(ty, self.expr(arg))}"
            for (_, ty), arg in zip(params, args, strict=fn.args.vararg is None)
        ]
        for arg in args[len(params) :]:
            texts.append(self.promoted(self.expr(arg)))
        types = results(fn)
        signature = result_type(fn)
        if fn.args.vararg is not None:
            signature += f" ({', '.join([STORED[ty][0] for _, ty in params] + ['...'])})"
        text = f"call {signature} @{called(fn)}({', '.join(texts)})"
        if not types:
            self.do(text)
            return []
        result = self.op(text)
        if len(types) == 1:
            return [self.widened(types[0], result)]
        picks = [self.op(f"extractvalue {result_type(fn)} {result}, {i}") for i in range(len(types))]
        return [self.widened(ty, pick) for ty, pick in zip(types, picks, strict=True)]
