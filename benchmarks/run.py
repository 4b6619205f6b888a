"""Times programs in DPL beside the same algorithms in C, with hand-derived gradients: the same inputs, in one run.

    python benchmarks/run.py NAME ... [--size N] [--mode MODE] [--rounds N] [--json FILE]
    python benchmarks/run.py --all | --quick --all | --profile NAME
    python benchmarks/run.py char_rnn [TEXT-FILE] [ITERATIONS] [--repeat N]

The character network runs beside NumPy, too.
"""

from __future__ import annotations

import sys

import char_rnn
import table
from rows import ROWS


def main() -> None:
    match sys.argv[1:]:
        case ["char_rnn", *arguments]:
            char_rnn.main(arguments)
        case [name, *_] as arguments if name in ROWS or name.startswith("--"):
            table.main(arguments)
        case _:
            sys.exit(f"{__doc__}\nNAME is one of: char_rnn {' '.join(ROWS)}")


if __name__ == "__main__":
    main()
