"""Lists, options, tuples, and the program's own types, with functions that follow their structure."""

from __future__ import annotations

from doubt.scopes import BOOL, FLOAT, INT, Ty, array, list_of
from doubt.writer import Hole, rule


@rule(5, lambda h: h.ty.name == "list")
def listed(h: Hole) -> str:
    (item,) = h.ty.args
    x = h.named("x", h.writer.data_type(1))
    match h.writer.below(9):
        case 0:
            return f"[{h(item)};]"
        case 1:
            return f"[{h(item)}; {h(item)}]"
        case 2:
            return f"{h(item)} :: {h()}"
        case 3:
            return f"{h()} ++ {h()}"
        case 4:
            return f"List.rev {h()}"
        case 5 | 6:
            return f"List.map (fun {h.parameter(x)} -> {h(item, x)}) {h(list_of(x[1]))}"
        case 7:
            y = h.named("x", item)
            return f"List.filter (fun {h.parameter(y)} -> {h(BOOL, y)}) {h()}"
    return f"List.of_array {h(array(item, h.writer.below(3) + 1)) if item.name != 'ref' else '[]'}"


@rule(1, lambda h: h.ty.name == "list")
def long_list(h: Hole) -> str:
    """A list of so many items that a loop makes it, if they are numbers or tuples of numbers."""
    (item,) = h.ty.args
    x = h.named("x", item)
    made = f"[{'; '.join([x[0]] * 30 + [h(item, x), h(item, x)])}]"
    return f"(let {x[0]} = {h(item)} in {h.one(made, f'{made} ++ {h()}')})"


@rule(1, lambda h: h.ty in (BOOL, INT))
def in_order(h: Hole) -> str:
    """The order of data with floats inside, of which some are NaN."""
    one, two = (f"({h.one('0.0 / 0.0', h(FLOAT), h(FLOAT))}, {h(INT)})" for _ in range(2))
    other = h.one(f"(0.0 / 0.0, {h(INT)})", f"({h(FLOAT)}, {h(INT)})")
    if h.ty == BOOL:
        return h.one(f"{one} {h.one('<', '<=', '>', '>=')} {two}", f"[{one};] < [{two}; {other}]",
                     f"Some {one} >= Some {two}")  # fmt: skip
    return h.one(f"(argsort [{one}, {two}, {other}])[{h.writer.below(3)}]",
                 f"List.length (List.group_by fst [{one}; {two}; {other}])",
                 f"Map.get 7 {other} (Map.of_list [({one}, 1); ({two}, 2); ({other}, 3)])")  # fmt: skip


@rule(4, lambda h: h.ty.name == "list")
def list_by_recursion(h: Hole) -> str:
    """A call that is last except for a cell, and takes no stack."""
    go, n, x = h.fresh("go"), h.named("n", INT), h.named("x", h.writer.data_type(1))
    start = h(x[1])
    last = h.apart(h.ty, x)
    item, following = h.apart(h.ty.args[0], n, x), h.apart(x[1], n, x)
    body = f"if {n[0]} <= 0 then {last} else {item} :: {go} ({n[0]} - 1) {following}"
    return f"let rec {go} {n[0]} ({x[0]} : {x[1]}) = {body} in {go} {h.count()} {start}"


@rule(3, lambda h: h.ty.name == "list")
def list_by_appending(h: Hole) -> str:
    """A loop that appends to a list in its steps, or in some of them, or in those of a loop inside."""
    (item,) = h.ty.args
    i, x, xs = h.named("i", INT), h.named("x", h.writer.data_type(1)), h.named("xs", h.ty)
    more = f"{xs[0]} ++ {f'[{h.apart(item, i, x)};]' if h.often(70) else h.apart(h.ty, i, x)}"
    if h.often(30):
        more = f"if {h.apart(BOOL, i, x)} then {more} else {xs[0]}"
    if h.often(20):
        more = f"loop {xs[0]} = {xs[0]} for {i[0]} < {i[0]} % 3 do {more}"
    state, start = f"({xs[0]}, {h.parameter(x)})", f"({'[]' if h.often(70) else h()}, {h(x[1])})"
    return f"fst (loop {state} = {start} for {i[0]} < {h.count()} + 9 do ({more}, {h.apart(x[1], i, x)}))"


