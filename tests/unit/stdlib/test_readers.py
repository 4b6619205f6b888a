"""The readers of Data beside NumPy and zlib: what they read, and that no damaged file crashes them or takes memory.

One executable has all readers (`readers.dp`).  Each run of it may have 10 MB of addresses, 4 more than it begins with,
so a header that promises much is not believed.
"""

import gzip
import io
import itertools
import json
import os
import random
import struct
import subprocess
import sys
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT

MEMORY = 10 << 20
DIGITS = np.arange(2 * 5 * 7).reshape(2, 5, 7) % 256
rng = np.random.default_rng(1)


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory, cache: Path):
    """`readers(format, path)` runs the executable; `readers(format, data)` gives it a file of these bytes."""
    folder = tmp_path_factory.mktemp("readers")
    program = ROOT / "tests" / "unit" / "stdlib" / "readers.dp"
    command = [sys.executable, "-m", "dplc.cli", "build", str(program), "-o", str(folder / "r")]
    paths = f"{ROOT / 'lang'}{os.pathsep}{ROOT / 'compiler'}"
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": paths, "DPL_CHECK": "0"})

    def run(form: str, data: bytes) -> subprocess.CompletedProcess:
        file = folder / f"file.{form}"
        file.write_bytes(data)
        limited = ["sh", "-c", f'ulimit -v {MEMORY >> 10}; exec "$@"', "sh", folder / "r", form, file]
        return subprocess.run(limited, capture_output=True, encoding="utf-8", timeout=20)

    return run


def shown(array: np.ndarray) -> str:
    """What `readers.dp` prints of an array."""
    sizes = "; ".join(map(str, array.shape))
    numbers = ", ".join(repr(float(x)) for x in array.ravel())
    return f"([{sizes}{';' if array.ndim == 1 else ''}], [{numbers}])\n"


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npz(save: Callable = np.savez) -> bytes:
    file = io.BytesIO()
    save(file, x=np.array([1.5, -2.0]), labels=np.array([[3, 4]], "u1"))
    return file.getvalue()


