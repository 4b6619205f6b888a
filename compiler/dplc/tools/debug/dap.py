"""`dpl dap`: the Debug Adapter Protocol (microsoft.github.io/debug-adapter-protocol), on the debugger of `dpl debug`.

One method for each request.  Requests are answered in order, each on a thread with a large stack; native code runs on
the main thread.  Only `pause` and the end of the connection reach a program that is running.
"""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dpl.core import ty as t
from dpl.debug.breakpoints import Breakpoint, Refused
from dpl.debug.debugger import Debugger, Stop
from dpl.debug.flows import cotangent, is_forward, tangent
from dpl.debug.inspect import Frame, Variable, active_levels, running_sweeps
from dpl.debug.parts import Part, has_parts, parts
from dpl.debug.points import Place
from dpl.debug.values import type_text
from dpl.diagnostics import DplError
from dpl.eval.code.sites import shown_name
from dpl.eval.derivatives.derive import is_float
from dpl.eval.values.structure import leaves
from dpl.eval.values.value import Value
from dpl.garbage import collecting
from dpl.render import short

from dplc.stack import on_large_stack
from dplc.tools.debug.session import CODES, loaded, loaded_at, pause
from dplc.tools.debug.wire import Malformed, Wire, of_process

THREAD = 1
Rows = Sequence[Variable | Part]
CAPABILITIES = {
    "supportsConfigurationDoneRequest": True,
    "supportsConditionalBreakpoints": True,
    "supportsHitConditionalBreakpoints": True,
    "supportsLogPoints": True,
    "supportsFunctionBreakpoints": True,
    "supportsStepBack": True,
    "supportsEvaluateForHovers": True,
    "supportsSetVariable": True,
    "supportsRestartRequest": True,
    "supportsExceptionInfoRequest": True,
    "supportsBreakpointLocationsRequest": True,
    "supportsTerminateRequest": True,
    "breakpointModes": [
        {"mode": "forward", "label": "Forward", "appliesTo": ["source"],
         "description": "Stop before the line is evaluated."},
        {"mode": "reverse", "label": "Reverse", "appliesTo": ["source"],
         "description": "Stop when a reverse sweep passes back through the line."},
    ],
    "exceptionBreakpointFilters": [
        {"filter": "error", "label": "Errors", "default": True},
        {"filter": "nonfinite", "label": "NaN and infinity", "default": False,
         "description": "The first operation whose result is not finite, forward or in a sweep."},
        {"filter": "rev", "label": "Reverse sweep begins", "default": False},
    ],
}  # fmt: skip
REASONS = {"start": "entry", "error": "exception", "nonfinite": "exception"}


def serve() -> int:
    """Serve one client until it leaves."""
    server = Server(of_process())
    reader = threading.Thread(target=server.read, daemon=True)
    reader.start()
    with collecting(False):
        return server.work()


