"""What the modules of the library give beside the numbers of other systems, in the files of `references`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

REFERENCES = Path(__file__).parent / "references"
NUMBER = re.compile(r"(?<![\w.])-?(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|inf|nan)(?!\w)")
LITERAL = re.compile(r"(?<![\w.])(\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+)")
KEPT = re.compile(r"(?:relative|absolute|tolerance) = [\w.-]+|\(Optim\.\w+ [\w. ]+\)|Nn\.leaky_relu|quantile_discrete")


@dataclass(frozen=True)
class Comparison:
    system: str
    call: str
    want: list[float]

    def difference(self, printed: str) -> float:
        """The largest one of the printed numbers, relative for those above 1."""
        got = [float(x) for x in NUMBER.findall(printed)]
        assert len(got) == len(self.want), f"{self.call}: {printed}"
        return max(abs(a - b) / max(1.0, abs(b)) for a, b in zip(got, self.want, strict=True))


@dataclass(frozen=True)
class Module:
    name: str
    setup: list[str]
    comparisons: list[Comparison]

    def program(self, single: bool) -> str:
        """Prints the values in order; all numbers are f32 if asked for, but those that say how a search goes."""
        lines = [*self.setup, *(f'do print_string (show ({c.call}) ++ "\\n")' for c in self.comparisons)]
        return "".join(f"{in_f32(line) if single else line}\n" for line in lines)

    def differences(self, output: str) -> list[tuple[Comparison, float]]:
        return [(c, c.difference(line)) for c, line in zip(self.comparisons, output.splitlines(), strict=True)]


def in_f32(line: str) -> str:
    return KEPT.sub(lambda m: m[0].replace("f32", ""), LITERAL.sub(r"\1f32", line))


def modules() -> list[Module]:
    """Those of `systems.json`."""
    return [Module(name, setup, [Comparison(*case) for case in cases]) for name, setup, cases in reference("systems")]


def other_modules() -> list[Module]:
    """Those of the other files, which `test_references.py` tests."""
    (_, xs), (_, ys), *statistics = reference("stats")
    setup = [f"let xs = {dp(xs)}", f"let ys = {dp(ys)}"]
    found = {
        "Special": [("SciPy", f"Special.{name} {arguments(args)}", [value])
                    for name, args, value in reference("special")
                    if all(1e-30 < abs(x) < 1e30 for x in (value, args[-1]))],
        "Stats": [("NumPy, SciPy", call, numbers(want)) for call, want in statistics],
        "Interp": [("SciPy", f"map (Interp.{name} {dp(xs)} {dp(ys)}) {dp(at)}", want)
                   for name, xs, ys, at, want in reference("interp")],
        "Fft": [("NumPy", f"Fft.fft ({dp(real)}, {dp(imaginary)})", [*a, *b])
                for real, imaginary, a, b in reference("fft")],
        "Dist": [("SciPy", f"(let d = Dist.{name} in [{CONTINUOUS.format(x=dp(x), q=q)}])", values)
                 for name, x, q, values in reference("continuous")]
                + [("SciPy", f"(let d = Dist.{name} in [{DISCRETE.format(n=n)}])", values)
                   for name, n, values in reference("discrete")],
        "Mcmc": [("ArviZ", f"(let c = {dp(draws)} in [Mcmc.rhat c, Mcmc.ess c, Mcmc.ess_tail c])", values)
                 for draws, *values in reference("chains")],
        "Sparse": [("SciPy", sparse(*case[:5]), [*case[8], *case[9]]) for case in reference("sparse") if case[2]],
        "Root": [("SciPy", f"Root.brent (fun () x -> {formula}) {arguments([low, high])} ()", [zero])
                 for formula, low, high, zero, _ in reference("root")],
    }  # fmt: skip
    return [Module(name, setup, [Comparison(*case) for case in cases]) for name, cases in found.items()]


CONTINUOUS = "Dist.logpdf d ({x}), Dist.cdf d ({x}), Dist.quantile d {q}, Dist.mean d, Dist.variance d, Dist.entropy d"
DISCRETE = "Dist.logpmf d ({n}), Dist.cdf_discrete d ({n}), Dist.mean_discrete d, Dist.variance_discrete d"


def sparse(rows: int, columns: int, triples: list, x: list, y: list) -> str:
    elements = ", ".join(f"({i}, {j}, {value})" for i, j, value in triples)
    products = f"(Sparse.matvec a {dp(x)}, Sparse.matvec_transposed a {dp(y)})"
    return f"(let a = Sparse.of_triples {rows} {columns} [{elements}] in {products})"


def reference(name: str) -> list:
    return json.loads((REFERENCES / f"{name}.json").read_text())


def numbers(value: object) -> list[float]:
    return [x for part in value for x in numbers(part)] if isinstance(value, list) else [float(value)]  # type: ignore


def dp(value: object) -> str:
    """A value in DPL."""
    return repr(value) if isinstance(value, float | int) else "[" + ", ".join(map(dp, value)) + "]"  # type: ignore


def arguments(values: list) -> str:
    return " ".join(f"({x!r})" for x in values)
