"""An evaluator of flat that knows nothing but owners: it counts them, and asserts that nothing leaks, nothing is used
after it was freed or freed twice.  Conditions are thrown like dice; numbers are all alike; operations it does not know
give new values of the right types."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from dplc.flat import term as f
from dplc.flat.ops.table import OPS


class OutOfFuel(Exception):
    pass


@dataclass(eq=False, slots=True)
class Block:
    """An array, string, cell or reference; `count` 0: freed."""

    content: list
    tag: int = 0
    count: int = 1


@dataclass(slots=True)
class Heap:
    alive: int = 0
    copies: int = 0

    def new(self, content: list, tag: int = 0) -> Block:
        self.alive += 1
        return Block(content, tag)

    def dup(self, value) -> None:
        for block in blocks(value):
            assert block.count > 0, "dup of what was freed"
            block.count += 1

    def drop(self, value) -> None:
        todo = list(blocks(value))
        while todo:
            block = todo.pop()
            assert block.count > 0, "drop of what was freed"
            block.count -= 1
            if block.count == 0:
                self.alive -= 1
                todo += [inner for x in block.content for inner in blocks(x)]

    def take(self, cell: Block) -> None:
        assert cell.count > 0, "take of what was freed"
        if cell.count == 1:
            self.alive -= 1
        else:
            for x in cell.content:
                self.dup(x)
        cell.count -= 1

    def own(self, block: Block | None) -> Block:
        """Someone's own copy; of a constant always a new one."""
        if block is None:
            return self.new([])
        assert block.count > 0, "use of what was freed"
        if block.count == 1:
            return block
        self.copies += 1
        block.count -= 1
        for x in block.content:
            self.dup(x)
        return self.new(list(block.content))


def blocks_in(ty: f.Type) -> bool:
    return any(map(blocks_in, ty.items)) if isinstance(ty, f.Tup) else not isinstance(ty, f.Num)


def blocks(value):
    if isinstance(value, Block):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from blocks(item)


