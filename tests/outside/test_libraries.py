"""`dpl build --lib`: shared libraries and their headers, used by C."""

from __future__ import annotations

from pathlib import Path

import pytest
from building import done, failed, needs_cc, written
from conftest import ROOT

pytestmark = needs_cc

MODEL = """
-- | A line with slope and offset.
type line = { w : float; b : float }
type (n, m) layer = { weights : f32[m, n]; bias : f32[m] }
let base = [1.0, 2.0, 3.0]

-- | Mean squared error */ over the points.
export let loss (p : line) (xs : float[n]) (ys : float[n]) : float = mean ((p.w * xs + p.b - ys) ** 2)
export let gradient (p : line) (xs : float[n]) (ys : float[n]) : line = grad (fun p -> loss p xs ys) p
export let apply (l : (n, m) layer) (x : f32[n]) : f32[m] = l.weights @ x + l.bias
export let swap (l : (n, n) layer) (x : f32[n]) : (n, n) layer = { weights = transpose l.weights; bias = x }
export let add_base (x : float[3]) : float[3] = x + base
export let filled (n : int) : float[?] = fill n 1.5
export let pair ((a, b) : float * i32) : i32 * float * bool = (b, a, a > 1.0)
export let greet (name : string) : string = "hello " ++ name
export let both (a : u8[n]) (b : u8[m]) : u8[n + m] = a ++ b
export let depth (n : int) : int = let rec go n = if n = 0 then 0 else 1 + go (n - 1) in go n
export let leave (code : int) : unit = Sys.exit code
let calls = ref 0
let kept = ref [0.0, 0.0]
export let count () : int = calls := !calls + 1; !calls
export let keep (x : float[2]) : unit = kept := x
export let given () : float[2] = !kept
export let constant : float[3] = 2.0 * base
"""

