"""Rows for numbers: arithmetic, comparison, elementary functions, conversions.  All work elementwise on arrays."""

from __future__ import annotations

import math

from dpl.prims.table import Row, Val

INF, NAN = math.inf, math.nan

# ---- evaluation on Python numbers, with IEEE's answers where Python raises ----------------------------------------


def _fdiv(a: float, b: float) -> float:
    if b == 0.0:
        return NAN if a == 0.0 or a != a else math.copysign(INF, a) * math.copysign(1.0, b)
    return a / b


def _div(a, b):
    return a // b if isinstance(a, int) else _fdiv(a, b)  # integers: by zero is the engine's run-time error


def _mod(a, b):
    if isinstance(a, int):
        return a % b
    if b == 0.0 or math.isinf(a) or a != a or b != b:
        return NAN
    r = math.fmod(a, b)
    return r + b if r != 0.0 and (r < 0.0) != (b < 0.0) else r


def _quot(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def _pow(x: float, n: float) -> float:
    try:
        return math.pow(x, n)
    except OverflowError:
        return -INF if x < 0 and n % 2 == 1 else INF
    except ValueError:  # 0 to a negative power, or a negative base to a fraction
        if x == 0.0:
            odd = n == math.floor(n) and math.fmod(n, 2.0) != 0.0
            return math.copysign(INF, x) if odd else INF
        return NAN


def _powi(x, n: int):
    if isinstance(x, int):
        if n >= 0:
            return pow(x, n) if n < 64 or x in (-1, 0, 1) else pow(x, n, 1 << 64)
        return {1: 1, -1: 1 if n % 2 == 0 else -1}.get(x, 0)  # the quotient 1 / x ** -n, truncated
    match n:  # multiplied out, as native code does
        case -1:
            return _fdiv(1.0, x)
        case 0:
            return 1.0
        case 1:
            return x
        case 2:
            return x * x
        case 3:
            return (x * x) * x
        case 4:
            return (x * x) * (x * x)
        case _:
            return _pow(x, float(n))


def _hypot(x: float, y: float) -> float:
    """Scaled by a power of two where squares would leave the range; the same steps in native code."""
    x, y = abs(x), abs(y)
    if INF in (x, y):
        return INF
    top = x if x >= y else y
    scale = 2.0**-600 if top > 1e150 else 2.0**600 if top < 1e-150 else 1.0
    x, y = x * scale, y * scale
    return math.sqrt(x * x + y * y) / scale


def _total(f, nan_at=()):
    """A function of math with IEEE's answers instead of exceptions."""

    def g(x: float) -> float:
        try:
            return f(x)
        except OverflowError:
            return INF
        except ValueError:
            return NAN

    return g


def _log(f):
    def g(x: float) -> float:
        return f(x) if x > 0.0 else -INF if x == 0.0 else NAN

    return g


def _log1p(x: float) -> float:
    return math.log1p(x) if x > -1.0 else -INF if x == -1.0 else NAN


def _sinh(x: float) -> float:
    try:
        return math.sinh(x)
    except OverflowError:
        return math.copysign(INF, x)


def _atanh(x: float) -> float:
    return math.atanh(x) if -1.0 < x < 1.0 else math.copysign(INF, x) if abs(x) == 1.0 else NAN


def _whole(f):
    return lambda x: x if isinstance(x, int) or math.isinf(x) or x != x else math.copysign(float(f(x)), x)


def _sign(x):
    return x if x != x else type(x)((x > 0) - (x < 0))


def _max(a, b):
    return a if a >= b or a != a else b


def _min(a, b):
    return a if a <= b or a != a else b


def _clip(x, lo, hi):
    return lo if x < lo else hi if x > hi else x


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return INF


def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + _exp(-x))


def _softplus(x: float) -> float:
    return _max(x, 0.0) + math.log1p(_exp(-abs(x)))


def _logaddexp(a: float, b: float) -> float:
    top = _max(a, b)
    return top if math.isinf(top) else top + math.log1p(_exp(-abs(a - b)))


