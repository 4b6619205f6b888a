"""Commands of the session, which begin with a colon.  `:help` prints the docstrings of the verbs."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import gettempdir

import click

from dplc.pipeline import NAMES, Context, compile_from
from dplc.stack import on_large_stack
from dplc.tools.repl.inputs import IT
from dplc.tools.repl.names import about
from dplc.tools.repl.session import ENGINES, Session
from dplc.tools.search import known_in, told


class Leave(Exception):
    """Raised to end the session."""


def answer(session: Session, text: str, name: str = "") -> bool:
    """Obey a command, or run another input; messages call it by `name`.  Returns true if there was no error."""
    if not text.strip():
        return True
    return obey(session, text.strip()) if text.lstrip().startswith(":") else session.enter(text, name)


def obey(session: Session, text: str) -> bool:
    """Run `:verb argument`.  Returns true if there was no error."""
    word, _, argument = text[1:].partition(" ")
    found = [name for name in VERBS if name.startswith(word)] if word else []
    if word in VERBS:
        found = [word]
    if len(found) != 1:
        wrong = f"`:{word}` may be {' or '.join(f':{n}' for n in found)}" if found else f"there is no `:{word}`"
        return complain(f"{wrong}; `:help` lists what there is")
    return VERBS[found[0]][1](session, argument.strip())


def complain(text: str) -> bool:
    print(text, file=sys.stderr)
    return False


def help_(session: Session, argument: str) -> bool:
    width = max(len(usage) for usage, _ in VERBS.values())
    for usage, verb in VERBS.values():
        print(f"  {usage:{width}}  {verb.__doc__}")
    return True


def type_(session: Session, argument: str) -> bool:
    """the type of an expression, which is not evaluated"""
    if not argument:
        return complain("the type of what?  :type EXPRESSION")
    return session.attempt(lambda: print(on_large_stack(lambda: session.type_of(argument))))


def doc(session: Session, argument: str) -> bool:
    """what a name of any module is for; what a module offers"""
    name = argument.strip("( )")
    text = about(session, name)
    if text is None:
        return complain(f"there is no `{name}`" if name else "what is what for?  :doc NAME")
    return not print(text)


def search(session: Session, argument: str) -> bool:
    """values by a part of their name, by words, or by their type, such as  float[n] -> float"""
    if not argument:
        return complain("search for what?  :search WORDS or TYPE")
    text = told(argument, known_in(session.types.cx.modules))
    return not print(text) if text else complain(f"nothing is found for `{argument}`")


def load(session: Session, argument: str) -> bool:
    """do the declarations of a file, and go on from there"""
    return session.load(Path(argument).expanduser()) if argument else complain("which file?  :load FILE")


def reload(session: Session, argument: str) -> bool:
    """begin anew, with the file loaded last as it is now; if it is right"""
    file = session.file
    if file is None:
        return complain("no file was loaded")
    return session.reload(file)


def save(session: Session, argument: str) -> bool:
    """a picture as a file, by the end of its name SVG or PNG"""
    file, _, text = argument.partition(" ")
    if not file:
        return complain("to which file?  :save FILE [EXPRESSION]")
    return session.attempt(lambda: session.save(text.strip() or IT, Path(file).expanduser()))


def open_(session: Session, argument: str) -> bool:
    """a picture in the program that this system has for SVG"""
    file = Path(gettempdir()) / f"dpl-{os.getpid()}-{session.inputs}.svg"
    session.inputs += 1
    if not session.attempt(lambda: session.save(argument or IT, file)):
        return False
    print(file)
    return not click.launch(str(file)) or complain("there is no program to open it with")


def time_(session: Session, argument: str) -> bool:
    """do an input, and say how long it took"""
    if not argument:
        return complain("the time of what?  :time INPUT")
    begin = time.perf_counter()
    right = answer(session, argument)
    print(f"{(time.perf_counter() - begin) * 1e3:.1f} ms")
    return right


def dump(session: Session, argument: str) -> bool:
    """the session's program as it is after a stage of the compiler"""
    stage, _, name = argument.partition(" ")
    if stage not in NAMES[1:]:
        return complain(f"which stage?  {' '.join(NAMES[1:])}")

    def work() -> None:
        from dplc.tools.dump import paragraphs

        done, value = on_large_stack(lambda: compile_from("check", session.program, stage, Context()))
        text = done.show(value)
        print(paragraphs(text, name) if name else text)

    return session.attempt(work)


def engine(session: Session, argument: str) -> bool:
    """native code or the interpreter; what was declared is done again by that"""
    if not argument:
        print(session.engine_name)
        return True
    if argument not in ENGINES:
        return complain(f"which engine?  {' or '.join(ENGINES)}")
    return session.attempt(lambda: session.change_engine(argument))


def quit_(session: Session, argument: str) -> bool:
    """leave; so does the end of the input (Ctrl-D)"""
    raise Leave


VERBS: dict[str, tuple[str, Callable[[Session, str], bool]]] = {
    "help": (":help", help_),
    "type": (":type EXPRESSION", type_),
    "doc": (":doc NAME", doc),
    "search": (":search WORDS|TYPE", search),
    "load": (":load FILE", load),
    "reload": (":reload", reload),
    "save": (":save FILE [EXPRESSION]", save),
    "open": (":open [EXPRESSION]", open_),
    "time": (":time INPUT", time_),
    "dump": (":dump STAGE [NAME]", dump),
    "engine": (":engine [NAME]", engine),
    "quit": (":quit", quit_),
}
help_.__doc__ = "this"
