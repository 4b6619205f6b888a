"""shift and reset: early exits, choices, state, generators, continuations that are kept and called later or twice."""

from __future__ import annotations

from doubt.scopes import BOOL, FLOAT, INT, Ty, function, list_of, mentions
from doubt.writer import Hole, rule

PAUSE = "pause"  # type pause = Done of float | Paused of float * (float -> pause)


def controlled(h: Hole) -> bool:
    return h.writer.features.control


def may_shift(h: Hole) -> bool:
    return h.scope.answer is not None and not mentions(h.ty, "ref")


def answers(h: Hole) -> bool:
    return controlled(h) and not mentions(h.ty, "ref")


@rule(9, may_shift)
def shifted(h: Hole) -> str:
    """The continuation is called once, often, never, or by someone else."""
    answer = h.scope.answer
    assert answer is not None
    k = h.named("k", function(h.ty, answer))
    match h.writer.below(6):
        case 0:
            return f"shift {k[0]} -> {k[0]} {h()}"
        case 1:
            return f"(shift _{k[0]} -> {h(answer)} : {h.ty})"  # nothing else says what it would be
        case 2 if answer == FLOAT:
            p = h.fresh("p")
            return f"shift {k[0]} -> let {p} = sigmoid {h(FLOAT)} in {p} * {k[0]} {h()} + (1.0 - {p}) * {k[0]} {h()}"
        case 3 if answer.name == "list":
            return f"shift {k[0]} -> {k[0]} {h()} ++ {k[0]} {h()}"
        case 4 if h.ty == answer:
            return f"shift {k[0]} -> {k[0]} ({k[0]} {h()})"
    return f"shift {k[0]} -> {h(answer, k)}"


@rule(4, answers)
def delimited(h: Hole) -> str:
    return f"reset {h.delimited(h.ty)()}"


@rule(3, answers)
def delimited_with_use(h: Hole) -> str:
    """What is shifted for is used by what follows."""
    var, inner = h.named("v", h.writer.data_type(1)), h.delimited(h.ty)
    return f"reset (let {var[0]} = {inner(var[1])} in {inner(h.ty, var)})"


@rule(2, answers)
def chosen(h: Hole) -> str:
    """Several answers, weighed or listed."""
    a, b, p, inner = h.named("c", BOOL), h.named("c", FLOAT), h.fresh("p"), h.delimited(h.ty)
    if h.ty == FLOAT:
        flip = f"(fun {p} -> shift k -> {p} * k true + (1.0 - {p}) * k false)"
        second = f"(shift k -> 0.5 * (k {inner(FLOAT)} + k {inner(FLOAT)}))"
        return f"reset (let {a[0]} = {flip} (sigmoid {inner(FLOAT)}) in let {b[0]} = {second} in {inner(FLOAT, a, b)})"
    if h.ty.name != "list":
        return delimited_with_use(h)
    choice = f"(shift k -> List.concat (List.map k {inner(list_of(FLOAT))}))"
    return f"reset (let {b[0]} = {choice} in {inner(h.ty, b)})"


@rule(2, answers)
def exception(h: Hole) -> str:
    """Out of a loop, a fold or a recursion, with a value."""
    s, i, x, inner = h.named("s", h.ty), h.named("i", INT), h.named("x", FLOAT), h.delimited(h.ty)
    leave = f"if {inner(BOOL, s, x)} then shift _k -> {inner(h.ty, s)} else {inner(h.ty, s, x)}"
    match h.writer.below(3):
        case 0:
            step = f"let {x[0]} = 0.4 * float {i[0]} in {leave}"
            return f"reset (loop {s[0]} = {inner()} for {i[0]} < {inner.count()} do ({step}))"
        case 1:
            items = inner(list_of(FLOAT))
            return f"reset (List.fold (fun ({s[0]} : {h.ty}) {x[0]} -> {leave}) {inner()} {items})"
    go = h.fresh("go")
    below = f"let {s[0]} = {go} ({i[0]} - 1) in let {x[0]} = 0.7 * float {i[0]} in {leave}"
    step = f"if {i[0]} <= 0 then {inner()} else ({below})"
    return f"reset (let rec {go} {i[0]} = {step} in {go} {inner.count()})"


