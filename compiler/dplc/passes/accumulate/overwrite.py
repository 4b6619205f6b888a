"""An addition to an element that was set to zero -> an update of it, even with other additions in between:

    z = update c 0.0 i                      c' = update c w i
    y = acc_index z v n j          =>       y' = acc_index c' v n j
    y' = acc_index y w n i

Reverse mode changes the cotangent of an array in this way where it reverses an update: it takes out the part at `i`,
and later adds another.  If the element is itself an array, the rewrite saves an array of zeros.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from dpl.node import replace

from dplc.flat import term as f
from dplc.passes.simplify.fold import is_null, is_zero, solid


def written_over(binds: Sequence[f.Bind], uses: Counter[str]) -> tuple[f.Bind, ...]:
    """A chain of additions starts at an update that sets an element to zero and ends at the addition to that element.
    The whole chain moves to its end."""
    defs: dict[str, f.Rhs] = {}
    chains: dict[str, tuple[str, ...]] = {}  # the variables of each open chain, keyed by the last one
    written: dict[str, f.Bind] = {}
    for number, bind in enumerate(binds):
        name = bind.vars[0].name if len(bind.vars) == 1 else f"{number}"
        written[name], defs[name] = bind, bind.rhs
        match bind.rhs:
            case f.Op("update", (_, value, *_)) if _is_empty(value, defs):
                chains[name] = (name,)
            case f.Op("acc_index", (f.Var(before), *_)) as op if before in chains and uses[before] == 1:
                chain = (*chains.pop(before), name)
                if _closes(op, _emptied(defs[chain[0]]), defs):
                    links = [written.pop(link) for link in chain]
                    if isinstance(value := _emptied(links[0].rhs).args[1], f.Var) and uses[value.name] == 1:
                        del written[value.name]
                    written.update((link.vars[0].name, link) for link in _moved(links))
                else:
                    chains[name] = chain
            case _:
                pass
    return tuple(written.values())


def _is_empty(value: f.Atom, defs: Mapping[str, f.Rhs]) -> bool:
    """True if a value is zero, or an array of zeros."""
    made = defs.get(value.name) if isinstance(value, f.Var) else None
    return is_null(made.args[0]) if isinstance(made, f.Op) and made.op == "acc_zeros" else is_zero(value)


def _emptied(rhs: f.Rhs) -> f.Op:
    """The operation as an update, the start of a chain."""
    assert isinstance(rhs, f.Op) and rhs.op == "update"
    return rhs


def _closes(op: f.Op, start: f.Op, defs: Mapping[str, f.Rhs]) -> bool:
    """True if an addition adds a value that is not null to the element that the update set to zero."""
    term, at = op.args[1], op.args[2 + op.attr("rank") :]
    return at == start.args[2:] and (not isinstance(term.ty, f.Arr) or solid(term, defs))


def _moved(links: list[f.Bind]) -> Iterator[f.Bind]:
    """The update, now with the value that the last link adds; then the links between."""
    start, *between, last = links
    assert isinstance(last.rhs, f.Op)
    update = _emptied(start.rhs)
    array, _, *at = update.args
    names = [link.vars for link in links[:-2]] + [last.vars]
    yield f.Bind(names[0], replace(update, args=(array, last.rhs.args[1], *at)))
    yield from (replace(link, vars=given) for given, link in zip(names[1:], between, strict=True))
