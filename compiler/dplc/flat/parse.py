"""text -> flat: reads what `flat/show.py` writes.  `parse(show(p))` is `p`, with all spans NOWHERE.

A function is read line by line: lines with deeper indentation belong to the inner blocks of a line.  Types of variables
are written where they are bound; `flat/verify.py` checks the rest.  Text that is not flat raises a DplError with its
position.  Lines that begin with a semicolon are comments.
"""

from __future__ import annotations

from typing import Any, cast

from dpl.source import Source

from dplc.flat import term as f
from dplc.flat.show import CONSTANT
from dplc.flat.tokens import Line

MODES = ("jvp", "jet", "vjp", "pullback")


def parse(source: Source) -> f.Program:
    lines, start = [], 0
    for text in source.text.split("\n"):
        if text.strip() and not text.lstrip().startswith(";"):
            lines.append(Line(source, start, text))
        start += len(text) + 1
    program = f.Program()
    at = 0
    while at < len(lines):
        end = at + 1
        while end < len(lines) and lines[end].indent:
            end += 1
        definition(program, lines[at:end])
        at = end
    return program


def definition(program: f.Program, lines: list[Line]) -> None:
    head = lines[0]
    if head.indent:
        head.wrong("expected a definition: fn, data, residual, checkpoint, rule, export or main")
    match head.name():
        case "fn":
            fn = _Fn(lines).function()
            program.fns[fn.name] = fn
            return
        case "data":
            decl = data(head)
            program.datas[decl.name] = decl
        case "residual":
            site = head.name()
            head.expect("=")
            program.residuals[site] = head.type()
        case "checkpoint":
            program.checkpoints.add(head.name())
        case "rule":
            name = head.name()
            head.expect("=")
            program.rules[name] = rule(head)
        case "export":
            name = head.name()
            head.expect("=")
            program.exports[name] = head.name()
        case "main":
            head.expect("=")
            program.main = head.name()
        case _:
            head.at = 0
            head.wrong("expected a definition: fn, data, residual, checkpoint, rule, export or main")
    head.finish()
    for line in lines[1:]:
        line.wrong("only functions have several lines")


def data(line: Line) -> f.DataDecl:
    """`data list.0 = [] | :: (f64, list.0)`, where constructors may have any names without blanks."""
    name, names, payloads = line.name(), [], []
    line.expect("=")
    while not line.done():
        names.append(constructor(line))
        payloads.append(None if line.done() or line.peek() == "|" else line.type())
        if not line.done():
            line.expect("|")
    numbered = names == [str(i) for i in range(len(names))]
    return f.DataDecl(name, tuple(payloads), () if numbered else tuple(names))


def constructor(line: Line) -> str:
    first = last = line.next()
    while not line.done() and line.tokens[line.at].start == last.end:
        last = line.next()
    return line.source.text[first.start : last.end]


def rule(line: Line) -> f.Rule:
    kind = line.name()
    if kind not in ("vjp", "jvp"):
        line.wrong("expected vjp or jvp")
    fn = line.name()
    return f.Rule(cast(Any, kind), fn, line.name() if line.accept(",") else "")


