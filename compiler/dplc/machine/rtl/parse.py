"""The language of the runtime library: `rt/*.rt` -> what these files define.

It is a low-level language with Python's syntax, read by Python's own parser.  There are four kinds of values: int (64
bits), float (double), ptr and bool.  Narrower types occur in signatures and in memory, and are widened when read.

    def skip(data: ptr, at: i64) -> i64:         define internal i64 @rt.skip(ptr %a.data, i64 %a.at) nounwind {
        while data.u8[at] == 32:             =>    ...
            at += 1                                %3 = load i8, ptr %2
        return at                                  ...

`p.i32[k]` is element k of an array of i32 at p, to read or to assign.  Operators on int are those of signed machine
integers (`//` and `%` truncate).  `__` in a name stands for a dot.  Decorators are attributes; `@extern` declares a
function of the C library, `@made` one of `kernels.py`.  At the top level, `name: i64 = 0` is a global,
`name: space[100]` one of 100 bytes, known by its address, as is a table `name: f64 = [...]`; `NAME = 5` is a constant.

`through(address, ...)` calls a function by its address; a function's name is its address.  `outcome(address, ...)` is
the i32 that such a function gives.

Functions are inlined only where they say `@inline`: code that prints should not make programs larger.
"""

from __future__ import annotations

import ast
import struct
from copy import copy

from dpl.diagnostics import Bug
from dpl.node import field, record
from dpl.regex import regex

# name in signatures and memory: LLVM type, kind of value, instruction that widens, instruction that narrows
STORED = {
    **{f"i{bits}": (f"i{bits}", "int", "sext", "trunc") for bits in (8, 16, 32)},
    **{f"u{bits}": (f"i{bits}", "int", "zext", "trunc") for bits in (8, 16, 32)},
    "i64": ("i64", "int", "", ""),
    "u64": ("i64", "int", "", ""),
    "f16": ("half", "float", "fpext", "fptrunc"),
    "f32": ("float", "float", "fpext", "fptrunc"),
    "f64": ("double", "float", "", ""),
    "ptr": ("ptr", "ptr", "", ""),
    "bool": ("i1", "bool", "", ""),
}
KINDS = {"int": "i64", "float": "double", "ptr": "ptr", "bool": "i1"}
GLOBAL = regex(r"(global|constant) (\[[^]]*\]|\w+)")  # in its definition
ATTRIBUTES = {
    "inline": "alwaysinline", "cold": "cold", "noreturn": "noreturn", "pure": "memory(none) willreturn nobuiltin",
    "returns_twice": "returns_twice", "convergent": "convergent",
}  # fmt: skip


@record
class Source:
    """The definitions of some files, by symbol; functions are translated when asked for."""

    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    globals: dict[str, tuple[str, str]] = field(default_factory=dict)  # name: (type or "", definition)
    constants: dict[str, int | float] = field(default_factory=dict)
    symbols: dict[str, str] = field(default_factory=dict)  # LLVM's name: name here
    small: set[str] = field(default_factory=set)  # functions that are optimised for size

    def read(self, text: str, small: bool) -> None:
        """Adds what a file defines.  Functions of a `small` one are optimised for size."""
        for node in ast.parse(text).body:
            match node:
                case ast.FunctionDef():
                    earlier = self.functions.get(node.name)
                    if earlier is not None and ast.dump(earlier) != ast.dump(node):
                        raise Bug(f"runtime library: {node.name} is defined twice")
                    self.functions[node.name] = node
                    if small:
                        self.small.add(node.name)
                    if not is_decorated(node, "made"):
                        self.symbols[called(node)] = node.name
                case ast.Assign([ast.Name(name)], value):
                    known = ast.literal_eval(value)
                    if self.constants.setdefault(name, known) != known:
                        raise Bug(f"runtime library: {name} is defined twice")
                case ast.AnnAssign(ast.Name(name), annotation, value):
                    made = global_definition(symbol(name), annotation, value)
                    if self.globals.setdefault(name, made) != made:
                        raise Bug(f"runtime library: {name} is defined twice")
                    self.symbols[symbol(name)] = name
                case ast.Expr(ast.Constant()):
                    pass  # the file's docstring
                case _:
                    raise Bug(f"runtime library: line {node.lineno} is no definition")
        self.check()

    def check(self) -> None:
        """Checks that no name is of two kinds: in a function's body a constant or variable hides a function."""
        variables = self.globals.keys() | self.constants.keys()
        for name in (self.functions.keys() & variables) | (self.globals.keys() & self.constants.keys()):
            raise Bug(f"runtime library: {name} is of two kinds")

    def change(self, other: Source) -> None:
        """Replaces definitions by those of other files, of the same kind."""
        for name in other.functions.keys() & self.functions.keys():
            self.symbols.pop(called(self.functions[name]), None)
        self.functions |= other.functions
        self.globals |= other.globals
        self.constants |= other.constants
        self.symbols |= other.symbols
        self.small |= other.small
        self.check()

    def rename(self, name: str, new: str) -> None:
        """Gives a function another name; what calls it will find one that gets the old name."""
        fn = self.functions.pop(name)
        self.symbols.pop(called(fn))
        renamed = copy(fn)
        renamed.name = new
        self.functions[new] = renamed
        self.symbols[called(renamed)] = new

    def attributes(self, fn: ast.FunctionDef) -> str:
        """The attributes of a definition."""
        if is_decorated(fn, "inline"):
            return attributes(fn)
        return attributes(fn) + (" noinline minsize optsize" if fn.name in self.small else " noinline")


