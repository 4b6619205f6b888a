"""The grammars of editors: every keyword is in them, and they say of programs what DPL's own lexer says.

The grammar of VS Code is tested by vscode-tmgrammar-test, with assertions made from DPL's own tokens; that, and the
packaging, want  npm install  in editors/vscode, which  pytest -m slow tests/unit/editors  does in a folder of its own.
The syntax of Vim is asked of Vim, where there is one.
"""

import json
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT
from dpl.diagnostics import DplError
from dpl.source import Source
from dpl.syntax.lexer import Lexer, Token
from dpl.syntax.parse import parse, parse_expr
from dpl.syntax.tables import tables

VSCODE, VIM = ROOT / "editors" / "vscode", ROOT / "editors" / "vim"
WORDS = sorted(word for word in tables().words if re.fullmatch(r"\w+", word))
PROGRAMS = [
    *sorted((ROOT / "examples").glob("*.dp")),
    *sorted((ROOT / "stdlib").glob("*.dp")),
    Path(__file__).with_name("everything.dp"),
]
CONTROL = "begin do else end expect for if in loop match of reset shift then when while with"
SCOPES = {
    **dict.fromkeys(CONTROL.split(), "keyword.control.dpl"),
    **dict.fromkeys(("let", "and", "type", "fun"), "storage.type.dpl"),
    **dict.fromkeys(("rec", "export", "extern"), "storage.modifier.dpl"),
    **dict.fromkeys(("import", "open", "as"), "keyword.control.import.dpl"),
    **dict.fromkeys(("true", "false"), "constant.language.boolean.dpl"),
    "not": "keyword.operator.logical.dpl",
    "_": "variable.language.wildcard.dpl",
    "->": "keyword.operator.arrow.dpl",
    ",": "punctuation.separator.dpl",
    ";": "punctuation.separator.dpl",
}
NO_NAME = "- keyword.control.dpl storage.type.dpl comment.line.double-dash.dpl string.quoted.double.dpl"
NUMBERS = {"0x": "hex", "0b": "binary", "0o": "octal"}


def lexed(path: Path) -> Lexer:
    lexer = Lexer(Source(path.name, path.read_text(encoding="utf-8")), tables()).read()
    assert not lexer.problems
    return lexer


def patterns(grammar) -> list[str]:
    """All regular expressions of a grammar."""
    if isinstance(grammar, list):
        return [found for part in grammar for found in patterns(part)]
    if isinstance(grammar, dict):
        own = [grammar[key] for key in ("match", "begin", "end") if isinstance(grammar.get(key), str)]
        return own + [found for part in grammar.values() for found in patterns(part)]
    return []


def contributed(kind: str) -> list[dict]:
    return json.loads((VSCODE / "package.json").read_text(encoding="utf-8"))["contributes"][kind]


# ---- what needs nothing but the files -------------------------------------------------------------------------------


def test_every_keyword_is_in_the_grammar_of_vs_code() -> None:
    grammar = json.loads((VSCODE / "syntaxes" / "dpl.tmLanguage.json").read_text(encoding="utf-8"))
    words = {
        word
        for match in patterns(grammar["repository"]["words"])
        for word in re.findall(r"(?<=[:|])\w+(?=[|)])", match)
    }
    assert set(WORDS) <= words
    assert grammar["scopeName"] == "source.dpl"
    assert "_" in WORDS and "shift" in WORDS


def test_every_keyword_is_in_the_syntax_of_vim() -> None:
    lines = (VIM / "syntax" / "dpl.vim").read_text(encoding="utf-8").split("\n")
    words = {word for line in lines if line.startswith("syntax keyword") for word in line.split()[3:]}
    assert set(WORDS) <= words


def test_the_extension_names_files_that_are_there() -> None:
    package = json.loads((VSCODE / "package.json").read_text(encoding="utf-8"))
    named = [package["icon"], *(c["path"] for kind in ("grammars", "snippets") for c in contributed(kind))]
    named += [language["configuration"] for language in contributed("languages")]
    for name in named:
        assert (VSCODE / name).is_file(), name
        if name.endswith(".json"):
            json.loads((VSCODE / name).read_text(encoding="utf-8"))
    source = "".join(path.read_text(encoding="utf-8") for path in (VSCODE / "src").glob("*.ts"))
    assert all(f'"{command["command"]}"' in source for command in contributed("commands"))


SNIPPETS = json.loads((VSCODE / "snippets" / "dpl.json").read_text(encoding="utf-8"))


