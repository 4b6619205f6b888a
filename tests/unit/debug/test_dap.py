"""`dpl dap`, by a client that speaks the protocol."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from dap_client import Client

SESSIONS = Path(__file__).parent / "sessions"


@pytest.fixture
def client() -> Iterator[Client]:
    made = Client()
    yield made
    made.close()


def test_breakpoints_in_both_modes(client: Client) -> None:
    program = SESSIONS / "nested.dp"
    wanted = ({"line": 3, "condition": "y > 0.4", "hitCondition": "2"}, {"line": 3, "mode": "reverse"}, {"line": 400})
    made = client.launch(program, breakpoints=wanted)
    assert [b["verified"] for b in made] == [True, True, False] and "no code" in made[2]["message"]
    stopped = client.event("stopped")["body"]
    assert stopped["reason"] == "breakpoint" and stopped["hitBreakpointIds"] == [made[1]["id"]]
    assert client.line() == 3
    found = client.variables()
    assert found["Locals"].keys() == {"x", "y", "z"} and found["Adjoints"]["d z"].startswith("0.48999")
    assert client.value("d y") == "0.47062588817115797"
    client.go("stepBack")
    assert client.line() == 4
    assert client.go("reverseContinue")["body"]["hitBreakpointIds"] == [made[0]["id"]]
    assert client.go("reverseContinue")["body"]["reason"] == "entry"


def test_moving_and_output(client: Client) -> None:
    client.launch(SESSIONS / "references.dp", stopOnEntry=True)
    client.event("stopped")
    lines = []
    for command in ("next", "next", "stepIn", "next"):
        assert client.go(command)["event"] == "stopped"
        lines.append(client.line())
    assert lines == [9, 10, 5, 6]
    assert client.go("stepOut")["event"] == "terminated"
    assert "visited 2" in client.output()


def test_references_can_be_set(client: Client) -> None:
    client.launch(SESSIONS / "references.dp", breakpoints=({"line": 6},))
    client.event("stopped")
    assert client.value("!count") == "1"
    frame = client.ask("stackTrace", threadId=1)["body"]["stackFrames"][0]["id"]
    scopes = client.ask("scopes", frameId=frame)["body"]["scopes"]
    refused = client.ask("setVariable", variablesReference=scopes[0]["variablesReference"], name="n", value="3")
    assert not refused["success"] and "not a reference" in refused["message"]


def test_a_reference_that_was_set_keeps_its_new_value(client: Client, tmp_path: Path) -> None:
    program = tmp_path / "main.dp"
    program.write_text("let f (n : int) =\n  let count = ref n in\n  count := !count + 1;\n  !count\ndo print (f 1)\n")
    client.launch(program, breakpoints=({"line": 3},))
    client.event("stopped")
    frame = client.ask("stackTrace", threadId=1)["body"]["stackFrames"][0]["id"]
    for scope in client.ask("scopes", frameId=frame)["body"]["scopes"]:
        number = scope["variablesReference"]
        if "count" in {v["name"] for v in client.ask("variables", variablesReference=number)["body"]["variables"]}:
            answer = client.ask("setVariable", variablesReference=number, name="count", value="40 + n")
    assert answer["success"] and client.value("!count") == "41"
    assert client.go("continue")["event"] == "terminated" and client.output() == "42\n"


def test_references_at_the_top_level_can_be_set(client: Client) -> None:
    client.launch(SESSIONS / "references.dp", breakpoints=({"line": 10},))
    client.event("stopped")
    frame = client.ask("stackTrace", threadId=1)["body"]["stackFrames"][0]["id"]
    (scope,) = client.ask("scopes", frameId=frame)["body"]["scopes"]
    rows = client.ask("variables", variablesReference=scope["variablesReference"])["body"]["variables"]
    assert scope["name"] == "Top level"
    assert [(v["name"], v["value"]) for v in rows] == [("count", "ref 3"), ("total", "4")]
    bad = (("total", "1", "not a reference"), ("count", "1.5", "holds int"), ("other", "1", "no variable"))
    for name, value, why in bad:
        refused = client.ask("setVariable", variablesReference=scope["variablesReference"], name=name, value=value)
        assert not refused["success"] and why in refused["message"]
    answer = client.ask("setVariable", variablesReference=scope["variablesReference"], name="count", value="10 * total")
    assert answer["success"] and client.value("!count") == "40"
    assert client.go("continue")["event"] == "terminated" and client.output().endswith("visited 4\n44\n")


def test_definitions_of_the_future_are_not_shown(client: Client) -> None:
    """Neither before their line nor after going back to it."""
    client.launch(SESSIONS / "references.dp", breakpoints=({"line": 9}, {"line": 10}))
    for command, names in (("", {"count"}), ("continue", {"count", "total"}), ("reverseContinue", {"count"})):
        _ = client.go(command) if command else client.event("stopped")
        assert client.variables()["Top level"].keys() == names


def test_a_breakpoint_on_a_comment_is_at_the_next_code(client: Client) -> None:
    (made,) = client.launch(SESSIONS / "references.dp", breakpoints=({"line": 1},))
    assert made["verified"] and made["line"] == 2
    assert client.event("stopped")["body"]["hitBreakpointIds"] == [made["id"]] and client.line() == 2


def test_what_is_not_finite(client: Client) -> None:
    client.launch(SESSIONS / "length_at_zero.dp", filters=("nonfinite",))
    assert client.event("stopped")["body"]["reason"] == "exception"
    assert "sqrt" in client.ask("exceptionInfo", threadId=1)["body"]["description"]
    assert client.line() == 2


def test_errors_and_log_points(client: Client) -> None:
    client.launch(SESSIONS / "failing.dp", breakpoints=({"line": 2, "logMessage": "pick {i} of {length xs}"},))
    stopped = client.event("stopped")["body"]
    assert stopped["reason"] == "exception" and "R0705" in stopped["text"]
    assert "pick 2 of 3\npick 1 of 3\n" in client.output()
    assert [f["name"] for f in client.ask("stackTrace", threadId=1)["body"]["stackFrames"]] == [
        "pick", "sum_to", "top level",
    ]  # fmt: skip
    assert client.go("continue")["event"] == "terminated"


def test_structured_values_open(client: Client) -> None:
    client.launch(SESSIONS / "failing.dp", breakpoints=({"line": 2},))
    client.event("stopped")
    found = client.ask("evaluate", expression="(xs, Some i)", frameId=1)["body"]
    assert found["result"] == "([1.0, 2.0, 3.0], Some 2)"
    parts = client.ask("variables", variablesReference=found["variablesReference"])["body"]["variables"]
    inside = client.ask("variables", variablesReference=parts[0]["variablesReference"], start=1, count=1)
    assert [v["value"] for v in inside["body"]["variables"]] == ["2.0"]


TRAINING = """let step (x : float) = x - 1e-4
let train (n : int) x =
  loop x = x for i < n do
    step x
