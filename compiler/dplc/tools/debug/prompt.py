"""Commands from a terminal, with history and completion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dpl.highlight import DplLexer
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import ColorDepth

from dplc.tools.debug.console import Console
from dplc.tools.repl.terminal import COLOURS, colorless

GREETING = "`help` lists the commands; Ctrl-D leaves."


def commands(console: Console) -> Iterator[str]:
    """Lines from the terminal.  Ctrl-C discards the current one, Ctrl-D ends."""
    console.say(GREETING)
    prompt: PromptSession[str] = PromptSession(
        "(dpl) ",
        history=InMemoryHistory(),
        lexer=PygmentsLexer(DplLexer),
        style=COLOURS,
        include_default_pygments_style=False,
        completer=Words(console),
        color_depth=ColorDepth.DEPTH_1_BIT if colorless() else None,
    )
    while True:
        try:
            yield prompt.prompt()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


class Words(Completer):
    """Completes commands, then names in scope."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor.lstrip()
        word = document.get_word_before_cursor()
        if " " not in before:
            named = {name: (method.__doc__ or "") for name, method in self.console.commands().items()}
        else:
            named = {v.name: v.kind for v in self.console.debugger.scope()}
        for name, about in sorted(named.items()):
            if name.startswith(word):
                yield Completion(name, -len(word), display_meta=about)
