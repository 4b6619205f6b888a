"""Makes what a page starts from, with the Python of the page itself (`make.mjs` says when)."""

from __future__ import annotations

import compileall
import gc
import marshal
import pkgutil
import shutil
import sys
import warnings
import zlib
from importlib import import_module
from pathlib import Path
from py_compile import PycInvalidationMode
from types import CodeType
from zipfile import ZIP_DEFLATED, ZipFile

CODE = (".py", ".pyc")
HEADER = 16  # bytes of a `.pyc` before its code
BUILD = ("lark", "freeze.py", "freeze.pyc")  # what only the build needs
STANDARD = ("difflib", "json", "tomllib", "traceback", "unicodedata")  # what functions import when called
STANDARD += tuple(f"encodings.{name}" for name in ("ascii", "cp437", "latin_1", "utf_16", "utf_32"))
WARM = ("do print (grad sin 1.0)", "do print (grad snn 1.0)")
SMALL = range(48, 529, 16)  # bytes of Python's small objects
LARGE = (600, 1_000, 2_000, 4_000, 9_000, 20_000, 50_000, 100_000, 300_000, 1_000_000)
FILL = 3_000_000


def make(standard: str) -> None:
    """Make the tables and the checked library, compile all code in `/dpl`, and pack the compiled standard library of
    Python, which Pyodide ships as text, into an archive."""
    sys.setrecursionlimit(100_000)
    import_module("driver").make()
    for name in BUILD:
        path = Path("/dpl", name)
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    compiled(Path("/dpl"))
    folder = Path("/standard")
    shutil.unpack_archive(f"/lib/python{sys.version_info[0]}{sys.version_info[1]}.zip", folder, "zip")
    compiled(folder)
    packed(folder, Path(standard), lambda file: file.suffix == ".pyc")
    packed(Path("/dpl"), Path("/data.zip"), lambda file: file.suffix not in CODE and file.parent.name != "made")


def compiled(folder: Path) -> None:
    """Put bytecode in the place of the text of a folder's modules."""
    compileall.compile_dir(
        folder, quiet=1, optimize=2, legacy=True, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH
    )
    for file in folder.rglob("*.py"):
        if file.with_suffix(".pyc").exists():
            file.unlink()
    for file in folder.rglob("*.pyc"):
        data = file.read_bytes()
        file.write_bytes(data[:HEADER] + marshal.dumps(without_lines(marshal.loads(data[HEADER:]))))


def without_lines(code: CodeType) -> CodeType:
    """Code without its tables of lines, which only traces of Python show."""
    inside = (without_lines(part) if isinstance(part, CodeType) else part for part in code.co_consts)
    return code.replace(co_linetable=b"", co_consts=tuple(inside))


def packed(folder: Path, archive: Path, chosen) -> None:
    with ZipFile(archive, "w", ZIP_DEFLATED) as made:
        for file in sorted(folder.rglob("*")):
            if file.is_file() and chosen(file):
                made.write(file, file.relative_to(folder))


def warm() -> None:
    """Import and load everything that a page may use; then memory is kept as it is."""
    warnings.simplefilter("ignore")
    driver = import_module("driver")
    driver.begin()
    library = import_module("dpl.types.library").library()
    store(library)
    dpl = import_module("dpl")
    for module in pkgutil.walk_packages(dpl.__path__, "dpl."):
        if module.name != "dpl.highlight":  # for Pygments
            import_module(module.name)
    for name in STANDARD:
        import_module(name)
    for text in WARM:
        driver.execute(text, lambda _: None)
    clear()


def store(library) -> None:
    """Keep the library's parts as they are: all of memory is compressed at once, which takes half the room."""
    stored, exports = bytearray(), (*library.modules.values(), library.primitives)
    for values in (library.definitions, *(module.values for module in exports)):
        for name, (start, end) in values.packed.items():
            part = zlib.compress(zlib.decompress(library.parts.buffer[start:end]), 0)
            values.packed[name] = len(stored), len(stored) + len(part)
            stored += part
    library.parts.buffer = stored


def clear() -> None:
    """Fill memory that is not in use with zeros, which take no room when compressed."""
    gc.collect()
    for size in (*SMALL, *LARGE):
        kept = [bytes(size - 33) for _ in range(FILL // size)]
        del kept
    gc.collect()
