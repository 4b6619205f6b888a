"""A client of the Debug Adapter Protocol, for tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from conftest import ROOT


class Client:
    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'lang'}{os.pathsep}{ROOT / 'compiler'}"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dplc.cli", "dap"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, cwd=ROOT, env=environment,
        )  # fmt: skip
        self.number = 0
        self.events: list[dict[str, Any]] = []

    def write(self, body: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout
        length = 0
        while line := self.process.stdout.readline().strip():
            length = int(line.partition(b":")[2])
        assert length, "the server has gone"
        return json.loads(self.process.stdout.read(length))

    def send(self, command: str, **arguments: Any) -> int:
        self.number += 1
        message = {"seq": self.number, "type": "request", "command": command, "arguments": arguments}
        self.write(json.dumps(message).encode())
        return self.number

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """The response to a request; events before it are kept."""
        number = self.send(command, **arguments)
        while True:
            message = self.read()
            if message["type"] == "response" and message["request_seq"] == number:
                return message
            self.events.append(message)

    def event(self, *names: str) -> dict[str, Any]:
        """The next event of these names; others are kept."""
        for i, message in enumerate(self.events):
            if message.get("event") in names:
                return self.events.pop(i)
        while (message := self.read()).get("event") not in names:
            self.events.append(message)
        return message

    def launch(self, program: Path, filters: tuple[str, ...] = ("error",), breakpoints: tuple[dict, ...] = (),
               **more: Any) -> list[dict]:  # fmt: skip
        """Launch a program as an editor does; returns what became of the breakpoints."""
        self.ask("initialize", adapterID="dpl")
        assert self.ask("launch", program=str(program), **more)["success"]
        self.event("initialized")
        found = self.ask("setBreakpoints", source={"path": str(program)}, breakpoints=list(breakpoints))
        self.ask("setExceptionBreakpoints", filters=list(filters))
        self.ask("configurationDone")
        return found["body"]["breakpoints"]

    def go(self, command: str) -> dict[str, Any]:
        """Move, and wait for what happens."""
        self.ask(command, threadId=1)
        return self.event("stopped", "terminated")

    def line(self) -> int:
        return self.ask("stackTrace", threadId=1)["body"]["stackFrames"][0]["line"]

    def variables(self) -> dict[str, dict[str, str]]:
        """The variables of the innermost frame by scope."""
        frame = self.ask("stackTrace", threadId=1)["body"]["stackFrames"][0]
        scopes = self.ask("scopes", frameId=frame["id"])["body"]["scopes"]
        return {
            scope["name"]: {
                v["name"]: v["value"]
                for v in self.ask("variables", variablesReference=scope["variablesReference"])["body"]["variables"]
            }
            for scope in scopes
        }

    def value(self, expression: str) -> str:
        answer = self.ask("evaluate", expression=expression, frameId=1, context="watch")
        return answer["body"]["result"] if answer["success"] else answer["message"]

    def output(self) -> str:
        found = [m["body"]["output"] for m in self.events if m.get("event") == "output"]
        return "".join(found)

    def close(self) -> int:
        """End the connection; the exit code of the server."""
        assert self.process.stdin and self.process.stdout and self.process.stderr
        self.process.stdin.close()
        code = self.process.wait(timeout=20)
        self.errors = self.process.stderr.read().decode()
        self.process.stdout.close()
        self.process.stderr.close()
        return code
