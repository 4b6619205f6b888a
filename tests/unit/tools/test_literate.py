"""Literate programs: `dpl run page.md` and `dpl test page.md`."""

from __future__ import annotations

from pathlib import Path

import pytest
from dpl.syntax.pages import blocks

PAGE = """# A page

```sh
dpl run page.md
```

```dpl
let f x = x * x
do print "hello"
```

```text
hello
```

```dpl
-- an expression prints its value
grad f 3.0
```
```text
6.0
```

````md
```dpl
this is no block of the page
```
````

```dpl error
let y = f true
```

```dpl norun
let y = something that is only read
```

```dpl types
let z = f 2.0
```

```dpl warning
let g x = match x with true -> 1 | false -> 2 | _ -> 3
```
"""


def line_of(text: str, page: str = PAGE) -> int:
    return page[: page.index(text)].count("\n") + 1


@pytest.fixture
def page(tmp_path: Path) -> Path:
    file = tmp_path / "page.md"
    file.write_text(PAGE, encoding="utf-8")
    return file


def test_blocks() -> None:
    found = list(blocks(PAGE))
    assert [sorted(b.words) for b in found] == [[], [], ["error"], ["norun"], ["types"], ["warning"]]
    assert [b.output and PAGE[slice(*b.output)] for b in found[:3]] == ["hello\n", "6.0\n", None]
    assert [b.declares(PAGE) for b in found[:3]] == [True, False, True]
    assert all(len(b.alone(PAGE)) == b.end for b in found)


@pytest.mark.parametrize("engine", ["native", "interp"])
def test_run(dpl, page: Path, engine: str) -> None:
    run = dpl("run", "--engine", engine, page)
    assert (run.returncode, run.stdout) == (0, "hello\n6.0\n")
    assert f"{page}:{line_of('let g')}:" in run.stderr


def test_errors_tell_lines_of_the_page(dpl, page: Path) -> None:
    page.write_text(PAGE.replace("dpl error", "dpl").replace("grad f 3.0", "grad f (3.0"), encoding="utf-8")
    run = dpl("check", page)
    assert run.returncode == 1
    assert f"page.md:{line_of('grad f')}:" in run.stderr
    page.write_text(PAGE.replace("dpl error", "dpl"), encoding="utf-8")
    run = dpl("run", page)
    assert run.returncode == 1 and run.stdout == "" and f"page.md:{line_of('let y')}:11" in run.stderr


@pytest.mark.parametrize("engine", ["native", "interp"])
def test_update(dpl, page: Path, engine: str) -> None:
    run = dpl("test", "--engine", engine, page)
    assert run.returncode == 1 and run.stdout.endswith("2 passed, 3 failed\n")
    assert dpl("test", "--engine", engine, "--update", page).returncode == 0
    text = page.read_text(encoding="utf-8")
    assert f" --> page.md:{line_of('let y = f', text)}:11" in text
    assert "z : float = 4.0\n" in text and "warning[W" in text
    run = dpl("test", "--engine", engine, page)
    assert run.returncode == 0 and run.stdout.endswith("5 passed\n")


def test_a_change_is_shown(dpl, page: Path) -> None:
    dpl("test", "--engine", "interp", "--update", page)
    page.write_text(page.read_text(encoding="utf-8").replace("grad f 3.0", "grad f 3.5"), encoding="utf-8")
    run = dpl("test", "--engine", "interp", page)
    assert run.returncode == 1
    assert "- 6.0" in run.stdout and "+ 7.0" in run.stdout


def test_an_error_that_is_none_and_expectations(dpl, tmp_path: Path) -> None:
    page = tmp_path / "wrong.md"
    page.write_text('```dpl error\nlet y = 1\n```\n```dpl\nexpect "two" = 1 + 1 = 2\nexpect "three" = 1 = 3\n```\n')
    run = dpl("test", "--engine", "interp", page)
    assert run.returncode == 1
    assert "error is expected" in run.stdout and "FAIL three" in run.stdout and "ok   two" in run.stdout


def test_an_update_ends(dpl, tmp_path: Path) -> None:
    page = tmp_path / "clock.md"
    page.write_text("```dpl\nint (1e6 * Sys.time ())\n```\n")
    run = dpl("test", "--engine", "interp", "--update", page)
    assert run.returncode == 1 and "prints something else in each run" in run.stderr


def test_the_blocks_of_a_page_are_formatted(dpl, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# let  x\n```dpl\nlet f x=x*x -- why\n```\n```dpl\n(f  2)\n```\n```text\n4\n```\n"
        "```dpl\nf(3) -- kept\n```\n```dpl error\nlet = (  \n```\n"
    )
    changes = dpl("fmt", "--check", page)
    assert changes.returncode == 1 and "would change" in changes.stdout
    assert dpl("fmt", page).returncode == 0
    assert page.read_text(encoding="utf-8") == (
        "# let  x\n```dpl\nlet f x = x * x  -- why\n```\n```dpl\nf 2\n```\n```text\n4\n```\n"
        "```dpl\nf(3) -- kept\n```\n```dpl error\nlet = (  \n```\n"
    )
    assert dpl("fmt", "--check", page).returncode == 0


def test_a_word_that_says_nothing_of_a_block(dpl, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```dpl errors\ndo print 1\n```\n")
    for verb in ("run", "test"):
        run = dpl(verb, "--engine", "interp", page)
        assert run.returncode == 1
        assert "`errors` says nothing of a block" in run.stdout + run.stderr and ":1:8" in run.stdout + run.stderr


def test_a_notebook_is_no_page(dpl, tmp_path: Path) -> None:
    notebook = tmp_path / "cells.ipynb"
    notebook.write_text('{"cells": []}')
    run = dpl("check", notebook)
    assert run.returncode == 1 and "is a notebook" in run.stderr
