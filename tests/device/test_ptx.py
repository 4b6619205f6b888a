"""The interpreter of PTX, on small kernels written by hand."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import numpy as np
import pytest
from ptx_memory import Blocks
from ptx_run import Machine
from ptx_scalars import Fault, exact_fma, nearest
from ptx_traffic import Traffic

A, B = 1 << 33, 1 << 34

HEAD = ".version 7.0\n.target sm_80\n.address_size 64\n"
START = """
	ld.param.b64 	%rd1, [k_param_0];
	ld.param.b64 	%rd2, [k_param_1];
	mov.u32 	%r1, %tid.x;
	mov.u32 	%r2, %ctaid.x;
	mov.u32 	%r3, %ntid.x;
	mad.lo.s32 	%r4, %r2, %r3, %r1;
	cvt.u64.u32 	%rd3, %r4;
	shl.b64 	%rd4, %rd3, 3;
	add.s64 	%rd5, %rd1, %rd4;
	add.s64 	%rd6, %rd2, %rd4;
"""  # %rd3 the thread, %rd5 and %rd6 its places in two arrays of 8 bytes


def run(
    body: str, a: np.ndarray, b: np.ndarray, grid: int = 1, block: int = 32, before: str = "",
    traffic: Traffic | None = None,
) -> None:  # fmt: skip
    """Runs a kernel on two arrays."""
    entry = ".visible .entry k(\n\t.param .u64 .ptr .global .align 1 k_param_0,\n\t.param .u64 k_param_1\n)\n"
    blocks = Blocks()
    machine = Machine(f"{HEAD}{before}{entry}{{\n\t.reg .b64 \t%rd<99>;{START}{body}\n\tret;\n}}\n", blocks)
    machine.place_globals(1 << 32, np.zeros(machine.size_of_globals() + 8, np.uint8))
    blocks.add(A, a.view(np.uint8))
    blocks.add(B, b.view(np.uint8))
    machine.launch("k", grid, block, [A, B], traffic=traffic)


def per_thread(body: str, b: np.ndarray) -> np.ndarray:
    """What a kernel makes of each element, in %rd7 -> %rd8."""
    out = np.zeros(len(b), b.dtype)
    run(f"\tld.global.b64 \t%rd7, [%rd6];\n{body}\tst.global.b64 \t[%rd5], %rd8;\n", out, b, block=len(b))
    return out


def test_threads_compute_their_own_elements() -> None:
    b = np.linspace(-2.0, 5.0, 64)
    a = np.zeros(64)
    run("ld.global.nc.b64 %rd7, [%rd6]; mul.rn.f64 %rd8, %rd7, %rd7; add.rn.f64 %rd9, %rd8, 0dBFF0000000000000;"
        "st.global.b64 [%rd5], %rd9;", a, b, grid=2)  # fmt: skip
    assert (a == b * b - 1.0).all()


def test_neighbours_move_what_they_ask_for() -> None:
    a, b, near, far = np.zeros(256), np.zeros(256), Traffic(), Traffic()
    run("ld.global.b64 %rd7, [%rd6]; ld.global.b64 %rd7, [%rd6]; st.global.b64 [%rd5], %rd7;", a, b, 2, 32, "", near)
    assert (near.asked, near.moved, near.distinct) == (3 * 512, 3 * 512, 2 * 512)
    run("mul.lo.s64 %rd8, %rd3, 64; add.s64 %rd9, %rd2, %rd8; ld.global.b64 %rd7, [%rd9];", a, b, traffic=far)
    assert (far.asked, far.moved, far.distinct) == (256, 1024, 1024)


def test_fma_rounds_once() -> None:
    x = np.array([1.0 + 2.0**-52, 1e308, 5e-324, 3.0, math.inf, 0.1])
    made = per_thread("fma.rn.f64 %rd8, %rd7, %rd7, 0dBFF0000000000000;", x)
    assert made[0] == 2.0**-51 + 2.0**-104
    assert made[1] == math.inf and made[2] == -1.0 and made[3] == 8.0 and made[4] == math.inf


def test_fma_of_many_numbers() -> None:
    """Against fractions, for numbers of all sizes and sums that cancel."""
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((2, 400)) * 2.0 ** rng.integers(-40, 40, 400)
    z = np.where(np.arange(400) % 2, -x * y, rng.standard_normal(400)) * (1.0 + 2.0 ** rng.integers(-60, -20, 400))
    for kind in (np.float64, np.float32):
        given = [v.astype(kind) for v in (x, y, z)]
        made = exact_fma(*given)
        for got, a, b, c in zip(made, *given, strict=True):
            exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
            assert got == (nearest(exact, np.dtype(kind)) if exact else 0.0)


@pytest.mark.parametrize(
    ("instruction", "given", "wanted"),
    [
        ("div.s64 %rd8, %rd7, -3", [-7, 7, 6], [2, -2, -2]),
        ("rem.s64 %rd8, %rd7, 3", [-7, 7, -6], [-1, 1, 0]),
        ("shr.s64 %rd8, %rd7, 65", [-7, 7, 0], [-1, 0, 0]),
        ("shl.b64 %rd8, %rd7, 64", [-7, 7, 0], [0, 0, 0]),
        ("mul.hi.s64 %rd8, %rd7, 4611686018427387904", [-8, 7, 4], [-2, 1, 1]),
        ("mul.hi.u64 %rd8, %rd7, 4611686018427387904", [-4, 7, 4], [(1 << 62) - 1, 1, 1]),
        ("brev.b64 %rd8, %rd7", [1, 2, 0], [-(1 << 63), 1 << 62, 0]),
        ("bfe.s64 %rd8, %rd7, 1, 2", [6, 2, 4], [-1, 1, -2]),
        ("popc.b64 %rd8, %rd7", [-1, 0, 6], [64, 0, 2]),
        ("clz.b64 %rd8, %rd7", [-1, 0, 6], [0, 64, 61]),
    ],
)
def test_integers(instruction: str, given: list[int], wanted: list[int]) -> None:
    assert per_thread(instruction + ";", np.array(given)).tolist() == wanted


def test_128_bits_by_carry() -> None:
    body = (
        "cvt.u32.u64 %r5, %rd7; shr.u64 %rd9, %rd7, 32; cvt.u32.u64 %r6, %rd9;"
        "add.cc.u32 %r7, %r5, -1; addc.u32 %r8, %r6, 0; mov.b64 %rd8, {%r7, %r8};"
    )
    given = [0, 1, (1 << 32) - 1, 1 << 40]
    assert per_thread(body, np.array(given)).tolist() == [x + (1 << 32) - 1 for x in given]


def test_permuted_bytes() -> None:
    """The last byte, the first, the sign of byte 1, and byte 0 of the second operand."""
    body = "cvt.u32.u64 %r5, %rd7; prmt.b32 %r6, %r5, 17, 0x4903U; cvt.u64.u32 %rd8, %r6;"
    assert per_thread(body, np.array([0x11228344, 0x55667788])).tolist() == [0x11FF4411, 0x11008855]


def test_conversions_saturate() -> None:
    x = np.array([1e300, -1e300, math.nan, -2.5, 2.5])
    made = per_thread("cvt.rzi.s64.f64 %rd8, %rd7;", x).view(np.int64)
    assert made.tolist() == [(1 << 63) - 1, -(1 << 63), 0, -2, 2]
    assert per_thread("cvt.rni.f64.f64 %rd8, %rd7;", x[3:]).tolist() == [-2.0, 2.0]
    assert per_thread("cvt.rn.f32.f64 %r9, %rd7; cvt.f64.f32 %rd8, %r9;", np.array([0.1])) == np.float32(0.1)


def test_comparisons_of_nan() -> None:
    x = np.array([math.nan, 1.0, 2.0])
    truth = {"eq": [0, 1, 0], "equ": [1, 1, 0], "ne": [0, 0, 1], "neu": [1, 0, 1], "nan": [1, 0, 0]}
    for how, wanted in truth.items():
        body = f"setp.{how}.f64 %p1, %rd7, 0d3FF0000000000000; selp.b64 %rd8, 1, 0, %p1;"
        assert per_thread(body, x).view(np.int64).tolist() == wanted


def test_threads_take_their_own_number_of_steps() -> None:
    """Collatz: loops of different lengths, with a branch inside."""
    body = """
	mov.b64 %rd8, 0;