CALLS = r"""
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "model.h"
#define EXPECT(e) do { if (!(e)) { printf("line %d: %s\n%s\n", __LINE__, #e, model_message()); return 1; } } while (0)

static void *work(void *place) {
    double xs[] = {0, 1, 2}, ys[] = {1, 3, 5}, loss;
    model_line p = {2, *(double *)place};
    for (int i = 0; i < 2000; i++)
        if (model_loss(&p, xs, 3, ys, 3, &loss) || fabs(loss - (p.b - 1) * (p.b - 1)) > 1e-12) return "wrong";
    int64_t count;
    for (int i = 1; i <= 10; i++)
        if (model_count(&count) || count != i) return "not a world of its own";
    if (model_loss(&p, xs, 3, ys, 2, &loss) != MODEL_CHECK || !strstr(model_message(), "2 is not 3")) return "no error";
    return NULL;
}

int main(void) {
    double xs[] = {0, 1, 2}, ys[] = {1, 3, 5}, loss;
    model_line p = {1, 1}, g;
    EXPECT(model_loss(&p, xs, 3, ys, 3, &loss) == 0 && fabs(loss - 5.0 / 3) < 1e-12);
    EXPECT(model_gradient(&p, xs, 3, ys, 3, &g) == 0 && fabs(g.w + 10.0 / 3) < 1e-12 && fabs(g.b + 2) < 1e-12);

    float w[] = {1, 2, 3, 4, 5, 6}, b[] = {10, 20}, x[] = {1, 1, 1}, room[2] = {0}, *to = room;
    int64_t n = 2;
    model_layer l = {w, 2, 3, b, 2};
    EXPECT(model_apply(&l, x, 3, &to, &n) == 0 && to == room && room[0] == 16 && room[1] == 35);
    n = 3;
    EXPECT(model_apply(&l, x, 3, &to, &n) == MODEL_CHECK && strstr(model_message(), "of the result: 2 is not 3"));
    EXPECT(model_apply(&l, x, 2, &to, &n) == MODEL_CHECK && strstr(model_message(), "size n of `x`: 2 is not 3"));
    l.bias_m = 3;
    EXPECT(model_apply(&l, x, 3, &to, &n) == MODEL_CHECK && strstr(model_message(), "size m of `bias` of `l`"));
    EXPECT(model_apply(&l, x, -1, &to, &n) == MODEL_NEGATIVE && model_apply(&l, NULL, 3, &to, &n) == MODEL_ARGUMENT);

    /* results where arguments are */
    float sw[] = {1, 2, 3, 4}, sb[] = {5, 6}, sx[] = {7, 8};
    model_layer s = {sw, 2, 2, sb, 2};
    EXPECT(model_swap(&s, sb, 2, &s) == 0 && sw[1] == 3 && sw[2] == 2 && sb[0] == 5);
    EXPECT(model_swap(&s, sx, 2, &s) == 0 && sw[1] == 2 && sw[2] == 3 && sb[1] == 8);

    double *made = NULL;
    EXPECT(model_filled(1000, &made, &n) == 0 && n == 1000 && made[999] == 1.5);
    made[0] = 2;
    EXPECT(model_filled(1000, &made, &n) == 0 && made[0] == 1.5);
    model_free(made);
    made = NULL;
    EXPECT(model_filled(0, &made, &n) == 0 && n == 0);
    model_free(made);
    model_free(NULL);
    EXPECT(model_filled(-1, &made, &n) == MODEL_NEGATIVE);
    made = NULL;
    EXPECT(model_add_base(xs, &made) == 0 && made[2] == 5);
    model_free(made);

    int32_t first; double second; bool third;
    EXPECT(model_pair(1.5, -3, &first, &second, &third) == 0 && first == -3 && second == 1.5 && third);
    char *text = NULL;
    EXPECT(model_greet("w\0rld", 5, &text, &n) == 0 && n == 11 && !memcmp(text, "hello w\0rld", 11));
    model_free(text);
    uint8_t left[] = {1, 2}, right[] = {255}, *joined = NULL;
    EXPECT(model_both(left, 2, right, 1, &joined, &n) == 0 && n == 3 && joined[2] == 255);
    model_free(joined);

    int64_t depth;
    EXPECT(model_depth(1000000, &depth) == 0 && depth == 1000000);
    EXPECT(model_leave(3) == MODEL_EXIT && strstr(model_message(), "3"));

    /* what a reference keeps is not the caller's memory */
    double transient[] = {1, 2};
    EXPECT(model_keep(transient) == 0);
    transient[0] = 9;
    made = NULL;
    EXPECT(model_given(&made) == 0 && made[0] == 1 && made[1] == 2);
    model_free(made);
    made = NULL;
    EXPECT(model_constant(&made) == 0 && made[2] == 6);
    made[2] = 7;
    double *again = NULL;
    EXPECT(model_constant(&again) == 0 && again[2] == 6);
    model_free(made);
    model_free(again);

    pthread_t threads[8];
    double places[8];
    for (int i = 0; i < 8; i++) {
        places[i] = i;
        pthread_create(&threads[i], NULL, work, &places[i]);
    }
    for (int i = 0; i < 8; i++) {
        void *said;
        pthread_join(threads[i], &said);
        EXPECT((said ? puts(said) : 0) == 0);
    }
    puts("all is well");
    return 0;
}
"""


def library(dpl, folder: Path, text: str = MODEL) -> str:
    """The header."""
    run = dpl("build", "--lib", written(folder, text), cwd=folder)
    assert run.returncode == 0 and run.stdout == "libmodel.so\nmodel.h\n", run.stderr
    return (folder / "model.h").read_text()


def test_calls_from_c(dpl, tmp_path) -> None:
    library(dpl, tmp_path)
    program = written(tmp_path, CALLS, "calls.c")
    done(["cc", "-Wall", "-Wextra", "-Werror", program, "-o", "calls", "-L.", "-lmodel", "-Wl,-rpath,.", "-lm",
          "-pthread"], tmp_path)  # fmt: skip
    assert done([tmp_path / "calls"], tmp_path).stdout == "all is well\n"


MANY = r"""
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include "model.h"

static void *work(void *place) {
    double *made = NULL;
    int64_t n;
    if (model_filled(2000, &made, &n) || model_depth(5000, &n)) return place;
    model_free(made);
    return NULL;
}

int main(void) {
    struct rusage used;
    for (int i = 0; i < 2000; i++) {
        pthread_t thread;
        void *said;
        if (pthread_create(&thread, NULL, work, &used) || pthread_join(thread, &said) || said) return 1;
        if (i == 200 || i == 1999) {
            getrusage(RUSAGE_SELF, &used);
            printf("%ld\n", used.ru_maxrss);
        }
    }
    return 0;
}
"""


def test_threads_leave_nothing_behind(dpl, tmp_path) -> None:
    library(dpl, tmp_path)
    program = written(tmp_path, MANY, "many.c")
    done(["cc", program, "-o", "many", "-L.", "-lmodel", "-Wl,-rpath,.", "-lm", "-pthread"], tmp_path)
    early, late = map(int, done([tmp_path / "many"], tmp_path).stdout.split())
    assert late < early + 4000  # kilobytes; each thread touches more than 100


