"""The language server as an editor meets it: over pipes, with a scripted client."""

import json
import re
import time

import pytest
from conftest import ROOT

pytest.importorskip("pygls", reason="the language server's extra is not installed: pip install 'dpl-lang[lsp]'")

from client import Client, marked
from dplc.tools.lsp.features.calculus import COUNTING, cost_in_words


@pytest.fixture
def client(cache, tmp_path):
    made = Client(cache, tmp_path)
    yield made
    made.process.kill()


def shown(answer: dict | None) -> str:
    assert answer is not None
    return answer["contents"]["value"]


def hover(client: Client, text: str) -> str:
    text, place = marked(text)
    client.change(text, wait=False)
    return shown(client.at("hover", place))


def labels(client: Client, text: str) -> dict[str, str]:
    """What is offered at the cursor, with its types."""
    text, place = marked(text)
    client.change(text, wait=False)
    return {item["label"]: item.get("detail", "") for item in client.at("completion", place)}


def test_says_what_it_can_do_and_ends_well(client: Client) -> None:
    for ability in ("hover", "definition", "references", "documentSymbol", "documentFormatting", "inlayHint"):
        assert client.abilities[f"{ability}Provider"], ability
    assert client.abilities["renameProvider"]["prepareProvider"]
    assert client.abilities["semanticTokensProvider"]["legend"]["tokenTypes"]
    assert client.stop() == 0
    assert client.errors == []


def test_diagnostics_as_one_types(client: Client) -> None:
    (wrong,) = client.open("let f (x : float[3]) = x * 2.0\ndo print (f [1.0, 2.0])\n")
    assert (wrong["code"], wrong["severity"], wrong["source"]) == ("E0301", 1, "dpl")
    assert wrong["range"]["start"] == {"line": 1, "character": 12}
    assert "float[2]" in wrong["message"]
    assert any(where["location"]["range"]["start"]["line"] == 0 for where in wrong["relatedInformation"])
    assert client.change("let f (x : float[3]) = x * 2.0\ndo print (f [1.0, 2.0, 3.0])\n") == []
    (unused,) = client.change("let f x = let y = x in 1.0\n")
    assert (unused["code"], unused["severity"], unused["tags"]) == ("W0203", 2, [1])
    syntax, other = client.change("let f x = (x\nlet g y = tru\n")
    assert (syntax["code"], other["code"]) == ("E0102", "E0202")
    client.tell("textDocument/didClose", textDocument={"uri": client.uri("main.dp")})
    client.wait(lambda m: m.get("params", {}).get("diagnostics") == [], 20)


def test_a_semicolon_before_the_next_definition(client: Client) -> None:
    """Each declaration is right alone; together they are read as steps."""
    (found,) = client.open("let a = 1;\nlet b = 2;\ndo print (a + b)\n")
    assert (found["code"], found["range"]["start"]) == ("E0106", {"line": 0, "character": 9})
    assert client.change("let a = 1\nlet b = 2;\ndo print (a + b);\n") == []


def test_a_literal_that_does_not_fit_is_told_once_at_its_use(client: Client) -> None:
    text = "let add x = x + 300\nlet one = add 1u8\nlet two = add 2\nlet far x = x * 1e39\nlet three = far 1.0f32\n"
    found = client.open(text)
    assert [(d["code"], d["range"]["start"]["line"]) for d in found] == [("E0214", 1), ("W0211", 4)]


def test_hover_tells_which_arguments_derivatives_reach(client: Client) -> None:
    """Texts that are not saved are not run, so the cost is left out."""
    client.open("")
    assert hover(client, "let |f x y = x * floor y").endswith("derivatives reach `x`; not `y` (only through `floor`)")
    assert hover(client, "let |f (k : int) (x : float) = x ** k").endswith("derivatives reach `x`")
    inner = "let f w =\n  let |g x y = w * x * floor y in\n  g 1.0 2.0"
    assert hover(client, inner).endswith("derivatives reach `x`; not `y` (only through `floor`)")
    assert hover(client, "let |f x = sign x").endswith("derivatives do not reach `x` (only through `sign`)")
    assert "derivatives" not in hover(client, "let |f (x : float) = x > 1.0")
    assert "derivatives" not in hover(client, "let f x = let |y = x * 2.0 in y")
    assert hover(client, "let g x y = x * 2.0\nlet |f p x = g p x + g x 1.0").endswith("reach `p` and `x`")
    stored = "let |f x y = let r = ref x in (r := y; !r)"
    assert hover(client, stored).endswith("derivatives may reach `x` and `y`")


