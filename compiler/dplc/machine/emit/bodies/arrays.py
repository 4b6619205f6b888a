"""Arrays in registers: owner, data and lengths, and what all operations on arrays share."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from dpl.node import node
from dpl.source import NOWHERE

from dplc.flat import term as f
from dplc.flat.show import show_type
from dplc.machine.emit.module.emitter import ACCESS, Emitter
from dplc.machine.emit.module.layout import counted, leaves, struct
from dplc.machine.emit.module.memory import parts
from dplc.machine.llvm.types import SCALARS
from dplc.machine.llvm.writer import Values
from dplc.machine.runtime.failure_codes import Failure
from dplc.narrow import expect_type

HUGE = 1 << 44  # elements, more than any array has
TOO_MUCH = 1 << 62  # bytes, more than any machine has


@node
class Array:
    elem: f.Type
    owner: str
    data: str
    dims: tuple[str, ...]

    @property
    def values(self) -> Values:
        """The registers of the array, as a value of flat has them."""
        return [self.owner, self.data, *self.dims]

    @property
    def number(self) -> f.Num:
        """The type of the elements, which must be numbers."""
        return expect_type(f.Num, self.elem)

    @property
    def type(self) -> f.Arr:
        """The type of the array in flat."""
        return f.Arr(self.elem, len(self.dims))

    @property
    def size(self) -> int:
        """The size of an element in bytes."""
        return struct(self.elem).size


def array_of(ty: f.Type, values: Values) -> Array:
    """An array of this type from its registers: owner, data, lengths."""
    return Array(expect_type(f.Arr, ty).elem, values[0], values[1], tuple(values[2:]))


def new_array(e: Emitter, elem: f.Type, dims: Sequence[str]) -> Array:
    """A fresh array, no larger than arrays that exist.  All of its elements must be written."""
    return new_block(e, elem, e.w.mul(e.w.product(dims), str(struct(elem).size)), dims)


def array_of_one(e: Emitter, number: f.Num, value: Values) -> Values:
    """A number as an array of one element."""
    made = new_array(e, number, ["1"])
    e.put(number, value, made.data)
    return made.values


def new_outer(e: Emitter, elem: f.Type, count: str, inner: Sequence[str], site: int | str) -> Array:
    """A fresh array whose outermost length comes from the program: it may be negative or too large."""
    check_count(e, count, site)
    return new_checked(e, elem, [count, *inner])


def new_checked(e: Emitter, elem: f.Type, dims: Sequence[str]) -> Array:
    """A fresh array that may be larger than memory."""
    return new_block(e, elem, checked_size(e, [*dims, str(struct(elem).size)]), dims)


def checked_size(e: Emitter, factors: Sequence[str]) -> str:
    """The product of lengths; TOO_MUCH if it overflows."""
    fixed = prod([int(n) for n in factors if n.isdigit()])
    if fixed > TOO_MUCH:
        return str(TOO_MUCH)
    given = [*[n for n in factors if not n.isdigit()], *([str(fixed)] if fixed != 1 else [])]
    if len(given) < 2:
        return given[0] if given else "1"
    types = ["i64"] * len(given)
    return e.outlined(f"size {len(given)}", types, given, ("i64",), _checked_product, inline=True)[0]


def _checked_product(e: Emitter, factors: Values) -> Values:
    total, *rest = factors
    over: list[str] = []
    for n in rest:
        both = e.w.let(f"call {{ i64, i1 }} @llvm.umul.with.overflow.i64(i64 {total}, i64 {n})")
        total = e.w.let(f"extractvalue {{ i64, i1 }} {both}, 0")
        over.append(e.w.let(f"extractvalue {{ i64, i1 }} {both}, 1"))
    for flag in over:
        total = e.w.let(f"select i1 {flag}, i64 {TOO_MUCH}, i64 {total}")
    return [e.w.let(f"call i64 @llvm.umin.i64(i64 {total}, i64 {TOO_MUCH})")]


def check_count(e: Emitter, count: str, site: int | str) -> None:
    """Fails, at the site, if a number of elements is negative or too large for any memory.  Literals are not tested."""

    def reason() -> None:
        negative = e.w.let(f"icmp slt i64 {count}, 0")
        code = e.w.let(f"select i1 {negative}, i64 {int(Failure.NEGATIVE)}, i64 {int(Failure.MEMORY)}")
        e.w.do(f"call void @rt.fail(i64 {code}, i64 {site}, i64 {count}, i64 0, ptr null, i64 0) nomerge")

    if not count.isdigit() or int(count) >= HUGE:
        e.w.unless_cold(e.w.let(f"icmp ult i64 {count}, {HUGE}"), reason)


def site_of(e: Emitter, par: f.Par) -> int | None:
    """The site of a comprehension; None for what was a loop, which has no place in the text."""
    return None if par.span == NOWHERE else e.site(par.span)


def checked_counts(e: Emitter, given: Sequence[tuple[str, int | None]]) -> list[str]:
    """The lengths of nested loops, given with their sites.  That of an inner loop is checked only if the outer loop has
    steps.  One without a site was a loop: it may have fewer than no steps."""
    w, counts = e.w, list[str]()
    for count, site in given:
        if site is None and not count.isdigit():
            count = w.let(f"call i64 @llvm.smax.i64(i64 {count}, i64 0)")
        if not counts:
            check_count(e, count, site or 0)
        elif site is not None and not count.isdigit():
            unseen = w.let(f"icmp eq i64 {counts[-1]}, 0")
            fine = w.let(f"or i1 {unseen}, {w.let(f'icmp sge i64 {count}, 0')}")
            e.require(fine, Failure.NEGATIVE, site, count)
            count = w.let(f"call i64 @llvm.smax.i64(i64 {count}, i64 0)")
        counts.append(count)
    return counts


def new_block(e: Emitter, elem: f.Type, size: str, dims: Sequence[str]) -> Array:
    """A new array of `size` elements, not written yet, with these lengths."""
    e.allocated(size)
    owner, data = e.memory(size, elem)
    return Array(elem, owner, data, tuple(dims))


def zero_array(e: Emitter, elem: f.Type, dims: Sequence[str]) -> Array:
    """A fresh array of zeros, nulls, or tuples of them."""
    fresh = new_checked(e, elem, dims)
    e.clear(elem, fresh.data, e.w.product(dims))
    return fresh


# ---- elements


def each(e: Emitter, data: str, size: int, count: str, visit) -> None:
    """Runs `visit` on the addresses of `count` elements of `size` bytes."""
    e.w.repeat(count, lambda i: visit(e.w.element(data, i, size)))


def dup_elements(e: Emitter, elem: f.Type, data: str, count: str) -> None:
    """Counts one more owner for each of `count` elements, if they have owners."""
    if counted(elem):
        each(e, data, struct(elem).size, count, lambda at: e.dup(elem, e.get(elem, at)))


def drop_elements(e: Emitter, elem: f.Type, data: str, count: str) -> None:
    """Counts one owner less for each of `count` elements, if they have owners."""
    if counted(elem):
        shape = struct(elem)

        def visit(address: str) -> None:
            for k, part in parts(elem):
                owner = e.w.load("ptr", e.w.at(address, shape.offsets[k]))
                e.w.do(f"call fastcc void {e.unit.droppers.name('drop', part)}(ptr {owner})")

        each(e, data, shape.size, count, visit)


def copy_elements(e: Emitter, elem: f.Type, to: str, source: str, count: str) -> None:
    """Copies elements; the copies own what they hold."""
    e.copy(elem, to, source, count)
    dup_elements(e, elem, to, count)


def writable(e: Emitter, a: Array) -> Array:
    """The array itself if it is unique, else a copy.  Consumes `a`."""
    if e.unit.device is not None:
        e.w.do(f"call void @rt.device_home(ptr {a.owner})")

    def copy() -> Values:
        return e.outlined(f"copy {show_type(a.type)}", leaves(a.type), a.values, ("ptr", "ptr"), body)

    def body(inner: Emitter, values: Values) -> Values:
        old = array_of(a.type, values)
        fresh = new_array(inner, a.elem, old.dims)
        copy_elements(inner, a.elem, fresh.data, old.data, inner.w.product(old.dims))
        inner.drop(a.type, values)
        return [fresh.owner, fresh.data]

    owner, data = e.w.choose(e.unique(a.owner), ("ptr", "ptr"), lambda: [a.owner, a.data], copy)
    return Array(a.elem, owner, data, a.dims)


def add_into(e: Emitter, elem: f.Num, to: str, source: str, count: str) -> None:
    """to[i] += source[i], elementwise.  The two are the same or do not overlap."""
    w, leaf, plus = e.w, SCALARS[elem.name], "fadd" if f.is_float(elem) else "add"

    def step(i: str) -> None:
        place = w.let(f"getelementptr inbounds {leaf}, ptr {to}, i64 {i}")
        addend = w.load(leaf, w.let(f"getelementptr inbounds {leaf}, ptr {source}, i64 {i}"), ACCESS)
        w.store(leaf, w.let(f"{plus} {leaf} {w.load(leaf, place, ACCESS)}, {addend}"), place, ACCESS)

    e.each(elem, count, step, e.unit.parallel())


def present(e: Emitter, a: Array, dims: Sequence[str]) -> Array:
    """`a`, or fresh zeros if it is null."""

    def zeros() -> Values:
        types, results = ["i64"] * len(dims), ("ptr", "ptr")
        return [*e.outlined(f"zeros {show_type(a.type)}", types, list(dims), results, body), *dims]

    def body(inner: Emitter, values: Values) -> Values:
        return zero_array(inner, a.elem, values).values[:2]

    none = e.w.let(f"icmp eq ptr {a.data}, null")
    return array_of(a.type, e.w.choose(none, leaves(a.type), zeros, lambda: a.values))


# ---- places


def check_index(e: Emitter, i: str, length: str, site: int | str) -> None:
    """Fails, at the site, unless 0 <= i < length: one unsigned comparison tests both."""
    e.require(e.w.let(f"icmp ult i64 {i}, {length}"), Failure.INDEX, site, i, length)


def element_number(e: Emitter, a: Array, indices: Sequence[str]) -> str:
    """The row-major number of an element, or of the first element of a sub-array."""
    number = "0"
    for i, length in zip(indices, a.dims, strict=False):
        number = e.w.add(e.w.mul(number, length) if number != "0" else "0", i)
    return e.w.mul(number, e.w.product(a.dims[len(indices) :]))


def sub_array(e: Emitter, a: Array, indices: Sequence[str]) -> Array:
    """A borrowed view of a sub-array.  The indices must be in bounds."""
    return Array(a.elem, a.owner, address(e, a, indices), a.dims[len(indices) :])


def address(e: Emitter, a: Array, indices: Sequence[str]) -> str:
    """The address of the element or row at these indices.  Nothing is tested."""
    return e.w.element(a.data, element_number(e, a, indices), a.size)


def check_shape(
    e: Emitter, dims: Sequence[str], others: Sequence[str], site: int | str, failure: Failure = Failure.SHAPE
) -> None:
    """Fails, at the site, at the first dimension in which two shapes differ.  What has one name is not compared."""
    for a, b in zip(dims, others, strict=True):
        if a != b:
            e.require(e.w.let(f"icmp eq i64 {a}, {b}"), failure, site, a, b)
