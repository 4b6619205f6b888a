"""`dpl doc`: writes HTML pages for modules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from dplc.tools.doc.contents import library_pages, pages_of
from dplc.tools.doc.html import as_html, index


def write_pages(files: Sequence[str], stdlib: bool, folder: Path) -> int:
    """Write a page for each module and an index; print the path of the index."""
    pages = [page for file in files for page in pages_of(Path(file))]
    if stdlib:
        pages += (page for page in library_pages() if page.sections)  # some modules are only for internal use
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for page in pages:
            (folder / f"{page.name}.html").write_text(as_html(page), encoding="utf-8")
        (folder / "index.html").write_text(index(pages), encoding="utf-8")
    except OSError as failure:
        raise click.ClickException(f"cannot write {failure.filename}: {failure.strerror}") from None
    print(folder / "index.html")
    return 0
