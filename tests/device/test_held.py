"""`dpl.load` with a device: arrays stay there between calls, and are shared with other libraries."""

from __future__ import annotations

import gc
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dpl as package
import numpy as np
import pytest
from dplc.embed import held
from dplc.embed.load import LoadedModel
from stand_in import Server

pytestmark = pytest.mark.skipif(not shutil.which("cc") or sys.platform != "linux", reason="needs a C compiler, Linux")

MODEL = """
type (n, m) pair = { w : float[n, m]; b : float[m] }
export let step (w : float[n, m]) (x : float[n, m]) : float[n, m] =
  [for i < n -> [for j < m -> w[i, j] - 0.5 * x[i, j]]]
export let first (w : float[n, m]) : float[m] = w[0]
export let same (w : float[n, m]) : float[n, m] = w
export let at (w : float[n, m]) (i : int) : float = w[i, 0]
export let flip (b : bool[n]) : bool[n] = [for x in b -> not x]
export let both (p : (n, m) pair) : (n, m) pair = { w = 2.0 * p.w; b = p.b + 1.0 }
export let energy (w : float[n, m]) : float = sum [for i < n -> w[i, 0] * w[i, 0]]
"""


class Device:
    """A model on the stand-in, and what was copied and launched."""

    def __init__(self, model: LoadedModel, log: Path) -> None:
        self.model, self.log, self.seen = model, log, 0

    def happened(self) -> list[str]:
        """What was done since the last question, without waiting."""
        lines = [line for line in self.log.read_text(encoding="utf-8").splitlines() if not line.startswith("wait")]
        new, self.seen = [line.split()[0] for line in lines[self.seen :]], len(lines)
        return new


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Device]:
    folder = tmp_path_factory.mktemp("device")
    server = Server(folder)
    (folder / "model.dp").write_text(MODEL, encoding="utf-8")
    more = {"DPL_DEVICE_LEAST": "1", "DPL_STAND_IN_LOG": str(folder / "log"), "DPL_CACHE": str(cache)}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**server.environment, **more}.items():
            patch.setenv(name, value)
        yield Device(package.load(folder / "model.dp", device="gpu"), folder / "log")
    assert not server.complaints()
    server.close()


W, X = np.arange(12.0).reshape(3, 4), np.ones((3, 4))


def test_arrays_stay(device: Device) -> None:
    m = device.model
    a = m.step(W, X)
    assert isinstance(a, held.Held) and (a.shape, a.dtype, a.ndim, len(a)) == ((3, 4), np.float64, 2, 3)
    assert repr(a) == "<float[3, 4] of a DPL model>"
    device.happened()
    b = m.step(m.step(a, a), a)
    assert device.happened() == ["launch", "launch"]
    assert np.array_equal(b, (W - 0.5) * 0.0) and np.array_equal(a, W - 0.5)
    assert device.happened() == ["down", "down"]
    assert b[0, 1] == 0.0 and a.numpy().tolist() == (W - 0.5).tolist()
    assert device.happened() == []


def test_results_that_are_arguments(device: Device) -> None:
    m = device.model
    a = m.step(W, X)
    assert np.array_equal(m.same(a), W - 0.5) and np.array_equal(m.first(a), W[0] - 0.5)
    assert np.array_equal(m.same(W), W) and m.same(W).numpy() is not W
    assert m.at(a, 2) == 7.5 and m.energy(a) == float(np.sum((W[:, 0] - 0.5) ** 2))
    made = m.both({"w": a, "b": np.zeros(4)})
    assert np.array_equal(made.w, 2 * W - 1) and np.array_equal(made.b, np.ones(4))
    assert np.array_equal(m.flip([True, False]), [False, True])
    assert np.array_equal(m.flip(m.flip(np.array([True, False]))), [True, False])
    assert m.step(np.zeros((0, 4)), np.zeros((0, 4))).numpy().shape == (0, 4)