def test_cost_of_a_gradient_in_words() -> None:
    told = {"name": "f", "grows": [], "costs": [{"size": 8, "ratio": 2.14, "gradient": {"kept": 2048}}]}
    said = "its gradient costs 2.1 times the function; the sweep keeps 2048 bytes a call (counted at size 8)"
    assert cost_in_words(json.dumps(told).encode()) == said
    assert cost_in_words(b"") == "" == cost_in_words(b'{"name": "f", "skipped": "no function"}')


@pytest.mark.slow
def test_hover_tells_the_cost_of_a_gradient(client: Client) -> None:
    """Counted in another process; meanwhile hovers are answered."""
    text, place = marked("let start = [1.0, 2.0]\nlet |f (x : float[n]) = loop y = x for _ < 4 do map sin y\n")
    (client.folder / "main.dp").write_text(text, encoding="utf-8")
    client.open(text)
    said = ""
    for _ in range(600):
        said = shown(client.at("hover", place))
        if COUNTING not in said:
            break
        time.sleep(0.1)
    assert re.search(r"its gradient costs \d\.\d times the function; the sweep keeps \d+ bytes a call", said)
    text, place = marked("let start = print 1.0\nlet |f (x : float[n]) = sum x\n")
    (client.folder / "main.dp").write_text(text, encoding="utf-8")
    client.change(text)
    assert shown(client.at("hover", place)).endswith("derivatives reach `x`")  # it would print


def test_hover_tells_types_sizes_effects_and_documentation(client: Client) -> None:
    client.open("")
    assert "let f : float[n] -> float[n]" in hover(client, "let |f (x : float[n]) = x * 2.0")
    assert "x : float[n]" in hover(client, "let f (x : float[n]) = |x * 2.0")
    assert "n : int" in hover(client, "let f (x : float[n]) = float |n")
    assert "y : float[4]" in hover(client, "let f (x : float[3, 4]) = let y = x[0] in sum |y")
    text = "-- % of twice\nlet f x = x + x\ndo print (|f 1.0)".replace("%", "|", 1)
    place = (2, 10)
    client.change(text.replace("print (|", "print ("), wait=False)
    documented = shown(client.at("hover", place))
    assert "let f : 'a -> 'a with 'a : num" in documented
    assert "here\n```dpl\nfloat -> float\n```" in documented
    assert "\n\nof twice\n\n" in documented
    captured = hover(client, "let flip p = shift k -> p * k true\nlet e = reset (if |flip 0.5 then 1.0 else 2.0)")
    assert "-{ctl float}->" in captured and "captures its caller's context" in captured
    assert "sum over the outermost dimension" in hover(client, "let f (x : float[n]) = |sum x")
    assert "'a list -> 'b list" in hover(client, "let f x = List.|map sin x")
    assert "module List" in hover(client, "let f x = |List.map sin x")
    assert "type t = A of float" in hover(client, "type t = A of float\nlet f (x : |t) = x")
    assert "A : float -> t" in hover(client, "type t = A of float\nlet x = |A 1.0")
    assert "w : float[m, n]" in hover(client, "type (n, m) layer = { w : float[m, n] }\nlet f l = l.|w")
    assert hover(client, "let f x = x && tr|ue") == "```dpl\nbool\n```"
    assert "x : float" in hover(client, "let f (|x : float) = x + (")
    text, place = marked("let f x = 1 -- no na|me")
    client.change(text, wait=False)
    assert client.at("hover", place) is None