@rule(5, lambda h: h.ty.name == "option")
def optional(h: Hole) -> str:
    return f"Some {h(h.ty.args[0])}" if h.often(70) else "None"


@rule(7, lambda h: h.ty.name == "*")
def tupled(h: Hole) -> str:
    return ", ".join(h(item) for item in h.ty.args)


@rule(6, lambda h: h.ty.name == "ref")
def referred(h: Hole) -> str:
    return f"ref {h(h.ty.args[0])}"


@rule(7, lambda h: h.writer.is_record(h.ty))
def record(h: Hole) -> str:
    fields = [(field, item) for field, item in h.writer.parts(h.ty) if item]
    if len(fields) > 1 and h.often(40):
        first = h.one(*fields)
        second = h.one(*[one for one in fields if one is not first])  # often before the first in the declaration
        return f"{{ {h()} with {given(h, [first, second] if h.often(30) else [first])} }}"
    return f"{{ {given(h, fields)} }}"


def given(h: Hole, fields: list) -> str:
    return "; ".join(f"{field} = {h(item)}" for field, item in fields)


@rule(7, lambda h: h.writer.is_data(h.ty))
def constructed(h: Hole) -> str:
    constructor, inside = h.one(*h.writer.parts(h.ty))
    return constructor if inside is None else f"{constructor} {h(inside)}"


# ---- following the structure ----


def recursive_types(h: Hole) -> list[Ty]:
    w = h.writer
    return [w.applied(name) for name, declared in w.declared.items() if declared.is_recursive]


@rule(4, lambda h: bool(recursive_types(h)))
def by_structure(h: Hole) -> str:
    """A function made for this place: what it makes of the parts of a value, it combines."""
    ty = h.one(*recursive_types(h))
    go, t = h.fresh("go"), h.fresh("t")
    value, environment = h(ty), h.named("c", h.writer.data_type(1))
    arms = [structural_arm(h, go, ty, name, inside, environment) for name, inside in h.writer.parts(ty)]
    start = h(environment[1])
    head = f"let rec {go} {h.parameter(environment)} ({t} : {ty}) : {h.ty} = match {t} with {' | '.join(arms)}"
    return f"{head} in {go} {start} {value}"


def structural_arm(h: Hole, go: str, me: Ty, constructor: str, inside: Ty | None, environment: tuple[str, Ty]) -> str:
    """The result of each part of the type itself is found first, and is there for the result of the whole."""
    if inside is None:
        return f"{constructor} -> {h.apart(h.ty, environment)}"
    items = inside.args if inside.name == "*" else (inside,)
    names = [h.named("v", item) for item in items]
    pattern = f"({', '.join(name for name, _ in names)})" if len(names) > 1 else names[0][0]
    lines, inner = [], [environment, *(var for var in names if var[1] != me)]
    for name, item in names:
        result = h.named("r", h.ty)
        call = f"{go} {environment[0] if h.often(50) else h.apart(environment[1], *inner)}"
        if item == me:
            lines.append(f"let {result[0]} = {call} {name} in")
        elif item.name in ("[]", "list") and item.args[0] == me:
            result = result[0], Ty(item.name, (h.ty,), item.size)
            lines.append(f"let {result[0]} = {'List.map' if item.name == 'list' else 'map'} ({call}) {name} in")
        else:
            continue
        inner.append(result)
    found = [name for name, item in inner if item == FLOAT]
    if h.ty == FLOAT and len(found) > 1 and h.often(40):  # of the parts, one is chosen
        (a, b), here = found[-2:], h.apart(FLOAT, *inner)
        last = h.one(f"min {a} ({here} - {b})", f"max (0.9 * {b}) {a} + {here}",
                     f"if {a} < {b} then {a} else {here} * {b}")  # fmt: skip
    else:
        last = h.apart(h.ty, *inner)
    return f"{constructor} {pattern} -> {' '.join(lines)} {last}"