$L1:
	setp.eq.b64 %p1, %rd7, 1;
	@%p1 bra $L4;
	and.b64 %rd9, %rd7, 1;
	setp.eq.b64 %p2, %rd9, 0;
	@%p2 bra $L2;
	mad.lo.s64 %rd7, %rd7, 3, 1;
	bra.uni $L3;
$L2:
	shr.u64 %rd7, %rd7, 1;
$L3:
	add.s64 %rd8, %rd8, 1;
	bra.uni $L1;
$L4:
"""

    def steps(n: int) -> int:
        return 0 if n == 1 else 1 + steps(n // 2 if n % 2 == 0 else 3 * n + 1)

    given = np.arange(1, 50)
    assert per_thread(body, given).tolist() == [steps(int(n)) for n in given]


def test_jump_tables() -> None:
    body = """
	mov.b64 %rd8, 7;
	cvt.u32.u64 %r5, %rd7;
	$L_brx_0: .branchtargets
		$L1,
		$L2;
	brx.idx %r5, $L_brx_0;
$L1:
	mov.b64 %rd8, 10;
$L2:
"""
    assert per_thread(body, np.array([0, 1, 0, 1])).tolist() == [10, 7, 10, 7]


FUNCTION = """
.func (.param .b64 func_retval0) fact(
	.param .b64 fact_param_0
)
{
	.local .align 8 .b8 	__local_depot0[16];
	mov.b64 %SPL, __local_depot0;
	ld.param.b64 %rd1, [fact_param_0];
	st.local.b64 [%SPL+8], %rd1;
	setp.gt.s64 %p1, %rd1, 1;
	mov.b64 %rd9, 1;
	@!%p1 bra $L1;
	add.s64 %rd2, %rd1, -1;
	{ // callseq 0, 0
	.param .b64 param0;
	.param .b64 retval0;
	st.param.b64 [param0], %rd2;
	call.uni (retval0), fact, (param0);
	ld.param.b64 %rd3, [retval0];
	} // callseq 0
	ld.local.b64 %rd4, [%SPL+8];
	mul.lo.s64 %rd9, %rd3, %rd4;
$L1:
	st.param.b64 [func_retval0], %rd9;
	ret;
}
"""


def test_recursion_has_frames_of_its_own() -> None:
    b = np.array([1, 5, 3, 10, 0, 2])
    a = np.zeros(6, np.int64)
    body = """
	ld.b64 %rd7, [%rd6];
	{ // callseq 1, 0
	.param .b64 param0;
	.param .b64 retval0;
	st.param.b64 [param0], %rd7;
	call.uni (retval0), fact, (param0);
	ld.param.b64 %rd8, [retval0];
	} // callseq 1
	st.b64 [%rd5], %rd8;
