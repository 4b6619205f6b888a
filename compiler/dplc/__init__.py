"""The compiler: how a program runs fast.  It runs on an operating system, which the language then uses too."""

from dpl import host
from dpl.system import System

VERSION = "0.1.0"

host.use(System())
