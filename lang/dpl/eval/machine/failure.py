"""Run-time errors: where they happened, and the calls that led there.

Primitives raise DplErrors without a location.  The code around them adds the span (`located`), the machine adds the
waiting calls to the path (`in_path`), and at the end the error moves out of the standard library to the call in the
user's own text (`for_user`).  The path leaves out calls of the library and within it; `dpl -v`, which sets DPL_VERBOSE,
shows them too.
"""

from __future__ import annotations

from collections.abc import Collection

from dpl import host
from dpl.diagnostics import Call, DplError, Label, tighter
from dpl.eval.values.indexing import OutOfBounds
from dpl.node import node, replace
from dpl.regex import regex
from dpl.source import Source, Span
from dpl.syntax.load import standard_modules

DERIVATIVES = regex(
    "(grad|value_and_grad|diff|jvp|vjp|diff2|diffn|gradv|hessianv?|hvp|gradhessianv?|laplacian|jacobian|jacobianT?v|"
    "jacobianT|curl|div|curldiv|jet|check_grad)'?"
)
SHOWN = 6  # calls of a long path, at each end
OPERAND = regex(r"[\w.']+\s+([^\W\d][\w.']*)")


@node
class Site:
    """A call: the name of the function (`List.map`, `reverse of loss`), and the span of the call."""

    name: str
    span: Span

    @property
    def last(self) -> str:
        """The name without its module."""
        words, space, name = self.name.rpartition(" ")
        return words + space + name.rpartition(".")[2]


def shown_name(name: str) -> str:
    """A core name as the user wrote it, with its module."""
    name = name.partition("#")[0]
    base, dot, number = name.rpartition(".")
    return (base if dot and number.isdigit() else name) or "<fun>"


class RuntimeFailure(DplError):
    """A DplError being propagated, with the calls found so far, outermost first.  In the middle of a long path
    `unknown` more may be missing."""

    def __init__(self, error: DplError, sites: list[Site], unknown: int = 0) -> None:
        super().__init__(*error.diagnostics)
        self.sites = sites
        self.unknown = unknown


def located(error: DplError, span: Span) -> DplError:
    """The error with this span, unless it has one already."""
    first, *rest = error.diagnostics
    if first.span is not None:
        return error
    placed = error.placed(span) if isinstance(error, OutOfBounds) else DplError(replace(first, span=span), *rest)
    return RuntimeFailure(placed, error.sites) if isinstance(error, RuntimeFailure) else placed


def in_path(error: DplError, sites: list[Site]) -> DplError:
    """The error with these calls added outside its path."""
    inner = error.sites if isinstance(error, RuntimeFailure) else []
    return RuntimeFailure(error, sites + inner)


def for_user(error: DplError, own: Collection[Source], item: Span | None = None) -> DplError:
    """The error as the user should see it: with its call path, and located in one of the user's `own` sources.  The
    item that ran is the place if tail calls left no other."""
    sites, unknown = (error.sites, error.unknown) if isinstance(error, RuntimeFailure) else ([], 0)
    first, *rest = error.diagnostics
    if first.span is None and sites:
        first = replace(first, span=sites[-1].span)
    if first.code == "R0801" and sites:
        called = sites[-1].span
        first = replace(first, helps=tighter(called.source.text[called.start :]) or first.helps)
    if first.span is not None and first.span.source not in own:
        ours = [span for span in (item, *(site.span for site in sites)) if span is not None and span.source in own]
        if ours:
            labels = (Label(first.span, "raised here"), *first.labels) if tells_all() else ()
            first = replace(first, span=ours[-1], note="", labels=labels)
    return DplError(replace(first, path=path(sites, own, unknown)), *rest)


def tells_all() -> bool:
    return bool(host.current.environment("DPL_VERBOSE"))


def path(sites: list[Site], own: Collection[Source], unknown: int = 0) -> tuple[Call, ...]:
    """The calls to show: those in the user's sources, without calls of the library except its derivatives.  A long path
    shows only its two ends; in its middle `unknown` calls may be missing."""
    told = {id(s): is_told(s, own) for s in {id(s): s for s in sites}.values()}  # of millions of calls few differ
    written = [s for s in sites if told[id(s)]]
    left_out = max(len(written) - 2 * SHOWN, 0)
    calls = [step(site) for site in (*written[:SHOWN], *written[SHOWN + left_out :])]
    if left_out:
        about = f"about {left_out + unknown}" if unknown else left_out  # some of the unknown may be the library's
        calls.insert(SHOWN, Call(f"... {about} more"))
    return tuple(calls)


def is_told(site: Site, own: Collection[Source]) -> bool:
    return tells_all() or (site.span.source in own and (not is_of_library(site) or is_derivative(site)))


def step(site: Site) -> Call:
    return Call(site.last, site.span, differentiated(site))


def is_of_library(site: Site) -> bool:
    """True if the called function is in a module of the standard library."""
    return site.name.rpartition(" ")[2].rpartition(".")[0] in standard_modules()


def is_derivative(site: Site) -> bool:
    """True for calls of the library's derivatives: the path shows which function they differentiate."""
    return DERIVATIVES.fullmatch(site.last) is not None


def differentiated(site: Site) -> str:
    """A note with the function being differentiated, as the call names it: ``while differentiating `loss` ``."""
    if not is_derivative(site):
        return ""
    found = OPERAND.match(site.span.source.text[site.span.start : site.span.end].lstrip("( "))
    return f"while differentiating `{found[1]}`" if found else "while differentiating a function"