@rule(3, lambda h: h.ty == FLOAT and bool(recursive_types(h)))
def by_walks(h: Hole) -> str:
    """A walk for each step of a loop, from a node to one of its parts of its own type; often differentiated here."""
    ty = h.one(*recursive_types(h))
    go, t, n, r, s = h.fresh("go"), h.fresh("t"), h.named("n", INT), h.named("r", FLOAT), h.fresh("s")
    value, start, left = h(ty), h(), h.often(50)  # with work left after the walk, or nothing but the walk
    arms = [walking_arm(h, go, ty, name, inside, (n, r), left) for name, inside in h.writer.parts(ty)]
    walk = f"let rec {go} ({n[0]} : int) ({r[0]} : float) ({t} : {ty}) : float = match {t} with {' | '.join(arms)} in"
    total = f"loop {s} = {start} for {n[0]} < {h.count()} do {s} * 0.5 + {go} ({n[0]} * 5) {h.apart(FLOAT, n)} {t}"
    if h.writer.fits_point(ty) and h.often(60):
        return f"{walk} Tree.norm (grad (fun ({t} : {ty}) -> {total}) {value})"
    return f"{walk} let {t} = {value} in {total}"


def walking_arm(h: Hole, go: str, me: Ty, constructor: str, inside: Ty | None, known: tuple, left: bool) -> str:
    """The walk goes on in one part of the type itself, if the node has any."""
    n, r = known
    if inside is None:
        return f"{constructor} -> {h.apart(FLOAT, n, r)}"
    items = inside.args if inside.name == "*" else (inside,)
    names = [h.named("v", item) for item in items]
    pattern = f"({', '.join(name for name, _ in names)})" if len(names) > 1 else names[0][0]
    others = [var for var in names if var[1] != me]
    here, children = h.apart(FLOAT, n, r, *others), [name for name, item in names if item == me]
    if not children:
        return f"{constructor} {pattern} -> {here}"
    last = children.pop()
    child = " else ".join([*(f"if {n[0]} % {k + 2} = 0 then {name}" for k, name in enumerate(children)), last])
    onward = f"{go} ({n[0]} / 2) ({r[0] if left else here}) ({child})"
    return f"{constructor} {pattern} -> {f'{onward} * 0.7 + {here}' if left else onward}"


@rule(2, lambda h: h.ty == FLOAT)
def by_search(h: Hole) -> str:
    """A search along a list for each step of a loop, which often ends early; often differentiated here."""
    item = h.writer.data_type(1)
    go, t, n, x, s = h.fresh("go"), h.fresh("t"), h.named("n", INT), h.named("x", item), h.fresh("s")
    value, start, last, made = h(list_of(item)), h(), h.apart(FLOAT, n), h.apart(FLOAT, n, x)
    kind, call = " : float", f"{go} {n[0]} {t}"
    if h.often(30):  # it gives what it finds, or what follows, or nothing
        one, taken = h.one((x[0], x[0]), ("rest", f"({x[0]} :: _)"))
        kind, call = "", f"(match {call} with Some {taken} -> {made} | _ -> {last})"
        last, made = "None", f"Some {one}"
    found = f"if {h.apart(BOOL, n, x)} then {made} else {go} ({n[0]} - 1) rest"
    head = f"let rec {go} ({n[0]} : int) ({t} : {list_of(item)}){kind} ="
    search = f"{head} match {t} with [] -> {last} | {x[0]} :: rest -> {found} in"
    total = f"loop {s} = {start} for {n[0]} < {h.count()} + 1 do {s} * 0.5 + {call}"
    if h.writer.fits_point(list_of(item)) and h.often(60):
        return f"{search} Tree.norm (grad (fun ({t} : {list_of(item)}) -> {total}) {value})"
    return f"{search} let {t} = {value} in {total}"