def test_definitions_references_and_renaming(client: Client, tmp_path) -> None:
    (tmp_path / "model.dp").write_text("let scale = 2.0\nlet apply x = scale * x\nlet _own = 1\n")
    text = (
        'import "model.dp" as M\nlet apply y = M.apply y\nlet use apply = apply (M.apply 1.0)\ndo print (apply 2.0)\n'
    )
    assert client.open(text) == []
    there = client.at("definition", (1, 17))
    assert there["uri"] == client.uri("model.dp") and there["range"]["start"] == {"line": 1, "character": 4}
    assert client.at("definition", (3, 11))["range"]["start"] == {"line": 1, "character": 4}
    assert client.at("definition", (2, 17))["range"]["start"] == {"line": 2, "character": 8}
    assert client.at("definition", (1, 14))["uri"] == client.uri("model.dp")
    found = client.at("references", (1, 17), context={"includeDeclaration": True})
    assert sorted((r["uri"].rpartition("/")[2], r["range"]["start"]["line"]) for r in found) == [
        ("main.dp", 1), ("main.dp", 2), ("model.dp", 1),
    ]  # fmt: skip
    assert len(client.at("references", (1, 17), context={"includeDeclaration": False})) == 2
    changes = client.at("rename", (1, 17), newName="scaled")["changes"]
    assert {uri.rpartition("/")[2]: len(edits) for uri, edits in changes.items()} == {"main.dp": 2, "model.dp": 1}
    local = client.at("rename", (2, 8), newName="g")["changes"][client.uri("main.dp")]
    assert [e["range"]["start"]["character"] for e in local] == [8, 16]


def test_renaming_never_changes_the_meaning(client: Client) -> None:
    client.open("let f x = let y = 1.0 in x + y\nlet g x = f x\ntype r = { a : float }\nlet h { a } = a\n")
    refusals = {
        (0, 10): ("y", "would be taken for another"),
        (0, 4): ("g'", ""),
        (1, 4): ("let", "is no name"),
        (1, 10): ("F", "small letter"),
        (1, 6): ("y z", "is no name"),
    }
    for place, (name, reason) in refusals.items():
        if reason:
            with pytest.raises(RuntimeError, match=reason):
                client.at("rename", (0, 25) if place == (0, 10) else place, newName=name)
        else:
            assert client.at("rename", place, newName=name)
    fields = client.at("rename", (2, 11), newName="b")["changes"][client.uri("main.dp")]
    assert sorted(e["newText"] for e in fields) == ["b", "b = a"]
    text, place = marked("let s = s|um [1.0]\n")
    client.change(text, wait=False)
    assert client.at("prepareRename", place) is None
    with pytest.raises(RuntimeError, match="library"):
        client.at("rename", place, newName="total")


def test_fields_are_renamed_where_types_tell_whose_they_are(client: Client) -> None:
    net = "type net = { w : float[2]; bias : float }\ntype other = { bias : int }\n"
    (client.folder / "model.dp").write_text(net + "let start w : net = { w = w; bias = 0.0 }\n")
    main = """import "model.dp" as Model
type mine = { bias : string }
let p = { Model.w = [1.0, 2.0]; bias = 0.5 }
let q : Model.net = { p with bias = (Model.start p.w).bias }
let f (n : Model.net) = match n with { w; bias } -> bias + w[0]
let g n = match n with { Model.w = _; bias = b } -> b + q.bias
let own = { bias = "mine" }
"""
    client.open((client.folder / "model.dp").read_text(), "model.dp")
    client.open(main)
    edits = client.at("rename", (0, 28), "model.dp", newName="offset")["changes"]
    lines = sorted(e["range"]["start"]["line"] for e in edits[client.uri("main.dp")])
    assert lines == [2, 3, 3, 4, 5, 5] and len(edits[client.uri("model.dp")]) == 2
    own = client.at("rename", (1, 15), newName="name")["changes"]
    assert [e["range"]["start"]["line"] for e in own[client.uri("main.dp")]] == [1, 6] and len(own) == 1


