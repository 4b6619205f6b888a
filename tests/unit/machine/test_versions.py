"""Tiered compilation: the quick version of a program, the optimiser's process, and functions that are replaced."""

from __future__ import annotations

import os
import signal
import struct
from pathlib import Path

import pytest
from dpl.syntax.load import read
from dplc.machine.emit.bodies.resume import type_of
from dplc.machine.failure import trace
from dplc.machine.llvm import sampler, versions
from dplc.machine.object.image import Image
from dplc.machine.run import cache
from dplc.machine.run.hot import everything, repaying
from dplc.machine.run.linked import quickly_linked
from dplc.machine.run.places import instructions, with_places
from dplc.machine.run.program import LoadedImage, Program, load, run_loaded
from dplc.machine.run.ticks import ticking
from dplc.machine.run.tiers import Upgrade, earlier
from dplc.pipeline import Context, compile_to
from dplc.stack import on_large_stack

TEXT = """
let step w xs = sum (map (fun x -> x * w + 1.0) xs)
let rec descend w n = if n = 0 then w else descend (w - 0.001 * grad (fun w -> step w [1.0, 2.0] ** 2.0) w) (n - 1)
do print (descend 1.0 1000)
let rec fib n = if n < 2 then n else fib (n - 1) + fib (n - 2)
do print (fib 15, [for i < 5 -> fib i])
"""


IMAGE = Image(b"", 0, 0, 0, b"", [], {}, {})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "it.dp"
    path.write_text(TEXT)
    return path


def quick(file: Path) -> Program:
    source = read(file)
    text, sites = on_large_stack(lambda: compile_to("llvm", source, Context())[1])
    program = quickly_linked(text, sites.to_json())
    cache.store(file, [source], program)
    return program


def test_quick_code_has_the_places_of_failures_only_when_it_has_failed(file: Path) -> None:
    program = quick(file)
    made = with_places(program.code, program.text)
    assert instructions(made) == instructions(program.code)
    assert trace.read(trace.Object(made)).rows
    assert not trace.read(trace.Object(program.code)).rows


def wait(upgrade: Upgrade) -> None:
    """Until the optimiser's process has ended; it is still to be asked for its status."""
    os.waitid(os.P_PID, upgrade.process, os.WEXITED | os.WNOWAIT)


def output(program: Program, loaded: LoadedImage, capfd: pytest.CaptureFixture[str]) -> str:
    capfd.readouterr()
    assert run_loaded(program, loaded, []) == 0
    return capfd.readouterr().out


