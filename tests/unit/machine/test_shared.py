"""The runtime library as one object: kept, made again when damaged, and complete."""

import pytest
from dplc.machine.runtime import shared
from dplc.machine.runtime.library import MENTIONED, generated, interface


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setenv("DPL_CACHE", str(tmp_path))
    monkeypatch.setattr(shared.shipped, "find", lambda *_: None)  # an installation may have brought one
    shared._kept.cache_clear()
    yield tmp_path / "objects"
    shared._kept.cache_clear()


def test_it_is_made_once_and_again_when_damaged(kept, monkeypatch):
    made = []
    monkeypatch.setattr(shared, "build", lambda: made.append(1) or shared.Shared({"rt.x": "text"}, b"code"))
    for _ in range(2):
        assert shared.code() == b"code"
        shared._kept.cache_clear()
    (entry,) = kept.iterdir()
    entry.write_bytes(entry.read_bytes()[:-1])
    assert shared.code() == b"code"
    assert len(made) == 2


def test_what_is_inlined_mentions_only_what_there_is():
    texts = interface()
    mentioned = {symbol for text in texts.values() for symbol in MENTIONED.findall(text)}
    ours = {symbol for symbol in mentioned if not symbol.startswith("llvm.") and ".text" not in symbol}
    assert {symbol for symbol in ours if not (symbol in texts or generated(symbol))} == set()