def expanded(body: str) -> str:
    """What a snippet leaves when its places are gone through without typing."""
    defaults: dict[str, str] = {}
    place = re.compile(r"\$\{(\d+):((?:[^{}$\\]|\$\d)*)\}")
    while found := place.search(body):
        number, text = found.groups()
        defaults[number] = re.sub(r"\$(\d)", lambda m: defaults[m.group(1)], text)
        body = body[: found.start()] + defaults[number] + body[found.end() :]
    body = re.sub(r"(?<!\\)\$(\d)", lambda m: defaults[m.group(1)], body)
    return body.replace("\\$", "$")


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippets_are_programs(name: str) -> None:
    text = expanded("\n".join(SNIPPETS[name]["body"]))
    assert "${" not in text
    try:
        parse(Source(name, text))
    except DplError:
        parse_expr(Source(name, text))


def test_indentation_and_words_of_the_language_configuration() -> None:
    configuration = json.loads((VSCODE / "language-configuration.json").read_text(encoding="utf-8"))
    more = re.compile(configuration["indentationRules"]["increaseIndentPattern"])
    less = re.compile(configuration["indentationRules"]["decreaseIndentPattern"])
    for line in ("let f x =", "  if a then", "  else", "  fun x ->", "let a = [", "  loop s = 1.0 for i < n do"):
        assert more.search(line), line
    for line in ("let f x = 1", "-- let f x =", "  f x in", "type t = A | B"):
        assert not more.search(line), line
    for line in ("  else", "  end", "  in", "  ]"):
        assert less.search(line), line
    for line in ("  inner x", "  ending", "let x = 1"):
        assert not less.search(line), line
    assert configuration["comments"] == {"lineComment": "--", "blockComment": ["(*", "*)"]}


# ---- what Vim says --------------------------------------------------------------------------------------------------


def families(token: Token) -> tuple[str, ...]:
    """The groups of Vim's syntax that a token may be of."""
    if token.value in WORDS and token.kind == tables().words[str(token.value)]:
        return ("dplDeclare", "dplConditional", "dplRepeat", "dplKeyword", "dplBoolean", "dplOperator", "dplWildcard")
    table = {"STRING": "dplString", "TYVAR": "dplTypeVar", "UPPER": "dplConstructor", "QLOWER": "dplModule"}
    table |= {"QUPPER": "dplModule", "INT": "dplNumber", "FLOAT": "dplFloat", "INTERP_OPEN": "dplString"}
    return (table[token.kind],) if token.kind in table else ()


@pytest.mark.skipif(not shutil.which("vim"), reason="there is no vim")
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_vim_says_what_the_language_says(path: Path, tmp_path: Path) -> None:
    lexer = lexed(path)
    asked = []
    for token in lexer.tokens:
        if wanted := families(token):
            line, column = lexer.source.position(token.start)
            before = lexer.source.line(line)[: column - 1]
            asked.append((token, wanted, line, len(before.encode()) + 1))
    script = tmp_path / "ask.vim"
    questions = "".join(f"call add(out, synIDattr(synID({line}, {column}, 1), 'name'))\n" for *_, line, column in asked)
    script.write_text(
        f"set nocompatible encoding=utf-8\nset runtimepath^={VIM}\nsyntax on\nedit {path}\nset syntax=dpl\n"
        f"syntax sync fromstart\nlet out = [&filetype]\n{questions}call writefile(out, '{tmp_path}/out')\nqall!\n"
    )
    subprocess.run(["vim", "-es", "-u", "NONE", "-S", script], timeout=60, check=False, stdin=subprocess.DEVNULL)
    filetype, *found = (tmp_path / "out").read_text().splitlines()
    wrong = [(str(t.value), line, name) for (t, wanted, line, _), name in zip(asked, found) if name not in wanted]
    assert (filetype, wrong) == ("dpl", [])
    assert len(found) == len(asked)


# ---- what VS Code's own engine says ---------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The extension's folder with what npm brings."""
    if not shutil.which("npm"):
        pytest.skip("there is no npm")
    if (VSCODE / "node_modules").is_dir():
        return VSCODE
    folder = tmp_path_factory.mktemp("extension") / "vscode"
    shutil.copytree(VSCODE, folder, ignore=shutil.ignore_patterns("node_modules", "dist", "*.vsix"))
    made = subprocess.run(["npm", "install", "--no-audit", "--no-fund"], cwd=folder, capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"npm install: {made.stderr[-300:]}")
    return folder


