"""The spine: each stage's row, its file and its name in `dpl dump` agree."""

from pathlib import Path

import pytest
from conftest import ROOT
from dpl.diagnostics import Bug
from dpl.source import Source
from dplc import pipeline
from dplc.flat.parse import parse
from dplc.flat.show import show
from dplc.flat.term import Block, Program
from dplc.pipeline import COUNTED, STAGES, Context, Stage, compile_from, compile_to, verified
from dplc.tools.dump import dump_stage
from dplc.tools.process import told

SOURCE = Source("<here>", "let total = loop s = 0 for i < 9 do s + i * i\ndo print (total, sum [1.0, 2.0])\n")


def test_stages_are_as_listed() -> None:
    listed = [line.split()[0] for line in (pipeline.__doc__ or "").splitlines()[2:] if line.startswith(pipeline.NAMES)]
    assert listed == list(pipeline.NAMES)


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_stage_is_there(stage: Stage) -> None:
    """Every function that a row names exists; a pass is in the file of its name."""
    for place in (stage.function, stage.gives.show, stage.gives.verify):
        assert not place or callable(pipeline.named(place))
    module = stage.function.partition(":")[0]
    if not module.startswith("dplc.pipeline"):
        assert module.rpartition(".")[2] == stage.name.removesuffix("2")


def test_golden_folders_bear_the_names_of_stages() -> None:
    """A stage has its transcripts in the folder of its name."""
    kinds = {folder.name for folder in Path(ROOT, "tests", "golden").iterdir() if folder.is_dir()}
    others = {kind for kind in kinds if kind.endswith(("_errors", "__pycache__")) or kind in ("warnings", "plot")}
    assert kinds - others <= {*pipeline.NAMES, *pipeline.SIDE_NAMES}


@pytest.mark.parametrize("stage", pipeline.NAMES[:-1])
def test_every_stage_has_transcripts(stage: str) -> None:
    """Of a program on which it acts, and of another."""
    assert len(list(Path(ROOT, "tests", "golden", stage).glob("*.dp"))) >= 2, f"two programs in tests/golden/{stage}"


@pytest.mark.parametrize("start", pipeline.READABLE[::4])
def test_stages_go_on_from_a_dump(start: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`dpl dump fuse --from START FILE` is `dpl dump fuse` of the program."""
    file = tmp_path / "it.flat"
    file.write_text(show(compile_to(start, SOURCE, Context())[1]))
    assert dump_stage("reference_counts", str(file), None, start, True) == 0
    assert capsys.readouterr().out.rstrip() == show(compile_to("reference_counts", SOURCE, Context())[1]).rstrip()


def forgetful(program: Program) -> Program:
    """A stage that loses the last binding of `main`, which the results do not mention."""
    main = program.fns["main"]
    program.fns["main"] = type(main)("main", (), (), Block(main.body.binds[:-2], ()))
    return program


def test_a_stage_that_fails_is_named_and_can_be_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    value = compile_to("reference_counts", SOURCE, Context())[1]
    text = show(value)
    stage = Stage("llvm", COUNTED, "forgets", f"{__name__}:forgetful")
    with pytest.raises(Bug, match=r"after llvm: reference counts: in main: .* is never dropped") as failure:
        verified(stage, "reference_counts", value, Context(verify=True))
    command, _, file = failure.value.repeat.rpartition(" ")
    assert command == "dpl dump --check llvm --from reference_counts"
    assert show(parse(Source(file, Path(file).read_text()))) == text
    assert told(failure.value) == 70
    assert failure.value.repeat in capsys.readouterr().err
    Path(file).unlink()


def test_a_failing_verifier_ends_the_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_: object) -> None:
        raise Bug("flat: no")

    monkeypatch.setattr("dplc.flat.verify.verify", never)
    with pytest.raises(Bug, match="after lower: flat: no"):
        compile_to("lower", SOURCE, Context(verify=True))
    value = compile_to("lower", SOURCE, Context(verify=False))[1]
    with pytest.raises(Bug, match="after mutual: flat: no") as failure:
        compile_from("lower", value, "fuse", Context(verify=True))
    Path(failure.value.repeat.rpartition(" ")[2]).unlink()
