"""The kernel of Jupyter: the session of `dpl repl`, cell by cell.

dpl jupyter install            tells Jupyter of it
dpl jupyter kernel -f FILE     what Jupyter runs
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from dpl.diagnostics import Diagnostic, DplError
from dpl.eval.machine.outside import ProgramExit
from dpl.render import render
from ipykernel.kernelapp import IPKernelApp
from ipykernel.kernelbase import Kernel

from dplc import VERSION
from dplc.tools.jupyter.output import Output
from dplc.tools.process import internal
from dplc.tools.repl.inputs import ready
from dplc.tools.repl.interpreted import Drawing
from dplc.tools.repl.names import about, completions
from dplc.tools.repl.notebook import inputs
from dplc.tools.repl.session import Session
from dplc.tools.repl.verbs import VERBS, Leave, answer

BEFORE, AFTER = re.compile(r"[\w'.]*\Z"), re.compile(r"[\w']*")  # a word with its modules, up to a place; its rest
INTERRUPTED = ("interrupted", "the cell was interrupted", [])
Wrong = tuple[str, str, list[str]]  # a failure as Jupyter has it: its name, its value, the lines that are shown


class Cells(Session):
    """A session that keeps what was wrong with the last input, and draws pictures as SVG."""

    def __init__(self, output: Output) -> None:
        super().__init__("native", Drawing("Plot.svg", output.picture))
        self.wrong: Wrong | None = None

    def tell(self, failure: Exception | KeyboardInterrupt) -> None:
        self.wrong = wrong(failure)


class DplKernel(Kernel):
    implementation = "dpl"
    implementation_version = VERSION
    banner = f"DPL {VERSION}.  `:help` tells what else can be typed here."
    language_info = {  # noqa: RUF012
        "name": "dpl",
        "version": VERSION,
        "mimetype": "text/x-dpl",
        "file_extension": ".dp",
        "pygments_lexer": "dpl",
        "codemirror_mode": {"name": "ocaml", "mime": "text/x-ocaml"},  # the nearest that it has
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.request: Mapping[str, Any] = {}  # what runs, as output comes from other threads
        self.silent = False
        self.output = Output(
            lambda name, text: self.publish("stream", {"name": name, "text": text}),
            lambda svg: self.publish("display_data", {"data": picture(svg), "metadata": {}}),
        )
        self.cells = Cells(self.output)

    def publish(self, kind: str, content: Mapping[str, Any]) -> None:
        talk: Any = self.session
        if not self.silent and talk:
            talk.send(self.iopub_socket, kind, content, parent=self.request, ident=self._topic(kind))

    async def do_execute(self, code: str, silent: bool, store_history: bool = True, user_expressions: Any = None,
                         allow_stdin: bool = False, **_: Any) -> dict[str, Any]:  # fmt: skip
        self.request, self.silent = self.get_parent(), silent
        try:
            with self.output.taken():
                found = self.run(code)
        except KeyboardInterrupt:
            found = INTERRUPTED
        number = {"execution_count": self.execution_count}
        if found is None:
            return {"status": "ok", "payload": [], "user_expressions": {}, **number}
        content: dict[str, Any] = dict(zip(("ename", "evalue", "traceback"), found, strict=True))
        self.publish("error", content)
        return {"status": "error", **content, **number}

    def run(self, code: str) -> Wrong | None:
        """Run the inputs of a cell up to the first that fails; returns what was wrong with it."""
        for text in inputs(code):
            self.cells.wrong = None
            try:
                right = answer(self.cells, text, f"In [{self.execution_count}]")
            except ProgramExit as stop:
                return "exit", f"the program ended with code {stop.code & 0xFF}; the session goes on", []
            except Leave:
                return "quit", "a session in a notebook ends when its kernel is shut down", []
            if not right:
                return self.cells.wrong or ("command", text.strip(), [])
        return None

    async def do_complete(self, code: str, cursor_pos: int) -> dict[str, Any]:
        before = code[:cursor_pos]
        line = before.rpartition("\n")[2]
        if line.startswith(":") and " " not in line:
            start = cursor_pos - len(line) + 1
            found = [(name, str(verb.__doc__)) for name, (_, verb) in VERBS.items() if name.startswith(line[1:])]
        else:
            word = BEFORE.search(before)[0]  # pyrefly: ignore[unsupported-operation]
            start = cursor_pos - len(word.rpartition(".")[2])
            *earlier, last = inputs(before)
            with self.cells.foreseen(earlier):
                found = list(completions(self.cells, word, last.removesuffix("\n").removesuffix(word)))
        types = [{"start": start, "end": cursor_pos, "text": name, "type": ty} for name, ty in found]
        return {
            "status": "ok",
            "matches": [name for name, _ in found],
            "cursor_start": start,
            "cursor_end": cursor_pos,
            "metadata": {"_jupyter_types_experimental": types},
        }

    async def do_inspect(self, code: str, cursor_pos: int, detail_level: int = 0, omit_sections: Any = ()) -> dict:
        name = BEFORE.search(code[:cursor_pos])[0] + AFTER.match(code, cursor_pos)[0]  # pyrefly: ignore[unsupported-operation]
        text = about(self.cells, name.strip("."))
        data = {} if text is None else {"text/plain": text}
        return {"status": "ok", "found": text is not None, "data": data, "metadata": {}}

    async def do_is_complete(self, code: str) -> dict[str, Any]:
        return {"status": "complete"} if ready(code) else {"status": "incomplete", "indent": "  "}

    async def do_shutdown(self, restart: bool) -> dict[str, Any]:
        return {"status": "ok", "restart": restart}


def picture(svg: str) -> dict[str, str]:
    """A picture for a page; Jupyter shows the text in notebooks from elsewhere, as it does not trust their SVG."""
    return {"image/svg+xml": svg, "text/plain": "a picture: run the cell, or trust the notebook, to see it"}


def wrong(failure: Exception | KeyboardInterrupt) -> Wrong:
    """The failure of an input.  Its picture has colours, which the page shows.  A bug in DPL is reported too."""
    match failure:
        case DplError():
            return told(*failure.diagnostics)
        case MemoryError():
            return told(Diagnostic("R0802", "out of memory"))
        case Exception():
            internal(failure)
            return "internal error", str(failure), []
        case KeyboardInterrupt():
            return INTERRUPTED


def told(*diagnostics: Diagnostic) -> Wrong:
    pictures = "\n\n".join(render(d, width=100, color=True) for d in diagnostics)
    return diagnostics[0].code, diagnostics[0].title, pictures.split("\n")


def serve(connection: str) -> int:
    """Run the kernel until it is shut down."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # no page types into a program
    IPKernelApp.launch_instance(
        argv=["-f", connection], kernel_class=DplKernel, outstream_class=None, capture_fd_output=False
    )
    return 0