@rule(2, answers)
def state(h: Hole) -> str:
    """The answer is a function of the state."""
    kept = h.writer.data_type(1)
    get, put, a, s = h.fresh("get"), h.fresh("put"), h.named("v", kept), h.named("s", kept)
    answer = function(kept, h.ty)
    first, then = h.delimited(answer)(kept, a), h.apart(h.ty, a, s)
    return (
        f"let {get} () : {kept} = shift k -> fun s -> k s s in let {put} (v : {kept}) = shift k -> fun _ -> k () v in "
        f"reset (let {a[0]} = {get} () in {put} {first}; fun ({s[0]} : {kept}) -> {then}) {h(kept)}"
    )


@rule(2, lambda h: controlled(h) and h.ty.name == "list")
def generator(h: Hole) -> str:
    """A list of what is yielded on the way."""
    (item,), inner = h.ty.args, h.delimited(h.ty)
    give, i, x = h.fresh("give"), h.named("i", INT), h.named("x", FLOAT)
    head = f"let {give} (v : {item}) = shift k -> v :: k () in"
    if h.often(50):
        body = f"List.iter (fun {x[0]} -> {give} {inner(item, x)}) {inner(list_of(FLOAT))}"
    else:
        body = f"loop () = () for {i[0]} < {inner.count()} do {give} {inner(item, i)}"
    return f"{head} reset ({body}; {inner()})"


@rule(2, lambda h: controlled(h) and h.ty == FLOAT)
def by_library(h: Hole) -> str:
    """Probabilities, state and generators, as the library has them."""
    a, b, x, i = h.named("c", BOOL), h.named("c", FLOAT), h.named("x", FLOAT), h.named("i", INT)
    match h.writer.below(4):
        case 0:
            options = f"[({h.apart(FLOAT)} ** 2 + 0.1, {h.apart(FLOAT)}); (0.3, {h.apart(FLOAT)})]"
            choices = f"let {a[0]} = Prob.flip (sigmoid {h.apart(FLOAT)}) in let {b[0]} = Prob.choose {options} in"
            return f"Prob.expectation (fun () -> {choices} {h.apart(FLOAT, a, b)})"
        case 1:
            body = f"let {b[0]} = Control.get () in Control.put {h.apart(FLOAT, b)}; {h.apart(FLOAT, b)}"
            return f"(fun (u, v) -> u * v) (Control.with_state (fun () -> {body} + Control.get ()) {h()})"
        case 2:
            items = f"loop () = () for {i[0]} < {h.count()} do Control.yield {h.apart(FLOAT, i)}"
            step = h.apart(FLOAT, x, b)
            return f"Control.fold (fun {x[0]} {b[0]} -> {step}) {h()} (Control.generate (fun () -> {items}))"
    options, found = f"[{h.apart(FLOAT)}; {h.apart(FLOAT)}; 0.4]", h.apart(FLOAT, b)
    body = f"let {b[0]} = Control.choose {options} in Control.require {h.apart(BOOL, b)}; {found}"
    return f"List.fold (fun {x[0]} y -> {x[0]} + y) 0.0 (Control.solutions (fun () -> {body}))"


@rule(4, lambda h: h.ty == FLOAT and PAUSE in h.writer.declared)
def paused(h: Hole) -> str:
    """Computations that stop, are kept, and go on: each as often as is liked."""
    me = Ty(PAUSE)
    p, q, x, k = h.named("t", me), h.named("t", me), h.named("x", FLOAT), h.named("k", function(FLOAT, me))
    start = f"(reset (Done {h.delimited(me)(FLOAT)}))"
    match h.writer.below(3):
        case 0:
            return f"drive 4 {start}"
        case 1:
            resume = f"let {q[0]} = {k[0]} {h(FLOAT, x)} in {h(FLOAT, p, q, x, k)}"
            cases = f"Done {x[0]} -> {h(FLOAT, x)} | Paused ({x[0]}, {k[0]}) -> {resume}"
            return f"let {p[0]} = {start} in match {p[0]} with {cases}"
    return f"let {p[0]} = {start} in drive 4 {p[0]} * drive 3 {p[0]} + {h(FLOAT, p)}"


@rule(8, lambda h: h.ty == FLOAT and h.scope.answer == Ty(PAUSE))
def pausing(h: Hole) -> str:
    return f"shift k -> Paused ({h(FLOAT)}, k)"
