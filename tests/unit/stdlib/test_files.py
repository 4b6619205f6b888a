"""Data's files against NumPy's, and its messages; Sys."""

from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def evaluate(dpl, tmp_path: Path):
    """The output of a program in a folder of its own; `{}` in it stands for that folder."""

    def run(program: str, *args: str, engine: str = "interp"):
        file = tmp_path / "program.dp"
        file.write_text(program.replace("{}", str(tmp_path)), encoding="utf-8")
        return dpl("run", "--engine", engine, file, *args)

    return run


@pytest.mark.parametrize("dtype", ["<f8", "<f4", "<i8", "<i4", "<i2", "i1", "<u8", "<u4", "<u2", "u1", "bool"])
def test_read_npy_of_every_type(evaluate, tmp_path: Path, dtype: str) -> None:
    np.save(tmp_path / "a.npy", np.array([0, 1, 100], dtype=dtype))
    want = "[0.0, 1.0, 1.0]\n" if dtype == "bool" else "[0.0, 1.0, 100.0]\n"
    assert evaluate('do print (Data.read_npy "{}/a.npy")').stdout == want


@pytest.mark.parametrize("engine", ["interp", "native"])
def test_read_npy_of_higher_rank(evaluate, tmp_path: Path, engine: str) -> None:
    np.save(tmp_path / "m.npy", np.arange(6.0).reshape(2, 3) - 2.5)
    np.save(tmp_path / "t.npy", np.arange(4.0).reshape(1, 2, 2))
    run = evaluate('do print (Data.read_npy2 "{}/m.npy")\ndo print (Data.read_npy3 "{}/t.npy")', engine=engine)
    assert run.stdout == "[[-2.5, -1.5, -0.5], [0.5, 1.5, 2.5]]\n[[[0.0, 1.0], [2.0, 3.0]]]\n", run.stderr


@pytest.mark.parametrize("engine", ["interp", "native"])
def test_write_npy(evaluate, tmp_path: Path, engine: str) -> None:
    writing = 'do Data.write_npy "{}/a.npy" [0.1, -2.5, inf]\ndo Data.write_npy2 "{}/m.npy" [[1.0, 2.0], [3.0, 4.0]]'
    run = evaluate(writing, engine=engine)
    assert run.returncode == 0, run.stderr
    assert np.load(tmp_path / "a.npy").tolist() == [0.1, -2.5, np.inf]
    assert np.load(tmp_path / "m.npy").tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("array", [np.ones((2, 2), dtype="c16"), np.ones((2, 2, 2))])
def test_npy_that_cannot_be_read(evaluate, tmp_path: Path, array: np.ndarray) -> None:
    np.save(tmp_path / "bad.npy", array)
    run = evaluate('do print (Data.read_npy2 "{}/bad.npy")')
    assert run.returncode == 1
    assert "bad.npy: " in run.stderr


def test_npy_cut_off(evaluate, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones(4))
    whole = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(whole[:-1])
    run = evaluate('do print (Data.read_npy "{}/a.npy")')
    assert (run.returncode, "cut off" in run.stderr) == (1, True)


@pytest.mark.parametrize(
    "sizes", ["9223372036854775807,", "4294967296, 4294967296", "1152921504606846977, 8", "-4, -1"]
)
def test_npy_that_says_more_than_it_has(evaluate, tmp_path: Path, sizes: str) -> None:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({sizes}), }}".ljust(117) + "\n"
    (tmp_path / "a.npy").write_bytes(
        b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(32)
    )
    run = evaluate(f'do print (Data.read_npy{"" if sizes.endswith(",") else "2"} "{{}}/a.npy")', engine="native")
    assert run.returncode == 1 and "R0706" in run.stderr and "a.npy: " in run.stderr, run.stderr


@pytest.mark.parametrize("engine", ["interp", "native"])
def test_npy_without_rows(evaluate, tmp_path: Path, engine: str) -> None:
    np.save(tmp_path / "m.npy", np.ones((0, 3)))
    np.save(tmp_path / "t.npy", np.ones((2, 0, 5)))
    sizes = "let sizes (a : float[n, m]) = (n, m)\nlet sizes3 (a : float[n, m, k]) = (n, m, k)\n"
    writing = 'do Data.write_npy2 "{}/w.npy" (transpose m)'
    reading = 'let m = Data.read_npy2 "{}/m.npy"\ndo print (sizes m, sum m, sizes3 (Data.read_npy3 "{}/t.npy"))\n'
    run = evaluate(sizes + reading + writing, engine=engine)
    assert run.stdout == "((0, 3), [0.0, 0.0, 0.0], (2, 0, 5))\n", run.stderr
    assert np.load(tmp_path / "w.npy").shape == (3, 0)


