"""Arrays without rows, made in every way and put everywhere: nothing in them tells their inner sizes."""

from __future__ import annotations

from doubt.arrays import is_array, is_matrix, is_vector, short
from doubt.scopes import BOOL, FLOAT, INT, Ty, array, list_of, mentions, rank, tuple_of
from doubt.writer import Hole, rule


def none(h: Hole, item: Ty, more: int = 2) -> str:
    """An array of no elements, of this type."""
    x, i = h.named("x", item), h.named("i", INT)
    few = array(item, short(h))
    if not more or h.often(40):
        match h.writer.below(7):
            case 0:
                return f"(filter (fun {x[0]} -> {h.apart(BOOL, x)} && false) {h(few)})"
            case 1:
                at = h.writer.below(few.size + 1)
                return f"({h(few)})[{at}:{at}]"
            case 2:
                return f"[for {i[0]} < 0 -> {h.apart(item, i)}]"
            case 3:
                return f"(gather {h(few)} (filter (fun {i[0]} -> {i[0]} > 9) [0]))"
            case 4:
                return f"({h.one('fill', 'fill')} 0 {h(item)})"
            case 5 if not mentions(item, "->"):
                return f"(List.to_array (List.filter (fun {x[0]} -> false) {h(list_of(item))}) :> {array(item, 0)})"
        return f"(tabulate 0 (fun {i[0]} -> {h.apart(item, i)}) :> {array(item, 0)})"
    return derived(h, item, more)


def derived(h: Hole, item: Ty, more: int) -> str:
    """An array of no elements, of this type, computed from another one."""
    x = h.named("x", item)
    y = h.named("y", h.writer.data_type(1))
    match h.writer.below(9):
        case 0:
            return f"(map (fun ({y[0]} : {y[1]}) -> {h.apart(item, y)}) {none(h, y[1], more - 1)})"
        case 1:
            return f"[for {y[0]} in {none(h, y[1], more - 1)} -> {h.apart(item, y)}]"
        case 2:
            return f"(reverse {none(h, item, more - 1)})"
        case 3:
            return f"({none(h, item, more - 1)} ++ {none(h, item, more - 1)})"
        case 4:
            first, second = none(h, item, more - 1), none(h, y[1], more - 1)
            return f"[for ({x[0]}, _) in zip ({first} :> {array(item, 0)}) ({second} :> {array(y[1], 0)}) -> {x[0]}]"
        case 5:
            return f"(mapi (fun _ {x[0]} -> {h.apart(item, x)}) {none(h, item, more - 1)})"
        case 6:
            return f"(scan (fun {x[0]} _ -> {x[0]}) {h(item)} {none(h, item, more - 1)})"
        case 7:
            return f"(loop {x[0]} = {none(h, item, more - 1)} for _ < 2 do map (fun {y[0]} -> {y[0]}) {x[0]})"
    if rank(array(item, 0)) < 2:
        return f"(fst (unzip {none(h, tuple_of(item, FLOAT), more - 1)}))"
    other = none(h, item, more - 1)
    return f"({h.one('sin', 'tanh', 'damp')} {other})" if h.often(50) else f"({other} * {h(h.one(FLOAT, item))})"


@rule(2, is_array)
def appended(h: Hole) -> str:
    some, empty = h(), none(h, h.ty.args[0])
    whole = f"{empty} ++ {some}" if h.often(50) else f"{some} ++ {empty}"
    return f"({whole}) :> {h.ty}"


@rule(2, lambda h: h.ty == FLOAT)
def measured(h: Hole) -> str:
    """By their sizes, by equality, by what is computed of their elements."""
    row = array(FLOAT, short(h))
    match h.writer.below(6):
        case 0:
            return f"measure {none(h, row)}"
        case 1:
            return f"(if {none(h, row)} = {none(h, row)} then {h()} else 0.0)"
        case 2:
            return f"sum ({h.one('sum', 'prod')} {none(h, row)})"
        case 3:
            return f"sum (map (fun {h.fresh('_r')} -> {h.apart(FLOAT)}) {none(h, h.writer.data_type(1))})"
        case 4:
            return f"sum (sum (sum {none(h, array(row, short(h)))}))"
    return f"measure (transpose {none(h, row)})"


@rule(1, lambda h: is_vector(h) or is_matrix(h))
def sum_of_nothing(h: Hole) -> str:
    total = f"{h.one('sum', 'prod', 'sum')} {none(h, h.ty)}"
    return f"{total} * {h()} + {h()}"


@rule(2, is_vector)
def product_with_nothing(h: Hole) -> str:
    if h.often(50):
        return f"({none(h, FLOAT)} :> float[0]) @ ({none(h, h.ty)} :> {array(h.ty, 0)}) + {h()}"
    return f"{h()} + transpose ({none(h, h.ty)} :> {array(h.ty, 0)}) @ ({none(h, FLOAT)} :> float[0])"


@rule(2, is_matrix)
def matrix_of_nothing(h: Hole) -> str:
    left, right = none(h, array(FLOAT, h.ty.size)), none(h, h.ty.args[0])
    product = f"transpose ({left} :> float[0, {h.ty.size}]) @ ({right} :> {array(h.ty.args[0], 0)})"
    return f"{product} + {h()}"


@rule(1, is_array)
def kept(h: Hole) -> str:
    """Written over nowhere."""
    item = h.ty.args[0]
    if h.often(50):
        return f"scatter {h()} {none(h, INT, 0)} {none(h, item)}"
    return f"({h()} ++ {none(h, item)})[0:{h.ty.size}]"
