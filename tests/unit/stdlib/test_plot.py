"""Pictures: SVG that is XML with a mark for each datum, PNG that others read, rows of characters; of odd data too."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from xml.etree import ElementTree

import pytest
from conftest import ROOT

SVG = "{http://www.w3.org/2000/svg}"
BLUE, ORANGE = "#1f77b4", "#ff7f0e"
ENGINES = ["interp", "native"]


AXIS = "[for i < 41 -> float i / 10.0 - 2.0]"
SLOPE = 'Plot.scatter [1.0, 2.0, 3.0] [3.0, 2.0, 1.0] |> Plot.name "a < b & c"'
WAVE = "[for i < 8000 -> if i = 4321 then 3.0 else if i = 77 then -3.0 else sin (float i)]"
PICTURES = {
    "line": "Plot.line [0.0, 1.0, 2.0, 4.0] [0.0, 1.0, 2.0, 4.0]",
    "layers": f'Plot.line [1.0, 3.0] [1.0, 3.0] |> Plot.name "Größe" |> Plot.over ({SLOPE})',
    "labels": 'Plot.line [1.0] [1.0] |> Plot.title "T\\t<" |> Plot.labels "across" "up" |> Plot.size 300 200',
    "fifths": "Plot.line [0.0, 1.0] [100.0, 200.0]",
    "powers": "Plot.log_y (Plot.line [0.0, 1.0] [1.0, 1e20])",
    "millions": "Plot.line [0.0, 1.0] [1e6, 1.05e6]",
    "logarithms": "Plot.log_x (Plot.log_y (Plot.line [0.0, 1.0, 10.0, 100.0] [1.0, 1.0, 100.0, 1e4]))",
    "histogram": "Plot.histogram 2 [0.0, 0.1, 0.2, 1.0, nan, inf]",
    "band": "let xs = float (range 40) in Plot.over (Plot.line xs (xs)) (Plot.band xs (xs - 5.0) (xs + 5.0))",
    "image": "Plot.image [[0.0, 1.0, nan], [0.5, 0.25, 1.0]]",
    "contour": f"let a = {AXIS} in Plot.contour 3 a a [for y in a, x in a -> x * x + y * y]",
    "many points": f"Plot.line [for i < 8000 -> float i] {WAVE}",
    "zigzag": "Plot.line [for i < 900 -> float i] [for i < 900 -> float (i % 2)]",
    "at few places": "Plot.scatter [for i < 6000 -> float (i % 10)] [for i < 6000 -> float (i / 600)]",
    "broken": "Plot.line [1.0, 2.0, 3.0, 4.0, 5.0, 1e305, 7.0] [1.0, 2.0, nan, 4.0, 5.0, 6.0, 7.0]",
}
IN_TERMINAL = {
    "points": 'Plot.scatter [0.0, 10.0] [0.0, 10.0] |> Plot.name "a" |> Plot.title "T" |> Plot.labels "x" "y"',
    "lines": 'Plot.graph exp 0.0 8.0 |> Plot.log_y |> Plot.over (Plot.line [0.0, 8.0] [1e3, 1.0] |> Plot.name "down")',
    "histogram": "Plot.histogram 7 [for i < 50 -> sin (float i)]",
    "band": "let xs = float (range 40) in Plot.over (Plot.line xs (xs)) (Plot.band xs (xs - 5.0) (xs + 5.0))",
    "image": "Plot.image [[0.0, 0.25], [0.5, 1.0]]",
    "contour": "let a = float (range 9) in Plot.contour 3 a a [for y in a, x in a -> x * y]",
}
TOGETHER = [f"Plot.svg ({p})" for p in PICTURES.values()] + [f"Plot.text ({p})" for p in IN_TERMINAL.values()]
END = "= end of a picture ="
PRINTED: dict[str, dict[str, str]] = {}  # by engine: what TOGETHER print, as one program, which is mostly the library


@pytest.fixture
def printed(dpl):
    """What an expression of type string prints, by an engine."""

    def run(engine: str, *expressions: str) -> list[str]:
        program = "".join(f'do print_string ({one})\ndo print_string "{END}"\n' for one in expressions)
        done = dpl("run", "--engine", engine, "-", stdin=program)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.split(END)[:-1]

    def text(expression: str, engine: str = "native") -> str:
        if expression not in TOGETHER:
            return run(engine, expression)[0]
        if engine not in PRINTED:
            PRINTED[engine] = dict(zip(TOGETHER, run(engine, *TOGETHER), strict=True))
        return PRINTED[engine][expression]

    return text


@pytest.fixture
def drawing(printed):
    """The root of the SVG of a picture: one of PICTURES, by its name, or an expression."""

    def root(picture: str, engine: str = "native") -> ElementTree.Element:
        return ElementTree.fromstring(printed(f"Plot.svg ({PICTURES.get(picture, picture)})", engine))

    return root


@pytest.fixture
def pixels(dpl, tmp_path: Path):
    """The pixels of the PNG of a picture, rows of (red, green, blue)."""

    def run(picture: str, engine: str = "native") -> list[list[tuple[int, ...]]]:
        path = tmp_path / "picture.png"
        done = dpl("run", "--engine", engine, "-", stdin=f'do Plot.save "{path}" ({picture})\n')
        assert (done.returncode, done.stderr) == (0, "")
        return decoded(path.read_bytes())

    return run


def decoded(data: bytes) -> list[list[tuple[int, ...]]]:
    """A PNG file of eight bits for each of red, green and blue, its check sums compared."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks: dict[bytes, bytes] = {}
    at = 8
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        name, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack_from(">I", data, at + 8 + size) == (zlib.crc32(name + body),)
        chunks[name] = body
        at += 12 + size
    assert (at, list(chunks)) == (len(data), [b"IHDR", b"IDAT", b"IEND"])
    width, height, *kind = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert kind == [8, 2, 0, 0, 0]
    scans = zlib.decompress(chunks[b"IDAT"])
    assert len(scans) == height * (3 * width + 1)
    assert set(scans[:: 3 * width + 1]) == {0}
    starts = range(1, len(scans), 3 * width + 1)
    return [list(zip(*[iter(scans[start : start + 3 * width])] * 3, strict=True)) for start in starts]


