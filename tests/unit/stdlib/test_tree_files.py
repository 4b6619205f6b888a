"""Tree.save and Tree.load: what Python's library for safetensors reads and writes, and what is refused."""

import json
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

PARAMETERS = """
type tree = Leaf of float | Node of tree * tree
type vec = V of float[2]
type layer = { w : float[2, 3]; b : f32[2]; steps : int; on : bool; name : string }
let all w b steps name =
  ( [{ w; b; steps; on = steps > 0; name };], Node (Leaf (float b[0]), Leaf 2.5), [V [1.0, 2.0]], 200u8,
    f16 0.5, Some (steps, name), -7i8, (zeros 0 : float[0]), -1i16, 70000i32, 65535u16, 4000000000u32, max_int )
let saved = all [[0.1, -0.0, inf], [4.0, 5e-324, 6.0]] [1.1f32, -2.5f32] (-3) "x"
"""


def header(tensors: dict, data: bytes = b"") -> bytes:
    text = json.dumps(tensors).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensor(dtype: str, shape: list[int], *offsets: int) -> dict:
    return {"dtype": dtype, "shape": shape, "data_offsets": list(offsets)}


@pytest.mark.parametrize("engine", ["interp", "native"])
def test_round_trip_and_the_library_of_python(dpl, tmp_path: Path, engine: str) -> None:
    path = tmp_path / "p.safetensors"
    program = PARAMETERS + (
        f'let like = all (fill 2 (zeros 3)) [0.0f32, 0.0f32] 0 "x"\ndo Tree.save "{path}" saved\n'
        f'do print (Tree.load "{path}" like = saved)\ndo print (Tree.names saved)\n'
    )
    run = dpl("run", "--engine", engine, "-", stdin=program)
    assert run.stdout.startswith("true\n"), run.stderr
    names = json.loads(run.stdout.splitlines()[1].replace(";", ","))
    library = pytest.importorskip("safetensors.numpy", reason="the extra dev has safetensors")
    tensors = library.load_file(path)
    assert sorted(tensors) == sorted(names)
    w = tensors["0.0.w"]
    assert (w.dtype, w.tolist(), np.signbit(w[0, 1])) == (np.float64, [[0.1, 0.0, np.inf], [4.0, 5e-324, 6.0]], True)
    assert tensors["1.Node.0.Leaf"] == np.float64(np.float32(1.1))
    assert [tensors[name].dtype.name for name in ("0.0.b", "0.0.on", "2.0.V", "3", "4", "6", "7", "8")] == [
        "float32", "bool", "float64", "uint8", "float16", "int8", "float64", "int16",
    ]  # fmt: skip
    assert [tensors[name].tolist() for name in ("0.0.steps", "6", "8", "9", "10", "11", "12", "7")] == [
        -3, -7, -1, 70000, 65535, 4000000000, 2**63 - 1, [],
    ]  # fmt: skip


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler `cc`")
def test_executables_save_and_load(dpl, tmp_path: Path) -> None:
    path, program = tmp_path / "p.safetensors", tmp_path / "main.dp"
    program.write_text(PARAMETERS + (
        f'let like = all (fill 2 (zeros 3)) [0.0f32, 0.0f32] 0 "x"\ndo Tree.save "{path}" saved\n'
        f'do print (Tree.load "{path}" like = saved)\n'
    ))  # fmt: skip
    assert dpl("build", program, "-o", tmp_path / "main").returncode == 0
    run = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "true\n"), run.stderr


def test_files_of_python(dpl, tmp_path: Path) -> None:
    """Numbers of narrower floats fit into wider ones."""
    library = pytest.importorskip("safetensors.numpy", reason="the extra dev has safetensors")
    path = tmp_path / "p.safetensors"
    arrays = {"w": np.array([[0.5, -2.0]], "f2"), "b": np.array([3.25], "f4"), "n": np.array(-5)}
    library.save_file(arrays, path, metadata={"made": "by Python"})
    program = (
        "type p = { w : f32[1, 2]; b : float[1]; n : int }\n"
        f'do print (Tree.load "{path}" {{ w = [[0.0f32, 0.0f32]]; b = [0.0]; n = 0 }})'
    )
    assert dpl("run", "--engine", "interp", "-", stdin=program).stdout == "{ w = [[0.5, -2.0]]; b = [3.25]; n = -5 }\n"


BAD = {
    "cut off": (b"\x01\x02", "cut off: it has 2 of the 8 bytes"),
    "long header": (struct.pack("<Q", 1 << 63) + b"{}", "cut off in its header"),
    "no JSON": (struct.pack("<Q", 2) + b"{,", "not JSON"),
    "no UTF-8": (struct.pack("<Q", 2) + b"\xff}", "a header that is not UTF-8"),
    "no object": (struct.pack("<Q", 2) + b"[]", "no JSON object"),
    "deep": (struct.pack("<Q", 9000) + b"[" * 9000, "inside each other"),
    "no tensor": (header({"other": tensor("F64", [2], 0, 16)}, bytes(16)), "no tensor `w`; the file has other"),
    "another shape": (header({"w": tensor("F64", [4], 0, 32)}, bytes(32)), "the sizes [4], where the value has [2]"),
    "another rank": (header({"w": tensor("F64", [1, 2], 0, 16)}, bytes(16)), "has the sizes [1, 2]"),
    "another type": (header({"w": tensor("I64", [2], 0, 16)}, bytes(16)), "has the type I64, where the value has F64"),
    "unknown type": (header({"w": tensor("C64", [2], 0, 16)}, bytes(16)), "elements of type C64 are not supported"),
    "short data": (header({"w": tensor("F64", [2], 0, 16)}, bytes(15)), "it has 15 bytes of numbers, and these"),
    "wrong offsets": (header({"w": tensor("F64", [2], 0, 8)}, bytes(16)), "8 bytes, where its sizes need 16"),
    "huge": (header({"w": tensor("F64", [1 << 40, 1 << 40], 0, 16)}, bytes(16)), "the file is cut off"),
    "negative": (header({"w": tensor("F64", [-2], 0, 16)}, bytes(16)), "not a whole number"),
    "fraction": (header({"w": tensor("F64", [2], 0, 1.5)}, bytes(16)), "not a whole number"),
    "more": (
        header({"w": tensor("F64", [2], 0, 16), "v": tensor("U8", [1], 16, 17)}, bytes(17)),
        "the value has no place for the tensor `v`",
    ),
}  # fmt: skip


def test_refused(dpl, tmp_path: Path) -> None:
    """Each file ends the program with a message that names it."""
    for name, (data, message) in BAD.items():
        path = tmp_path / f"{name}.safetensors"
        path.write_bytes(data)
        program = f'type p = {{ w : float[2] }}\ndo print (Tree.load "{path}" {{ w = [0.0, 0.0] }})'
        run = dpl("run", "--engine", "interp", "-", stdin=program)
        assert (run.returncode, run.stdout) == (1, ""), name
        assert message in run.stderr and str(path) in run.stderr, (name, run.stderr)
