"""Rows for numbers: arithmetic, comparison, elementary functions, conversions.  All work elementwise on arrays."""

from __future__ import annotations

import math

from dpl.prims import meaning as on
from dpl.prims.elementary import late
from dpl.prims.table import Row, Val

# ---- rules ------------------------------------------------------------------------------------------------------


def _pass(t: Val, a, y) -> Val:
    return t


def fn(name: str):
    """A function that applies a primitive to Vals, for use in rules."""
    return lambda x, *others: x.call(name, *others)


exp, log, cos, sin, tanh, sqrt = fn("exp"), fn("log"), fn("cos"), fn("sin"), fn("tanh"), fn("sqrt")
sigmoid, hypot, squares, cosine, bell = fn("sigmoid"), fn("hypot"), fn("squares"), fn("cosine"), fn("bell")
turn, sech2, share, overlap = fn("turn"), fn("sech2"), fn("share"), fn("overlap")


def _power_slope(t: Val, a, y) -> Val:
    """For n >= 1/2, n - 1 is exact.  Below that, x ** (n - 1) is computed as y / x, except at the pole."""
    x, n = a
    lower = ((n >= 0.5).either(x.same(0.0))).call("select", x.call("pow", n - 1.0), y / x)
    return (t * n * lower).unless(n.same(0.0))


def _cbrt_slope(x: Val, y: Val) -> Val:
    """1 / (3 y^2), computed as y / x / 3 except at the pole, because squaring the rounded root loses digits."""
    return x.same(0.0).call("select", y.of(1.0) / (y * y), y / x) / 3.0


def _inverse(x: Val) -> Val:
    """1 / x.  The quotients of slopes are products with it, so one division serves all that divide by x."""
    return x.of(1.0) / x


def _divisor_slope(t: Val, a, y) -> Val:
    """-a / b^2, within 4 units.  Where 1 / b is infinite, b is so small that the slope is infinite, too, unless a
    is subnormal."""
    return -t * (a[0] * _inverse(a[1]) * _inverse(a[1]))


def _turn_slope(t: Val, a, y) -> Val:
    h = hypot(*a)
    return (t * ((a[1] - a[0]) / h) * ((a[1] + a[0]) / h) / h / h).unless(h.same(0.0))


def _less_of(x: Val) -> Val:
    """1 - x * x."""
    return squares(x.of(1.0), x)


LIFT = "'a -> 'b -> 'c where lift 'a 'b 'c, 'c : "
REAL1 = "'a -> 'a where 'a : real"
NUM1 = "'a -> 'a where 'a : num"
COMPARE = "'a -> 'a -> bool where 'a : data"


def arith(name, op, doc, eval_, linear, samples, llvm="", **more):
    return Row(name, LIFT + "num", doc, eval_, linear, llvm=llvm, op=op, public=False, samples=samples, **more)


def real(name, doc, eval_, rule, llvm, *samples, **more):
    points = tuple((s,) for s in samples or (0.3, 0.7))
    return Row(name, REAL1, doc, eval_, (rule,), llvm, samples=points, **more)


def own(name, doc, rule, *samples):
    """A row that `elementary` describes."""
    return real(name, doc, late(name), rule, "", *samples)


def own2(name, doc, rule1, rule2, *samples):
    return Row(name, LIFT + "real", doc, late(name), (rule1, rule2), samples=samples)


def slope(name, doc, *rules):
    return Row(name, REAL1 if len(rules) == 1 else LIFT + "real", doc, late(name), rules, public=False)


PAIRS = ((0.3, 0.7), (-1.5, 2.5), (2.0, -0.5))

