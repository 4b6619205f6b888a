"""Steps back go through the same states as steps forward, and repeat little of the run."""

from __future__ import annotations

import io

import pytest
from dpl.debug import run as running
from dpl.debug.debugger import Debugger
from dpl.source import Source
from dplc.pipeline import Context, compile_to
from dplc.stack import on_large_stack

PROGRAM = """let square x = x * x
let loss p =
  let y = reset (1.0 + shift k -> k (square p) + k 2.0) in
  let z = loop z = y for i < 40 do
    z + sin (z * p) in
  z * z
let count = ref 0.0
let slope = grad loss 0.3
do loop () = () for i < 3 do
  count := !count + loss (float i)
let late = Tree.map (fun x -> x * slope) (1.0, 2.0)
do print (!count, late)
"""


def debugger() -> Debugger:
    context = Context()
    program = compile_to("check", Source("main", PROGRAM), context)[1]
    made = Debugger(program, context.modules, [], io.StringIO())
    made.start()
    return made


@pytest.mark.parametrize("pace", [0.0, 10.0], ids=["many moments", "few moments"])
def test_steps_back_are_steps_forward_reversed(monkeypatch, pace: float) -> None:
    monkeypatch.setattr(running, "PACE", pace)

    def work() -> None:
        d = debugger()
        times, stopped = [d.run.time], d.go("step")
        while stopped.reason == "step":
            times.append(d.run.time)
            stopped = d.go("step")
        assert stopped.reason == "end" and len(times) > 150
        back, stopped = [], d.go("step", back=True)
        while stopped.reason == "step" and d.run.time:
            back.append(d.run.time)
            stopped = d.go("step", back=True)
        assert back == times[:0:-1]

    on_large_stack(work)


def test_a_step_back_repeats_few_steps(monkeypatch) -> None:
    monkeypatch.setattr(running, "PACE", 0.0)
    done, run = [], running.Run._run

    def counted(self: running.Run, *args) -> object:
        before = self.time
        found = run(self, *args)
        done.append(self.time - before)
        return found

    def work() -> None:
        d = debugger()
        d.go("continue")
        whole = d.run.time
        monkeypatch.setattr(running.Run, "_run", counted)
        for _ in range(60):
            done.clear()
            d.go("step", back=True)
            assert sum(done) <= 30 < whole // 10

    on_large_stack(work)