def points(element: ElementTree.Element) -> list[tuple[float, ...]]:
    return [tuple(map(float, pair.split(","))) for pair in element.get("points", "").split()]


def lines(root: ElementTree.Element, colour: str) -> list[list[tuple[float, ...]]]:
    return [points(line) for line in root.iter(SVG + "polyline") if line.get("stroke") == colour]


def filled(root: ElementTree.Element, kind: str, colour: str) -> list[ElementTree.Element]:
    return [mark for mark in root.iter(SVG + kind) if mark.get("fill") == colour]


def green(colour: str) -> int:
    return int(colour[3:5], 16)


def texts(root: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in root.iter(SVG + "text")]


# ---- SVG ----


@pytest.mark.parametrize("engine", ENGINES)
def test_a_line_has_its_points_and_goes_up(drawing, engine: str) -> None:
    (line,) = lines(drawing("line", engine), BLUE)
    assert len(line) == 4
    (x0, y0), (x1, y1), (x2, y2), (x4, y4) = line
    assert (x1 - x0, x4 - x2) == pytest.approx((x2 - x1, 2 * (x1 - x0)), abs=0.02)
    assert y0 > y1 > y2 > y4


def test_layers_have_colours_and_names(drawing) -> None:
    root = drawing("layers")
    assert len(lines(root, BLUE)) == len(filled(root, "rect", BLUE)) == 1  # the one in the legend is thick
    assert len(filled(root, "circle", ORANGE)) == 3 + 1
    assert {"Größe", "a < b & c"} <= set(texts(root))


def test_title_labels_and_size(drawing) -> None:
    root = drawing("labels")
    assert (root.get("width"), root.get("height")) == ("300", "200")
    assert {"T <", "across", "up"} <= set(texts(root))


