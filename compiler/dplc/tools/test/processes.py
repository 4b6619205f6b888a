"""The processes of expectations.  They end with the command, in whatever way it ends: a signal that only it gets, such
as that of a time limit, would otherwise leave them behind, and the command would wait for them."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Mapping, Sequence
from typing import Self


class Processes:
    """Processes that run, by several threads.  Leaving the context ends those that still run, and none begins then."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.running = set[subprocess.Popen[bytes]]()
        self.over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.over = True
            for process in self.running:
                process.kill()

    def run(self, command: Sequence[str], env: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
        """Run a command to its end, with its output; raises RuntimeError if none begins any more."""
        with self.lock:
            if self.over:
                raise RuntimeError("the command ends")
            process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.running.add(process)
        output, errors = process.communicate()
        with self.lock:
            self.running.remove(process)
        return subprocess.CompletedProcess(command, process.returncode, output, errors)
