"""What grows with a program, and how fast: counted, not timed.  `benchmarks/growth.py` measures the seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from dpl.core import ty as t
from dpl.core.promising import is_repeatable, promising, reads_arguments
from dpl.node import replace
from dpl.source import Source
from dplc.ad.reverse.branch import Branch
from dplc.flat import affine, interp
from dplc.flat import term as f
from dplc.flat.affine import Affine
from dplc.flat.dims import Dims
from dplc.flat.places import Inlined
from dplc.flat.types import width
from dplc.flat.walk import every
from dplc.passes.closures.set_types import Datas
from dplc.passes.lower import decision_trees
from dplc.passes.parallel import common_work
from dplc.pipeline import NAMES, Context, compile_from, compile_to
from dplc.stack import on_large_stack

GRADIENTS = Path(__file__).parents[2] / "agree" / "gradients"


def compiled(stage: str, text: str) -> f.Program:
    source = Source("main.dp", text)
    return on_large_stack(lambda: compile_to(stage, source, Context(verify=False))[1])


def size(program: f.Program) -> int:
    return sum(1 for fn in program.fns.values() for _ in every(fn.body))


def stored(program: f.Program) -> int:
    """The numbers that the constructions of data in a program store."""
    made = (bind.rhs.arg for fn in program.fns.values() for bind in every(fn.body) if isinstance(bind.rhs, f.ConMake))
    return sum(width(arg.ty) for arg in made if arg is not None)


def chain(n: int, first: str, step: str, last: str) -> str:
    lines = [step.replace("#", str(i)).replace("@", str(i - 1)) for i in range(1, n)]
    return "\n".join([first, *lines, last.replace("#", str(n - 1))])


class Walked(list):
    """A list that counts how often one goes through it."""

    walks = 0

    def __iter__(self):
        self.walks += 1
        return super().__iter__()


CHAINS = {
    "calls": lambda n: chain(n, "let f0 x = x / 2", "let f# x = # / f@ (x + 1)", "do print (f# 25)"),
    "functions of functions": lambda n: chain(
        n, "let f0 g x = g x", "let f# g x = f@ (fun y -> g y + #.0) x", "do print (f# (fun x -> x) 1.0)"),
    "ctl": lambda n: chain(
        n, "let f0 x = shift k -> k x + 1.0", "let f# x = f@ x * 0.5 + #.0", "do print (reset (f# 1.0))"),
    "local functions": lambda n: chain(
        n, "let f x = let g0 x = x + 1 in", "let g# x = g@ x + 1 in", "g# x\ndo print (f 1)"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_is_lowered_to_code_of_its_length(name: str) -> None:
    small, large = (size(compiled("lower", CHAINS[name](n))) for n in (40, 80))
    assert large < 2.2 * small, (small, large)


@pytest.mark.parametrize("last", ["grad f0 1.0", "jvp f0 1.0 2.0", "Ad.jet 2 f0 1.0"])
def test_a_chain_of_calls_for_constants_and_variables_has_few_derivatives(last: str) -> None:
    """Each function has twice the activities of the one before."""

    def chain(n: int) -> str:
        ys = [" ".join(f"y{k}" for k in range(i)) for i in range(n + 1)]
        calls = (f"let f{i} x {ys[i]} = f{i + 1} x {ys[i]} (x * {i}.5) + f{i + 1} x {ys[i]} 1.0" for i in range(n))
        end = f"let f{n} x {ys[n]} = sin ({ys[n].replace(' ', ' * ')}) * x"
        return "\n".join([end, *reversed(list(calls)), f"do print ({last})\n"])

    counts = [len(compiled("differentiate", chain(n)).fns) for n in (5, 8)]
    assert counts[1] < 2.5 * counts[0], counts


def test_the_forward_code_of_a_branch_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each branch around it asks for it, for itself and for what is around that."""
    written: list[object] = []
    filled = Branch.filled
    monkeypatch.setattr(Branch, "filled", lambda self, i: written.append(0) or filled(self, i))
    counts = []
    for n in (8, 16):
        arms = "".join(f"match h (x * {i}.5 + 0.1) with None -> 0.0 | Some y{i} -> " for i in range(n))
        last = " + ".join(f"y{i}" for i in range(n))
        text = f"let h x = if x > 0.0 then Some (sin x) else None\nlet f x = {arms}{last}\ndo print (grad f 1.0)\n"
        written.clear()
        compiled("differentiate", text)
        counts.append(len(written))
    assert counts[1] < 2.2 * counts[0], counts