def _xlogy(x: float, y: float) -> float:
    return 0.0 if x == 0.0 else x * _log(math.log)(y)


def _lgamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except (OverflowError, ValueError):
        return INF


BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)


def _factorial(n: int) -> float:
    product = 1.0
    for i in range(2, n + 1):
        product *= i
    return product


def _polygamma(n: int, x: float) -> float:
    """psi^(n)(x) by recurrence to x >= 20 + n and the asymptotic series (Abramowitz & Stegun 6.4.11); reflection is
    replaced by the recurrence, so negative x far from 0 is slow but right.  Poles give NaN."""
    if x != x or (x <= 0.0 and x == math.floor(x)) or x < -1e6 or n < 0:
        return NAN
    shift = 0.0
    sign = -1.0 if n % 2 == 0 else 1.0
    factorial = _factorial(n)
    while x < 20.0 + n:
        shift += _fdiv(sign * factorial, _pow(x, n + 1.0))
        x += 1.0
    if n == 0:
        total = math.log(x) - 0.5 / x
        for k, b in enumerate(BERNOULLI, 1):
            total -= b / (2 * k * _pow(x, 2.0 * k))
        return total + shift
    total = _factorial(n - 1) / _pow(x, float(n)) + factorial / (2.0 * _pow(x, n + 1.0))
    for k, b in enumerate(BERNOULLI, 1):
        total += b * _factorial(2 * k + n - 1) / (_factorial(2 * k) * _pow(x, 2.0 * k + n))
    return sign * total + shift


def _saturate(bits: int, signed: bool):
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)

    def convert(x):
        """Integers wrap; floats truncate and saturate, NaN gives 0; booleans give 0 and 1."""
        if isinstance(x, float):
            return 0 if x != x else int(min(max(x, low), high)) if not math.isinf(x) else (high if x > 0 else low)
        x = int(x) & ((1 << bits) - 1)
        return x - (1 << bits) if signed and x > high else x

    return convert


# ---- rules ------------------------------------------------------------------------------------------------------


def _pass(t: Val, a, y) -> Val:
    return t


def fn(name: str):
    """A primitive applied to a Val, in rules."""
    return lambda x, *others: x.call(name, *others)


exp, log, cos, sin, sigmoid = fn("exp"), fn("log"), fn("cos"), fn("sin"), fn("sigmoid")

LIFT = "'a -> 'b -> 'c where lift 'a 'b 'c, 'c : "
REAL1 = "'a -> 'a where 'a : real"
NUM1 = "'a -> 'a where 'a : num"
COMPARE = "'a -> 'a -> bool where 'a : data"


def arith(name, op, doc, eval_, linear, llvm, samples, pure=True):
    return Row(name, LIFT + "num", doc, eval_, linear, llvm, op=op, public=False, pure=pure, samples=samples)


def real(name, doc, eval_, rule, llvm, *samples, **more):
    points = tuple((s,) for s in samples or (0.3, 0.7))
    return Row(name, REAL1, doc, eval_, (rule,), llvm, samples=points, **more)


def real2(name, doc, eval_, rule1, rule2, llvm, *samples):
    return Row(name, LIFT + "real", doc, eval_, (rule1, rule2), llvm, samples=samples)


PAIRS = ((0.3, 0.7), (-1.5, 2.5), (2.0, -0.5))

