"""`dpl run --nan`: which operation and which input made the first number that is not finite, in both engines."""

from pathlib import Path

import pytest
from conftest import ROOT

SESSIONS = ROOT / "tests" / "unit" / "debug" / "sessions"
ENGINES = pytest.mark.parametrize("engine", ["interp", "native"])
FOUND = {
    "length_at_zero": ("infinity in the reverse sweep, from the derivative of `sqrt`", "0.0 = sub 3.0 3.0"),
    "zero_times_infinity": ("infinity from `div`: div 1.0 0.0 = inf", "0.0 = mul 0.0 0.0"),
    "log_of_negative": ("NaN from `log`: log -0.5 = nan", "-0.5 = sub 0.5 1.0"),
}


@ENGINES
@pytest.mark.parametrize("name", FOUND)
def test_trap(dpl, engine: str, name: str) -> None:
    run = dpl("run", "--engine", engine, "-O0", "--nan", "trap", SESSIONS / f"{name}.dp")
    assert run.returncode == 1 and "error[R0601]: " in run.stderr
    assert all(text in run.stderr for text in FOUND[name]), run.stderr


SHORT = {  # f32 in data of all kinds: records, sums, records of any type; what references hold
    "record": ("type s = { x : f32; n : int }\nlet f (s : s) : s = { x = s.x / (s.x - s.x); n = s.n }\n"
               "do print (f { x = 1.0; n = 0 }).n\n", "infinity from `div`: div 1.0 0.0"),
    "sum": ("type s = Circle of f32 | Box of f16 * float | Nothing\n"
            "let f (x : f32) = if x > 0.0 then Circle (x / 0.0) else Nothing\n"
            "do print (match f 0.5 with Circle _ -> 1 | _ -> 2)\n", "infinity from `div`: div 0.5 0.0"),
    "any": ("type 'a cell = { it : 'a; n : int }\n"
            "let f (x : f32) : f32 list cell = { it = [log (x - 2.0); ]; n = 1 }\n"
            "do print (f 1.0).n\n", "NaN from `log`: log -1.0"),
    "gradient": ("type p = { x : f32; y : f32 }\nlet norm (p : p) : f32 = sqrt (p.x * p.x + p.y * p.y)\n"
                 "let slope p = grad norm p\ndo print (slope { x = 0.0; y = 0.0 })\n", "the derivative of `sqrt`"),
    "reference": ("let f (x : float) = ref (log x)\ndo print (if !(f (0.0 - 1.0)) > 0.0 then 1 else 2)\n",
                  "NaN from `log`: log -1.0"),
    "references": ("type tree = Leaf | Node of tree * (f32[2] * int) ref * tree\n"
                   "let rec grow (n : int) (x : f32) : tree =\n"
                   "  if n = 0 then Leaf else Node (grow (n - 1) (x * 2.0), ref ([x, x / 0.0], n), Leaf)\n"
                   "let rec size t = match t with Leaf -> 0 | Node (a, _, b) -> 1 + size a + size b\n"
                   "do print (size (grow 2 1.0))\n", "infinity from `div`: div 2.0 0.0"),
    "several": ("let f (n : int) = sum [for i < n -> sqrt (float (5 - i))]\ndo print (f 10)\n",
                "NaN from `sqrt`: sqrt -1.0 = nan"),
    "many": ("let f (n : int) = sum [for i < n -> sqrt (float (5 - i))]\ndo print (f 70000)\n",
             "NaN from `sqrt`: sqrt -1.0 = nan"),
}  # fmt: skip


@ENGINES
@pytest.mark.parametrize("name", SHORT)
def test_numbers_in_data(dpl, engine: str, name: str, tmp_path: Path) -> None:
    program, found = SHORT[name]
    (tmp_path / "main.dp").write_text(program)
    run = dpl("run", "--engine", engine, "-O0", "--nan", "trap", tmp_path / "main.dp")
    assert (run.returncode, run.stdout) == (1, "") and "error[R0601]: " in run.stderr, run.stderr
    assert found in run.stderr


@pytest.mark.parametrize(("e", "way"), [
    ("1.0 / (x - x)", "guard the divisor"),
    ("Stats.correlation [x, x] [1.0, 2.0]", "`div` is inside of what stands here"),
    ("grad (fun x -> (x - 1.0) ** 0.5) x", "guard the base"),
    ("(x * 1e150) ** 4.0", "the numbers grow without bound"),
    ("(loop w = 3.0 * x for i < 50 do w - 0.9 * grad (fun w -> w ** 4.0) w)", "the numbers grow without bound"),
    ("exp (x * 1000.0)", "subtract the largest exponent first, as `logsumexp` and"),
])  # fmt: skip
def test_ways_out(dpl, e: str, way: str, tmp_path: Path) -> None:
    (tmp_path / "main.dp").write_text(f"let x = 1.0\ndo print ({e})\n")
    run = dpl("run", "--engine", "interp", "--nan", "trap", tmp_path / "main.dp")
    assert run.returncode == 1 and f"help: {way}" in run.stderr, run.stderr


@ENGINES
def test_finite_programs_run_as_usual(dpl, engine: str, tmp_path: Path) -> None:
    program = tmp_path / "main.dp"
    program.write_text(
        "let rec least (xs : float[n]) (i : int) (best : float) : float =\n"
        "  if i = n then best else least xs (i + 1) (min best xs[i])\n"
        "let total (xs : float[n]) = sum (map (fun x -> 2.0 * x) xs)\n"
        "let smallest (xs : float[n]) = let r = ref inf in Array.iter (fun x -> r := min x !r) xs; !r\n"
        "do print (least [3.0, 2.0] 0 inf)\n"
        "do print (smallest [3.0, 2.0])\n"
        "do print (total [1.0, 2.0])\n"
        "do print (grad total [1.0, 2.0])\n"
    )
    run = dpl("run", "--engine", engine, "-O0", "--nan", "trap", program)
    assert (run.returncode, run.stdout, run.stderr) == (0, "2.0\n2.0\n6.0\n[2.0, 2.0]\n", "")


