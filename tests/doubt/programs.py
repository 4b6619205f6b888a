"""Whole programs: declarations, definitions that are printed, `f : 'a -> 'b` with a point `x0 : 'a`, measurements."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from doubt import (  # noqa: F401  (their rules)
    arrays,
    basics,
    containers,
    control,
    data,
    derivatives,
    found_places,
    functions,
    gates,
    helpers,
    loops,
    mixtures,
    pairs,
    products,
    rowless,
    scalars,
    stencils,
    windows,
    zeros,
)  # fmt: skip
from doubt.scopes import FLOAT, PARAMETER, Declared, Scope, Ty, array, function, list_of, tuple_of
from doubt.writer import Features, Hole, Writer, literal

HELPERS = {
    gates.GATE: gates.GATE_TYPE,
    gates.CELL: gates.CELL_TYPE,
    loops.BOX: loops.BOX_TYPE,
    containers.ROW: containers.ROW_TYPE,
    containers.LINE: containers.LINE_TYPE,
    containers.ENTRY: containers.ENTRY_TYPE,
    mixtures.TRACK: mixtures.TRACK_TYPE,
    mixtures.LANE: mixtures.LANE_TYPE,
    containers.ACT: containers.ACT_TYPE,
    containers.SIGNAL: containers.SIGNAL_TYPE,
    "grow": loops.GROW,
    "grow_front": loops.FRONT,
    "shrink": loops.SHRINK,
    "hold": loops.HOLD,
    "hold_by": loops.HOLD_BY,
    "weigh": stencils.MARK,
    "mark_pairs": stencils.PAIRS,
    "mark_chain": stencils.CHAIN,
    "twice": "let twice g x = g (g x)",
    "compose": "let compose g h = fun x -> g (h x)",
    "choose": "let choose c x y = if c then x else y",
    "swap": "let swap (a, b) = (b, a)",
    "repeat": "let rec repeat n g x = if n <= 0 then x else g (repeat (n - 1) g x)",
    "iterate": "let rec iterate n g x = if n <= 0 then x else iterate (n - 1) g (g x)",
    "sum_by": "let rec sum_by g xs = match xs with [] -> 0.0 | x :: rest -> g x + sum_by g rest",
    "damp": "let damp x = x / (1.0 + abs x)",
    "square": "let square x = x * x",
    "measure": "let measure (a : float[n, m]) = float (10 * n + m)",
    "<+>": "let ( <+> ) a b = (a + b) / (1.0 + 0.1 * a * a)",
    "forward": "let forward f (x : float) = snd (jvp f x 1.0)",
    "drive": "let rec drive n p = match p with Done x -> x"
    " | Paused (x, k) -> if n <= 0 then x else 0.3 * x + drive (n - 1) (k (tanh x))",
}
PAUSE = Declared(control.PAUSE, (("Done", FLOAT), ("Paused", tuple_of(FLOAT, function(FLOAT, Ty(control.PAUSE))))))

MEASURE = """\
let _v = Tree.map (fun x -> cos (3.0 * x + 0.5)) x0
let _at s = Tree.axpy s _v x0
"""
OF_NUMBER = "let phi = f\n"
OF_DATA = """\
let _u = Tree.map (fun y -> sin (2.0 * y + 0.7)) (f x0)
let phi x = Tree.dot (f x) _u
"""
FIRST = {
    "value": "f x0",
    "forward": "snd (jvp phi x0 _v)",
    "reverse": "Tree.dot (grad phi x0) _v",
    "tangent": "jvp f x0 _v",
    "cotangent": "value_and_grad phi x0",
}
SECOND = {
    "forward over forward": "snd (jvp (fun x -> snd (jvp phi x _v)) x0 _v)",
    "forward over reverse": "Tree.dot (snd (jvp (grad phi) x0 _v)) _v",
    "reverse over forward": "Tree.dot (grad (fun x -> snd (jvp phi x _v)) x0) _v",
    "reverse over reverse": "Tree.dot (grad (fun x -> Tree.dot (grad phi x) _v) x0) _v",
}
STEPS = (0.0, 1e-5, -1e-5, 2e-5, -2e-5)
DIFFERENCES = {
    "values near": f"[{', '.join(f'phi (_at ({s}))' for s in STEPS)}]",
    "slopes near": f"[{', '.join(f'Tree.dot (grad phi (_at ({s}))) _v' for s in STEPS)}]",
}
MEASURED = FIRST | SECOND | DIFFERENCES
MARK = "== "


@dataclass(frozen=True)
class Program:
    """`body` defines `f` and `x0`; native code measures some roads to the derivatives, the interpreter all."""

    body: str
    roads: tuple[str, ...]
    features: Features
    rules: frozenset[str] = frozenset()  # that wrote it

    @property
    def text(self) -> str:
        return self.body + "".join(f'do print "{MARK}{name}"\ndo print ({road})\n' for name, road in MEASURED.items())

    @property
    def only_interpreted(self) -> list[int]:
        """The numbers of the items that native code leaves out, as they are counted from the end."""
        first = -2 * len(MEASURED)
        return [first + 2 * i + k for i, name in enumerate(MEASURED) if name not in self.roads for k in (0, 1)]


@dataclass(frozen=True)
class Size:
    """How large programs are: how many expressions, how deep, how many definitions before f."""

    budget: int
    depth: int
    definitions: int


@st.composite
def programs(draw: st.DrawFn, size: Size) -> Program:
    w = Writer(draw, Features(), size.budget)
    w.features = Features(*(w.often(percent) for percent in (35, 35, 8, 8, 6, 8, 5)))
    scope = declarations(w)
    definitions: list[str] = []
    for _ in range(w.below(size.definitions + 1)):
        text, scope = definition(w, scope, size.depth)
        definitions.append(text)
    point, result = w.point_type(), FLOAT if w.often(70) else w.point_type(1)
    inner = scope.differentiated().add(("x", point), ("s", FLOAT))
    w.budget = size.budget
    body = w.fill(Hole(w, result, inner, size.depth))
    definitions += [
        f"let f (x : {point}) : {result} =",
        f"  let s = {'x' if point == FLOAT else 'Tree.fold (fun a v -> 0.5 * a + sin (v + 0.1 * a)) 0.3 x'} in",
        f"  {body}",
        f"let x0 : {point} = {literal(Hole(w, point, Scope(), 3))}",
    ]
    text = "\n".join(definitions) + "\n" + MEASURE + (OF_NUMBER if result == FLOAT else OF_DATA)
    declared = "".join(f"{made}\n" for made in w.declared.values())
    return Program(declared + needed(text) + text, roads(w), w.features, frozenset(w.used))


def needed(text: str) -> str:
    """The helpers that the text uses."""
    lines = []
    for name, line in HELPERS.items():
        if re.search(rf"\b{name}\b" if name.isalpha() or "_" in name else re.escape(name), text):
            lines.append(line)
    return "\n".join(lines) + "\n" if lines else ""


def roads(w: Writer) -> tuple[str, ...]:
    """Those that native code takes: both first ones, some second ones."""
    if w.often(30):
        return "value", "forward", "reverse", w.one(*SECOND)
    if w.often(20):
        return "cotangent", "forward over reverse", "reverse over forward"
    return ("cotangent", "tangent") if w.often(30) else ("forward", "reverse")


def definition(w: Writer, scope: Scope, depth: int) -> tuple[str, Scope]:
    """A function, or a value that is printed."""
    ty = w.any_type()
    if w.often(50):
        name, p, argument = w.fresh("h"), w.fresh("p"), w.any_type()
        h = Hole(w, ty, scope.differentiated().add((p, argument)), depth - 1)
        return f"let {name} ({p} : {argument}) = {w.fill(h)}", scope.add((name, function(argument, ty)))
    name = w.fresh("c")
    return f"let {name} = {w.fill(Hole(w, ty, scope, depth))}\ndo print {name}", scope.add((name, ty))


def declarations(w: Writer) -> Scope:
    """Declares some types; the scope that knows what they hold."""
    if w.features.control and w.often(40):
        w.declared[PAUSE.name] = PAUSE
    for _ in range(w.below(3)):
        made = record(w) if w.often(40) else recursive(w)
        w.declared[made.name] = made
    scope = Scope()
    for kind in ("refs", "functions"):
        holds = {name for name in w.declared if w.reaches(w.applied(name), *getattr(scope, kind))}
        scope = replace(scope, **{kind: getattr(scope, kind) | holds})
    return scope


def record(w: Writer) -> Declared:
    fields = tuple((w.fresh("f"), w.any_type(1)) for _ in range(w.below(3) + 1))
    return Declared(w.fresh("r"), fields, is_record=True)


def recursive(w: Writer) -> Declared:
    """Data: a constructor that ends it, and others that hold the type itself, directly or in arrays or lists."""
    parametric, name = w.often(25), w.fresh("d")
    me = Ty(name, (PARAMETER,)) if parametric else Ty(name)
    item = PARAMETER if parametric else w.any_type(1)
    parts: list[tuple[str, Ty | None]] = [(w.fresh("C"), w.one(FLOAT if not parametric else PARAMETER, None))]
    for _ in range(w.below(2) + 1):
        held = w.one(tuple_of(me, me), item, tuple_of(FLOAT, me), tuple_of(me, item, me), list_of(me), array(me, 2))
        parts.append((w.fresh("C"), held))
    return Declared(name, tuple(parts), parametric=parametric)
