"""Silent forms of functions: they print nothing.  Code that runs a second time uses them.

    fn f(x)  write "f"; y = g x         =>      fn f.silent(x)  y = g.silent x

A function that prints nothing has a silent form too, which calls it: whether it prints is known only when all
derivatives are written.
"""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.ops.row import Effect
from dplc.flat.ops.table import OPS
from dplc.flat.walk import every, with_blocks


class Silent:
    """`wanted` maps the names of silent functions to the original functions."""

    def __init__(self, program: f.Program, supply: f.Supply) -> None:
        self.program = program
        self.supply = supply
        self.wanted: dict[str, str] = {}

    def name(self, name: str) -> str:
        """The name of a function's silent form, which `write` makes when it is needed."""
        silent = f"{name}.silent"
        self.wanted.setdefault(silent, name)
        return silent

    def missing(self) -> list[str]:
        """The silent functions that are still to be written."""
        return [name for name in self.wanted if self.is_missing(name)]

    def is_missing(self, name: str) -> bool:
        return name in self.wanted and name not in self.program.fns

    def write(self, silent: str) -> None:
        name = self.wanted[silent]
        old = self.program.fns[name]
        if self.prints(name):
            body = self.block(old.body)
        else:
            vars_ = tuple(f.Var(self.supply.fresh("v"), ty) for ty in old.results)
            body = f.Block((f.Bind(vars_, f.Call(name, old.params)),), vars_)
        self.program.fns[silent] = f.Fn(silent, old.params, old.results, body, old.label, old.span)

    def prints(self, name: str) -> bool:
        reached = {name}
        todo = [name]
        while todo:
            for bind in every(self.program.fns[todo.pop()].body):
                match bind.rhs:
                    case f.Op(op) if Effect.OUTPUT in OPS[op].effects:
                        return True
                    case f.Call(fn) if fn not in reached and fn in self.program.fns:
                        reached.add(fn)
                        todo.append(fn)
                    case _:
                        pass
        return False

    def block(self, block: f.Block) -> f.Block:
        binds = []
        for bind in block.binds:
            match bind.rhs:
                case f.Op(op) if Effect.OUTPUT in OPS[op].effects:
                    pass
                case f.Call(fn, args, span):
                    binds.append(f.Bind(bind.vars, f.Call(self.name(fn), args, span)))
                case rhs:
                    binds.append(f.Bind(bind.vars, with_blocks(rhs, self.block)))
        return f.Block(tuple(binds), block.results)
