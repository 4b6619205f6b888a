"""Products of arrays where one factor is a tangent with symbolic zeros.  These zeros contribute nothing, even if the
other factor is infinite there (0.0 * inf is NaN):

    matmul c w, c a tangent with symbolic zeros       matmul masked=left c w

A masked product is linear in each factor, too.  A term that was absent from it is absent from its derivatives:

    y = matmul masked=left c w        dy = matmul masked=left dc w + matmul masked=left c dw
                                      cw = matmul masked=left c' cy
                                      cc = matmul cy w', without the infinities of w where c is zero
"""

from __future__ import annotations

from math import inf

from dplc.ad.rules import bulk
from dplc.ad.tangents.symbolic_zeros import MAYBE_ZERO, Part
from dplc.flat import term as f
from dplc.flat.build import Builder
from dplc.flat.masked import attribute, masked
from dplc.flat.ops.convolutions import TRANSPOSED
from dplc.flat.types import elem_of

ZERO = 0.0


def tangent(b: Builder, op: f.Op, i: int, t: Part) -> f.Atom:
    """The contribution of the tangent `t` of operand `i`, a factor, to the tangent of a product of arrays."""
    first = factor_of(op, 0)
    args = [t.atom if j == i else x for j, x in enumerate(op.args)][first:]
    attrs = {**dict(op.attrs), **attribute(masked(op) | t.has_zeros << (i - first))}
    return b.op("matmul" if first else op.op, args, span=op.span, **attrs)


def factor_of(op: f.Op, i: int) -> int:
    """The operand that is factor `i` of a product."""
    return i + int(op.op == "matmul_acc")


def cotangent(b: Builder, op: f.Op, i: int, ct: Part, into: f.Atom | None) -> f.Var:
    """The contribution of the cotangent `ct` of a matrix product to that of factor `i`, added to `into` if that is
    given."""
    left, right, ta, tb = bulk.matmul_parts(op, ct.atom, i)
    at = 0 if left is ct.atom else 1
    zeros = attribute(zeros_of(op, i, ct, at))
    plain = f.Op("matmul", (left, right), (("ta", ta), ("tb", tb), *zeros.items()), op.span)
    if masked(op) >> i & 1:
        made = without_absent(b, plain, 1 - at, op.args[-2:][i])
        return made if into is None else b.op("acc_add", (into, made))
    if into is None:
        return b.op("matmul", plain.args, span=op.span, **dict(plain.attrs))
    return b.op("matmul_acc", (into, *plain.args), span=op.span, **dict(plain.attrs))


def zeros_of(op: f.Op, i: int, ct: Part, at: int) -> int:
    """The factors whose zeros win in the contribution of `ct` to factor `i` of a product, where `ct` is factor `at`."""
    return ct.has_zeros << at | (masked(op) >> (1 - i) & 1) << (1 - at)


def convolution_cotangent(b: Builder, op: f.Op, i: int, ct: Part, sizes: tuple[f.Atom, f.Atom]) -> f.Var:
    """The contribution of the cotangent `ct` of a convolution to that of factor `i`, whose rows and columns are
    `sizes`."""
    name, at = TRANSPOSED[op.op, i]
    factors = (op.args[1 - i], ct.atom) if at else (ct.atom, op.args[1 - i])
    attrs = tuple(attribute(zeros_of(op, i, ct, at)).items())
    product = f.Op(name, (*factors, *op.args[2:-2], *sizes), attrs, op.span)
    if masked(op) >> i & 1:
        return without_absent(b, product, 1 - at, op.args[i])
    return b.op(name, product.args, span=op.span, **dict(attrs))


def without_absent(b: Builder, product: f.Op, other: int, zeros: f.Atom) -> f.Var:
    """A product; where `zeros` is zero, without what is not finite in factor number `other`."""

    def write(b: Builder, *factors: f.Atom) -> f.Var:
        return b.op(product.op, factors, span=product.span, **dict(product.attrs))

    made = write(b, *product.args)
    nothing = f.Const(ZERO, elem_of(made.ty))
    rare = b.inner()
    factors = list(product.args)
    x = factors[other]
    factors[other] = rare.op("select", (rare.op("eq", (rare.op("sub", (x, x)), nothing)), x, nothing))
    chosen = rare.op("select", (rare.op("eq", (zeros, nothing)), write(rare, *factors), made))
    size = b.op("sum_to", (b.op("abs", (made,)),), rank=0)
    finite = b.op("lt", (size, f.Const(inf, size.ty)))
    return b.choose(finite, b.inner().block(made), rare.block(chosen))[0]


def dot_cotangent(b: Builder, op: f.Op, i: int, ct: Part) -> f.Atom:
    """The contribution of the cotangent `ct` of an inner product to that of factor `i`."""
    x, other = op.args[i], op.args[1 - i]
    part: f.Atom = b.op("mul", (ct.atom, other), span=op.span)
    if ct.has_zeros:
        part = bulk.masked(b, ct, part)
    if masked(op) >> (1 - i) & 1:
        part = bulk.masked(b, Part(other, MAYBE_ZERO), part)
    if masked(op) >> i & 1:
        term, nothing = b.op("mul", (x, other)), f.Const(ZERO, elem_of(x.ty))
        absent = b.op("and", (b.op("eq", (x, nothing)), b.op("ne", (term, term))))
        part = b.op("select", (absent, nothing, part))
    return part
