"""Helps for an axis, which NumPy's functions take as an argument: `sum x 1`, `sum(x, axis=1)`, `x.sum(axis=1)`."""

from __future__ import annotations

import re

from dpl.regex import regex

NAMED = regex(r"\s*\(?\s*axis\s*=\s*(-?\d+)")
OF_TWO = {"max": "maximum", "min": "minimum"}  # of two numbers, and of an array
MOST = 4  # dimensions: a greater number is meant otherwise


def along(name: str, array: str, axis: int) -> str:
    """A help for a function of the outermost axis that is to go along another axis."""
    name = OF_TWO.get(name, name)
    if not 0 <= axis < MOST:
        return (
            f"the first axis:  {name} {array} ; the second:  map {name} {array} ; the third:  map (map {name}) {array}"
        )
    for k in range(axis):
        name = f"map ({name})" if k else f"map {name}"
    return f"along axis {axis}:  {name} {array}"


def named_axis(text: str) -> int | None:
    """The axis that a text begins with: `axis=1` or `(axis=1)`."""
    found = NAMED.match(text)
    return int(found[1]) if found else None


def of_named_axis(before: str, after: str) -> str:
    """A help at the name `axis` in `sum(x, axis=1)` or `sum x axis=1`, from the texts around; or nothing."""
    call = re.search(r"([\w.]+)\s*\(([^()]+),\s*$", before) or re.search(r"([\w.]+) (\w+|\([^()]+\)) \(?$", before)
    axis = named_axis(after)
    if call and call[1] == "print":  # `print (sum xs, axis=0)`
        call = re.fullmatch(r"([\w.]+) (.+)", call[2])
    return along(call[1], call[2].strip(), axis) if call and axis is not None else ""


def of_method(name: str, owner: str, after: str) -> str:
    """A help for `x.sum(axis=1)`, from what stands after the name; or nothing."""
    axis = named_axis(after)
    return "" if axis is None else along(name, owner, axis)
