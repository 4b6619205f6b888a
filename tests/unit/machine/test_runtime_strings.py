"""Strings in the runtime library, against Python."""

from __future__ import annotations

import ctypes
from random import Random

import pytest
from dpl.eval.values.strings import to_float, to_int
from library import Loaded, forwarding, function

STRING = ("ptr", "ptr", "i64")
RECORD = "{ ptr, ptr, i64 }"


def out(symbol: str, params: tuple[str, ...], record: str) -> tuple[str, tuple[str, tuple[str, ...]]]:
    """A function that writes the record its callee gives to where the last parameter points."""
    args = ", ".join(f"{p} %a{i}" for i, p in enumerate(params))
    body = [f"%v = call {record} @rt.{symbol}({args})", f"store {record} %v, ptr %a{len(params)}"]
    return function(symbol, "void", (*params, "ptr"), body), ("void", (*params, "ptr"))


@pytest.fixture(scope="module")
def strings() -> Loaded:
    made = {
        "str_append": out("str_append", STRING * 2, RECORD),
        "str_codes": out("str_codes", STRING, RECORD),
        "str_of_codes": out("str_of_codes", ("i64", *STRING), RECORD),
        "str_to_int": out("str_to_int", STRING, "{ i64, i1 }"),
        "str_to_float": out("str_to_float", STRING, "{ double, i1 }"),
        "str_length": (forwarding("str_length", "rt.str_length", "i64", STRING), ("i64", STRING)),
        "str_cmp": (forwarding("str_cmp", "rt.str_cmp", "i64", STRING * 2), ("i64", STRING * 2)),
        "wrong_byte": (forwarding("wrong_byte", "rt.wrong_byte", "i64", ("ptr", "i64")), ("i64", ("ptr", "i64"))),
    }
    return Loaded("".join(text for text, _ in made.values()), {name: types for name, (_, types) in made.items()})


class Answer(ctypes.Structure):
    _fields_ = (("owner", ctypes.c_void_p), ("data", ctypes.c_void_p), ("size", ctypes.c_int64))


def constant(text: str) -> tuple:
    data = text.encode()
    return None, data, len(data)


def content(answer: Answer) -> str:
    return ctypes.string_at(answer.data, answer.size).decode()


WORDS = ("", "a", "größer", "日本語", "🎉 party", "zebra", "\x7f\x80\u07ff\u0800\uffff\U00010000")


def test_appending_to_what_nobody_else_holds_is_done_in_place(strings: Loaded) -> None:
    answer, blocks, text = Answer(), set(), ""
    for i in range(300):
        word = WORDS[i % len(WORDS)]
        strings["str_append"](answer.owner, answer.data, answer.size, *constant(word), ctypes.addressof(answer))
        blocks.add(answer.owner)
        text += word
        assert content(answer) == text
    assert len(blocks) < 30


def test_appending_to_what_others_hold_leaves_it_alone(strings: Loaded) -> None:
    first, second = Answer(), Answer()
    strings["str_append"](*constant("abc"), *constant("def"), ctypes.addressof(first))
    ctypes.c_int64.from_address(first.owner).value = 2
    strings["str_append"](first.owner, first.data, first.size, *constant("!"), ctypes.addressof(second))
    assert (content(first), content(second)) == ("abcdef", "abcdef!")
    assert ctypes.c_int64.from_address(first.owner).value == 1


def test_code_points(strings: Loaded) -> None:
    for word in WORDS:
        codes, back = Answer(), Answer()
        assert strings["str_length"](*constant(word)) == len(word)
        strings["str_codes"](*constant(word), ctypes.addressof(codes))
        assert list((ctypes.c_int64 * codes.size).from_address(codes.data)) == [ord(c) for c in word]
        strings["str_of_codes"](0, codes.owner, codes.data, codes.size, ctypes.addressof(back))
        assert content(back) == word


def test_order_is_that_of_code_points(strings: Loaded) -> None:
    for a in WORDS:
        for b in WORDS:
            assert strings["str_cmp"](*constant(a), *constant(b)) == (a > b) - (a < b)


NUMERALS = (
    "0", "-12", "+7", " 42\n", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "-9223372036854775809", "1_000", "1__0", "_1", "1_", "", "-", "1.5", ".5", "5.", ".", "1e5", "1E+05", "1e", "e5",
    "inf", "-Infinity", "NaN", "infinit", "0x10", "1 2", "١", "123456789012345678901234567890",
    "1.7976931348623159e308", "5e-324",
)  # fmt: skip


def test_reading_numbers(strings: Loaded) -> None:
    dice = Random(1)
    words = [*NUMERALS, *("".join(dice.choice("01.e-+_ ") for _ in range(dice.randrange(6))) for _ in range(1000))]
    for word in words:
        integer, real = (ctypes.c_int64 * 2)(), (ctypes.c_double * 2)()
        strings["str_to_int"](*constant(word), ctypes.addressof(integer))
        assert (integer[0], bool(integer[1] & 1)) == to_int(word), word
        strings["str_to_float"](*constant(word), ctypes.addressof(real))
        found = bool(ctypes.c_int8.from_address(ctypes.addressof(real) + 8).value & 1)
        assert repr((real[0], found)) == repr(to_float(word)), word


def test_utf8_is_checked(strings: Loaded) -> None:
    dice = Random(2)
    samples = [dice.randbytes(dice.randrange(1, 5)) for _ in range(3000)]
    samples += ["".join(dice.choice("aé€🎉") for _ in range(4)).encode()[: dice.randrange(1, 12)] for _ in range(500)]
    samples += [b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\x80", b"\xe0\x80\x80", b"\xf0\x80\x80\x80"]
    for data in samples:
        try:
            data.decode()
            wrong = -1
        except UnicodeDecodeError as error:
            wrong = error.start
        assert strings["wrong_byte"](data, len(data)) == wrong, data


def test_no_string_is_read_beyond_its_end(strings: Loaded) -> None:
    """Strings are checked where they enter; should one be broken all the same, what follows it stays unseen."""
    dice = Random(3)
    for _ in range(500):
        data = bytes(dice.choice((0x41, 0x80, 0xBF, 0xC3, 0xE2, 0xF0, 0xFF)) for _ in range(dice.randrange(1, 9)))
        seen = set()
        for after in (b"\x80" * 4, b"\xbf" * 4):
            codes = Answer()
            strings["str_codes"](None, data + after, len(data), ctypes.addressof(codes))
            seen.add(tuple((ctypes.c_int64 * codes.size).from_address(codes.data)))
        assert len(seen) == 1, data