@rule(2, lambda h: h.ty == FLOAT)
def by_leaves(h: Hole) -> str:
    """All floats of some data at once."""
    a, x, t = h.named("a", FLOAT), h.named("x", FLOAT), h.fresh("t")
    value = h(h.writer.point_type(1))
    match h.writer.below(3):
        case 0:
            return f"Tree.fold (fun {a[0]} {x[0]} -> {h.apart(FLOAT, a, x)}) {h()} {value}"
        case 1:
            return f"let {t} = {value} in Tree.dot {t} (Tree.map (fun {x[0]} -> {h.apart(FLOAT, x)}) {t})"
    return f"Tree.norm {value}"


@rule(2, lambda h: h.writer.fits_point(h.ty))
def mapped_leaves(h: Hole) -> str:
    x, t = h.named("x", FLOAT), h.fresh("t")
    if h.often(50):
        return f"Tree.map (fun {x[0]} -> {h.apart(FLOAT, x)}) {h()}"
    return f"let {t} = {h()} in Tree.axpy {h(FLOAT)} (grad (fun {x[0]} -> Tree.dot {x[0]} {x[0]}) {t}) {t}"


@rule(3, lambda _: True)
def by_list(h: Hole) -> str:
    """A function over a list: by the result of its rest, or with what was made so far."""
    item = h.writer.data_type(1)
    go, x, xs, r = h.fresh("go"), h.named("x", item), h.named("t", list_of(item)), h.named("r", h.ty)
    value, start = h(xs[1]), h()
    if h.often(50):
        body = f"match {xs[0]} with [] -> {r[0]} | {x[0]} :: rest -> {go} {h.apart(h.ty, x, r)} rest"
        return f"let rec {go} ({r[0]} : {h.ty}) ({xs[0]} : {xs[1]}) = {body} in {go} {start} {value}"
    rest = f"let {r[0]} = {go} rest in {h.apart(h.ty, x, r)}"
    # beside an array, the unknown result of a recursion is taken to be of no higher rank
    wanted = f" : {h.ty}" if "," in str(h.ty) else ""
    body = f"match {xs[0]} with [] -> {h.apart(h.ty)} | {x[0]} :: rest -> {rest}"
    return f"let rec {go} ({xs[0]} : {xs[1]}){wanted} = {body} in {go} {value}"


@rule(2, lambda _: True)
def by_two_lists(h: Hole) -> str:
    """A function over two lists that takes one element at a time, of either, as in merging."""
    one, two = h.writer.data_type(1), h.writer.data_type(1)
    go, x, y, r = h.fresh("go"), h.named("x", one), h.named("y", two), h.named("r", h.ty)
    xs, ys, first, second = h.named("t", list_of(one)), h.named("u", list_of(two)), h(list_of(one)), h(list_of(two))
    start, last, less = h(), h.apart(h.ty, r), h.apart(BOOL, x, y)
    ends = f"([], _) -> {r[0]} | (_, []) -> {last}"
    match h.writer.below(3):
        case 0:
            takes = f"{go} {h.apart(h.ty, x, r)} more {ys[0]} else {go} {h.apart(h.ty, y, r)} {xs[0]} rest"
        case 1:
            takes = (f"let {r[0]} = {go} {r[0]} more {ys[0]} in {h.apart(h.ty, x, r)} "
                     f"else let {r[0]} = {go} {r[0]} {xs[0]} rest in {h.apart(h.ty, y, r)}")  # fmt: skip
        case _:  # a list is taken apart and given as a whole, twice
            takes = (f"{go} ({go} {h.apart(h.ty, x, r)} {xs[0]} rest) more {ys[0]} "
                     f"else let {r[0]} = {go} {r[0]} more rest in {h.apart(h.ty, x, y, r)}")  # fmt: skip
    body = f"match ({xs[0]}, {ys[0]}) with {ends} | ({x[0]} :: more, {y[0]} :: rest) -> if {less} then {takes}"
    params = f"({r[0]} : {h.ty}) ({xs[0]} : {xs[1]}) ({ys[0]} : {ys[1]}) : {h.ty}"
    return f"let rec {go} {params} = {body} in {go} {start} {first} {second}"


