"""flat -> PTX: the kernels of a program as text, and which Pars they are of.

// par_8fe23ce435a9acbc  sums    main.dp:12: main: par i.2 < n.1 to fold 0, keep
// on the host                   main.dp:17: main: par i.9 < 64 to keep: it gives values of type tree
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dpl.regex import regex

from dplc.flat import term as f
from dplc.flat.show import rhs_head
from dplc.machine.cuda.kernels import Kernels, outermost, place
from dplc.machine.cuda.ptx import PORTABLE, ptx

COMMENTS = regex(r"^\s*// .*demoted.*\n", re.MULTILINE)  # LLVM tells what it does with shared memory


def emit_ptx(program: f.Program, sm: int = PORTABLE) -> str:
    """The PTX of all kernels of a program, after a list of its outermost Pars."""
    kernels = Kernels(program)
    told = "\n".join(dict.fromkeys(lines(kernels, program)))
    made = COMMENTS.sub("", ptx(kernels.text(sm), sm)).replace("\n\n\t", "\n\t") if kernels.kernels else ""
    return f"{told}\n\n{made[made.find('.version') :]}" if made else f"{told}\n"


def lines(kernels: Kernels, program: f.Program) -> Iterator[str]:
    """A line for each outermost Par: its kernel, or why it has none."""
    for fn, par in outermost(program):
        made = kernels.made(par, fn)
        what = f"{place(par)}{fn.name}: {rhs_head(par)}"
        if isinstance(made, str):
            yield f"// on the host                 {what}: {made}"
        else:
            needs = "".join([", fails"] * made.fails + [", has an arena"] * made.arena)
            yield f"// {made.name}  {made.geometry:6}  {what}{needs}"
