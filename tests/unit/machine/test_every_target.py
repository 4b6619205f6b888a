"""Every machine that `dpl build --target` knows: programs, libraries and all of the runtime library become objects.

No linker is needed for that; `tests/outside/test_targets.py` runs them."""

import re
from functools import cache
from itertools import permutations

import pytest
from dpl.diagnostics import Bug
from dpl.source import Source
from dplc.machine.entry.executable import executable_text, narrow
from dplc.machine.entry.library import library_text
from dplc.machine.llvm import target
from dplc.machine.llvm.api import parsed
from dplc.machine.object import assemble
from dplc.machine.rtl import parse
from dplc.machine.runtime import library as runtime
from dplc.pipeline import Context, compile_to

PROGRAM = """
let product (a : float[n, m]) (b : float[m, k]) = a @ b
let main (words : string list) =
  print words;
  Data.write_text "there" $"{3.14159:.3f} {1e-300} {1.5f32}";
  print (map (fun x -> exp (sin x) / 3.0) [0.0, 1.0, Sys.time ()]);
  print (grad (fun x -> sum (sum (tanh (product x (transpose x))))) [[0.1, 0.2], [0.3, 0.4]]);
  print (Linalg.solve [[2.0, 1.0], [1.0, 3.0]] [1.0, 2.0]);
  print (List.rev [("a", 1); ("b", 2)], [Some [1.0, 2.0], None], words = ["a"; "b"]);
  print (String.length (Data.read_text "there"), 7 % List.length words);
  Sys.exit ([1, 2][List.length words])
do main Sys.args
export let half (x : float[n]) (name : string) : float[n] * string = (x / 2.0, name ++ "!")
"""
MAGIC = {
    "linux": b"\x7fELF",
    "musl": b"\x7fELF",
    "windows": b"\x64\x86",
    "macos": b"\xcf\xfa\xed\xfe",
    "wasi": b"\0asm",
}


@cache
def compiled(library: bool):
    context = Context(library=library)
    _, program = compile_to("reference_counts", Source("program.dp", PROGRAM), context)
    return program, context.exports


def object_of(text: str, where: target.Target) -> bytes:
    """Accepted by LLVM's verifier; little is optimised, which takes long."""
    with parsed(text) as module:
        return where.machine(0).emit_object(module)


@pytest.mark.parametrize("name", target.TRIPLES)
def test_executables(name: str) -> None:
    where = target.to_build(name, None)
    text, _ = executable_text(compiled(library=False)[0], where)
    assert object_of(text, where).startswith(MAGIC[where.system])


@pytest.mark.parametrize("name", [name for name in target.TRIPLES if name != "wasm32"])
def test_libraries(name: str) -> None:
    where = target.to_build(name, None)
    program, exports = compiled(library=True)
    for per_thread in (True, False):
        text, _ = library_text(program, exports, "program", where, per_thread)
        assert object_of(text, where).startswith(MAGIC[where.system])


@pytest.mark.parametrize("name", target.TRIPLES)
def test_all_of_the_runtime_library(name: str) -> None:
    """Whatever a program may mention: what the files define for a system means something there."""
    where = target.to_build(name, None)
    target.start_all()
    source = runtime.source(where.system)
    own = [symbol for symbol in source.symbols if symbol.startswith("rt.")]
    text = assemble.module(runtime.library_for(where)(" ".join(f"@{symbol}" for symbol in own)), where)
    with parsed(narrow(text) if where.arch == "wasm32" else text) as module:
        made = set(re.findall(r'(?m)^define [^\n]*?@"?([\w.$]+)', module.text()))
    assert made >= {symbol for symbol in own if source.symbols[symbol] in source.functions}


def test_a_system_says_it_otherwise_once() -> None:
    """Two files of one system must not define one name, nor two of those that are for all."""
    one = "@extern\ndef malloc(size: i64) -> ptr: ...\n"
    other = "@extern\ndef malloc(size: u32) -> ptr: ...\n"
    common, own = parse.Source(), parse.Source()
    common.read(one, small=False)
    own.read(other, small=False)
    with pytest.raises(Bug, match="malloc is defined twice"):
        common.read(other, small=False)
    common.change(own)
    assert parse.declaration(common.functions["malloc"]) == "declare ptr @malloc(i32) nounwind"
    ours = parse.Source()
    ours.read("def malloc(size: i64) -> ptr:\n    return None\n", small=False)
    common.change(ours)
    assert common.symbols == {"rt.malloc": "malloc"}


VARIABLE, FUNCTION, CONSTANT = "ring: i64 = 0\n", "def ring() -> i64:\n    return 1\n", "ring = 1\n"


@pytest.mark.parametrize(("one", "other"), [*permutations((VARIABLE, FUNCTION, CONSTANT), 2)])
def test_a_name_is_of_one_kind(one: str, other: str) -> None:
    """In one file, in two, and in a system's own: what is found first would hide the other."""
    common, own = parse.Source(), parse.Source()
    with pytest.raises(Bug, match="ring is of two kinds"):
        parse.Source().read(one + other, small=False)
    common.read(one, small=False)
    own.read(other, small=False)
    with pytest.raises(Bug, match="ring is of two kinds"):
        common.change(own)
    with pytest.raises(Bug, match="ring is of two kinds"):
        own.read(one, small=False)


def test_a_variable_is_defined_once() -> None:
    common = parse.Source()
    common.read(VARIABLE, small=False)
    with pytest.raises(Bug, match="ring is defined twice"):
        common.read("ring: i64 = 1\n", small=False)
