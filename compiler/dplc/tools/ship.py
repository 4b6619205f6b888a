"""python -m dplc.tools.ship: makes the entries that travel with an installation (`dpl/system/shipped.py`).

`hatch_build.py` runs it when DPL is installed from a checkout or a wheel is built.  The checked library and the tables
of the grammar fit every machine, the runtime library those with the same processor and LLVM.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor

from dpl.syntax import tables
from dpl.system import shipped
from dpl.types import library

from dplc.machine.llvm import target
from dplc.machine.runtime import shared
from dplc.stack import on_large_stack


def ship() -> None:
    """The runtime takes as long as the rest, so it is made in a process beside."""
    with ProcessPoolExecutor(1) as beside:
        made = beside.submit(ship_runtime)
        ship_language()
        made.result()


def ship_language() -> None:
    shipped.write(tables.NAME, [tables.source()], tables.version(), tables.packed_tables())
    shipped.write(library.NAME, library.sources(), (), on_large_stack(library.packed_library))


def ship_runtime() -> None:
    shipped.write(shared.NAME, shared.sources(), (target.describe(),), shared.packed())


if __name__ == "__main__":
    ship()
