"""`dpl new`, `dpl doc`, `dpl completions`."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest


def test_a_new_project(dpl, tmp_path: Path) -> None:
    assert dpl("new", "line-fit", cwd=tmp_path).returncode == 0
    project = tmp_path / "line-fit"
    assert dpl("fmt", "--check", project).returncode == 0
    run = dpl("run", "main.dp", cwd=project)
    assert run.returncode == 0 and run.stderr == "", run.stderr
    before, after = (float(word.strip(",")) for word in run.stdout.split("\n")[0].split() if word[0].isdigit())
    assert after < before / 100
    tested = dpl("test", cwd=project)
    assert tested.returncode == 0 and tested.stdout.endswith("3 passed\n"), tested.stdout


def test_a_project_that_is_there_is_left_alone(dpl, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "main.dp").write_text("mine")
    run = dpl("new", "there", cwd=tmp_path)
    assert run.returncode == 1 and "not empty" in run.stderr
    assert [p.name for p in (tmp_path / "there").iterdir()] == ["main.dp"]
    assert dpl("new", "a b", cwd=tmp_path).returncode == 2
    (tmp_path / "file").write_text("")
    run = dpl("new", "file/inside", cwd=tmp_path)
    assert run.returncode == 1 and "cannot write" in run.stderr


class Words(HTMLParser):
    """The text of a page, and the places that can be linked to; complains about tags that do not fit."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.places: set[str] = set()
        self.links: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, attrs) -> None:
        if tag not in ("meta", "input"):
            self.open.append(tag)
        self.links += [value for name, value in attrs if name == "href"]
        for name, value in attrs:
            assert name != "id" or value not in self.places
            self.places |= {value} if name == "id" else set()

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        self.text += data


def words(page: Path) -> Words:
    found = Words()
    found.feed(page.read_text(encoding="utf-8"))
    assert not found.open
    return found


def test_pages_of_a_program(dpl, tmp_path: Path) -> None:
    (tmp_path / "helper.dp").write_text(
        "-- About <this> module.\n\n-- | One more than `x`.\nlet next x = x + 1\nlet _hidden = 1\n"
    )
    (tmp_path / "main.dp").write_text(
        "import Helper\n\n-- ---- shapes ----\n\n-- | What there is.\ntype shape = Dot | Box of float[2]\n"
        "-- | How large.\nlet area s = match s with Dot -> 0.0 | Box [a, b] -> a * b\ndo print (Helper.next 1)\n"
    )
    run = dpl("doc", tmp_path / "main.dp", "-o", tmp_path / "out")
    assert run.returncode == 0 and run.stdout == f"{tmp_path}/out/index.html\n", run.stderr
    index = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    entries = json.loads(re.search(r"^begin\((\[.*\]), \{.*\}\);$", index, re.MULTILINE)[1])  # type: ignore[index]
    assert {"name": "Helper.next", "type": "'a -> 'a with 'a : num", "doc": "One more than `x`.",
            "page": "Helper.html#next", "also": []} in entries  # fmt: skip
    main, helper = words(tmp_path / "out" / "main.html"), words(tmp_path / "out" / "Helper.html")
    assert main.places == {"type.shape", "area"} and helper.places == {"next"}
    assert "area s : shape -> float" in main.text and "type shape = Dot | Box of float[2]" in main.text
    assert "shapes" in main.text and "How large." in main.text
    assert "About <this> module." in helper.text and "One more than x." in helper.text


def test_pages_of_the_library(dpl, tmp_path: Path) -> None:
    assert dpl("doc", "--stdlib", "-o", tmp_path).returncode == 0
    assert {"hessian", "jet", "curldiv'"} <= words(tmp_path / "Ad.html").places
    assert {"sin", "grad", "map", "scan"} <= words(tmp_path / "Prelude.html").places
    assert {"type.key", "key"} <= words(tmp_path / "Random.html").places
    links = words(tmp_path / "index.html")
    assert "Linalg" in links.text and len(links.links) > 300
    for file, _, place in (link.partition("#") for link in links.links):
        assert not place or place in words(tmp_path / file).places


def test_nothing_to_document(dpl, tmp_path: Path) -> None:
    assert dpl("doc").returncode == 2
    (tmp_path / "file").write_text("")
    run = dpl("doc", "--stdlib", "-o", tmp_path / "file" / "x")
    assert run.returncode == 1 and "cannot write" in run.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions(dpl, shell: str) -> None:
    run = dpl("completions", shell)
    assert run.returncode == 0 and "_DPL_COMPLETE" in run.stdout
    typed = {"COMP_WORDS": "dpl ch", "COMP_CWORD": "ch" if shell == "fish" else "1"}
    assert "check" in dpl(_DPL_COMPLETE=f"{shell}_complete", **typed).stdout
    typed = {"COMP_WORDS": "dpl run mod", "COMP_CWORD": "mod" if shell == "fish" else "2"}
    assert dpl(_DPL_COMPLETE=f"{shell}_complete", **typed).stdout.startswith("file")
