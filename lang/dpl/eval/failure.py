"""Run-time errors: where they happened, and the calls that led there.

Primitives raise DplErrors without a place; the code around them adds the span (`located`), calls that are waited for
add themselves to the path (`in_path`), and at the end the error is moved out of the standard library to the call in the
user's own text (`for_user`).
"""

from __future__ import annotations

from collections.abc import Collection

from dpl.diagnostics import Call, DplError, Label
from dpl.node import node, replace
from dpl.source import Source, Span


@node
class Site:
    """A call: what was called, and where that is written."""

    name: str
    span: Span


class RuntimeFailure(DplError):
    """A DplError on its way out, with its calls so far, outermost first."""

    def __init__(self, error: DplError, sites: list[Site]) -> None:
        super().__init__(*error.diagnostics)
        self.sites = sites


def located(error: DplError, span: Span) -> DplError:
    """The error at a place, if it has none yet."""
    first, *rest = error.diagnostics
    if first.span is not None:
        return error
    placed = DplError(replace(first, span=span), *rest)
    return RuntimeFailure(placed, error.sites) if isinstance(error, RuntimeFailure) else placed


def in_path(error: DplError, sites: list[Site]) -> DplError:
    """The error, raised within these calls."""
    inner = error.sites if isinstance(error, RuntimeFailure) else []
    return RuntimeFailure(error, sites + inner)


def for_user(error: DplError, own: Collection[Source]) -> DplError:
    """The error as the user should see it: with its path, and pointing into one of the user's `own` sources."""
    sites = error.sites if isinstance(error, RuntimeFailure) else []
    first, *rest = error.diagnostics
    if first.span is None and sites:
        first = replace(first, span=sites[-1].span)
    if first.span is not None and first.span.source not in own:
        ours = [i for i, site in enumerate(sites) if site.span.source in own]
        if ours:
            last = ours[-1]
            first = replace(first, span=sites[last].span, labels=(Label(first.span, "raised here"), *first.labels))
            sites = sites[: last + 1]
    return DplError(replace(first, path=path(sites)), *rest)


def path(sites: list[Site]) -> tuple[Call, ...]:
    """One step per call."""
    return tuple(Call(site.name, site.span) for site in sites)
