"""Numbers as the runtime library writes them, against Python."""

from __future__ import annotations

import math
import struct
from random import Random

import pytest
from dpl.core import formats
from dpl.eval.values.show import scalar_text
from library import Shown, forwarding, function

NUMBERS = {"f64": "double", "f32": "float", "i64": "i64", "u64": "i64", "i8": "i8", "u8": "i8"}
PIECES = ("ptr", "ptr", "i64")  # of a format


@pytest.fixture(scope="module")
def shown() -> Shown:
    text, types = "", {}
    for ty, llvm in NUMBERS.items():
        for name, params in (("num", (llvm,)), ("format", (*PIECES, llvm, "i1"))):
            text += forwarding(f"{name}_{ty}", f"rt.buf_{name}.{ty}", "void", params)
            types[f"{name}_{ty}"] = ("void", params)
    params = (*PIECES, "ptr", "ptr", "i64", "i1")
    text += forwarding("format_str", "rt.buf_format.str", "void", params)
    text += forwarding("quoted", "rt.buf_quoted", "void", ("ptr", "ptr", "i64"))
    half = ["%h = bitcast i16 %a0 to half", "call void @rt.buf_num.f16(half %h)"]
    text += function("half", "void", ("i16",), half)
    types["half"] = ("void", ("i16",))
    return Shown(text, types | {"format_str": ("void", params), "quoted": ("void", ("ptr", "ptr", "i64"))})


def floats(seed: int, count: int) -> list[float]:
    dice = Random(seed)
    special = [0.0, -0.0, 1.0, 0.1, 1e15, 1e16, 1e22, 1e23, 5e-324, 2.0**-44, 9007199254740993.0, 123456789012345678.0,
               1e-4, 1e-5, math.inf, -math.inf, math.nan, 1.7976931348623157e308, 2.2250738585072014e-308]  # fmt: skip
    powers = [2.0**k for k in range(-1074, 1024, 7)]
    bits = [struct.unpack("d", dice.randbytes(8))[0] for _ in range(count)]
    return special + powers + bits + [round(dice.uniform(-1e3, 1e3), dice.randint(0, 9)) for _ in range(count)]


def test_floats_look_like_repr(shown: Shown) -> None:
    for x in floats(1, 3000):
        assert shown.text("num_f64", x) == repr(x)


def test_narrow_floats_have_as_few_digits_as_they_need(shown: Shown) -> None:
    dice = Random(2)
    for _ in range(2000):
        x = struct.unpack("f", dice.randbytes(4))[0]
        assert shown.text("num_f32", x) == scalar_text(x, "f32")
        pattern = dice.randrange(1 << 16)
        y = struct.unpack("e", struct.pack("H", pattern))[0]
        assert shown.text("half", pattern) == scalar_text(y, "f16")


@pytest.mark.parametrize("ty", ("i64", "u64", "i8", "u8"))
def test_integers(shown: Shown, ty: str) -> None:
    bits = int(ty[1:])
    for n in (0, 1, 9, 10, 127, (1 << bits - 1) - 1, -(1 << bits - 1), -1):
        expected = n if ty[0] == "i" else n % (1 << bits)
        assert shown.text(f"num_{ty}", n) == str(expected)


def test_quoted_strings(shown: Shown) -> None:
    data = 'a"b\\c\nd\te€'.encode()
    assert shown.text("quoted", None, data, len(data)) == '"a\\"b\\\\c\\nd\\te€"'


def spec(dice: Random, letters: str) -> str:
    fill = dice.choice(["", "", "", "<", ">", "^", "=", "*>", "é^", "0<", "==", "->"])
    sign = dice.choice(["", "", "", "+", "-", " "])
    prefix = dice.choice(["", "", "", "#"])
    zero = dice.choice(["", "", "0"])
    width = dice.choice(["", "", "5", "12", "23"])
    precision = dice.choice(["", "", ".0", ".1", ".3", ".10"])
    grouping = dice.choice(["", "", ",", "_"])
    return fill + sign + prefix + zero + width + grouping + precision + dice.choice(["", *letters])


def python(value, spec: str, kind: str) -> str | None:
    """What Python writes; nothing where it is an error, which it then must be for us too."""
    kinds = frozenset({kind}) - {""}
    try:
        suited = formats.suits(formats.read(spec), kinds, bool(kinds))
    except formats.Unreadable:
        suited = False
    try:
        expected = format(value, spec)
    except ValueError:
        expected = None
    assert suited == (expected is not None) or "#" in spec, (value, spec)
    return expected if suited else None


def test_formats_of_floats_are_those_of_python(shown: Shown) -> None:
    dice = Random(3)
    values = [x for x in floats(4, 200) if abs(x) < 1e60 or x != x or math.isinf(x)]
    for _ in range(4000):
        form, x = spec(dice, "efgEFG%dxs"), dice.choice(values)
        if (expected := python(x, form, "float")) is not None:
            code = form.encode()
            assert shown.text("format_f64", None, code, len(code), x, False) == expected, (form, x)


def test_formats_of_integers_are_those_of_python(shown: Shown) -> None:
    dice = Random(5)
    for _ in range(2000):
        form = spec(dice, "dboxXboxXefgEG%s")
        n = dice.randrange(-(1 << 63), 1 << 63) >> dice.randrange(64)
        if (expected := python(n, form, "int")) is not None:
            code = form.encode()
            assert shown.text("format_i64", None, code, len(code), n, False) == expected, (form, n)


def test_formats_of_strings_are_those_of_python(shown: Shown) -> None:
    dice = Random(6)
    for _ in range(1000):
        form, word = spec(dice, "sdf"), dice.choice(["", "abc", "größer", "日本語 €"])
        if (expected := python(word, form, "")) is None:
            continue
        code, data = form.encode(), word.encode()
        assert shown.text("format_str", None, code, len(code), None, data, len(data), False) == expected, (form, word)


def test_negative_arguments_stand_in_parentheses(shown: Shown) -> None:
    for x, form, expected in ((-1.5, b".1f", "(-1.5)"), (-1.5, b"8.1f", "    -1.5"), (2.0, b"->6.1f", "(---2.0)")):
        assert shown.text("format_f64", None, form, len(form), x, True) == expected
