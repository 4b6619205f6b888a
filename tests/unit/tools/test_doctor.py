"""`dpl doctor`: every line has a state, and something broken makes the exit code 1."""

import json
from pathlib import Path

import pytest
from dplc.tools import doctor


def test_all_is_well(dpl) -> None:
    run = dpl("doctor")
    assert run.returncode == 0, run.stdout + run.stderr
    named = [line.split()[1] for line in run.stdout.splitlines()]
    assert named[:4] == ["dpl", "system", "python", "llvm"] and named[-2:] == ["interp", "native"]
    assert "BROKEN" not in run.stdout


def test_what_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without the self-tests: nothing that they compile would be kept in this cache."""
    monkeypatch.setenv("DPL_CACHE", str(tmp_path))
    monkeypatch.setattr(doctor, "self_tests", lambda: [])
    tmp_path.chmod(0o777)
    assert doctor.examine(as_json=True) == 1
    found = {f["name"]: f["state"] for f in map(json.loads, capsys.readouterr().out.splitlines())}
    assert found["cache"] == "BROKEN"
    tmp_path.chmod(0o700)


@pytest.mark.parametrize("place", ["/dev/null/cache", "/proc/cache"])
def test_a_cache_that_cannot_be_made_is_told(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """Root may write everywhere, as far as permissions say."""
    monkeypatch.setenv("DPL_CACHE", place)
    found = doctor.guarded(doctor.cache)
    assert found.state == "BROKEN" and found.text.startswith(f"{place} cannot be written: ")


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPL_CACHE", str(tmp_path))
    monkeypatch.setattr(doctor, "LARGE", 1 << 26)
    resource = pytest.importorskip("resource")
    signal = pytest.importorskip("signal")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 25, before[1]))
    try:
        found = doctor.guarded(doctor.cache)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert found.state == "BROKEN" and found.text.endswith("cannot be written: File too large")


@pytest.mark.slow
def test_an_unusable_cache_breaks_nothing_else(dpl, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    run = dpl("doctor", "--json", DPL_CACHE=str(tmp_path))
    found = {f["name"]: f["state"] for f in map(json.loads, run.stdout.splitlines())}
    assert [name for name, state in found.items() if state == "BROKEN"] == ["cache"]
    assert run.returncode == 1 and "Traceback" not in run.stderr
    tmp_path.chmod(0o700)
