"""Reading the modules of a program."""

import os

import pytest
from dpl.diagnostics import DplError
from dpl.source import Source
from dpl.syntax.load import load, load_standard, standard_modules


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def put(name: str, content: str | bytes = ""):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return put


def fails(path, code: str, words: str):
    with pytest.raises(DplError) as caught:
        load(path)
    found = caught.value.diagnostics[0]
    assert found.code == code and words in " ".join([found.title, found.note, *found.helps])
    return found


def test_modules_come_before_those_that_import_them(write):
    write("lib/model.dp", 'import "../util.dp" as U\nlet x = U.y')
    write("util.dp", "let y = 1")
    write("nn2.dp", "let z = 2")
    write("main.dp", 'import "lib/model.dp" as M\nimport Util\nimport Nn2\nimport List\nimport "util.dp"')
    modules = load("main.dp")
    assert [m.name for m in modules] == ["Util", "Model", "Nn2", "main"]
    assert modules[-1].imports == {"M": "Model", "Util": "Util", "Nn2": "Nn2", "List": "List"}
    assert [m.source.name for m in modules] == ["util.dp", "lib/model.dp", "nn2.dp", "main.dp"]


def test_names_are_kept_apart(write):
    for folder in ("a", "b"):
        write(f"{folder}/list.dp", "let x = 1")
    write("main.dp", 'import "a/list.dp" as A import "b/list.dp" as B')
    assert load("main.dp")[-1].imports == {"A": "List#2", "B": "List#3"}


def test_a_text_without_a_file():
    (module,) = load(Source("<stdin>", "do print 1"))
    assert module.name == "main" and not module.is_std


def test_empty_and_strange_texts(write):
    assert load(write("empty.dp"))[0].tree.decls == ()
    assert len(load(write("bom.dp", b"\xef\xbb\xbfdo print 1\r\n"))[0].tree.decls) == 1


def test_failures(write, tmp_path):
    write("model.dp", "let a = 1")
    fails(tmp_path / "modle.dp", "E0510", "did you mean")
    fails(tmp_path / "hello.dp", "E0510", "model.dp")
    fails(tmp_path / "nowhere" / "hello.dp", "E0510", "nowhere either")
    (tmp_path / "empty").mkdir()
    fails(tmp_path / "empty" / "hello.dp", "E0510", "no program (.dp)")
    fails(tmp_path, "E0511", "directory")
    fails(write("zero.dp", b"\0\1"), "E0512", "UTF-8")
    fails(write("latin.dp", b"-- ok\n-- \xe9t\xe9\n"), "E0512", "0xe9 on line 2")
    fails(write("a.dp", "import Modle"), "E0515", "did you mean Model?")
    fails(write("b.dp", 'import "nowhere.dp" as N'), "E0510", "nowhere.dp")
    fails(write("c.dp", "import Lits"), "E0515", "List")
    assert fails(write("d.dp", "import E"), "E0515", "no module E").span.line == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(write):
    path = write("secret.dp", "let a = 1")
    path.chmod(0)
    fails(path, "E0513", "permission denied")


def test_circles(write):
    write("a.dp", "import B")
    write("b.dp", "import C")
    write("c.dp", "let x = 1\nimport A")
    found = fails("a.dp", "E0514", "a.dp -> b.dp -> c.dp -> a.dp")
    assert found.span.source.name == "c.dp" and found.span.line == 2
    fails(write("self.dp", "import Self"), "E0514", "imports itself")


def test_all_syntax_errors_of_all_modules(write):
    write("a.dp", "let x = ")
    write("b.dp", "let = 1")
    write("main.dp", "import A import B")
    with pytest.raises(DplError) as caught:
        load("main.dp")
    assert [d.span.source.name for d in caught.value.diagnostics] == ["a.dp", "b.dp"]


def test_the_standard_library_can_be_read():
    assert {"Prelude", "List", "Ad"} <= set(standard_modules())
    for name in standard_modules():
        module = load_standard(name)
        assert module.is_std and module.name == name and module.tree.decls
