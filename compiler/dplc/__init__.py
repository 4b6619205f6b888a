"""The DPL compiler.  It needs an operating system, and importing it makes that the host of the language."""

import dpl

VERSION = "0.1.0"

dpl.HOST = "dpl.system.system:System"
