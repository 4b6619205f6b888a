"""A gradient costs at most a small multiple of its function, at every size: counted, not timed (`dpl bench --cost`).

Held to it are all functions of the standard library and of the examples, and those of `facts.dp`, each about one way in
which a derivative could cost more: their gradients, the gradients of these, and their derivatives in forward mode.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import ROOT
from dpl.syntax.load import standard_modules
from dplc.tools.bench.cost import Report, costs
from dplc.tools.bench.driver import subjects

HERE = Path(__file__).parent
FACTS = HERE / "facts.dp"
FACT = re.compile(r"^let (\w+) \((\w+) : ([^=]*)\) =", re.MULTILINE)
LIMIT = 6.0
LIMITS = {"reverse_by_betainc": 6.3}  # counts what tells symbolic zeros in the states of a loop, which takes no time
SIZES, SQUARES = (16, 32, 64, 128), (4, 8, 16, 32)
SMALL = {"Mcmc.nuts": (16,), "Vi.full_rank": (16, 32, 64), "Ink.shifted": (16, 32)}  # larger ones take 10 s and more
PICTURES = {"Plot": (4, 6, 8)}  # the squares for what takes pictures, which have surfaces of some dimensions
# What the generated arguments cannot show, or what costs more as it says itself.
UNMEASURED = {
    **{
        f"Nn.{name}": "the generated sizes do not agree with the generated groups; facts for them"
        for name in ("conv1d", "conv2d", "conv2d_transpose", "convolve", "max_pool", "mean_pool")
    },
    "Data.fold_lines": "the generated paths name no files",
    **{f"Data.{name}": "the generated columns have one name; a fact for them" for name in ("numbers", "texts")},
    "Dist.entropy_discrete": "the generated one has two outcomes: 6.4 times 14 operations",
    "Dist.lkj_logpdf": "reads the diagonal, while its gradient is a whole matrix; memory comes near 1",
    "Dist.lkj_sample": "the slope of a gamma draw is an integral that takes longer the larger the shape, here the size",
    "Dist.mv_normal_sample": "random numbers are the most at small sizes and have no gradient; 1.3 at size 1024",
    "Fft.irfft": "the number of elements must be about half of what they become; a fact for it",
    **{f"Interp.{name}": "the generated places do not rise; a fact for it" for name in ("linear", "cubic", "monotone")},
    **{
        f"List.{name}": "moves numbers: the copy, its pullback, and the sum that makes zeros positive are 6.5 times it"
        for name in ("tail", "drop_while")
    },
    **{
        f"Result.{name}": "copies one number: what any pullback costs is more than that"
        for name in ("to_option", "map_error")
    },
    "Mcmc.hmc": "the generated number of steps is the size: 10 s at 128; 4.4 at 64",
    "Mcmc.line": "ranks and their quantiles are the most at small sizes and have no gradient; 1.3 at 90",
    "Json.get": "reads one member of an object, while its gradient is the whole object",
    **{f"Mpi.{name}": "the generated ranks do not exist" for name in ("broadcast", "receive", "send")},
    "Ode.adjoint": "its gradient solves again, backwards and for more numbers: 6.1 at all sizes",
    "Nn.ctc": "a generated label is 0, which stands for none; a fact for it",
    "Nn.dropout": "the generated chance is none; a fact for it",
    "Optim.armijo": "the larger the generated sizes, the more tries; 3.1 at most",
    "Option.to_list": "makes one cell of a list: what any pullback costs is more than that",
    **{
        f"Root.{name}": "the generated functions have one sign; a fact for it"
        for name in ("bisect", "brent", "chandrupatla")
    },
    **{
        f"Map.{name}": "the generated keys are floats: their gradient is a whole tree, at 6 operations a float"
        for name in ("add", "get", "remove", "update")
    },
    **{
        f"Set.{name}": "the generated elements are floats: their gradient is a whole tree, at 8 operations a float"
        for name in ("add", "remove")
    },
    **{
        f"Sparse.{name}": "the generated places and vectors do not fit the generated sizes; facts for them"
        for name in (
            "of_triples",
            "to_dense",
            "diagonal",
            "transposed",
            "matvec",
            "matvec_transposed",
            "matmul",
            "matmul_sparse",
            "product",
            "cg",
        )
    },
    "Special.betainc": "the generated places are mostly above 1, where it is NaN; a fact for it",
    "Stats.quantile": "the generated share is not between 0 and 1 at all sizes; a fact for it",
    "Stats.quantiles": "the generated shares are not between 0 and 1; a fact for it",
    "Trace.sweep": "the interpreter records it; its gradient is zero",
    "Transform.correlation": "the generated numbers are not as many as the variables need; a fact for it",
    "Tree.load": "reads a file",
    "Vi.draws_full": "random numbers are the most at small sizes and have no gradient; 2.4 at size 256",
    "Plot.size": "the generated sizes are too small for it",
    "Prelude.checkpoint_loop": "computes again as often as its argument `levels` says; a fact for two of them",
}
# What their gradients are made of is measured in others.
LONG_MODULES = ("Plot", "Ode", "Vi", "Mcmc", "Ad", "Optim", "Set", "Root")
OF_NO_INTEREST = (
    "no function", "its result holds no floats", "its arguments hold no floats", "it gives a function",
    "it captures its caller's context", "it is given or gives a reference",
    "it holds functions that give such data again",
)  # fmt: skip


def bounded(report: Report) -> None:
    assert report.costs, f"{report.name} cannot be measured: {report.why}"
    ratios = [round(cost.ratio, 2) for cost in report.costs]
    assert max(ratios) < LIMITS.get(report.name, LIMIT), f"{report.name}: {ratios}"
    assert not report.grows, f"{report.name} grows: {ratios}, memory {[round(c.memory, 2) for c in report.costs]}"


def bounded_functions(target: str) -> None:
    """All of a file or module but UNMEASURED, which are not called either: some take very long."""
    (subject,) = subjects(target, ())
    names = {name for name, _ in subject.cases} - set(UNMEASURED)
    for sizes in {SIZES, *SMALL.values()}:
        if some := [name for name in names if SMALL.get(name, SIZES) == sizes]:
            for report in costs(target, some, sizes=sizes, squares=PICTURES.get(target, SQUARES)):
                if report.why not in OF_NO_INTEREST:
                    bounded(report)


@pytest.mark.parametrize(
    "module",
    [pytest.param(name, marks=[pytest.mark.slow] if name in LONG_MODULES else []) for name in standard_modules()],
)
def test_the_standard_library_is_bounded(module: str) -> None:
    bounded_functions(module)


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("0*.dp")), ids=lambda path: path.stem)
def test_examples_are_bounded(example: Path) -> None:
    bounded_functions(str(example))


def test_a_recurrent_network_is_bounded() -> None:
    """As many letters as its text has, at least; its inner sizes are the same."""
    names = ["remember", "scores", "read_on", "learn_from"]
    found = costs(str(ROOT / "examples" / "char_rnn.dp"), names, squares=(100, 200))
    assert [report.name for report in found] == names
    for report in found:
        bounded(report)


def test_facts() -> None:
    names = [name for name, _, _ in FACT.findall(FACTS.read_text())]
    found = costs(str(FACTS), names)
    assert [report.name for report in found] == names
    for report in found:
        bounded(report)


WAYS = {
    "reverse": "let (y, pb) = vjp {f} x in pb y",
    "forward": "let (_, dx) = jvp (grad_of {f}) x x in dx",
}
PARTS = 4
SOLVERS = ("by_several_equations", "by_families", "by_dopri5", "by_rk4", "by_betainc", "by_inverse_cdf", "by_monotone")
LONG = (  # what takes seconds each
    *(("forward", name) for name in SOLVERS), ("forward", "by_lstm"), ("forward", "scanned_pairs"),
    ("reverse", "by_dopri5"), ("reverse", "answers"),
)  # fmt: skip

STORES = ("by_generator", "by_held_array", "by_memo_table")  # third derivatives of stores copy tangents: memory grows


def bounded_ways(ways: Sequence[tuple[str, str, str]], file: Path) -> None:
    """Derivatives of facts in some ways: (way, name of the fact, type of its argument)."""
    names = [f"{way}_{fact}" for way, fact, _ in ways]
    more = [f"let {name} (x : {ty}) = {WAYS[way].format(f=f)}" for name, (way, f, ty) in zip(names, ways, strict=True)]
    file.write_text("\n".join([FACTS.read_text(), "let grad_of f x = let (y, pb) = vjp f x in pb y", *more]) + "\n")
    found = costs(str(file), names)
    assert [report.name for report in found] == names
    for report in found:
        bounded(report)


@pytest.mark.slow
@pytest.mark.parametrize(("way", "part"), [(way, part) for way in WAYS for part in range(PARTS)])
def test_facts_of_second_order(way: str, part: int, tmp_path: Path) -> None:
    """Their gradients and derivatives are of third order, and large: a program has a part of them."""
    facts = FACT.findall(FACTS.read_text())[part::PARTS]
    ways = [(way, name, ty) for name, _, ty in facts if (way, name) not in LONG and name not in STORES]
    bounded_ways(ways, tmp_path / "second.dp")


@pytest.mark.slow
def test_long_facts_of_second_order(tmp_path: Path) -> None:
    """The same for what takes seconds each."""
    types = {name: ty for name, _, ty in FACT.findall(FACTS.read_text())}
    bounded_ways([(way, name, types[name]) for way, name in LONG], tmp_path / "second.dp")


def test_what_is_computed_before_the_counters_are_read_is_counted() -> None:
    (report,) = costs(str(FACTS), ["elementwise"])
    assert [cost.operations for cost in report.costs] == [3 * cost.size for cost in report.costs]


@pytest.mark.parametrize("name", ["by_loop", "by_recursion", "by_tail", "by_halves"])
def test_sums_of_a_million_elements(name: str) -> None:
    (report,) = costs(str(FACTS), [name], sizes=(10**4, 10**5, 10**6))
    bounded(report)
    assert report.costs[-1].gradient_bytes < 150 * 10**6


def test_a_tree_of_many_parameters_is_asked_many_times() -> None:
    """For each answer, as many operations as the tree is deep; the rest of it is not touched."""
    (report,) = costs(str(FACTS), ["answers"], sizes=(10**4, 10**5))
    assert report.costs[-1].ratio < LIMIT
    assert "ratio" not in report.grows
    assert report.costs[-1].gradient_operations < 30 * 17 * 10**5
    assert report.costs[-1].gradient_bytes < 150 * 17 * 10**5
