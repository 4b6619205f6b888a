"""A text that is edited says the same as one that is read anew, and what `dpl check` says of it."""

import difflib
import gc
import random
import sys
import threading
import tracemalloc

import pytest
from conftest import ROOT

pytest.importorskip("pygls", reason="the language server's extra is not installed: pip install 'dpl-lang[lsp]'")

from dpl.diagnostics import DplError
from dpl.syntax.load import load
from dpl.types.check import check_all
from dpl.types.state.context import Context
from dpl.types.warnings.advice import advice_without_running
from dplc.passes.entry.exports import exports
from dplc.tools.lsp.features import colours, hints, problems
from dplc.tools.lsp.text.documents import Document, Workspace
from dplc.tools.lsp.text.pages import Book
from lsprotocol import types as lsp

EVERYTHING = lsp.Range(lsp.Position(0, 0), lsp.Position(10**6, 0))
GOLDEN = ("type_errors", "size_errors", "effect_errors", "pattern_errors", "warnings", "check")
PROGRAMS = [
    *sorted((ROOT / "examples").glob("*.dp")),
    *(p for folder in GOLDEN for p in sorted((ROOT / "tests" / "golden" / folder).glob("*.dp"))),
]


@pytest.fixture(autouse=True)
def own_cache(cache, monkeypatch) -> None:
    monkeypatch.setenv("DPL_CACHE", str(cache))


def on_large_stack(work):
    """Checking recurses; the server does it on such a stack too."""
    outcome = []
    before = threading.stack_size(1 << 28)
    sys.setrecursionlimit(10**6)
    thread = threading.Thread(target=lambda: outcome.append(work()))
    thread.start()
    threading.stack_size(before)
    thread.join()
    return outcome[0]


def document(text: str, path=None) -> Document:
    made = Document(Workspace(), "untitled:1" if path is None else path.as_uri(), path)
    made.update(text)
    return made


def said(d: Document) -> list[tuple]:
    """Everything that an editor is shown without asking about a place."""
    found = [(x.code, x.message, str(x.range), len(x.related_information or ())) for x in problems.diagnostics(d)]
    shown = [(str(h.position), h.label) for h in hints.hints(d, EVERYTHING)]
    return [*sorted(found), *shown, *colours.tokens(d).data]


def commanded(path) -> list[tuple]:
    """What `dpl check` says."""
    try:
        modules = load(path)
        checked = check_all(modules)
        exports(checked)
        found = [*checked.warnings, *advice_without_running(checked.program, {module.source for module in modules})]
    except DplError as failure:
        found = failure.diagnostics
    return sorted((d.code, d.title, d.span.line if d.span else 0) for d in found)


def told_once(found: list[tuple]) -> list[tuple]:
    """An editor marks a missing name wherever it stands; the command tells it once, with how often it is missed."""
    first: dict[tuple, tuple] = {}
    for x in found:
        first.setdefault(x[:2] if x[0] in ("E0202", "E0203") else x, x)
    return list(first.values())


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_says_what_the_command_says(path) -> None:
    def compare():
        d = document(path.read_text(encoding="utf-8"), path)
        found = d.diagnostics()
        ours = sorted((x.code, x.title, x.span.line if x.span else 0) for x in found)
        command = commanded(path)
        if any(x.severity == "error" for x in found):  # then warnings are told too
            ours = [x for x in ours if x[0][0] == "E"]
        return told_once(ours), command

    ours, command = on_large_stack(compare)
    assert ours == command


ADDED = [
    "",
    "-- a comment",
    "let added = 1.0",
    "let weights = added",
    "do print 1",
    "  x + (",
    'let s = "a',
    "open List",
]


def edited(text: str, dice: random.Random) -> str:
    """A text with one small change, as somebody types or moves things."""
    lines = text.split("\n")
    at = dice.randrange(len(lines))
    match dice.randrange(7):
        case 0:
            lines.insert(
                at, dice.choice(["", "-- a comment", "let added = 1.0", "do print 1", "  x + (", 'let s = "a'])
            )
        case 1:
            del lines[at]
        case 2:
            lines[at] = lines[at].replace("let ", "let  ", 1) + " "
        case 3:
            lines[at] = lines[at].replace("1", "2").replace("+", "-")
        case 4:
            place = dice.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][:place] + dice.choice("x1.([ \"'=\u03b8") + lines[at][place:]
        case 5:
            place = dice.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][:place]
        case _:
            other = dice.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(6))