ARITHMETIC = (
    arith("add", "+", "sum", lambda a, b: a + b, (_pass, _pass), "add", PAIRS),
    arith("sub", "-", "difference", lambda a, b: a - b, (_pass, lambda t, a, y: -t), "sub", PAIRS),
    arith("mul", "*", "product", lambda a, b: a * b,
          (lambda t, a, y: t * a[1], lambda t, a, y: t * a[0]), "mul", PAIRS),
    arith("div", "/", "quotient; of integers, floored", _div,
          (lambda t, a, y: t / a[1], lambda t, a, y: -t * (y / a[1])), "div", PAIRS, pure=False),
    arith("mod", "%", "remainder of the floored quotient", _mod,
          (_pass, lambda t, a, y: -t * (a[0] / a[1]).call("floor")), "mod", ((5.3, 2.0), (-5.3, 2.0)), pure=False),
    Row("neg", NUM1, "negation", lambda a: -a, (lambda t, a, y: -t,), "neg", public=False, samples=((0.3,), (-2.0,))),
    Row("pow", "'a -> 'b -> 'c where pow 'a 'b 'c", "power; for an exponent of integer type, engines take `powi`", _pow,
        (lambda t, a, y: (t * a[1] * a[0].call("pow", a[1] - 1.0)).unless(a[1].same(0.0)),
         lambda t, a, y: (t * y * log(a[0])).unless(a[0].same(0.0).both(a[1] >= 0.0))),
        "pow", op="**", public=False, samples=((0.3, 0.7), (2.0, 3.0), (2.5, -1.5))),
    Row("powi", "'a -> int -> 'a where 'a : num", "power, to an int", _powi,
        (lambda t, a, y: (t * a[1].call("to_like", a[0]) * a[0].call("powi", a[1] - 1)).unless(a[1].same(0)), None),
        "powi", public=False),
    Row("quot", "'a -> 'a -> 'a where 'a : num, 'a : integer", "integer quotient, truncated",
        _quot, None, "quot", pure=False),
    Row("rem", "'a -> 'a -> 'a where 'a : num, 'a : integer", "remainder of the truncated quotient",
        lambda a, b: a - b * _quot(a, b), None, "rem", pure=False),
    Row("abs", NUM1, "absolute value", abs, (lambda t, a, y: t * a[0].call("sign"),), "abs", samples=((0.3,), (-2.0,))),
    Row("sign", NUM1, "-1, 0 or 1", _sign, (None,), "sign"),
    Row("max", LIFT + "num", "the greater; the first of equals; NaN wins", _max,
        (lambda t, a, y: t.where((a[0] >= a[1]).either(a[0].call("ne", a[0]))),
         lambda t, a, y: t.unless((a[0] >= a[1]).either(a[0].call("ne", a[0])))), "max", samples=PAIRS),
    Row("min", LIFT + "num", "the lesser; the first of equals; NaN wins", _min,
        (lambda t, a, y: t.where((a[0] <= a[1]).either(a[0].call("ne", a[0]))),
         lambda t, a, y: t.unless((a[0] <= a[1]).either(a[0].call("ne", a[0])))), "min", samples=PAIRS),
    Row("clip", "'a -> 'b -> 'b -> 'a where lift 'a 'b 'a, 'a : num", "clip x lo hi: x, at least lo, at most hi", _clip,
        (lambda t, a, y: t.unless((a[0] < a[1]).either(a[0] > a[2])),
         lambda t, a, y: t.where(a[0] < a[1]),
         lambda t, a, y: t.where(a[0] > a[2]).unless(a[0] < a[1])), "clip",
        samples=((0.5, 0.0, 1.0), (2.0, 0.0, 1.0), (-2.0, 0.0, 1.0))),
)  # fmt: skip

COMPARISON = (
    Row("eq", COMPARE, "equal in structure", lambda a, b: a == b, None, "eq", op="=", public=False),
    Row("ne", COMPARE, "not equal in structure", lambda a, b: a != b, None, "ne", op="<>", public=False),
    Row("lt", COMPARE, "less; data by constructor, then contents", lambda a, b: a < b, None, "lt",
        op="<", public=False),
    Row("le", COMPARE, "less or equal", lambda a, b: a <= b, None, "le", op="<=", public=False),
    Row("gt", COMPARE, "greater", lambda a, b: a > b, None, "gt", op=">", public=False),
    Row("ge", COMPARE, "greater or equal", lambda a, b: a >= b, None, "ge", op=">=", public=False),
    Row("not", "bool -> bool", "negation", lambda a: not a, None, "not"),
    Row("and", "bool -> bool -> bool", "both, evaluated", lambda a, b: a and b, None, "and", public=False),
    Row("or", "bool -> bool -> bool", "either, evaluated", lambda a, b: a or b, None, "or", public=False),
    Row("select", "bool -> 'a -> 'a -> 'a where 'a : num", "the second where the first holds, else the third",
        lambda c, a, b: a if c else b,
        (None, lambda t, a, y: t.where(a[0]), lambda t, a, y: t.unless(a[0])), "select", public=False),
)  # fmt: skip

