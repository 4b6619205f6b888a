"""The DPL compiler.  It needs an operating system, and importing it makes that the host of the language."""

from dpl import host
from dpl.system import System

VERSION = "0.1.0"

host.use(System())