"""
    run(body, a, b, block=6, before=FUNCTION)
    assert a.tolist() == [math.factorial(int(n)) for n in b]


REDUCE = """
	.shared .align 8 .b8 	s[512];
	ld.global.b64 %rd7, [%rd6];
	mul.wide.u32 %rd8, %r1, 8;
	mov.b64 %rd9, s;
	add.s64 %rd9, %rd9, %rd8;
	st.shared.b64 [%rd9], %rd7;
	mov.b32 %r5, 32;
$L1:
	BARRIER
	setp.ge.u32 %p1, %r1, %r5;
	@%p1 bra $L2;
	mul.wide.u32 %rd10, %r5, 8;
	add.s64 %rd11, %rd9, %rd10;
	ld.shared.b64 %rd12, [%rd11];
	ld.shared.b64 %rd13, [%rd9];
	add.s64 %rd13, %rd13, %rd12;
	st.shared.b64 [%rd9], %rd13;
$L2:
	shr.u32 %r5, %r5, 1;
	setp.ne.b32 %p2, %r5, 0;
	@%p2 bra $L1;
	setp.ne.b32 %p3, %r1, 0;
	@%p3 bra $L3;
	ld.shared.b64 %rd13, [%rd9];
	st.global.b64 [%rd5], %rd13;
