"""Inputs from a terminal: history, colours, completion, and inputs of several lines."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from dpl.highlight import DplLexer
from dpl.system import kept
from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import style_from_pygments_dict
from pygments.token import Comment, Error, Keyword, Name, Number, String

from dplc.tools.repl.inputs import ready
from dplc.tools.repl.names import completions
from dplc.tools.repl.session import Session
from dplc.tools.repl.verbs import VERBS
from dplc.tools.report import wishes

GREETING = "DPL {version}.  `:help` tells what else can be typed here; Ctrl-D leaves."

# Names of the terminal's own colours, which are readable on its background.
COLOURS = style_from_pygments_dict({
    Comment: "ansibrightblack", Keyword: "ansiblue bold", Keyword.Type: "ansicyan", Keyword.Constant: "ansimagenta",
    Name.Builtin: "ansigreen", Name.Class: "ansicyan", Name.Function: "bold", Name.Namespace: "ansicyan",
    Number: "ansimagenta", String: "ansiyellow", Error: "ansired",
})  # fmt: skip


def lines(session: Session) -> Iterator[str]:
    """Complete inputs from the terminal.  Ctrl-C discards the current one, Ctrl-D ends."""
    from dplc import VERSION

    print(GREETING.format(version=VERSION))
    return prompted(
        "dpl> ",
        Names(session),
        prompt_continuation=lambda width, number, wrapped: "." * (width - 1) + " ",
        history=history(),
        auto_suggest=AutoSuggestFromHistory(),
        multiline=True,
        key_bindings=keys(),
    )


def prompted(text: str, completer: Completer, **options: Any) -> Iterator[str]:
    """What is typed after a prompt, in colours."""
    prompt: PromptSession[str] = PromptSession(
        text,
        completer=completer,
        lexer=PygmentsLexer(DplLexer),
        style=COLOURS,
        include_default_pygments_style=False,
        color_depth=ColorDepth.DEPTH_1_BIT if colorless() else None,
        **options,
    )
    while True:
        try:
            yield prompt.prompt()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def colorless() -> bool:
    return wishes.color == "never" or (wishes.color == "auto" and bool(os.environ.get("NO_COLOR")))


def history() -> History:
    """The history of all sessions, kept on disk if possible."""
    file = kept.place("history")
    try:
        if kept.usable(str(file.parent)):
            file.open("ab").close()
            return FileHistory(str(file))
    except OSError:
        pass
    return InMemoryHistory()


def keys() -> KeyBindings:
    """Key bindings: Enter ends a complete input and otherwise starts a new line; Alt-Enter always starts a new line."""
    found = KeyBindings()

    @found.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        at_end = not buffer.document.text_after_cursor.strip()
        if at_end and ready(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n" + " " * indentation(buffer.document))

    @found.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n" + " " * indentation(event.current_buffer.document))

    return found


def indentation(document: Document) -> int:
    """The indentation of a new line: that of the line above, and two more after an opening word."""
    line = document.current_line_before_cursor
    deeper = line.rstrip().endswith(("=", "->", "in", "then", "else", "do", "(", "[", "{", "with", "begin"))
    return len(line) - len(line.lstrip()) + 2 * (deeper and not line.rstrip().endswith(" in"))


class Names(Completer):
    """Completes names in scope with types, names of a module after `Module.`, fields after `value.`, verbs after
    `:`."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        if before.startswith(":") and " " not in before:
            for name, (_, verb) in VERBS.items():
                if name.startswith(before[1:]):
                    yield Completion(name, 1 - len(before), display_meta=verb.__doc__)
            return
        word = document.get_word_before_cursor(pattern=self.session.WORD)
        for name, meta in completions(self.session, word, before.removesuffix(word)):
            yield Completion(name, -len(word.rpartition(".")[2]), display_meta=meta)