let left = train 4000 1.0
let check (x : float) =
  if x < 0.7 then error "too small" else x
do print (check left)
"""


def test_native_code_runs_up_to_an_incident(client: Client, tmp_path: Path) -> None:
    """The start of the run is skipped, so its breakpoint is not met 4,000 times; that near the incident is."""
    program = tmp_path / "main.dp"
    program.write_text(TRAINING, encoding="utf-8")
    wanted = ({"line": 1, "hitCondition": "2000"}, {"line": 7})
    made = client.launch(program, at="error", breakpoints=wanted)
    assert all(b["verified"] for b in made)
    assert client.event("stopped")["body"]["hitBreakpointIds"] == [made[1]["id"]] and client.line() == 7
    found = client.variables()
    assert found["Locals"]["x"].startswith("0.6000000") and found["Top level"].keys() == {"left"}
    stopped = client.go("continue")["body"]
    assert stopped["reason"] == "exception" and "too small" in stopped["text"]
    assert client.go("stepBack")["event"] == "stopped"
    client.ask("restart")
    assert client.event("stopped")["body"]["hitBreakpointIds"] == [made[1]["id"]]


def test_a_pause_while_native_code_runs(client: Client, tmp_path: Path) -> None:
    program = tmp_path / "main.dp"
    program.write_text(TRAINING, encoding="utf-8")
    client.launch(program, at="error")
    client.event("output")
    client.ask("pause", threadId=1)
    assert client.event("stopped")["body"]["reason"] == "pause"
    assert "too small" in client.go("continue")["body"]["text"]


def test_an_incident_that_does_not_come(client: Client, tmp_path: Path) -> None:
    program = tmp_path / "main.dp"
    program.write_text("let f (x : float) = x + 1.0\ndo print (f 1.0)\n", encoding="utf-8")
    client.launch(program, at="nonfinite")
    assert client.event("exited")["body"]["exitCode"] == 0 and "2.0\n" in client.output()


def in_native_code(tmp_path: Path) -> Client:
    """A client whose program runs natively, without end, to an incident that does not come."""
    program = tmp_path / "main.dp"
    program.write_text("let rec spin (x : float) : float = spin (3.7 * x * (1.0 - x))\ndo print (spin 0.5)\n")
    client = Client()
    client.launch(program, at="nonfinite")
    client.event("output")
    return client


def test_clients_that_disconnect_from_native_code(tmp_path: Path) -> None:
    client = in_native_code(tmp_path)
    assert client.close() == 0 and "Traceback" not in client.errors


def test_ctrl_c_while_native_code_runs(tmp_path: Path) -> None:
    """It ended the native run only, and the interpreter went there from the start."""
    client = in_native_code(tmp_path)
    client.process.send_signal(signal.SIGINT)
    assert client.process.wait(60) == 130
    assert client.close() == 130 and "Traceback" not in client.errors


def test_clients_that_disconnect_while_the_program_is_loaded(client: Client, tmp_path: Path) -> None:
    program = tmp_path / "main.dp"
    program.write_text("let rec spin (n : int) : int = if n < 0 then n else spin (n + 1)\ndo print (spin 0)\n")
    for command in ("initialize", "launch", "configurationDone", "disconnect"):
        client.send(command, program=str(program))
    assert client.process.wait(60) == 0


def test_pause(client: Client, tmp_path: Path) -> None:
    program = tmp_path / "long.dp"
    program.write_text("let rec spin (n : int) : int =\n  if n < 0 then n else spin (n + 1)\ndo print (spin 0)\n")
    client.launch(program)
    client.ask("pause", threadId=1)
    assert client.event("stopped")["body"]["reason"] == "pause"
    assert client.line() in (1, 2, 3)


@pytest.mark.slow
@pytest.mark.parametrize("at", ["", "nonfinite"])
def test_a_client_that_disconnects_in_a_step_that_takes_long(tmp_path: Path, at: str) -> None:
    program = tmp_path / "main.dp"
    program.write_text("do print (sum [for i < 2000000000 -> sin (float i)])\n")
    client = Client()
    client.launch(program, at=at)
    assert client.process.stdin
    client.process.stdin.close()
    assert client.process.wait(60) == 0


def test_bad_programs_and_requests(client: Client, tmp_path: Path) -> None:
    assert not client.ask("stackTrace", threadId=1)["success"]
    assert client.ask("initialize", adapterID="dpl")["body"]["supportsStepBack"]
    bad = tmp_path / "bad.dp"
    bad.write_text("let x = (1 +\n")
    for program in (bad, tmp_path / "none.dp"):
        answer = client.ask("launch", program=str(program))
        assert not answer["success"] and answer["message"]
    assert not client.ask("launch")["success"] and not client.ask("frobnicate")["success"]


def test_clients_that_disconnect_or_talk_nonsense() -> None:
    for nonsense in (b"", b"hello\r\n\r\n", b"Content-Length: 5\r\n\r\n{]{]{", b"Content-Length: 99\r\n\r\n{}"):
        client = Client()
        assert client.process.stdin
        client.process.stdin.write(nonsense)
        assert client.close() == 0 and "Traceback" not in client.errors


def test_programs_do_not_read_the_protocol(client: Client, tmp_path: Path) -> None:
    program = tmp_path / "reads.dp"
    program.write_text('do print (String.length (Data.read_text "/dev/stdin"))\ndo print 2\n')
    client.launch(program)
    client.event("terminated", "stopped")
    assert client.ask("threads")["success"]


def test_tail_calls_are_shown(client: Client) -> None:
    client.launch(SESSIONS / "tail_calls.dp", breakpoints=({"line": 6},))
    client.event("stopped")
    frames = client.ask("stackTrace", threadId=1)["body"]["stackFrames"]
    names = [(f["name"], f["line"]) for f in frames]
    assert names == [("third", 6), ("second (tail call)", 8), ("first (tail call)", 9), ("top level", 13)]
    assert [f["presentationHint"] for f in frames] == ["normal", "subtle", "subtle", "normal"]
    assert client.ask("scopes", frameId=frames[1]["id"])["body"]["scopes"] == []
    refused = client.ask("evaluate", expression="x", frameId=frames[1]["id"])
    assert not refused["success"] and "are gone" in refused["message"]
