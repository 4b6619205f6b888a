"""A client of the language server, as small as it can be: it speaks over pipes, and notes what it is told."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from conftest import ROOT


class Client:
    """A server in a process of its own.  Texts are called by short names, and places by `|` or `(line, character)`."""

    def __init__(self, cache: Path, folder: Path, encodings: tuple[str, ...] = ("utf-16",)) -> None:
        self.folder = folder
        environment = {
            **os.environ,
            "PYTHONPATH": f"{ROOT / 'lang'}{os.pathsep}{ROOT / 'compiler'}",
            "DPL_CACHE": str(cache),
        }
        command = [sys.executable, "-m", "dplc.cli", "lsp"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
        )
        self.inbox: queue.Queue[dict] = queue.Queue()
        self.told: dict[str, list[dict]] = {}
        self.versions: dict[str, int] = {}
        self.number = 0
        threading.Thread(target=self.listen, daemon=True).start()
        self.errors: list[bytes] = []
        threading.Thread(target=lambda: self.errors.extend(self.process.stderr or ()), daemon=True).start()
        capabilities = {
            "general": {"positionEncodings": list(encodings)},
            "textDocument": {"rename": {"prepareSupport": True}},
        }
        root = folder.as_uri()
        folders = [{"uri": root, "name": "here"}]
        asked = {"processId": None, "rootUri": root, "capabilities": capabilities, "workspaceFolders": folders}
        self.abilities = self.ask("initialize", **asked)["capabilities"]
        self.tell("initialized")

    # ---- messages

    def listen(self) -> None:
        assert self.process.stdout
        while header := self.process.stdout.readline():
            length = int(header.split(b":")[1])
            while self.process.stdout.readline().strip():
                pass
            self.inbox.put(json.loads(self.process.stdout.read(length)))

    def send(self, body: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.process.stdin.flush()

    def tell(self, method: str, **params: Any) -> None:
        self.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())

    def ask(self, method: str, timeout: float = 60, **params: Any) -> Any:
        """The answer; an error that is answered is raised."""
        self.number += 1
        number = self.number
        self.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode())
        answer = self.wait(lambda message: message.get("id") == number and "method" not in message, timeout)
        if "error" in answer:
            raise RuntimeError(answer["error"]["message"])
        return answer["result"]

    def wait(self, wanted, timeout: float) -> dict:
        end = time.monotonic() + timeout
        while True:
            try:
                message = self.inbox.get(timeout=max(end - time.monotonic(), 0))
            except queue.Empty:
                raise TimeoutError(b"".join(self.errors).decode()) from None
            if message.get("method") == "textDocument/publishDiagnostics":
                self.told[message["params"]["uri"]] = message["params"]
            if wanted(message):
                return message

    # ---- texts

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def open(self, text: str, name: str = "main.dp") -> list[dict]:
        """Opens a text; its diagnostics."""
        self.versions[name] = 1
        item = {"uri": self.uri(name), "languageId": "dpl", "version": 1, "text": text}
        self.tell("textDocument/didOpen", textDocument=item)
        return self.diagnostics(name)

    def change(self, text: str, name: str = "main.dp", wait: bool = True) -> list[dict]:
        """Changes a text; its diagnostics, if they are waited for."""
        self.versions[name] += 1
        where = {"uri": self.uri(name), "version": self.versions[name]}
        self.tell("textDocument/didChange", textDocument=where, contentChanges=[{"text": text}])
        return self.diagnostics(name) if wait else []

    def diagnostics(self, name: str = "main.dp") -> list[dict]:
        """Those of the current version."""
        uri, version = self.uri(name), self.versions[name]
        known = self.told.get(uri)
        if known is None or known.get("version") != version:
            self.wait(lambda m: m.get("params", {}).get("uri") == uri and m["params"].get("version") == version, 60)
        return self.told[uri]["diagnostics"]

    def at(self, method: str, place: tuple[int, int], name: str = "main.dp", **more: Any) -> Any:
        """Asks about a place of a text."""
        position = {"line": place[0], "character": place[1]}
        return self.ask(f"textDocument/{method}", textDocument={"uri": self.uri(name)}, position=position, **more)

    def about(self, method: str, name: str = "main.dp", **more: Any) -> Any:
        """Asks about a whole text."""
        return self.ask(f"textDocument/{method}", textDocument={"uri": self.uri(name)}, **more)

    def spent(self) -> float:
        """The seconds of processor time that the server has taken: other processes do not count, as they do by the
        clock.  Where the system does not tell, the clock."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return time.perf_counter()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> int:
        """Ends the server as a client should; its exit code."""
        self.ask("shutdown")
        self.tell("exit")
        return self.process.wait(timeout=20)


def marked(text: str) -> tuple[str, tuple[int, int]]:
    """A text without its `|`, and the line and character where that stood."""
    before, _, after = text.partition("|")
    return before + after, (before.count("\n"), len(before) - before.rfind("\n") - 1)
