"""Facts that inference records for editors, if the context has been given notes.

let f x = x + 1.0   ->   `x` (a local name): float;  `x`, `1.0`, `x + 1.0` (expressions): float;  asked for: values `+`
"""

from __future__ import annotations

from typing import Any

from dpl.node import field, record
from dpl.source import Span
from dpl.types.solve.meta import Type
from dpl.types.solve.scheme import Scheme


@record
class Notes:
    """Types of expressions and of local names (each with its binding place), and the meanings of names from outside.

    Later equations may still complete the types."""

    expressions: list[tuple[Span, Type]] = field(default_factory=list)
    locals: list[tuple[str, Span, Scheme]] = field(default_factory=list)
    asked: dict[tuple[str, str], Any] = field(default_factory=dict)