def test_the_optimiser_replaces_functions_and_fills_the_cache(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program = quick(file)
    expected = output(program, load(program), capfd)
    loaded = load(program)
    upgrade = Upgrade(program, loaded, str(file))
    fib, *others = sorted(program.lines, key=lambda name: "fib" not in name)
    for names in ([fib], others):
        upgrade.optimise(names)
        wait(upgrade)
        upgrade.look()
        assert output(program, loaded, capfd) == expected
        found = cache.find(file)
        assert found is not None and set(names) <= set(found.hot)
        assert output(found, load(found), capfd) == expected
    upgrade.end()
    assert not upgrade.folder and set(found.hot) == set(program.lines)
    (_, first), (_, other) = loaded.versions
    for image in (loaded, first):
        for name, cell in image.image.cells.items():
            if name.startswith("dpl "):
                at = int.from_bytes(image.memory[cell : cell + 8], "little")
                assert other.base <= at < other.base + other.image.size


@pytest.mark.skipif(not sampler.is_possible(), reason="no samples on this system")
def test_samples_tell_which_functions_are_hot(file: Path) -> None:
    program = quick(file)
    loaded = load(program)
    fib = next(name for name in program.lines if "fib" in name)
    within, elsewhere = loaded.base + loaded.image.exports[fib] + 8, 16
    upgrade = Upgrade(program, loaded, str(file))
    start = loaded.image.exports[sampler.SAMPLES]
    for row, words in enumerate(([within], [elsewhere, elsewhere, within, loaded.start + 4], [elsewhere])):
        struct.pack_into(f"<{len(words)}Q", loaded.memory, start + 8 + row * sampler.SIZE, *words)
    struct.pack_into("<q", loaded.memory, start, 3)
    upgrade.hot()
    assert upgrade.profile is not None and list(upgrade.profile.seconds) == [fib]
    upgrade.end()
    assert earlier(upgrade.place) == upgrade.profile.seconds


@pytest.mark.skipif(not sampler.is_possible(), reason="no samples on this system")
def test_a_signal_takes_a_sample(file: Path) -> None:
    loaded = load(quick(file))
    exports = loaded.image.exports
    with ticking(loaded.base + exports[sampler.HANDLER], 1000.0):
        signal.raise_signal(signal.SIGPROF)
    count, place = struct.unpack_from("<2Q", loaded.memory, exports[sampler.SAMPLES])
    assert count == 1 and place != 0


def test_what_has_run_long_repays() -> None:
    program = Program(IMAGE, b"", "", text=b"there", lines={"hot": 1000, "short": 1000, "done": 5000}, hot=["done"])
    assert repaying(program, {"hot": 0.6, "short": 0.001, "done": 9.0, "unknown": 9.0}) == []
    assert repaying(program, {"hot": 0.8, "short": 0.001, "done": 9.0, "unknown": 9.0}) == ["hot"]
    assert everything(program, 9.0) == []


def test_without_a_cache_nothing_stays(file: Path) -> None:
    program = quick(file)
    upgrade = Upgrade(program, load(program), None)
    upgrade.optimise(program.lines)
    process, folder = upgrade.process, upgrade.folder
    upgrade.end()
    assert not os.path.exists(folder)
    with pytest.raises(ChildProcessError):
        os.waitpid(process, os.WNOHANG)


def test_a_program_that_is_not_worth_it_has_one_version(tmp_path: Path) -> None:
    file = tmp_path / "it.dp"
    file.write_text("do print (1, [2.0])\n")
    assert not quick(file).text


@pytest.mark.parametrize("choice, text", [("never", True), ("first", False)])
def test_the_environment_chooses(dpl, file: Path, choice: str, text: bool) -> None:
    run = dpl("run", file, DPL_OPTIMISE=choice)
    assert run.returncode == 0, run.stderr
    found = cache.find(file)
    assert found is not None and bool(found.text) == text
    assert dpl("run", "-O", "2", file).stdout == run.stdout
    again = cache.find(file)
    assert again is not None and not again.text


def test_versions_differ_in_marked_lines_and_linkage() -> None:
    def fn(name: str, *lines: str, linkage: str = "dso_local ", more: str = "") -> str:
        body = "".join(f"  {line}\n" for line in lines)
        return f'define {linkage}fastcc void @"dpl {name}"() nounwind{more} "frame-pointer"="non-leaf" {{\n{body}}}\n'

    marked = "a" + versions.QUICK, "b" + versions.FINAL
    call = 'call fastcc void @"dpl g"()'
    text = fn("f", *marked, call) + fn("g", *marked) + fn("h", *marked)
    assert versions.has_versions(text)
    assert versions.sizes(text) == {"dpl f": 3, "dpl g": 2, "dpl h": 2}
    assert versions.quick(text).startswith(fn("f", marked[0], call, linkage="") + fn("g", marked[0], linkage=""))
    assert versions.final(text) == fn("f", marked[1], call) + fn("g", marked[1]) + fn("h", marked[1])
    cold = fn("h", marked[0], linkage="", more=" optnone noinline")
    assert versions.mixed(text, ["dpl f"]).startswith(fn("f", marked[1], call) + fn("g", marked[1]) + cold)


@pytest.mark.parametrize(
    "text, leaf",
    [
        ("icmp eq i64 %a, 0", "i1"),
        ("getelementptr inbounds i8, ptr %p, i64 8", "ptr"),
        ("alloca [16 x i8], align 16", "ptr"),
        ("trunc i8 %a to i1", "i1"),
        ("fptosi double %a to i64", "i64"),
        ("inttoptr (i64 1 to ptr)", "ptr"),
        ("select i1 %c, ptr null, ptr %a", "ptr"),
        ("call fastcc double @f(i64 1), !dbg !1", "double"),
        ("notail call tailcc { ptr, i64 } @f()", "{ ptr, i64 }"),
        ("call { i64, i1 } @llvm.umul.with.overflow.i64(i64 %a, i64 %b)", "{ i64, i1 }"),
        ("extractvalue { ptr, ptr, i64 } %a, 2", "i64"),
        ("load i64, ptr %a, !llvm.access.group !1", "i64"),
        ("load volatile i8, ptr @x", "i8"),
        ("phi float [ %a, %b ]", "float"),
        ("add nuw nsw i64 %a, 1", "i64"),
        ("fneg double %a", "double"),
        ("insertvalue { i64, double } poison, i64 %a, 0", "{ i64, double }"),
        ("freeze i64 %a", "i64"),
    ],
)
def test_types_of_results(text: str, leaf: str) -> None:
    assert type_of(text) == leaf


def test_the_quick_version_calls_what_the_runtime_has() -> None:
    """Without optimisation, an inlined copy at each call takes longer to compile than the call, and to run."""
    inlined = "define internal i64 @rt.{}(i64 %a.n) nounwind alwaysinline {{\nentry:\n  ret i64 %a.n\n}}\n"
    own, kernel = inlined.format("own"), inlined.format("kernel")
    assert versions.called(own + kernel, {"rt.own"}) == "declare i64 @rt.own(i64 %a.n)\n" + kernel
