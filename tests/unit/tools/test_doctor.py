"""`dpl doctor`: every line has a state, and something broken makes the exit code 1."""

import json
import os
from pathlib import Path


def test_all_is_well(dpl) -> None:
    run = dpl("doctor")
    assert run.returncode == 0, run.stdout + run.stderr
    named = [line.split()[1] for line in run.stdout.splitlines()]
    assert named[:4] == ["dpl", "system", "python", "llvm"] and named[-2:] == ["interp", "native"]
    assert "BROKEN" not in run.stdout


def test_what_is_broken(dpl, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    run = dpl("doctor", "--json", DPL_CACHE=str(tmp_path))
    found = {f["name"]: f["state"] for f in map(json.loads, run.stdout.splitlines())}
    assert found["cache"] == "BROKEN" and run.returncode == 1 and "Traceback" not in run.stderr
    os.chmod(tmp_path, 0o700)