def test_edits_say_what_a_new_text_says(seed: int) -> None:
    def follow():
        dice = random.Random(seed)
        text = ROOT / "examples" / dice.choice(["05_iris_mlp", "06_tree_model", "char_rnn", "02_tree_gradient"])
        text = text.with_suffix(".dp").read_text(encoding="utf-8")
        kept = document(text)
        different = []
        for _ in range(15):
            before, text = text, edited(text, dice)
            kept.update(text)
            found, new = said(kept), said(document(text))
            if found != new and not any(page.broken for page in kept.pages):  # else names keep the types that they had
                different.append((before, text, found, new))
            if dice.random() < 0.3:
                text = before
                kept.update(text)
        return different

    for before, text, ours, new in on_large_stack(follow):
        assert ours == new, "\n".join(difflib.unified_diff(before.split("\n"), text.split("\n"), lineterm="", n=1))


def test_only_what_changed_is_checked_again() -> None:
    text = "let f x = x + 1.0\nlet g y = f y * 2.0\nlet h z = g z - 1.0\ndo print (h 1.0)\n"
    d = document(text)

    def count(changed: str) -> int:
        before = d.checking.checked
        d.update(changed)
        d.check()
        return d.checking.checked - before

    def run():
        return [
            count(text),
            count(text),
            count(text.replace("x + 1.0", "x + 2.0")),  # of the same type
            count("-- moved\n\n" + text),
            count(text.replace("x + 1.0", "x + (1.0 : f32)")),  # of another: all that use it, too
            count(text.replace("x + 1.0", "x + (")),  # half a declaration is what it was
        ]

    first, nothing, body, moved, type_, half = on_large_stack(run)
    assert (first, nothing, body) == (4, 0, 1)
    assert moved <= 2
    assert type_ == 4
    assert half <= 4


@pytest.mark.parametrize(
    ("text", "pages"),
    [
        ("let f =\nlet x = 1 in\nx\nlet g = 2", 2),
        ("(* let x = 1\nlet y = 2 *)\nlet z = 3", 2),
        ('let s = "abc\nlet t = 1"\nlet u = 3', 2),
        ('let s = "abc\nlet t = "x"\nlet u = 3', 3),
        ("let f x =\nlet g = 3\n", 2),
        ("-- | of f\nlet f = 1\n-- | of g\nlet g = 1\n", 2),
        ("let rec f x = g x\nand g x = f x\n", 1),
        ("", 1),
    ],
)
def test_pages(text: str, pages: int) -> None:
    book = Book("text")
    book.update(text)
    assert "".join(page.text for page in book.pages) == text
    assert len(book.pages) == pages


def test_half_of_anything_has_a_tree() -> None:
    """Whatever a program is cut off, its declarations up to there are read."""
    text = (ROOT / "examples" / "06_tree_model.dp").read_text(encoding="utf-8")
    names = [line.split()[1] for line in text.split("\n") if line.startswith("type ")]
    for end in range(0, len(text), 7):
        book = Book("text")
        book.update(text[:end])
        assert "".join(page.text for page in book.pages) == text[:end]
        assert len([p for p in book.pages if p.broken]) <= 1
    assert names


def test_a_book_that_is_full_starts_anew() -> None:
    text = "-- " + "long " * 2000 + "\nlet f x = x + 1.0\nlet g = f tru\n"
    kept = document(text)

    def type_and_look():
        first = []
        for number in range(30):
            kept.update(text.replace("long", f"long{number}", 1))
            kept.check()
            first.append(len(kept.book.all))
        return first, said(kept), said(document(text.replace("long", "long29", 1)))

    pages, ours, new = on_large_stack(type_and_look)
    assert sorted(pages) != pages  # it was emptied
    assert ours == new


