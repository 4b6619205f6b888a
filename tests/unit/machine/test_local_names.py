"""Names of local variables in debug information, which is made only on request."""

import re

from dpl.source import Source
from dplc.flat.local_names import LocalNames
from dplc.machine.entry.executable import executable_text
from dplc.machine.llvm.target import to_build
from dplc.pipeline import Context, compile_to

PROGRAM = """
let rec depth n =
  if n <= 0 then 0.0
  else
    let (q, r) = (n / 2, n % 2) in
    let y = depth q + float r in
    let y = y * 2.0 in
    y + 0.5

let scaled xs k =
  let doubled = [for x in xs -> x * 2.0] in
  let result = sum doubled * k in
  result

let n = List.length Sys.args
do print (depth n, scaled [for i < n -> float i] (float n))
"""


PULLBACK = """
let step xs = List.map (fun x -> if x < 0.5 then 2.0 * x else x * x) xs
let f xs = List.fold (fun s x -> s + x) 0.0 (loop xs = xs for i < 3 do step xs)
let (y, back) = vjp f [0.25; 0.75]
do print y
do print (List.map back [0.5; 4.0])
"""


def text(names: LocalNames | None, of: str = PROGRAM) -> str:
    _, program = compile_to("reference_counts", Source("names.dp", of), Context(names=names))
    return executable_text(program, to_build("x86_64-linux", None), names)[0]


def variables(made: str) -> dict[str, list[str]]:
    """The numbers of the variables of each name."""
    found: dict[str, list[str]] = {}
    for node, name in re.findall(r'^(!\d+) = !DILocalVariable\(name: "(\w+)"', made, re.MULTILINE):
        found.setdefault(name, []).append(node)
    return found


def test_names_are_those_of_the_program():
    made = text(LocalNames())
    known = variables(made)
    assert {"n", "q", "r", "y", "result"} <= known.keys()
    assert known.keys() <= {"n", "q", "r", "y", "xs", "k", "doubled", "result", "i", "x"}
    scopes = [re.findall(rf"^{node} = .*scope: (!\d+)", made, re.MULTILINE)[0] for node in known["y"]]
    assert len(scopes) == len(set(scopes)) > 1  # each is seen in a text of its own


def test_values_stay_in_the_frame():
    made = text(LocalNames(stay=True))
    (node,) = variables(made)["q"]
    (slot,) = re.findall(rf"#dbg_value\(ptr (%v\d+), {node}, !DIExpression\(DW_OP_deref\)", made)
    assert re.search(rf"^  store i64 %v\d+, ptr {slot}$", made, re.MULTILINE)


def test_what_a_pullback_keeps_has_no_name():
    """Its type is known only when the function has been differentiated."""
    assert "back" not in variables(text(LocalNames(), PULLBACK))


def test_without_a_request():
    assert "DILocalVariable" not in text(None) and "#dbg" not in text(None)