def test_a_name_is_not_renamed_to_that_of_a_later_one(client: Client) -> None:
    """In its own text nothing is mistaken; in another one, the later declaration would be meant."""
    client.open("let start = 1.0\nlet middle = start + 1.0\nlet finish = middle\n", "model.dp")
    client.open('import "model.dp" as Model\nlet a = Model.start\n')
    with pytest.raises(RuntimeError, match="would be taken for another"):
        client.at("rename", (0, 5), "model.dp", newName="finish")
    client.change('import "model.dp" as Model\nlet a = Model.finish\n')
    assert client.at("rename", (0, 5), "model.dp", newName="first")


def test_completion_knows_types_and_what_may_come_next(client: Client) -> None:
    client.open("")
    found = labels(client, "let twice x = 2.0 * x\nlet f (w : float[3]) = let wide = w * w in w|")
    assert found["w"] == "float[3]" and found["wide"] == "float[3]" and "sum" not in found
    assert labels(client, "let twice x = x + 1\nlet g = tw|")["twice"] == "'a -> 'a with 'a : num"
    assert "later" not in labels(client, "let g = la|\nlet later = 1")
    record = "type p = { w : float[3]; b : float }\nlet f (p : p) = sum p.|"
    assert labels(client, record) == {"w": "float[3]", "b": "float"}
    assert labels(client, record + "\nlet g x = x\n") == {"w": "float[3]", "b": "float"}
    assert labels(client, "let f = List.rev|") == {"rev": "'a list -> 'a list"}
    assert "map" in labels(client, "let f x = List.|") and "in" not in labels(client, "let f x = List.|")
    assert {"float", "string"} <= set(labels(client, "let f (x : |")) and "sum" not in labels(client, "let f (x : |")
    assert {"start", "step", "adam"} <= set(labels(client, "let m = { Optim.|"))
    assert "start" not in labels(client, "let m = Optim.|")
    assert "when" in labels(client, "let f xs = [for x in xs |")
    keywords = labels(client, "let f x = if x |")
    assert "then" in keywords and "else" not in keywords and "type" not in keywords
    assert {"let", "type", "do", "expect"} <= set(labels(client, "|"))
    assert "Some" in labels(client, "let f x = match x with So|") and "sum" not in labels(
        client, "let f x = match x with s|"
    )
    assert "sum" in labels(client, 'let s = $"total {su|')
    record = "type p = { w : float; b : float; n : int }\nlet v = "
    assert set(labels(client, record + "{ w = 1.0; |")) == {"b", "n"}
    assert set(labels(client, record + "fun (p : p) -> { p with b = 1.0; |")) == {"w", "n"}
    client.change("type a = A | Zap of int\ntype b = Zip\nlet f (x : a) = match x with A -> 1 | Z", wait=False)
    order = sorted(client.at("completion", (2, 39)), key=lambda item: item["sortText"])
    assert order[0]["label"] == "Zap"
    assert "sum" not in labels(client, "let f x = match x with Some (s|")
    for nothing in ('let s = "su|', "-- su|", "(* su|", 'let s = "su|"'):
        assert labels(client, nothing) == {}


def test_a_request_with_wrong_parameters_is_refused(client: Client) -> None:
    with pytest.raises(RuntimeError, match="the parameters of textDocument/hover lack a part"):
        client.ask("textDocument/hover", position={"line": "one", "character": 0})


