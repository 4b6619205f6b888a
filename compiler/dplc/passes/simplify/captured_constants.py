"""flat -> flat where functions know the constants that they are given, before derivatives of them are taken.

    let n = 40                        fn f(n, h, x) { ... div 1.0 h ... }             fn f(x) { ... 40.0 ... }
    let h = 1.0 / float n             vjp f (40, 0.025, x0)                     =>    vjp f (x0)

`constant_copies` makes copies of functions to which callers give several, such as dilations; `constant_parameters` puts
them in, also where a derivative is taken, and the functions are folded.  Numbers of steps and lengths are then known
(`small_arrays`), and reverse mode need not keep what follows from them.
"""

from __future__ import annotations

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.walk import supply_for
from dplc.passes.simplify.constant_copies import constant_copies
from dplc.passes.simplify.constant_parameters import constant_parameters
from dplc.passes.simplify.simplify import simplified


def captured_constants(program: f.Program) -> f.Program:
    program = constant_copies(program)
    made = constant_parameters(program)
    supply = supply_for(made)
    fewer = [name for name, fn in made.fns.items() if len(fn.params) < len(program.fns[name].params)]
    return replace(made, fns=made.fns | {name: simplified(made.fns[name], supply, made) for name in fewer})
