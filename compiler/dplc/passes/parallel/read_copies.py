"""Reads of copies are reads of what was copied (array fusion: an element of a pull array is its expression).

    k = build i < n {                                        for i < n {
      r = build j < m {                                        for j < m {
        x = index unchecked=true a j i; yield x }       =>       y = index unchecked=true a j i
      yield r }                                                  ... } }
    for i < n {
      s = index unchecked=true k i
      for j < m {
        y = index unchecked=true s j
        ... } }

Reverse mode makes such arrays where a loop keeps what its steps have read, and a loop around it computes that again.
Each element is read once, by loops of the same lengths, so no read is further away than those of the copy were.  What
was copied is only read, and so is what it is a part of: else an update would have to copy all of that.
"""

from __future__ import annotations

from collections import Counter

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.ops.table import OPS
from dplc.flat.types import rank_of
from dplc.flat.walk import blocks, bound_inside, every, mentions, names, with_binds, with_inner
from dplc.passes.simplify.dead_code import drop_unused

Loops = tuple[tuple[str, f.Atom], ...]  # indices and counts, from the outermost one on


@node
class Copied:
    """Elements of another array: its read at the indices of a nest of comprehensions."""

    nest: Loops
    read: f.Op


@node
class Use:
    """A binding that reads an array, and the loops around it."""

    bind: f.Bind
    loops: Loops


def without_copies(fn: f.Fn) -> f.Fn:
    """The function; the same one if it reads no copies."""
    copies = [(var, copy) for bind in every(fn.body) if isinstance(bind.rhs, f.Build)
              for k, var in enumerate(bind.vars) if (copy := copied(bind.rhs, k))]  # fmt: skip
    if not copies:
        return fn
    reads = _Reads(fn)
    found = {name: op for var, copy in copies for name, op in reads.of_copy(var, copy)}
    return replace(fn, body=drop_unused(_with_reads(fn.body, found))) if found else fn


def copied(build: f.Build, k: int) -> Copied | None:
    """What result number `k` of a comprehension copies; None if it computes something."""
    nest: Loops = ()
    first = build
    while True:
        nest, x = (*nest, (build.index.name, build.count)), build.body.results[k]
        made = next((bind for bind in build.body.binds if x in bind.vars), None)
        if made is None or not isinstance(made.rhs, f.Build):
            break
        build, k = made.rhs, made.vars.index(x)
    match made.rhs if made else None:
        case f.Op("index", (f.Var(name), *at)) as op if op.attr("unchecked") is True:
            inside, known = {var.name for var in bound_inside(first)}, {index for index, _ in nest}
            if name in inside:
                return None
            plain = all(isinstance(i, f.Const) or i.name in known or i.name not in inside for i in at)
            number = isinstance(x.ty, f.Num) and len(at) == rank_of(op.args[0].ty)
            return Copied(nest, op) if plain and number else None
        case _:
            return None


class _Reads:
    """One function: how often each variable is mentioned, and which bindings read which array."""

    def __init__(self, fn: f.Fn) -> None:
        self.times = Counter(mentions(fn.body))
        self.uses: dict[str, list[Use]] = {}
        self.whole: dict[str, f.Rhs] = {}  # what makes a variable
        self.around: dict[str, Loops] = {}  # the loops around the binding of a variable
        self.block(fn.body, ())

    def block(self, block: f.Block, loops: Loops) -> None:
        for bind in block.binds:
            self.around.update((var.name, loops) for var in bind.vars)
            self.whole.update((var.name, bind.rhs) for var in bind.vars)
            match bind.rhs:
                case f.Op("index" | "dim", (f.Var(name), *_)) | f.TupGet(f.Var(name)):
                    self.uses.setdefault(name, []).append(Use(bind, loops))
                case f.For(index, count) | f.Build(index, count):
                    self.block(bind.rhs.body, (*loops, (index.name, count)))
                case rhs:
                    for inner in blocks(rhs):
                        inside = loops if isinstance(rhs, f.If | f.Switch) else (*loops, ("", f.Const(0, f.I64)))
                        self.block(inner, inside)

    def only_read(self, name: str) -> bool:
        return len(self.uses.get(name, ())) == self.times[name]

    def stays(self, name: str) -> bool:
        """True if an array, and all that it is a part of, is only read."""
        if not self.only_read(name):
            return False
        match self.whole.get(name):
            case f.Op("index", (f.Var(whole), *_)) | f.TupGet(f.Var(whole)):
                return self.stays(whole)
            case f.Op(op):
                return not OPS[op].own and not OPS[op].views
            case _:
                return True

    def of_copy(self, var: f.Var, copy: Copied) -> list[tuple[str, f.Op]]:
        """For each element that is read of a copy, the read of what is copied; nothing if the array is needed, or if
        elements are read several times."""
        if not self.only_read(var.name) or not all(map(self.stays, names(copy.read.args[:1]))):
            return []
        return self.elements(var.name, copy, self.around[var.name], ()) or []

    def elements(
        self, name: str, copy: Copied, around: Loops, at: tuple[f.Atom, ...]
    ) -> list[tuple[str, f.Op]] | None:  # fmt: skip
        """The reads of elements, by the names of their variables; None if rows are used otherwise."""
        found: list[tuple[str, f.Op]] = []
        for use in self.uses.get(name, ()):
            op = use.bind.rhs
            if not isinstance(op, f.Op) or op.op == "dim" or not op.attr("unchecked"):
                return None
            places = (*at, *op.args[1:])
            if len(places) == len(copy.nest):
                read = self.once(places, use.loops[len(around) :], copy)
                more = None if read is None else [(use.bind.vars[0].name, read)]
            else:
                row = use.bind.vars[0].name
                more = self.elements(row, copy, around, places) if self.only_read(row) else None
            if more is None:
                return None
            found += more
        return found

    def once(self, places: tuple[f.Atom, ...], loops: Loops, copy: Copied) -> f.Op | None:
        """The read of what is copied, by loops that read each element once."""
        counts = dict(loops)
        for place, (_, count) in zip(places, copy.nest, strict=True):
            if not isinstance(place, f.Var) or counts.pop(place.name, None) != count:
                return None
        if counts:
            return None
        given = {index: place for (index, _), place in zip(copy.nest, places, strict=True)}
        args = tuple([given.get(x.name, x) if isinstance(x, f.Var) else x for x in copy.read.args])
        return replace(copy.read, args=args)


def _with_reads(block: f.Block, found: dict[str, f.Op]) -> f.Block:
    def changed(bind: f.Bind) -> f.Bind:
        read = found.get(bind.vars[0].name) if bind.vars else None
        return f.Bind(bind.vars, read) if read else with_inner(bind, lambda inner: _with_reads(inner, found))

    return with_binds(block, [changed(bind) for bind in block.binds])
