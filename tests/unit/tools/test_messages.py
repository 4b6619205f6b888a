"""How messages are told: their formats, their colours, which warnings are errors, and the JSON that editors read."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from conftest import ROOT

SCHEMA = jsonschema.Draft202012Validator(json.loads((ROOT / "editors/message.schema.json").read_text(encoding="utf-8")))
UNUSED = "let f x =\n  let y = x + 1 in\n  x * 2\ndo print (f 2)\n"


@pytest.fixture
def program(tmp_path: Path):
    def write(text: str) -> Path:
        file = tmp_path / "it.dp"
        file.write_text(text, encoding="utf-8")
        return file

    return write


def objects(text: str) -> list[dict]:
    found = [json.loads(line) for line in text.splitlines()]
    for message in found:
        SCHEMA.validate(message)
    return found


def test_the_schema_is_one() -> None:
    SCHEMA.check_schema(SCHEMA.schema)  # here only: it takes longer than to check a message


@pytest.mark.parametrize("folder", ["type_errors", "syntax_errors", "size_errors", "warnings"])
def test_json_of_every_kind_of_message(dpl, folder: str) -> None:
    files = sorted((ROOT / "tests/golden" / folder).glob("*.dp"))
    run = dpl("check", "--json", *files)
    assert not run.stderr
    assert {Path(m["span"]["file"]).name for m in objects(run.stdout) if m["span"]} <= {f.name for f in files}
    assert run.returncode == (folder != "warnings")


def test_json_counts_columns_as_editors_do(dpl, program) -> None:
    (message,) = objects(dpl("check", "--json", program('let s = "👍" ++ wrong\n')).stdout)
    start = message["span"]["start"]
    assert (start["line"], start["column"], start["offset"], start["utf16"]) == (1, 16, 15, 17)


def test_json_of_a_path(dpl, program) -> None:
    text = "let f x = x @ [1.0, 2.0]\nlet g x = f x\nlet r = g [[1.0]]\n"
    (message,) = objects(dpl("check", "--json", program(text)).stdout)
    assert [call["name"] for call in message["path"]] == ["g", "f"]
    assert message["path"][0]["about"] == "x : float[1, 1]"


def test_json_without_a_file(dpl) -> None:
    run = dpl("check", "--json", "nowhere.dp")
    (message,) = objects(run.stdout)
    assert message["span"] is None and run.returncode == 1


@pytest.mark.parametrize("more", ["--types", "--show-checks"])
def test_json_stands_alone(dpl, program, more: str) -> None:
    run = dpl("check", "--json", more, program(UNUSED))
    assert run.returncode == 2 and not run.stdout and "--json prints messages and nothing else" in run.stderr


def test_json_of_a_run_time_error(dpl, program) -> None:
    run = dpl("--message-format", "json", "run", program("do print (1 / 0)\n"))
    assert [m["code"] for m in objects(run.stderr)] == ["R0701"] and run.returncode == 1


def test_one_line_each(dpl, program) -> None:
    run = dpl("--message-format", "short", "check", program(UNUSED))
    assert run.stderr.endswith("it.dp:2:7: warning[W0203]: `y` is never used\n") and run.stderr.count("\n") == 1


@pytest.mark.parametrize("denied", ["warnings", "W0203", "w0203"])
def test_a_warning_that_is_denied(dpl, program, denied: str) -> None:
    file = program(UNUSED)
    for verb in ("check", "run"):
        run = dpl("--deny", denied, verb, file)
        assert run.returncode == 1 and run.stderr.startswith("error[W0203]") and not run.stdout
    assert dpl("--deny", "W0204", "run", file).stdout == "4\n"


@pytest.mark.parametrize("args", [("--deny", "W9999", "check"), ("--deny", "E0201", "check"), ("fmt", "")])
def test_words_that_mean_nothing(dpl, args: tuple[str, ...]) -> None:
    run = dpl(*args)
    assert run.returncode == 2 and ("there is no warning" in run.stderr or "this path is empty" in run.stderr)


def test_quiet(dpl, program) -> None:
    run = dpl("-q", "run", program(UNUSED))
    assert run.stdout == "4\n" and not run.stderr


def test_colours(dpl, program) -> None:
    file = program(UNUSED)
    assert "\033[" not in dpl("check", file).stderr
    assert "\033[" in dpl("--color", "always", "check", file, NO_COLOR="1").stderr
    assert "\033[" in dpl("check", file, FORCE_COLOR="1").stderr
    assert "\033[" not in dpl("check", file, FORCE_COLOR="1", NO_COLOR="1").stderr
    assert "\033[" not in dpl("--color", "never", "check", file, FORCE_COLOR="1").stderr


@pytest.mark.parametrize("engine", ["interp", "native"])
def test_a_second_run_warns_again(dpl, program, engine: str) -> None:
    file = program(UNUSED)
    first, second = (dpl("run", "--engine", engine, file) for _ in range(2))
    third = dpl(file)
    assert first.stderr.startswith("warning[W0203]")
    assert first.stderr == second.stderr == third.stderr and third.stdout == "4\n"


CERTAIN = """let f (x : float[n]) = norm x
let slopes (x : float[64]) = [for i < 64 -> diff (fun t -> f { x with [i] = t }) x[i]]
let past (xs : float[3]) = xs[3]
do print (grad f (zeros 2))
"""


def test_a_run_gives_the_advice_that_is_cheap(dpl, program) -> None:
    file = program(CERTAIN)
    for verb, more in (("run", []), ("check", ["W0404", "W0701"])):
        run = dpl("--message-format", "json", verb, file)
        assert [m["code"] for m in objects(run.stderr)] == ["W0403", *more] and run.returncode == 0


INSIDE = """let safe x = if x > 2.0 then error "too big" else x
let go xs = List.map (fun x -> safe x + 1.0) xs
do print (go [1.0; 3.0])
"""


@pytest.mark.parametrize("engine", ["interp", "native"])
def test_the_library_is_in_call_paths_if_asked_for(dpl, program, engine: str) -> None:
    file = program(INSIDE)

    def calls(run) -> list[str]:
        (message,) = objects(run.stderr)
        return [call["name"] for call in message["path"]]

    for_json = ("--message-format", "json")
    assert calls(dpl(*for_json, "run", "--engine", engine, file)) == ["go", "safe"]
    assert "map" in calls(dpl(*for_json, "-v", "run", "--engine", engine, file))
    assert "map" in calls(dpl(*for_json, "run", "--engine", engine, file, DPL_VERBOSE="1"))