def test_names_of_other_modules(client: Client, tmp_path) -> None:
    (tmp_path / "shapes.dp").write_text(
        "-- Things with areas.\n\n-- | twice as much\nlet twice x = 2.0 * x\nlet _own = 1\n"
        "type shape = Dot | Box of float\ntype point = { px : float; py : float }\n"
    )
    client.open("")
    named = 'import "shapes.dp" as S\n'
    assert hover(client, named + "let y = S.tw|ice 1.0").endswith("twice as much\n\nderivatives reach `x`")
    assert hover(client, named + "let y = |S.twice 1.0").endswith("Things with areas.")
    assert "Box : float -> Shapes.shape" in hover(client, named + "let y = S.Bo|x 1.0")
    assert "type point = { px : float" in hover(client, named + "let f (p : S.po|int) = p.px")
    assert "px : float" in hover(client, named + "let f (p : S.point) = p.p|x")
    assert "floating-point" in hover(client, "let f (x : flo|at) = x")
    assert set(labels(client, named + "let y = S.|")) == {"twice", "Dot", "Box"}
    assert set(labels(client, named + "let f (x : S.|")) == {"shape", "point"}
    assert labels(client, named + "let f (p : S.point) = p.|") == {"px": "float", "py": "float"}
    assert "twice" in labels(client, "import Shapes\nopen Shapes\nlet y = tw|")
    modules = labels(client, "import |")
    assert modules["Shapes"] == "shapes.dp" and "List" in modules and "Some" not in modules
    assert labels(client, "let rec again x = if x then 1 else aga|")["again"] == "bool -> int"
    text = "import Shapes\nopen Shapes\nlet y = Box (twice 2.0)\n"
    assert client.change(text) == []
    there = client.at("definition", (2, 9))
    assert (there["uri"], there["range"]["start"]["line"]) == (client.uri("shapes.dp"), 5)
    field = "type a = { v : int }\ntype b = { v : float }\nlet f (x : a) = x.v\nlet g (y : b) = y.v\n"
    client.change(field)
    assert client.at("definition", (2, 18))["range"]["start"]["line"] == 0
    assert client.at("definition", (3, 18))["range"]["start"]["line"] == 1


def test_signatures(client: Client) -> None:
    client.open("")

    def signature(text: str) -> tuple[str, str]:
        text, place = marked(text)
        client.change(text, wait=False)
        found = client.at("signatureHelp", place)
        (one,) = found["signatures"]
        start, end = one["parameters"][found["activeParameter"]]["label"]
        return one["label"], one["label"][start:end]

    assert signature("let g = fold (fun a x -> a + x) |") == ("fold : ('a -> 'b -> 'a) -> 'a -> 'b[n] -> 'a", "'a")
    assert signature("let g = map |") == ("map : ('a -> 'b) -> 'a[n] -> 'b[n]", "('a -> 'b)")
    assert signature("let f (x : float[n]) (k : int) = x[k]\nlet g xs = 1.0 + f xs (2 + |)")[1] == "int"
    pair = "type pair = Pair of float * int\nlet t = "
    assert signature(pair + "Pair (sin 1.0, |") == ("Pair : float * int -> pair", "int")
    assert signature("let t = Some (1 + |") == ("Some : 'a -> 'a option", "'a")
    text, place = marked("let g = |")
    client.change(text, wait=False)
    assert client.at("signatureHelp", place) is None


def test_outline_colours_and_hints(client: Client) -> None:
    text = "type t = A | B of float\nlet f (x : float[n]) y = let z = x * y in z\nlet xs = f [1.0, 2.0] 3.0\n"
    text += 'expect "one" = true\n'
    assert client.open(text) == []
    outline = client.about("documentSymbol")
    assert [s["name"] for s in outline] == ["t", "f", "xs", "expect 'one'"]
    assert [s["name"] for s in outline[0]["children"]] == ["A", "B"]
    data = client.about("semanticTokens/full")["data"]
    legend = client.abilities["semanticTokensProvider"]["legend"]["tokenTypes"]
    line = start = 0
    kinds = {}
    for down, right, length, kind, _ in zip(*[iter(data)] * 5, strict=True):
        line, start = line + down, right if down else start + right
        kinds.setdefault(text.split("\n")[line][start : start + length], legend[kind])
    assert (kinds["f"], kinds["x"], kinds["z"], kinds["n"]) == ("function", "parameter", "variable", "typeParameter")
    assert (kinds["A"], kinds["t"], kinds["float"], kinds["*"]) == ("enumMember", "type", "type", "operator")
    everything = {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}}
    found = {
        (h["position"]["line"], h["position"]["character"]): h["label"]
        for h in client.about("inlayHint", range=everything)
    }
    assert found[2, 6] == ": float[2]"
    assert found[1, 30] == ": float[n]"
    part = {"start": {"line": 2, "character": 0}, "end": {"line": 2, "character": 5}}
    assert [h["label"] for h in client.about("inlayHint", range=part)] == [": float[2]"]


