"""Files and folders that texts and docstrings name exist: moves are followed everywhere."""

import re

from conftest import ROOT

NAMED = re.compile(r"`((?:[\w.-]+/)+[\w.*-]+\.(?:py|dp|rt|md|lark|toml|c|json)|(?:[\w.-]+/)+)`")
FOLDERS = ("lang", "compiler", "grammar", "stdlib", "tests", "editors", "benchmarks", "examples", "docs")
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
        if "node_modules" in text.parts:
            continue
        for name in NAMED.findall(text.read_text(encoding="utf-8")):
            pattern = re.compile("/" + re.escape(name).replace(r"\*", "[^/]*") + ("" if name.endswith("/") else "$"))
            if not PLACEHOLDER.search(name) and not any(pattern.search(file) for file in files):
                missing.append(f"{text.relative_to(ROOT)}: {name}")
    assert not missing, "\n".join(missing)
