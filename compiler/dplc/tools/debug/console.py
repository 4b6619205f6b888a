"""The commands of `dpl debug`: one method each, with its help as docstring.

A command may be shortened as long as it is clear which is meant; `b c d n o p q r s u w` mean one each.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from dpl.core import ty as t
from dpl.debug import graph
from dpl.debug.breakpoints import Breakpoint, Refused
from dpl.debug.debugger import MOVES, Debugger
from dpl.debug.inspect import running_sweeps
from dpl.debug.values import type_text
from dpl.diagnostics import DplError
from dpl.source import Span

from dplc.tools.debug import show
from dplc.tools.files import put

SHORT = {
    "b": "break", "c": "continue", "d": "delete", "n": "next", "o": "out", "p": "print", "q": "quit", "r": "restart",
    "s": "step", "u": "until", "w": "watch", "bt": "where", "l": "list", "h": "help", "rc": "rcontinue",
    "rs": "rstep", "rn": "rnext", "ro": "rout", "i": "locals", "info": "breakpoints", "run": "continue",
}  # fmt: skip
CLAUSE = re.compile(r"\s+(if|hits|log)(?:\s+|$)")

WANTED = {"if": "a condition", "hits": "a number", "log": "a text"}


class Leave(Exception):
    """The user leaves the debugger."""


class Console:
    def __init__(self, debugger: Debugger, say: Callable[[str], object]) -> None:
        self.debugger = debugger
        self.say = say
        self.watches: dict[int, str] = {}
        self.last = ""
        debugger.log = say

    @classmethod
    def commands(cls) -> dict[str, Callable[[Console, str], object]]:
        return {name[3:]: method for name, method in vars(cls).items() if name.startswith("do_")}

    def obey(self, line: str) -> bool:
        """Do a command; an empty line repeats the last move.  Returns false if it could not be done."""
        line = line.strip() or self.last
        if not line or line.startswith("#"):
            return True
        word, _, rest = line.partition(" ")
        if "/" in word:
            word, _, more = word.partition("/")
            rest = f"{rest} {more}"
        if word == "d" and rest and not rest.strip().isdigit():  # `d x` is asked everywhere else, too
            word, rest = "print", line
        try:
            name = self.meant(word)
            self.last = line if name.removeprefix("r") in MOVES or name == "back" else ""
            self.commands()[name](self, rest.strip())
            return True
        except Refused as refusal:
            self.say(f"error: {refusal}")
        except DplError as error:
            self.say("\n".join(f"error[{d.code}]: {d.title}" for d in error.diagnostics) or "error")
        return False

    def meant(self, word: str) -> str:
        names = self.commands()
        if word in SHORT:
            return SHORT[word]
        found = [name for name in names if name == word] or [name for name in names if name.startswith(word)]
        if len(found) != 1:
            choices = f"`{word}` may mean {', '.join(found)}" if found else f"there is no command `{word}`"
            raise Refused(f"{choices}; `help` lists the commands")
        return found[0]

    # ---- breakpoints ------------------------------------------------------------------------------------------------

    def do_break(self, text: str) -> None:
        """break LINE | FILE:LINE | FUNCTION | LINE:rev | rev | error | nonfinite [if EXPR] [hits N] [log TEXT]"""
        if not text:
            return self.do_breakpoints("")
        made = added(self.debugger, text)
        self.say(made.moved + str(made))

    def do_delete(self, text: str) -> None:
        """delete [N]: delete a breakpoint, or all"""
        if not text:
            count = len(self.debugger.breakpoints)
            self.debugger.clear_breakpoints()
            deleted = "1 breakpoint is deleted" if count == 1 else f"all {count} breakpoints are deleted"
            self.say(deleted if count else "no breakpoints")
        else:
            self.debugger.delete_breakpoint(number(text))

    def do_breakpoints(self, _text: str) -> None:
        """breakpoints: list them, with their hits"""
        lines = [f"{b}, met {b.met} times" for b in self.debugger.breakpoints.values()]
        self.say("\n".join(lines) or "no breakpoints")

    # ---- moving -----------------------------------------------------------------------------------------------------

    def do_step(self, text: str) -> None:
        """step [N]: to the next line, also in functions that are called, and in reverse sweeps"""
        self.move("step", text)

    def do_next(self, text: str) -> None:
        """next [N]: to the next line of this function; a reverse sweep counts as one function"""
        self.move("next", text)

    def do_out(self, text: str) -> None:
        """out: until this function returns, or the sweep ends"""
        self.move("out", text)

    def do_continue(self, text: str) -> None:
        """continue: to the next breakpoint"""
        self.move("continue", text)

    def do_until(self, text: str) -> None:
        """until LINE: to this line"""
        self.moved("until", False, number(text))

    def do_rstep(self, text: str) -> None:
        """rstep [N]: back to the line before; also rnext, rout, rcontinue, runtil"""
        self.move("step", text, True)

    def do_rnext(self, text: str) -> None:
        """rnext [N]: back to the line before in this function"""
        self.move("next", text, True)

    def do_rout(self, text: str) -> None:
        """rout: back to the call of this function"""
        self.move("out", text, True)

    def do_rcontinue(self, text: str) -> None:
        """rcontinue: back to the breakpoint before"""
        self.move("continue", text, True)

    def do_runtil(self, text: str) -> None:
        """runtil LINE: back to this line"""
        self.moved("until", True, number(text))

    def do_back(self, text: str) -> None:
        """back [N]: the same as rstep"""
        self.move("step", text, True)

    def do_restart(self, _text: str) -> None:
        """restart: go to the start of the program"""
        self.debugger.start()
        self.say("at the start of the program")

    def move(self, name: str, times: str, back: bool = False) -> None:
        if (count := number(times or "1")) < 1:
            raise Refused("a number from 1 on is wanted")
        for _ in range(count - 1):
            if self.debugger.go(name, back).reason != "step":
                break
        self.moved(name, back, None)

    def moved(self, name: str, back: bool, line: int | None) -> None:
        stopped = self.debugger.go(name, back, line)
        self.say(show.stop(self.debugger, stopped))
        if stopped.reason != "end":
            self.show_watches()

    # ---- looking ----------------------------------------------------------------------------------------------------

    def do_where(self, _text: str) -> None:
        """where (or bt): the calls that led here, with arguments and types"""
        self.say(show.stack(self.debugger))

    def do_frame(self, text: str) -> None:
        """frame N: look at this call of `where`"""
        self.select(number(text))

    def do_up(self, _text: str) -> None:
        """up: look at the caller"""
        self.select(self.debugger.selected + 1)

    def do_down(self, _text: str) -> None:
        """down: look at the function that was called"""
        self.select(self.debugger.selected - 1)

    def select(self, wanted: int) -> None:
        frames = self.debugger.frames()
        if not 0 <= wanted < len(frames):
            raise Refused(f"there is no frame {wanted}; `where` lists {len(frames)}")
        self.debugger.selected = wanted
        frame = frames[wanted]
        self.say(f"{show.where(self.debugger, frame)}\n{show.excerpt(frame.place.span)}")

    def do_list(self, text: str) -> None:
        """list [LINE]: the source around this line, or another of the same file"""
        frame = self.debugger.frame()
        span = frame.place.span if frame else Span(self.debugger.main, 0, 0)
        if text:
            starts = span.source.starts
            if not 0 < number(text) <= len(starts):
                raise Refused(f"{span.source.name} has {len(starts)} lines")
            span = Span(span.source, starts[number(text) - 1], starts[number(text) - 1])
        self.say(show.excerpt(span, show.AROUND))

    def do_locals(self, _text: str) -> None:
        """locals: arguments, local and captured variables, references"""
        self.say(show.variables(self.debugger, self.debugger.scope()))

    def do_globals(self, _text: str) -> None:
        """globals: the values of the program's own definitions so far"""
        found = self.debugger.top_level()
        self.say("\n".join(show.variable(self.debugger, v) for v in found) or "no values at the top level so far")

    def do_print(self, text: str) -> None:
        """print EXPR: its value in this scope; in it, `d x` is the derivative that belongs to x (`@ N`: of level N)"""
        if not text:
            raise Refused("print what?")
        value, ty = self.debugger.evaluate(text)
        self.say(self.debugger.describer.table(value, ty))

    def do_type(self, text: str) -> None:
        """type EXPR: its type, with sizes"""
        if not text:
            raise Refused("the type of what?")
        self.say(type_text(self.debugger.evaluate(text)[1]))

    def do_watch(self, text: str) -> None:
        """watch EXPR | d EXPR [@ LEVEL]: show this at every stop"""
        if text:
            self.add_watch(text)
        self.show_watches()

    def add_watch(self, text: str) -> None:
        self.debugger.expressions.parsed(text.removeprefix("d ").partition(" @ ")[0])
        self.watches[max(self.watches, default=0) + 1] = text

    def do_unwatch(self, text: str) -> None:
        """unwatch [N]: stop showing a watch, or all"""
        if text and number(text) not in self.watches:
            raise Refused(f"there is no watch {text}")
        self.watches = {n: w for n, w in self.watches.items() if text and n != number(text)}

    def show_watches(self) -> None:
        for n, text in self.watches.items():
            self.say(f"  {n}: {text} = {self.watched(text)}")

    def watched(self, text: str) -> str:
        try:
            value, ty = self.debugger.evaluate(text)
            if isinstance(ty, t.Fn):
                return "<fun>"
            return self.debugger.describer.brief(value, ty)
        except (DplError, Refused):
            return "not known here"

    # ---- derivatives ------------------------------------------------------------------------------------------------

    def do_parts(self, text: str) -> None:
        """parts EXPR: what has flowed to it in the reverse sweep, the largest first"""
        if not text:
            raise Refused("parts of what?")
        self.say(show.parts(self.debugger, text))

    def do_sweep(self, _text: str) -> None:
        """sweep: the lines that the reverse sweep has passed, with the magnitudes of values and cotangents"""
        self.say(show.sweep(self.debugger))

    def do_why(self, text: str) -> None:
        """why EXPR: the operations that made it; `why nan`: the chain from the first bad number to its inputs"""
        if text in ("nan", "inf", "nonfinite"):
            origin = self.debugger.find_origin()
            self.say(show.origin_chain(self.debugger, origin) if origin else "every number so far is finite")
        elif text:
            self.say(show.why(self.debugger, text))
        else:
            raise Refused("why what?  `why x`, or `why nan`")

    def do_graph(self, text: str) -> None:
        """graph FILE.svg|FILE.dot: draw the operations of the running sweep"""
        sweeps = running_sweeps(self.debugger.run)
        if not sweeps:
            raise Refused("no reverse sweep runs here; `break rev` stops where one begins")
        if not text.endswith((".svg", ".dot")):
            raise Refused("write the graph to a FILE.svg or FILE.dot")
        drawn = graph.svg(sweeps[0]) if text.endswith(".svg") else graph.dot(sweeps[0])
        put(Path(text), drawn.encode())
        self.say(text)

    def do_help(self, _text: str) -> None:
        """help: this list"""
        self.say("\n".join(f"  {method.__doc__}" for method in self.commands().values()))

    def do_quit(self, _text: str) -> None:
        """quit (or Ctrl-D): leave"""
        raise Leave


def added(debugger: Debugger, text: str) -> Breakpoint:
    """Set a breakpoint: its place, then clauses `if EXPR`, `hits N`, `log TEXT`."""
    place, *clauses = CLAUSE.split(text)
    told: dict[str, str] = {}
    for word, said in zip(clauses[::2], clauses[1::2], strict=True):
        if word in told:
            raise Refused(f"there are two clauses `{word}`")
        if not said.strip():
            raise Refused(f"`{word}` wants {WANTED[word]} after it")
        told[word] = said
    return debugger.add_breakpoint(place, told.get("if", ""), number(told.get("hits", "1")), told.get("log", ""))


def number(text: str) -> int:
    if not text.strip().isdigit():
        raise Refused(f"a number is wanted, not `{text}`" if text else "a number is wanted")
    return int(text)