ARITHMETIC = (
    arith("add", "+", "sum", lambda a, b: a + b, (_pass, _pass), PAIRS),
    arith("sub", "-", "difference", lambda a, b: a - b, (_pass, lambda t, a, y: -t), PAIRS),
    arith("mul", "*", "product", lambda a, b: a * b,
          (lambda t, a, y: t * a[1], lambda t, a, y: t * a[0]), PAIRS),
    arith("div", "/", "quotient; of integers, floored", on.div,
          (lambda t, a, y: t / a[1], _divisor_slope), PAIRS, pure=False,
          sharing=(lambda t, a, y: t * _inverse(a[1]), _divisor_slope)),
    arith("mod", "%", "remainder of the floored quotient", on.mod,
          (_pass, lambda t, a, y: -t * (a[0] / a[1] - y / a[1]).call("round")),
          ((5.3, 2.0), (-5.3, 2.0)), "rt.mod", pure=False),
    Row("neg", NUM1, "negation", lambda a: -a, (lambda t, a, y: -t,), public=False, samples=((0.3,), (-2.0,))),
    Row("pow", "'a -> 'b -> 'c where pow 'a 'b 'c", "power; for an exponent of integer type, engines take `powi`",
        late("pow"),
        (_power_slope,
         lambda t, a, y: (t * y * log(a[0])).unless(a[0].same(0.0).both(a[1] >= 0.0))),
        op="**", public=False, samples=((0.3, 0.7), (2.0, 3.0), (2.5, -1.5))),
    Row("powi", "'a -> int -> 'a where 'a : num", "power, to an int", on.powi,
        (lambda t, a, y: (t * a[1].call("to_like", a[0]) * a[0].call("powi", a[1] - 1)).unless(a[1].same(0)), None),
        public=False),
    Row("quot", "'a -> 'a -> 'a where 'a : num, 'a : integer", "integer quotient, truncated",
        on.quot, pure=False),
    Row("rem", "'a -> 'a -> 'a where 'a : num, 'a : integer", "remainder of the truncated quotient",
        lambda a, b: a - b * on.quot(a, b), pure=False),
    Row("abs", NUM1, "absolute value", abs, (lambda t, a, y: t * a[0].call("sign"),), "llvm.fabs",
        samples=((0.3,), (-2.0,))),
    Row("sign", NUM1, "-1, 0 or 1", on.sign, (None,)),
    Row("max", LIFT + "num", "the greater; the first of equals; NaN wins", on.greater,
        (lambda t, a, y: t.where((a[0] >= a[1]).either(a[0].call("ne", a[0]))),
         lambda t, a, y: t.unless((a[0] >= a[1]).either(a[0].call("ne", a[0])))), samples=PAIRS),
    Row("min", LIFT + "num", "the lesser; the first of equals; NaN wins", on.lesser,
        (lambda t, a, y: t.where((a[0] <= a[1]).either(a[0].call("ne", a[0]))),
         lambda t, a, y: t.unless((a[0] <= a[1]).either(a[0].call("ne", a[0])))), samples=PAIRS),
    Row("clip", "'a -> 'b -> 'b -> 'a where lift 'a 'b 'a, 'a : num", "clip x lo hi: x, at least lo, at most hi",
        on.clip,
        (lambda t, a, y: t.unless((a[0] < a[1]).either(a[0] > a[2])),
         lambda t, a, y: t.where(a[0] < a[1]),
         lambda t, a, y: t.where(a[0] > a[2]).unless(a[0] < a[1])),
        samples=((0.5, 0.0, 1.0), (2.0, 0.0, 1.0), (-2.0, 0.0, 1.0))),
)  # fmt: skip

COMPARISON = (
    Row("eq", COMPARE, "equal in structure", lambda a, b: a == b, op="=", public=False),
    Row("ne", COMPARE, "not equal in structure", lambda a, b: a != b, op="<>", public=False),
    Row("lt", COMPARE, "less; data by constructor, then contents", lambda a, b: a < b, op="<", public=False),
    Row("le", COMPARE, "less or equal", lambda a, b: a <= b, op="<=", public=False),
    Row("gt", COMPARE, "greater", lambda a, b: a > b, op=">", public=False),
    Row("ge", COMPARE, "greater or equal", lambda a, b: a >= b, op=">=", public=False),
    Row("not", "bool -> bool", "negation", lambda a: not a),
    Row("and", "bool -> bool -> bool", "both, evaluated", lambda a, b: a and b, public=False),
    Row("or", "bool -> bool -> bool", "either, evaluated", lambda a, b: a or b, public=False),
    Row("select", "bool -> 'a -> 'a -> 'a where 'a : num", "the second where the first holds, else the third",
        lambda c, a, b: a if c else b,
        (None, lambda t, a, y: t.where(a[0]), lambda t, a, y: t.unless(a[0])), public=False),
)  # fmt: skip

