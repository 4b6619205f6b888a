"""The pool of threads: each point is done once, a failure is that of the lowest point, and forks have a pool of their
own."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator

import pytest
from library import Loaded, forwarding, function

# each point adds 1 to its element, and fails where the element was at least 100; the failure's site is the point
POINTS = """
define internal void @points(ptr %env, i64 %from, i64 %to) "frame-pointer"="all" {
entry:
  br label %head
head:
  %i = phi i64 [ %from, %entry ], [ %next, %done ]
  %more = icmp slt i64 %i, %to
  br i1 %more, label %body, label %end
body:
  %at = getelementptr i64, ptr %env, i64 %i
  %x = load i64, ptr %at
  %y = add i64 %x, 1
  %bad = icmp sgt i64 %x, 99
  br i1 %bad, label %fail, label %done
fail:
  call void @rt.fail(i64 3, i64 %i, i64 0, i64 0, ptr null, i64 0)
  unreachable
done:
  store i64 %y, ptr %at
  %next = add i64 %i, 1
  br label %head
end:
  ret void
}
define internal void @nested(ptr %env, i64 %from, i64 %to) {
  %count = sub i64 %to, %from
  %at = getelementptr i64, ptr %env, i64 %from
  call void @rt.spread(ptr @points, ptr %at, i64 %count, double 1.0e9)
  ret void
}
define void @trouble(ptr %env) {
  %count = load i64, ptr %env
  %data = getelementptr i64, ptr %env, i64 1
  call void @rt.spread(ptr @points, ptr %data, i64 %count, double 1.0e9)
  ret void
}
define i64 @failing(ptr %env) {
  %code = call i64 @rt.guarded(ptr @trouble, ptr %env)
  %site = getelementptr i64, ptr @rt.failure, i64 1
  %where = load i64, ptr %site
  ret i64 %where
}
define i64 @workers() {
  %place = getelementptr i64, ptr @rt.process_pool, i64 1
  %n = load i64, ptr %place
  ret i64 %n
}
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[Loaded]:
    before = dict(os.environ)
    os.environ |= {"DPL_THREADS": "4"}
    text, types = POINTS, {"failing": ("i64", ("ptr",)), "workers": ("i64", ())}
    for name, points in (("spread", "points"), ("spread_nested", "nested")):
        body = [f"call void @rt.spread(ptr @{points}, ptr %a0, i64 %a1, double %a2)"]
        text += function(name, "void", ("ptr", "i64", "double"), body)
        types[name] = ("void", ("ptr", "i64", "double"))
    for name in ("end_workers", "settle_threads", "processors"):
        result = "i64" if name == "processors" else "void"
        text += forwarding(name, f"rt.{name}", result, ())
        types[name] = (result, ())
    loaded = Loaded(text, types)
    loaded["settle_threads"]()
    os.environ.clear()
    os.environ.update(before)
    yield loaded
    loaded["end_workers"]()


def array(size: int) -> ctypes.Array:
    return (ctypes.c_int64 * size)()


def test_each_point_is_done_once(pool: Loaded) -> None:
    for size in (1, 2, 7, 100, 1000):
        for work in (1e9, 3e3, 1e2):
            data = array(size)
            for _ in range(20):
                pool["spread"](data, size, work)
            assert set(data) == {20}
    assert pool["workers"]() == 3


def test_a_region_inside_of_a_region_is_done_in_order(pool: Loaded) -> None:
    data = array(1000)
    pool["spread_nested"](data, 1000, 1e3)
    assert set(data) == {1}


def test_the_lowest_point_fails(pool: Loaded) -> None:
    for first in (0, 1, 350, 999):
        data = array(1001)
        data[0] = 1000
        for k in range(first, 1000, 37):
            data[1 + k] = 100
        assert pool["failing"](data) == first
        assert all(data[1 : 1 + first])
        data = array(1000)
        pool["spread"](data, 1000, 1e9)
        assert set(data) == {1}


def test_workers_end_and_start_again(pool: Loaded) -> None:
    for _ in range(3):
        data = array(100)
        pool["spread"](data, 100, 1e9)
        pool["end_workers"]()
        assert set(data) == {1}
        assert pool["workers"]() == 0


def test_a_forked_process_has_workers_of_its_own(pool: Loaded) -> None:
    data = array(100)
    pool["spread"](data, 100, 1e9)
    child = os.fork()
    if child == 0:
        data = array(100)
        pool["spread"](data, 100, 1e9)
        pool["end_workers"]()
        os._exit(0 if set(data) == {1} else 1)
    assert os.waitpid(child, 0)[1] == 0
    pool["spread"](data, 100, 1e9)
    assert set(data) == {2}


def test_several_threads_of_a_host_share_the_pool(pool: Loaded) -> None:
    arrays = [array(1000) for _ in range(4)]

    def run(data: ctypes.Array) -> None:
        for _ in range(50):
            pool["spread"](data, 1000, 1e3)

    threads = [threading.Thread(target=run, args=(data,)) for data in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(set(data) == {50} for data in arrays)


def test_processors_that_we_may_use(pool: Loaded) -> None:
    assert 1 <= pool["processors"]() <= len(os.sched_getaffinity(0))