def test_ticks_are_round_numbers(drawing) -> None:
    assert {"0", "0.2", "0.4", "1"} <= set(texts(drawing("fifths")))
    assert {"1", "100000", "1e+10"} <= set(texts(drawing("powers")))
    assert {"1000000", "1020000"} <= set(texts(drawing("millions")))


def test_logarithms_make_a_line_of_powers(drawing) -> None:
    (line,) = lines(drawing("logarithms"), BLUE)
    (x0, y0), (x1, y1), (x2, y2) = line  # what is not positive is left out
    assert (x1 - x0, y1 - y0) == pytest.approx((x2 - x1, y2 - y1), abs=0.02)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_histogram_counts(drawing, engine: str) -> None:
    root = drawing("histogram", engine)
    heights = [float(bar.get("height", 0)) for bar in filled(root, "rect", BLUE)]
    assert len(heights) == 2
    assert heights[0] == pytest.approx(3 * heights[1], abs=0.05)


def test_numbers_of_any_type_are_shown(dpl) -> None:
    program = """
let (xs, ys) = ([1, 2, 3], [0.5f32, 2.5f32, 1.0f32])
do print ((Plot.line xs ys).layers = (Plot.line [1.0, 2.0, 3.0] [0.5, 2.5, 1.0]).layers)
do print ((Plot.errors xs ys ys ys).layers = (Plot.errors (float xs) (float ys) (float ys) (float ys)).layers)
do print ((Plot.image [ys]).layers = (Plot.image [float ys]).layers)
do print ((Plot.bars xs).layers = (Plot.bars (float xs)).layers)
do print ((Plot.boxes [ys;]).layers = (Plot.boxes [float ys;]).layers)
do print ((Plot.histogram 2 xs).layers = (Plot.histogram 2 (float xs)).layers)
"""
    run = dpl("run", "--engine", "interp", "-", stdin=program)
    assert run.stdout == "true\n" * 6, run.stderr


def test_an_image_has_a_cell_for_each_number(drawing) -> None:
    cells = [rect for rect in drawing("image").iter(SVG + "rect")][1:]
    assert [cell.get("fill") for cell in cells][:2] == ["#440154", "#fde725"]
    assert len(cells) == 5  # nan is none
    assert float(cells[0].get("y", 0)) < float(cells[2].get("y", 0))  # the first row at the top


