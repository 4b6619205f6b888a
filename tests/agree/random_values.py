"""A type -> an expression made for it: operations on numbers, arrays, lists; derivatives inside."""

from __future__ import annotations

from random_types import BOOL, FLOAT, INT, STRING, Scope, Ty, Types, array, function, list_of

SMOOTH = (
    "sin", "cos", "tanh", "atan", "sigmoid", "softplus", "-", "damp", "twice sin", "compose exp sin", "erf", "abs",
    "relu",
)  # fmt: skip
OPERATORS = ("+", "-", "*", "+", "*")


class Values(Types):
    """Its parts are any expressions (`expression`, `taken_apart`, `parameter`, `index`, `count` of the Writer)."""

    def made(self, ty: Ty, scope: Scope, depth: int) -> str:

        def e(t: Ty, s: Scope = scope) -> str:
            return self.expression(t, s, depth)

        match ty.name:
            case "float":
                return self.made_float(scope, depth)
            case "int":
                return self.made_int(scope, depth)
            case "bool":
                t = self.data_type(1)
                return self.one(
                    f"{e(FLOAT)} {self.one('<', '>', '<=')} {e(FLOAT)}",
                    f"{e(INT)} {self.one('<', '=', '<>', '>=')} {e(INT)}",
                    f"{e(BOOL)} {self.one('&&', '||')} {e(BOOL)}",
                    f"not {e(BOOL)}",
                    f"{e(t)} {self.one('=', '<', '<>')} {e(t)}" if not self.reaches(t, "->") else "true",
                )
            case "string":
                t = self.any_type(1)
                return self.one(f"{e(STRING)} ++ {e(STRING)}", f"show {e(t)}", f'$"<{{{e(INT)}}}|{{{e(STRING)}}}>"')
            case "*":
                return ", ".join(e(t) for t in ty.args)
            case "->":
                p = self.fresh("p")
                return f"fun {self.parameter(p, ty.args[0])} -> {e(ty.args[1], scope.add((p, ty.args[0])))}"
            case "[]":
                return self.made_array(ty, scope, depth)
            case "list":
                return self.made_list(ty, scope, depth)
            case "option":
                return f"Some {e(ty.args[0])}" if self.often(75) else "None"
            case name if name in self.records:
                fields = self.records[name]
                if self.often(30):
                    f, t = self.one(*fields)
                    return f"{{ {e(ty)} with {f} = {e(t)} }}" if len(fields) > 1 else e(ty)
                return "{ " + "; ".join(f"{f} = {e(t)}" for f, t in fields) + " }"
            case name:
                constructor, inside = self.one(*self.datas[name])
                return constructor if inside is None else f"{constructor} {e(inside)}"

    def made_int(self, scope: Scope, depth: int) -> str:

        def e(t: Ty) -> str:
            return self.expression(t, scope, depth)

        t = self.any_type(1)
        return self.one(
            f"{e(INT)} {self.one('+', '-', '*')} {e(INT)}",
            f"{e(INT)} {self.one('/', '%')} {e(INT) if self.risky else self.dice.randint(2, 5)}",
            f"max {e(INT)} {e(INT)}",
            f"int (3.0 * tanh {e(FLOAT)})",
            f"length {e(array(t, self.dice.randint(1, 3)))}",
            f"List.length {e(list_of(t))}",
            f"argmax {e(array(FLOAT, 3))}",
            f"String.length {e(STRING)}",
            f"sum {e(array(INT, 3))}",
        )

    def made_float(self, scope: Scope, depth: int) -> str:

        def e(t: Ty = FLOAT, s: Scope = scope) -> str:
            return self.expression(t, s, depth)

        n = 19 if self.often(3) else self.dice.randint(1, 4)
        v = array(FLOAT, n)
        match self.dice.randrange(30):
            case 27 | 28 | 29 if self.datas:
                return self.taken_apart(FLOAT, scope, depth) if self.often(50) else self.totalled(scope, depth)
            case 22 | 23 | 24 if any(self.reaches(t, "float") and t != FLOAT for _, t in scope.vars):
                return self.taken_apart(FLOAT, scope, depth)
            case 25:
                return self.own_rule(scope, depth)
            case 26 if self.control:
                return self.controlled(scope, depth)
            case 0 | 1 | 2:
                return f"{self.one(*SMOOTH)} {e()}"
            case 3 | 4 | 5 | 6:
                return f"{e()} {self.one(*OPERATORS)} {e()}"
            case 7:
                return self.one(f"{e()} / (1.5 + {e()} ** 2)", f"sqrt (1.0 + {e()} ** 2)", f"log (2.0 + {e()} ** 2)")
            case 8:
                return f"{self.one('max', 'min', 'hypot', 'atan2', 'logaddexp')} {e()} {e()}"
            case 9:
                return f"{e()} ** {self.one('2', '3', '(-1)', '0', '2.0')}" if self.often(50) else f"float {e(INT)}"
            case 10 | 11:
                one = self.one("sum", "mean", "prod", "norm", "maximum", "minimum", "logsumexp", "var", "std")
                return f"{one} {e(v)}"
            case 12:
                return f"dot {e(v)} {e(v)}"
            case 13:
                return f"sum ({e(array(v, self.dice.randint(1, 3)))} @ {e(v)})"
            case 14:
                return f"{e(v)}[{self.index(n, scope, depth)}]"
            case 15 | 16:
                return self.derivative(scope, depth)
            case 17:
                fields = [(r, f) for r, fs in self.records.items() for f, t in fs if t == FLOAT]
                return f"{e(Ty((r := self.one(*fields))[0]))}.{r[1]}" if fields else f"damp {e()}"
            case 18 if scope.references:
                name = self.fresh("q")
                return f"let {name} = ref {e()} in {name} := !{name} * {e()}; !{name} + {e()}"
            case 19:
                a, b = self.fresh("a"), self.fresh("x")
                word, operator, start = self.one("reduce", "fold"), self.one("+", "*"), self.one("0.0", "1.0")
                return f"{word} (fun {a} {b} -> {a} {operator} {b}) {start} {e(v)}"
            case 20:
                t = self.any_type(1)
                return f"sum_by {e(function(t, FLOAT))} {e(list_of(t))}"
            case _:
                x = self.fresh("x")
                keep = self.expression(BOOL, scope.add((x, FLOAT)), depth)
                return f"sum (filter (fun {x} -> {keep}) {e(v)})"

    def derivative(self, scope: Scope, depth: int) -> str:
        """A derivative inside: of a function of a float, or of more."""
        x = self.fresh("x")
        pure = scope.pure()

        def body(t: Ty) -> str:
            return self.expression(FLOAT, pure.add((x, t)), depth)

        at = self.expression(FLOAT, scope, depth)
        match self.dice.randrange(8):
            case 6:
                back, t = self.fresh("k"), self.point_type()
                inside = scope.add((back, list_of(function(FLOAT, t))))
                point = self.expression(t, scope, depth)
                made = f"(fun ({x} : {t}) -> {self.expression(FLOAT, pure.add((x, t)), depth)})"
                other, use = self.expression(t, scope, depth), self.expression(FLOAT, inside, depth)
                return f"let {back} = [snd (vjp {made} {point}); snd (vjp {made} {other})] in {use}"
            case 7:
                a, b, t = self.fresh("a"), self.fresh("b"), self.point_type()
                result = self.point_type()
                body = self.expression(result, pure.add((x, t)), depth)
                use = self.expression(FLOAT, scope.add((a, result), (b, result)), depth)
                p = self.fresh("p")
                call = f"jvp (fun ({x} : {t}) -> {body}) {p} (Tree.map cos {p})"
                return f"let {p} = {self.expression(t, scope, depth)} in let ({a}, {b}) = {call} in {use}"
            case 0:
                return f"grad (fun ({x} : float) -> {body(FLOAT)}) {at}"
            case 1:
                return f"diff (fun ({x} : float) -> {body(FLOAT)}) {at}"
            case 2:
                return f"snd (jvp (fun ({x} : float) -> {body(FLOAT)}) {at} {self.expression(FLOAT, scope, depth)})"
            case 3:
                y, back = self.fresh("y"), self.fresh("k")
                inside = scope.add((y, FLOAT), (back, function(FLOAT, FLOAT)))
                use = self.expression(FLOAT, inside, depth)
                return f"let ({y}, {back}) = vjp (fun ({x} : float) -> {body(FLOAT)}) {at} in {back} {y} + {back} {use}"
            case 4:
                return f"checkpoint (fun ({x} : float) -> {body(FLOAT)}) {at}"
            case _:
                t = self.point_type()
                g = self.fresh("g")
                use = self.expression(FLOAT, scope.add((g, t)), depth)
                return f"let {g} = grad (fun ({x} : {t}) -> {body(t)}) {self.expression(t, scope, depth)} in {use}"

    def totalled(self, scope: Scope, depth: int) -> str:
        functions = [(f, t) for f, t in scope.vars if t.name == "->"]
        folds = [(f, t.args[0]) for f, t in functions if t.args[0].name in self.datas and t.args[1] == FLOAT]
        if not folds:
            return self.expression(FLOAT, scope, depth)
        f, t = self.one(*folds)
        return f"{f} {self.expression(t, scope, depth)}"

    def own_rule(self, scope: Scope, depth: int) -> str:
        """A function of a float with its derivative by hand, which is right."""
        x, d = self.fresh("x"), self.fresh("d")
        at = self.expression(FLOAT, scope, depth)
        return self.one(
            f"with_jvp (fun {x} -> {x} * {x}) (fun {x} {d} -> ({x} * {x}, 2.0 * {x} * {d})) {at}",
            f"with_vjp (fun {x} -> sin {x}) (fun {x} -> (sin {x}, fun {d} -> cos {x} * {d})) {at}",
        )

    def controlled(self, scope: Scope, depth: int) -> str:
        k, c = self.fresh("k"), self.fresh("c")

        def e(s: Scope = scope) -> str:
            return self.expression(FLOAT, s, depth)

        inside = scope.add((c, FLOAT))
        return self.one(
            f"reset (let {c} = shift {k} -> {e()} * {k} {e()} + {k} {e()} in {e(inside)})",
            f"reset (let {c} = shift {k} -> {k} (damp ({k} {e()})) in {e(inside)})",
            f"reset (let {c} = (if {self.expression(BOOL, scope, depth)}"
            f" then shift {k} -> {e()} else {e()}) in {e(inside)})",
        )

    def made_array(self, ty: Ty, scope: Scope, depth: int) -> str:
        (item,), n = ty.args, ty.size

        def e(t: Ty = ty, s: Scope = scope) -> str:
            return self.expression(t, s, depth)

        i, x = self.fresh("i"), self.fresh("x")

        def from_index() -> str:
            return self.expression(item, scope.add((i, INT)), depth)

        numeric = self.rank_of_floats(ty)
        match self.dice.randrange(14 if numeric else 9):
            case 0 | 1 if n < 10:
                return f"[{', '.join(e(item) for _ in range(n))}]"
            case 2 | 3:
                return f"[for {i} < {n} -> {from_index()}]"
            case 4:
                return f"{{ {e()} with [{self.index(n, scope, depth)}] = {e(item)} }}"
            case 5:
                t = self.any_type(1)
                body = self.expression(item, scope.add((x, t)), depth)
                return f"map (fun {self.parameter(x, t)} -> {body}) {e(array(t, n))}"
            case 6:
                return f"[for {x} in {e()} -> {self.expression(item, scope.add((x, item)), depth)}]"
            case 7:
                return self.one(
                    f"reverse {e()}", f"fill {n} {e(item)}", f"scan (fun {i} {x} -> {x}) {e(item)} {e()}",
                    f"{e(array(item, n + 2))}[1:{n + 1}]",
                    f"gather {e(array(item, 3))} (map (fun {i} -> {i} % 3) {e(array(INT, n))})",
                    f"scatter {e()} [0, {n - 1}] {e(array(item, 2))}",
                    f"mapi (fun {i} {self.parameter(x, item)} ->"
                    f" {self.expression(item, scope.add((i, INT), (x, item)), depth)}) {e()}",
                    f"[for {x} in zip {e()} {e()} -> {self.one('fst', 'snd')} {x}]",
                    f"tabulate {n} (fun {i} -> {from_index()}) :> {ty}",
                    self.updated(ty, scope, depth),
                )  # fmt: skip
            case 8:
                if n > 1:
                    k = self.dice.randint(1, n - 1)
                    return f"{e(array(item, k))} ++ {e(array(item, n - k))}"
                return f"[for {i} < {n} -> {from_index()}]"
            case 9 | 10:
                return f"{e()} {self.one(*OPERATORS)} {self.one(e, lambda: e(FLOAT), lambda: e(item))()}"
            case 11:
                return f"{self.one('sin', 'tanh', 'damp', '-', 'relu')} {e()}"
            case 12 if numeric == 1:
                k = self.dice.randint(1, 3)
                return self.one(
                    f"{e(array(array(FLOAT, k), n))} @ {e(array(FLOAT, k))}",
                    f"{e(array(FLOAT, k))} @ {e(array(array(FLOAT, n), k))}",
                    f"sum {e(array(ty, k))}",
                    f"softmax {e()}",
                    f"sort {e()}",
                    f"cumsum {e()}",
                    f"cumprod {e()}",
                    f"{e(array(array(FLOAT, k), n))}[:, {self.dice.randrange(k)}]",
                    f"{e(array(ty, k))}[{self.dice.randrange(k)}]",
                    f"scatter_add {e()} [0, {n - 1}] {e(array(FLOAT, 2))}",
                )
            case 12 if numeric == 2:
                m, k = item.size, self.dice.randint(1, 3)
                return self.one(
                    f"{e(array(array(FLOAT, k), n))} @ {e(array(array(FLOAT, m), k))}",
                    f"transpose {e(array(array(FLOAT, n), m))}",
                    f"outer {e(array(FLOAT, n))} {e(array(FLOAT, m))}",
                    f"{{ {e()} with [{self.dice.randrange(n)}, {self.index(m, scope, depth)}] = {e(FLOAT)} }}",
                    f"[for {i} < {n}, {x} < {m} -> {self.expression(FLOAT, scope.add((i, INT), (x, INT)), depth)}]",
                )
            case _:
                return f"grad (fun ({x} : {ty}) -> {self.expression(FLOAT, scope.pure().add((x, ty)), depth)}) {e()}"

    def updated(self, ty: Ty, scope: Scope, depth: int) -> str:
        """An array filled by a loop that reads what it writes."""
        a, i = self.fresh("a"), self.fresh("i")
        inside = scope.add((a, ty), (i, INT), (self.fresh("z"), ty.args[0]))
        z = inside.vars[-1][0]
        n = ty.size
        return (
            f"loop {a} = {self.expression(ty, scope, depth)} for {i} < {self.dice.randint(1, 4)} do "
            f"let {z} = {a}[{i} % {n}] in "
            f"{{ {a} with [({i} + {self.dice.randrange(3)}) % {n}] = {self.expression(ty.args[0], inside, depth)} }}"
        )

    def rank_of_floats(self, ty: Ty) -> int:
        """The rank of an array of floats; 0 for all else."""
        rank = 0
        while ty.name == "[]":
            rank, ty = rank + 1, ty.args[0]
        return rank if ty == FLOAT else 0

    def made_list(self, ty: Ty, scope: Scope, depth: int) -> str:
        (item,) = ty.args

        def e(t: Ty = ty, s: Scope = scope) -> str:
            return self.expression(t, s, depth)

        x, t = self.fresh("x"), self.any_type(1)
        return self.one(
            f"[{e(item)};]",
            f"[{e(item)}; {e(item)}]",
            f"{e(item)} :: {e()}",
            f"{e()} ++ {e()}",
            f"List.rev {e()}",
            f"List.map (fun {self.parameter(x, t)} ->"
            f" {self.expression(item, scope.add((x, t)), depth)}) {e(list_of(t))}",
            f"List.filter (fun {self.parameter(x, item)} ->"
            f" {self.expression(BOOL, scope.add((x, item)), depth)}) {e()}",
        )
