"""Store-on-kill: arrays that loops update in place, and backward code gets back.  What an update overwrites is kept.

    x' = for i < n state (x = x0)             forward:   old = index x i;  y = update x v i;  keep old
      v = sum (build j < n { ... x[j] ... })
      y = update x v i                   =>   backward:  x0 = for j < n state (y = x')
      yield y                                              i = n - 1 - j;  x = update y old i
                                                           ... x[j] ...;  yield x

So a step keeps one number, where its inner loops read many (Tapenade: Hascoët and Pascual 2013).

The backward code has one array, which is at each place what the forward code has there: it goes from the end of a loop
to its beginning, through inner loops that update it too.  A name of the array in the forward code is its name in the
backward code.  So the forward code must have one array, too: each update or loop that takes it is the last one to use
it under this name.  The array must be made for its loop, as the first update of one that has other owners copies it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence

from dpl.node import field, record

from dplc.flat import term as f
from dplc.flat.ops.table import OPS
from dplc.flat.walk import atoms, blocks, every, mentions, names, rhs_mentions

Loop = f.For | f.While


@record
class Overwritten:
    """`names` of arrays that the backward code gets back; the variables for what updates overwrite, by the names of
    their results; the results of loops that it goes through backwards.  `arrays` has the names of each array on its
    way, by its name at the end of the outermost loop."""

    names: set[str] = field(default_factory=set)
    updates: dict[str, f.Var] = field(default_factory=dict)
    results: set[str] = field(default_factory=set)
    arrays: dict[str, set[str]] = field(default_factory=dict)

    def states(self, bind: f.Bind) -> list[int]:
        """The numbers of the states that a loop gives back."""
        return [k for k, var in enumerate(bind.vars) if var.name in self.results]

    def needed(self, body: f.Block) -> set[str]:
        """The arrays that backward code gets back, and reads."""
        read = {name for name, count in Counter(mentions(body)).items() if count > 1}
        return {array for array, own in self.arrays.items() if not read.isdisjoint(own)}


def store_on_kill(
    fn: f.Fn, supply: f.Supply, is_active: Callable[[f.Var], bool], root: bool, wanted: Collection[str] | None
) -> Overwritten:
    """Of a function that is called once if it is a `root`: all such arrays, or those that are `wanted`."""
    finder = Finder(supply, is_active, wanted)
    if any(isinstance(bind.rhs, f.Op) and bind.rhs.op == "update" for bind in every(fn.body)):
        finder.block(fn.body, root)
    return finder.found


class Finder:
    def __init__(self, supply: f.Supply, is_active: Callable[[f.Var], bool], wanted: Collection[str] | None) -> None:
        self.supply = supply
        self.is_active = is_active
        self.wanted = wanted
        self.found = Overwritten()

    def block(self, block: f.Block, once: bool) -> None:
        """Looks for loops whose states are arrays of their own.  A block that runs once may have others."""
        own = {bind.vars[0].name for bind in block.binds if makes(bind.rhs)}
        for bind in block.binds:
            if isinstance(bind.rhs, Loop):
                for k, init in enumerate(bind.rhs.inits):
                    if isinstance(init, f.Var) and (once or init.name in own):
                        self.loop(bind, k)
            for inner in blocks(bind.rhs):
                self.block(inner, once and isinstance(bind.rhs, f.If | f.Switch))

    def loop(self, bind: f.Bind, k: int) -> None:
        array = bind.vars[k].name
        if array not in self.found.results and (self.wanted is None or array in self.wanted):
            thread = Thread(self.is_active)
            if thread.loop(bind, k) and thread.read:
                self.found.results.update([array, *thread.results])
                self.found.names |= thread.names
                self.found.arrays[array] = thread.names
                for made, part in thread.updates.items():
                    self.found.updates[made] = f.Var(self.supply.fresh("old"), part)


@record
class Thread:
    """One array on its way through a loop."""

    is_active: Callable[[f.Var], bool]
    names: set[str] = field(default_factory=set)
    updates: dict[str, f.Type] = field(default_factory=dict)  # the types of what is overwritten
    results: list[str] = field(default_factory=list)
    read: bool = False  # by an inner loop, or as a whole

    def loop(self, bind: f.Bind, k: int) -> bool:
        """Follows state number `k`.  Returns False if it does not go one way, from update to update."""
        loop = bind.rhs
        assert isinstance(loop, Loop)
        now, end = loop.state[k], loop.body.results[k]
        if not is_floats(now.ty) or not self.is_active(now) or end == now or not isinstance(end, f.Var):
            return False
        if isinstance(loop, f.While) and not all(reads_only(b.rhs, now.name) for b in loop.cond.binds):
            return False
        self.names.update((now.name, end.name))
        binds, results = loop.body.binds, list(names(loop.body.results))
        while now != end:
            at = next((at for at, b in enumerate(binds) if takes(b.rhs, now) is not None), None)
            if at is None or now.name in results or any(now.name in rhs_mentions(b.rhs) for b in binds[at + 1 :]):
                return False
            after = self.after(binds[at], now) if self.only_read(binds[:at], now.name) else None
            if after is None:
                return False
            now, binds = after, binds[at + 1 :]
            self.names.add(now.name)
        return self.only_read(binds, end.name) and results.count(end.name) == 1

    def after(self, bind: f.Bind, array: f.Var) -> f.Var | None:
        """What an array is after a binding that takes it; None if that uses it in other ways, too."""
        k = takes(bind.rhs, array)
        if k is None or list(rhs_mentions(bind.rhs)).count(array.name) > 1:
            return None
        if isinstance(bind.rhs, f.Op):
            self.updates[bind.vars[0].name] = bind.rhs.args[1].ty
        elif self.loop(bind, k):
            self.results.append(bind.vars[k].name)
        else:
            return None
        return bind.vars[k]

    def only_read(self, binds: Sequence[f.Bind], name: str) -> bool:
        for bind in binds:
            if name in rhs_mentions(bind.rhs):
                if not reads_only(bind.rhs, name):
                    return False
                self.read = self.read or reads_much(bind.rhs)
        return True


def is_floats(ty: f.Type) -> bool:
    return isinstance(ty, f.Arr) and isinstance(ty.elem, f.Num) and f.is_float(ty.elem)


def takes(rhs: f.Rhs, array: f.Var) -> int | None:
    """The number of the result that an array becomes; None if the code only reads it."""
    match rhs:
        case f.Op("update", (first, *_)) if first == array:
            return 0
        case f.For(inits=inits) | f.While(inits=inits) if array in inits:
            return inits.index(array)
        case _:
            return None


def makes(rhs: f.Rhs) -> bool:
    """True for code whose result is an array that nothing else has."""
    if isinstance(rhs, f.Op):
        row = OPS[rhs.op]
        return row.elementwise or (row.fresh and 0 not in row.own)
    return isinstance(rhs, f.Build)


def reads_only(rhs: f.Rhs, name: str) -> bool:
    """True for code that reads elements of an array and its lengths, and does not give it to anything."""
    if isinstance(rhs, f.Op):
        row = OPS[rhs.op]
        return name not in names(rhs.args) or row.elementwise or row.reduces or row.reads or row.views
    return name not in names(atoms(rhs)) and all(
        name not in names(block.results) and all(reads_only(bind.rhs, name) for bind in block.binds)
        for block in blocks(rhs)
    )


def reads_much(rhs: f.Rhs) -> bool:
    """True for code that reads many elements, so that keeping them would take more than keeping one."""
    return any(isinstance(inner, f.For | f.While | f.Build) for inner in within(rhs)) or (
        isinstance(rhs, f.Op) and not (OPS[rhs.op].light or OPS[rhs.op].views)
    )


def within(rhs: f.Rhs) -> Iterator[f.Rhs]:
    yield rhs
    for block in blocks(rhs):
        for bind in every(block):
            yield bind.rhs
