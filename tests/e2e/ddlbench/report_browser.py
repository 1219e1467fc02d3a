#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens a report of ddlbench in a browser at the sizes of a phone, a laptop and a printed page, in light and in dark, and looks whether every plot has its
marks: as many as there are numbers, inside of the plot, in their colour on the screen.  Screenshots are kept in
$DDLRUN_BUILD/report-screenshots.  Exit status 77 where there is no Chromium.

usage: report_browser.py      with DDLRUN_BUILD
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import browser as browsers
import made_runs

RUNS, STEPS, GPU_SAMPLES = 6, 60, 50
# Figure -> marks of each class, and rows of its table.
EXPECTED = {
    "throughput": ({"line": RUNS}, RUNS * STEPS),
    "loss": ({"line": RUNS}, RUNS * STEPS),
    "scaling": ({"line": 2, "point": 3, "band": 1}, 3),
    "efficiency": ({"line": 2, "point": 3}, 3),
    "group-differences": ({"point": 2, "interval": 2}, 2),
    "run-differences": ({"point": RUNS - 1, "interval": RUNS - 1}, RUNS - 1),
    "accuracy": ({"bar": RUNS}, RUNS),
    "energy": ({"bar": 3}, 3),
}
for number, gpus in ((1, 1), (3, 2), (5, 4)):
    EXPECTED[f"breakdown-{number}"] = ({"bar": gpus * len(made_runs.PHASES)}, gpus)
    for quantity in ("sm-clock", "memory-clock", "power", "temperature"):
        EXPECTED[f"{quantity}-{number}"] = ({"line": gpus}, gpus * GPU_SAMPLES)

# What is asked of the page: of every chart its place, its marks, a point on each, and their colour.
LOOK = """(() => {
  const place = box => ({left: box.left, right: box.right, top: box.top + scrollY, bottom: box.bottom + scrollY});
  const charts = [...document.querySelectorAll('svg.chart')].map(svg => {
    const marks = [...svg.querySelectorAll('.line, .point, .bar, .interval, .band')].map(mark => {
      const box = mark.getBBox(), style = getComputedStyle(mark);
      let x = box.x + box.width / 2, y = box.y + box.height / 2, points = 1;
      if (mark.matches('.line, .interval')) {
        const middle = mark.getPointAtLength(mark.getTotalLength() / 2);
        x = middle.x; y = middle.y; points = mark.getAttribute('d').split(/[ML]/).length - 1;
      }
      const on_screen = new DOMPoint(x, y).matrixTransform(mark.getScreenCTM());
      return {kind: mark.classList[0], points, x: on_screen.x + scrollX, y: on_screen.y + scrollY,
              color: mark.matches('.line, .interval') ? style.stroke : style.fill,
              opacity: style.opacity, ideal: mark.classList.contains('ideal'), box: place(mark.getBoundingClientRect())};
    });
    const texts = [...svg.querySelectorAll('text')].map(text => place(text.getBoundingClientRect()));
    const figure = svg.closest('figure');
    return {id: svg.id, box: place(svg.getBoundingClientRect()), marks, texts,
            font: parseFloat(getComputedStyle(svg.querySelector('text')).fontSize) * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width,
            label: document.getElementById(svg.getAttribute('aria-labelledby')).textContent,
            legend: figure.querySelectorAll('.legend li').length,
            rows: figure.querySelectorAll('details table tbody tr').length};
  });
  return JSON.stringify({charts, scroll: document.documentElement.scrollWidth, width: innerWidth,
                         back: getComputedStyle(document.body).backgroundColor});
})()"""


def rgb(color):
    return tuple(int(float(part)) for part in re.findall(r"[\d.]+", color)[:3])


def near(a, b):
    """Also where a thin line lies between two rows of pixels."""
    return max(abs(x - y) for x, y in zip(a, b)) <= 72


def problems_of(chart):
    """What is wrong with one chart, before anything is drawn."""
    marks, rows = EXPECTED[chart["id"]]
    found = {}
    for mark in chart["marks"]:
        found[mark["kind"]] = found.get(mark["kind"], 0) + 1
    if found != marks:
        yield f"marks are {found}, not {marks}"
    if chart["rows"] != rows:
        yield f"the table has {chart['rows']} rows, not {rows}"
    points = sum(mark["points"] for mark in chart["marks"] if mark["kind"] == "line" and not mark["ideal"])
    if points not in (0, rows):
        yield f"the lines have {points} points, the table {rows}"
    if not chart["label"]:
        yield "it has no title"
    box = chart["box"]
    for what in [mark["box"] for mark in chart["marks"]] + chart["texts"]:
        if (what["left"] < box["left"] - 1 or what["right"] > box["right"] + 1 or what["top"] < box["top"] - 1
                or what["bottom"] > box["bottom"] + 1):
            yield f"something lies outside of it: {what} of {box}"
    for mark in chart["marks"]:
        width, height = mark["box"]["right"] - mark["box"]["left"], mark["box"]["bottom"] - mark["box"]["top"]
        if width <= 0 and height <= 0:
            yield f"a {mark['kind']} has no size"
    if chart["font"] < 9:
        yield f"letters of {chart['font']:.1f} pixels"


