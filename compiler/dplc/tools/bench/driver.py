"""The text of the measuring program: the user's definitions, and for each case a function that calls it.

The user's `do`s and `expect`s are left out.  The gradient is the pullback applied to the result itself.

Two opaque conditions keep the optimiser from removing the measured calls, from sharing work between a function and its
gradient, and from hoisting calls out of the loop: `never`, and a step beyond `limit`.  They are never true, but if they
were, the arguments would differ and the results would be printed.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

import click
from dpl.node import node, replace
from dpl.source import Source
from dpl.syntax import tree
from dpl.syntax.load import load, module_name, read, standard_modules
from dpl.types.check import check_all
from dpl.types.library import library

from dplc.flat.operation_counts import READ
from dplc.tools.bench.cases import OWN, Case, Maker, cases

SAMPLES = 15
LONG = 1e-3
FIRST = "DPL_BENCH_FIRST"  # the environment variable with the number of the first call

COMMON = f"""
extern "{READ}" _bench_tally : int -> int
let _real (k : int) : float = 0.5 + float ((k * 7919 + 12345) % 65537) / 65537.0
let _matrix (k : int) (n : int) =
  [for i < n -> [for j < n -> (if i = j then 2.0 * float n else 0.0) + _real (k + 31 * (i + j))]]
-- How often something is to be repeated to take {LONG} seconds.
let _bench_often never repeat =
  let (count, _) =
    loop (count, spent) = (1, 0.0) while spent < {LONG} do
      let start = Sys.time () in
      let last = repeat (2 * count) in
      if never then print last;
      (2 * count, Sys.time () - start)
  in
  count
