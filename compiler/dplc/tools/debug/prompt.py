"""Commands from a terminal, with history and completion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory

from dplc.tools.debug.console import Console
from dplc.tools.repl.terminal import prompted

GREETING = "`help` lists the commands; Ctrl-D leaves."


def commands(console: Console) -> Iterator[str]:
    """Lines from the terminal.  Ctrl-C discards the current one, Ctrl-D ends."""
    console.say(GREETING)
    return prompted("(dpl) ", Words(console), history=InMemoryHistory())


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