def test_inlined_operations_share_their_paths() -> None:
    program = compiled("simplify2", CHAINS["calls"](100))
    spans = [s for bind in every(program.fns["main"].body) if isinstance(s := getattr(bind.rhs, "span", None), Inlined)]
    paths: dict[int, object] = {}
    for span in spans:
        while isinstance(span, Inlined) and id(span) not in paths:
            paths[id(span)] = span
            span = span.caller
    assert len(spans) > 90 and len(paths) < 3 * len(spans), (len(spans), len(paths))


def test_branches_in_branches_on_an_index_ask_the_nearest_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each says something of the index, and each comparison asks what is known of it."""
    counts = []
    least = Affine.least
    monkeypatch.setattr(affine, "ASKED", 8)
    for n in (40, 80):
        asked: list[object] = []
        monkeypatch.setattr(Affine, "least", lambda self, total, asked=asked: asked.append(0) or least(self, total))
        branches = " else ".join(f"if i = {i} then {i}7" for i in range(n))
        compiled("value_ranges", f"let f (k : int) = loop s = 0 for i < k do s + ({branches} else s)\ndo print (f 7)\n")
        counts.append(len(asked))
    assert counts[0] > 500 and counts[1] < 2.2 * counts[0], counts


@pytest.mark.parametrize("stage", ["value_ranges", "bounds"])
def test_numbers_cut_off_by_one_another_are_looked_through_a_few_times(
    stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a network that sorts: each is the lesser or greater one of two, which both come from the two before."""
    counts = []
    least = Affine.least
    for n in (12, 24):
        asked: list[object] = []
        monkeypatch.setattr(Affine, "least", lambda self, total, asked=asked: asked.append(0) or least(self, total))
        steps = "\n".join(f"  let (a, b) = (min a b, max a (b - {k % 3})) in" for k in range(n))
        read = "xs[max 0 (min a (n - 1))] * xs[clip b 0 (n - 1)]"
        head = "let f (k : int) (xs : float[n]) = sum [for i < n ->\n  let (a, b) = (i, k) in"
        kept = "let at = [a, b, 3] in xs[clip at[i] 0 (n - 1)]"
        compiled(stage, f"{head}\n{steps}\n  {read} * ({kept})]\ndo print (f 5 [1.0, 2.0], grad (f 5) [3.0, 4.0])\n")
        counts.append(len(asked))
    assert counts[0] > 500 and counts[1] < 2.3 * counts[0], counts