def declare(source: Source, name: str) -> str | None:
    """The declaration of a function or global for another module; None for functions that are inlined."""
    if name in source.globals:
        kind, ty = GLOBAL.findall(source.globals[name][1])[0]
        return f"@{symbol(name)} = external {kind} {ty}"
    fn = source.functions[name]
    return None if is_decorated(fn, "inline") else declaration(fn)


def symbol(name: str) -> str:
    """The symbol of a name of the runtime library: `a__b` is `rt.a.b`."""
    return "rt." + name.replace("__", ".")


def called(fn: ast.FunctionDef) -> str:
    """The symbol of a function.  Where its name is a C library function, it begins with `c_`."""
    return fn.name.removeprefix("c_") if is_decorated(fn, "extern") else symbol(fn.name)


def is_decorated(fn: ast.FunctionDef, decorator: str) -> bool:
    """True if a function has this decorator."""
    return any(isinstance(d, ast.Name) and d.id == decorator for d in fn.decorator_list)


def global_definition(name: str, annotation: ast.expr, value: ast.expr | None) -> tuple[str, str]:
    match annotation, value:
        case ast.Subscript(ast.Name("space"), ast.Constant(int(size))), None:
            return "", f"@{name} = internal global [{size} x i8] zeroinitializer, align 64"
        case ast.Name(ty), ast.List(items):
            llvm = STORED[ty][0]
            texts = [literal(ast.literal_eval(item), STORED[ty][1]) for item in items]
            values = ", ".join(f"{llvm} {text}" for text in texts)
            return "", f"@{name} = internal unnamed_addr constant [{len(items)} x {llvm}] [{values}], align 8"
        case ast.Name(ty), ast.Constant(initial):
            llvm, kind = STORED[ty][:2]
            return ty, f"@{name} = internal global {llvm} {literal(initial, kind)}"
        case _:
            raise Bug(f"runtime library: {name} is no global")


def literal(value: object, kind: str) -> str:
    """A literal in LLVM's notation, as an int or a float of this kind.  Floats are exact, in hexadecimal."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() if kind == "int":
            return str(value)
        case int() | float():
            return "0x" + struct.pack(">d", float(value)).hex()
        case _:
            raise Bug(f"runtime library: no literal {value!r}")


def attributes(fn: ast.FunctionDef) -> str:
    names = [d.id for d in fn.decorator_list if isinstance(d, ast.Name) and d.id in ATTRIBUTES]
    return " ".join(["nounwind", *(ATTRIBUTES[n] for n in names)])


def results(fn: ast.FunctionDef) -> tuple[str, ...]:
    """The names of the types of what a function gives back: none, one, or those of a tuple."""
    match fn.returns:
        case None:
            return ()
        case ast.Tuple(items):
            return tuple(ast.unparse(item) for item in items)
        case one:
            return (ast.unparse(one),)


def result_type(fn: ast.FunctionDef) -> str:
    """The LLVM type of a function's results, of which there may be several."""
    types = [STORED[name][0] for name in results(fn)]
    return types[0] if len(types) == 1 else f"{{ {', '.join(types)} }}" if types else "void"


def parameters(fn: ast.FunctionDef) -> list[tuple[str, str]]:
    """A function's parameters that have types: names and types."""
    return [(a.arg, ast.unparse(a.annotation)) for a in fn.args.args if a.annotation]


def declaration(fn: ast.FunctionDef) -> str:
    """A function as LLVM declares it."""
    types = [STORED[ty][0] for _, ty in parameters(fn)] + ["..."] * (fn.args.vararg is not None)
    return f"declare {result_type(fn)} @{called(fn)}({', '.join(types)}) {attributes(fn)}"
