"""Steps back go through the same states as steps forward, and repeat little of the run."""

from __future__ import annotations

import gc
import io
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from dpl import host
from dpl.debug import debugger as debugging
from dpl.debug import depths, history, inspect
from dpl.debug import run as running
from dpl.debug.debugger import Debugger
from dpl.debug.journal import Mark
from dpl.eval.values.active import Node
from dpl.source import Source
from dpl.syntax.load import read
from dplc.pipeline import Context, compile_to
from dplc.stack import on_large_stack
from dplc.tools import nonfinite
from dplc.tools.debug import session, show

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


def debugger(text: str = PROGRAM) -> Debugger:
    context = Context()
    program = compile_to("check", Source("main", text), context)[1]
    made = Debugger(program, context.modules, [], io.StringIO())
    made.start()
    return made


def test_a_recursion_that_does_not_end() -> None:
    def work() -> None:
        d = debugger("let rec depth n = if n < 0 then 0 else 1 + depth (n + 1)\ndo print (depth 0)\n")
        d.run.machine.most_frames = 5000
        stopped, time = d.go("continue"), d.run.time
        assert stopped.reason == "error" and "recursion is too deep" in stopped.text
        assert d.go("step", back=True).reason == "step" and d.run.time < time
        assert d.go("continue").text == stopped.text and d.run.time == time

    on_large_stack(work)


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


def counter() -> tuple[list[int], Callable[..., object]]:
    """How many steps each run takes, and a `Run._run` that notes it."""
    done, run = list[int](), running.Run._run

    def counted(self: running.Run, *args) -> object:
        before = self.time
        found = run(self, *args)
        done.append(self.time - before)
        return found

    return done, counted


def test_a_step_back_repeats_few_steps(monkeypatch) -> None:
    monkeypatch.setattr(running, "PACE", 0.0)
    done, counted = counter()

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


DEEP = """let rec down (n : int) (x : float) : float = if n = 0 then x else 1.0 + sin (down (n - 1) x)
let outer x =
  let y = down 300 x in
  let z = loop s = y for i < 100 do down 1 s in
  z + 1.0
do print (outer 1.0)
do print (grad outer 1.0)
"""


def test_a_step_back_over_calls_passes_them(monkeypatch) -> None:
    """Moments tell that the program was deeper, or met no breakpoint: what lies between is not run again."""
    monkeypatch.setattr(running, "PACE", 0.0)
    monkeypatch.setattr(running, "MOST", 16)
    done, counted = counter()

    def work() -> None:
        d = debugger(DEEP)
        made = d.add_breakpoint("main:5")
        d.go("continue")
        d.delete_breakpoint(made.number)
        monkeypatch.setattr(running.Run, "_run", counted)
        lines = []
        for _ in range(2):
            d.go("next", back=True)
            lines.append(d.frames()[0].place.point.line)
        assert lines == [4, 3] and sum(done) < 400

    on_large_stack(work)


def test_a_step_out_of_a_sweep_passes_it_and_what_it_differentiates(monkeypatch) -> None:
    monkeypatch.setattr(running, "PACE", 0.0)
    monkeypatch.setattr(running, "MOST", 16)
    done, counted = counter()

    def work() -> None:
        d = debugger(DEEP)
        made = d.add_breakpoint("main:4:rev", hits=90)
        d.go("continue")
        d.delete_breakpoint(made.number)
        monkeypatch.setattr(running.Run, "_run", counted)
        d.go("out", back=True)
        assert [frame.place.point.line for frame in d.frames()] == [7] and sum(done) < 100

    on_large_stack(work)


def test_a_sweep_without_operations_has_no_steps() -> None:
    def work() -> None:
        d = debugger("let f (x : float) = 1.0\ndo print (grad f 2.0)\ndo print 1\n")
        d.add_breakpoint("rev")
        lines = []
        while d.go("step").reason == "step":
            lines.append(d.frames()[0].place.point.line)
        assert lines == [2, 1, 3] and d.stopped.reason == "end"
        assert d.go("next", back=True).reason == "step" and d.frames()[0].place.point.line == 3

    on_large_stack(work)


def test_a_step_out_of_a_loop_leaves_its_function() -> None:
    def work() -> None:
        d = debugger(DEEP)
        made = d.add_breakpoint("main:4", "s > 1.0")
        assert d.go("continue").reason == "breakpoint"
        d.delete_breakpoint(made.number)
        d.go("out", back=True)
        assert [frame.place.point.line for frame in d.frames()] == [6]

    on_large_stack(work)


IN_A_LINE = """let halves n =
  let k = ref n in
  let c = ref 0 in
  loop _ = () while !k > 1 do
    (k := !k / 2;
     c := !c + 1);
  !c
do print (loop s = 0 for i < 200 do s + halves (i + 100))
"""


def noted_looks(monkeypatch) -> list[int]:
    """The moments at which the debugger looks at where the program stands, from now on."""
    looks, position = [], debugging.Debugger.position

    def looked(self: Debugger):
        looks.append(self.run.time)
        return position(self)

    monkeypatch.setattr(debugging.Debugger, "position", looked)
    return looks


