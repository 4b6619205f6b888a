"""The manual pages, from what the command says of itself:  python -m dplc.manual.make  writes man1/*.1.

A page for `dpl`, and one for each verb, with click-man (extra `dev`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click
from click_man.man import ManPage

from dplc import VERSION
from dplc.commands import cli

PAGES = Path(__file__).resolve().parent / "man1"
YEAR = "2026"  # of the version
CONTROL = re.compile(r"(?m)^(?=[.'])")  # what roff would take for a command of its own
MORE = r"""
.SH EXIT STATUS
0: fine; 1: the program failed; 2: wrong usage; 70: a bug in DPL itself; 130: interrupted.
.SH ENVIRONMENT
.TP
\fBDPL_CACHE\fP
The folder of compiled programs.
.TP
\fBDPL_VERBOSE\fP
If set, failures are told with the calls inside of the library, as by -v.
.TP
\fBDPL_STACK\fP
The mebibytes of stack that a program may use, also an executable.
.TP
\fBDPL_LAPACK\fP
\fBoff\fP does without NumPy's LAPACK.
.TP
\fBNO_COLOR\fP, \fBFORCE_COLOR\fP
No colours in messages; colours even where the output is no terminal.
.SH EXAMPLES
.EX
dpl run model.dp
dpl run -e 'grad sin 0.0'
dpl build model.dp -o model
dpl repl
.EE
"""


def pages() -> dict[str, str]:
    """Texts by the names of their files."""
    top = click.Context(cli, info_name="dpl")
    found = {f"{name.replace(' ', '-')}.1": str(page) for name, page in described(top)}
    found["dpl.1"] += MORE.lstrip("\n")
    return found


def described(context: click.Context) -> Iterator[tuple[str, ManPage]]:
    """Of a command, and of those below it."""
    command = context.command
    below = command.commands if isinstance(command, click.Group) else {}
    page = ManPage(context.command_path)
    page.date, page.version = YEAR, VERSION
    text = CONTROL.sub(r"\\&", cleandoc(command.help or ""))
    page.short_help = sentence(text)
    page.synopsis = " ".join(command.collect_usage_pieces(context))
    page.description = text
    records = [p.get_help_record(context) for p in command.params if isinstance(p, click.Option) and not p.hidden]
    page.options = [record for record in records if record]
    page.commands = [(name, sentence(cleandoc(verb.help or ""))) for name, verb in sorted(below.items())]
    yield context.command_path, page
    for name, verb in below.items():
        if not verb.hidden:
            yield from described(click.Context(verb, info_name=name, parent=context))


def sentence(text: str) -> str:
    """The first one, in one line, without its full stop."""
    return " ".join(re.split(r"\.(?:\s|$)", text, maxsplit=1)[0].split())


if __name__ == "__main__":
    PAGES.mkdir(exist_ok=True)
    for old in PAGES.glob("*.1"):
        old.unlink()
    for name, text in pages().items():
        (PAGES / name).write_text(text, encoding="utf-8")
        print(PAGES / name)
