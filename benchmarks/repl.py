"""How long `dpl repl` takes for an input, in native code: from the text until what is said of it is written.

    python benchmarks/repl.py [--inputs N] [--engine native|interp]

Each kind of input is typed N times, with other names and numbers each time, into a session that has 200 definitions.
Reported are the median and the worst, by the clock and in processor time, which other programs lengthen less.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time

from dplc.tools.repl.session import Session

BEFORE = """
let square x = x * x
let data = [for i < 1000 -> sin (float i)]
type params = { w : float[3]; b : float }
let start = { w = [0.1, 0.2, 0.3]; b = 0.0 }
let loss p = sum (tanh (p.w * 2.0 + p.b))
let rec fib n = if n < 2 then 1 else fib (n - 1) + fib (n - 2)
"""

KINDS = {
    "number": "let a{i} = {i} * 2 + 1",
    "function": "let f{i} x = x ** 2.0 + float {i} * x",
    "function with a loop": "let g{i} (xs : float[n]) = loop s = 0.0 for i < n do s + xs[i] * {i}.0",
    "record type": "type r{i} = {{ x{i} : float; y{i} : int list }}",
    "data type": "type t{i} = Leaf{i} of float | Node{i} of t{i} * t{i}",
    "record": "let q{i} = {{ start with b = {i}.0 }}",
    "array": "let v{i} = [for k < 100 -> float k * {i}.5]",
    "list": "let l{i} = List.map (fun x -> x + {i}) [1; 2; 3]",
    "function of a gradient": "let d{i} x = grad (fun x -> {i}.0 * square x) x",
    "gradient of a function, as a value": "let h{i} = grad loss",
    "gradient at a point": "let e{i} = grad loss {{ start with b = {i}.0 }}",
    "step of gradient descent": "let s{i} = Tree.axpy (-0.{i}) (grad loss start) start",
    "call of a recursive function": "let c{i} = fib {i}",
    "sum over earlier data": "let m{i} = mean (data * {i}.0)",
    "redefinition": "let again = {i} + 1",
    "an expression, shown": "square {i}.5",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=20, help="of each kind")
    parser.add_argument("--engine", default="native", choices=["native", "interp"])
    wanted = parser.parse_args()
    measured = measure(wanted.engine, wanted.inputs)
    print(f"{'ms':36}{'median':>8}{'worst':>8}{'processor, median':>20}{'worst':>8}")
    for kind, (clock, processor) in measured.items():
        print(f"{kind:36}{numbers(clock, 8)}{numbers(processor, 20)}")
    clock, processor = ([ms for both in measured.values() for ms in both[k]] for k in (0, 1))
    print(f"{'all':36}{numbers(clock, 8)}{numbers(processor, 20)}")


def numbers(ms: list[float], width: int) -> str:
    return f"{statistics.median(ms):{width}.1f}{max(ms):8.1f}"


def measure(engine: str, inputs: int) -> dict[str, tuple[list[float], list[float]]]:
    """Milliseconds by the clock and of the processor, for each kind."""
    session = Session(engine)
    with silence():
        for line in BEFORE.strip().split("\n"):
            enter(session, line)
        for i in range(200):
            enter(session, f"let before{i} = {i} + 1" if i % 2 else f"let before{i} x = x + {i}.0")
        found = {}
        for kind, text in KINDS.items():
            times = [enter(session, text.format(i=i + 1)) for i in range(inputs)]
            found[kind] = [t[0] for t in times], [t[1] for t in times]
    return found


def enter(session: Session, line: str) -> tuple[float, float]:
    begin, used = time.perf_counter(), time.process_time()
    assert session.enter(line), line
    return (time.perf_counter() - begin) * 1e3, (time.process_time() - used) * 1e3


class silence:
    """Nothing reaches standard output, whoever writes it."""

    def __enter__(self) -> None:
        self.kept = os.dup(1)
        sys.stdout.flush()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)

    def __exit__(self, *failure: object) -> None:
        sys.stdout.flush()
        os.dup2(self.kept, 1)
        os.close(self.kept)


if __name__ == "__main__":
    main()