def test_formatting(client: Client) -> None:
    client.open("let   f x=x+1")
    options = {"tabSize": 2, "insertSpaces": True}
    (edit,) = client.about("formatting", options=options)
    assert edit["newText"] == "let f x = x + 1\n"
    client.change(edit["newText"])
    assert client.about("formatting", options=options) == []
    client.change("let f x = (")
    assert client.about("formatting", options=options) is None


CERTAIN = {
    "let f x = let y = x in 1.0\n": "let f x = let _y = x in 1.0\n",
    "let f x = x == 1\n": "let f x = x = 1\n",
    "let f x = (1 + x; x)\n": "let f x = (ignore (1 + x); x)\n",
    "let f x = if True then x else 1\n": "let f x = if true then x else 1\n",
    "let length_of x = 1\nlet g = lenght_of 2\n": "let length_of x = 1\nlet g = length_of 2\n",
    "let xs = Lst.map\n": "let xs = List.map\n",
}


def test_what_is_certain_is_offered_as_an_action(client: Client) -> None:
    client.open("")
    for wrong, right in CERTAIN.items():
        (diagnostic,) = client.change(wrong)
        (action, *_) = client.about("codeAction", range=diagnostic["range"], context={"diagnostics": [diagnostic]})
        assert action["kind"] == "quickfix", wrong
        lines = wrong.split("\n")
        for edit in sorted(
            action["edit"]["changes"][client.uri("main.dp")], key=lambda e: -e["range"]["start"]["character"]
        ):
            start, end = edit["range"]["start"], edit["range"]["end"]
            line = lines[start["line"]]
            lines[start["line"]] = line[: start["character"]] + edit["newText"] + line[end["character"] :]
        assert "\n".join(lines) == right
        assert client.change(right) == []


def test_modules_that_change_are_read_again(client: Client, tmp_path) -> None:
    (tmp_path / "lib.dp").write_text("let size = 3\n")
    text = "import Lib\nlet xs : float[3] = zeros Lib.size\ndo print (Lib.size + 1)\n"
    client.open(text)
    client.open("let size = 3\n", "lib.dp")
    client.change('let size = "three"\n', "lib.dp")
    uri = client.uri("main.dp")
    client.wait(lambda m: m.get("params", {}).get("uri") == uri and m["params"]["diagnostics"], 30)
    assert any("string" in d["message"] for d in client.told[uri]["diagnostics"])
    client.tell("textDocument/didClose", textDocument={"uri": client.uri("lib.dp")})
    change = {"uri": client.uri("lib.dp"), "type": 2}
    client.tell("workspace/didChangeWatchedFiles", changes=[change])
    client.wait(lambda m: m.get("params", {}).get("uri") == uri and not m["params"]["diagnostics"], 30)
    client.open("let size = 3\n", "lib.dp")
    client.change("let size = (\n", "lib.dp")
    client.wait(lambda m: m.get("params", {}).get("uri") == uri and "imported" in json.dumps(m), 30)
    (wrong, *_) = client.told[uri]["diagnostics"]
    assert wrong["range"]["start"]["line"] == 0
    assert wrong["relatedInformation"][0]["location"]["uri"] == client.uri("lib.dp")


# ---- whatever a client sends -----------------------------------------------------------------------------------------


def test_an_error_of_an_imported_module_is_told_once(client: Client, tmp_path) -> None:
    """Not again at each use of the module."""
    text = 'import "shapes.dp" as S\nlet a = S.area 1.0\nlet b = S.area 2.0\n'
    for name, mistake in (("syntax.dp", "1 +"), ("types.dp", '1 + "a"')):
        (tmp_path / "shapes.dp").write_text(f"let area r = r * r\nlet wrong = {mistake}\n")
        (wrong,) = client.open(text, name)
        assert wrong["message"].startswith("what is imported has an error")


def test_bytes_that_are_no_text_harm_nothing(client: Client, tmp_path) -> None:
    client.open("let f x = x + 1.0\n")
    client.send(b'{"jsonrpc": "2.0", "id": 900, "method": "textDocument/hover", "params": {"x": "\xff\xfe"}}')
    client.send(b"{not json")
    client.send(b"[]")
    (tmp_path / "broken.dp").write_bytes(b"let x = \xff\xfe 1\n")
    (wrong,) = client.change('import "broken.dp" as B\nlet y = 1\n')
    assert wrong["code"] == "E0512"
    (stray, *_) = client.change('let a = "half \ud83d" b\x00 \u2028 x\x0c\n')
    assert stray["severity"] == 1
    assert client.change("let a = 1\n") == []


