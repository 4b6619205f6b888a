"""Programs of `benchmarks/` give what the same programs in C give, whose derivatives are written by hand.  Where
there is no such program, reverse mode gives what forward mode and finite differences give."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))
import beside
import gradients
from rows import ROWS


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.parametrize("name", ROWS)
def test_results_are_those_of_c(name: str, tmp_path: Path) -> None:
    beside.results_agree(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("path", gradients.chosen([]), ids=lambda path: path.stem)
def test_gradients_are_slopes(path: Path) -> None:
    assert not gradients.disagreement(path)
