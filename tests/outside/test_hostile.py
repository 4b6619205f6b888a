"""What comes from outside and is no value of its type: refused with a code and a message, wherever it enters."""

from __future__ import annotations

import shutil

import pytest
from building import done, failed, needs_cc, written

# ---- strings that are not UTF-8 ------------------------------------------------------------------------------------

READER = r"""
do match Sys.args with
  | ["text"; path] -> print (Data.read_text path)
  | ["write"; path] -> Data.write_text (path ++ "\u{0}x") "a"
  | ["names"; _] -> print (Sys.env "HOME\u{0}X", Sys.env "A=B")
  | ["env"; name] -> print (Sys.env name)
  | words -> print (List.map String.codes words)
"""
BROKEN = "begins no character"
ENTRIES = [
    (["ü", "x\udcf0"], f"R0509]: argument 2 of the command is not UTF-8 text: the byte at offset 1 {BROKEN}"),
    (["text", "bad.txt"], f"error[R0509]: `bad.txt` is not UTF-8 text: the byte at offset 4 {BROKEN}"),
    (["env", "BAD"], f"R0509]: the environment variable `BAD` is not UTF-8 text: the byte at offset 1 {BROKEN}"),
    (["write", "new.txt"], "error[R0506]: cannot write new.txt: a NUL character follows, and no path has one"),
]


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """A folder with the program, what it can read, and an executable once there is one."""
    folder = tmp_path_factory.mktemp("reader")
    written(folder, READER, "reader.dp")
    (folder / "bad.txt").write_bytes("ü, ".encode() + b"\xe2\x82,1\n")
    return folder


@pytest.mark.parametrize("engine", ["interp", "native"])
def test_text_for_a_program(dpl, reader, engine) -> None:
    for words, said in ENTRIES:
        run = dpl("run", "--engine", engine, "reader.dp", *words, cwd=reader, BAD="x\udcf0")
        failed(run, 1, said, *["iconv -f latin1"] * ("R0509" in said))
    run = dpl("run", "--engine", engine, "reader.dp", "names", "x", cwd=reader, **{"A": "B=c"})
    assert run.stdout == "(None, None)\n"
    assert not (reader / "new.txt").exists()


@needs_cc
def test_text_for_an_executable(dpl, reader) -> None:
    assert dpl("build", "reader.dp", cwd=reader).returncode == 0
    for words, said in ENTRIES:
        failed(done(["env", "BAD=x\udcf0", "./reader", *words], reader, code=1), 1, said)
    assert done(["env", "A=B=c", "./reader", "names", "x"], reader).stdout == "(None, None)\n"
    assert not (reader / "new.txt").exists()


def test_programs_that_are_no_text(dpl, tmp_path) -> None:
    (tmp_path / "bad.dp").write_bytes(b'do print "\xf0"\n')
    failed(dpl("run", "bad.dp", cwd=tmp_path), 1, "error[E0512]: bad.dp is not UTF-8")
    failed(dpl("run", "-e", '"\udcf0"'), 1, "error[E0512]: <expression> is not UTF-8")


# ---- every type that C can give ------------------------------------------------------------------------------------

TYPES = {
    "bool": "bool", "f16": "uint16_t", "f32": "float", "f64": "double",
    **{f"{sign}{bits}": f"{'u' * (sign == 'u')}int{bits}_t" for sign in "iu" for bits in (8, 16, 32, 64)},
}  # fmt: skip

TEXTS = """
type (n) page = { title : string; size : int; marks : bool[n] }
export let copied (s : string) : string = s
export let length (s : string) : int = String.length s
export let turned (p : (n) page) : (n) page =
  { title = p.title ++ "!"; size = p.size + 1; marks = map not p.marks }
export let both ((s, b) : string * bool) : string * bool = (s, not b)
"""


def model() -> str:
    """Each type alone, in an array, in a tuple and in a record."""
    return TEXTS + "".join(
        f"""
type (n) box_{name} = {{ one : {name}; many : {name}[n] }}
export let one_{name} (x : {name}) : {name} = x
export let many_{name} (x : {name}[n, m]) : {name}[n, m] = x
export let pair_{name} ((x, y) : {name} * {name}[2]) : {name} * {name}[2] = (x, y)
export let in_{name} (b : (n) box_{name}) : (n) box_{name} = b
"""
        for name in TYPES
    )


