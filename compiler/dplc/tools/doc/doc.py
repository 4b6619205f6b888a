"""`dpl doc`: writes HTML pages for modules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dplc.stack import on_large_stack
from dplc.tools.doc.contents import library_pages, pages_of
from dplc.tools.doc.html import as_html, index
from dplc.tools.files import put, unwritable


def write_pages(files: Sequence[str], stdlib: bool, folder: Path) -> int:
    """Write a page for each module and an index; print the path of the index."""
    pages = on_large_stack(lambda: [page for file in files for page in pages_of(Path(file))])
    if stdlib:
        pages += (page for page in library_pages() if page.sections)  # some modules are only for internal use
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise unwritable(folder, failure) from None
    for page in pages:
        put(folder / f"{page.name}.html", as_html(page).encode())
    put(folder / "index.html", index(pages).encode())
    print(folder / "index.html")
    return 0
