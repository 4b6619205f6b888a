"""How the time of the compiler grows with a program: seconds of processor for n, 2 n, 4 n pieces of one kind.

    python benchmarks/growth.py [--only NAME] [--seconds 24] [--to reference_counts]

For each kind and size it prints the seconds until the program is checked, until it is counted flat (all that is done in
Python but the text for LLVM), until it could start (`dpl run` starts it as quick code), and until it is optimised,
which another process does meanwhile.  Behind each is the exponent since the size before: 1 is linear, 2 quadratic.
`-` stands where the limit was reached, a word where the program was refused.

Each program is compiled in a fork of a process that has everything imported, so start-up is not counted.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from dpl.core.promising import promising, reads_arguments
from dpl.diagnostics import Diagnostic, DplError
from dpl.source import Source
from dplc.machine.run.linked import quickly_linked
from dplc.passes import NeedsInterpreter
from dplc.pipeline import Context, compile_from, compile_to
from dplc.stack import on_large_stack

SOME_CALLS = "do List.iter (fun n -> print (f n)) [7; 70]\n"  # of a function f, with what is not known before
MILESTONES = ("check", "reference_counts", "start", "object")


def each(n: int, text: str, between: str = " ", start: int = 0) -> str:
    """The text n times, with a number for `#` and the number before it for `@`."""
    return between.join(text.replace("#", str(i)).replace("@", str(i - 1)) for i in range(start, n))


def chain(n: int, first: str, text: str, last: str) -> str:
    return f"{first}\n{each(n, text, chr(10), 1)}\n{last.replace('#', str(n - 1))}\n"


def nested_gradients(n: int) -> str:
    recursion = "let rec f0 (n : int) x = if n = 0 then x else sin (f0 (n - 1) x) * x\n"
    return chain(n + 1, recursion, "let f# (n : int) x = grad (f@ n) x", "do print (f# 5 0.5)")


def else_ifs(n: int) -> str:
    return f"let f x = {each(n, 'if x = # then #.5 else')} 0.5\n{SOME_CALLS}"


def nested_ifs(n: int) -> str:
    return f"let f x = {each(n, 'if x > # then')} 1.0 {each(n, 'else #.5')}\n{SOME_CALLS}"


def mutual(n: int, last: str) -> str:
    rest = "\n".join(f"and g{i} x = if x <= 0.0 then {i}.0 * x else g{(i + 1) % n} (x - 1.0)" for i in range(1, n))
    return f"let rec g0 x = if x <= 0.0 then x else g1 (x - 1.0)\n{rest}\n{last}\n"


def loops(n: int, start: str, step: str, inmost: str, end: str, last: str) -> str:
    """A function of `n` loops in each other: the step `#` begins with the state `@` of the loop around."""
    closed = "".join(end.replace("#", str(i)) for i in reversed(range(1, n + 1)))
    return f"let f (k : int) {start} = {each(n + 1, step, '', 1)}{inmost.replace('#', str(n))}{closed}\n{last}\n"


def modules(n: int) -> dict[str, str]:
    rows = {f"m{i}.dp": f'import "m{i - 1}.dp" as Before\nlet f x = Before.f x + {i}.0\n' for i in range(1, n)}
    main = f'import "m{n - 1}.dp" as Last\ndo print (Last.f 1.0)\n'
    return {"m0.dp": "let f x = x * 2.0\n", **rows, "main.dp": main}


def repeated(text: str, last: str = "do print 1") -> Callable[[int], str]:
    return lambda n: each(n, text, "\n") + f"\n{last.replace('#', str(n - 1))}\n"


CALLS = (100, 200, 400)
KINDS: dict[str, tuple[Sequence[int], Callable[[int], str | dict[str, str]]]] = {
    "chain of calls": (CALLS, lambda n: chain(
        n, "let f0 x = x / 2.0", "let f# x = f@ (sin x) * x + #.0", "do print (f# (sum [1.5, 2.5]))")),
    "chain of functions of functions": (CALLS, lambda n: chain(
        n, "let f0 g x = g x", "let f# g x = f@ (fun y -> g y + #.0) x", "do print (f# (fun x -> x) 1.0)")),
    "chain of ctl": (CALLS, lambda n: chain(
        n, "let f0 x = shift k -> k x + 1.0", "let f# x = f@ x * 0.5 + #.0", "do print (reset (f# 1.0))")),
    "chain of modules": ((75, 150, 300), modules),
    "arrays under grad": ((25, 50, 100), lambda n:
        f"let f (x0 : float[n]) =\n{each(n + 1, '  let x# = sin x@ * 0.5 + x@ in', chr(10), 1)}\n  sum x{n}\n"
        "do print (grad f [1.0, 2.0])\n"),
    "nested grad of a recursion": ((1, 2, 3, 4), nested_gradients),
    "list": ((1000, 2000, 5000), lambda n: f"let l = [{each(n, '#', '; ')}]\ndo print (List.length l)\n"),
    "list of sums": ((500, 1000, 2000), lambda n:
        f"let f x = [{each(n, 'x + #', '; ')}]\ndo print (List.length (f 1))\n"),
    "array": ((1000, 5000, 20_000), lambda n: f"let a = [{each(n, '#.5', ', ')}]\ndo print (sum a)\n"),
    "else if": ((1000, 3000, 10_000), else_ifs),
    "nested if": ((1000, 3000, 10_000), nested_ifs),
    "else if of a loop's index": (CALLS, lambda n:
        f"let f (k : int) = loop s = 0 for i < k do s + ({each(n, 'if i = # then #7 else')} s)\n{SOME_CALLS}"),
    "closures under grad": ((50, 100, 200), lambda n:
        f"let fs = [{each(n, '(fun x -> x * #.5)', '; ')}]\n"
        "do print (grad (fun z -> List.fold (fun a f -> a * 0.5 + f z) 0.0 fs) 1.0)\n"),
    "mutual recursion": ((100, 300, 1000), lambda n: mutual(n, "do print (g0 150.0)")),
    "mutual recursion under grad": ((25, 50, 100), lambda n: mutual(n, "do print (grad g0 50.0)")),
    "arrays at top level": ((125, 250, 500), repeated("let a# = [for i < 10 -> float i + #.0]", "do print (sum a#)")),
    "parameters": ((100, 200, 300), lambda n:
        f"let f {each(n, 'x#')} = {each(n, 'x#', ' + ')}\ndo print (f {each(n, '#.0')})\n"),
    "chain of local functions": ((75, 150, 300), lambda n:
        f"let f x = let g0 x = x + 1 in {each(n, 'let g# x = g@ x + 1 in', ' ', 1)} g{n - 1} x\ndo print (f 1)\n"),
    "definitions": ((500, 1000, 2000), repeated("let f# x = x * #.5 + 1.0\nlet y# = f# 2.0", "do print y#")),
    "constructors": ((100, 200, 400), lambda n:
        f"type t = {each(n, 'C# of float', ' | ')}\nlet f x = match x with {each(n, 'C# y -> y * #.0', ' | ')}\n"
        "do print (f (C7 2.0))\n"),
    "record fields": ((100, 200, 400), lambda n:
        f"type r = {{ {each(n, 'f# : float', '; ')} }}\nlet r = {{ {each(n, 'f# = #.5', '; ')} }}\n"
        f"let g (s : r) = {each(n, 's.f#', ' + ')}\ndo print (g r)\n"),
    "record updates": (CALLS, lambda n:
        f"type r = {{ {each(n, 'f# : float', '; ')} }}\nlet r = {{ {each(n, 'f# = #.5', '; ')} }}\n"
        f"let g (s0 : r) = {each(n, 'let s# = { s@ with f# = s@.f# * 0.5 } in', chr(10), 1)} s{n - 1}.f7\n"
        "do print (g r)\n"),
    "updates of arrays in a record": ((50, 100, 200), lambda n:
        f"type r = {{ {each(n, 'f# : float[3]', '; ')} }}\nlet r = {{ {each(n, 'f# = [#.5, 1.0, 2.0]', '; ')} }}\n"
        f"let g (s0 : r) = {each(n, 'let s# = { s@ with f# = s@.f# * 0.5 } in', chr(10), 1)} sum s{n - 1}.f7\n"
        "do print (g r)\n"),
    "record updates under grad": ((25, 50, 100), lambda n:
        f"type r = {{ {each(n, 'f# : float', '; ')} }}\nlet r = {{ {each(n, 'f# = #.5', '; ')} }}\n"
        f"let g (s0 : r) = {each(n, 'let s# = { s@ with f# = s@.f# * s@.f0 } in', chr(10), 1)} s{n - 1}.f7\n"
        "do print (grad g r).f0\n"),
    "calls of grad": ((25, 50, 100), repeated("do print (grad (fun x -> sin (x * #.5)) 1.0)")),
    "nested lets": ((500, 1000, 2000), lambda n:
        f"let f x0 = {each(n, 'let x# = x@ * 0.5 + #.0 in', chr(10), 1)} x{n - 1}\ndo print (f 1.0)\n"),
    "comprehensions": ((50, 100, 200), repeated("do print (sum [for i < 10 -> float i * #.5])")),
    "comprehensions in a function": (CALLS, lambda n:
        f"let f (k : int) =\n{each(n, 'let a# = [for i < k -> float i * #.5] in', chr(10))}\n"
        f"{each(n, 'sum a#', ' + ')}\n{SOME_CALLS}"),
    "chain of comprehensions": (CALLS, lambda n:
        f"let f (k : int) = let x0 = [for i < k -> float i] in\n"
        f"{each(n + 1, 'let x# = [for y in x@ -> sin y * #.5] in', chr(10), 1)}\nsum x{n}\n{SOME_CALLS}"),
    "loops in loops": ((4, 8, 16), lambda n: loops(
        n, "(s0 : int)", "(loop _ = () for s# < k do (print (s@ + s#); ", "()", "))", "do f 2 1")),
    "loops in loops under grad": ((4, 8, 16), lambda n: loops(
        n, "(a0 : float[m])", "(loop a# = a@ for i# < k do ", "{ a# with [i1] = a#[i#] * 0.5 }", ")",
        "do print (grad (fun a -> sum (f 2 a)) [1.0, 2.0])")),
    "loops in loops under jvp": ((4, 8, 16), lambda n: loops(
        n, "(s0 : float) (t0 : float)", "let (p#, q#) = (loop (s#, t#) = (s@, t@) for _ < k do ",
        "(t# * 0.5 + sin s0, s#)", ") in (q#, p# * s0)", "do print (jvp (fun x -> fst (f 2 x 0.0)) 2.0 1.0)")),
    "partial applications": ((50, 100, 200), lambda n:
        f"let f {each(n, 'x#')} = {each(n, 'x#', ' + ')}\nlet g0 = f 0.0\n"
        f"{each(n - 1, 'let g# = g@ #.0', chr(10), 1)}\ndo print (g{n - 2} 1.0)\n"),
    "tuples in tuples": (CALLS, lambda n: f"let t = {'(1.5, ' * n}2.5{')' * n}\ndo print t\n"),
    "when": (CALLS, lambda n:
        f"let f x = match x with {each(n, 'y when y > # -> y * #', ' | ')} | _ -> 0\n{SOME_CALLS}"),
    "when, on two parts in turns": ((50, 100, 200), lambda n:
        f"let f x = match (x, x + 1) with {each(n, '(#, y) when y > # -> y * # | (a, #) when a < 5 -> a', ' | ')}"
        f" | _ -> 0\n{SOME_CALLS}"),
    "alternatives on two parts in turns": ((50, 100, 200), lambda n:
        f"let f x = match (x, x + 1) with {each(n, '(#, y) | (y, #)', ' | ')} when y > 3 -> y | _ -> 0\n{SOME_CALLS}"),
    "alternatives beside each other": ((10, 20, 40), lambda n:
        f"let f x = match ({each(n, 'x - #', ', ')}) with ({each(n, '(# | 3)', ', ')}) -> x | _ -> 0\n{SOME_CALLS}"),
    "arms on three parts": ((20, 40, 80), lambda n:
        f"let f x = match (x, x + 1, x + 2) with"
        f" {each(n, '(#, _, _) -> x | (_, #, b) -> b | (a, _, #) -> a', ' | ')} | _ -> 0\n{SOME_CALLS}"),
    "references in a loop": (CALLS, lambda n:
        f"let f (k : int) = {each(n, 'let r# = ref #.5 in')}\n"
        f"  loop _ = () for i < k do ({each(n, 'r# := !r# + float i', '; ')}); {each(n, '!r#', ' + ')}\n{SOME_CALLS}"),
    "states of a loop under grad": ((25, 50, 100), lambda n:
        f"let f (x : float) = let ({each(n, 'a#', ', ')}) = (loop ({each(n, 's#', ', ')}) = ({each(n, 'x', ', ')})\n"
        f"  for _ < 20 do ({each(n, 'sin s# * #.5 + x', ', ')})) in {each(n, 'a#', ' + ')}\ndo print (grad f 1.1)\n"),
    "branches in a loop under grad": ((10, 20, 40), lambda n:
        f"let f (x : float) = loop s = x for _ < 20 do ("
        f"{each(n, 'let s = if s > #.0 then sin s * #.5 else s in')} s * x)\ndo print (grad f 1.1)\n"),
    "loops in a row under grad of grad": ((5, 10, 20), lambda n:
        f"let f (x0 : float) = {each(n + 1, 'let x# = (loop s = x@ for _ < 5 do sin s * x@) in', ' ', 1)} x{n}\n"
        "do print (grad (grad f) 1.0)\n"),
    "nested lets under grad of grad": ((50, 100, 200), lambda n:
        f"let f x0 = {each(n, 'let x# = sin x@ * 0.5 + #.0 in', chr(10), 1)} x{n - 1}\ndo print (grad (grad f) 1.0)\n"),
    "terms of a polynomial under grad": (CALLS, lambda n:
        f"let f x = {each(n, '#.5 * x ** #', ' + ')}\ndo print (grad f 1.0)\n"),
    "operators between unknown types": ((25, 50, 100), lambda n:
        f"let f {each(n, 'x#')} = {each(n, 'sin x#', ' * ')}\ndo print (f {each(n, '#.0')})\n"),
    "functions that differentiate and call each other": ((25, 50, 100), lambda n:
        "let rec " + "\nand ".join(
            f"g{i} (k : int) x = if k = 0 then x else grad sin (g{(i + 1) % n} (k - 1) x)" for i in range(n))
        + "\ndo print (g0 5 2.0)\n"),
    "continued twice under grad": ((6, 12, 24), lambda n:
        f"let f x = reset ({each(n, 'let y# = shift k -> k (x * #.5) + k 1.0 in', chr(10))} {each(n, 'y#', ' * ')})\n"
        "do print (grad f 1.0)\n"),
    "lines of a program": ((500, 1000, 2000), repeated(
        "let f# (x : float) = if x > #.0 then x else x * 2.0\ndo print (f# 1.0)")),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="kinds that have this in their name")
    parser.add_argument("--seconds", type=int, default=24, help="at most for each program")
    parser.add_argument("--to", choices=MILESTONES, default="object", help="the last stage")
    parser.add_argument("--sizes", type=int, nargs="+", help="instead of those that a kind has")
    wanted = parser.parse_args()
    stages = MILESTONES[: MILESTONES.index(wanted.to) + 1]
    on_large_stack(lambda: compile_to("object", Source("hello.dp", "do print 1\n"), Context(verify=False)))
    print(f"{'':32}{'n':>7}" + "".join(f"{stage:>17}" for stage in stages))
    for name, (sizes, write) in KINDS.items():
        if wanted.only not in name:
            continue
        before, smaller = [], 1
        for n in wanted.sizes or sizes:
            seconds = measure(write(n), wanted.seconds, stages)
            print(f"{name:32}{n:7}" + "".join(cells(before, seconds, n / smaller, len(stages))), flush=True)
            before, smaller = seconds, n


def cells(before: list, seconds: list, ratio: float, count: int) -> list[str]:
    """The seconds and exponents of a line of the table."""
    shown = []
    for k in range(count):
        now = seconds[k] if k < len(seconds) else "-"
        earlier = before[k] if k < len(before) else None
        growth = ""
        if isinstance(now, float) and isinstance(earlier, float):
            growth = f"{math.log(max(now, 0.001) / max(earlier, 0.001)) / math.log(ratio):7.2f}"
        shown.append(f"{now:10.2f}{growth:7}" if isinstance(now, float) else f"{now:>17}")
    return shown


def measure(program: str | dict[str, str], limit: int, stages: Sequence[str]) -> list[float | str]:
    """The seconds of processor until each of the stages is done, as far as the limit lets it."""
    reads, writes = os.pipe()
    with tempfile.TemporaryDirectory() as folder:
        path = files(program, Path(folder))
        child = os.fork()
        if child == 0:
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            compiled(path, stages, writes)
            os._exit(0)
        os.close(writes)
        with os.fdopen(reads) as told:
            lines = told.read().split()
        os.waitpid(child, 0)
    return [float(line) if line[0].isdigit() else line for line in lines]


def files(program: str | dict[str, str], folder: Path) -> Path:
    for name, text in (program if isinstance(program, dict) else {"main.dp": program}).items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "main.dp"


def compiled(path: Path, stages: Sequence[str], to: int) -> None:
    def work() -> None:
        value, before, context = Source(str(path), path.read_text(encoding="utf-8"), path), "", Context(verify=False)
        begin = time.process_time()
        for stage in stages:
            if stage == "start":
                value, before = compile_from(before, value, "llvm", context)[1], "llvm"
                quickly_linked(value[0], value[1].to_json())
            else:
                value, before = compile_from(before, value, stage, context)[1], stage
            if stage == "check":  # what `dpl run` asks before it compiles
                promising(value)
                reads_arguments(value)
            os.write(to, f"{time.process_time() - begin}\n".encode())

    try:
        on_large_stack(work)
    except DplError as error:
        found = error.diagnostics[0]
        os.write(to, f"{found.code if isinstance(found, Diagnostic) else 'refused'}\n".encode())
    except NeedsInterpreter:
        os.write(to, b"interpreted\n")
    except RecursionError:
        os.write(to, b"too-deep\n")


if __name__ == "__main__":
    main()
