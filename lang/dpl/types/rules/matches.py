"""Messages about the cases of a `match`: a missing case, and cases that are never reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dpl.core import ty
from dpl.core.term import Arm, Data, Match, PArray, Pattern, POr, PVar, PWild
from dpl.diagnostics import Diagnostic, Label, Warnings
from dpl.node import replace
from dpl.source import Span
from dpl.types.rules.exhaustive import check


def judge(
    datas: Mapping[str, Data], span: Span, scrutinee: ty.Ty, arms: Sequence[Arm], warnings: Warnings
) -> Iterator[Diagnostic]:
    """Yields the errors of a match; its warnings go to `warnings`."""
    rows = [(i, replace(arm, pattern=p)) for i, arm in enumerate(arms) for p in alternatives(arm.pattern)]
    missing, unreached = check(datas, scrutinee, [arm for _, arm in rows])
    if missing is not None:
        yield left_out(span, arms, missing)
    lost = {i: [k for k in unreached if rows[k][0] == i] for i in range(len(arms))}
    for i, arm in enumerate(arms):
        many = sum(owner == i for owner, _ in rows)
        if len(lost[i]) == many:
            warnings.add(never_reached(datas, scrutinee, arms, i))
        elif lost[i]:
            title = "an alternative of this pattern is never reached"
            number = lost[i][0] - min(k for k, (owner, _) in enumerate(rows) if owner == i) + 1
            warnings.add(Diagnostic("W0201", title, arm.span, note=f"what comes before covers number {number}"))


def alternatives(p: Pattern) -> list[Pattern]:
    """The alternatives of `p | q | r`."""
    return [*alternatives(p.left), *alternatives(p.right)] if isinstance(p, POr) else [p]


def left_out(span: Span, arms: Sequence[Arm], missing: str) -> Diagnostic:
    if len(arms) == 1 and not span.source.text.startswith("match", span.start):
        title, where = f"this pattern can fail: {missing}", arms[0].span
        help_ = f"take it apart by cases:  match ... with ... | {missing} -> ..."
        if isinstance(arms[0].pattern, PArray) and missing == "[]":
            help_ = f"say what size it has:  (... :> _[{len(arms[0].pattern.items)}])"
    else:
        title, where = f"this `match` leaves out a case: {missing}", span
        help_ = f"add a case:  | {missing} -> ..."
    helps = [help_]
    if any(arm.guard is not None for arm in arms):
        helps.append("a guard may be false, so its case covers nothing for certain")
    if isinstance(arms[-1].body, Match) and arms[-1].body.span.text.startswith("match"):
        helps.append("a `match` inside of a case takes all cases that follow: put it in parentheses")
    return Diagnostic("E0205", title, where, helps=tuple(helps))


def never_reached(datas: Mapping[str, Data], scrutinee: ty.Ty, arms: Sequence[Arm], i: int) -> Diagnostic:
    """The warning for a case that is never reached.

    It names the earlier case that matches everything, if there is one; its variable may be a misspelt constructor."""
    title, where = "this case is never reached", arms[i].span
    for arm in arms[:i]:
        match arm:
            case Arm(span, PVar(_, core), None):
                name = core.partition(".")[0]
                meant = [c for c in constructors(datas, scrutinee) if c.lower() == name.lower()]
                labels = (Label(span, f"`{name}` is a variable and matches everything"),)
                helps = (f"did you mean the constructor  {meant[0]} ?",) if meant else ()
                return Diagnostic("W0201", title, where, labels=labels, helps=helps)
            case Arm(span, PWild(), None):
                return Diagnostic("W0201", title, where, labels=(Label(span, "`_` matches everything"),))
            case _:
                pass
    return Diagnostic("W0201", title, where, note="the cases above cover it")


def constructors(datas: Mapping[str, Data], t: ty.Ty) -> list[str]:
    data = datas.get(t.name) if isinstance(t, ty.Con) else None
    return [] if data is None else [name.rpartition(".")[2] for name, _ in data.cases]
