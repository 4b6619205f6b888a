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


@pytest.mark.slow
def test_an_unusable_cache_breaks_nothing_else(dpl, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    run = dpl("doctor", "--json", DPL_CACHE=str(tmp_path))
    found = {f["name"]: f["state"] for f in map(json.loads, run.stdout.splitlines())}
    assert [name for name, state in found.items() if state == "BROKEN"] == ["cache"]
    assert run.returncode == 1 and "Traceback" not in run.stderr
    tmp_path.chmod(0o700)
