"""Records a session with `dpl repl` on a terminal of its own:  python examples/session/record.py

It types what `SESSION` says, as a person would, waits for the answers, and writes beside itself
    session.cast                     all that happened, for  asciinema play
    session.svg, completion.svg      the screen at the end, and while names are offered
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path

import pexpect
import pyte
from screen import picture

HERE = Path(__file__).resolve().parent
COLUMNS, ROWS = 100, 76
PROMPT = "\x1b[?2004h"  # what a line editor says when it is ready for input
TAKEN = "\x1b[?2004l"
ENTER, MORE, CTRL_C, CTRL_U, TAB = "\r", "\x1b\r", "\x03", "\x15", "\t"

# What is typed, and what is to be seen before the next thing is; a name instead of that: a picture of the screen.
SESSION: list[tuple[str, str]] = [
    ("let f x = x ** 3.0" + ENTER, "f : "),
    ("grad f 2.0" + ENTER, "it : float = 12.0"),
    (":type fun xs -> sum (map f xs)" + ENTER, "'a : real"),
    (":doc Tree.axpy" + ENTER, "Tree.axpy a x y : "),
    ("type tree = Leaf of float | Node of tree * tree" + ENTER, PROMPT),
    ("let rec product t =" + ENTER, ""),
    ("match t with" + MORE, ""),
    ("| Leaf x -> x" + MORE, ""),
    ("| Node (l, r) -> product l * product r" + ENTER, "product : "),
    ("grad product (Node (Leaf 2.0, Node (Leaf 3.0, Leaf 4.0)))" + ENTER, "Leaf 6.0"),
    ("let f x = x * sin x  -- another f" + ENTER, "f : "),
    ("[1.0, 2.0] + [1.0, 2.0, 3.0]" + ENTER, "error"),
    ("Plot.gr", "completion"),
    (TAB + " f 0.0 12.0 |> Plot.over (Plot.graph (diff f) 0.0 12.0)" + ENTER, "└"),
    ("loop n = 0 while true do n + 1" + ENTER, TAKEN),
    (CTRL_C, "interrupted"),
    ("f (grad f 1.0)" + ENTER, "it : float = "),
]


class Recording:
    def __init__(self, child: pexpect.spawn) -> None:
        self.child = child
        self.screen = pyte.Screen(COLUMNS, ROWS)
        self.stream = pyte.Stream(self.screen)
        self.events: list[tuple[float, str]] = []
        self.clock, self.last = 0.0, time.monotonic()
        self.seen = ""  # since something was typed

    def read(self, pause: float) -> None:
        """All that appears until nothing does for a while."""
        while True:
            try:
                some = self.child.read_nonblocking(100_000, timeout=pause)
            except pexpect.TIMEOUT:
                return
            now = time.monotonic()
            self.clock += min(now - self.last, 1.0)  # nobody likes to wait
            self.last = now
            self.events.append((self.clock, some))
            self.stream.feed(some)
            self.seen += some

    def wait(self, text: str) -> None:
        begin = time.monotonic()
        while text not in re.sub(r"\x1b\[[\d;]*m", "", self.seen):
            if time.monotonic() - begin > 60:
                raise SystemExit(f"no {text!r} in\n{self.seen}")
            self.read(0.2)

    def type(self, text: str) -> None:
        self.seen = ""
        for key in re.findall(r"\x1b.|.", text, re.DOTALL):
            self.child.send(key)
            self.read(0.06 if key.isprintable() else 0.4)

    def save(self, name: str) -> None:
        (HERE / f"{name}.svg").write_text(picture(self.screen), encoding="utf-8")


def main() -> None:
    environment = {**os.environ, "TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1"}
    environment.pop("NO_COLOR", None)
    child = pexpect.spawn(
        sys.executable, ["-m", "dplc.cli", "repl"], env=environment, encoding="utf-8", dimensions=(ROWS, COLUMNS)
    )
    child.delaybeforesend = None
    recording = Recording(child)
    recording.wait(PROMPT)
    for typed, awaited in SESSION:
        recording.type(typed)
        if awaited == "completion":
            recording.read(1.0)
            recording.save(awaited)
        else:
            recording.wait(awaited)
            recording.read(0.8)
    recording.save("session")
    child.sendeof()
    child.close()
    header = {"version": 2, "width": COLUMNS, "height": ROWS, "title": "dpl repl", "env": {"TERM": "xterm-256color"}}
    events = [[round(at, 3), "o", text] for at, text in recording.events]
    lines = [json.dumps(line, ensure_ascii=False) for line in (header, *events)]
    (HERE / "session.cast").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
