"""The stand-in for CUDA's driver: memory, modules, launches, and what it says about mistakes."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from stand_in import Server

pytestmark = pytest.mark.skipif(not shutil.which("cc") or sys.platform != "linux", reason="needs a C compiler, Linux")

PTX = b""".version 7.0
.target sm_80
.address_size 64
.visible .global .align 8 .u64 g = 5;
.visible .entry twice(
	.param .u64 .ptr .global .align 1 twice_param_0,
	.param .u64 twice_param_1
)
{
	ld.param.b64 %rd1, [twice_param_0];
	ld.param.b64 %rd2, [twice_param_1];
	mov.u32 %r1, %tid.x;
	cvt.u64.u32 %rd3, %r1;
	setp.ge.u64 %p1, %rd3, %rd2;
	@%p1 bra $L1;
	shl.b64 %rd4, %rd3, 3;
	add.s64 %rd5, %rd1, %rd4;
	ld.global.b64 %rd6, [%rd5];
	add.rn.f64 %rd7, %rd6, %rd6;
	st.global.b64 [%rd5], %rd7;
$L1:
	ret;
}
"""

USE = """
import ctypes as c, sys
cu = c.CDLL(sys.argv[1])
def call(name, *args, code=0):
    got = getattr(cu, name)(*args)
    assert got == code, (name, got)
P, S = c.c_uint64, c.c_size_t
call("cuDeviceGet", c.byref(c.c_int()), 0, code=3)
call("cuInit", 0)
call("cuStreamSynchronize", None, code=201)
context = c.c_void_p()
call("cuDevicePrimaryCtxRetain", c.byref(context), 0)
call("cuCtxSetCurrent", context)
m, f, p = c.c_void_p(), c.c_void_p(), P()
call("cuModuleLoadDataEx", c.byref(m), PTX, 0, None, None)
call("cuModuleGetFunction", c.byref(f), m, b"twice")
call("cuModuleGetFunction", c.byref(c.c_void_p()), m, b"thrice", code=500)
call("cuModuleGetGlobal_v2", c.byref(p), c.byref(S()), m, b"g")
word = c.c_int64()
call("cuMemcpyDtoHAsync_v2", c.byref(word), p, S(8), None)
assert word.value == 5
given = (c.c_double * 4)(1, 2, 3, 4)
call("cuMemAllocAsync", c.byref(p), S(32), None)
call("cuMemcpyHtoDAsync_v2", p, given, S(32), None)
call("cuMemcpyHtoDAsync_v2", p, given, S(40), None, code=1)
def launch(n):
    cells = (p, c.c_int64(n))
    params = (c.c_void_p * 2)(*(c.cast(c.pointer(x), c.c_void_p) for x in cells))
    call("cuLaunchKernel", f, 1, 1, 1, 32, 1, 1, 0, None, params, None)
launch(4)
call("cuMemcpyDtoHAsync_v2", given, p, S(32), None)
assert list(given) == [2, 4, 6, 8]
call("cuStreamSynchronize", None)
pinned = c.c_void_p()
call("cuMemHostAlloc", c.byref(pinned), S(32), 0)
now = c.cast(pinned, c.POINTER(c.c_double))
now[0] = 8.0
call("cuMemcpyHtoDAsync_v2", p, pinned, S(8), None)  # reads it when the copy is done
now[0] = 9.0
call("cuMemcpyDtoHAsync_v2", given, p, S(8), None)
assert given[0] == 9.0
event, time = c.c_void_p(), c.c_float()
call("cuEventCreate", c.byref(event), 0)
call("cuEventRecord", event, None)
call("cuEventElapsedTime", c.byref(time), event, event, code=600)
for wrong in (b".version 9.9 .target sm_80", b".version 8.0 .target sm_120"):
    call("cuModuleLoadDataEx", c.byref(m), wrong, 0, None, None, code=222 if b"9.9" in wrong else 209)
call("cuCtxSetLimit", 0, S(1 << 20), code=1)
launch(5)
call("cuStreamSynchronize", None, code=700)
call("cuMemAllocAsync", c.byref(p), S(32), None, code=700)
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path)
    yield made
    made.close()


def test_a_program_uses_the_stand_in(server: Server) -> None:
    program = f"PTX = {PTX!r}\n{USE}"
    environment = {**os.environ, **server.environment}
    subprocess.run([sys.executable, "-c", program, server.environment["DPL_CUDA"]], check=True, env=environment)
    assert "twice: global access out of bounds" in server.complaints()


def test_without_an_interpreter_there_is_no_device(server: Server) -> None:
    assert ctypes.CDLL(server.environment["DPL_CUDA"]).cuInit(0) == 100
