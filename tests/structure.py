"""What is left of a program after a stage, in numbers.

    -- structure fuse { Map 1, For 0, acc_index 0 }
    -- structure reference_counts loss { loop.dup 0, loop.arrays 0 }

A program of the tests says so in comments.  Counted are right-hand sides by their class and operations by their name,
in the program's own functions, or in those whose name contains `loss`.  `loop.` counts inside of loops only; `arrays`
are the arrays made, by whatever operation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from dplc.flat import term as f
from dplc.flat.types import rank_of
from dplc.flat.walk import blocks

LINE = re.compile(r"^-- structure (\w+)((?: [\w.]+)?) \{ (.*?) \}$", re.M)
VIEWS = ("index", "slice", "reshape", "stop_grad")
LOOPS = (f.For, f.While, f.Build, f.Par)


def own(fn: f.Fn) -> bool:
    """Whether the program wrote a function: those of the library bear the names of their modules."""
    return not re.match(r"(reverse of )?[A-Z]\w*\.", fn.label)


def counts(program: f.Program, only: str = "", every: bool = False) -> Counter[str]:
    chosen = [fn for fn in program.fns.values() if every or (only in fn.name if only else own(fn))]
    return Counter(word for fn in chosen for word in words(fn.body, ""))


def words(block: f.Block, inside: str) -> Iterator[str]:
    """What is counted of each binding; `inside` is `loop.` in loops."""
    for bind in block.binds:
        rhs = bind.rhs
        found = [rhs.op if isinstance(rhs, f.Op) else type(rhs).__name__]
        found += ["arrays"] * sum(makes_array(rhs, var, k) for k, var in enumerate(bind.vars))
        for word in found:
            yield word
            if inside:
                yield inside + word
        deeper = "loop." if isinstance(rhs, LOOPS) else inside
        for inner in () if isinstance(rhs, f.Map) else blocks(rhs):
            yield from words(inner, deeper)


def makes_array(rhs: f.Rhs, var: f.Var, k: int) -> bool:
    """Whether a result is an array in memory of its own.  Views are not, nor what may be changed in place."""
    if not rank_of(var.ty):
        return False
    match rhs:
        case f.Op(op, args):
            in_place = any(isinstance(a, f.Var) and a.ty == var.ty for a in args) and op not in ("matmul", "transpose")
            return op not in VIEWS and not in_place
        case f.Map(_, inputs):
            return all(a.ty != var.ty for a in inputs)
        case f.Build():
            return True
        case f.Par(outs=outs):
            return outs[k].kind == "keep" and outs[k].target is None
        case f.For() | f.While():
            return bool(rhs.collect)  # the steps of a loop are kept in one array
        case _:
            return False