@pytest.mark.parametrize(
    "text",
    ["a,b\n1,2\n3,4\n", "1,2\n3,4", "1, 2 \r\n3, 4\r\n", "\n1,2\n\n3,4\n\n"],
    ids=["header", "no end", "windows", "empty lines"],
)
def test_read_csv(evaluate, tmp_path: Path, text: str) -> None:
    (tmp_path / "t.csv").write_text(text, newline="")
    run = evaluate('do print (Data.read_csv "{}/t.csv")')
    assert run.stdout == "[[1.0, 2.0], [3.0, 4.0]]\n", run.stderr


@pytest.mark.parametrize(
    "row, problem",
    [
        ("5,x", ", column 2: 'x' is not a number"),
        ("5,6,7", ": 3 numbers"),
        ("5", ": 1 number, where"),
        ("5;6", "and separators other"),
    ],
)
def test_csv_errors_name_file_and_line(evaluate, tmp_path: Path, row: str, problem: str) -> None:
    (tmp_path / "t.csv").write_text(f"a,b\n1,2\n{row}\n")
    run = evaluate('do print (Data.read_csv "{}/t.csv")')
    assert run.returncode == 1
    assert "t.csv, line 3" in run.stderr
    assert problem in run.stderr


def test_text_files(evaluate, tmp_path: Path) -> None:
    run = evaluate(
        'do Data.write_text "{}/t.txt" "one\\ntwö\\n"\n'
        'do print (Data.read_lines "{}/t.txt")\n'
        'do print_string (Data.read_text "{}/t.txt")\n'
        'do Data.write_csv "{}/t.csv" [[1.0, 2.5]]\n'
        'do print_string (Data.read_text "{}/t.csv")\n'
    )
    assert run.stdout == '["one"; "twö"]\none\ntwö\n1.0,2.5\n', run.stderr


@pytest.mark.parametrize("engine", ["interp", "native"])
def test_lines_end_as_they_may(evaluate, tmp_path: Path, engine: str) -> None:
    texts = ["", "\n", "\n\n", "a", "a\r\n\r\nbc\n", "a\r", "a\rb\r\r\n", "x\n\r", "ö\né"]
    for i, text in enumerate(texts):
        (tmp_path / f"{i}.txt").write_bytes(text.encode())
    shown = r'let shown line = "<" ++ String.replace "\u{d}" "R" line ++ ">"'
    prints = (f'do print_string (String.join "" (List.map shown (Data.read_lines "{{}}/{i}.txt")) ++ "\\n")'
              for i in range(len(texts)))  # fmt: skip
    folded = (f'do assert (List.rev (Data.fold_lines (fun all line -> line :: all) [] "{{}}/{i}.txt") '
              f'= Data.read_lines "{{}}/{i}.txt")' for i in range(len(texts)))  # fmt: skip
    run = evaluate("\n".join([shown, *prints, *folded]), engine=engine)
    assert run.returncode == 0, run.stderr
    lines = (text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else [] for text in texts)
    assert run.stdout.splitlines() == ["".join(f"<{line}>" for line in of_text).replace("\r", "R") for of_text in lines]


@pytest.mark.parametrize("engine", ["interp", "native"])
def test_sys(evaluate, engine: str) -> None:
    run = evaluate(
        "do print Sys.args\n"
        'do print (Sys.env "NO_SUCH_VARIABLE_HERE")\n'
        "do print (Sys.time () > 1.7e9)\n"
        'do Sys.progress "not shown: no terminal"\n'
        "do if length [1] = 1 then Sys.exit 3\n"
        'do print "never"\n',
        "a b",
        "-x",
        engine=engine,
    )
    assert run.stdout == '["a b"; "-x"]\nNone\ntrue\n'
    assert (run.returncode, run.stderr) == (3, "")


LINES = """
do print_string "name? "
let rec rest lines = match Sys.read_line () with | Some line -> rest (lines ++ [line;]) | None -> lines
do print (rest [])
"""


