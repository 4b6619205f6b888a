"""The debugger's answers as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dpl.core import ty as t
from dpl.debug.debugger import Debugger, Stop
from dpl.debug.flows import contributions
from dpl.debug.inspect import Frame, Variable, resumed, running_sweeps
from dpl.debug.machine import Captured
from dpl.debug.nonfinite import Origin
from dpl.debug.points import Place
from dpl.debug.sweeps import Part, Row, Sweep, largest, rows
from dpl.debug.values import short_number, strip, type_text
from dpl.debug.why import chain, node_line, operations, recorded
from dpl.eval.code.sites import shown_name
from dpl.eval.values.active import Node
from dpl.eval.values.scalar import FIT
from dpl.eval.values.structure import leaves
from dpl.source import Span

AROUND = 4  # lines of a listing on each side
MOST_FRAMES = 20
MOST_PARTS = 8
LONGEST = 4  # of turns: what comes again and again
MOST_TURNS = 5  # in a chain


def stop(debugger: Debugger, stopped: Stop) -> str:
    """Why and where the program has stopped."""
    frame = debugger.frame()
    why = f"{stopped.text}\n" if stopped.text else ""
    if frame is None or stopped.reason == "end":
        return why.rstrip("\n") or "at the start of the program"
    return f"{why}{where(debugger, frame)}\n{excerpt(frame.place.span)}"


def where(debugger: Debugger, frame: Frame) -> str:
    """A call and its place; a reverse sweep has a level, too."""
    level = f" (level {debugger.level(frame.sweep)})" if frame.sweep else ""
    return f"{frame.name}{level}, {place(frame)}"


def place(frame: Frame) -> str:
    span = frame.place.span
    return f"{span.source.name}:{span.line}"


def excerpt(span: Span, around: int = 0) -> str:
    """A line of the source, with those around it; a mark is at the line itself."""
    source, here = span.source, span.line
    last = min(here + around, len(source.starts))
    width = len(str(last))
    return "\n".join(
        f"{'>' if n == here else ' '} {n:>{width}} | {source.line(n)}".rstrip()
        for n in range(max(1, here - around), last + 1)
    )


def stack(debugger: Debugger) -> str:
    """The calls, innermost first, with their arguments at the sizes that these have."""
    earlier = debugger.tail_calls()
    frames = debugger.frames()
    lines: list[str] = []
    for i, f in enumerate(frames[:MOST_FRAMES]):
        mark = ">" if i == debugger.selected else " "
        lines.append(f"{mark} {i}  {where(debugger, f)}  {arguments(debugger, f)}".rstrip())
        lines += tail_calls(earlier.before(f)) if earlier else ()
    if len(frames) > MOST_FRAMES:
        lines.append(f"  ... {len(frames) - MOST_FRAMES} more")
    lines += continuations(debugger)
    return "\n".join(lines) or f"the program has {'ended' if debugger.run.ended else 'not started'}"


def tail_calls(places: Sequence[Place]) -> list[str]:
    """The tail calls that led to a frame, newest first; calls that alternate are said once."""
    calls = [f"       {shown_name(p.point.function.name)}, {p.span.source.name}:{p.span.line}" for p in places]
    lines = [f"     … {len(calls)} tail call{'s' * (len(calls) > 1)}:"] if calls else []
    for at, length, times in turns(calls):
        turn = calls[at : at + length]
        lines += turn if times == 1 else [*turn[:-1], f"{turn[-1]}  ({times} times)"]
    return lines


def turns(items: Sequence[object]) -> Iterator[tuple[int, int, int]]:
    """What comes again and again in a row: where it begins, how long it is, and how often it comes."""
    at = 0
    while at < len(items):
        times, length = max((repeats(items, at, length), -length) for length in range(1, LONGEST + 1))
        yield at, -length, times
        at -= times * length


def repeats(items: Sequence[object], at: int, length: int) -> int:
    """How often the next items come in a row."""
    turn, found = items[at : at + length], 1
    while items[at + found * length : at + (found + 1) * length] == turn and len(turn) == length:
        found += 1
    return found


def arguments(debugger: Debugger, frame: Frame) -> str:
    return ", ".join(argument(debugger, v) for v in frame.arguments())


def argument(debugger: Debugger, v: Variable) -> str:
    """An argument with its type; numbers have their value, too."""
    value = f" = {debugger.describer.brief(v.value, v.ty)}" if isinstance(v.ty, t.Con) and v.ty.name in FIT else ""
    return f"{v.name} : {type_text(v.ty)}{value}"


def continuations(debugger: Debugger) -> list[str]:
    """The continuations that the program is in: where each was captured."""
    found = resumed(debugger.run, debugger.position().k)
    return [f"     in {captured(taken)}" for taken in found]


def captured(value: Captured) -> str:
    span = value.place.span if value.place else None
    return f"a continuation captured at {span.source.name}:{span.line}" if span else "a continuation"


def variables(debugger: Debugger, found: Iterable[Variable]) -> str:
    """A line for each variable, by kind."""
    lines: list[str] = []
    for kind in ("argument", "local", "captured", "reference"):
        of_kind = [v for v in found if v.kind == kind]
        lines += [f"{kind}s:"] if of_kind else []
        lines += [f"  {variable(debugger, v)}" for v in of_kind]
    return "\n".join(lines) or "no variables here"


def variable(debugger: Debugger, v: Variable) -> str:
    """A variable with its type and its value, on one line."""
    text = captured(v.value) if isinstance(v.value, Captured) else debugger.describer.brief(v.value, v.ty)
    return f"{v.name} : {type_text(v.ty)} = {text}"


# ---- derivatives ----------------------------------------------------------------------------------------------------


def parts(debugger: Debugger, text: str) -> str:
    """What has flowed to a value, the largest first."""
    value, _ = debugger.evaluate(text)
    sweeps = running_sweeps(debugger.run)
    if not sweeps:
        return "no reverse sweep runs here"
    found = largest(contributions(value, sweeps[0]))
    index = {id(leaf): i for i, leaf in enumerate(leaves(value))}
    lines = [part_line(part, to, index, sweeps[0]) for part, to in found[:MOST_PARTS]]
    more = [f"... {len(found) - MOST_PARTS} more"] if len(found) > MOST_PARTS else []
    return "\n".join(lines + more) or "nothing has flowed to it yet"


def part_line(part: Part, to: Node, index: dict[int, int], sweep: Sweep) -> str:
    number = index.get(id(to))
    element = f"[{number}] " if number is not None and len(index) > 1 else ""
    if part.source is None:
        return f"{element}{short_number(part.value)}  where the sweep began"
    made = part.source.place
    through = f"{node_line(part.source)}{said_at(made.span if made else None)}"
    return f"{element}{short_number(part.value)}  through {through}"


def sweep(debugger: Debugger) -> str:
    """The lines that the running sweep has passed, with magnitudes."""
    sweeps = running_sweeps(debugger.run)
    if not sweeps:
        return "no reverse sweep runs here"
    now = sweeps[0]
    step, x, _ = debugger.run.state
    done = x if step is debugger.run.machine.sweep_step else None
    found = rows(now, done)
    depth = [row.cotangent for row in rows(now, done, by_visit=True)]
    head = f"level {debugger.level(now)}: {done if done is not None else len(now.nodes)} of {len(now.nodes)} operations"
    return "\n".join([head, "   line  visits  |value|  |cotangent|  ", *map(row_text, found),
                      f"by depth: {strip(depth)}" if depth else ""]).rstrip()  # fmt: skip


def row_text(row: Row) -> str:
    notes = [f"{row.zeros} zeros"] * bool(row.zeros) + [f"{row.bad} not finite"] * bool(row.bad)
    notes += [f"{row.kinks} at a kink"] * bool(row.kinks)
    about = f"  ({', '.join(notes)})" if notes else ""
    return f"{row.line:>7}  {row.visits:>6}  {row.value:>7.3g}  {row.cotangent:>11.3g}  {row.text}{about}"


# ---- why ------------------------------------------------------------------------------------------------------------


def why(debugger: Debugger, text: str) -> str:
    """The operations that made the value of an expression, newest first."""
    if text.startswith("d "):
        return f"a derivative is a sum of what has flowed there:  parts {text[2:].lstrip()}"
    records = recorded(debugger.run)
    frame = debugger.frame()
    scope = {v.name: v.value for v in frame.variables()} if frame else {}
    value = scope[text] if text in scope else debugger.evaluate(text)[0]
    made = operations(records, value)
    return "\n".join(f"{m.line}{said_at(m.place.span if m.place else None)}" for m in made) or (
        f"`{text}` is an input: no operation made it"
    )


def origin_chain(debugger: Debugger, origin: Origin) -> str:
    """The shortest chain from the first number that is not finite to the inputs that caused it."""
    found = chain(debugger.run, origin)
    links = [f"  from {text}{said_at(span)}" for text, span in found]
    lines = [f"{origin.title}{said_at(origin.place.span if origin.place else None)}"]
    for at, length, times in turns([span for _, span in found]):
        shown = links[at : at + times * length]
        if times > MOST_TURNS:
            shown[2 * length : -length] = [f"  ... {times - 3} times more"]
        lines += shown
    return "\n".join(lines)


def said_at(span: Span | None) -> str:
    return f"   {span.source.name}:{span.line}  {' '.join(span.text.split())[:60]}" if span else ""
