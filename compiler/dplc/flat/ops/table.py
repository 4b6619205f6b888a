"""All operations of flat: the rows, by name.

To add an operation, write

    its row             in a file of this folder, beside similar operations (a scalar one: in `dpl/prims/scalar.py`)
    an emitter          `machine/emit/operations/emitters.py`, EMITTERS (a scalar one: `machine/emit/scalars/maths.py`)
    an evaluation       `flat/interp_ops.py`, EVALUATE (a scalar one: column `eval` of the primitive table)
    a transpose         `ad/reverse/transpose.py`, TRANSPOSES, if it is linear in floats (a scalar one: column `linear`)

and the code that makes it: the lowering of a primitive (`passes/lower/primitives.py`), or a pass.  Nothing else lists
operations; `tests/unit/flat/test_operations.py` checks that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpl.diagnostics import Bug

from dplc.flat.ops import accumulators, arrays, convolutions, effects, scalars, strings
from dplc.flat.ops.row import Row
from dplc.flat.term import Type


class _Table(dict[str, Row]):
    def __missing__(self, name: str) -> Row:
        raise Bug(f"flat has no operation {name}")


KINDS = (scalars, arrays, convolutions, accumulators, strings, effects)
OPS = _Table((row.name, row) for kind in KINDS for row in kind.ROWS)


def result_type(name: str, args: tuple[Type, ...], attrs: Mapping[str, Any]) -> Type:
    """The type of the result of an operation that has exactly one."""
    types = OPS[name].result(args, attrs)
    if types is None or len(types) != 1:
        raise Bug(f"{name} has not one result")
    return types[0]
