"""The search in a page finds by type what `dpl doc --search` finds."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from dpl.syntax.foreign import table
from dpl.types.library import library
from dpl.types.messages.pretty import show_scheme
from dplc.tools.doc import finder
from dplc.tools.search import elsewhere_said, known_in, search

QUERIES = (
    "float list -> int",
    "(float -> float) -> float[5] -> float[5]",
    "float[n] -> float",
    "int list -> (int -> bool) -> int list",
    "string -> int",
    "'a list -> 'b list -> ('a * 'b) list",
    "float[3, 4] -> float[4, 3]",
    "string -> string list -> string",
)
WORDS = {
    "matrix inverse": "Linalg.inverse",
    "np.linalg.inv": "Linalg.inverse",
    "cumsum": "cumsum",
    "read csv": "Data.read_csv",
}
SCRIPT = "const [entries, queries] = JSON.parse(require('fs').readFileSync(0, 'utf8'));"
SCRIPT += "const found = (q) => find(entries, q).length ? find(entries, q) : near(entries, q);"
SCRIPT += "console.log(JSON.stringify(queries.map((q) => found(q).map((e) => e.name))));"
MISTYPED = {"linspce": "Array.linspace", "cumusm": "cumsum", "softmx": "softmax", "Linalg.invrese": "Linalg.inverse"}


ELSEWHERE = ("concatenate", "np.einsum", "clip_grad_norm_", "moving average", "stopGradient", "no such name")


@pytest.mark.skipif(not shutil.which("node"), reason="node is missing")
def test_the_search_in_a_page_finds_what_the_command_finds(tmp_path: Path) -> None:
    known = list(known_in(library().modules))
    others = finder.foreign()
    entries = [
        {"name": k.name, "type": show_scheme(k.scheme), "doc": k.doc, "also": others.get(k.name, [])} for k in known
    ]
    script = tmp_path / "find.js"
    parts = [finder.NEAR.read_text(encoding="utf-8"), finder.SCRIPT.read_text(encoding="utf-8"), SCRIPT]
    script.write_text("".join(parts), encoding="utf-8")
    asked = json.dumps([entries, [*QUERIES, *WORDS, *MISTYPED]])
    run = subprocess.run(["node", script], input=asked, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    answers = json.loads(run.stdout)
    for query, found in zip(QUERIES, answers, strict=False):
        wanted = [k.name for k in search(query, known)]
        assert found[0] == wanted[0] and set(found) == set(wanted), query
    for (query, best), found in zip(MISTYPED.items(), answers[-len(MISTYPED) :], strict=True):
        assert found[0] == best, query
    for (query, best), found in zip(WORDS.items(), answers[len(QUERIES) :], strict=False):
        assert found[0] == best == search(query, known)[0].name


@pytest.mark.skipif(not shutil.which("node"), reason="node is missing")
def test_the_search_in_a_page_says_how_other_names_are_written_here(tmp_path: Path) -> None:
    asks = "const [elsewhere, queries] = JSON.parse(require('fs').readFileSync(0, 'utf8'));"
    asks += "console.log(JSON.stringify(queries.map((q) => answer([], elsewhere, q).heading)));"
    script = tmp_path / "said.js"
    script.write_text(finder.NEAR.read_text("utf-8") + finder.SCRIPT.read_text("utf-8") + asks, "utf-8")
    queries = [*ELSEWHERE, *table()["said"], *table()["like"]]
    asked = json.dumps([finder.elsewhere(), queries])
    run = subprocess.run(["node", script], input=asked, capture_output=True, text=True, check=True)
    told = json.loads(run.stdout)
    assert told == [elsewhere_said(query) or "nothing found" for query in queries]
    assert told[0] == "here it is written  xs ++ ys" and told[len(ELSEWHERE) - 1] == "nothing found"