@dataclass(slots=True)
class Counting:
    program: f.Program
    dice: Random
    heap: Heap = field(default_factory=Heap)
    fuel: int = 3000

    def run(self) -> None:
        self.call(self.program.main, ())
        assert self.heap.alive == 0, f"{self.heap.alive} blocks leak"

    def call(self, name: str, args: tuple) -> tuple:
        fn = self.program.fns[name]
        return self.block(fn.body, {p.name: a for p, a in zip(fn.params, args, strict=True)})

    def block(self, block: f.Block, env: dict) -> tuple:
        env = dict(env)
        for bind in block.binds:
            self.fuel -= 1
            if self.fuel < 0:
                raise OutOfFuel
            results = self.rhs(bind, env)
            env.update(zip([v.name for v in bind.vars], results, strict=True))
        return tuple([self.value(a, env) for a in block.results])

    def value(self, atom: f.Atom, env: dict):
        value = env[atom.name] if isinstance(atom, f.Var) else None
        for block in blocks(value):
            assert block.count > 0, f"{atom} was freed"
        return value

    def rhs(self, bind: f.Bind, env: dict) -> tuple:
        match rhs := bind.rhs:
            case f.Op(op, args):
                return self.op(op, [self.value(a, env) for a in args], bind.vars)
            case f.Call(fn, args):
                return self.call(fn, tuple([self.value(a, env) for a in args]))
            case f.TupMake(items):
                return (tuple([env.get(getattr(a, "name", "")) for a in items]),)
            case f.TupGet(tup, index):
                return (env[tup.name][index],)
            case f.ConMake(_, tag, arg):
                return (self.heap.new([self.value(arg, env)] if arg else [], tag),)
            case f.If(_, then, else_):
                return self.block(self.dice.choice((then, else_)), env)
            case f.Switch():
                return self.switch(rhs, env)
            case f.For() | f.While():
                return self.loop(rhs, env)
            case f.Par():
                return self.par(rhs, bind.vars, env)
        raise AssertionError(rhs)

    def par(self, par: f.Par, vars_: tuple[f.Var, ...], env: dict) -> tuple:
        """The points may read the targets, which go afterwards."""
        env = env | {index.name: None for index, _ in par.space}
        env |= {out.acc.name: self.value(out.target, env) for out in par.outs if out.acc and out.target}
        points = []
        for _ in range(self.dice.randrange(4)):
            points.append(self.block(par.body, env))
            env |= {out.acc.name: x for out, x in zip(par.outs, points[-1], strict=True) if out.acc}
        for out in par.outs:
            if out.target is not None and not out.acc:
                self.heap.drop(self.value(out.target, env))
        made = []
        for k, (out, var) in enumerate(zip(par.outs, vars_, strict=True)):
            if out.acc:
                made.append(env[out.acc.name])
            else:
                rows = [point[k] for point in points] if out.kind == "keep" else []
                made.append(self.heap.new(rows) if isinstance(var.ty, f.Arr) else None)
        return tuple(made)

    def switch(self, switch: f.Switch, env: dict) -> tuple:
        cell = self.value(switch.scrutinee, env)
        if isinstance(switch.scrutinee.ty, f.Num):
            bodies = [case.body for case in switch.cases] + [switch.default] * (switch.default is not None)
            return self.block(self.dice.choice(bodies), env)
        if cell is None:
            raise OutOfFuel
        for case in switch.cases:
            if cell.tag == case.tag:
                payload = {case.payload.name: cell.content[0]} if case.payload else {}
                return self.block(case.body, env | payload)
        if switch.default is None:  # the value is not one the program can have
            raise OutOfFuel
        return self.block(switch.default, env)

    def loop(self, loop: f.For | f.While, env: dict) -> tuple:
        state = [self.value(a, env) for a in loop.inits]
        kept = []
        for _ in range(self.dice.randrange(4)):
            inner = env | {v.name: x for v, x in zip(loop.state, state, strict=True)}
            if isinstance(loop, f.For):
                inner[loop.index.name] = None
            else:
                self.block(loop.cond, inner)
            results = self.block(loop.body, inner)
            state = list(results[: len(state)])
            kept.append(results[len(state) :])
        return (*state, self.heap.new(kept)) if loop.collect else tuple(state)

    def make(self, ty: f.Type, depth: int = 3):
        """Some new value of a type."""
        match ty:
            case f.Num():
                return None
            case f.Tup(items):
                return tuple([self.make(item, depth) for item in items])
            case f.Data(name):
                if depth <= 0:
                    return None  # null
                payloads = self.program.datas[name].payloads
                tag = self.dice.randrange(len(payloads))
                payload = payloads[tag]
                return self.heap.new([] if payload is None else [self.make(payload, depth - 1)], tag)
            case f.Arr(elem) if depth > 0 and blocks_in(elem):
                return self.heap.new([self.make(elem, depth - 1) for _ in range(self.dice.randrange(3))])
            case f.Ref(elem):
                return self.heap.new([self.make(elem, depth - 1)])
        return self.heap.new([])

    def op(self, op: str, args: list, variables: tuple[f.Var, ...]) -> tuple:  # noqa: C901 -- one case per operation
        heap = self.heap
        match op, args:
            case "buf_take", []:
                return (heap.new([]),)
            case "number", _:
                return (None,)
            case "dup", [x]:
                heap.dup(x)
            case "drop", [x]:
                heap.drop(x)
            case "take", [cell]:
                heap.take(cell)
            case "update", [a, v, *_]:
                mine = heap.own(a)
                if blocks_in(variables[0].ty.elem):
                    mine.content.append(v)
                else:
                    heap.drop(v)  # a row of numbers
                return (mine,)
            case "index", [a, *_]:
                if not a or not a.content or isinstance(variables[0].ty, f.Arr | f.Num):
                    return (self.make(variables[0].ty),)
                element = self.dice.choice(a.content)
                heap.dup(element)
                return (element,)
            case "concat", [a, b]:
                both = [*(a.content if a else ()), *(b.content if b else ())]
                for x in both:
                    heap.dup(x)
                return (heap.new(both),)
            case "array", elements:
                for x in elements:
                    heap.dup(x)
                return (heap.new(elements),)
            case "str_append", [a, _]:
                return (heap.own(a),)
            case "ref_new", [x]:
                return (heap.new([x]),)
            case "ref_get", [r]:
                heap.dup(r.content[0])
                return (r.content[0],)
            case "ref_set", [r, x]:
                heap.drop(r.content[0])
                r.content[0] = x
            case "fail" | "exit", _:
                raise OutOfFuel
            case _:
                for i in OPS[op].own:
                    heap.drop(args[i])
                return tuple([self.make(var.ty) for var in variables])
        return ()
