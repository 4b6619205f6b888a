"""Terms that are built only once the types of their definition are known.  Until then they stand among core terms."""

from __future__ import annotations

from collections.abc import Callable

from dpl.core import term
from dpl.node import node


@node
class Deferred(term.Hole):
    """A term to be built by `build`; `inside` are the terms that it will contain."""

    build: Callable  # (zonk) -> term
    inside: tuple = ()