@pytest.mark.parametrize("engine", ["interp", "native"])
def test_lines_of_standard_input(dpl, tmp_path: Path, engine: str) -> None:
    (tmp_path / "lines.dp").write_text(LINES)
    run = dpl("run", "--engine", engine, tmp_path / "lines.dp", stdin="one\n\nzwölf\n" + 300 * "x" + "\nlast")
    assert run.stdout == f'name? ["one"; ""; "zwölf"; "{300 * "x"}"; "last"]\n', run.stderr


OPTIONS = """
let (files, option) = Sys.options [("rate", "0.1", "of learning"); ("plot", "", "a file for the picture")]
do print (files, option "rate", option "plot")
"""


@pytest.mark.parametrize(
    ("words", "code", "shown"),
    [
        (["a", "--rate", "2", "b"], 0, '(["a"; "b"], "2", "")'),
        (["--plot=x=y", "--rate=1", "--rate=3", "--", "--help"], 0, '(["--help";], "3", "x=y")'),
        (["--help"], 0, "--rate 0.1 "),
        (["--rat", "1"], 1, "there is no option --rat"),
        (["--rate"], 1, "the option --rate wants a value"),
    ],
)
def test_options(evaluate, words: list[str], code: int, shown: str) -> None:
    run = evaluate(OPTIONS, *words, engine="interp")
    assert run.returncode == code
    assert shown in (run.stderr if code else run.stdout)


FORMS = [
    "1", "-0.0", "+2.5", "1e5", "-1E-5", ".5", "5.", "inf", "-nan", "1e400", "1e-400", "0.1", "5e-324", "1e22", "1e23",
    "123456789012345678901234567890", "9007199254740993", "9007199254740993.0", "1.7976931348623157e308",
    "00000000000000000000000001.5", "1e0000001", "1e00000001",
]  # fmt: skip


@pytest.mark.parametrize("engine", ["interp", "native"])
def test_numbers_of_a_table_are_rounded_once(evaluate, tmp_path: Path, engine: str) -> None:
    random = np.random.default_rng(7)
    numbers = [repr(x) for x in (random.standard_normal(200) * 10.0 ** random.integers(-30, 30, 200)).tolist()]
    cells = [*FORMS, *numbers, *(f"{float(x):.7g}" for x in numbers)]
    (tmp_path / "t.csv").write_text("\r\n".join(f" {cell} , {cell}\t" for cell in cells), encoding="utf-8")
    shown = evaluate('do print (show [for row in Data.read_csv "{}/t.csv" -> row[1]])', engine=engine).stdout
    bits = [np.float64(cell).view(np.uint64) for cell in cells]
    got = [np.float64(word).view(np.uint64) for word in shown.strip("[]\n").split(", ")]
    assert [x for x, cell in zip(got, cells, strict=True) if "nan" not in cell] == [
        x for x, cell in zip(bits, cells, strict=True) if "nan" not in cell
    ]


@pytest.mark.parametrize("engine", ["interp", "native"])
def test_headers_and_empty_lines_of_a_table(evaluate, tmp_path: Path, engine: str) -> None:
    for text, want in [
        ("x,y\n1,2\n\n  \n3,4", "[[1.0, 2.0], [3.0, 4.0]]"),
        ("\n1,2\n", "[[1.0, 2.0]]"),
        ("1,2\n3,\n", "t.csv, line 2, column 2: a cell without a number"),
        ("1,2\n3\n", "t.csv, line 2: 1 number, where the lines before have 2"),
        ("1,NA\n3,4\n", "t.csv, line 1, column 2: 'NA' is not a number"),  # no header: a row would be lost
        ('"1,000",2\n', "t.csv, line 1, column 1: "),
        ("x\r1\r2", "t.csv, line 1, column 1: "),
        (",x\n1,2\n", "[[1.0, 2.0]]"), ('"x","y"\n1,2\n', "[[1.0, 2.0]]"),
        ("\xa01,2\n3,4\n", "[[1.0, 2.0], [3.0, 4.0]]"),
        ("", "[]"), ("a,b\n", "[]"),
    ]:  # fmt: skip
        (tmp_path / "t.csv").write_text(text, encoding="utf-8")
        done = evaluate('do print (Data.read_csv "{}/t.csv")', engine=engine)
        assert want in done.stdout + done.stderr
