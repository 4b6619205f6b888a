"""Every operation has one row, and nothing else lists operations: no set of their names is kept beside the rows."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import dplc
import pytest
from dpl.diagnostics import Bug
from dpl.node import replace
from dplc.ad.reverse.transpose import TRANSPOSES
from dplc.flat import interp, interp_ops
from dplc.flat import term as f
from dplc.flat.ops.row import Derivative, Effect, Fails, Row, Rule
from dplc.flat.ops.table import OPS
from dplc.machine.emit.llvm import emit_text
from dplc.machine.emit.operations import array_ops
from dplc.machine.emit.operations.emitters import EMITTERS, alone
from dplc.passes.memory.reference_counts import count_references
from dplc.passes.simplify.simplify import simplify
from unit.machine.native import Main

FOLDER = Path(dplc.__file__).parent

WRITTEN_BY_NAME = {
    "flat/interp_ops.py": "evaluations",
    "ad/reverse/transpose.py": "transposes",
    "machine/emit/operations/emitters.py": "emitters",
    "machine/emit/operations/array_ops.py": "emitters",
    "machine/emit/operations/accumulators.py": "emitters",
    "machine/emit/scalars/maths.py": "emitters of scalars",
    "machine/emit/scalars/vectors.py": "emitters of vectors",
    "machine/emit/points/lane_places.py": "indices of lanes that are cut off",
    "machine/runtime/library.py": "the runtime's functions",
    "machine/runtime/elementary.py": "LLVM's instructions for the steps of elementary functions",
    "machine/rtl/expressions.py": "LLVM's instructions",
    "passes/lower/primitives.py": "what primitives become",
    "passes/scalar_replacement/few_elements.py": "the elements of results",
    "passes/parallel/late_views.py": "views of the elements of an array",
    "passes/arrays/fold_transposes.py": "a rewrite of products of matrices",
    "passes/parallel/added_rows.py": "rewrites of additions",
    "passes/inversion/sites/opposites.py": "signs of what is computed",
    "passes/simplify/constant_copies.py": "how a number becomes part of an index",
    "passes/simplify/fold.py": "folds of operations on arrays",
    "passes/specialise/operands.py": "primitives of core",
    "pipeline.py": "what kinds of code a stage changes",
    "tools/repl/native.py": "primitives of core",
    "tools/build/header.py": "words of C",
    "tools/nonfinite.py": "advice about primitives",
}
"""The files that go through operations, or other things of such names, one by one."""


def words(node: ast.AST | None) -> set[str]:
    """The operations that a collection lists, as elements or keys, or a pattern as alternatives."""
    found: set[str] = set()
    for part in ast.walk(node) if node is not None else ():
        items = part.elts if isinstance(part, ast.Set | ast.List | ast.Tuple) else ()
        items = part.keys if isinstance(part, ast.Dict) else items
        if isinstance(part, ast.MatchOr):
            items = [one.value for one in part.patterns if isinstance(one, ast.MatchValue)]
        found |= {str(item.value) for item in items if isinstance(item, ast.Constant) and item.value in OPS}
    return found


def lists(file: Path) -> list[set[str]]:
    """The collections of operations that a module keeps, those of more than two that it asks on the way, and patterns
    of more than four."""
    text = file.read_text(encoding="utf-8")
    if len(OPS.keys() & set(re.findall(r'"(\w+)"', text))) < 2:
        return []
    tree = ast.parse(text)
    kept = [words(one.value) for one in tree.body if isinstance(one, ast.Assign | ast.AnnAssign)]
    asked = [words(one.comparators[0]) for one in ast.walk(tree) if isinstance(one, ast.Compare)]
    matched = [words(one) for one in ast.walk(tree) if isinstance(one, ast.MatchOr)]
    return [
        *(found for found in kept if len(found) > 1),
        *(found for found in asked if len(found) > 2),
        *(found for found in matched if len(found) > 4),
    ]


def test_no_other_file_lists_operations() -> None:
    found = {
        str(file.relative_to(FOLDER)): one
        for file in sorted(FOLDER.rglob("*.py"))
        if FOLDER / "flat" / "ops" not in file.parents
        for one in lists(file)
    }
    assert not {name: one for name, one in found.items() if name not in WRITTEN_BY_NAME}
    assert set(WRITTEN_BY_NAME) <= set(found), "a file that lists nothing any more"


@pytest.mark.parametrize("record", [Row, Derivative])
def test_no_column_has_a_default(record: type) -> None:
    assert not any(default.init for default in record._defaults.values())


def test_every_operation_has_an_emitter_and_an_evaluation() -> None:
    assert set(EMITTERS) == set(OPS), "emitters are in machine/emit/operations"
    assert set(interp_ops.EVALUATE) == set(OPS), "evaluations are in flat/interp_ops.py"


def test_every_operation_has_a_derivative_or_says_why_not() -> None:
    for row in OPS.values():
        assert (row.name in TRANSPOSES) == (row.derivative.rule is Rule.LINEAR), row.name
        assert (row.scalar is not None) == (row.derivative.rule is Rule.TABLE), row.name
        if row.derivative.rule is Rule.ZERO:
            assert row.derivative.flows == (), row.name


def test_columns_agree_with_each_other() -> None:
    for row in OPS.values():
        of = row.derivative
        flows = set(of.flows or ())
        assert row.doc, row.name
        assert {*of.bilinear, *of.sums, *of.curved} <= flows, row.name
        assert not (of.chooses and of.multiplies), row.name
        assert len(of.bilinear) in (0, 2), row.name
        assert not row.accumulates or row.changes, row.name
        assert not row.changes or (row.fresh and 0 in row.own), row.name
        assert not row.fresh or row.effects is Effect.NONE, row.name
        assert not row.cheap or row.pure, f"{row.name} may be done again"
        assert not (row.cheap and row.elementwise) or row.quick, row.name
        assert not (row.light and row.cubic), row.name
        assert not row.finds or OPS[row.finds].keeps, row.name
        assert not row.keeps or (of.chooses and OPS[row.keeps].result((f.F64, f.F64), {}) == (f.BOOL,)), row.name
        assert row.sign is None or row.sign[0] in (1, -1), row.name
        assert row.scalar is None or (row.elementwise and row.own == tuple(range(row.scalar.arity))), row.name
        assert not (row.pure and row.fails is Fails.CHECK), row.name


def test_evaluations_of_text_bits_and_cells() -> None:
    m = Main()
    for text in ("12", "1.5"):
        for var in m.bind(f.Op("str_to_int", (f.Const(text, f.STR),)), (f.I64, f.BOOL)):
            m.number(var)
    m.number(m.op("bitcast", (m.op("bitcast", (m.float(-2.5),), to="u64"),), to="f64"))
    cell = m.bind(f.Op("state", (), (("name", "count"),)), (f.Ref(f.I64),))[0]
    m.effect("ref_set", (cell, m.op("add", (m.op("ref_get", (cell,)), m.int(3)))))
    m.number(m.op("ref_get", (cell,)))
    assert interp.run(m.program()) == "12 true 0 false -2.5 3 "


def test_an_operation_that_is_not_there() -> None:
    with pytest.raises(Bug, match="no operation matmull"):
        OPS["matmull"]
    assert OPS.get("matmull") is None


def test_to_add_an_operation_is_to_write_a_row_an_emitter_and_an_evaluation(monkeypatch) -> None:
    """Passes and machine know the rest: two that are equal are one, one that is not needed goes."""
    row = replace(OPS["transpose"], name="turned", doc="a of rank 2 -> its transpose")
    monkeypatch.setitem(OPS, "turned", row)
    monkeypatch.setitem(EMITTERS, "turned", alone(array_ops.transpose))
    monkeypatch.setitem(interp_ops.EVALUATE, "turned", interp_ops.value(interp_ops.transpose))
    m = Main()
    a = m.op("array", [m.op("array", [m.float(x), m.float(y)]) for x, y in ((1.0, 2.0), (3.0, 4.0), (5.0, 6.0))])
    m.op("turned", (a,))
    for _ in range(2):
        m.numbers(m.op("turned", (a,)))
    program = simplify(m.program())
    made = [bind.rhs for fn in program.fns.values() for bind in fn.body.binds]
    assert sum(getattr(rhs, "op", "") == "turned" for rhs in made) == 1
    assert interp.run(program) == "1.0 3.0 5.0 2.0 4.0 6.0 " * 2
    assert emit_text(count_references(program))[0].count("call void @rt.transpose.8(") == 1
