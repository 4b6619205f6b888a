"""Names that stand for nothing: what is proposed exists, and is likely."""

from __future__ import annotations

import re

import pytest
from dpl.diagnostics import Diagnostic, DplError
from dpl.source import Source
from dpl.syntax.foreign import table
from dpl.syntax.load import load
from dpl.types.check import check_all
from dpl.types.state.unbound import distance

TABLE = table()
# What stands for what was meant.
MEANT = (
    "fun x y z n m i k c a b d g p r f s xs ys ps qs text start last first stop key value map lists otherwise "
    "separator rows columns picture pictures path size weights coefficients logits labels truth log_probabilities "
    "queries keys values heads sees cell state rate factor most patience check method goal loss density mean "
    "observed expected images mask settings draws data low high chains scores penalty bins edges channels words "
    "vocabulary declared lag location scale df shape sd parameters shares -> "
)


def checked(text: str) -> list[Diagnostic]:
    try:
        check_all(load(Source("it.dp", text)))
    except DplError as error:
        return error.diagnostics
    return []


def told(text: str) -> str:
    """The ways out of the only error."""
    (error,) = checked(text)
    return "; ".join(error.helps)


def test_every_name_of_the_table_exists() -> None:
    values = [*TABLE["same"].values(), *(f"{MEANT}({e})" for e in TABLE["like"].values())]
    values += [f"{MEANT}({e})" for section in ("fields", "members") for e in TABLE[section].values()]
    types = [f"fun (x : {t}) -> 1" for t in TABLE["types"].values()]
    constructors = [f"{MEANT}{c} {'x' * (c in ('Some', 'Ok', 'Error'))}" for c in TABLE["constructors"].values()]
    for text in (*values, *(f"({t})" for t in types), *constructors):
        assert not checked(f"let it = {text}\n"), text


def test_the_table_does_not_rename_what_is_there() -> None:
    known = [
        n
        for n in (*TABLE["same"], *TABLE["like"], *TABLE["said"])
        if n.isidentifier() and not checked(f"let it = {n}\n")
    ]
    assert not known


def test_members_of_the_table_are_not_there() -> None:
    assert not [n for n in TABLE["members"] if not checked(f"let it = {n}\n")]


def test_modules_that_are_not_to_be_proposed_exist() -> None:
    for module in TABLE["hidden"]["names"]:
        assert not checked(f"open {module}\n")


@pytest.mark.parametrize(
    ("text", "way"),
    [
        ("inv [[1.0]]", "Linalg.inverse"),
        ("hessian (fun x -> x)", "Ad.hessian"),
        ("throw 1", "Control.throw"),
        ("pow 2.0 3.0", "x ** y"),
        ("ln 2.0", "log"),
        ("str 1", "show"),
        ("append 1 2", "xs ++ ys"),
        ("raise 1", "Control.throw"),
        ("failwith 1", "error"),
        ("isnan 1.0", "x <> x"),
        ("infinity", "inf"),
        ("eye 3", "Linalg.identity"),
        ("matmul 1 2", "a @ b"),
        ("stop_gradient 1.0", "stop_grad"),
        ("stopGradient 1.0", "stop_grad"),
        ("vmap 1", "map"),
        ("np.exp 1.0", "exp"),
        ("np.diff [1.0]", "Array.diff xs"),
        ("jnp.linalg.inv 1.0", "Linalg.inverse"),
        ("Math.sqrt 2.0", "sqrt"),
        ("List.fold_left 1", "List.fold"),
        ("List.lenght 1", "List.length"),
        ("Array.of_list 1", "List.to_array"),
        ("Hashtbl.create 1", "Map.empty"),
        ("List.hessian 1", "Ad.hessian"),
        ("Stats.mean 1", "mean"),
        ("Plot.plot 1", "Plot.line"),
        ("lenght [1]", "length"),
        ("pirnt 1", "print"),
        ("readText 1", "Data.read_text"),
        ("[1.0].shape", "length x"),
        ("[1.0].sum", "sum [1.0]"),
        ("(Optim.sgd, fun p -> p.step)", "Optim.descent"),
        ("(Optim.usual, fun p -> p.most)", "Optim.goal"),
        ("(Ode.dopri5, fun p -> p.most)", "Ode.tolerance"),
        ("(Optim.sgd, fun p -> p.start)", "Optim.descent"),
        ("(fun p -> p.step) 1", "no record type has it"),
        ("Just 1", "Some"),
        ("Conv2d 1", "Nn.conv2d"),
        ("AvgPool2d 1", "Nn.mean_pool2d"),
        ("LogNormal 1", "Dist.Lognormal"),
        ("(fun (x : double) -> x) 1", "float"),
        ("(fun (x : strng) -> x) 1", "string"),
        ("(fun (x : option) -> x) 1", ""),
        ("fun f g -> f . g", "fun x -> f (g x)"),
        ("total + 1 where total = 1", "let x = e in body"),
        ("(let mutable k = 1 in k)", "ref e"),
        ("loop _ = () for i < 3 do print 1; print i", "(a; b)"),
        ("List.reverse [1;]", "List.rev xs"),
        ("List.norm [1.0;]", "List.to_array xs"),
        ("Linalg.solve_lower 1", "Linalg.triangular_solve"),
        ("List.indexed [1;]", "List.mapi (fun i x -> (i, x)) xs"),
        ("Optim.minimize Optim.lbfgs", "Optim.lbfgs Optim.usual f start"),
        ("Prob.exact (fun () -> Control.require (Prob.flip 0.5); 1)", "Prob.observe c"),
        ('String.pad 5 "x"', "String.pad_left"),
        ("range(0, 10, 2)", "[for i < n -> 0 + 2 * i]"),
        ("fun x -> x.to_float()", "functions stand before what they are given"),
        ("fun x -> try x catch e -> 0", "Control.attempt"),
        ("fun n -> loop s = 0 for i from 1 to n do s + i", "for i < n do e"),
        ("fun x -> switch x { case 0: 1 }", "match x with"),
        ("Optim.lbfgs 10", "{ Optim.usual with most = ... }"),
        ("(\n  for i in range(3):\n    print i)", "loop _ = () for i < n do"),
        ("loop (k, n) = (0, 1) while k < 3 do (k + 1, n); n", "(a; b)"),
    ],
)
def test_what_is_proposed(text: str, way: str) -> None:
    helps = told(f"let it = {text}\n")
    assert re.search(rf"(?<![\w.]){re.escape(way)}", helps), helps


@pytest.mark.parametrize("name", ["xyz", "fof", "zz", "q", "foo", "baz", "val", "total", "gnu"])
def test_no_wild_guesses(name: str) -> None:
    assert told(f"let it = {name} 1\n") == ""


@pytest.mark.parametrize(
    ("one", "other", "slips"),
    [
        ("lenght", "length", 1),
        ("sni", "sin", 1),
        ("fft", "fst", None),
        ("inv", "sin", None),
        ("summ", "sum", 1),
        ("read_csv", "readCsv", 0),
        ("throw", "show", None),
        ("tnah", "tanh", 1),
        ("checkpont_lop", "checkpoint_loop", 2),
        ("x", "y", None),
    ],
)
def test_distance(one: str, other: str, slips: int | None) -> None:
    assert distance(one, other) == distance(other, one) == slips


def test_what_is_declared_below() -> None:
    text = "let f x = g x\nlet h p = p.speed\nlet g x = x\ntype t = { speed : float }\n"
    errors = checked(text)
    assert [e.labels[0].span.line for e in errors] == [3, 4]
    assert all("before its use" in e.helps[0] for e in errors)
