"""Compiled -> a program that can be loaded: the object code is linked with the runtime library."""

from __future__ import annotations

from dplc.machine.object.compiled import Compiled
from dplc.machine.object.link import link
from dplc.machine.run.execute import ENTRY, FLUSH, LAPACK
from dplc.machine.run.program import Program
from dplc.machine.runtime import shared


def linked(compiled: Compiled) -> Program:
    image = link([compiled.code, shared.code()], (ENTRY, FLUSH, LAPACK))
    return Program(image, compiled.code, compiled.sites, compiled.warnings)
