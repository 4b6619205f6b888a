"""Primitives that a program may do twice, when it begins again in another engine (`eval/speculation.py`)."""

from dpl.prims import TABLE

PRINTS = frozenset(("print", "print_string"))
READS = frozenset(("read_text", "read_bytes"))  # of files; not of pipes and terminals
ARGUMENTS = frozenset(("arg", "arg_count"))
SAME = ARGUMENTS | {"env", "exit"}  # the world outside is the same the second time
CHANGES = frozenset(row.name for row in TABLE.values() if row.outside and row.name not in PRINTS | READS | SAME)
REFUSED = CHANGES | frozenset(row.name for row in TABLE.values() if row.own_digits)
