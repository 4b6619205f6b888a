"""The runtime library as one object: kept, made again when damaged, and complete."""

import pytest

from dplc.machine import shared
from dplc.machine.runtime import MENTIONED, interface, made_to_order


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setenv("DPL_CACHE", str(tmp_path))
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
    for text in texts.values():
        assert all(symbol in texts or made_to_order(symbol) or symbol.startswith(("llvm.", "rt.")) and ".text" in symbol
                   for symbol in MENTIONED.findall(text) if not symbol.startswith("llvm."))  # fmt: skip