@rule(3, lambda h: h.ty == FLOAT)
def held_array(h: Hole) -> str:
    """An array in data that a recursion opens and makes again, beside reads of the array or an update."""
    n = h.writer.below(3) + 1
    go, i, xs, r = h.fresh("go"), h.named("i", INT), h.named("xs", array(FLOAT, n)), h.named("r", FLOAT)
    w, x = h.fresh("w"), h.fresh("x")
    again = xs[0] if h.often(70) else f"{{ {xs[0]} with [{i[0]} % {n}] = {h.apart(FLOAT, i)} }}"
    before, after = h.apart(FLOAT, i), h.apart(FLOAT, i, r)
    rest = f"let {x} = {xs[0]}[{i[0]} % {n}] + {before} in let {r[0]} = {go} (Some ({again}, {i[0]} - 1)) in"
    body = f"if {i[0]} <= 0 then {go} None else {rest} {x} * {after} + {xs[0]}[{(n - 1)}]"
    arms = f"match {w} with None -> {h()} | Some ({xs[0]}, {i[0]}) -> {body}"
    return f"let rec {go} ({w} : ({xs[1]} * int) option) = {arms} in {go} (Some ({h(xs[1])}, {h.count()}))"


@rule(3, lambda h: h.ty == FLOAT)
def shared_array(h: Hole) -> str:
    """One array that elements of an array hold, or references, some of which then hold what another one did."""
    n, m = h.writer.below(3) + 1, h.writer.below(3) + 2
    xs, ys, s = h.named("xs", array(FLOAT, n)), h.named("ys", array(FLOAT, n)), h.named("s", FLOAT)
    rows, i, k, r = h.fresh("rows"), h.fresh("i"), h.fresh("k"), h.fresh("r")
    begin, start, read = f"let {xs[0]} = {h(xs[1])} in let {rows} =", h(), h.apart(FLOAT, s, ys)
    new = h.apart(ys[1], ys) if h.often(50) else ys[0]
    match h.writer.below(3):
        case 0:
            moved = f"let ({ys[0]}, {k}) = {rows}[{i} + 1] in ({new}, {k})"
            steps = f"loop {rows} = {rows} for {i} < {m - 1} do {{ {rows} with [{i}] = ({moved}) }}"
            changed = f"let {rows} = {steps} in" if h.often(50) else ""
            total = f"loop {s[0]} = {start} for {i} < {m} do let ({ys[0]}, {k}) = {rows}[{i}] in {read} * float {k}"
            return f"{begin} [for {i} < {m} -> ({xs[0]}, {i})] in {changed} {total}"
        case 1:
            steps = f"{rows}[{i}] := (let {ys[0]} = !({rows}[{i} + 1]) in {new})"
            total = f"loop {s[0]} = {start} for {i} < {m} do let {ys[0]} = !({rows}[{i}]) in {read}"
            return f"{begin} [for _ < {m} -> ref {xs[0]}] in (loop () = () for {i} < {m - 1} do {steps}); ({total})"
    steps = f"List.iter (fun ({r}, {k}) -> if {k} = 1 then {r} := (let {ys[0]} = !{r} in {new}) else ()) {rows}"
    total = f"List.fold (fun {s[0]} ({r}, {k}) -> let {ys[0]} = !{r} in {read} + {ys[0]}[{k} % {n}]) {start} {rows}"
    return f"{begin} List.init {m} (fun {i} -> (ref {xs[0]}, {i})) in {steps}; {total}"