class _Fn:
    """Reads one function.  `vars` are the variables bound so far."""

    def __init__(self, lines: list[Line]) -> None:
        self.lines = lines
        self.at = 0
        self.vars: dict[str, f.Var] = {}

    @property
    def line(self) -> Line:
        return self.lines[self.at]

    def function(self) -> f.Fn:
        head = self.line
        name, params, borrowed = head.name(), [], []
        head.expect("(")
        while not head.accept(")"):
            param, is_borrowed = self.param(head)
            borrowed += [len(params)] if is_borrowed else []
            params.append(param)
            if head.peek() != ")":
                head.expect(",")
        head.expect("->")
        results = head.types()
        label = head.name() if head.accept("as") else ""
        head.finish()
        self.at += 1
        body = self.block(2, "return")
        if self.at < len(self.lines):
            self.line.wrong("this follows the end of the function")
        return f.Fn(name, tuple(params), results, body, label, borrowed=tuple(borrowed))

    def param(self, line: Line) -> tuple[f.Var, bool]:
        name = line.name()
        line.expect(":")
        borrowed = line.accept("&")
        self.vars[name] = var = f.Var(name, line.type())
        return var, borrowed

    # ---- blocks

    def block(self, indent: int, verb: str) -> f.Block:
        """The lines from here on with this indentation, up to the line `verb` that gives the results."""
        binds = []
        while self.at < len(self.lines) and self.line.indent >= indent:
            line = self.line
            if line.indent > indent:
                line.wrong("this stands too deep")
            if line.accept(verb):
                results = self.listed(line)
                self.at += 1
                return f.Block(tuple(binds), results)
            binds.append(self.bind(line))
        if verb != "yield":
            self.before().wrong(f"the block ends without `{verb}`")
        return f.Block(tuple(binds), ())

    def keyword(self, word: str, indent: int) -> bool:
        """If the next line continues the same right-hand side with this word, accepts the word and returns True."""
        if self.at == len(self.lines) or self.line.indent != indent or not self.line.accept(word):
            return False
        self.at += 1
        return True

    def required(self, word: str, indent: int) -> None:
        if not self.keyword(word, indent):
            self.before().wrong(f"expected `{word}` after this block")

    def before(self) -> Line:
        """The previous line, from its beginning, for a message about it."""
        line = self.lines[self.at - 1]
        line.at = 0
        return line

    def bind(self, line: Line) -> f.Bind:
        vars_: list[tuple[str, f.Type]] = []
        if line.peek() == "(" or line.peek(1) == ":":
            several = line.accept("(")
            while not vars_ or (several and line.accept(",")):
                name = line.name()
                line.expect(":")
                vars_.append((name, line.type()))
            if several:
                line.expect(")")
            line.expect("=")
        rhs = self.rhs(line)
        return f.Bind(tuple([self.declare(name, ty) for name, ty in vars_]), rhs)

    def declare(self, name: str, ty: f.Type) -> f.Var:
        self.vars[name] = var = f.Var(name, ty)
        return var

    # ---- atoms

    def atom(self, line: Line) -> f.Atom:
        token = line.tokens[line.at]
        if token.kind in ("string", "sign") or (token.kind == "word" and CONSTANT.fullmatch(token.text)):
            value, ty = line.literal()
            return f.Const(cast(Any, value), ty)
        name = line.name()
        if name not in self.vars:
            line.wrong(f"{name} is not bound", token)
        return self.vars[name]

    def listed(self, line: Line) -> tuple[f.Atom, ...]:
        """`a, b`, to the end of the line."""
        atoms = [] if line.done() else [self.atom(line)]
        while line.accept(","):
            atoms.append(self.atom(line))
        line.finish()
        return tuple(atoms)

    def parenthesised(self, line: Line, separator: str = ",") -> tuple[f.Atom, ...]:
        atoms = []
        line.expect("(")
        while not line.accept(")"):
            atoms.append(self.atom(line))
            if separator and line.peek() != ")":
                line.expect(separator)
        return tuple(atoms)

    # ---- right-hand sides

    def rhs(self, line: Line) -> f.Rhs:
        """The rest of a line, and the blocks below it."""
        made = self.simple(line)
        if made is not None:
            line.finish()
            self.at += 1
            return made
        word = line.name()
        match word:
            case "if":
                return self.choice(line)
            case "switch":
                return self.switch(line)
            case "for":
                return self.for_(line)
            case "while":
                return self.while_(line)
            case "build":
                return self.build(line)
            case "par":
                return self.par(line)
            case _:
                return self.map(line)

    def simple(self, line: Line) -> f.Rhs | None:
        """A right-hand side without blocks; None if it has blocks."""
        if line.peek() == "(":
            return f.TupMake(self.parenthesised(line))
        first = line.tokens[line.at]
        if line.peek(1) == "(" and line.peek() not in ("while",):
            return f.Call(line.name(), self.parenthesised(line))
        if line.peek(1) == "#":
            name = line.name()
            line.expect("#")
            return f.ConMake(name, line.number(), None if line.done() else self.atom(line))
        if first.kind == "quoted":
            return self.component(line, line.name(), line.next().text)
        if first.text in ("if", "switch", "for", "while", "build", "map", "par"):
            return None
        if first.text in MODES:
            return self.ad(line)
        if "." in first.text and line.tokens[line.at + 1].kind == "end":
            name, dot, index = line.name().rpartition(".")
            return self.component(line, name, dot + index)
        return self.op(line)

    def component(self, line: Line, name: str, index: str) -> f.TupGet:
        if name not in self.vars or not index[1:].isdecimal():
            line.wrong("this is no component of a tuple", line.tokens[line.at - 1])
        return f.TupGet(self.vars[name], int(index[1:]))

    def op(self, line: Line) -> f.Op:
        op, attrs, args = line.name(), [], []
        while not line.done():
            if line.peek(1) == "=":
                key = line.name()
                line.expect("=")
                attrs.append((key, self.attribute(line)))
            else:
                args.append(self.atom(line))
        return f.Op(op, tuple(args), tuple(attrs))

    def attribute(self, line: Line) -> object:
        token = line.tokens[line.at]
        is_name = token.kind == "quoted" or (token.kind == "word" and not CONSTANT.fullmatch(token.text))
        return line.name() if is_name else line.literal()[0]

    def ad(self, line: Line) -> f.Ad:
        mode, fn = line.name(), line.name()
        line.expect("site")
        line.expect("=")
        site = line.name()
        return f.Ad(cast(Any, mode), fn, self.parenthesised(line), site)

    def choice(self, line: Line) -> f.If:
        cond = self.header(line, self.atom(line))
        then = self.block(line.indent + 2, "yield")
        self.required("else", line.indent)
        return f.If(cond, then, self.block(line.indent + 2, "yield"))

    def header(self, line: Line, atom: f.Atom) -> f.Atom:
        """Ends the header line; the blocks of the right-hand side follow.  Returns `atom`."""
        line.finish()
        self.at += 1
        return atom

    def switch(self, line: Line) -> f.Switch:
        scrutinee, indent, cases = self.header(line, self.atom(line)), line.indent, []
        while self.at < len(self.lines) and self.line.indent == indent and self.line.accept("case"):
            head, payload = self.line, None
            tag, _ = head.literal()
            if head.accept("("):
                payload, _ = self.param(head)
                head.expect(")")
            head.finish()
            self.at += 1
            cases.append(f.Case(cast(int, tag), payload, self.block(indent + 2, "yield")))
        default = self.block(indent + 2, "yield") if self.keyword("default", indent) else None
        return f.Switch(scrutinee, tuple(cases), default)

    def counted(self, line: Line) -> tuple[f.Var, f.Atom]:
        """`i < n`"""
        index = self.declare(line.name(), f.I64)
        line.expect("<")
        return index, self.atom(line)

    def state(self, line: Line) -> tuple[tuple[f.Var, ...], tuple[f.Atom, ...], int]:
        """`state (s: f64 = x) collect 1`"""
        vars_, inits = [], []
        line.expect("state")
        line.expect("(")
        while not line.accept(")"):
            name = line.name()
            line.expect(":")
            vars_.append((name, line.type()))
            line.expect("=")
            inits.append(self.atom(line))
            if line.peek() != ")":
                line.expect(",")
        collect = line.number() if line.accept("collect") else 0
        line.finish()
        self.at += 1
        return tuple([self.declare(name, ty) for name, ty in vars_]), tuple(inits), collect

    def for_(self, line: Line) -> f.For:
        index, count = self.counted(line)
        state, inits, collect = self.state(line)
        return f.For(index, count, state, inits, self.block(line.indent + 2, "yield"), collect)

    def while_(self, line: Line) -> f.While:
        state, inits, collect = self.state(line)
        cond = self.block(line.indent + 2, "test")
        self.required("do", line.indent)
        return f.While(state, inits, cond, self.block(line.indent + 2, "yield"), collect)

    def build(self, line: Line) -> f.Build:
        index, count = self.counted(line)
        inner = []
        if line.accept("of"):
            inner.append(self.parenthesised(line, separator=""))
            while line.accept(","):
                inner.append(self.parenthesised(line, separator=""))
        line.finish()
        self.at += 1
        return f.Build(index, count, self.block(line.indent + 2, "yield"), inner=tuple(inner))

    def par(self, line: Line) -> f.Par:
        if ordered := line.accept("in"):
            line.expect("order")
        space, outs = [self.counted(line)], []
        while line.accept(","):
            space.append(self.counted(line))
        line.expect("to")
        if not line.accept("nothing"):
            outs.append(self.out(line))
        while line.accept(","):
            outs.append(self.out(line))
        line.finish()
        self.at += 1
        return f.Par(tuple(space), self.block(line.indent + 2, "yield"), tuple(outs), ordered=bool(ordered))

    def out(self, line: Line) -> f.Out:
        if line.accept("fold"):
            return f.Out("fold", line.number(), kept=line.accept("kept"))
        if line.accept("last"):
            return f.Out("last", inner=(self.atom(line),))
        if line.accept("done"):
            return f.Out("done", kept=line.accept("kept"), team=line.accept("team"))
        if line.accept("add"):
            sizes = self.sizes(line)
            line.expect("(")
            name = line.name()
            line.expect(":")
            ty = line.type()
            line.expect("=")
            target = self.atom(line)
            line.expect(")")
            return f.Out("add", target=target, acc=self.declare(name, ty), inner=sizes)
        line.expect("keep")
        sizes, order = self.sizes(line), list[int]()
        if line.accept("order"):
            line.expect("(")
            while not line.accept(")"):
                order.append(line.number())
        return f.Out("keep", target=self.atom(line) if line.accept("in") else None, inner=sizes, order=tuple(order))

    def sizes(self, line: Line) -> tuple[f.Atom, ...]:
        return tuple(self.parenthesised(line, separator="")) if line.accept("of") else ()

    def map(self, line: Line) -> f.Map:
        params, inputs, ranks = [], [], []
        while not line.accept("to"):
            name = line.name()
            line.expect(":")
            params.append((name, line.type()))
            line.expect("in")
            inputs.append(self.atom(line))
            line.accept(",")
        line.expect("ranks")
        while not line.done():
            ranks.append(line.number())
        self.at += 1
        vars_ = tuple([self.declare(name, ty) for name, ty in params])
        return f.Map(vars_, tuple(inputs), self.block(line.indent + 2, "yield"), tuple(ranks))
