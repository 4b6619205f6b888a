"""Owners are counted right in whole programs, derivatives and all: each function is run on random values."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest
from conftest import ROOT
from counting import Counting, OutOfFuel
from dpl.source import Source
from dplc.flat import term as f
from dplc.passes.memory import borrow
from dplc.passes.memory.reference_counts import count_references
from dplc.pipeline import Context, compile_to

AGREE = ROOT / "tests" / "agree"
USUAL = {"trees", "gradient_structures", "arrays_of_data"}
PROGRAMS = [
    pytest.param(path, id=path.stem, marks=() if path.stem in USUAL else pytest.mark.slow)
    for folder in ("cases", "programs", "gradients")
    for path in sorted((AGREE / folder).glob("*.dp"))
]


def fused(path: Path) -> f.Program:
    """The program as the memory pass gets it, made on a thread with room for its depth."""
    source = Source(str(path), path.read_text(encoding="utf-8"), path)
    before = threading.stack_size(256 << 20)
    try:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(compile_to, "parallel", source, Context()).result()[1]
    finally:
        threading.stack_size(before)


@pytest.mark.parametrize("path", PROGRAMS)
def test_every_function_balances(path: Path) -> None:
    program = fused(path)
    borrowed = borrow.infer(program)
    counted = count_references(program)
    for name, fn in counted.fns.items():
        for seed in range(4):
            machine = Counting(counted, Random(seed))
            args = tuple(machine.make(p.ty) for p in fn.params)
            try:
                results = machine.call(name, args)
            except (OutOfFuel, RecursionError):
                continue
            for value in (*results, *(args[i] for i in borrowed[name])):
                machine.heap.drop(value)
            assert machine.heap.alive == 0, f"{name}, seed {seed}: {machine.heap.alive} blocks leak"
