"""Files and texts that a page gives out: each chart as PNG and CSV, and each grid as a command, in a real browser against a real cluster."""

import base64
import csv
import json
import shlex
import signal
from urllib.parse import quote

import pytest

from web_site import PAGES, best_trial, cells, chart, wait_for

TWO = """
import os, troupe
trial = int(os.environ["DET_TRIAL_ID"])
for i in range(1, 5):
    troupe.validate({"loss": 1.0 / (i + trial % 3), "size": i * (trial % 5), "epoch": i, "confusion": {"matrix": [[i, 1], [2, 3]], "labels": ["=cat", "d<b>o</b>g"]},
                     "vector": [1, -2.5, float("nan")], "maps": [{"a": 1, "b": "x,y"}]}, step=i)
with troupe.checkpoint(4) as path:
    (path / "weights").write_text("w")
"""

CONFIG = """
hyperparameters: {x: {type: double, minval: 0, maxval: 1}, y: {type: double, minval: 0, maxval: 1}}
searcher: {name: nsga2, metrics: [loss, size], population_size: 4, max_trials: 10, time_metric: epoch, max_time: 4, max_concurrent_trials: 4}
reproducibility: {experiment_seed: 3}
max_restarts: 0
"""

# Returns the width and the height of a picture, the opacity of its corner, and the number of its colours.
LOOK = """async bytes => {
    const png = await createImageBitmap(new Blob([Uint8Array.from(atob(bytes), x => x.charCodeAt(0))], {type: "image/png"}));
    const c = new OffscreenCanvas(png.width, png.height).getContext("2d");
    c.drawImage(png, 0, 0);
    const all = new Uint32Array(c.getImageData(0, 0, png.width, png.height).data.buffer);
    return [png.width, png.height, all[0] >>> 24, new Set(all).size];
}"""


@pytest.fixture(scope="module")
def two(site):
    """The id of a search with two metrics, whose reports include values that are not numbers."""
    search = site.submit("two-metrics", TWO, CONFIG)
    assert "COMPLETED" in site.wait_ended(search)
    return search


@pytest.fixture(autouse=True)
def bounded():
    """Ends a test after 800 s, because Playwright waits without end for a file that the browser does not finish."""
    def late(*_):
        raise TimeoutError("a file did not arrive")
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(800)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def saved(page, figure, button):
    with page.page.expect_download() as got:
        figure.get_by_role("button", name=button, exact=True).click()
    return got.value


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_chart_of_every_page_is_saved(site, page, two, theme):
    page.page.evaluate(f"localStorage.setItem('troupe.theme', '{theme}')")
    trial = site.json("trial", "list", str(two))[0]["id"]
    seen = set()
    for path in PAGES + ["/trials/{t}/resources", "/experiments/{two}/analysis", "/trials/{odd}/metrics"]:
        if theme == "dark" and path not in ("/experiments/{e}/analysis", "/trials/{odd}/metrics", "/cluster"):
            continue
        at = path.format(e=site.search, t=best_trial(site), two=two, odd=trial)
        page.page.goto(site.url() + "/ui" + at)
        page.page.wait_for_selector("main[data-state=ready], main[data-state=empty]")
        page.settle()
        count = page.page.locator("main figure").count()
        for i in range(count):
            if i > 0 and i % 4 == 0:  # Chromium lets a page save ten files in a row.
                page.page.reload()
                wait_for(lambda: page.page.locator("main figure").count() >= count, 20)
                page.settle()
            figure = page.page.locator("main figure").nth(i)
            figure.scroll_into_view_if_needed()
            if (name := figure.get_attribute("data-testid")) == "chart":
                wait_for(lambda: figure.get_attribute("data-state") in ("ready", "empty"), 20)
            seen.add(name)
            table = list(csv.reader(open(saved(page, figure, "Download CSV").path(), newline="")))
            assert len({len(row) for row in table}) == 1 and (len(table) > 1 or figure.get_attribute("data-state") == "empty"), (at, name, table[:3])
            png = open(saved(page, figure, "Download PNG").path(), "rb").read()
            width, height, solid, colours = page.page.evaluate(LOOK, base64.b64encode(png).decode())
            assert width > 60 and height > 40 and solid == 255 and colours > 2, (at, name, width, height, solid, colours)
        assert page.faults == [], (at, page.faults)
    if theme == "light":
        assert seen == {"chart", "history", "importance", "parallel", "scatter", "heatmap", "timeline", "pareto", "rungs", "slots", "topology", "matrix", "bars"}


def test_a_matrix_and_a_table_are_saved_with_their_names(site, page, two):
    page.go(f"/trials/{site.json('trial', 'list', str(two))[0]['id']}/metrics")
    got = saved(page, page.page.locator("[data-testid=matrix]"), "Download CSV")
    assert got.suggested_filename == "confusion.csv"
    assert list(csv.reader(open(got.path(), newline=""))) == [["true \\ predicted", "'=cat", "d<b>o</b>g"], ["'=cat", "4", "1"], ["d<b>o</b>g", "2", "3"]]
    assert saved(page, page.page.locator("[data-testid=matrix]"), "Download PNG").suggested_filename == "confusion.png"
    assert list(csv.reader(open(saved(page, page.page.locator("[data-testid=table-metric]"), "Download CSV").path(), newline=""))) == [["a", "b"], ["1", "x,y"]]
    page.fine()


