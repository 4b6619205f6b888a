"""Text in the columns of a terminal: tabs, wide characters and combining characters.

A tab goes to the next multiple of 4.  East Asian wide characters and emoji take two columns; combining marks, joiners
and variation selectors take none.  Characters joined to an emoji (a family, a flag, a skin colour) share its two.
"""

from __future__ import annotations

import unicodedata

_TAB = 4
_JOINER, _EMOJI_STYLE = "\u200d", "\ufe0f"


def pictures(text: str) -> tuple[list[str], list[int]]:
    """(the text shown for each character, the first column of each, and at the end the column after the last)."""
    shown: list[str] = []
    columns = [0]
    previous = ""
    for char in text:
        if char == "\t":
            shown.append(" " * (_TAB - columns[-1] % _TAB))
            width = len(shown[-1])
        else:
            printable = char.isprintable() or unicodedata.category(char) in ("Zs", "Cf")
            shown.append(char if printable else "\N{REPLACEMENT CHARACTER}")
            width = _width(char, previous)
        columns.append(columns[-1] + width)
        previous = _state(char, previous)
    return shown, columns


def width_of(text: str) -> int:
    """The number of columns that a text takes."""
    return pictures(text)[1][-1]


def _state(char: str, previous: str) -> str:
    """The state that decides the width of the next character.  After both halves of a flag, a new flag begins."""
    return "" if _is_flag(char) and _is_flag(previous) else char


def _is_flag(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _width(char: str, previous: str) -> int:
    if char.isascii():
        return 1
    if unicodedata.category(char) in ("Mn", "Me", "Cf") or previous == _JOINER:
        return 1 if char == _EMOJI_STYLE and previous and not _is_wide(previous) else 0
    if _is_flag(char):
        return 0 if _is_flag(previous) else 2
    if "\U0001f3fb" <= char <= "\U0001f3ff" and previous and _is_wide(previous):  # a skin colour
        return 0
    return 2 if _is_wide(char) else 1


def _is_wide(char: str) -> bool:
    return unicodedata.east_asian_width(char) in ("W", "F")
