"""Run-time errors: where they happened, and the calls that led there.

Primitives raise DplErrors without a place; the code around them adds the span (`located`), calls that are waited for
add themselves to the path (`in_path`), and at the end the error is moved out of the standard library to the call in the
user's own text (`for_user`).  What the library calls, and that it was called, is its own business: with `dpl -v`, which
sets DPL_VERBOSE, it is told all the same.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection

from dpl.diagnostics import Call, DplError, Label
from dpl.eval.values.indexing import OutOfBounds
from dpl.node import node, replace
from dpl.source import Source, Span
from dpl.syntax.load import standard_modules

DERIVATIVES = re.compile(
    "(grad|value_and_grad|diff|jvp|vjp|diff2|diffn|gradv|hessianv?|hvp|gradhessianv?|laplacian|jacobian|jacobianT?v|"
    "jacobianT|curl|div|curldiv|jet|check_grad)'?"
)
SHOWN = 6  # calls of a long path, at each end
OPERAND = re.compile(r"[\w.']+\s+([^\W\d][\w.']*)")


@node
class Site:
    """A call: what was called (`List.map`, `reverse of loss`), and where that is written."""

    name: str
    span: Span

    @property
    def last(self) -> str:
        """Its name without the module."""
        words, space, name = self.name.rpartition(" ")
        return words + space + name.rpartition(".")[2]


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
    placed = error.placed(span) if isinstance(error, OutOfBounds) else DplError(replace(first, span=span), *rest)
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
            labels = (Label(first.span, "raised here"), *first.labels) if tells_all() else ()
            first = replace(first, span=sites[ours[-1]].span, note="", labels=labels)
    return DplError(replace(first, path=path(sites, own)), *rest)


def tells_all() -> bool:
    return bool(os.environ.get("DPL_VERBOSE"))


def path(sites: list[Site], own: Collection[Source]) -> tuple[Call, ...]:
    """One step for each call of the user's functions that the user has written.  Of a long path, both ends."""
    written = [s for s in sites if tells_all() or (s.span.source in own and (not is_of_library(s) or is_derivative(s)))]
    left_out = max(len(written) - 2 * SHOWN, 0)
    calls = [step(site) for site in (*written[:SHOWN], *written[SHOWN + left_out :])]
    if left_out:
        calls.insert(SHOWN, Call(f"... {left_out} more"))
    return tuple(calls)


def step(site: Site) -> Call:
    return Call(site.last, site.span, differentiated(site))


def is_of_library(site: Site) -> bool:
    return site.name.rpartition(" ")[2].rpartition(".")[0] in standard_modules()


def is_derivative(site: Site) -> bool:
    """These say what was being differentiated."""
    return DERIVATIVES.fullmatch(site.last) is not None


def differentiated(site: Site) -> str:
    """What a derivative is taken of, in the words of its call: ``while differentiating `loss` ``."""
    if not is_derivative(site):
        return ""
    found = OPERAND.match(site.span.source.text[site.span.start : site.span.end].lstrip("( "))
    return f"while differentiating `{found[1]}`" if found else "while differentiating a function"