def test_the_line_of_a_search_is_in_the_files_of_its_grid(site, page, two):
    page.go("/experiments?cols=id,spark&sort=id")
    grid = page.page.get_by_role("region", name="Experiments", exact=True)
    best = page.page.request.get(f"{site.url()}/troupe/v1/experiments/{site.search}/outcome?history=50").json()["bestSoFar"]
    lines = {row["id"]: row["spark"] for row in csv.DictReader(open(saved(page, grid, "Download CSV").path(), newline=""))}
    assert [float(x) for x in lines[str(site.search)].split(" ")] == pytest.approx(best) and len(best) > 1
    assert {row["id"]: row["spark"] for row in json.load(open(saved(page, grid, "Download JSON").path()))}[site.search] == lines[str(site.search)]
    page.fine()


def test_slots_and_actors_are_tables_too(site, page):
    for path, name, rows in [("/cluster", "slots", 4), ("/actors", "topology", None)]:
        page.go(path)
        figure = page.page.locator(f"[data-testid={name}]")
        figure.get_by_role("button", name="Show as table").click()
        assert figure.locator("tbody tr").count() == (rows or figure.locator("[data-actor]").count())
    page.fine()


def test_a_search_of_several_metrics_opens_with_them(site, page, two):
    """No trial of such a search is the best one. Curves, columns and axes show its metrics."""
    for path in ("", "/curves"):
        page.go(f"/experiments/{two}{path}")
        assert chart(page).get_attribute("data-metric") == "validation.loss", path
    page.go(f"/experiments/{two}")
    page.page.wait_for_selector("main:has-text('smallest loss and smallest size')")
    page.page.get_by_role("link", name="those that none beats").click()
    page.page.wait_for_selector("[data-testid=pareto][data-state=ready]")
    assert page.page.locator("[data-testid=history]").count() == 0 and page.page.get_by_label("Vertical").input_value() == "m.validation.loss"
    page.page.wait_for_selector("[data-testid=importance] [data-hp]")
    page.go(f"/experiments/{two}/trials")
    page.page.wait_for_selector('[role=grid][data-all="10"]')
    heads = page.page.locator("[role=grid] [role=columnheader]").evaluate_all("all => all.map(x => x.dataset.col)")
    assert heads[1:4] == ["id", "m.validation.loss", "m.validation.size"] and "best" not in heads
    wait_for(lambda: all(cells(page.page, "Trials", "m.validation.loss")), 10)
    page.go(f"/experiments/{two}/checkpoints")
    page.page.wait_for_selector('[role=grid][aria-label="Checkpoints"] [role=row][data-id]')
    for metric in ("loss", "size"):
        values = cells(page.page, "Checkpoints", f"m.validation.{metric}")
        assert values and all(values), (metric, values)
    page.fine()


def copied(page):
    page.page.get_by_role("button", name="Copy command").click()
    return page.page.evaluate("navigator.clipboard.readText()")


def test_a_copied_command_has_the_filter_and_the_order(site, page, two):
    page.page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.url())
    where = "id>0 'x'>=0 state~'pl'"
    for path, verb, grid in [("/experiments", ["experiment", "list"], "Experiments"), (f"/experiments/{two}/trials", ["trial", "list", str(two)], "Trials")]:
        page.go(f"{path}?q={quote(where)}&sort=-id" if grid == "Trials" else f"{path}?q=id%3E0%20two%20state~%27mple%27")  # The usual order of experiments is not that of the command.
        wait_for(lambda: int(page.page.get_attribute(f'[role=grid][aria-label="{grid}"]', "data-rows")) > 0, 10)
        words = shlex.split(copied(page))
        assert words[:-4] == ["troupe", *verb] and words[-4] == "--where" and words[-2:] == ["--sort", "-id"], words
        assert words[-3] == (where if grid == "Trials" else "id>0 two state~'mple'")
        ids = page.page.locator(f'[role=grid][aria-label="{grid}"] [role=row][data-id]').evaluate_all("all => all.map(x => Number(x.dataset.id))")
        assert [row["id"] for row in site.json(*words[1:])] == ids
    page.go("/actors?q=cluster%20backlog%3E%3D0&sort=id")
    page.page.wait_for_selector('[role=grid][aria-label="Actors"] [role=row][data-id]')
    words = shlex.split(copied(page))
    assert words == ["troupe", "shell", "-e", "ps | where 'actor~cluster' 'backlog>=0' | order actor"]
    answer = site.cli(*words[1:], "-o", "json").stdout
    shown = page.page.locator('[role=grid][aria-label="Actors"] [role=row][data-id] [data-col="id"]').all_inner_texts()
    assert [row["actor"] for row in json.loads(answer)] == shown
    page.go(f"/experiments/{two}/logs?q=it%27s&regex=1")
    assert shlex.split(copied(page)) == ["troupe", "experiment", "logs", str(two), "--search", "it's", "--regex"]
    page.go(f"/experiments/{two}/analysis?brush=x:0.1..0.9&q=y%3E0")
    page.page.wait_for_selector('[role=grid][aria-label="Trials"][data-all="10"]')
    assert shlex.split(copied(page)) == ["troupe", "trial", "list", str(two), "--where", "y>0 hp.x>=0.1 hp.x<=0.9"]
    page.fine()


def test_two_that_kill_are_told_apart(site, page):
    search = site.submit_search(name="kept", trials=2, epoch_s=60)
    page.go(f"/experiments/{search}/trials")
    page.page.wait_for_selector('[role=grid][data-all="2"]')
    for box in page.page.locator("[role=row][data-id] input[type=checkbox]").all():
        box.check()
    assert page.page.get_by_role("button", name="Kill", exact=True).count() == 1
    page.page.get_by_role("button", name="Kill 2 trials").click()
    page.page.get_by_role("alertdialog", name="Kill 2 trials?").wait_for()
    page.page.keyboard.press("Escape")
    site.cli("experiment", "kill", str(search))
    page.fine()