NO_ERRORS = {  # what a call gives counts, and what an operation made; not what is written or read
    "on the way": ("let f x = 1.0 / (1.0 + 1.0 / x)\n"
                   "let kept (x : float) = max 1.0 (sqrt x)\n"
                   "let pick (xs : float[2]) = xs[0] * xs[0] + stop_grad (1.0 / (1.0 + 1.0 / xs[1]))\n"
                   "do print (f 0.0)\ndo print (grad kept 0.0)\ndo print (grad pick [2.0, 0.0])\n",
                   "0.0\n0.0\n[4.0, 0.0]\n"),
    "written": ("type tree = Leaf | Node of tree * float * tree\n"
                "let rec least t = match t with Leaf -> inf | Node (a, x, b) -> min x (min (least a) (least b))\n"
                "let missing () = nan\n"
                "do print \"first\"\ndo print (least (Node (Leaf, 3.0, Leaf)))\ndo print (least Leaf)\n"
                "do print (map (fun x -> x / 2.0) [1.0, inf])\ndo print (missing ())\n",
                "first\n3.0\ninf\n[0.5, inf]\nnan\n"),
}  # fmt: skip


@ENGINES
@pytest.mark.parametrize("name", NO_ERRORS)
def test_what_no_operation_made_is_no_error(dpl, engine: str, name: str, tmp_path: Path) -> None:
    program, printed = NO_ERRORS[name]
    (tmp_path / "main.dp").write_text(program)
    run = dpl("run", "--engine", engine, "-O0", "--nan", "trap", tmp_path / "main.dp")
    assert (run.returncode, run.stdout, run.stderr) == (0, printed, "")


MADE = {  # after harmless ones
    "later": ("let biggest () = inf\nlet g (x : float) = log (x - 1.0)\n"
              "do print (biggest ())\ndo print (min 5.0 (1.0 / 0.0))\ndo print (g 1.0)\n", "inf\n5.0\n",
              "infinity from `log`: log 0.0 = -inf"),
    "printed": ("let far = -inf\nlet roots = [sqrt 1.0, -far]\nlet show_it (x : float) = print (sqrt x)\n"
                "do print (max 1.0 far)\ndo show_it (-1.0)\n", "1.0\n",
                "NaN from `sqrt`: sqrt -1.0 = nan\n --> main.dp:3"),
    "at the top level": ("let a = log 0.0\ndo print (max 1.0 a)\n", "", "infinity from `log`: log 0.0 = -inf"),
    "in the library": ("let volume (xs : float[2]) = prod xs\ndo print (volume [1e200, 2e200])\n", "",
                       "infinity from `mul`: mul 1e+200 2e+200 = inf\n --> main.dp:1"),
    "from infinities": ("let f (x : float) = x - x\ndo print (f inf)\n", "", "NaN from `sub`: sub inf inf = nan"),
    "tangent": ("let root (x : float) = 3.0 * sqrt x\ndo print (jvp (fun x -> root (x * x)) 0.0 1.0)\n", "",
                "NaN in forward mode, from the derivative of `sqrt`: slope of sqrt 0.0 along 0.0 = nan"),
    "series": ("do print (Ad.jet 2 (fun (x : float) -> sqrt x) 0.0)\n", "",
               "infinity in forward mode, from the derivative of `sqrt`: slope of sqrt 0.0 along 1.0 = inf"),
}  # fmt: skip


@ENGINES
@pytest.mark.parametrize("name", MADE)
def test_the_operation_that_made_it_is_named(dpl, engine: str, name: str, tmp_path: Path) -> None:
    program, printed, found = MADE[name]
    (tmp_path / "main.dp").write_text(program)
    run = dpl("run", "--engine", engine, "-O0", "--nan", "trap", "main.dp", cwd=tmp_path)
    assert (run.returncode, run.stdout) == (1, printed) and f"error[R0601]: {found}" in run.stderr, run.stderr


def test_what_cannot_run_again_ends_at_any_infinity(dpl, tmp_path: Path) -> None:
    """The interpreter would read other lines than native code has read."""
    program = tmp_path / "main.dp"
    program.write_text("let biggest () = inf\ndo print (Sys.read_line ())\ndo print (biggest ())\n")
    run = dpl("run", "-O0", "--nan", "trap", program, stdin="a line\n")
    assert run.returncode == 1 and "no operation made it" in run.stderr, run.stderr


@ENGINES
def test_tail_calls_stay_tail_calls(dpl, engine: str, tmp_path: Path) -> None:
    program = tmp_path / "main.dp"
    program.write_text(
        "let rec down (n : int) (x : float) : float = if n = 0 then x else down (n - 1) (x * 0.5)\n"
        "do print (down 30000 1.0)\n"
    )
    run = dpl("run", "--engine", engine, "-O0", "--nan", "trap", program, DPL_STACK="1")
    assert (run.returncode, run.stdout) == (0, "0.0\n"), run.stderr


def test_warn_goes_on(dpl) -> None:
    run = dpl("run", "--nan", "warn", SESSIONS / "length_at_zero.dp")
    assert (run.returncode, run.stdout) == (0, "[nan, nan, nan]\n") and "warning[W0601]" in run.stderr
    denied = dpl("--deny", "W0601", "run", "--nan", "warn", SESSIONS / "length_at_zero.dp")
    assert denied.returncode == 1