def test_every_keystroke_of_a_program(client: Client) -> None:
    """Whatever half of a program is there, every question is answered."""
    text = (ROOT / "examples" / "02_tree_gradient.dp").read_text(encoding="utf-8")
    client.open("")
    for end in range(1, len(text) + 1):
        client.change(text[:end], wait=False)
        before = text[:end]
        place = (before.count("\n"), len(before) - before.rfind("\n") - 1)
        client.at("completion", place)
        if end % 5 == 0:
            client.at("hover", place)
            client.at("signatureHelp", place)
            client.about("documentSymbol")
            client.about("semanticTokens/full")
            client.at("definition", place)
    assert client.diagnostics() == []
    assert client.stop() == 0
    assert client.errors == []


def test_odd_questions(client: Client) -> None:
    client.open("let θ = 1.0\r\nlet 😀 = 2\r\nlet y = θ")
    assert client.at("hover", (500, 500)) is not None  # the end of the text
    assert client.at("definition", (2, 8))["range"]["start"] == {"line": 0, "character": 4}
    with pytest.raises(RuntimeError, match="there is no text"):
        client.at("hover", (0, 0), name="never_opened.dp")
    deep = "let x = " + "(" * 3000 + "1" + ")" * 3000 + "\n"
    assert client.change(deep) == []
    assert client.at("completion", (0, 2000)) is not None
    client.change("let x = " + "[" * 5000)
    assert client.change("let x = 1\n") == []


def test_positions_in_the_units_that_were_agreed(cache, tmp_path) -> None:
    for encoding, column in (("utf-8", 16), ("utf-16", 14), ("utf-32", 13)):
        client = Client(cache, tmp_path, (encoding,))
        (wrong,) = client.open('let s = "😀" ++ 1\n')
        assert wrong["range"]["start"]["character"] == column - 1, (encoding, wrong["range"])  # of the operator
        assert wrong["range"]["end"]["character"] == column + 1
        client.process.kill()


@pytest.mark.clock
def test_answers_within_a_tenth_of_a_second_on_a_thousand_lines(client: Client) -> None:
    """Each question comes right after an edit, and so includes what that makes necessary."""
    text = "let f_of (x : float[n]) = sum x\n" + "\n".join(
        f"-- | number {i}\n"
        f"let f{i} (x : float[n]) (k : int) =\n"
        f"  let y = x * {i}.0 + 1.0 in\n"
        f"  let rec go i s = if i = k then s else go (i + 1) (s + y[i]) in\n"
        f"  go 0 (sum y + f{i - 1 if i else ''}_of x)\n"
        f"let f{i}_of (x : float[n]) = f{i} x 1\n"
        for i in range(170)
    )
    assert text.count("\n") > 1000
    assert client.open(text) == []
    line = text[: text.index("let f85 ")].count("\n")
    client.at("completion", (line + 1, 4))  # the library's members are described once
    spent: dict[str, float] = {}

    def timed(what: str, ask) -> None:
        """The mean of several edits: processor time is told in hundredths of a second."""
        start = client.spent()
        for number in range(10):
            client.change(text.replace("x * 85.0", f"x * {number + 100}.0 + su"), wait=False)
            ask()
        spent[what] = (client.spent() - start) / 10

    timed("completion", lambda: client.at("completion", (line + 1, len("  let y = x * 100.0 + su"))))
    timed("hover", lambda: client.at("hover", (line + 1, 6)))
    timed("definition", lambda: client.at("definition", (line + 3, 20)))
    timed("symbols", lambda: client.about("documentSymbol"))
    timed("colours", lambda: client.about("semanticTokens/full"))
    timed("diagnostics", lambda: client.diagnostics())
    print({what: f"{seconds * 1000:.0f} ms" for what, seconds in spent.items()})
    assert all(seconds < 0.1 for seconds in spent.values()), spent