def drawn_marks(chart):
    """Those that must be seen in their colour: no band, which is pale, and no dashed line."""
    return [mark for mark in chart["marks"] if mark["kind"] != "band" and not mark["ideal"]]


def look(browser, name, directory, scale):
    """Problems of the page as it stands now."""
    import json
    page = json.loads(browser.evaluate(LOOK))
    if page["scroll"] > page["width"]:
        yield f"the page is {page['scroll']} wide, the screen {page['width']}"
    missing = set(EXPECTED) ^ {chart["id"] for chart in page["charts"]}
    if missing:
        yield f"plots that are missing or too many: {sorted(missing)}"
        return
    png = browser.screenshot(whole=True)
    (directory / f"{name}.png").write_bytes(png)
    marks = [mark for chart in page["charts"] for mark in drawn_marks(chart)]
    places = [(round(mark["x"] * scale), round(mark["y"] * scale)) for mark in marks]
    corner, *around = browser.pixels(png, [(2, 2), *places])
    if not all(near(pixel, rgb(page["back"])) for pixel in corner):
        yield f"the background is {corner[0]}, not {page['back']}"
    unseen = {id(mark) for mark, pixels in zip(marks, around) if not any(near(pixel, rgb(mark["color"])) for pixel in pixels)}
    for chart in page["charts"]:
        for problem in problems_of(chart):
            yield f"{chart['id']}: {problem}"
        solid = drawn_marks(chart)
        hidden = sum(id(mark) in unseen for mark in solid)
        # A mark may lie under another one.
        if hidden > len(solid) // 4:
            yield f"{chart['id']}: {hidden} of {len(solid)} marks are not on the screen"
    yield from wrong_brightness(name, rgb(page["back"]))


def wrong_brightness(name, back):
    is_dark = sum(back) < 3 * 128
    if is_dark != name.endswith("dark"):
        yield f"the background is {back}"


def outside_requests(browser):
    for event in browser.events:
        url = event.get("params", {}).get("request", {}).get("url", "file:")
        if event.get("method") == "Network.requestWillBeSent" and not url.startswith("file:"):
            yield f"it fetches {url}"
        if event.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown"):
            yield f"the browser says {event['params']}"


def main():
    path = browsers.find()
    if path is None:
        print("skipped: there is no " + " or ".join(browsers.NAMES) + "; tools/bootstrap check installs one")
        return 77
    build = pathlib.Path(os.environ["DDLRUN_BUILD"])
    directory = build / "report-screenshots"
    directory.mkdir(parents=True, exist_ok=True)
    problems = []
    with tempfile.TemporaryDirectory(prefix="report.") as work:
        made_runs.make(work + "/runs", steps=STEPS)
        page = work + "/report.html"
        subprocess.run([build / "bin/ddlbench", "report", f"--output={page}", work + "/runs"], check=True)
        with browsers.Browser(path) as browser:
            browser.open(page)
            for name, width, height, scale, mobile, media, scheme in (
                    ("phone", 360, 740, 2, True, "", "light"), ("phone-dark", 360, 740, 2, True, "", "dark"),
                    ("laptop", 1366, 768, 1, False, "", "light"), ("laptop-dark", 1366, 768, 1, False, "", "dark"),
                    ("print", 794, 1123, 1, False, "print", "dark")):
                browser.resize(width, height, scale, mobile)
                browser.media(media, scheme)
                problems += [f"{name}: {problem}" for problem in look(browser, name, directory, scale)]
            pdf = browser.pdf()
            (directory / "print.pdf").write_bytes(pdf)
            pages = len(re.findall(rb"/Type\s*/Page\b", pdf))
            if not pdf.startswith(b"%PDF") or not 2 <= pages <= 20:
                problems.append(f"printed it has {pages} pages")
            problems += outside_requests(browser)
    for problem in problems:
        print(problem)
    print(f"{len(EXPECTED)} plots at 5 sizes; screenshots are in {directory}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
