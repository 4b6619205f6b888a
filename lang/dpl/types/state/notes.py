"""What inference finds out on its way through a text, for editors: it notes nothing unless a context is given notes.

let f x = x + 1.0   ->   `x` (a local name): float;  `x`, `1.0`, `x + 1.0` (expressions): float;  asked for: values `+`
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dpl.source import Span
from dpl.types.solve.meta import Type
from dpl.types.solve.scheme import Scheme


@dataclass(slots=True)
class Notes:
    """The types of expressions and of local names (each with what binds it), which later equations may still complete;
    and what each name from outside was found to stand for."""

    expressions: list[tuple[Span, Type]] = field(default_factory=list)
    locals: list[tuple[str, Span, Scheme]] = field(default_factory=list)
    asked: dict[tuple[str, str], Any] = field(default_factory=dict)