def idx(array: np.ndarray, kind: int) -> bytes:
    return struct.pack(">HBB", 0, kind, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(rows: list[bytes], columns: int, bits: int, colours: int, palette: bytes = b"", parts: int = 1) -> bytes:
    """Rows of bytes, each after the number of its filter."""
    head = struct.pack(">IIBBBBB", columns, len(rows), bits, colours, 0, 0, 0)
    packed = zlib.compress(b"".join(rows))
    cuts = [len(packed) * k // parts for k in range(parts + 1)]
    data = b"".join(chunk(b"IDAT", packed[a:b]) for a, b in itertools.pairwise(cuts))
    lut = chunk(b"PLTE", palette) if palette else b""
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + lut + chunk(b"tEXt", b"a\0b") + data + chunk(b"IEND", b"")


def filtered(rows: np.ndarray, step: int, filters: list[int]) -> list[bytes]:
    """Rows of bytes with PNG's filters."""
    out, above = [], np.zeros(rows.shape[1], int)
    for row, kind in zip(rows.astype(int), filters, strict=True):
        left, corner = (np.concatenate([np.zeros(step, int), x])[: len(row)] for x in (row, above))
        guess = left + above - corner
        distances = [abs(guess - x) for x in (left, above, corner)]
        nearest = np.choose(np.argmin(distances, axis=0), [left, above, corner])
        base = [0, left, above, (left + above) // 2, nearest][kind]
        out.append(bytes([kind]) + ((row - base) % 256).astype("u1").tobytes())
        above = row
    return out


def safetensors() -> bytes:
    header = {"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
              "n": {"dtype": "I64", "shape": [], "data_offsets": [8, 16]}, "__metadata__": {"a": "b"}}  # fmt: skip
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + np.array([0.5, -1.0], "<f4").tobytes() + struct.pack("<q", -7)


TABLE = 'name,"a ""quoted"", name",x\r\nAnn, 1.5,\n\n"Bob\nand, Eve",2,-1e3\n'
JSON = {"a": [1, -2.5, True, None, 'x"\n\\é'], "b": {"c": [], "d": {}}, "e": "\U0001f600"}


# ---- what is read ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["<", ">"])
def test_npy_of_every_type_and_order(readers, order: str) -> None:
    for code in ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"):
        array = np.array([[0, 1, 100], [3, 4, 5]]).astype(np.dtype(code).newbyteorder(order))
        if code[0] in "fi":
            array = -array
        assert readers("npy", npy(array)).stdout == shown(array), code
        by_columns = np.asfortranarray(array[:, :, None].repeat(2, axis=2))
        assert readers("npy", npy(by_columns)).stdout == shown(by_columns), code


def test_npz(readers) -> None:
    want = "x\n([2;], [1.5, -2.0])\nlabels\n([1; 2], [3.0, 4.0])\n"
    assert readers("npz", npz()).stdout == readers("npz", npz(np.savez_compressed)).stdout == want


@pytest.mark.parametrize(
    ("kind", "data", "why"),
    [
        ("json", b"[1, 2,, 3]", "a value is expected, not `,` at line 1, byte 7"),
        ("json", b"[1,\n 2, ]", "no comma stands before it at line 2, byte 5"),
        ("json", b"['a']", "strings are in double quotes at line 1, byte 2"),
        ("json", b"[NaN]", "JSON has no NaN and no infinity; write null at line 1, byte 2"),
        ("idx", b"hello", "it does not begin with two bytes of 0"),
        ("idx", bytes((0, 0, 7, 1, 0, 0, 0, 1, 5)), "byte 3 is 7: IDX files have the types 8, 9 and 11 to 14 there"),
        ("idx", bytes((0, 0, 8, 3, 0, 0)), "a header with 3 sizes has 16 bytes, the file 6"),
        ("idx", bytes((0, 0, 8, 1, 0, 0, 0, 2, 5, 6, 7)), "its sizes [2;] make 2 numbers, but 3 follow"),
    ],
)
def test_what_is_wrong(readers, kind: str, data: bytes, why: str) -> None:
    run = readers(kind, data)
    assert run.returncode == 1 and why in run.stderr, run.stderr


def test_idx(readers) -> None:
    for code, kind in ((">u1", 8), (">i1", 9), (">i2", 11), (">i4", 12), (">f4", 13), (">f8", 14)):
        array = (DIGITS % 100).astype(code)
        data = idx(array, kind)
        assert readers("idx", data).stdout == readers("idx", gzip.compress(data)).stdout == shown(array), code


def test_inflate(readers) -> None:
    """Blocks of every kind, of numbers of chance, of repetitions and of little."""
    noise = rng.integers(0, 256, 2000)
    arrays = (noise, np.zeros(5000), np.tile(noise[:300], 10), np.repeat(noise[:50], 100), noise[:0])
    ways = [(0, zlib.Z_DEFAULT_STRATEGY), (1, zlib.Z_DEFAULT_STRATEGY), (9, zlib.Z_DEFAULT_STRATEGY)]
    ways += [(6, zlib.Z_HUFFMAN_ONLY), (6, zlib.Z_FIXED), (6, zlib.Z_RLE)]
    for array, (level, strategy) in itertools.product(arrays, ways):
        packer = zlib.compressobj(level, zlib.DEFLATED, 31, 9, strategy)
        data = idx(array.astype("u1"), 8)
        assert readers("idx", packer.compress(data) + packer.flush()).stdout == shown(array)


def test_png_of_every_kind(readers) -> None:
    columns = 5
    for colours, channels in ((0, 1), (2, 3), (4, 2), (6, 4)):
        for bits in (8, 16):
            rows = rng.integers(0, 256, (5, columns * channels * bits // 8))
            data = png(filtered(rows, channels * bits // 8, [0, 1, 2, 3, 4]), columns, bits, colours, parts=3)
            numbers = rows.astype("u1").view(">u2") if bits == 16 else rows
            assert readers("image", data).stdout == shown(numbers.reshape(5, columns, channels)), (colours, bits)


def test_png_of_few_bits(readers) -> None:
    palette = rng.integers(0, 256, (16, 3))
    for bits in (1, 2, 4):
        pixels = rng.integers(0, 1 << bits, (3, 9))
        packed = np.packbits((pixels[:, :, None] >> np.arange(bits)[::-1] & 1).reshape(3, -1).astype("u1"), axis=1)
        rows = [b"\0" + row.tobytes() for row in packed]
        grey = pixels * 255 // ((1 << bits) - 1)
        assert readers("image", png(rows, 9, bits, 0)).stdout == shown(grey[:, :, None])
        lut = png(rows, 9, bits, 3, palette.astype("u1").tobytes())
        assert readers("image", lut).stdout == shown(palette[pixels])


def test_netpbm(readers) -> None:
    grey = shown(np.array([[[1], [2]], [[3], [255]]]))
    assert readers("image", b"P2\n# of two\n2 2 255\n1 2\n3 255\n").stdout == grey
    assert readers("image", b"P5 2 2\n255\n\1\2\3\xff").stdout == grey
    assert readers("image", b"P5 1 1\n1000\n\1\2").stdout == shown(np.array([[[258]]]))
    colours = shown(np.array([[[1, 2, 3]]]))
    assert readers("image", b"P6\n1 1\n255\n\1\2\3").stdout == readers("image", b"P3 1 1 9 1 2 3").stdout == colours


def test_tables(readers) -> None:
    want = '("name", ["Ann", "Bob\\nand, Eve"])\n("a \\"quoted\\", name", [1.5, 2.0])\n("x", [nan, -1000.0])\n'
    assert readers("csv", TABLE.encode()).stdout == want
    assert readers("csv", b"a\n").stdout == '("a", [])\n'
    assert readers("csv", b"").stdout == ""
    for text, place in {"a,b\n1\n": 1, 'a\n"1': 1, 'a\n"1"2\n': 4, "a,b\n1,2,3\n": 5}.items():
        run = readers("csv", text.encode())
        assert run.returncode == 1 and f"file.csv, line 2, byte {place}: " in run.stderr, run.stderr


REFUSALS = {
    'Data.numbers "b" table': "the column `b` has texts, not only numbers: 'x' in row 2",
    'Data.numbers "c" table': "there is no column `c`; the table has a, b, a",
    'Data.numbers "a" table': "there are 2 columns `a`; List.nth takes one by its place",
    'Data.numbers "a" [("a;b", Data.Numbers [1.0]);]': "but one only, `a;b`: is the separator another?",
    'Data.read_table "," "t.csv"': "not 't.csv'; it comes second",
    'Data.write_table "t.csv" "," [("a", Data.Numbers []); ("b", Data.Texts ["x"])]': "1 cell in the column `b`, but 0",
    'Data.write_image "t.jpg" [[[0.0]]]': "'t.jpg' ends neither in .png nor in .pgm or .ppm",
    "Plot.boxes [[1.0]; []]": "Plot.boxes: sample 2 has no finite number",
    "Plot.contour 0 [0.0] [0.0] [[1.0]]": "a contour has 0 levels; one or more",
    'Plot.animate "t.svg" 0.0 [Plot.bars [1.0];]': "animated pictures: 0.0 seconds for each; more than 0",
}


def test_wrong_uses_are_told(dpl) -> None:
    table = 'let table = [("a", Data.Numbers [1.0]); ("b", Data.Texts ["1", "x"]); ("a", Data.Numbers [2.0])]\n'
    for use, why in REFUSALS.items():
        run = dpl("run", "--engine", "interp", "-", stdin=f"{table}let _ = {use}\n")
        assert run.returncode == 1 and why in run.stderr, run.stderr


def test_json(readers) -> None:
    for dump in (json.dumps(JSON), json.dumps(JSON, indent=1, ensure_ascii=False), " [1e2, 0.5E-1, -0]\r\n"):
        run = readers("json", dump.encode())
        assert json.loads(run.stdout) == json.loads(dump), run.stderr
    wrong = (
        '{"a" 1}',
        "[1,]",
        "01",
        "1.",
        "-",
        '"\\x"',
        '"\\ud800"',
        "[1] 2",
        "nul",
        '"a\nb"',
        "{1: 2}",
        "",
        "[" * 5000,
    )
    for text in wrong:
        run = readers("json", text.encode())
        assert run.returncode == 1 and "file.json: not JSON: " in run.stderr, (text, run.stdout)


# ---- what is written, and what becomes of data ---------------------------------------------------------------------


def test_written_files(dpl, tmp_path: Path) -> None:
    """What Python reads of them, and what the readers read again."""
    program = """
let path name = "{}/" ++ name
let t = Tensor.make Bytes.I16 [2; 2] [1.0, -2.4, 3.6, 40000.0]
do Data.write_array (path "t.npy") t
do Data.write_npz (path "a.npz") [("t", t); ("v", Tensor.of_vector [0.5])]
do print (List.map (fun (_, t) -> Tensor.ints t) (Data.read_npz (path "a.npz")))
do Data.write_table (path "t.csv") "," [("na,me", Data.Texts ["x \\"y\\"", "z"]); ("k", Data.Numbers [1.5, nan])]
do print (Data.read_table (path "t.csv") ",")
do Data.write_image (path "g.png") [[[0.0], [0.5]], [[1.0], [2.0]]]
do Data.write_image (path "g.ppm") [[[0.0, 0.2, 1.0]]]
do print (Tensor.numbers (Data.read_image (path "g.png")), Tensor.numbers (Data.read_image (path "g.ppm")))
""".replace("{}", str(tmp_path))
    run = dpl("run", "--engine", "interp", "-", stdin=program)
    assert run.stdout == (
        "[[1, -2, 4, 32767]; [0]]\n"
        '[("na,me", Texts ["x \\"y\\"", "z"]); ("k", Numbers [1.5, nan])]\n'
        "([0.0, 128.0, 255.0, 255.0], [0.0, 51.0, 255.0])\n"
    ), run.stderr
    assert np.load(tmp_path / "t.npy").tolist() == [[1, -2], [4, 32767]]
    arrays = np.load(tmp_path / "a.npz")
    assert (arrays["t"].dtype, arrays["v"].tolist()) == (np.int16, [0.5])
    assert (tmp_path / "t.csv").read_text() == '"na,me",k\n"x ""y""",1.5\nz,\n'
    assert (tmp_path / "g.ppm").read_bytes() == b"P6\n1 1\n255\n\x00\x33\xff"


def test_parts_words_and_scalings(dpl) -> None:
    program = """
let xs = Data.shuffle (Random.key 1) (range 100)
do print (xs <> range 100, sort xs = range 100)
do print (Data.split 0.3 [1, 2, 3], Data.batches 2 [1, 2, 3], Data.full_batches 2 [1, 2, 3, 4, 5], Data.batches 3 [1])
let v = Data.vocabulary 2 (String.words "b a c a b a")
do print (v.words, Data.encode v ["a"; "c"; "b"], Data.decode v [1, 0])
let rows = [[1.0, 5.0], [3.0, 5.0]]
let s = Data.scaling rows
do print (s, Data.scaled s rows, Data.unscaled s (Data.scaled s rows) = rows)
let half = f32 rows
do print (Data.scaled (Data.scaling half) half)
"""
    run = dpl("run", "--engine", "interp", "-", stdin=program)
    assert run.stdout == (
        "(true, true)\n"
        "(([1], [2, 3]), [[1, 2]; [3]], [[1, 2], [3, 4]], [[1];])\n"
        '(["?", "a", "b"], [1, 0, 2], ["a"; "?"])\n'
        "({ centre = [2.0, 5.0]; scale = [1.0, 1.0] }, [[-1.0, 0.0], [1.0, 0.0]], true)\n"
        "[[-1.0, 0.0], [1.0, 0.0]]\n"
    ), run.stderr


# ---- damaged files --------------------------------------------------------------------------------------------------

FILES = {
    "csv": [TABLE.encode(), b"a;b\n" * 50],
    "table": [b"a,b\n1,2\n3.5,-4e5\n" * 3],
    "json": [json.dumps(JSON).encode()],
    "npy": [npy(np.arange(6.0).reshape(2, 3)), npy(np.asfortranarray(np.ones((2, 2, 2), ">i2")))],
    "npz": [npz(), npz(np.savez_compressed)],
    "idx": [idx(DIGITS.astype("u1"), 8), gzip.compress(idx(DIGITS.astype("u1"), 8))],
    "image": [
        png(filtered(DIGITS.reshape(10, 7), 1, [0, 1, 2, 3, 4] * 2), 7, 8, 0),
        png([b"\0\x1b"] * 2, 4, 2, 3, bytes(range(12))),
        b"P5 2 2\n255\n\1\2\3\xff",
        b"P2\n2 2 255\n1 2\n3 255\n",
    ],
    "safetensors": [safetensors()],
}  # fmt: skip
CHECKED = ("npz",)  # a damaged file of these has a wrong check sum


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Some bytes changed, left out, doubled or cut off; and numbers of sizes set to extremes."""
    out = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(len(out) + 1)
        match chance.randrange(6):
            case 0:
                out[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                del out[at : at + chance.choice((1, 2, 10))]
            case 2:
                out[at:at] = out[at : at + chance.choice((1, 4, 20))]
            case 3:
                del out[at:]
            case 4:
                out[at : at + 4] = chance.choice((b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", bytes(4), b"\0\0\0\x80"))
            case _:
                out[at:at] = chance.choice((b"9" * 18, b"-", b'"', b",", b"\n", b"\0"))
    return bytes(out)


def plain(form: str, data: bytes) -> object:
    """What Python's readers make of a file, or None if they refuse it or there is none."""
    try:
        if form == "json":
            return json.loads(data.decode("utf-8"), parse_constant=lambda _: 1 / 0)
        if form == "npy":
            with warnings.catch_warnings(action="ignore"):  # about old headers
                return shown(np.load(io.BytesIO(data)))
    except Exception:
        return None
    return None


def survives(readers, form: str, count: int, seed: int) -> None:
    chance = random.Random(f"{form} {seed}")
    for k in range(count):
        whole = chance.choice(FILES[form])
        data = mutated(whole, chance)
        run = readers(form, data)
        said = f"{form}, seed {seed}, file {k}: {data!r}\n{run.stdout[-500:]}{run.stderr[-500:]}"
        assert run.returncode in (0, 1), said
        if run.returncode == 1:
            assert "error" in run.stderr and "memory" not in run.stderr, said
        elif form in CHECKED and run.stdout:
            assert run.stdout in readers(form, whole).stdout, said
        elif (want := plain(form, data)) is not None:
            assert (run.stdout if form == "npy" else json.loads(run.stdout)) == want, said


@pytest.mark.parametrize("form", FILES)
def test_damaged_files(readers, form: str) -> None:
    survives(readers, form, 50, 1)


@pytest.mark.slow
@pytest.mark.parametrize("form", FILES)
def test_many_damaged_files(readers, form: str) -> None:
    survives(readers, form, 1000, 2)


ITEMS = ["1", "[1,2]", "[312,456]", "[[[1]]]", '"ab"', '"abcdefgh"', '{"a":1}', '{"name":"x","age":456}', "{}", "1.456"]


@pytest.mark.parametrize("item", ITEMS)
def test_json_takes_at_most_ten_times_its_file(readers, item: str) -> None:
    """A list of short values in 4 MB: numbers in it are made different from each other."""
    items = itertools.count(100)
    texts = [item.replace("456", str(next(items) % 1000)) for _ in range(400_000 // (len(item) + 1))]
    run = readers("items", f"[{','.join(texts)}]".encode())
    assert run.stdout == f"{len(texts)}\n", run.stderr


def test_no_bomb(readers) -> None:
    """Sizes that the bytes of a file cannot have are refused before there is memory for them."""
    for form, data in {
        "idx": struct.pack(">HBB3I", 0, 8, 3, 60000, 60000, 60000) + bytes(100),
        "npy": npy(np.zeros(3)).replace(b"(3,)", b"(9999999999,)"[:4]),
        "image": b"P5 30000 30000\n255\n" + bytes(100),
    }.items():
        run = readers(form, data)
        assert run.returncode == 1 and "memory" not in run.stderr, run.stderr
    noise = rng.integers(0, 256, 30000).astype("u1")
    for array, said in (np.zeros(1000, "u1"), 2000000000), (noise, 30000000):
        packed = gzip.compress(idx(array, 8))[:-4] + struct.pack("<I", said)
        run = readers("idx", packed)
        assert run.returncode == 1 and "file.idx: " in run.stderr and "memory" not in run.stderr


def test_what_is_compressed_most(readers) -> None:
    """Room for what comes out grows in blocks of each kind."""
    array = np.zeros(20000, "u1")
    array[:3000:7] = 1
    array[-100:] = rng.integers(0, 256, 100)  # not compressed
    data = idx(array, 8)
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    start = packer.compress(data[:-100]) + packer.flush(zlib.Z_FULL_FLUSH)
    whole = start + packer.compress(data[-100:]) + packer.flush()
    fixed = zlib.compressobj(9, zlib.DEFLATED, 31, 9, zlib.Z_FIXED)
    for packed in whole, fixed.compress(data) + fixed.flush():
        assert len(data) > 40 * len(packed)
        assert readers("idx", packed).stdout == shown(array)
