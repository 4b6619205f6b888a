"""Sphinx's configuration of the book:  sphinx-build docs docs/_build/html  (extra `docs`).

Two parts of the book are made when it is built: the pages of the library, from the comments in `stdlib/` (`dpl doc` has
the same maker), and the index of errors, from the pages of `dpl explain`.
"""

from __future__ import annotations

from pathlib import Path

from dpl import resources
from dpl.highlight import DplLexer
from dplc.tools.doc import finder
from dplc.tools.doc.contents import library_pages
from dplc.tools.doc.markdown import as_markdown, errors, index
from sphinx.application import Sphinx

HERE = Path(__file__).parent

project = "DPL"
author = "the authors of DPL"
html_title = "DPL"
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
html_theme = "furo"
html_static_path = ["_static", str(finder.NEAR)]
html_css_files = ["book.css"]
html_js_files = [(name, {"defer": "defer"}) for name in ("keys.js", "near.js", "search.js")]
html_theme_options = {"sidebar_hide_name": False, "source_directory": "docs/"}
html_show_copyright = False
suppress_warnings = ["toc.not_included"]  # a new page is built before the index names it
exclude_patterns = ["_build", "playground"]


def make_pages(app: Sphinx) -> None:
    """Write the pages that are made: those of the library and the index of errors."""
    folder = Path(app.srcdir) / "library"
    folder.mkdir(exist_ok=True)
    pages = [made for made in library_pages() if made.sections]
    for made in pages:
        write(folder / f"{made.name}.md", as_markdown(made))
    write(folder / "index.md", index(pages))
    write(Path(app.srcdir) / "errors.md", errors(sorted(resources.codes().glob("*.md"))))


def write(file: Path, text: str) -> None:
    """Write a file if it would change, so that Sphinx builds again only what has changed."""
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> None:
    app.add_lexer("dpl", DplLexer)
    app.connect("builder-inited", make_pages)
