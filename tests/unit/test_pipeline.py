"""The spine says of itself what it does."""

from dplc import pipeline


def test_stages_are_as_listed():
    listed = [line.split()[0] for line in (pipeline.__doc__ or "").splitlines()[2:]]
    assert listed == list(pipeline.NAMES) == [stage.name for stage in pipeline.stages()]
