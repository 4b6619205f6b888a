"""The words after FILE on the command line, which are the program's."""

from __future__ import annotations

import re
from collections.abc import Sequence

import click


def refuse_options(args: Sequence[str]) -> None:
    """Raises UsageError if an option is among the words after FILE, for a program that reads no arguments: the option
    was meant for the command, which gives all these words to the program."""
    for word in args:
        if re.match("--?[a-zA-Z]", word):
            raise click.UsageError(f"`{word}` stands after FILE, so it goes to the program, which reads no arguments; "
                                   "options of the command stand before FILE")  # fmt: skip
