"""What the editor knows of a function's derivatives: which arguments they reach, and what the gradient costs."""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
from pathlib import Path

from dpl.core import term
from dpl.core.walk import subterms
from dpl.node import record
from dpl.prims import TABLE
from dpl.types.library import library
from dpl.types.warnings.activity import Dependence, has_float, local_functions, reach

from dplc.tools.lsp.text.documents import Document
from dplc.tools.lsp.text.names import Foreign, Symbol, Target

COUNTING = "its gradient: the cost is being counted, hover again to see it"
MOST = 200  # costs that are remembered


def about(document: Document, target: Target | None) -> list[str]:
    """Lines for a hover over the name of a function whose result holds floats; none for other names."""
    found = definition(document, target)
    body, around = found.body if found else None, dict[str, term.Term]()
    if isinstance(target, Symbol) and target.scope is not None:
        body, around = local(document, target)
    if not isinstance(body, term.Lam):
        return []
    result: term.Term = body
    while isinstance(result, term.Lam):
        result = result.body
    if not has_float(result.ty):
        return []
    arguments = reach(body, globals_of(document), library().definitions, around)
    if not arguments:
        return []
    told = [f"derivatives {in_words(arguments)}"]
    if found and any(d is None or d.active for _, d in arguments) and (cost := cost_of(document, target)):
        told.append(cost)
    return told


def local(document: Document, symbol: Symbol) -> tuple[term.Term | None, dict[str, term.Term]]:
    """The core of a function within a declaration, and all functions there."""
    for item in document.found(document.book.page_of(symbol.span.start)).items:
        around = local_functions(item.body)
        for name, f in around.items():
            if name.partition(".")[0] == symbol.name and f.span.start == symbol.span.start:
                return f, around
    return None, {}


def definition(document: Document, target: Target | None) -> term.Def | None:
    """The core of a name that is declared at the top of this text or of another module."""
    match target:
        case Symbol(name=name, scope=None, span=span):
            items = document.found(document.book.page_of(span.start)).items
            own = [i for i in items if isinstance(i, term.Def)]
            return next((d for d in own if d.name.rpartition(".")[2].partition("#")[0] == name), None)
        case Foreign(module=module, name=name):
            there = document.imports.aliases.get(module)
            known = globals_of(document) if there else library().definitions
            return known.get(f"{there or module}.{name}")
        case _:
            return None


def globals_of(document: Document) -> dict[str, term.Def]:
    run = document.imports.run
    items = [*(run.items if run else ()), *(i for page in document.pages for i in document.found(page).items)]
    return {item.name: item for item in items if isinstance(item, term.Def)}


def in_words(arguments: list[tuple[str, Dependence | None]]) -> str:
    """`reach `w`; not `k` (only through `floor`)`."""
    reached = [f"`{name}`" for name, d in arguments if d is not None and d.active]
    unknown = [f"`{name}`" for name, d in arguments if d is None]
    missed = [f"`{name}`{why(d)}" for name, d in arguments if d is not None and not d.active]
    parts = []
    if reached:
        parts.append(f"reach {' and '.join(reached)}")
    if unknown:
        parts.append(f"may reach {' and '.join(unknown)}")
    if missed:
        parts.append(f"{'not' if parts else 'do not reach'} {' and '.join(missed)}")
    return "; ".join(parts)


def why(d: Dependence) -> str:
    steps = sorted({step for step, _ in d.steps})
    return f" (only through {' and '.join(f'`{step}`' for step in steps)})" if steps else ""


# ---- the cost -------------------------------------------------------------------------------------------------------


@record
class Count:
    """`dpl bench --cost` in a process of its own, and what it said."""

    process: subprocess.Popen[bytes]
    said: str | None = None

    def text(self) -> str:
        if self.said is None:
            if self.process.poll() is None:
                return COUNTING
            output, _ = self.process.communicate()
            self.said = cost_in_words(output)
        return self.said


counts: dict[tuple[str, str, str], Count] = {}  # by file, text and name


def cost_of(document: Document, target: Target | None) -> str:
    """The cost of a function's gradient, counted by running it; a text that is not saved, and one that does more than
    compute before it can be called, is not run."""
    match target:
        case Symbol(name=name):
            path = document.path
            if path is None or not is_saved(path, document.text) or acts(document):
                return ""
            key = str(path), document.text, name
        case Foreign(module=module, name=name) if module not in document.imports.aliases:
            key = module, "", name
        case _:
            return ""
    if key not in counts:
        if any(count.process.poll() is None for count in counts.values()):
            return ""  # one after the other
        if len(counts) >= MOST:
            counts.clear()
        command = [sys.executable, "-m", "dplc.cli", "bench", "--cost", "--json", key[0], name]
        quiet = subprocess.DEVNULL
        counts[key] = Count(subprocess.Popen(command, stdin=quiet, stdout=subprocess.PIPE, stderr=quiet))
    return counts[key].text()


@atexit.register
def stop() -> None:
    for count in counts.values():
        count.process.kill()


def is_saved(path: Path, text: str) -> bool:
    try:
        return path.read_text(encoding="utf-8") == text
    except (OSError, ValueError):
        return False


def acts(document: Document) -> bool:
    """Whether definitions of values reach a C function, or what is outside of the program: counting runs them."""
    definitions = globals_of(document)
    seen: set[str] = set()
    stack: list[term.Term] = [d.body for d in definitions.values() if not isinstance(d.body, term.Lam)]
    while stack:
        t = stack.pop()
        stack += subterms(t)
        match t:
            case term.Extern():
                return True
            case term.Prim(op=op) if TABLE[op].outside:
                return True
            case term.Var(name=name) if name not in seen:
                seen.add(name)
                if found := definitions.get(name) or library().definitions.get(name):
                    stack.append(found.body)
            case _:
                pass
    return False


def cost_in_words(output: bytes) -> str:
    """The line of a hover from what `dpl bench --cost --json` has printed; empty if it could not be counted."""
    lines = output.decode("utf-8", "replace").splitlines()
    told = json.loads(lines[0]) if lines else {}
    rows = told.get("costs")
    if not rows:
        return ""
    last = rows[-1]
    grows = ", growing with the size" if "ratio" in told["grows"] else ""
    kept, size = last["gradient"]["kept"], last["size"]
    keeps = f"the sweep keeps {amount(kept)} a call" if kept else "the sweep keeps nothing"
    return f"its gradient costs {last['ratio']:.1f} times the function{grows}; {keeps} (counted at size {size})"


def amount(count: int) -> str:
    return f"{count} bytes" if count < 10_000 else f"{count / 1024:.0f} kB" if count < 1 << 23 else f"{count >> 20} MB"