$L3:
"""


def test_barriers() -> None:
    b = np.arange(192)
    a = np.zeros(192, np.int64)
    run(REDUCE.replace("BARRIER", "bar.sync 0;"), a, b, grid=3, block=64)
    assert a[::64].tolist() == b.reshape(3, 64).sum(1).tolist()


def test_a_missing_barrier_is_a_race() -> None:
    with pytest.raises(Fault, match="race"):
        run(REDUCE.replace("BARRIER", ""), np.zeros(64, np.int64), np.arange(64), block=64)


def test_a_barrier_that_some_do_not_reach() -> None:
    body = "setp.ge.u32 %p1, %r1, 7; @%p1 bra $L1; bar.sync 0;\n$L1:\n"
    with pytest.raises(Fault, match="barrier"):
        run(body, np.zeros(32), np.zeros(32))


def test_memory_is_checked() -> None:
    with pytest.raises(Fault, match="out of bounds"):
        run("ld.global.b64 %rd7, [%rd5+8];", np.zeros(32), np.zeros(32))
    with pytest.raises(Fault, match="not aligned"):
        run("ld.global.b64 %rd7, [%rd5+4];", np.zeros(64), np.zeros(32))
    with pytest.raises(Fault, match="no memory"):
        run("ld.b64 %rd7, [%rd4];", np.zeros(32), np.zeros(32))
    with pytest.raises(Fault, match="race"):
        run("st.global.b64 [%rd1], %rd3;", np.zeros(32), np.zeros(32))


def test_lanes_exchange_values() -> None:
    b, a = np.arange(64.0), np.zeros(64)
    body = """
	ld.global.b64 %rd7, [%rd6];
	mov.b64 {%r5, %r6}, %rd7;
	shfl.sync.bfly.b32 %r7, %r5, 16, 31, -1;
	shfl.sync.bfly.b32 %r8|%p1, %r6, 16, 31, -1;
	mov.b64 %rd8, {%r7, %r8};
	st.global.b64 [%rd5], %rd8;
"""
    run(body, a, b, block=64)
    assert (a.reshape(2, 2, 16) == b.reshape(2, 2, 16)[:, ::-1]).all()


def test_lanes_with_one_value() -> None:
    b = np.arange(32) % 3
    a = np.zeros(32, np.int64)
    run("ld.global.b64 %rd7, [%rd6]; cvt.u32.u64 %r5, %rd7; match.any.sync.b32 %r6, %r5, -1;"
        "cvt.u64.u32 %rd8, %r6; st.global.b64 [%rd5], %rd8;", a, b)  # fmt: skip
    assert a.tolist() == [sum(1 << j for j in range(32) if j % 3 == i % 3) for i in range(32)]


def test_atomic_instructions() -> None:
    a, b = np.array([100, 0, 0, 0]), np.zeros(64, np.int64)
    run("atom.global.min.s64 %rd7, [%rd1], %rd3; red.global.add.u64 [%rd1+8], %rd3;"
        "atom.relaxed.gpu.global.cas.b64 %rd8, [%rd1+16], 0, 5;", a, b, grid=2)  # fmt: skip
    assert a.tolist() == [0, sum(range(64)), 5, 0]


def test_variables_of_a_module() -> None:
    words = ", ".join(str(byte) for byte in struct.pack("<2d", 2.5, -1.0))
    before = f".const .align 8 .b8 c[16] = {{{words}}};\n.visible .global .align 8 .u64 g = 3;\n"
    a = np.zeros(2)
    run("mov.b64 %rd7, c; add.s64 %rd7, %rd7, %rd4; ld.const.b64 %rd8, [%rd7]; st.global.b64 [%rd5], %rd8;"
        "ld.global.b64 %rd9, [g];", a, a.copy(), block=2, before=before)  # fmt: skip
    assert a.tolist() == [2.5, -1.0]