"""

COST = """
let _bench_{i} (n : int) =
  print $"start {{n}}";
{arguments}
  let (o0, b0) = (_bench_tally 0, _bench_tally 1) in
  let y = f fixed given in
  let (o1, b1) = (_bench_tally 0, _bench_tally 1) in
  let g = (let (y, pullback) = vjp (f fixed') given' in pullback y) in
  let (o2, b2, d2) = (_bench_tally 0, _bench_tally 1, _bench_tally 2) in
  let (y', pullback') = vjp (f fixed) given in
  let (b3, d3) = (_bench_tally 1, _bench_tally 2) in
  let g' = pullback' y' in
  if never then begin print y; print g; print g' end;
  let kept = max 0 (b3 - b2 - d3 + d2) in
  print $"{i} {{n}} {{Tree.count given + Tree.count y}} {{o1 - o0}} {{b1 - b0}} {{o2 - o1}} {{b2 - b1}} {{kept}}"
"""

TIME = f"""
let _bench_{{i}} (n : int) =
  print $"start {{{{n}}}}";
{{arguments}}
  let limit = max_int / 2 + int (Sys.time ()) in
  let value (count : int) =
    loop y = f fixed given for i < count do
      let (fixed, given) = if i < limit then (fixed, given) else (fixed', given') in
      let y = f fixed given in
      if i > limit then print y;
      y
  in
  let pulled fixed given = (let (y, pullback) = vjp (f fixed) given in pullback y) in
  let gradient (count : int) =
    loop g = pulled fixed given for i < count do
      let (fixed, given) = if i < limit then (fixed, given) else (fixed', given') in
      let g = pulled fixed given in
      if i > limit then print g;
      g
  in
  let (many, few) = (_bench_often never value, _bench_often never gradient) in
  loop _ = () for _ < {SAMPLES} do
    let t0 = Sys.time () in
    let y = value many in
    let t1 = Sys.time () in
    let g = gradient few in
    let t2 = Sys.time () in
    if never then begin print y; print g end;
    print $"{{i}} {{{{n}}}} {{{{(t1 - t0) / float many}}}} {{{{(t2 - t1) / float few}}}}"
"""


@node
class Subject:
    """A file's definitions or a module of the library, to be measured.  `cases` has a case for each name, or the reason
    why there is none; `helpers` are the definitions that arguments need."""

    name: str
    source: Source
    cases: tuple[tuple[str, Case | str], ...]
    helpers: tuple[str, ...]


def subjects(target: str, names: Sequence[str]) -> list[Subject]:
    """The subjects for a file, a module of the standard library, or `stdlib` for all its modules.  Raises UsageError
    for an unknown target or name."""
    modules = [name for name in standard_modules() if target in ("stdlib", name)]
    if not modules and not Path(target).exists():
        raise click.UsageError(f"{target} is neither a file nor a module of the standard library")
    found = [of_module(name) for name in modules] or [of_file(Path(target))]
    known = {name for subject in found for name, _ in subject.cases}
    known |= {name.removeprefix(f"{subject.name}.") for subject in found for name, _ in subject.cases}
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            raise click.UsageError(f"{target} defines no `{name}`" + (f"; did you mean `{near[0]}`?" if near else ""))
    return [only(subject, names) for subject in found] if names else found


def only(subject: Subject, names: Sequence[str]) -> Subject:
    wanted = {*names, *(f"{subject.name}.{name}" for name in names)}
    return replace(subject, cases=tuple(case for case in subject.cases if case[0] in wanted))


def of_module(name: str) -> Subject:
    maker = Maker(library().datas)
    found = tuple(cases(name, library().modules[name].public(), maker))
    return Subject(name, Source(name, ""), found, tuple(maker.helpers))


def of_file(path: Path) -> Subject:
    checked = check_all(load(read(path)))
    maker = Maker(checked.program.datas)
    found = tuple(cases(OWN, checked.exports[OWN], maker))
    return Subject(module_name(path), Source(str(path), definitions(read(path)), path), found, tuple(maker.helpers))


def definitions(source: Source) -> str:
    """A program's text with its `do`s and `expect`s replaced by blanks."""
    text = source.text
    for decl in load(source)[-1].tree.decls:
        if isinstance(decl, tree.DeclDo | tree.DeclExpect):
            start, end = decl.span.start, decl.span.end
            text = text[:start] + "".join(c if c == "\n" else " " for c in text[start:end]) + text[end:]
    return text


def program(subject: Subject, chosen: Sequence[Case], template: str, sizes: Sequence[Sequence[int]]) -> Source:
    """The program that measures each case at its sizes.  The environment variable FIRST selects the first call."""
    parts = [subject.source.text, COMMON, *subject.helpers]
    parts += [template.format(i=i, arguments=arguments(case)) for i, case in enumerate(chosen)]
    parts.append(f'let _bench_first = match Sys.env "{FIRST}" with Some first -> String.to_int first | None -> None')
    calls = [f"_bench_{i} {n}" for i, at in enumerate(sizes) for n in at]
    for i, call in enumerate(calls):
        parts.append(f"do (match _bench_first with Some first when first > {i} -> () | _ -> {call})")
    return Source(subject.source.name, "\n".join(parts) + "\n", subject.source.path)


def arguments(case: Case) -> str:
    """The text that defines `f`, a function of `fixed` and `given`, and these arguments twice, in a way that hides from
    the compiler that both copies are equal."""
    fixed = [i for i in range(len(case.args)) if i not in case.active and i not in case.inline]
    names = [case.args[i] if i in case.inline else f"a{i}" for i in range(len(case.args))]
    shown = [bundle([names[i] for i in some]) for some in (fixed, case.active)]
    made = [bundle([case.args[i] for i in some]) for some in (fixed, case.active)]
    return f"""
  let never = Sys.time () < 0.0 in
  let make (n : int) = {bundle(made)} in
  let (fixed, given) = make n in
  let (fixed', given') = if never then make (n + 1) else (fixed, given) in
  let f {" ".join(shown)} = {case.fn} {" ".join(names)} in"""


def bundle(texts: Sequence[str]) -> str:
    return f"({', '.join(texts)})"
