"""The kernel of Jupyter, by a real client, and notebooks: run by the client of notebooks and by `dpl run`."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import NUMBER, ROOT, assert_same_output
from dplc.tools.repl.notebook import inputs

WHY = "the extra is not installed: pip install 'dpl-lang[jupyter]'"
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
WAIT = 60
PATHS = os.pathsep.join((str(ROOT / "lang"), str(ROOT / "compiler")))
ENDLESS = "let rec turn n = if n < 0 then n else turn (n + 1 - n % 2)\nturn 1"


def test_inputs_of_a_cell() -> None:
    """A cell is divided where its lines begin inputs, and each input keeps its lines."""
    assert inputs("let x = 1\n\nlet y = 2") == ["let x = 1\n\n", "\n\nlet y = 2\n"]
    assert inputs("") == ["\n"]
    divided = [
        ["let x = 1", "x\n  + 1", "let y =\n  x\n\n  * 2", "y"],
        [":type 1", "let x = 1", ":doc sum"],
        ["type t =\n| A\n| B", "let f t = match t with\n| A -> 1\n\n| B -> 2", "f A"],
        ["let xs = [\n1.0\n]", "-- what it is", "sum xs", "(1,\n2\n)"],
        ["let rec f x = g x\nand g x = x", "f 1"],
    ]
    for parts in divided:
        found = inputs("\n".join(parts))
        assert [text.strip() for text in found] == parts
        above = [sum(part.count("\n") + 1 for part in parts[:n]) for n in range(len(parts))]
        assert [len(text) - len(text.lstrip("\n")) for text in found] == above


# ---- the kernel ----


class Client:
    """A client of the kernel: the messages that a cell causes, and the answers to questions."""

    def __init__(self, manager: Any) -> None:
        self.manager = manager
        self.client = manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=WAIT)

    def run(self, code: str, hear: Callable[[dict], object] = lambda _: None) -> tuple[dict, list[tuple[str, Any]]]:
        """The answer, and the outputs: texts by stream, or the contents of other messages by kind."""
        outputs: list[tuple[str, Any]] = []

        def output(message: dict) -> None:
            kind, content = message["msg_type"], message["content"]
            if kind == "stream" and outputs and outputs[-1][0] == content["name"]:
                outputs[-1] = (content["name"], outputs[-1][1] + content["text"])
            elif kind == "stream":
                outputs.append((content["name"], content["text"]))
            elif kind in ("display_data", "error"):
                outputs.append((kind, content))
            hear(message)

        answer = self.client.execute_interactive(code, output_hook=output, timeout=WAIT, allow_stdin=False)
        return answer["content"], outputs

    def said(self, code: str) -> str:
        """What a cell without errors prints."""
        answer, outputs = self.run(code)
        assert answer["status"] == "ok", outputs
        return "".join(text for kind, text in outputs if kind == "stdout")

    def ask(self, question: str, *args: Any) -> dict:
        number = getattr(self.client, question)(*args)
        while True:
            answer = self.client.get_shell_msg(timeout=WAIT)
            if answer["parent_header"].get("msg_id") == number:
                return answer["content"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, forks) -> Path:
    """The folder of kernels below a prefix where the kernel is installed."""
    pytest.importorskip("ipykernel", reason=WHY)
    prefix = tmp_path_factory.mktemp("prefix")
    run = forks.run(["jupyter", "install", "--prefix", str(prefix)], "", WAIT, ROOT, dict(os.environ))
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == f"{prefix / 'share/jupyter/kernels/dpl'}\n"
    return prefix / "share" / "jupyter" / "kernels"


def specs(kernels: Path) -> Any:
    from jupyter_client.kernelspec import KernelSpecManager

    return KernelSpecManager(kernel_dirs=[str(kernels)], ensure_native_kernel=False)


@pytest.fixture(scope="module")
def kernel(installed: Path) -> Iterator[Client]:
    from jupyter_client.manager import KernelManager

    manager = KernelManager(kernel_name="dpl", kernel_spec_manager=specs(installed))
    manager.start_kernel(env={**os.environ, "PYTHONPATH": PATHS})
    client = Client(manager)
    try:
        yield client
    finally:
        client.client.stop_channels()
        manager.shutdown_kernel()
    assert not manager.is_alive()


def test_values_and_types(kernel: Client) -> None:
    assert kernel.said("let cube x = x ** 3.0\nlet y = cube 2.0") == "cube : 'a -> 'a with 'a : real\ny : float = 8.0\n"
    assert kernel.said("let z = 1\ngrad cube y\nz + 1") == "z : int = 1\nit : float = 192.0\nit : int = 2\n"
    assert kernel.said("") == "" and kernel.said(":type [y]").strip() == "float[1]"


@pytest.mark.parametrize("engine", ["interp", "native"])
def test_a_picture_in_the_page(kernel: Client, engine: str) -> None:
    code = f'do print "before"\n:engine {engine}\nPlot.graph sin 0.0 6.0\ndo print "after"'
    answer, outputs = kernel.run(code)
    assert answer["status"] == "ok"
    assert [kind for kind, _ in outputs] == ["stdout", "display_data", "stdout"]
    assert (outputs[0][1], outputs[2][1]) == ("before\nit : Plot.picture\n", "after\n")
    svg = outputs[1][1]["data"]["image/svg+xml"]
    assert svg.startswith("<svg") and svg.strip().endswith("</svg>")


def test_errors(kernel: Client) -> None:
    """The answer has the code and the title, the page a picture in colour; the session stays as it was."""
    answer, outputs = kernel.run("let before = 1\n\nlet wrong = [1.0][2]\nlet after = 2")
    assert (answer["status"], answer["ename"]) == ("error", "R0705")
    assert answer["evalue"] == "index 2 is out of bounds for length 1"
    assert outputs[-1][0] == "error" and outputs[-1][1]["traceback"] == answer["traceback"]
    shown = "\n".join(answer["traceback"])
    assert "\x1b[" in shown and "let wrong = [1.0][2]" in shown and "]:3:" in shown
    assert kernel.run("after")[0]["ename"] == "E0202"
    assert kernel.run("let x = (1 +")[0]["ename"].startswith("E01")
    assert kernel.run(":nothing")[0]["status"] == "error"
    assert kernel.run("do Sys.exit 3")[0]["evalue"] == "the program ended with code 3; the session goes on"
    assert kernel.run(":quit")[0]["ename"] == "quit"
    assert kernel.said("1 + 1") == "it : int = 2\n"


@pytest.mark.parametrize("engine", ["interp", "native"])
def test_interrupt(kernel: Client, engine: str) -> None:
    """An endless cell ends, and the session goes on."""
    kernel.said(f":engine {engine}\nlet kept = 7")
    sent: list[str] = []

    def hear(message: dict) -> None:
        if message["msg_type"] == "execute_input":
            time.sleep(0.2)  # the work begins
            kernel.manager.interrupt_kernel()
            sent.append(message["msg_type"])

    answer, _ = kernel.run(ENDLESS, hear)
    assert sent and (answer["status"], answer["ename"]) == ("error", "interrupted")
    assert kernel.said("kept + 1") == "it : int = 8\n"
    kernel.said(":engine native")


def test_completion(kernel: Client) -> None:
    kernel.said("type point = { height : float; width : float }\nlet corner = { height = 1.0; width = 2.0 }")
    code = "let a = 1\nPlot.gra"
    found = kernel.ask("complete", code)
    assert (found["matches"], code[found["cursor_start"] : found["cursor_end"]]) == (["graph"], "gra")
    assert "Plot.picture" in found["metadata"]["_jupyter_types_experimental"][0]["type"]
    assert kernel.ask("complete", "corner.")["matches"] == ["height", "width"]
    assert kernel.ask("complete", "corn + 1", 4)["matches"] == ["corner"]
    assert kernel.ask("complete", "1\n:ty")["matches"] == ["type"]
    assert kernel.ask("complete", "(no_such")["matches"] == []
    code = "let edge = { corner with width = 3.0 }\nlet area (point_of : point) factors =\n  let halved = 0.5 in\n  "
    for typed, found in (("edge.wi", "width"), ("po", "point_of"), ("fac", "factors"), ("hal", "halved")):
        assert found in kernel.ask("complete", code + typed)["matches"]  # the cell has not run
    assert kernel.ask("complete", "edge.")["matches"] == []


def test_inspection(kernel: Client) -> None:
    code = "1 + Plot.histogram 3"
    text = kernel.ask("inspect", code, code.index("togram"))["data"]["text/plain"]
    assert text.startswith("Plot.histogram count xs : ") and "intervals" in text
    assert "Plot.histogram count xs :" in kernel.ask("inspect", code, code.index("ot."))["data"]["text/plain"]
    assert not kernel.ask("inspect", "no_such_name", 3)["found"]
    assert not kernel.ask("inspect", "   ", 1)["found"]


def test_completeness_and_colours(kernel: Client) -> None:
    assert kernel.ask("is_complete", "let x = 1")["status"] == "complete"
    assert kernel.ask("is_complete", "let x =")["status"] == "incomplete"
    about = kernel.ask("kernel_info")["language_info"]
    assert (about["name"], about["pygments_lexer"], about["file_extension"]) == ("dpl", "dpl", ".dp")


def test_restart(kernel: Client) -> None:
    kernel.said("let kept = 7")
    kernel.manager.restart_kernel(now=False)
    kernel.client.wait_for_ready(timeout=WAIT)
    assert kernel.run("kept")[0]["ename"] == "E0202"
    assert kernel.said("1") == "it : int = 1\n"


def test_uninstall(dpl, tmp_path: Path) -> None:
    pytest.importorskip("ipykernel", reason=WHY)
    assert dpl("jupyter", "install", "--prefix", tmp_path).returncode == 0
    run = dpl("jupyter", "uninstall", "--prefix", tmp_path)
    assert (run.returncode, run.stderr) == (0, "") and not Path(run.stdout.strip()).exists()
    run = dpl("jupyter", "uninstall", "--prefix", tmp_path)
    assert (run.returncode, run.stderr) == (1, "Error: the kernel is not installed\n")
    blocked = tmp_path / "file"
    blocked.write_text("")
    run = dpl("jupyter", "install", "--prefix", blocked / "below")
    assert run.returncode == 1 and "cannot be installed" in run.stderr


# ---- notebooks ----


def outputs_of(cell: dict) -> list[tuple[str, str]]:
    """The texts and the pictures of a cell."""
    found = []
    for output in cell.get("outputs", ()):
        if output["output_type"] == "stream":
            found.append((output["name"], "".join(output["text"])))
        else:
            found.append((output["output_type"], "".join(output.get("data", {}).get("image/svg+xml", ""))))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_show_what_they_say(installed: Path, path: Path) -> None:
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: pip install 'dpl-lang[dev]'")
    nbformat = pytest.importorskip("nbformat")
    from jupyter_client.manager import AsyncKernelManager

    stored = nbformat.read(path, as_version=4)
    fresh = nbformat.read(path, as_version=4)
    manager = AsyncKernelManager(kernel_name="dpl", kernel_spec_manager=specs(installed))
    client = nbclient.NotebookClient(fresh, km=manager, timeout=WAIT, coalesce_streams=True)
    client.execute(env={**os.environ, "PYTHONPATH": PATHS})
    for was, now in zip(stored.cells, fresh.cells, strict=True):
        before, after = outputs_of(was), outputs_of(now)
        assert [kind for kind, _ in before] == [kind for kind, _ in after]
        for (kind, said), (_, says) in zip(before, after, strict=True):
            if kind == "stdout":
                assert_same_output(says, said, 1e-6)
            else:
                assert NUMBER.sub("#", says)[:500] == NUMBER.sub("#", said)[:500]


def test_notebooks_have_pictures() -> None:
    assert len(NOTEBOOKS) == 3
    for path in NOTEBOOKS:
        shown = [output for cell in json.loads(path.read_text())["cells"] for output in outputs_of(cell)]
        assert any(kind == "display_data" and text.startswith("<svg") for kind, text in shown)
        assert not any(kind == "error" for kind, _ in shown)


def notebook(file: Path, *cells: str, language: str = "dpl") -> Path:
    made = [{"cell_type": "markdown", "source": "let no = program"}]
    made += [{"cell_type": "code", "source": text.splitlines(keepends=True)} for text in cells]
    file.write_text(json.dumps({"metadata": {"language_info": {"name": language}}, "cells": made}))
    return file


@pytest.mark.parametrize("engine", ["interp", "native"])
def test_run_a_notebook(dpl, tmp_path: Path, engine: str) -> None:
    """In order, as the kernel does; up to the first error, which names the cell."""
    file = notebook(tmp_path / "a.ipynb", "let f x = x * x\n\ngrad f 3.0", ":type f", "let x = 1\nlet y = [x][4]", "x")
    run = dpl("run", "--engine", engine, file)
    assert run.returncode == 1
    assert run.stdout == "f : 'a -> 'a with 'a : num\nit : float = 6.0\n'a -> 'a with 'a : num\nx : int = 1\n"
    assert "R0705" in run.stderr and f"{file}, cell 3:2:" in run.stderr
    assert dpl(notebook(tmp_path / "b.ipynb", "1", "do Sys.exit 4", "2"), timeout=WAIT).returncode == 4


def test_bad_notebooks(dpl, tmp_path: Path) -> None:
    (tmp_path / "bad.ipynb").write_text('{"cells": 3}')
    (tmp_path / "text.ipynb").write_text("let x = 1")
    (tmp_path / "list.ipynb").write_text("[]")
    for name in ("bad", "text", "list"):
        run = dpl("run", tmp_path / f"{name}.ipynb")
        assert run.returncode == 1 and "it is not a notebook of Jupyter" in run.stderr
    run = dpl("run", notebook(tmp_path / "python.ipynb", "print(1)", language="python"))
    assert run.returncode == 1 and "its language is python" in run.stderr
    run = dpl("run", tmp_path / "none.ipynb")
    assert run.returncode == 1 and "E0510" in run.stderr
    run = dpl("run", notebook(tmp_path / "a.ipynb", "1"), "more")
    assert run.returncode == 2 and "takes no arguments" in run.stderr
