"""Times a program in DPL beside the same algorithm in C, with hand-derived gradients: the same inputs, in one run.

    python benchmarks/run.py char_rnn [TEXT-FILE] [ITERATIONS] [--repeat N]
    python benchmarks/run.py NAME [SIZE] [--mode MODE] [--repeat N]

The character network runs beside NumPy, too; the other names are those of `benchmarks/control/`.
"""

from __future__ import annotations

import sys

import char_rnn
import control


def main() -> None:
    match sys.argv[1:]:
        case ["char_rnn", *arguments]:
            char_rnn.main(arguments)
        case [name, *arguments] if name in control.BENCHMARKS:
            control.main(name, arguments)
        case _:
            sys.exit(f"{__doc__}\nNAME is one of: char_rnn {' '.join(control.BENCHMARKS)}")


if __name__ == "__main__":
    main()