@pytest.mark.parametrize("step", ["float i * #.5", "sin a@[i] * #.5"])
def test_comprehensions_that_become_one_loop_are_gone_through_once(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    key = common_work.result_of
    for n in (20, 40):
        seen: list[object] = []
        monkeypatch.setattr(common_work, "result_of", lambda rhs, seen=seen: seen.append(0) or key(rhs))
        sums = " + ".join(f"sum a{i}" for i in range(n))
        first = "let f (k : int) = let a0 = [for i < k -> float i] in"
        compiled("join", chain(n, first, f"let a# = [for i < k -> {step}] in", f"{sums}\ndo print (f 7)"))
        counts.append(len(seen))
    assert counts[0] > 20 and counts[1] < 2.2 * counts[0], counts


def test_what_a_program_reaches_is_found_in_two_walks_over_its_items() -> None:
    text = chain(50, "let x0 = 1", "let x# = x@ + 1", "do print x#")
    program = compiled("check", text)
    for asked in (promising, is_repeatable, reads_arguments):
        items = Walked(program.items)
        assert asked(replace(program, items=items)) == (asked is not reads_arguments)
        assert items.walks == 2  # for the names, and for the items


def test_what_a_record_mentions_is_found_in_one_walk_over_its_fields() -> None:
    fields = "; ".join(f"f{i} : float" for i in range(9))
    program = compiled("mono", f"type r = {{ {fields} }}\nlet g (s : r) = s.f0 + s.f8\ndo print g\n")
    (name,) = [name for name, data in program.datas.items() if len(data.fields) == 9]
    cases = Walked(program.datas[name].cases)
    datas = Datas({name: replace(program.datas[name], cases=cases)})
    assert all(datas.unboxed(t.Con(name)) for _ in range(5)) and cases.walks == 1


def test_one_group_of_functions_is_merged_without_copies() -> None:
    def ring(n: int) -> str:
        return "let rec g0 x = if x <= 0 then 0 else g1 (x - 1)\n" + "".join(
            f"and g{i} x = if x <= 0 then {i} else g{(i + 1) % n} (x - 1)\n" for i in range(1, n)
        ) + "do print (g0 150)\n"  # fmt: skip

    made: list[int] = []
    for n in (50, 100):
        supplied = [int(v.name.rpartition(".")[2]) for fn in compiled("mutual", ring(n)).fns.values()
                    for bind in every(fn.body) for v in bind.vars]  # fmt: skip
        made.append(max(supplied))
    assert made[1] < 2.2 * made[0], made


DEEP: dict[str, Callable[[int], str]] = {
    "else if": lambda n: (
        f"let f x = {' '.join(f'if x = {i} then {i} else' for i in range(n))} 0\n"
        "do List.iter (fun n -> print (f n)) [7; 70]\n"
    ),
    "if": lambda n: (
        f"let f x = {' '.join(f'if x > {i} then' for i in range(n))} 1 "
        f"{' '.join(f'else {i}' for i in range(n))}\ndo List.iter (fun n -> print (f n)) [7; 70]\n"
    ),
}


@pytest.mark.parametrize("name", DEEP)
@pytest.mark.parametrize("n", [200, pytest.param(3000, marks=pytest.mark.slow)])
def test_deep_branches_run_in_both_engines(dpl, tmp_path, name: str, n: int) -> None:
    (tmp_path / "deep.dp").write_text(DEEP[name](n), encoding="utf-8")
    native, interp = (dpl("run", "--engine", engine, "deep.dp", cwd=tmp_path) for engine in ("native", "interp"))
    assert (native.returncode, native.stderr) == (0, "") and native.stdout == interp.stdout


EACH = "do List.iter (fun x -> print (f x)) [0; 3; 4; 6; 9; 40]\n"
GUARDED = (" | ", "({i}, y)"), (" && ", "y * {i} <> x + {i}")
PARTS: dict[str, Callable[[int], str]] = {  # tests now one part, now the other
    "arms": lambda n: " | ".join(f"({i}, y) when y > {i} -> y * {i} | (a, {i}) when a < 5 -> a" for i in range(n)),
    "alternatives": lambda n:
        f"{' | '.join(f'({i}, y) | (y, {i})' for i in range(n))} -> y * y * y + y * y + y * x",
    "alternatives with a guard": lambda n:
        f"{' | '.join(f'({i}, y) | (y, {i})' for i in range(n))} when y > 3 -> (loop s = y for i < 2 do"
        " s * x + (match (s, i) with (0, z) | (z, 1) when z > y -> z | _ -> y))",
}  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_rows_that_test_parts_in_turns_are_lowered_to_code_of_their_number(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one tree, each leaf of the first part would have all tests of the second."""

    def program(n: int) -> str:
        return f"let f x = match (x, 9 - x) with {PARTS[name](n)} | _ -> 77\n{EACH}"

    small, large = (size(compiled("lower", program(n))) for n in (40, 80))
    assert large < 2.3 * small, (small, large)
    expected = interp.run(compiled("lower", program(6)))
    assert name != "arms" or expected.split() == ["0", "18", "20", "77", "77", "77"]
    monkeypatch.setattr(decision_trees, "LEAVES", (2, 0))
    assert interp.run(compiled("lower", program(6))) == expected


def test_alternatives_beside_each_other_are_lowered_to_code_of_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not to rows for all that they can be together."""

    def program(n: int) -> str:
        parts, tests = (", ".join(text.format(i=i) for i in range(n)) for text in ("x - {i}", "({i} | 3 | 4 | 6 | 9)"))
        return f"let f x = match ({parts}) with ({tests}) when x > 3 -> x | ({tests}) -> 1 | _ -> 77\n{EACH}"

    small, large = (size(compiled("lower", program(n))) for n in (10, 20))
    assert large < 2.3 * small, (small, large)
    expected = interp.run(compiled("lower", program(2)))
    monkeypatch.setattr(decision_trees, "ROWS", 1)
    assert interp.run(compiled("lower", program(2))) == expected


def test_a_guard_of_many_alternatives_is_lowered_once() -> None:
    def program(n: int) -> str:
        tests, guard = (between.join(text.format(i=i) for i in range(n)) for between, text in GUARDED)
        return f"let f x = match (x, 9 - x) with {tests} when {guard} -> y | _ -> 77\n{EACH}"

    small, large = (size(compiled("lower", program(n))) for n in (20, 40))
    assert large < 2.3 * small, (small, large)


def test_arms_that_test_three_parts_are_checked_in_steps_by_pairs_of_them() -> None:
    """A part that no constructor shows decides what is missing; the other parts are not searched for that."""

    def program(n: int) -> str:
        arms = " | ".join(f"({i}, _, _) -> x | (_, {i}, b) -> b | (a, _, {i}) -> a" for i in range(n))
        return f"let f x = match (x, x + 1, x + 2) with {arms} | _ -> 77\n{EACH}"

    small, large = (steps("load", "check", program(n)) for n in (20, 40))
    assert large < 4 * small, (small, large)


NESTED = "let rec f0 (n : int) x = if n = 0 then x else sin (f0 (n - 1) x) * x"


def test_nested_gradients_of_a_recursion_have_no_copies_of_its_first_step() -> None:
    """The copies would be inlined where the derivative is taken."""
    program = compiled("simplify2", chain(4, NESTED, "let f# (n : int) x = grad (f@ n) x", "do print (f# 5 0.5)"))
    main = sum(1 for _ in every(program.fns["main"].body))
    assert main < 40 and size(program) < 900, (main, size(program))


def test_the_gradient_of_a_recursion_of_many_arms_has_code_of_their_number() -> None:
    def program(n: int) -> str:
        arms = "\n".join(f"  else if k = {i} then x * {i}.5 + sin (f x (k - 1)) * f x (k - 2)" for i in range(2, n))
        body = f"  if k < 2 then x\n{arms}\n  else cos (f x (k / 2))"
        return f"let rec f x k =\n{body}\ndo print (grad (fun x -> f x 8) 0.3)"

    small, large = (steps("mono", "differentiate", program(n)) for n in (16, 32))
    assert large < 2.5 * small, (small, large)


def steps(start: str, stage: str, text: str) -> int:
    """How many functions of Python are entered or resumed after the stage `start`, to another one."""
    program = compiled(start, text)
    return on_large_stack(lambda: calls(lambda: compile_from(start, program, stage, Context(verify=False))))


def calls(work: Callable[[], object]) -> int:
    """How many functions of Python are entered or resumed."""
    entered = 0

    def count(_frame: object, event: str, _what: object) -> None:
        nonlocal entered
        entered += event == "call"

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return entered


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_is_simplified_in_steps_by_its_length(name: str) -> None:
    """A function that is called once is not simplified again in each function around it."""
    small, large = (steps("tail_calls", "simplify", CHAINS[name](n)) for n in (20, 60))
    assert large < 3.6 * small, (small, large)


GROUPS: dict[str, Callable[[int], str]] = {
    "ring": lambda n: "let rec g0 (i : int) x = if i = 0 then x else g1 (i - 1) x\n" + "".join(
        f"and g{i} (i : int) x = if i = 0 then {i}.0 else g{(i + 1) % n} (i - 1) x\n" for i in range(1, n)),
    "all call all, with a derivative": lambda n: "let rec " + "and ".join(
        f"g{i} (i : int) (x : float) : float = if i = 0 then grad sin x else "
        f"{' + '.join(f'g{k} (i - 1) x' for k in range(n))}\n" for i in range(n)),
}  # fmt: skip


@pytest.mark.parametrize(("name", "n", "most"), [("ring", 20, 2.5), ("all call all, with a derivative", 4, 7)])
def test_a_group_of_functions_is_checked_in_steps_by_its_calls(name: str, n: int, most: float) -> None:
    small, large = (steps("load", "check", GROUPS[name](k)) for k in (n, 2 * n))
    assert large < most * small, (small, large)


def test_parameters_of_any_type_take_steps_by_their_number() -> None:
    """A call tells one argument after the other, and each concerns the sum of all."""

    def program(n: int) -> str:
        names = [f"x{i}" for i in range(n)]
        return f"let f {' '.join(names)} = {' + '.join(names)}\ndo print (f {' '.join(f'{i}.0' for i in range(n))})\n"

    small, large = (steps("load", "lower", program(n)) for n in (40, 80))
    assert large < 2.6 * small, (small, large)


def test_updates_of_a_record_take_steps_by_their_number() -> None:
    """The fields that an update keeps are not named, neither in core nor in what follows."""

    def program(n: int) -> str:
        types, values = ("; ".join(f"f{i} {sign}" for i in range(n)) for sign in (": float", "= 0.5"))
        updates = " ".join(f"let s{i} = {{ s{i - 1} with f{i} = s{i - 1}.f{i} * 0.5 }} in" for i in range(1, n))
        return f"type r = {{ {types} }}\nlet g (s0 : r) = {updates} s{n - 1}.f7\ndo print (g {{ {values} }})\n"

    small, large = (steps("load", "simplify", program(n)) for n in (20, 40))
    assert large < 2.3 * small, (small, large)


def test_nested_branches_take_steps_by_their_number() -> None:
    def nested(n: int) -> str:
        chosen = "".join(f"if x = {i} then {i}.5 else " for i in range(n))
        return f"let f x = {chosen} 0.5\ndo print (f 5)\ndo print (f 6)\n"

    small, large = (steps("fuse", "reference_counts", nested(n)) for n in (60, 120))
    assert large < 2.2 * small, (small, large)


def test_merged_functions_are_outlined_in_steps_by_their_number() -> None:
    def ring(n: int) -> str:
        rest = "\n".join(f"and g{i} x = if x <= 0.0 then {i}.0 else g{(i + 1) % n} (x - 1.0)" for i in range(1, n))
        return f"let rec g0 x = if x <= 0.0 then x else g1 (x - 1.0)\n{rest}\ndo print (g0 5.0)\n"

    small, large = (steps("fuse", "outline", ring(n)) for n in (60, 120))
    assert large < 2.3 * small, (small, large)


def in_each_other(n: int, start: str, step: str, inmost: str, end: str) -> str:
    """`n` loops in each other: a step for `#` begins with the state `@` of the loop around."""
    opened = "".join(step.replace("#", str(i)).replace("@", str(i - 1)) for i in range(1, n + 1))
    closed = "".join(end.replace("#", str(i)) for i in reversed(range(1, n + 1)))
    return f"let f (k : int) {start} = {opened}{inmost.replace('#', str(n))}{closed}\n"


LOOPS: dict[str, Callable[[int], str]] = {
    "printing": lambda n: in_each_other(
        n, "(s0 : int)", "(loop _ = () for s# < k do (print (s@ + s#); ", "()", "))") + "do f 2 1\n",
    "pairs, forward": lambda n: in_each_other(
        n, "(s0 : float) (t0 : float)", "let (p#, q#) = (loop (s#, t#) = (s@, t@) for _ < k do ",
        "(t# * 0.5 + sin s0, s#)", ") in (q#, p# * s0)") + "do print (jvp (fun x -> fst (f 2 x 0.0)) 2.0 1.0)\n",
    "updates, reverse": lambda n: in_each_other(
        n, "(a0 : float[m])", "(loop a# = a@ for i# < k do ", "{ a# with [i1] = a#[i#] * 0.5 }", ")")
    + "do print (grad (fun a -> sum (f 2 a) + sum (f 1 a)) [1.0, 2.0])\n",
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_loops_in_loops_take_steps_by_their_depth(name: str) -> None:
    """Assumptions about a loop that turn out wrong are not made again whenever a loop around it is looked at again."""
    small, large = (steps("mono", "reference_counts", LOOPS[name](n)) for n in (6, 12))
    assert large < 3 * small, (small, large)


def test_the_dimensions_of_what_a_branch_gives_take_steps_by_their_number() -> None:
    def chosen(n: int) -> str:
        arms = [", ".join(f"[for i < m -> x[i] * {k}.{half}]" for k in range(n)) for half in (0, 5)]
        names = [f"a{k}" for k in range(n)]
        return (
            f"let f (x : float[m]) = let ({', '.join(names)}) = (if x[0] > 1.0 then ({arms[0]}) else ({arms[1]})) in\n"
            f"  print [{', '.join(f'sum {name}' for name in names)}]\ndo List.iter f [[1.0, 2.0]; [3.0, 4.0]]\n"
        )

    def walked(n: int) -> int:
        bodies = [fn.body for fn in compiled("simplify", chosen(n)).fns.values()]
        assert any(isinstance(b.rhs, f.If) and len(b.vars) == n for body in bodies for b in every(body))
        return calls(lambda: [Dims(body) for body in bodies])

    small, large = walked(10), walked(20)
    assert large < 2.2 * small, (small, large)


QUIET = ("fold_transposes", "accumulate", "fuse", "columns", "nan_guards")


def test_passes_leave_code_that_has_none_of_their_kinds() -> None:
    """Branches on numbers, without arrays and guards: steps by the functions, not by their length."""

    def branches(n: int) -> str:
        arms = "\n".join(f"  else if x > {k}.0 then sin x * {k}.0 else if x < -{k}.0 then cos x" for k in range(1, n))
        return f"let f x = if x > 99.0 then exp x\n{arms}\n  else x\ndo print (f 2.0 + f 3.0 + f 4.0)"

    def steps_of(n: int) -> dict[str, int]:
        program, found, before = compiled("doall", branches(n)), {}, "doall"
        for stage in NAMES[NAMES.index(before) + 1 : NAMES.index("nan_guards") + 1]:
            made, of = [], (before, program, stage, Context(verify=False))
            found[stage] = on_large_stack(lambda of=of, made=made: calls(lambda: made.append(compile_from(*of)[1])))
            before, program = stage, made[0]
        return found

    _, small, large = steps_of(1), steps_of(2), steps_of(12)  # the first one imports the stages
    for name in QUIET:
        assert large[name] < small[name] + 60, (name, small[name], large[name])


def test_a_sum_of_sums_is_written_once() -> None:
    """Also one of so few numbers that they stay in registers: its points are not all written in a row."""

    def lines(n: int) -> int:
        points = f"[for k < {n} -> (x[i, 0] - sum [for r < 5 -> x[i, r] * x[j, r] * y[k, r]]) ** 2]"
        text, _ = compiled(
            "llvm",
            f"""
let f x y = sum [for i < {n} -> sum [for j < {n} -> sum {points}]]
do print (f [for i < {n}, r < 5 -> sin (float (i + r))] [for i < {n}, r < 5 -> cos (float (i + r))])
""",
        )
        return text.count("\n")

    few, many = lines(20), lines(40)
    assert few < 1.2 * many, (few, many)


def test_comprehensions_beside_each_other_are_loops_of_few_results() -> None:
    """Those of one length have common work; all in one, LLVM would compare the places of all of them."""

    def widest(n: int) -> int:
        made = "\n".join(f"let a{i} = [for i < k -> float i * {i}.5] in" for i in range(n))
        total = " + ".join(f"sum a{i}" for i in range(n))
        program = compiled("join", f"let f (k : int) =\n{made}\n{total}\ndo print (f 7)")
        return max(len(b.rhs.outs) for fn in program.fns.values() for b in every(fn.body) if isinstance(b.rhs, f.Par))

    assert widest(8) == 8 and widest(80) < 40


def test_continuations_called_twice_have_derivatives_of_few_lines() -> None:
    def derivative(n: int) -> f.Program:
        each = "\n".join(f"let y{i} = shift k -> k (x * {i}.5) + k 1.0 in" for i in range(n))
        product = " * ".join(f"y{i}" for i in range(n))
        return compiled("needed_results", f"let f x = reset ({each} {product})\ndo print (grad f 1.0)")

    few, many = size(derivative(12)), derivative(24)
    assert size(many) < 4 * few and stored(many) < 3000, (few, size(many), stored(many))


def test_a_second_derivative_of_an_interpreter_is_written_once_for_each_sweep() -> None:
    text = (GRADIENTS / "interpreter.dp").read_text(encoding="utf-8")
    program = compiled("differentiate", f"{text}\ndo print (jvp (grad f) x0 x0)")
    sweeps = [name for name in program.fns if name.startswith("eval.") and ".bwd" in name and ".jvp" in name]
    assert len(sweeps) == len({name.partition(".jvp")[0] for name in sweeps}), sweeps