def test_a_contour_goes_round(drawing) -> None:
    """The level in the middle of x² + y², where that is 4, is a circle that touches the frame, if the grid is fine."""
    root = drawing("contour")
    levels: dict[str, list[tuple[float, ...]]] = {}
    for line in root.iter(SVG + "polyline"):
        if line.get("stroke-width") == "2":
            levels.setdefault(line.get("stroke", ""), []).extend(points(line))
    assert len(levels) == 3
    circle = sorted(levels.items(), key=lambda level: green(level[0]))[1][1]
    xs, ys = [x for x, _ in circle], [y for _, y in circle]
    middle = ((min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2)
    radii = ((max(xs) - min(xs)) / 2, (max(ys) - min(ys)) / 2)
    for x, y in circle:
        assert ((x - middle[0]) / radii[0]) ** 2 + ((y - middle[1]) / radii[1]) ** 2 == pytest.approx(1, abs=0.01)


def test_ticks_tell_numbers_apart(drawing) -> None:
    root = drawing("Plot.line [1e9, 1e9 + 1.0, 1e9 + 2.0] [1.000001, 1.000002, 1.000004]", "interp")
    ticks = texts(root)
    assert len(ticks) > 8 and len(ticks) == len(set(ticks))
    assert {"1000000001", "1.000002"} <= set(ticks)
    near = texts(drawing("Plot.line [1.0, 2.0] [1000000.499, 1000000.501]", "interp"))
    assert {"1000000.4995", "1000000.5005"} <= set(near)
    assert texts(drawing("Plot.bars [0.0, 0.0]", "interp")).count("1.5") == 0  # bars stand at whole numbers
    wide = texts(drawing("Plot.log_y (Plot.line [1.0, 2.0] [1e-290, 1e290])", "interp"))
    assert {"1e-200", "1", "1e+200"} <= set(wide)  # steps of round powers


def test_a_long_text_fits(drawing) -> None:
    root = drawing('Plot.line [1.0] [1.0] |> Plot.size 300 200 |> Plot.title (String.repeat 30 "word ")', "interp")
    long = [text for text in root.iter(SVG + "text") if (text.text or "").startswith("word")]
    assert [text.get("textLength") for text in long] == ["253"]
    assert sum(text.get("textLength") is not None for text in root.iter(SVG + "text")) == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_what_no_pixel_shows_is_left_out(drawing, engine: str) -> None:
    """The line of many points has, in each column of pixels, the lowest and the highest of them."""
    (line,) = lines(drawing("many points", engine), BLUE)
    assert 1000 < len(line) <= 4 * 800
    heights = [y for _, y in line]
    assert heights.count(min(heights)) == heights.count(max(heights)) == 1
    assert line == sorted(line, key=lambda point: point[0])
    (few,) = lines(drawing("zigzag", engine), BLUE)
    assert len(few) == 900
    root = drawing("at few places", engine)
    assert len(filled(root, "circle", BLUE)) == 100  # of many at one place, one


# ---- data that is odd ----


def test_a_line_is_broken_where_a_point_is_missing(drawing) -> None:
    root = drawing("broken")
    assert [len(line) for line in lines(root, BLUE)] == [2, 2]
    assert len(filled(root, "circle", BLUE)) == 1  # a point on its own


ODD = [
    "Plot.line [] []",
    "Plot.together []",
    "Plot.line [nan] [inf]",
    "Plot.scatter [3.0, 3.0] [0.0, 0.0]",
    "Plot.scatter [-1e-310] [1e-310]",
    "Plot.line [-9e299, 9e299] [1e15, 1e15 + 1.0]",
    "Plot.line [1e-300, 3e-300] [1e-299, 3e-299]",
    "Plot.scatter [for i < 6000 -> nan] [for i < 6000 -> 1.0]",
    "Plot.log_x (Plot.log_y (Plot.line [-1.0] [-1.0]))",
    "Plot.log_y (Plot.histogram 3 [1.0, 2.0, 2.0])",
    "Plot.log_y (Plot.image [[1.0, 2.0]])",
    "Plot.histogram 3 []",
    "Plot.histogram 3 [2.0, 2.0]",
    "Plot.image [[nan, inf]]",
    "Plot.image [[2.0, 2.0]]",
    "Plot.image [for i < 0, j < 3 -> 1.0]",
    "Plot.contour 3 [1.0] [1.0] [[1.0]]",
    "Plot.contour 3 [1.0, 2.0] [1.0, 2.0] [[1.0, 1.0], [1.0, nan]]",
]
ODD_PICTURE = """
do print_string (Plot.svg ({0}))
do print (length (Plot.png ({0})))
do Plot.show ({0})
"""


def test_odd_data_makes_a_picture(dpl) -> None:
    shown = dpl("run", "--engine", "native", "-O0", "-", stdin="".join(map(ODD_PICTURE.format, ODD)))
    assert (shown.returncode, shown.stderr) == (0, "")
    before, *drawn = shown.stdout.split("<svg")
    assert (before, len(drawn)) == ("", len(ODD))
    for picture, text in zip(ODD, drawn, strict=True):
        svg, _, rest = text.partition("</svg>\n")
        assert "nan" not in svg and "inf" not in svg, picture
        ElementTree.fromstring(f"<svg{svg}</svg>")
        count, *rows = rest.splitlines()
        assert int(count) > 1_000, picture
        assert (len(rows), max(map(len, rows)) <= 80) == (23, True), picture


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("Plot.histogram 0 [1.0]", "Plot.histogram: there must be at least one interval"),
        ("Plot.size 10 500 (Plot.line [] [])", "Plot.size: width and height are from 100 to 10000"),
        ('Plot.save "a.jpeg" (Plot.line [] [])', "Plot.save: 'a.jpeg' ends neither in .svg nor in .png"),
        ('Plot.save "no/such/folder/a.png" (Plot.line [] [])', "no/such/folder/a.png"),
    ],
)
def test_refusals(dpl, program: str, message: str) -> None:
    run = dpl("run", "-", stdin=f"do ignore ({program})\n")
    assert (run.returncode, run.stdout) == (1, "")
    assert message in run.stderr


