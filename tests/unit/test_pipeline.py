"""The spine: each stage's row, its file and its name in `dpl dump` agree."""

from pathlib import Path

import pytest
from conftest import ROOT
from dplc import pipeline
from dplc.pipeline import STAGES, Stage


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
    assert kinds - others <= set(pipeline.NAMES)