def test_the_header(dpl, tmp_path) -> None:
    header = library(dpl, tmp_path)
    assert "/* loss (p : line) (xs : float[n]) (ys : float[n]) : float\n * Mean squared error * / over" in header
    assert "typedef struct model_layer {\n  float *weights;\n  int64_t weights_m;\n  int64_t weights_n;" in header
    assert "int32_t model_filled(int64_t n, double **result, int64_t *result_0);" in header
    assert dpl("build", "--emit", "header", "-o", "-", tmp_path / "model.dp").stdout == header
    program = written(
        tmp_path, '#include "model.h"\n#include "model.h"\nint main() { return model_count(nullptr); }\n', "m.cc"
    )
    done(["cc", "-fsyntax-only", "-Wall", "-Werror", "-std=c++17", program], tmp_path)


def test_it_shows_nothing_else(dpl, tmp_path) -> None:
    library(dpl, tmp_path)
    symbols = [
        line.split()[-1]
        for line in done(["nm", "-D", "--defined-only", "libmodel.so"], tmp_path).stdout.split("\n")
        if line
    ]
    assert symbols and all(symbol.startswith("model_") for symbol in symbols)


WORDS = """
type words = { class : float; double : int[n] }
export let new (w : words) : words = w
export let many (this : float) (result : float) (this_ : float) : float * float = (this - this_, result)
"""
USES = r"""
#include "words.h"
int main() {
    double a, b;
    words_words w = {1.5, nullptr, 0}, v = {};
    return words_many(3, 4, 1, &a, &b) || a != 2 || b != 4 || words_new(&w, &v) || v.class_ != 1.5;
}
"""


def test_names_that_are_words_of_c(dpl, tmp_path) -> None:
    """They have an underscore more; what would be declared twice is refused."""
    text = WORDS.replace("type words", "type (n) words").replace(": words", ": (n) words")
    run = dpl("build", "--lib", written(tmp_path, text, "words.dp"), cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    written(tmp_path, USES, "uses.cc")
    done(["cc", "-std=c++17", "-Wall", "-Werror", "uses.cc", "-o", "uses", "-L.", "-lwords", "-Wl,-rpath,."], tmp_path)
    done([tmp_path / "uses"], tmp_path)
    for name, what in (("free", "a function of every library"), ("line", "a type")):
        text = f"type line = {{ w : float }}\nexport let {name} (p : line) : line = p\n"
        failed(dpl("build", "--lib", written(tmp_path, text, "twice.dp"), cwd=tmp_path), 1, "error[E0570]", what)
    assert not (tmp_path / "libtwice.so").exists()


def test_training_from_c(dpl, tmp_path) -> None:
    example = ROOT / "examples" / "embed"
    assert dpl("build", "--lib", example / "curve.dp", cwd=tmp_path).returncode == 0
    done(["cc", "-Wall", "-Werror", example / "train.c", "-I.", "-L.", "-lcurve", "-Wl,-rpath,.", "-lm", "-o", "train"],
         tmp_path)  # fmt: skip
    out = done([tmp_path / "train"], tmp_path).stdout
    first, last = (float(line.split()[-1]) for line in (out.split("\n")[0], out.split("\n")[4]))
    assert first > 1.0 and last < 0.005
    assert "learnt: -0.9" in out and "error[R0703]: size n of `x`: 1 is not 2" in out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("let f (x : float) : float = x\n", ["exports nothing", "export let f"]),
        ("export let f (x : float list) : float = 1.0\n", ["`f` cannot be", "`x` is a float list", "model.dp:1:12"]),
        ("export let f (g : float -> float) : float = g 1.0\n", ["float -> float"]),
        ("export let f (x : (float * float)[n]) : float = 1.0\n", ["array of float * float"]),
        ("export let f' (x : float) : float = x\n", ["no name in C"]),
        ("export let f x = x + 1.0\n", ["E0215"]),
    ],
    ids=["nothing", "list", "function", "array of pairs", "name", "no annotation"],
)  # fmt: skip
def test_what_cannot_be_exported(dpl, tmp_path, text, words) -> None:
    failed(dpl("build", "--lib", written(tmp_path, text), cwd=tmp_path), 1, *words)
    assert not (tmp_path / "libmodel.so").exists()
