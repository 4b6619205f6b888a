"""Regular expressions that are compiled at their first use.

Most of them serve messages, or programs that are written in an unusual way.  To compile all of them, whenever the
compiler starts, takes a thirtieth of a short run.
"""

from __future__ import annotations

import re
from typing import Any, cast


class Pattern:
    """Like `re.Pattern`, of which each attribute is looked up once."""

    def __init__(self, text: str, flags: re.RegexFlag) -> None:
        self.text = text
        self.chosen = flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self.text, self.chosen), name)  # `re` keeps what it has compiled
        setattr(self, name, found)
        return found


def regex(text: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """A regular expression that is compiled when one of its methods is used first."""
    return cast("re.Pattern[str]", Pattern(text, flags))