def scope(lexer: Lexer, number: int) -> str | None:
    """What the grammar should say of a token."""
    token = lexer.tokens[number]
    text = lexer.source.text[token.start : token.end]
    before = lexer.tokens[number - 1].kind if number else ""
    if isinstance(token.value, str) and token.kind == tables().words.get(token.value) and token.value in SCOPES:
        return SCOPES[token.value]
    match token.kind:
        case "STRING":
            return "string.quoted.double.dpl"
        case "INTERP" | "INTERP_OPEN":
            return "string.interpolated.dpl"
        case "TYVAR":
            return "entity.name.type.parameter.dpl"
        case "INT" | "FLOAT":
            kind = "float" if token.kind == "FLOAT" else NUMBERS.get(text[:2].lower(), "integer")
            return f"constant.numeric.{kind}.dpl"
        case "UPPER":
            named = before in ("IMPORT", "OPEN", "AS")
            return "entity.name.namespace.dpl" if named else "variable.other.enummember.dpl"
        case "QLOWER" | "QUPPER":
            return "entity.name.namespace.dpl"
        case "LOWER":
            return NO_NAME if text[0].isalpha() else None
        case "INFIX" | "PREFIX":
            return "keyword.operator.dpl"
        case _:
            return None


def assertions(lexer: Lexer) -> str:
    """A program with what should be said of its tokens under each of its lines."""
    notes: dict[int, list[str]] = {}
    for number, token in enumerate(lexer.tokens[:-1]):
        if wanted := scope(lexer, number):
            line, column = lexer.source.position(token.start)
            first = lexer.source.text[token.start : token.end].split("\n")[0]
            width = len(first.partition(".")[0]) if token.kind in ("QLOWER", "QUPPER") else len(first)
            width = 1 if token.kind.startswith(("STRING", "INTERP")) else width
            at = len(lexer.source.line(line)[: column - 1].encode("utf-16-le")) // 2
            under = "--" + " " * (at - 2) + "^" * width if at >= 2 else "--<" + "~" * at + "-" * width
            notes.setdefault(line, []).append(f"{under} {wanted}")
    for comment in lexer.comments:
        line, column = lexer.source.position(comment.span.start)
        if column > 2:
            kind = "block" if comment.text.startswith("(*") else "line.double-dash"
            kind = "line.documentation" if comment.text.startswith("-- |") else kind
            notes.setdefault(line, []).append(f"--{' ' * (column - 3)}^^ comment.{kind}.dpl")
    lines = ['-- SYNTAX TEST "source.dpl"']
    for number, line in enumerate(lexer.source.text.split("\n"), 1):
        lines += [line, *notes.get(number, ())]
    return "\n".join(lines) + "\n"


@pytest.mark.slow
def test_vs_code_says_what_the_language_says(extension: Path, tmp_path: Path) -> None:
    for path in PROGRAMS:
        (tmp_path / f"{path.parent.name}-{path.name}").write_text(assertions(lexed(path)), encoding="utf-8")
    grammar = "syntaxes/dpl.tmLanguage.json"
    command = ["npx", "vscode-tmgrammar-test", "--compact", "-g", grammar, f"{tmp_path}/*.dp"]
    run = subprocess.run(command, cwd=extension, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout[-5000:]
    assert run.stdout.count("✓") == len(PROGRAMS)
    wrong = (tmp_path / "line.dp").with_suffix(".wrong")
    wrong.write_text('-- SYNTAX TEST "source.dpl"\nlet x = 1\n--<--- comment.block.dpl\n')
    assert subprocess.run([*command[:-1], wrong], cwd=extension, capture_output=True, timeout=60).returncode != 0


@pytest.mark.slow
def test_the_extension_is_packaged_offline(extension: Path) -> None:
    check = subprocess.run(["npm", "run", "check"], cwd=extension, capture_output=True, text=True, timeout=300)
    assert check.returncode == 0, check.stdout
    made = subprocess.run(["npm", "run", "package"], cwd=extension, capture_output=True, text=True, timeout=300)
    assert made.returncode == 0, made.stdout + made.stderr
    with zipfile.ZipFile(extension / "dpl.vsix") as package:
        names = {name.removeprefix("extension/") for name in package.namelist()}
        bundle = package.read("extension/dist/extension.js").decode()
    assert {"package.json", "readme.md", "syntaxes/dpl.tmLanguage.json", "images/icon.png"} <= names
    assert not any(name.startswith(("node_modules", "src")) for name in names)
    assert "LanguageClient" in bundle and "vscode-languageclient/node" not in bundle