def test_a_step_out_passes_the_calls_of_a_loop_in_one_line(monkeypatch) -> None:
    """The whole item is one point; still the frame of its loop is its own."""
    monkeypatch.setattr(running, "PACE", 10.0)

    def work() -> None:
        d = debugger(IN_A_LINE)
        d.add_breakpoint("main:2", "n = 299")
        assert d.go("continue").reason == "breakpoint"
        d.clear_breakpoints()
        looks = noted_looks(monkeypatch)
        d.go("out", back=True)
        assert [frame.place.point.line for frame in d.frames()] == [8] and len(looks) < 100

    on_large_stack(work)


def test_frames_that_two_deep_chains_share_are_not_walked(monkeypatch) -> None:
    walked, lower = [], depths.Depths.lower
    monkeypatch.setattr(depths.Depths, "lower", lambda self: (walked.append(1), lower(self))[1])

    def work() -> None:
        d = debugger(DEEP.replace("300", "3000"))
        d.add_breakpoint("main:1", "n = 10")
        for _ in range(2):
            d.go("continue")
        d.run.history.keep(d.run.moment())
        d.go("step")
        walked.clear()
        d.go("next", back=True)
        assert 0 < len(walked) < 100

    on_large_stack(work)


NESTED = """let yielded (x : float) = shift k -> x + 0.5 * k ()
let produced n =
  let sum = reset (
    let _ = loop _ = () for i < n do
      yielded (sin (float i)) in
    0.0) in
  sum + 1.0
do print (produced 120)
"""
STATES = """let tick () = shift k -> fun s -> k s (s + 1)
let rec ticks (n : int) (sum : int) : int =
  if n = 0 then sum
  else
    let t = tick () in
    ticks (n - 1) (sum + t)
let counted n =
  let run = reset (let sum = ticks n 0 in fun s -> sum + s) in
  run 0
do print (counted 100)
"""
CHOICES = """let flip () = shift k -> k 0 + k 1
let rec many (n : int) : int =
  if n = 0 then 0
  else
    let a = flip () in
    a + many (n - 1)
let count n =
  let found = reset (many n) in
  found + 1
do print (count 6)
"""


PAUSES = """let pause (x : int) : int = shift k ->
  let y = x + 1 in
  k y
let rec deep (n : int) : int =
  if n = 0 then pause 1
  else
    1 + deep (n - 1)
let body () =
  let a = deep 9 in
  let b = deep 9 in
  a + b
let total =
  reset (1 * body ())
do print total
"""
WITH_CONTINUATIONS = pytest.mark.parametrize("text", [NESTED, STATES, CHOICES], ids=["nested", "states", "choices"])


@WITH_CONTINUATIONS
def test_steps_back_pass_continuations(monkeypatch, text: str) -> None:
    """What the program continued with at the lowest tells that it was deeper."""
    monkeypatch.setattr(running, "PACE", 0.0)
    monkeypatch.setattr(running, "MOST", 16)

    def work() -> None:
        d = debugger(text)
        d.go("continue")
        end = d.run.time
        looks = noted_looks(monkeypatch)
        while d.go("next", back=True).reason == "step":
            pass
        assert d.run.time == 0 and len(looks) < 60 and end > 800

    on_large_stack(work)