def test_positions_are_true_after_edits() -> None:
    d = document("let a = 1\n\nlet b = tru\n")
    assert d.diagnostics()[0].span.line == 3
    d.update("-- one more line\n\nlet a = 1\n\nlet b = tru\n")
    (found,) = d.diagnostics()
    assert (found.span.line, found.code) == (5, "E0202")
    assert d.text[slice(*d.book.now(found.span))] == "tru"


def test_lines_of_all_kinds_and_characters_of_all_sizes() -> None:
    from dplc.tools.lsp.text.positions import Lines, readable

    text = "a\r\nθ😀x\rb\n"
    for encoding, place in (("utf-16", 3), ("utf-8", 6), ("utf-32", 2)):
        lines = Lines(text, encoding)
        assert lines.position(text.index("x")) == lsp.Position(1, place)
        assert lines.offset(lsp.Position(1, place)) == text.index("x")
        assert lines.offset(lsp.Position(1, 99)) == text.index("x") + 1
        assert lines.offset(lsp.Position(99, 0)) == len(text)
    assert readable("a\ud800b") == "a\ufffdb"


# ---- memory


def written(number: int, lines: int) -> str:
    """A text with functions of its own."""
    some = "let f{i} x = let y = x * {n}.0 in y + sin x\nlet g{i} (a : float[n]) b = sum (a * b) + f{i} 2.0\n"
    return "".join(some.format(i=i, n=number) for i in range(lines // 2))


def bytes_held() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def test_texts_that_are_closed_give_back_their_memory(fresh_heap) -> None:
    def open_and_close() -> tuple[int, int, int]:
        workspace = Workspace()

        def look(number: int) -> None:
            d = Document(workspace, f"untitled:{number}", None)
            workspace.open[d.uri] = d
            d.update(written(number, 30))
            said(d)

        look(0)  # what is made once
        workspace.open.clear()
        tracemalloc.start()
        try:
            before = bytes_held()
            for number in range(6):
                look(number)
            held = bytes_held()
            workspace.open.clear()
            workspace.forget()
            return before, held, bytes_held()
        finally:
            tracemalloc.stop()

    before, held, after = on_large_stack(open_and_close)
    assert held - before > 1_000_000
    assert after - before < 0.25 * (held - before)


def test_edits_keep_nothing_but_the_places_of_what_has_gone(fresh_heap) -> None:
    def edit() -> int:
        text = written(0, 10)
        d = document(text)

        def type_on(rounds: int) -> int:
            for number in range(rounds):
                d.update(text.replace("let y = x", f"let y{number % 7} = x + {number}.0", 1))
                said(d)
            return bytes_held()

        tracemalloc.start()
        try:
            before = type_on(10)
            return type_on(30) - before
        finally:
            tracemalloc.stop()

    assert on_large_stack(edit) < 30 * 2000


def test_of_an_imported_module_only_the_last_version_is_known(tmp_path) -> None:
    def edit() -> int:
        workspace = Workspace()
        for name in ("lib", "main"):
            path = tmp_path / f"{name}.dp"
            workspace.open[name] = Document(workspace, path.as_uri(), path)
        (tmp_path / "lib.dp").write_text("")
        for number in range(5):
            workspace.open["lib"].update(f"let a = {number}\n")
            workspace.open["main"].update('import "lib.dp"\ndo print (Lib.a + 1)\n')
            assert workspace.open["main"].diagnostics() == []
        return len(workspace.modules)

    assert on_large_stack(edit) == 1


def test_what_is_known_of_a_page_does_not_hold_on_to_the_others(fresh_heap) -> None:
    """Each page was checked in a context of its own; these hold all pages that there were."""

    def edit() -> int:
        text = written(0, 10)
        d = document(text)
        for number in range(5):
            d.update(text.replace(f"let f{number} x = ", f"let f{number} x = x + "))
            d.check()
        gc.collect()
        return sum(isinstance(o, Context) and o.module == "main" for o in gc.get_objects())

    assert on_large_stack(edit) <= 2