BITS = tuple(
    Row(name, "'a -> 'a -> 'a where 'a : num, 'a : integer", doc, eval_, public=False)
    for name, doc, eval_ in (
        ("bit_and", "bitwise and", lambda a, b: a & b),
        ("bit_or", "bitwise or", lambda a, b: a | b),
        ("bit_xor", "bitwise exclusive or", lambda a, b: a ^ b),
        ("shift_left", "left by 0 to 63 bits (of the type's width)", lambda a, b: a << b),
        ("shift_right", "right by 0 to 63 bits; arithmetic on signed types", lambda a, b: a >> b),
    )
)

ELEMENTARY = (
    real("floor", "greatest whole number below", on.whole(math.floor), None, "llvm.floor"),
    real("ceil", "least whole number above", on.whole(math.ceil), None, "llvm.ceil"),
    real("round", "nearest whole number, ties to even", on.whole(round), None, "llvm.roundeven"),
    own("exp", "e to the power", lambda t, a, y: t * y),
    own("exp2", "2 to the power", lambda t, a, y: t * y * math.log(2.0)),
    own("expm1", "exp x - 1, exact near 0", lambda t, a, y: t * exp(a[0])),
    own("log", "natural logarithm", lambda t, a, y: t / a[0]),
    own("log1p", "log (1 + x), exact near 0", lambda t, a, y: t / (a[0] + 1.0)),
    own("log2", "logarithm to base 2", lambda t, a, y: t * (1.0 / math.log(2.0)) / a[0]),
    own("log10", "logarithm to base 10", lambda t, a, y: t * (1.0 / math.log(10.0)) / a[0]),
    real("sqrt", "square root", on.total(math.sqrt), lambda t, a, y: t * (_inverse(y) * 0.5), "llvm.sqrt"),
    own("cbrt", "cube root", lambda t, a, y: t * _cbrt_slope(a[0], y), 0.3, -2.0),
    own("cos", "cosine", lambda t, a, y: -t * sin(a[0])),
    own("sin", "sine", lambda t, a, y: t * cos(a[0])),
    own("tan", "tangent", lambda t, a, y: t * (y * y + 1.0)),
    own("asin", "inverse sine", lambda t, a, y: t / sqrt(_less_of(a[0]))),
    own("acos", "inverse cosine", lambda t, a, y: -t / sqrt(_less_of(a[0]))),
    own("atan", "inverse tangent", lambda t, a, y: t / hypot(a[0], 1.0) / hypot(a[0], 1.0)),
    own("sinh", "hyperbolic sine", lambda t, a, y: t * fn("cosh")(a[0])),
    own("cosh", "hyperbolic cosine", lambda t, a, y: t * fn("sinh")(a[0])),
    own("tanh", "hyperbolic tangent", lambda t, a, y: t * sech2(a[0])),
    own("asinh", "inverse of sinh", lambda t, a, y: t / hypot(a[0], 1.0)),
    own("acosh", "inverse of cosh", lambda t, a, y: t / (sqrt(a[0] - 1.0) * sqrt(a[0] + 1.0)), 1.3, 2.0),
    own("atanh", "inverse of tanh", lambda t, a, y: t / _less_of(a[0])),
    own("erf", "error function", lambda t, a, y: t * bell(a[0]) * (2.0 / math.sqrt(math.pi))),
    real("lgamma", "logarithm of the gamma function", on.lgamma,
         lambda t, a, y: t * a[0].integer(0).call("polygamma", a[0]), "rt.lgamma", 0.7, 2.5),
    Row("polygamma", "int -> 'a -> 'a where 'a : real", "polygamma n x: derivative number n + 1 of lgamma",
        on.polygamma, (None, lambda t, a, y: t * (a[0] + 1).call("polygamma", a[1])), "rt.polygamma", public=False),
    own("sigmoid", "1 / (1 + exp (-x))", lambda t, a, y: t * (sech2(a[0] * 0.5) * 0.25)),
    own("softplus", "log (1 + exp x), without overflow", lambda t, a, y: t * sigmoid(a[0])),
    real("relu", "max 0 x, with derivative 0 at 0", lambda x: x if x > 0.0 or x != x else 0.0,
         lambda t, a, y: t.where(a[0] > 0.0), "", 0.3, -0.3),
    own2("atan2", "atan2 y x: the angle of (x, y)", lambda t, a, y: t * turn(a[1], a[0]),
        lambda t, a, y: -t * turn(*a), (1.0, 2.0), (-1.0, -1.0)),
    own2("hypot", "sqrt (x * x + y * y), without overflow", lambda t, a, y: t * cosine(*a),
        lambda t, a, y: t * cosine(a[1], a[0]), (3.0, 4.0), (-1.0, 0.5)),
    own2("xlogy", "x * log y, and 0 where x is 0", lambda t, a, y: t * log(a[1]),
        lambda t, a, y: (t * (a[0] / a[1])).unless(a[0].same(0.0)), (0.5, 2.0), (2.0, 0.3)),
    own2("logaddexp", "log (exp x + exp y), without overflow", lambda t, a, y: t * share(*a),
        lambda t, a, y: t * share(a[1], a[0]), (0.5, 2.0)),
)  # fmt: skip

