"""Terms that can be built only when their definition's types are known; they stand among core terms until then."""

from __future__ import annotations

from collections.abc import Callable

from dpl.core import term
from dpl.node import node


@node
class Deferred(term.Hole):
    """`inside` are the terms that it will hold."""

    build: Callable  # (zonk) -> term
    inside: tuple = ()
