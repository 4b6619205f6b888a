"""Programs as other programs write them: hundreds of parameters, fields, arms, definitions, and deep ones."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
from doubt.agreement import same
from doubt.oracle import DONE, INTERP, NATIVE, Oracle
from dpl.syntax.errors.brackets import DEEPEST

N = 300


def words(text: str, n: int = N, between: str = " ") -> str:
    return between.join(text.replace("#", str(i)) for i in range(n))


STRINGS = words("| 's#' -> #")
PROGRAMS = {
    "parameters": f"let f {words('x#')} = {words('x#', between=' + ')}\ndo print (f {words('#')})\n"
    f"let g = f {words('#', N - 1)}\ndo print (List.map g [1; 2])\n",
    "captures": f"let h {words('c#', 100)} = [(fun x -> x + {words('c#', 100, ' + ')}); (fun x -> x * 2.0)]\n"
    f"do print (grad (fun z -> List.fold (fun a f -> a + f z) 0.0 (h {words('z', 100)})) 1.0)\n",
    "fields": f"type r = {{ {words('f# : float', between='; ')} }}\nlet r = {{ {words('f# = #.5', between='; ')} }}\n"
    f"let g (s : r) = {words('s.f# * s.f#', between=' + ')}\ndo print ((grad g r).f7, {{ r with f1 = 7.0 }}.f1)\n",
    "tuple": f"let g ({words('x#', between=', ')}) = {words('x# * x#', between=' + ')}\n"
    f"do print (grad g ({words('#.5', between=', ')}))\n",
    "state": f"let f x = loop ({words('x#', 100, ', ')}) = ({words('x', 100, ', ')}) for i < 5 do"
    f" ({words('sin x#', 99, ', ')}, x0)\ndo print (grad (fun x -> let ({words('y#', 100, ', ')}) = f x in y7) 0.3)\n",
    "arguments of a recursion": f"let rec f ({words('x#', 100, ', ')}) k = if k = 0 then x0 else"
    f" 1.0 * f ({words('sin x#', 100, ', ')}) (k - 1)\ndo print (grad (fun x -> f ({words('x', 100, ', ')}) 5) 0.3)\n",
    "constructors": f"type t = {words('C# of float', between=' | ')}\n"
    f"let f x = match x with {words('C# y -> y * #.0', between=' | ')}\ndo print (f (C7 2.0), grad f (C299 2.0))\n",
    "strings in a match": f"let f x = match x with {STRINGS} | _ -> -1\n".replace("'", '"') + 'do print (f "s7")\n',
    "functions that call each other": "let rec g0 x = if x <= 0 then 0 else g1 (x - 1)\n"
    + "".join(f"and g{i} x = if x <= 0 then {i} else g{(i + 1) % 100} (x - 1)\n" for i in range(1, 100))
    + "do print (g0 150)\n",
    "a chain of functions": "let g0 x = x + 1.0\n"
    + "".join(f"let g{i} x = g{i - 1} x * 0.5 + {i}.0\n" for i in range(1, N)) + f"do print (grad g{N - 1} 3.0)\n",
    "a chain of local functions": "do print (let g0 x = x + 1 in "
    + "".join(f"let g{i} x = g{i - 1} x + 1 in " for i in range(1, 100)) + "g99 3)\n",
    "functions": f"let fs = [{words('(fun x -> x + #.0)', between='; ')}]\n"
    "do print (grad (fun z -> List.fold (fun a f -> a * 0.5 + f z) 0.0 fs) 1.0)\n",
    "comparisons": f"let a = [1.0, 2.0]\ndo print ({words('a = a', 100, ' && ')})\n",
    "captures in a row": "let flip p = shift k -> p * k true + (1.0 - p) * k false\nlet f p = reset (let a0 = p in "
    + "".join(f"let a{i} = if flip p then a{i - 1} + p else a{i - 1} in " for i in range(1, 14)) + "a13)\n"
    "do print (grad f 0.5, diff f 0.5)\n",
    "twice as many calls in each": "let f0 x = sin x * exp x\n"
    + "".join(f"let f{i} x = if x > 9.0 then x else f{i - 1} x * f{i - 1} (1.0 - x)\n" for i in range(1, 13))
    + "do print (grad f12 0.5)\n",
    "calls of what is unknown in each other": f"let g f x = {'f 1.0 (' * 40}f 1.0 x{')' * 40}\n"
    "do print (g (fun a b -> a + b) 1.0)\n",
    "recursions in arguments": "let f x = (let rec go n k = if n <= 0 then k else go (n - 1) k in"
    " go 1 (let rec on n y = if n <= 0 then y else on (n - 1) (y * 0.5) in on 1 x))\ndo print (f 2.0)\n",
    "operators": f"let f (x : float[n]) = sum ({words('#.0 * x', between=' + ')})\ndo print (grad f [1.5, 2.0])\n",
    "operators in each other": f"let f x = {'sin (' * 900}x{')' * 900}\ndo print (f 0.1, grad f 0.1)\n",
}  # fmt: skip


@cache
def oracle() -> Oracle:
    return Oracle()


@pytest.fixture(scope="module", autouse=True)
def nobody_is_left() -> Iterator[None]:
    yield
    if oracle().child:
        oracle().stop()


@pytest.mark.parametrize("name", PROGRAMS)
def test_large(name: str) -> None:
    interp, native = (oracle().ask(engine, PROGRAMS[name]) for engine in (INTERP, NATIVE))
    assert interp.end == native.end == DONE, (interp, native)
    assert interp.output and same(interp.output, native.output, 1e-9), (interp.output, native.output)


DEEP = {
    "parentheses": ("do print ", "(1 + ", "1", ")"),
    "arrays": ("let x = ", "[", "1", "]"),
    "tuples": ("let x = ", "(1, ", "1", ")"),
    "constructors": ("let x = ", "Some (", "1", ")"),
    "strings": ("let x = ", '$"{', "1", '}"'),
    "blocks": ("let x = ", "begin ", "1", " end"),
    "types": ("let f (x : ", "(", "int", " list)"),
}


@pytest.mark.parametrize("name", DEEP)
def test_brackets_too_deep(dpl, tmp_path, name: str) -> None:
    start, opening, inside, closing = DEEP[name]
    end = ") = 1" if name == "types" else ""
    for depth in (DEEPEST + 1 - (name == "types"), 10_000):
        text = f"{start}{opening * depth}{inside}{closing * depth}{end}\n"
        (tmp_path / "deep.dp").write_text(text, encoding="utf-8")
        run = dpl("check", "deep.dp", cwd=tmp_path)
        assert run.returncode == 1 and run.stderr.startswith("error[E0110]: brackets are nested more than 1000 deep")
        assert len(run.stderr) < 1000 and "^" in run.stderr


@pytest.mark.parametrize("verb", [["fmt", "--check"], ["run"], ["run", "--engine", "interp"], ["dump", "llvm"]])
def test_every_verb_tells_of_brackets_too_deep(dpl, tmp_path, verb: list[str]) -> None:
    (tmp_path / "deep.dp").write_text(f"let x = {'[' * 5000}1{']' * 5000}\n", encoding="utf-8")
    run = dpl(*verb, "deep.dp", cwd=tmp_path)
    assert run.returncode == 1 and run.stderr.startswith("error[E0110]: "), run.stderr


CHAINS = {
    "not": f"do print ({'not ' * 4000}true)\n",
    "fun": f"let _f = {words('fun _x# -> ', 2000)} 1\ndo print 1\n",
    "let": f"do print ({words('let a# = # in', 2000)} 1)\n",
    "+": f"do print ({words('1', 1500, ' + ')})\n",
    "::": f"do print (List.length ({words('#', 500, ' :: ')} :: []))\n",
    "|>": f"do print (0.5 {words('|> sin', 1000)})\n",
    "else if": f"let f x = {words('if x = # then # else', 500)} 0\ndo print (f 7)\n",
    "parentheses": f"do print {'(' * DEEPEST}1{')' * DEEPEST}\n",
}


@pytest.mark.parametrize("name", CHAINS)
def test_long_chains(name: str) -> None:
    interp, native = (oracle().ask(engine, CHAINS[name]) for engine in (INTERP, NATIVE))
    assert interp.end == native.end == DONE and interp.output == native.output, (interp, native)


def test_a_long_line_of_warnings(dpl, tmp_path) -> None:
    (tmp_path / "line.dp").write_text(f"do print ({words('let a# = # in', 500)} 1)\n", encoding="utf-8")
    run = dpl("check", "line.dp", cwd=tmp_path)
    assert run.returncode == 0 and run.stderr.count("warning[W0203]") == 500
    assert max(map(len, run.stderr.split("\n"))) <= 110
