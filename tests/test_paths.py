"""Files and folders that texts and docstrings name exist: moves are followed everywhere.  So do functions of the
library that messages and the book name."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from conftest import ROOT
from dpl.types.library import library

NAMED = re.compile(r"`((?:[\w.-]+/)+[\w.*-]+\.(?:py|dp|rt|md|lark|toml|c|json)|(?:[\w.-]+/)+)`")
FOLDERS = ("lang", "compiler", "grammar", "stdlib", "tests", "editors", "benchmarks", "examples", "docs")
FUNCTION = re.compile(r"(?:  |`)([A-Z]\w*)\.([a-z]\w*)")  # as helps and pages write it
MADE = re.compile(r"/node_modules/|/docs/(_build/|library/|errors\.md$)")  # when the book or an editor is built
OF_OTHERS = {"Optim.optimize"}  # a name of another system's module
PLACEHOLDER = re.compile(r"\b(NAME|STAGE|KIND|CODE|my_pass)\b")


def test_named_files_exist() -> None:
    texts = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
    texts += [
        path for folder in FOLDERS for kind in ("*.py", "*.md", "*.rt", "*.dp") for path in (ROOT / folder).rglob(kind)
    ]
    files = {
        "/" + str(path.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()
    }
    missing = []
    for text in texts:
        if MADE.search(str(text)):
            continue
        for name in NAMED.findall(text.read_text(encoding="utf-8")):
            pattern = re.compile("/" + re.escape(name).replace(r"\*", "[^/]*") + ("" if name.endswith("/") else "$"))
            if not PLACEHOLDER.search(name) and not any(pattern.search(file) for file in files):
                missing.append(f"{text.relative_to(ROOT)}: {name}")
    assert not missing, "\n".join(missing)


def test_words_of_the_glossary_name_code() -> None:
    """The first column of the glossary has names of files and folders of this project; each of them exists."""
    glossary = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("## Folders")[0]
    words = re.findall(r"`([^`]+)`", "\n".join(re.findall(r"^\|([^|]*)\|", glossary, re.MULTILINE)))
    files = {f"/{path.parent.name}/{path.stem}" for part in ("compiler", "lang") for path in (ROOT / part).rglob("*")}
    assert len(words) > 70
    assert not [word for word in words if word != "Par" and not any(file.endswith("/" + word) for file in files)]


def test_rows_that_pages_quote_are_those_of_the_table() -> None:
    page = (ROOT / "docs/contributing/adding.md").read_text(encoding="utf-8")
    quoted = [line for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) for line in block.splitlines()]
    rows = (ROOT / "lang/dpl/prims/scalar.py").read_text(encoding="utf-8")
    assert len(quoted) > 1
    assert not [line for line in quoted if line not in rows]


def test_maps_name_every_folder() -> None:
    """ARCHITECTURE.md has the folders of the language and of the compiler, tests/README.md those of the tests."""
    house, tests = ((ROOT / name).read_text(encoding="utf-8") for name in ("ARCHITECTURE.md", "tests/README.md"))
    parts = [path for part in ("lang/dpl", "compiler/dplc", "compiler/dplc/passes") for path in (ROOT / part).iterdir()]
    folders = {path.name for path in parts if path.is_dir()} - {"__pycache__", "shipped", "passes"}
    assert [name for name in folders if f"{name}/`" not in house] == []
    kinds = [path.name for path in (ROOT / "tests").iterdir() if path.is_dir() or path.name.startswith("test_")]
    assert [name for name in kinds if f"`{name}" not in tests and name != "__pycache__"] == []


def strings(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_named_functions_exist() -> None:
    modules = library().modules
    texts = [(file, text) for folder in ("lang", "compiler") for file in (ROOT / folder).rglob("*.py")
             for text in strings(file)]  # fmt: skip
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "lang" / "dpl" / "codes").rglob("*.md"), ROOT / "README.md"]
    texts += [(page, page.read_text(encoding="utf-8")) for page in pages if not MADE.search(str(page))]
    missing = [f"{file.relative_to(ROOT)}: {module}.{name}" for file, text in texts
               for module, name in FUNCTION.findall(text)
               if module in modules and name not in modules[module].values and name not in modules[module].types
               and f"{module}.{name}" not in OF_OTHERS]  # fmt: skip
    assert not missing, "\n".join(missing)
