"""How time and memory grow with the data: processor seconds and megabytes of one program for n, 2 n, 4 n elements.

    python benchmarks/growth_data.py [--only NAME] [--seconds 20] [--size N]

Behind each is the exponent since the size before, without what a run of one element takes: 1 is linear, 2 quadratic.
A program is compiled before its measured runs.  `-` stands where the limit was reached.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HEAD = """
type box = { xs : float[?]; at : int }
let n = match Sys.args with
  | word :: _ -> (match String.to_int word with | Some n -> n | None -> 0)
  | [] -> 0
let data = [for i < n -> sin (float i)]
"""
PROGRAMS = {  # the first size, and the program after HEAD
    "closures": (2000, """
let f (a : float[?]) =
  let rec make i = if i = n then [] else (fun x -> x * a[i]) :: make (i + 1) in
  List.fold (fun s g -> s + g 2.0) 0.0 (make 0)
do print (sum (grad f data))"""),
    "records": (2000, """
let f (a : float[?]) =
  let rec make i : box list = if i = n then [] else { xs = a; at = i } :: make (i + 1) in
  List.fold (fun s (b : box) -> s + sin (b.xs)[b.at]) 0.0 (make 0)
do print (sum (grad f data))"""),
    "continuations": (20000, """
let f (a : float[?]) =
  let rec go i = if i = n then 0.0 else (shift k -> k (sin a[i])) + go (i + 1) in
  reset (go 0)
do print (sum (grad f data))"""),
    "rows to functions": (20000, """
let rec power (row : float[?]) (k : int) = if k = 0 then 1.0 else row[k % 4] * power row (k - 1)
let f (m : float[?, ?]) = sum [for row in m -> power row 3]
do print (sum (flatten (grad f [for i < n -> [for j < 40 -> data[i] + float j]])))"""),
    "x ++ [v]": (100000, """
let step (b : box) (i : int) : box = { b with xs = b.xs ++ [float i] }
do print (sum ((loop b = ({ xs = [0.5]; at = 0 } : box) for i < n do step b i).xs))"""),
    "grad of x ++ [v]": (100000, """
let step (b : box) (i : int) : box = { b with xs = b.xs ++ [(b.xs)[i] * 0.99] }
let f x = sum ((loop b = ({ xs = [x]; at = 0 } : box) for i < n do step b i).xs)
do print (grad f 2.0)"""),
    '"x" ++ s': (25000, """
do print (String.length (loop s = "" for i < n do "x" ++ s))"""),
    "grad over drop 1": (4000, """
let rec go (b : box) = if length b.xs = 0 then 0.0 else sin (b.xs)[0] + go { b with xs = drop 1 b.xs }
do print (sum (grad (fun a -> go { xs = a; at = 0 }) data))"""),
    "sort": (500000, """
do print (sum (grad (fun xs -> dot (sort xs) data) data))"""),
    "read_csv": (200000, """
do Data.write_text "PATH" (String.join "\\n" (List.of_array (map (fun x -> $"{x},{x * 2.0},3") data)))
let table = Data.read_csv "PATH"
do print (length table)"""),
}  # fmt: skip


def measured(program: Path, n: int, limit: float) -> tuple[float, float]:
    """The processor seconds and megabytes of a run; infinite if it was stopped."""
    words = ["timeout", str(math.ceil(limit)), sys.executable, "-m", "dplc.cli", "run", str(program), str(n)]
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    child = os.posix_spawn("/usr/bin/env", ["env", *words], os.environ, file_actions=quiet)
    _, status, used = os.wait4(child, 0)
    return (used.ru_utime + used.ru_stime, used.ru_maxrss / 1024) if status == 0 else (math.inf, math.inf)


def rows(program: Path, first: int, limit: float) -> Iterator[str]:
    for _ in range(2):  # a program that ends in the interpreter is compiled in its second run
        measured(program, 1, 60)
    time, memory = measured(program, 1, 60)
    before: tuple[float, float] = (0.0, 0.0)
    for n in (first, 2 * first, 4 * first):
        seconds, megabytes = measured(program, n, limit)
        now = seconds - time, megabytes - memory
        if math.isinf(seconds):
            yield f"  n = {n}: -"
            return
        grown = "".join(f" {math.log2(max(a, 1e-3) / max(b, 1e-3)):6.1f}" for a, b in zip(now, before, strict=True))
        yield f"  n = {n}: {now[0]:8.2f} s {now[1]:8.1f} MB{grown if n > first else ''}"
        before = now


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(PROGRAMS))
    parser.add_argument("--seconds", type=float, default=20.0, help="for a run")
    parser.add_argument("--size", type=int, help="the first of the sizes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, (size, text) in PROGRAMS.items():
            if options.only in (None, name):
                file = Path(folder) / "program.dp"
                file.write_text(HEAD + text.replace("PATH", f"{folder}/t.csv") + "\n", encoding="utf-8")
                print(name)
                for line in rows(file, options.size or size, options.seconds):
                    print(line, flush=True)


if __name__ == "__main__":
    main()
