"""For the profiler every instruction knows its place, those of loops that passes have made, too."""

from dpl.source import NOWHERE, Source, Span
from dplc.flat.places import Inlined, outermost
from dplc.machine.emit.llvm import emit_text
from dplc.machine.emit.module.debug import has_no_location
from dplc.pipeline import Context, compile_to

NEAREST = """let points = [for i < 2000 -> [for j < 2 -> sin (float (i * (j + 3)))]]
let cost centres = sum [for p in points -> minimum [for c in centres -> sum ((p - c) ** 2)]]
do print (grad cost [for i < 4 -> points[i]])
"""


def test_joined_loops_have_places() -> None:
    _, program = compile_to("reference_counts", Source("main.dp", NEAREST), Context())
    text, _ = emit_text(program, placed=True)
    functions = [part.partition("\n}")[0].split("\n") for part in text.split("\ndefine ")]
    lines = [line for head, *body in functions if '@"dpl par.' in head and " points " not in head for line in body]
    assert len(lines) > 200
    assert sum(map(has_no_location, lines)) < len(lines) / 5


def test_a_loop_is_at_its_own_operations() -> None:
    """Not at those of functions that were inlined into it: the function of the last one had the time of the loop."""
    text = Source("main.dp", "let tick () = 1 + 1\nlet x = 2 * 3")
    own = Span(text, 28, 33)
    inside = Inlined(text, 14, 19, "tick", own)
    assert outermost([inside, own, Span(text, 28, 29), inside]) is own
    assert outermost([]) == NOWHERE