# Parts of slopes, for which arithmetic on the rounded value of a row would lose digits.
SLOPES = (
    slope("squares", "x * x - y * y", lambda t, a, y: t * (a[0] * 2.0), lambda t, a, y: -t * (a[1] * 2.0)),
    slope("cosine", "x / hypot x y, 0 at the origin",
        lambda t, a, y: (t * cosine(a[1], a[0]) * cosine(a[1], a[0]) / hypot(*a)).unless(hypot(*a).same(0.0)),
        lambda t, a, y: (-t * y * cosine(a[1], a[0]) / hypot(*a)).unless(hypot(*a).same(0.0))),
    slope("turn", "x / (x * x + y * y), 0 at the origin", _turn_slope,
        lambda t, a, y: -t * (y * turn(a[1], a[0]) * 2.0)),
    slope("bell", "exp (-x * x)", lambda t, a, y: -t * (a[0] * 2.0) * y),
    slope("sech2", "1 / cosh x / cosh x", lambda t, a, y: -t * (tanh(a[0]) * 2.0) * y),
    slope("share", "exp a / (exp a + exp b)", lambda t, a, y: t * overlap(*a), lambda t, a, y: -t * overlap(*a)),
    slope("overlap", "share a b * share b a", lambda t, a, y: -t * y * tanh((a[0] - a[1]) * 0.5),
        lambda t, a, y: t * y * tanh((a[0] - a[1]) * 0.5)),
)  # fmt: skip


def _conversion(target: str) -> Row:
    whole = target[0] in "iu"
    eval_ = on.saturate(int(target[1:]), target[0] == "i") if whole else float
    alias = {"i64": ("int",), "f64": ("float",)}.get(target, ())
    rule = None if whole else lambda t, a, y: t.call("to_like", a[0])
    doc = f"to {target}{' (truncates, saturates; NaN gives 0)' if whole else ''}"
    return Row(target, f"'a -> 'b where convert 'a {target} 'b", doc, eval_, (rule,), aliases=alias)


CONVERSIONS = (
    *(_conversion(name) for name in ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64")),
    Row("to_like", "'a -> 'b -> 'b where 'a : num, 'b : num",
        "the first as a number of the second's scalar type (shape of the first)",
        lambda x, like: x, (lambda t, a, y: t.call("to_like", a[0]), None), public=False),
)  # fmt: skip

ROWS = (*ARITHMETIC, *COMPARISON, *BITS, *ELEMENTARY, *SLOPES, *CONVERSIONS)
