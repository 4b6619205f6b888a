"""Why a running program stopped, by number."""

from __future__ import annotations

from enum import IntEnum


class Failure(IntEnum):
    """Why a program stopped: the first field of the record `@rt.failure`, {i64 code, i64 site, i64 a, i64 b, ptr text,
    i64 bytes}, that `@rt.fail` fills in before it jumps back to the entry.  `site` numbers a span of the program.  A
    third number, c, is passed as -bytes where there is no text."""

    NONE = 0
    EXIT = 1  # a: the status
    MESSAGE = 2  # text: of `error` and the like; its code stands with the site
    INDEX = 3  # a: index, b: length
    SLICE = 4  # a: lo, b: hi, c: length
    NEGATIVE = 5  # a: the size asked for
    SHAPE = 6  # a, b: two lengths that should agree
    CHECK = 7  # a: actual, b: expected; what they are of stands with the site
    DIVIDE = 8  # of integers, by zero
    DEPTH = 9
    MEMORY = 10  # a: bytes asked for
    FILE = 11  # text: path and reason
    CODE_POINT = 12  # a: what is no code point
    FORM = 14  # a, b: lengths in two values that should have one form; which stands with the site
    TEXT = 15  # text: what is not UTF-8; a: where, in bytes
    ARGUMENT = 16  # a, b: numbers; what is wrong with something that C gave stands with the site
    NO_DEVICE = 17  # text: the driver's library; a: its error
    DEVICE = 18  # text: what the driver says; a: its error
    NO_DRIVER = 19  # text: the driver's library, which is not there, or lacks functions
    MPI = 20  # text: what is wrong
    NO_KERNELS = 21  # the executable has no code for the device that is asked for