class Output:
    """Standard output of the program that is debugged, as a file to write to."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def write(self, text: str) -> int:
        self.server.event("output", category="stdout", output=text)
        return len(text)

    def flush(self) -> None: ...


class Server:
    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.requests: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self.debugger: Debugger | None = None
        self.stop_on_entry = False
        self.at = ""
        self.leaving = False
        self.ending = False  # the client wants the program to end
        self.native = False  # native code runs
        self.worker = 0  # the thread that answers a request, or moves
        self.lock = threading.Lock()  # of these two
        self.by_source: dict[str, list[int]] = {}  # numbers of breakpoints
        self.of_functions: list[int] = []
        self.of_filters: list[int] = []
        self.filters: list[str] = ["error"]
        self.calls: list[Frame | Place] = []  # that led to the stop; of a tail call only the place is known
        self.opened: list[tuple[Callable[[], Rows], Frame | None]] = []  # what variables' references stand for

    # ---- the connection ---------------------------------------------------------------------------------------------

    def read(self) -> None:
        """Read requests until the client goes.  `pause` does not wait for its turn."""
        try:
            while (message := self.wire.receive()) is not None:
                if (command := message.get("command")) in ("pause", "disconnect", "terminate"):
                    self.interrupt(command != "pause")
                self.requests.put(message)
        except Malformed as failure:
            self.event("output", category="important", output=f"{failure}\n")
        self.leaving = True
        self.interrupt(True)
        self.requests.put(None)

    def interrupt(self, for_good: bool) -> None:
        """Stop the interpreter; native code too, if the program is to end."""
        self.ending |= for_good  # before the debugger is looked for: a launch in progress looks in the other order
        if self.debugger:
            self.debugger.run.interrupted = False  # a second one is no reason to end: the client says when
            pause(self.debugger, self.worker)
        with self.lock:
            if self.native and for_good:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def work(self) -> int:
        while not self.leaving and (request := self.requests.get()) is not None:
            after = on_large_stack(lambda request=request: self.answer(request))
            if after:
                after()
        return 0

    def answer(self, request: dict[str, Any]) -> Callable[[], None] | None:
        """Answer a request.  Returns what is to be done after that, by the main thread."""
        self.worker = threading.get_ident()
        name = str(request.get("command", ""))
        handle = getattr(self, f"on_{name}", None)
        arguments = request.get("arguments")
        after: Callable[[], None] | None = None
        try:
            if handle is None:
                raise Refused(f"the debugger does not know the request `{name}`")
            if self.debugger is None and name not in ("initialize", "launch", "disconnect", "terminate", "threads"):
                raise Refused("no program has been launched")
            found = handle(arguments if isinstance(arguments, dict) else {})
            body, after = found if isinstance(found, tuple) else (found, None)
            self.respond(request, body=body or {})
        except DplError as error:
            self.fail(request, "\n".join(short(d) for d in error.diagnostics))
        except Refused as refusal:
            self.fail(request, str(refusal))
        except (KeyError, TypeError, ValueError, AttributeError) as failure:
            self.fail(request, f"the request `{name}` is malformed: {failure}")
        return after

    def respond(self, request: dict[str, Any], success: bool = True, **more: Any) -> None:
        name, number = request.get("command"), request.get("seq", 0)
        self.wire.send({"type": "response", "request_seq": number, "success": success, "command": name, **more})

    def fail(self, request: dict[str, Any], why: str) -> None:
        self.respond(request, False, message=why, body={"error": {"id": 1, "format": why, "showUser": True}})

    def event(self, name: str, **body: Any) -> None:
        self.wire.send({"type": "event", "event": name, "body": body})

    @property
    def program(self) -> Debugger:
        assert self.debugger
        return self.debugger

    # ---- the start and the end --------------------------------------------------------------------------------------

    def on_initialize(self, _arguments: dict) -> dict:
        return CAPABILITIES

    def on_launch(self, arguments: dict) -> tuple:
        debugger = loaded(str(arguments["program"]), [str(a) for a in arguments.get("args", [])], Output(self))
        debugger.log = lambda text: self.event("output", category="console", output=f"{text}\n")
        debugger.start()
        self.debugger = debugger
        debugger.run.interrupted = self.ending
        self.stop_on_entry = bool(arguments.get("stopOnEntry"))
        self.at = str(arguments.get("at") or "")
        self.filter(self.filters)
        return {}, lambda: self.event("initialized")

    def on_configurationDone(self, _arguments: dict) -> tuple:
        return {}, self.begin

    def on_restart(self, _arguments: dict) -> tuple:
        self.program.start()
        return {}, self.go_on

    def begin(self) -> None:
        """Run natively to shortly before the incident that the launch asks for, and go on from there."""
        whole = self.program
        if self.at and not self.stop_on_entry and (nearer := self.run_natively(whole)):
            nearer.log = whole.log
            nearer.start()
            nearer.take_breakpoints(whole)
            self.debugger = nearer
            nearer.run.interrupted, whole.run.interrupted = whole.run.interrupted, False  # a pause in the meantime
            stopped = self.went_to_incident()
            if stopped.reason != "end" or self.leaving:
                return self.moved(stopped)
            self.debugger = whole  # it did not happen again
        self.go_on()

    def go_on(self) -> None:
        if self.stop_on_entry:
            self.go("step")
        else:
            self.moved(self.went_to_incident() if self.at else self.went("continue"))

    def go(self, move: str, back: bool = False) -> None:
        self.moved(self.went(move, back))

    def went(self, move: str, back: bool = False) -> Stop:
        def work() -> Stop:
            self.worker = threading.get_ident()
            return Stop("pause") if self.ending else self.program.go(move, back)

        return on_large_stack(work)

    def run_natively(self, whole: Debugger) -> Debugger | None:
        """A debugger that begins shortly before the incident; None if it must begin at the start."""
        self.event("output", category="console", output=f"native code runs up to `{self.at}`\n")
        try:
            try:
                with self.lock:
                    self.native = not self.ending
                found = loaded_at(whole, self.at) if self.native else None
                return found if isinstance(found, Debugger) else None
            finally:
                with self.lock:
                    self.native = False
        except KeyboardInterrupt:
            if not self.ending:  # it is Ctrl-C, not from `interrupt`
                raise
            return None

    def went_to_incident(self) -> Stop:
        try:
            made = self.program.add_breakpoint(CODES.get(self.at, self.at))
        except Refused as refusal:
            self.event("output", category="important", output=f"{refusal}\n")
            return self.went("continue")
        stopped = self.went("continue")
        self.program.delete_breakpoint(made.number)
        return stopped

    def on_disconnect(self, _arguments: dict) -> dict:
        self.leaving = True
        return {}

    def on_terminate(self, _arguments: dict) -> tuple:
        return {}, lambda: self.event("terminated")

    def moved(self, stopped: Stop) -> None:
        """Tell the client where the program has stopped."""
        self.calls, self.opened = [], []
        if self.leaving:
            return
        if stopped.reason == "end":
            ended = self.program.run.ended
            self.event("exited", exitCode=ended.code if ended else 0)
            self.event("terminated")
            return
        if stopped.reason == "error" and "error" not in self.filters:
            self.event("output", category="stderr", output=f"{stopped.text}\n")
            self.event("exited", exitCode=1)
            self.event("terminated")
            return
        hit = {"hitBreakpointIds": [stopped.breakpoint.number]} if stopped.breakpoint else {}
        self.event("stopped", reason=REASONS.get(stopped.reason, stopped.reason), threadId=THREAD,
                   allThreadsStopped=True, text=stopped.text, **hit)  # fmt: skip

    # ---- breakpoints ------------------------------------------------------------------------------------------------

    def on_setBreakpoints(self, arguments: dict) -> dict:
        path = str(arguments["source"].get("path") or arguments["source"].get("name"))
        self.forget(self.by_source.get(path, []))
        made = [self.line_breakpoint(path, wanted) for wanted in arguments.get("breakpoints", [])]
        self.by_source[path] = [b["id"] for b in made if "id" in b]
        return {"breakpoints": made}

    def line_breakpoint(self, path: str, wanted: dict) -> dict:
        mode = ":rev" if wanted.get("mode") == "reverse" else ""
        return self.breakpoint(f"{path}:{int(wanted['line'])}{mode}", wanted)

    def breakpoint(self, text: str, wanted: dict) -> dict:
        """Set a breakpoint; one that cannot be set says why."""
        hits = str(wanted.get("hitCondition") or "1").strip().removeprefix(">=").strip()
        try:
            if not hits.isdigit():
                raise Refused(f"the hit count `{hits}` is not a number")
            made = self.program.add_breakpoint(
                text, str(wanted.get("condition") or ""), int(hits), str(wanted.get("logMessage") or "")
            )
        except Refused as refusal:
            return {"verified": False, "message": str(refusal)}
        said = {"message": f"{made.moved}the next line with code is meant"} if made.moved else {}
        return {"verified": True, "id": made.number, **line_of(made), **said}

    def forget(self, numbers: list[int]) -> None:
        for number in numbers:
            self.program.delete_breakpoint(number)

    def on_setFunctionBreakpoints(self, arguments: dict) -> dict:
        self.forget(self.of_functions)
        made = [self.breakpoint(str(wanted["name"]), wanted) for wanted in arguments.get("breakpoints", [])]
        self.of_functions = [b["id"] for b in made if "id" in b]
        return {"breakpoints": made}

    def on_setExceptionBreakpoints(self, arguments: dict) -> dict:
        self.filter([str(name) for name in arguments.get("filters", [])])
        return {}

    def filter(self, names: list[str]) -> None:
        self.forget(self.of_filters)
        self.filters = names
        self.of_filters = [self.program.add_breakpoint(name).number for name in names if name in ("nonfinite", "rev")]

    def on_breakpointLocations(self, arguments: dict) -> dict:
        first = int(arguments["line"])
        last = int(arguments.get("endLine") or first)
        lines = self.program.lines(str(arguments["source"].get("path")))
        return {"breakpoints": [{"line": line} for line in lines if first <= line <= last]}

    # ---- moving -----------------------------------------------------------------------------------------------------

    def move(self, name: str, back: bool = False) -> tuple:
        self.calls, self.opened = [], []
        return {"allThreadsContinued": True}, lambda: self.go(name, back)

    def on_continue(self, _arguments: dict) -> tuple:
        if self.program.stopped.reason == "error":
            return {"allThreadsContinued": True}, lambda: self.moved(Stop("end"))
        return self.move("continue")

    def on_next(self, _arguments: dict) -> tuple:
        return self.move("next")

    def on_stepIn(self, _arguments: dict) -> tuple:
        return self.move("step")

    def on_stepOut(self, _arguments: dict) -> tuple:
        return self.move("out")

    def on_stepBack(self, _arguments: dict) -> tuple:
        return self.move("next", back=True)

    def on_reverseContinue(self, _arguments: dict) -> tuple:
        return self.move("continue", back=True)

    def on_pause(self, _arguments: dict) -> dict:
        self.program.run.interrupted = False  # it has been heard, or the program stands already
        return {}

    # ---- looking ----------------------------------------------------------------------------------------------------

    def on_threads(self, _arguments: dict) -> dict:
        return {"threads": [{"id": THREAD, "name": "program"}]}

    def on_stackTrace(self, arguments: dict) -> dict:
        calls = self.stack()
        first = int(arguments.get("startFrame") or 0)
        last = first + int(arguments.get("levels") or 20)
        shown = [self.stack_frame(i) for i in range(max(first, 0), min(last, len(calls)))]
        return {"stackFrames": shown, "totalFrames": len(calls)}

    def stack(self) -> list[Frame | Place]:
        """The calls that led here, each after the tail calls that led to it, innermost first."""
        if not self.calls:
            earlier = self.program.tail_calls()
            for frame in self.program.frames():
                self.calls += [frame, *(earlier.before(frame) if earlier else ())]
        return self.calls

    def stack_frame(self, i: int) -> dict:
        call = self.calls[i]
        span, hint = (call.place.span, "normal") if isinstance(call, Frame) else (call.span, "subtle")
        line, column = span.source.position(span.start)
        end_line, end_column = span.source.position(span.end)
        path = str(Path(span.source.path).resolve()) if span.source.path else None
        return {"id": i + 1, "name": self.call_name(call), "line": line, "column": column, "endLine": end_line,
                "endColumn": end_column, "presentationHint": hint,
                "source": {"name": span.source.name, "path": path}}  # fmt: skip

    def call_name(self, call: Frame | Place) -> str:
        if not isinstance(call, Frame):
            return f"{shown_name(call.point.function.name)} (tail call)"
        return f"{call.name} (level {self.program.level(call.sweep)})" if call.sweep else call.name

    def frame(self, number: Any) -> Frame | None:
        """A call by its number, by default the innermost; None for a tail call, whose variables are gone."""
        calls = self.stack()
        if not 0 <= int(number or 0) <= len(calls):
            raise Refused(f"there is no frame {number}")
        if not calls:
            return None
        call = calls[max(int(number or 0), 1) - 1]
        return call if isinstance(call, Frame) else None

    def on_scopes(self, arguments: dict) -> dict:
        frame = self.frame(arguments["frameId"])
        if frame is None:
            return {"scopes": []}
        found = frame.variables()
        scopes = [
            ("Locals", [v for v in found if v.kind in ("argument", "local")]),
            ("Captured", [v for v in found if v.kind == "captured"]),
            ("References", [v for v in found if v.kind == "reference"]),
            ("Adjoints", self.adjoints(frame)),
            ("Top level", self.program.top_level()),
        ]
        return {"scopes": [self.scope(name, rows, frame) for name, rows in scopes if rows]}

    def scope(self, name: str, rows: Rows, frame: Frame) -> dict:
        return {"name": name, "variablesReference": self.open(lambda: rows, frame), "expensive": False,
                "namedVariables": len(rows)}  # fmt: skip

    def open(self, rows: Callable[[], Rows], frame: Frame | None = None) -> int:
        self.opened.append((rows, frame))
        return len(self.opened)

    def adjoints(self, frame: Frame) -> list[Part]:
        """The derivatives that belong to the variables: cotangents in a sweep, else tangents."""
        run = self.program.run
        sweeps, levels = running_sweeps(run), active_levels(run)
        found = []
        for v in frame.variables():
            if isinstance(v.ty, t.Fn) or not any(map(is_float, leaves(v.value))):
                continue
            if sweeps:
                found.append(Part(f"d {v.name}", cotangent(v.value, sweeps[0]), v.ty))
            elif levels and is_forward(v.value, levels[-1]):
                found.append(Part(f"d {v.name}", tangent(v.value, levels[-1]), v.ty))
        return found

    def on_variables(self, arguments: dict) -> dict:
        number = int(arguments["variablesReference"])
        if not 0 < number <= len(self.opened):
            raise Refused("these variables are of an earlier stop")
        rows = self.opened[number - 1][0]()
        start, count = int(arguments.get("start") or 0), arguments.get("count")
        rows = rows[start : start + int(count)] if count else rows[start:]
        return {"variables": [self.shown(row.name, row.value, row.ty) for row in rows]}

    def shown(self, name: str, value: Value, ty: t.Ty) -> dict:
        reference = 0
        if has_parts(value, ty):
            datas = self.program.describer.shower.datas
            reference = self.open(lambda: parts(value, ty, datas))
        return {"name": name, "value": self.program.describer.brief(value, ty), "type": type_text(ty),
                "evaluateName": name, "variablesReference": reference}  # fmt: skip

    def on_evaluate(self, arguments: dict) -> dict:
        number = arguments.get("frameId")
        frame = self.frame(number)
        if number and frame is None:
            raise Refused("the variables of a tail call are gone")
        value, ty = self.program.evaluate(str(arguments["expression"]), frame)
        shown = self.shown("", value, ty)
        return {"result": shown["value"], "type": shown["type"], "variablesReference": shown["variablesReference"]}

    def on_setVariable(self, arguments: dict) -> dict:
        """Put a value into a reference; nothing else can change."""
        number, name = int(arguments["variablesReference"]), str(arguments["name"])
        if not 0 < number <= len(self.opened):
            raise Refused("these variables are of an earlier stop")
        rows, frame = self.opened[number - 1]
        row = next((row for row in rows() if row.name == name), None)
        if row is None:
            raise Refused(f"there is no variable `{name}` here")
        value, ty = self.program.assign(row, str(arguments["value"]), frame)
        shown = self.shown(name, value, ty)
        return {"value": shown["value"], "type": shown["type"], "variablesReference": shown["variablesReference"]}

    def on_exceptionInfo(self, _arguments: dict) -> dict:
        stopped = self.program.stopped
        return {"exceptionId": stopped.reason, "description": stopped.text, "breakMode": "always",
                "details": {"message": stopped.text}}  # fmt: skip


def line_of(made: Breakpoint) -> dict:
    lines = [point.line for point in made.points]
    return {"line": min(lines)} if lines else {}