BITS = tuple(
    Row(name, "'a -> 'a -> 'a where 'a : num, 'a : integer", doc, eval_, None, name, public=False)
    for name, doc, eval_ in (
        ("bit_and", "bitwise and", lambda a, b: a & b),
        ("bit_or", "bitwise or", lambda a, b: a | b),
        ("bit_xor", "bitwise exclusive or", lambda a, b: a ^ b),
        ("shift_left", "left by 0 to 63 bits (of the type's width)", lambda a, b: a << b),
        ("shift_right", "right by 0 to 63 bits; arithmetic on signed types", lambda a, b: a >> b),
    )
)

ELEMENTARY = (
    real("floor", "greatest whole number below", _whole(math.floor), None, "floor"),
    real("ceil", "least whole number above", _whole(math.ceil), None, "ceil"),
    real("round", "nearest whole number, ties to even", _whole(round), None, "round"),
    real("exp", "e to the power", _exp, lambda t, a, y: t * y, "exp"),
    real("exp2", "2 to the power", lambda x: _pow(2.0, x), lambda t, a, y: t * y * math.log(2.0), "exp2"),
    real("expm1", "exp x - 1, exact near 0", _total(math.expm1), lambda t, a, y: t * (y + 1.0), "expm1"),
    real("log", "natural logarithm", _log(math.log), lambda t, a, y: t / a[0], "log"),
    real("log1p", "log (1 + x), exact near 0", _log1p, lambda t, a, y: t / (a[0] + 1.0), "log1p"),
    real("log2", "logarithm to base 2", _log(math.log2), lambda t, a, y: t / (a[0] * math.log(2.0)), "log2"),
    real("log10", "logarithm to base 10", _log(math.log10), lambda t, a, y: t / (a[0] * math.log(10.0)), "log10"),
    real("sqrt", "square root", _total(math.sqrt), lambda t, a, y: t / (y * 2.0), "sqrt"),
    real("cbrt", "cube root", math.cbrt, lambda t, a, y: t / (y * y * 3.0), "cbrt", 0.3, -2.0),
    real("cos", "cosine", _total(math.cos), lambda t, a, y: -t * sin(a[0]), "cos"),
    real("sin", "sine", _total(math.sin), lambda t, a, y: t * cos(a[0]), "sin"),
    real("tan", "tangent", _total(math.tan), lambda t, a, y: t * (y * y + 1.0), "tan"),
    real("asin", "inverse sine", _total(math.asin), lambda t, a, y: t / fn("sqrt")(1.0 - a[0] * a[0]), "asin"),
    real("acos", "inverse cosine", _total(math.acos), lambda t, a, y: -t / fn("sqrt")(1.0 - a[0] * a[0]), "acos"),
    real("atan", "inverse tangent", math.atan, lambda t, a, y: t / (a[0] * a[0] + 1.0), "atan"),
    real("sinh", "hyperbolic sine", _sinh, lambda t, a, y: t * fn("cosh")(a[0]), "sinh"),
    real("cosh", "hyperbolic cosine", _total(math.cosh), lambda t, a, y: t * fn("sinh")(a[0]), "cosh"),
    real("tanh", "hyperbolic tangent", math.tanh, lambda t, a, y: t * (1.0 - y * y), "tanh"),
    real("asinh", "inverse of sinh", math.asinh, lambda t, a, y: t / fn("sqrt")(a[0] * a[0] + 1.0), "asinh"),
    real("acosh", "inverse of cosh", _total(math.acosh), lambda t, a, y: t / fn("sqrt")(a[0] * a[0] - 1.0), "acosh",
         1.3, 2.0),
    real("atanh", "inverse of tanh", _atanh, lambda t, a, y: t / (1.0 - a[0] * a[0]), "atanh"),
    real("erf", "error function", math.erf,
         lambda t, a, y: t * exp(-(a[0] * a[0])) * (2.0 / math.sqrt(math.pi)), "erf"),
    real("lgamma", "logarithm of the gamma function", _lgamma,
         lambda t, a, y: t * a[0].integer(0).call("polygamma", a[0]), "lgamma", 0.7, 2.5),
    Row("polygamma", "int -> 'a -> 'a where 'a : real", "polygamma n x: derivative number n + 1 of lgamma", _polygamma,
        (None, lambda t, a, y: t * (a[0] + 1).call("polygamma", a[1])), "polygamma", public=False),
    real("sigmoid", "1 / (1 + exp (-x))", _sigmoid, lambda t, a, y: t * y * sigmoid(-a[0]), "sigmoid"),
    real("softplus", "log (1 + exp x), without overflow", _softplus, lambda t, a, y: t * sigmoid(a[0]), "softplus"),
    real("relu", "max 0 x, with derivative 0 at 0", lambda x: x if x > 0.0 or x != x else 0.0,
         lambda t, a, y: t.where(a[0] > 0.0), "relu", 0.3, -0.3),
    real2("atan2", "atan2 y x: the angle of (x, y)", math.atan2,
          lambda t, a, y: (t * a[1] / (a[0] * a[0] + a[1] * a[1])).unless((a[0] * a[0] + a[1] * a[1]).same(0.0)),
          lambda t, a, y: (-t * a[0] / (a[0] * a[0] + a[1] * a[1])).unless((a[0] * a[0] + a[1] * a[1]).same(0.0)),
          "atan2", (1.0, 2.0), (-1.0, -1.0)),
    real2("hypot", "sqrt (x * x + y * y), without overflow", _hypot,
          lambda t, a, y: (t * (a[0] / y)).unless(y.same(0.0)),
          lambda t, a, y: (t * (a[1] / y)).unless(y.same(0.0)), "hypot", (3.0, 4.0), (-1.0, 0.5)),
    real2("xlogy", "x * log y, and 0 where x is 0", _xlogy, lambda t, a, y: t * log(a[1]),
          lambda t, a, y: (t * (a[0] / a[1])).unless(a[0].same(0.0)), "xlogy", (0.5, 2.0), (2.0, 0.3)),
    real2("logaddexp", "log (exp x + exp y), without overflow", _logaddexp,
          lambda t, a, y: t * sigmoid(a[0] - a[1]), lambda t, a, y: t * sigmoid(a[1] - a[0]), "logaddexp", (0.5, 2.0)),
)  # fmt: skip


def _conversion(target: str) -> Row:
    whole = target[0] in "iu"
    eval_ = _saturate(int(target[1:]), target[0] == "i") if whole else float
    alias = {"i64": ("int",), "f64": ("float",)}.get(target, ())
    rule = None if whole else lambda t, a, y: t.call("to_like", a[0])
    doc = f"to {target}{' (truncates, saturates; NaN gives 0)' if whole else ''}"
    return Row(target, f"'a -> 'b where convert 'a {target} 'b", doc, eval_, (rule,), f"cast {target}", aliases=alias)


CONVERSIONS = (
    *(_conversion(name) for name in ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64")),
    Row("to_like", "'a -> 'b -> 'b where 'a : num, 'b : num",
        "the first as a number of the second's scalar type (shape of the first)",
        lambda x, like: x, (lambda t, a, y: t.call("to_like", a[0]), None), "cast like", public=False),
)  # fmt: skip

ROWS = (*ARITHMETIC, *COMPARISON, *BITS, *ELEMENTARY, *CONVERSIONS)