def test_sizes_are_compared(dpl) -> None:
    run = dpl("run", "-", stdin="do Plot.show (Plot.line [1.0, 2.0] [1.0])\n")
    assert (run.returncode, "E0301" in run.stderr) == (1, True)


# ---- PNG and the terminal ----


@pytest.mark.parametrize("engine", ENGINES)
def test_png_has_the_colours_where_they_belong(pixels, engine: str) -> None:
    rows = pixels("Plot.size 120 110 (Plot.image [[0.0, 1.0], [1.0, 0.0]])", engine)
    assert (len(rows), {len(row) for row in rows}) == (110, {120})
    dark, light = (68, 1, 84), (253, 231, 37)
    assert [rows[37][72], rows[37][90], rows[56][72], rows[56][90]] == [dark, light, light, dark]
    assert rows[25][72] == rows[69][90] == (255, 255, 255)  # cells are square, where there is room for more


def test_png_of_more_than_one_block(pixels) -> None:
    rows = pixels("Plot.line [0.0, 1.0] [0.0, 1.0]")
    blue = [(x, y) for y, row in enumerate(rows) for x, pixel in enumerate(row) if pixel == (31, 119, 180)]
    assert (len(rows), len(rows[0])) == (500, 800)
    across, up = blue[0][0] - blue[-1][0], blue[-1][1] - blue[0][1]
    assert across == pytest.approx(717 / 1.08, abs=4)  # the width of the frame, less the room on both sides
    assert up == pytest.approx(456 / 1.08, abs=4)


def test_both_engines_write_the_same_png(pixels) -> None:
    picture = 'Plot.size 160 120 (Plot.graph sin 0.0 6.0 |> Plot.name "sin" |> Plot.title "(a, Ω)")'
    assert pixels(picture, "interp") == pixels(picture, "native")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", IN_TERMINAL)
def test_the_terminal(printed, golden, name: str, engine: str) -> None:
    golden(ROOT / "tests" / "golden" / "plot" / f"{name}.txt", printed(f"Plot.text ({IN_TERMINAL[name]})", engine))


LIGHT_BLUE = "#bed7ea"


def test_bands_errors_boxes_and_violins(drawing) -> None:
    band = drawing("Plot.band [0.0, 1.0, 2.0] [0.0, 0.0, 0.0] [1.0, nan, 1.0]", "interp")
    (polygon,) = band.findall(f"{SVG}polygon")
    assert polygon.get("fill") == LIGHT_BLUE and len(polygon.get("points").split()) == 5
    errors = drawing("Plot.errors [1.0, 2.0] [3.0, 4.0] [2.5, 3.5] [3.5, 5.0]", "interp")
    bars = [line for line in errors.findall(f"{SVG}polyline") if line.get("stroke") == BLUE]
    assert len(bars) == 2 and len(errors.findall(f"{SVG}circle")) == 2
    for bar in bars:  # a cap, the line, the other cap
        (left, _), (right, low), (x, y), (z, top), *cap = points(bar)
        assert left < x == z < right and low == y > top and cap == [(left, top), (right, top)]
    boxes = drawing("Plot.boxes [[1.0, 2.0, 3.0, 4.0, 100.0]; [5.0, 6.0]]", "interp")
    assert len(boxes.findall(f"{SVG}polygon")) == 2 and len(boxes.findall(f"{SVG}circle")) == 1
    assert len(drawing("Plot.violins [[1.0, 2.0, 2.0]; [5.0, 5.0]]", "interp").findall(f"{SVG}polygon")) == 2


