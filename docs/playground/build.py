"""Builds the playground and the tour as static pages, which can be served from anywhere.

    npm install --prefix docs/playground
    python docs/playground/build.py            writes docs/_build/playground
    python -m http.server -d docs/_build/playground

Everything that the pages load is in the folder: the interpreter, and Python as WebAssembly (Pyodide).
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import lark
from dpl import resources
from dpl.syntax.pages import blocks
from markdown_it import MarkdownIt

HERE = Path(__file__).parent
PYODIDE = ("pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "pyodide-lock.json", "python_stdlib.zip")
COPIED = ("worker.js", "statics.mjs", "editor.js", "interpreter.js", "playground.js", "playground.css")
EXAMPLES = ("01_line", "02_tree_gradient", "03_coin", "04_newton", "07_lantern", "08_rain", "09_queens", "10_plot")
LEFT_OUT = ("system", "shipped", "__pycache__")

INDEX = """
import { Playground, link, linked } from "./playground.js";
const examples = EXAMPLES, page = new Playground(), choice = document.getElementById("examples");
choice.append(...Object.keys(examples).map((name) => new Option(name)));
choice.onchange = () => { history.replaceState(null, "", location.pathname); page.show(examples[choice.value]); };
document.getElementById("link").onclick = async () => {
  history.replaceState(null, "", await link(page.editor.text));
  await navigator.clipboard?.writeText(location.href).catch(() => {});
  document.getElementById("status").textContent = "the address now has the program";
};
const open = async () => {
  const program = await linked(location.hash).catch(() => undefined);
  page.show(program ?? examples[choice.value]);
  if (program === undefined) page.complain(new Error("this link is broken: a part of the program in it is missing"));
};
window.addEventListener("hashchange", open);
open();
"""
TOUR = """
import { Playground } from "./playground.js";
const steps = STEPS, page = new Playground(), $ = (id) => document.getElementById(id);
let now = 0;
const show = (number) => {
  now = Math.min(Math.max(number, 0), steps.length - 1);
  $("title").textContent = `${now + 1}. ${steps[now].title}`;
  $("words").innerHTML = steps[now].text;
  const [before, next] = [$("before"), $("next")], asked = document.activeElement;
  before.disabled = now === 0;
  next.disabled = now === steps.length - 1;
  if (asked.disabled) (before.disabled ? next : before).focus();  // the keyboard's place is kept
  page.show(steps[now].program);
};
const go = (number) => { location.hash = String(number + 1); };
$("before").onclick = () => go(now - 1);
$("next").onclick = () => go(now + 1);
const open = () => show(Number(location.hash.slice(1) || 1) - 1);
window.addEventListener("hashchange", open);
open();
"""
TOUR_TOOLS = '<button id="before">◀ before</button><button id="next">next ▶</button>'
TOUR_TEXT = '<article aria-live="polite"><h2 id="title"></h2><div id="words"></div></article>'
INDEX_TOOLS = '<select id="examples" aria-label="examples"></select><button id="link">Link</button>'


def steps() -> list[dict[str, str]]:
    """The steps of the tour: title, text as HTML, program."""
    page = (HERE / "tour.md").read_text(encoding="utf-8")
    programs = list(blocks(page))
    found = []
    for heading in re.finditer(r"^## (.*)\n", page, re.MULTILINE):
        block = next(b for b in programs if b.start > heading.end())
        words = page[heading.end() : page.rindex("```dpl", 0, block.start)]
        text = MarkdownIt().render(words)
        found.append({"title": heading[1], "text": text, "program": block.text_of(page)})
    return found


def examples() -> dict[str, str]:
    folder = HERE.parent.parent / "examples"
    return {name[3:].replace("_", " "): (folder / f"{name}.dp").read_text(encoding="utf-8") for name in EXAMPLES}


def page(title: str, kind: str, tools: str, text: str, script: str) -> str:
    """A page from the template."""
    made = (HERE / "page.html").read_text(encoding="utf-8")
    for name, value in (("title", title), ("kind", kind), ("tools", tools), ("text", text), ("script", script)):
        made = made.replace(f"{{{name}}}", value)
    return made


def embedded(value: object) -> str:
    """A value as JavaScript inside of HTML."""
    return json.dumps(value, ensure_ascii=False).replace("</", "<\\/")


def pack(archive: Path) -> None:
    """Put the language, its library, Lark and the driver into an archive."""
    language = Path(resources.__file__).parent
    folders = {language: "dpl", resources.grammar(): "dpl/grammar", resources.stdlib(): "dpl/stdlib"}
    folders[Path(lark.__file__).parent] = "lark"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in ("driver.py", "freeze.py"):
            packed.write(HERE / name, name)
        for folder, name in folders.items():
            for file in sorted(folder.rglob("*")):
                inside = file.relative_to(folder)
                if file.is_file() and not set(inside.parts) & set(LEFT_OUT) and file.suffix != ".pyc":
                    packed.write(file, f"{name}/{inside}")


def build(pyodide: Path, out: Path) -> None:
    shutil.rmtree(out, ignore_errors=True)
    (out / "pyodide").mkdir(parents=True)
    for name in PYODIDE:
        shutil.copy(pyodide / name, out / "pyodide" / name)
    for name in COPIED:
        shutil.copy(HERE / name, out / name)
    pack(out / "dpl.zip")
    subprocess.run(["node", HERE / "make.mjs", out], check=True)
    script = INDEX.replace("EXAMPLES", embedded(examples()))
    (out / "index.html").write_text(page("DPL: playground", "play", INDEX_TOOLS, "", script), encoding="utf-8")
    script = TOUR.replace("STEPS", embedded(steps()))
    (out / "tour.html").write_text(page("DPL: a tour", "tour", TOUR_TOOLS, TOUR_TEXT, script), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the playground and the tour.")
    parser.add_argument("--pyodide", type=Path, default=HERE / "node_modules" / "pyodide", help="the npm package")
    parser.add_argument("-o", "--output", type=Path, default=HERE.parent / "_build" / "playground")
    options = parser.parse_args()
    if not (options.pyodide / PYODIDE[0]).exists():
        print(f"there is no Pyodide in {options.pyodide}:  npm install --prefix {HERE}", file=sys.stderr)
        return 1
    build(options.pyodide, options.output)
    print(options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