@pytest.mark.parametrize("text", [NESTED, STATES, CHOICES, PAUSES], ids=["nested", "states", "choices", "pauses"])
def test_continuations_that_are_passed_were_deeper(monkeypatch, text: str) -> None:
    """A step back that looks at every stop finds the same."""
    monkeypatch.setattr(running, "PACE", 0.0)
    monkeypatch.setattr(running, "MOST", 16)

    def back(d: Debugger, time: int, move: str) -> tuple:
        d.run.go_to(time)
        d.stopped = debugging.Stop("step")
        return d.go(move, back=True), d.run.time

    def work() -> None:
        d = debugger(text.replace("120", "12").replace("100", "12").replace("count 6", "count 3"))
        d.go("continue")
        wanted = [(time, move) for time in range(7, d.run.time, d.run.time // 9) for move in ("next", "out")]
        found = [back(d, *where) for where in wanted]
        monkeypatch.setattr(depths.Depths, "stays_deeper", lambda *_: False)
        assert found == [back(d, *where) for where in wanted]

    on_large_stack(work)


EXCHANGED = """let tick (x : int) = shift k ->
  let y = x + 1 in
  k y
let rec many n (x : int) =
  if n = 0 then x
  else
    let y = tick x in
    let z = y * 3 % 7 in
    1 + many (n - 1) z
do print (reset (
  let a = many 12 0 in
  a + 1))
"""


def test_an_exchanged_chain_is_looked_at(monkeypatch) -> None:
    """Moments on both sides of a `tick` share the calls of `many`, but between them was the body of `tick`, which is
    not deeper than what resets."""
    monkeypatch.setattr(running, "PACE", 1000.0)
    monkeypatch.setattr(running.Run, "_keep", running.Run.keep)
    monkeypatch.setattr(running.Run, "_adapt", lambda *_: None)

    def work() -> None:
        for steps in range(2, 12):
            d = debugger(EXCHANGED)
            d.run.slice = steps
            d.add_breakpoint("main:12")
            d.go("continue")
            assert d.go("next", back=True).reason == "step" and d.line_now() == 3, steps

    on_large_stack(work)


def test_a_stop_looks_at_one_frame(monkeypatch) -> None:
    asked, environment = [], inspect.environment
    monkeypatch.setattr(inspect, "environment", lambda data: (asked.append(1), environment(data))[1])

    def work() -> None:
        d = debugger(DEEP)
        d.add_breakpoint("main:1", "n = 10")
        d.go("continue")
        asked.clear()
        assert show.stop(d, d.stopped) and len(asked) < 10 < len(d.frames())

    on_large_stack(work)


def test_a_graph_that_is_done_is_held_by_moments_only(fresh_heap) -> None:
    def work() -> None:
        d = debugger("let f x = sin (x * x)\ndo print (loop x = 1.0 for i < 8 do x - 0.1 * grad f x)\n")
        d.go("continue")
        history, last = d.run.history, d.run.history.moments[-1]
        history.moments[:] = [last]
        gc.collect()
        assert sum(isinstance(thing, Node) and thing.visit is not None for thing in gc.get_objects()) < 10

    on_large_stack(work)


def test_moments_have_a_budget(monkeypatch) -> None:
    """Those that are inside of a gradient that is done go first; the first of each gradient and the newest stay."""
    kept: history.History | None = None
    size = history.MEMORY // 80
    used = lambda *_: size * len(kept.moments) if kept else 0  # noqa: E731
    monkeypatch.setattr(type(host.current), "resident", used)
    monkeypatch.setattr(history.sys, "getallocatedblocks", used)
    kept = history.History(lambda moment: moment.time // 10 + 1 if moment.time % 10 > 2 else 0)
    for time in range(1, 100):
        kept.keep(moment_at(time))
    times = [moment.time for moment in kept.moments]
    assert times[0] == 1 and times[-1] == 99 and len(times) <= 81
    assert {time for time in range(1, 100) if time % 10 <= 3} <= set(times)


def moment_at(time: int) -> history.Moment:
    nothing = (lambda *_: None, None, ())
    return history.Moment(time, 0, *nothing, None, 0, Mark(0, 0, 0), (None, None), history.Stops(), history.Since())


def test_a_way_back_searches_no_old_objects_for_cycles(monkeypatch) -> None:
    """What the moments hold is set aside meanwhile: a search through a gigabyte takes a second."""
    frozen, back = [], running.Run._backward
    monkeypatch.setattr(running.Run, "_backward", lambda *args: (frozen.append(gc.get_freeze_count()), back(*args))[1])

    def work() -> None:
        d = debugger()
        d.go("continue")
        d.go("step", back=True)
        assert frozen[0] > 1000 and gc.get_freeze_count() == 0

    on_large_stack(work)


def test_a_step_that_takes_long_is_left(monkeypatch) -> None:
    """A loop in one line is one step, which does not end here."""
    monkeypatch.setattr(session, "PATIENCE", 0.1)
    d = debugger("let spin (x : float) = loop s = x while s > -3.0 do sin (s + 1.0)\ndo print (spin 1.0)\n")
    threads: list[int] = []

    def work() -> debugging.Stop:
        threads.append(threading.get_ident())
        return d.go("continue")

    with ThreadPoolExecutor(1) as pool:
        stopped = pool.submit(work)
        while not d.run.running:
            assert not stopped.done()
        session.pause(d, threads[0])
        assert stopped.result().reason == "pause"
    assert 0 < d.run.time < 20 and d.go("continue", back=True).reason != "pause"


def test_ctrl_c_on_the_way_back() -> None:
    def work() -> None:
        d = debugger()
        d.go("continue")
        d.add_breakpoint("main:3", "p > 99.0")
        d.run.interrupted = True
        assert d.go("continue", back=True).reason == "pause"
        assert d.go("continue").reason == "end"

    on_large_stack(work)


@pytest.mark.parametrize("program", ["length_at_zero", "zero_times_infinity", "log_of_negative"])
def test_a_number_that_is_not_finite_is_told_once(monkeypatch, capsys, program: str) -> None:
    """Wherever the moments lie: also within the sweep that makes it."""
    source = read(Path(__file__).parent / "sessions" / f"{program}.dp")
    said = []
    for pace in (0.0, 10.0):
        monkeypatch.setattr(running, "PACE", pace)
        checked = compile_to("check", source, Context())[1]
        assert on_large_stack(lambda checked=checked: nonfinite.interpret(checked, {source}, [], "warn")) == 0
        said.append(capsys.readouterr())
    assert said[0] == said[1] and said[0].err.count("warning[W0601]") == 1