def test_categories_and_scales(drawing) -> None:
    bars = drawing('Plot.categories ["one"; "two"] (Plot.bars [3.0, -1.0])', "interp")
    assert [text.text for text in bars.findall(f"{SVG}text")][:2] == ["one", "two"]
    plain, scaled = (drawing(f"{how} (Plot.image [[0.0, 10.0]])", "interp") for how in ("id", "Plot.with_scale"))
    assert len(scaled.findall(f"{SVG}rect")) == len(plain.findall(f"{SVG}rect")) + 64


def test_an_axis_has_several_numbers(drawing) -> None:
    root = drawing("Plot.size 300 200 (Plot.line [0.0, 1.0] [0.0, 4.0])", "interp")
    written = {text.text for text in root.iter(SVG + "text")}
    assert {"0", "2", "4"} <= written  # steps of five leave the 0 alone


def test_labels_have_room_for_the_letters_of_png(drawing) -> None:
    names = '["a name that is much too long"; "short"]'
    root = drawing(f"Plot.size 400 300 (Plot.categories {names} (Plot.line [1.0, 2.0] [1e6, 1e6 + 0.01]))", "interp")
    written = {text.text or "": float(text.get("x") or 0) for text in root.iter(SVG + "text")}
    (cut,) = [text for text in written if text.startswith("a name")]
    assert cut.endswith("...") and "short" in written and written["short"] - written[cut] > 9 * len(cut)
    assert written["1000000.01"] >= 9 * len("1000000.01")


def test_a_band_hides_no_line(pixels) -> None:
    marks = "Plot.line [0.0, 1.0] [0.5, 0.5]; Plot.band [0.0, 1.0] [0.0, 0.0] [1.0, 1.0];"
    rows = pixels(f"Plot.size 140 120 (Plot.together [{marks}])", "interp")
    assert sum(row.count((0x1F, 0x77, 0xB4)) for row in rows) > 20  # all of the line


def test_a_legend_fits_its_letters(pixels) -> None:
    rows = pixels('Plot.size 300 150 (Plot.name "validation" (Plot.band [0.0, 1.0] [0.0, 0.0] [0.0, 1.0]))')
    frame = 300 - 20
    assert {colour for row in rows for colour in row[frame + 2 :]} == {(255, 255, 255)}


def test_panels_and_dark_pictures(drawing, pixels) -> None:
    panels = "Plot.grid 2 (List.repeat 3 (Plot.size 200 100 (Plot.scatter [1.0] [1.0])))"
    svg = drawing(panels, "interp")
    assert (svg.get("width"), svg.get("height"), len(svg.findall(f"{SVG}circle"))) == ("400", "200", 3)
    titled = drawing(f'{panels} |> Plot.title "All" |> Plot.labels "x" "y"', "interp")
    assert (titled.get("width"), titled.get("height")) == ("400", "278")
    places = {text.text: float(text.get("y") or 0) for text in titled.iter(SVG + "text")}
    assert (places["All"], places["y"], places["x"]) == (21, 44, 270)
    assert drawing(f"Plot.dark ({panels})", "interp").find(f"{SVG}rect").get("fill") == "#181a1b"
    night = pixels("Plot.dark (Plot.size 200 100 (Plot.band [0.0, 1.0] [0.0, 0.0] [1.0, 1.0]))", "interp")
    assert night[0][0] == (24, 26, 27) and night[50][130] == (34, 62, 84)


def test_sequences(dpl, tmp_path: Path) -> None:
    path = tmp_path / "moving.svg"
    frames = "List.init 3 (fun t -> Plot.scatter [float t] [1.0])"
    run = dpl("run", "--engine", "interp", "-", stdin=f'do Plot.animate "{path}" 0.5 ({frames})')
    assert run.returncode == 0, run.stderr
    groups = ElementTree.fromstring(path.read_text()).findall(f"{SVG}g")
    values = [group.find(f"{SVG}animate").get("values").split(";") for group in groups]
    assert [shown.index("visible") for shown in values] == [0, 1, 2]
    assert {group.find(f"{SVG}animate").get("dur") for group in groups} == {"1.5s"}
    run = dpl("run", "--engine", "interp", "-", stdin='do Plot.animate "x.png" 0.5 []')
    assert run.returncode == 1 and "x.png" in run.stderr
