"""Modules against PyTorch, NumPyro, SciPy and NumPy, in both engines, at f64 and f32; `checked.py` makes a table of it.

`pytest -m slow tests/unit/stdlib/test_systems.py` compares those that take long.
"""

from __future__ import annotations

import pytest
from comparisons import Module, modules

# Searches and steps of given exactness differ by as much as was asked of them.
ALLOWED = {"Optim": (1e-7, 1e-4), "Ode": (1e-8, 1e-4), "Root": (1e-7, 1e-5)}

QUICK = {"Dist", "Transform", "Linalg", "Quad", "Nn: cells", "Nn: layers and losses"}
WAYS = [
    pytest.param(module, single, engine, id=f"{module.name}-{'f32' if single else 'f64'}-{engine[0]}",
                 marks=[] if module.name in QUICK and not single and engine[0] == "interp" else pytest.mark.slow)
    for module in modules() for single in (False, True) for engine in (("interp",), ("native", "-O0"))
]  # fmt: skip


@pytest.mark.parametrize(("module", "single", "engine"), WAYS)
def test_other_systems(dpl, module: Module, single: bool, engine: tuple[str, ...]) -> None:
    run = dpl("run", "--engine", *engine, "-", stdin=module.program(single))
    assert run.returncode == 0, run.stderr
    allowed = ALLOWED.get(module.name, (1e-12, 3e-5))[single]
    assert {c.call: d for c, d in module.differences(run.stdout) if not d <= allowed} == {}