BEGIN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "hostile.h"
#define EXPECT(e, code, said) do { int found = (e); \
    if (found != (code) || (found && !strstr(hostile_message(), said))) { \
        printf("line %d: %s is %d: %s\n", __LINE__, #e, found, hostile_message()); exit(1); } } while (0)
#define FINE(e) EXPECT(e, 0, "")
#define REFUSED HOSTILE_ARGUMENT

static void texts(void) {
    static const char *broken[] = {"\xf0", "a\xe2\x82", "\x80", "\xed\xa0\x80", "\xc0\x80", "\xf4\x90\x80\x80", "\xff"};
    char *text = NULL;
    int64_t size, length;
    bool flag;
    for (int i = 0; i < 7; i++) {
        size_t bytes = strlen(broken[i]);
        char *exact = malloc(bytes);  /* so that valgrind knows where it ends */
        memcpy(exact, broken[i], bytes);
        EXPECT(hostile_copied(exact, bytes, &text, &size), HOSTILE_TEXT, "`s` is not UTF-8 text");
        EXPECT(hostile_length(exact, bytes, &length), HOSTILE_TEXT, "R0509");
        hostile_page p = {exact, bytes, 1, NULL, 0}, q = {0};
        EXPECT(hostile_turned(&p, &q), HOSTILE_TEXT, "`p.title`");
        EXPECT(hostile_both(exact, bytes, true, &text, &size, &flag), HOSTILE_TEXT, "R0509");
        free(exact);
    }
    FINE(hostile_length(NULL, 0, &length));
    EXPECT(hostile_length(NULL, 1, &length), REFUSED, "the data of `s` is at a null pointer");
    EXPECT(hostile_length("x", -1, &length), HOSTILE_NEGATIVE, "`s` cannot have -1");
    EXPECT(hostile_length("x", INT64_MAX, &length), REFUSED, "more elements than memory");
    EXPECT(hostile_length("x", 1, NULL), REFUSED, "`result` is a null pointer");
    EXPECT(hostile_copied("x", 1, NULL, &size), REFUSED, "`result` is a null pointer");
    EXPECT(hostile_copied("x", 1, &text, NULL), REFUSED, "`result_bytes` is a null pointer");
    hostile_page p, q = {0};
    memset(&p, 0xff, sizeof p);
    EXPECT(hostile_turned(&p, &q), HOSTILE_NEGATIVE, "`p.title` cannot have -1");
    EXPECT(hostile_turned(NULL, &q), REFUSED, "`p` is a null pointer");
    EXPECT(hostile_turned(&p, NULL), REFUSED, "`result` is a null pointer");
    bool marks[2] = {true, false};
    p = (hostile_page){"ab", 2, 7, marks, 2};
    FINE(hostile_turned(&p, &q));
    if (q.title_bytes != 3 || memcmp(q.title, "ab!", 3) || q.size != 8 || q.marks[0] || !q.marks[1]) exit(2);
    hostile_free(q.title);
    hostile_free(q.marks);
}
"""
ONE_TYPE = r"""
static void test_NAME(void) {
    static const int bytes[] = {0, 1, 2, 3, 0x7f, 0x80, 0xfe, 0xff};
    for (int i = 0; i < 8; i++) {
        int fine = !IS_BOOL || bytes[i] < 2;
        TYPE x, y, *many = malloc(6 * sizeof x), *made = NULL, two[2];
        int64_t n, m;
        memset(&x, bytes[i], sizeof x);
        memset(many, bytes[i], 6 * sizeof x);
        EXPECT(hostile_one_NAME(x, &y), fine ? 0 : REFUSED, "the boolean `x` is");
        if (fine && memcmp(&x, &y, sizeof x)) exit(3);
        EXPECT(hostile_many_NAME(many, 3, 2, &made, &n, &m), fine ? 0 : REFUSED, "element 0 of `x` is");
        if (fine && (n != 3 || m != 2 || memcmp(many, made, 6 * sizeof x))) exit(4);
        hostile_free(made);
        memset(many, 0, 5 * sizeof x);
        made = NULL;
        EXPECT(hostile_many_NAME(many, 3, 2, &made, &n, &m), fine ? 0 : REFUSED, "element 5 of `x` is");
        hostile_free(made);
        TYPE *place = two;
        EXPECT(hostile_pair_NAME(x, many, &y, &place), fine ? 0 : REFUSED, "the boolean `x_0_0` is");
        hostile_box_NAME b = {x, many, 6}, c = {0};
        EXPECT(hostile_in_NAME(&b, &c), fine ? 0 : REFUSED, "the boolean `b.one` is");
        hostile_free(c.many);
        b = (hostile_box_NAME){0, many, 6};
        c = (hostile_box_NAME){0};
        EXPECT(hostile_in_NAME(&b, &c), fine ? 0 : REFUSED, "element 5 of `b.many` is");
        hostile_free(c.many);
        free(many);
    }
    TYPE x = 0, y, *made = NULL, two[2] = {0};
    int64_t n, m;
    EXPECT(hostile_one_NAME(x, NULL), REFUSED, "`result` is a null pointer");
    FINE(hostile_many_NAME(NULL, 0, 5, &made, &n, &m));
    hostile_free(made);
    made = NULL;
    EXPECT(hostile_many_NAME(NULL, 1, 5, &made, &n, &m), REFUSED, "the data of `x` is at a null pointer");
    EXPECT(hostile_many_NAME(two, 1, -5, &made, &n, &m), HOSTILE_NEGATIVE, "`x` cannot have -5");
    EXPECT(hostile_many_NAME(two, INT64_MAX, 1, &made, &n, &m), REFUSED, "`x` has more elements than memory");
    EXPECT(hostile_many_NAME(two, 1LL << 32, 1LL << 32, &made, &n, &m), REFUSED, "`x` has more elements than memory");
    EXPECT(hostile_many_NAME(two, INT64_MIN, 0, &made, &n, &m), HOSTILE_NEGATIVE, "`x` cannot have -9223");
    EXPECT(hostile_many_NAME(two, 1, 2, NULL, &n, &m), REFUSED, "`result` is a null pointer");
    EXPECT(hostile_many_NAME(two, 1, 2, &made, NULL, &m), REFUSED, "`result_n` is a null pointer");
    EXPECT(hostile_many_NAME(two, 1, 2, &made, &n, NULL), REFUSED, "`result_m` is a null pointer");
    EXPECT(hostile_pair_NAME(x, NULL, &y, &made), REFUSED, "at a null pointer");
    EXPECT(hostile_pair_NAME(x, two, NULL, &made), REFUSED, "`result_0` is a null pointer");
    EXPECT(hostile_pair_NAME(x, two, &y, NULL), REFUSED, "`result_1` is a null pointer");
    hostile_box_NAME b = {0, NULL, 3}, c = {0};
    EXPECT(hostile_in_NAME(NULL, &c), REFUSED, "`b` is a null pointer");
    EXPECT(hostile_in_NAME(&b, NULL), REFUSED, "`result` is a null pointer");
    EXPECT(hostile_in_NAME(&b, &c), REFUSED, "the data of `b.many` is at a null pointer");
}
"""


def calls() -> str:
    each = (
        ONE_TYPE.replace("NAME", name).replace("TYPE", kind).replace("IS_BOOL", str(int(name == "bool")))
        for name, kind in TYPES.items()
    )
    main = "".join(f"    test_{name}();\n" for name in TYPES)
    return (
        BEGIN + "".join(each) + f'int main(void) {{\n    texts();\n{main}    puts("all refused");\n    return 0;\n}}\n'
    )


@needs_cc
def test_garbage_from_c(dpl, tmp_path) -> None:
    """What is no value is refused, all else passes as it is; nothing is read that nobody gave."""
    run = dpl("build", "--lib", written(tmp_path, model(), "hostile.dp"), cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    written(tmp_path, calls(), "calls.c")
    done(["cc", "-g", "-O0", "-Wall", "calls.c", "-o", "calls", "-L.", "-lhostile", "-Wl,-rpath,."], tmp_path)
    checked = ["valgrind", "-q", "--error-exitcode=9"] if shutil.which("valgrind") else []
    assert done([*checked, "./calls"], tmp_path).stdout == "all refused\n"
