"""Does a program take derivatives?  Most stages of differentiation are not even imported if it does not."""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.walk import every


def takes_derivatives(program: f.Program) -> bool:
    """True if a function has a site of differentiation."""
    return any(isinstance(bind.rhs, f.Ad) for fn in program.fns.values() for bind in every(fn.body))


def without_rules(program: f.Program) -> f.Program:
    """The program without what only differentiation asks for."""
    return f.Program(program.fns, program.datas, main=program.main, exports=program.exports)
