"""Commands of the session, which begin with a colon.  `:help` prints the docstrings of the verbs."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import gettempdir

import click
from dpl.types.messages.pretty import show_scheme
from dpl.types.state.env import Primitive, Value

from dplc.pipeline import NAMES, Context, compile_from
from dplc.stack import on_large_stack
from dplc.tools.repl.inputs import IT
from dplc.tools.repl.session import ENGINES, Session
from dplc.tools.search import known_in, named, told


class Leave(Exception):
    """Raised to end the session."""


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
    argument = argument.strip("( )")
    if argument in session.types.cx.modules:
        return module(session, argument)
    entry = session.entry(argument)
    if not isinstance(entry, Value | Primitive):
        return elsewhere(session, argument)
    text = entry.row.doc if isinstance(entry, Primitive) else entry.doc
    print(f"{argument} : {show_scheme(entry.scheme)}")
    if text:
        print(text)
    return True


def elsewhere(session: Session, name: str) -> bool:
    """Documents what has a name in modules, or what DPL has for a name of another system."""
    found = named(name, known_in(session.types.cx.modules)) if name else []
    for one in found:
        print(f"{one.name} : {show_scheme(one.scheme)}", *([one.doc] if one.doc else []), sep="\n")
    return bool(found) or complain(f"there is no `{name}`" if name else "what is what for?  :doc NAME")


def search(session: Session, argument: str) -> bool:
    """values by a part of their name, by words, or by their type, such as  float[n] -> float"""
    if not argument:
        return complain("search for what?  :search WORDS or TYPE")
    text = told(argument, known_in(session.types.cx.modules))
    return not print(text) if text else complain(f"nothing is found for `{argument}`")


def module(session: Session, name: str) -> bool:
    for value, entry in sorted(session.names(name).items()):
        if isinstance(entry, Value | Primitive) and not value.startswith("_"):
            print(f"{name}.{value} : {show_scheme(entry.scheme)}")
    return True


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
    right = obey(session, argument) if argument.startswith(":") else session.enter(argument)
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