def test_other_threads_call(device: Device) -> None:
    made: list[held.Held] = []
    thread = threading.Thread(target=lambda: made.append(device.model.step(W, X)))
    thread.start()
    thread.join()
    assert np.array_equal(device.model.step(made[0], X), W - 1.0)


def test_derivatives_take_them_as_they_are(device: Device) -> None:
    a = device.model.step(W, X)
    device.happened()
    slope = device.model.grad("energy")(a)
    assert device.happened() == ["launch", "launch"]  # the gradient, whose zeros become positive in the second one
    assert np.array_equal(slope, np.column_stack([2 * a[:, 0], np.zeros((3, 3))]))


class Foreign:
    """An array of another library, by CUDA's array interface."""

    def __init__(self, array: Any, **changes: Any) -> None:
        self.array, self.changes = array, changes

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.array.__cuda_array_interface__, **self.changes}


class Exchanged:
    """An array of another library, by DLPack."""

    def __init__(self, array: held.Held) -> None:
        self.array, self.streams = array, []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __dlpack__(self, stream: int | None = None) -> Any:
        self.streams.append(stream)
        return self.array.__dlpack__()


@pytest.mark.parametrize("kind", [Foreign, Exchanged])
def test_arrays_of_others_are_not_copied(device: Device, kind: type) -> None:
    m = device.model
    a = m.step(W, X)
    device.happened()
    b, same = m.step(kind(a), kind(a)), m.same(kind(a))
    assert device.happened() == ["launch"]
    assert np.array_equal(b, 0.5 * (W - 0.5)) and np.array_equal(a, W - 0.5)
    assert same.__cuda_array_interface__["data"] != a.__cuda_array_interface__["data"]
    assert np.array_equal(same, a)


def test_dlpack_waits_for_our_stream(device: Device) -> None:
    a = Exchanged(device.model.step(W, X))
    device.model.same(a)
    assert len(a.streams) == 1 and a.streams[0] > 2


def test_what_does_not_fit(device: Device) -> None:
    m = device.model
    a = m.step(W, X)
    for changes, said in (
        ({"typestr": "<f4"}, r"f32\[3, 4\]"), ({"strides": (8, 24)}, "side by side"),
        ({"shape": (12,)}, "1 dimensions"), ({"mask": a}, "masked"),
    ):  # fmt: skip
        with pytest.raises(package.Error, match=said):
            m.same(Foreign(a, **changes))
    with pytest.raises(package.Error, match=r"bool\[n\]"):
        m.flip(a)


def test_memory_is_given_back(device: Device) -> None:
    m = device.model
    kept = m.step(W, X)
    capsule = kept.__dlpack__()
    from dplc.embed.dlpack import SHARED

    assert len(SHARED) == 1
    del capsule
    assert not SHARED
    holder, block = kept.holder, kept.block
    del kept
    gc.collect()
    assert block in holder.dropped
    holder.tidy()
    assert not holder.dropped


def test_the_host_takes_them_too(device: Device, tmp_path: Path) -> None:
    (tmp_path / "other.dp").write_text("export let twice (x : float[n, m]) : float[n, m] = x + x\n", encoding="utf-8")
    other = package.load(tmp_path / "other.dp")
    assert np.array_equal(other.twice(device.model.step(W, X)), 2 * W - 1)


def test_without_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.dp").write_text(MODEL, encoding="utf-8")
    monkeypatch.setenv("DPL_CUDA", "/nowhere/libcuda.so.1")
    with pytest.raises(package.Error, match="R0511"):
        package.load(tmp_path / "model.dp", device="gpu")
    with pytest.raises(ValueError, match="cpu, gpu, auto"):
        package.load(tmp_path / "model.dp", device="tpu")
    a = package.load(tmp_path / "model.dp", device="auto").step(W, X)
    assert not hasattr(a, "__cuda_array_interface__") and a.__dlpack_device__() == (1, 0)
    assert np.array_equal(np.from_dlpack(a), W - 0.5)
