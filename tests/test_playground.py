"""The playground: under Pyodide in node, the interpreter runs the steps of the tour and deep recursion, and steps."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import dpl
import pytest
from conftest import ROOT
from dpl.syntax.pages import blocks

PLAYGROUND = ROOT / "docs" / "playground"
PYODIDE = Path(os.environ.get("PYODIDE", PLAYGROUND / "node_modules" / "pyodide"))
DEEP = """
let rec total x n = if n = 0 then 0.0 else x + total x (n - 1)
do print (grad (fun x -> total x 20000) 1.0)
do print (grad (fun x -> loop y = x for _ < 20000 do y + x) 1.0)
do print (List.length (loop xs = [] for i < 20000 do i :: xs))
"""
SCRIPT = """
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
const folder = process.argv[2];
const { loadPyodide } = await import(`file://${folder}/pyodide/pyodide.mjs`);
const { exchanged } = await import(`file://${folder}/statics.mjs`);
const code = readFileSync(`${folder}/pyodide/pyodide.asm.wasm`);
const memory = exchanged(new Uint8Array(gunzipSync(readFileSync(`${folder}/snapshot.gz`))), code);
const python = await loadPyodide({ indexURL: `${folder}/pyodide/`, _loadSnapshot: memory });
python.unpackArchive(new Uint8Array(readFileSync(`${folder}/data.zip`)), "zip", { extractDir: "/dpl" });
const driver = python.globals.get("sys").modules.get("driver");
const calls = JSON.parse(readFileSync(0, "utf8")), answers = [];
for (const [name, ...args] of calls) {
  let printed = "";
  const say = name === "move" || name === "check" ? [] : [(text) => { printed += text; }];
  const answer = JSON.parse(driver[name](...args, ...say));
  answers.push({ answer, printed });
}
console.log(JSON.stringify(answers));
"""


@pytest.fixture
def builder():
    pytest.importorskip("markdown_it", reason="the extra `docs` is not installed")
    spec = spec_from_file_location("playground_build", PLAYGROUND / "build.py")
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tour_has_ten_steps_with_programs(builder) -> None:
    steps = builder.steps()
    assert len(steps) == 10 and all(s["title"] and s["text"].startswith("<p>") and s["program"] for s in steps)
    shown = builder.page("a", "play", "", "", builder.INDEX.replace("EXAMPLES", builder.embedded(builder.examples())))
    assert "{title}" not in shown and "</script>" in shown and shown.count("<script") == 1


def test_the_sweep_is_stepped_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the page asks of the debugger: to the reverse sweep, and through it in both directions."""
    monkeypatch.setattr(dpl, "HOST", dpl.HOST)
    spec = spec_from_file_location("driver", PLAYGROUND / "driver.py")
    assert spec and spec.loader
    driver = module_from_spec(spec)
    spec.loader.exec_module(driver)
    monkeypatch.undo()  # the driver asks for a browser; here an operating system is the host
    assert json.loads(driver.debug("let f x =\n  let y = x * x in\n  y * y\ndo print (grad f 3.0)", print)) == []
    sweep, step, later, back = [json.loads(driver.move(how)) for how in ("sweep", "step", "step", "back step")]
    assert [seen["line"] for seen in (sweep, step, later, back)] == [3, 2, 2, 2]
    assert all(seen["reverse"] for seen in (sweep, step, later)) and back == step
    assert [f"d {v['name']} = {v['derivative']}" for v in later["variables"]] == ["d y = 18.0", "d x = 108.0"]


@pytest.mark.slow
def test_the_interpreter_in_a_page(builder, tmp_path: Path) -> None:
    if not shutil.which("node") or not (PYODIDE / "pyodide.mjs").exists():
        pytest.skip("node or the npm package pyodide is missing")
    subprocess.run([sys.executable, PLAYGROUND / "build.py", "--pyodide", PYODIDE, "-o", tmp_path / "site"], check=True)
    files = [file for file in (tmp_path / "site").rglob("*") if file.is_file()]
    assert sum(len(gzip.compress(file.read_bytes())) for file in files) < 9_000_000
    page = (PLAYGROUND / "tour.md").read_text(encoding="utf-8")
    programs = [block for block in blocks(page) if block.runs]
    calls = [["execute", block.text_of(page)] for block in programs]
    calls += [["execute", "let rec f n = 1 + f (n + 1)\ndo print (f 0)"]]
    calls += [["execute", DEEP], ["check", "let x = 1 + true"], ["debug", programs[4].text_of(page)]]
    calls += [["move", "sweep"], ["move", "step"], ["move", "back step"]]
    calls += [["debug", "let a = 2.0\nlet b = a * a\ndo print b"], ["move", "step"], ["move", "next"], ["move", "next"]]
    script = tmp_path / "run.mjs"
    script.write_text(SCRIPT, encoding="utf-8")
    run = subprocess.run(
        ["node", script, tmp_path / "site"], input=json.dumps(calls), capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-2000:]
    answers = json.loads(run.stdout)
    for block, answer in zip(programs, answers, strict=False):
        if "Plot." in block.text_of(page):
            assert "<svg" in answer["printed"]
        else:
            assert answer == {"answer": [], "printed": page[slice(*block.output)]}
    runaway, deep, wrong, _, sweep, step, back, _, *at_the_top = answers[len(programs) :]
    assert deep["printed"] == "20000.0\n20001.0\n20000\n"
    assert [d["code"] for d in runaway["answer"]] == ["R0801"]
    assert [d["code"] for d in wrong["answer"]] == ["E0201"]
    assert sweep["answer"]["reverse"] and step["answer"]["reverse"] and back["answer"] == sweep["answer"]
    assert any(v["derivative"] for v in step["answer"]["variables"])
    shown = [[f"{v['name']} {v['value']}" for v in moved["answer"]["variables"]] for moved in at_the_top]
    assert shown[-1] == ["a 2.0", "b 4.0"] and shown[0] == []
