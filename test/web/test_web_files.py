"""What is taken out of the page: each chart as PNG and CSV, each grid as a command, in a real browser against a real cluster."""

import base64
import csv

import pytest

from test_web import PAGES, best_trial, cells, chart
from web_site import wait_for

TWO = """
import os, troupe
trial = int(os.environ["DET_TRIAL_ID"])
for i in range(1, 5):
    troupe.validate({"loss": 1.0 / (i + trial % 3), "size": i * (trial % 5), "epoch": i, "confusion": {"matrix": [[i, 1], [2, 3]], "labels": ["=cat", "d<b>o</b>g"]},
                     "vector": [1, -2.5, float("nan")], "maps": [{"a": 1, "b": "x,y"}]}, step=i)
"""

CONFIG = """
hyperparameters: {x: {type: double, minval: 0, maxval: 1}, y: {type: double, minval: 0, maxval: 1}}
searcher: {name: nsga2, metrics: [loss, size], population_size: 4, max_trials: 10, time_metric: epoch, max_time: 4, max_concurrent_trials: 4}
reproducibility: {experiment_seed: 3}
max_restarts: 0
"""

# A picture as its size, whether its corner is solid, and how many colours it has.
LOOK = """async bytes => {
    const png = await createImageBitmap(new Blob([Uint8Array.from(atob(bytes), x => x.charCodeAt(0))], {type: "image/png"}));
    const c = new OffscreenCanvas(png.width, png.height).getContext("2d");
    c.drawImage(png, 0, 0);
    const all = new Uint32Array(c.getImageData(0, 0, png.width, png.height).data.buffer);
    return [png.width, png.height, all[0] >>> 24, new Set(all).size];
}"""


@pytest.fixture(scope="module")
def two(site):
    """A search with two metrics, and reports that are no numbers: its id."""
    search = site.submit("two-metrics", TWO, CONFIG)
    assert "COMPLETED" in site.wait_ended(search)
    return search


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
        page.page.wait_for_selector("main[data-state=ready], main[data-state=empty]", timeout=20000)
        page.page.wait_for_timeout(200)
        count = page.page.locator("main figure").count()
        for i in range(count):
            if i > 0 and i % 4 == 0:  # Chromium lets a page save ten files in a row
                page.page.reload()
                wait_for(lambda: page.page.locator("main figure").count() >= count, 20)
                page.page.wait_for_timeout(300)
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


def test_slots_and_actors_are_tables_too(site, page):
    for path, name, rows in [("/cluster", "slots", 4), ("/actors", "topology", None)]:
        page.go(path)
        figure = page.page.locator(f"[data-testid={name}]")
        figure.get_by_role("button", name="Show as table").click()
        assert figure.locator("tbody tr").count() == (rows or figure.locator("[data-actor]").count())
    page.fine()


def test_a_search_of_several_metrics_opens_with_them(site, page, two):
    """None of its trials is the best: curves, columns and axes are its metrics."""
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
    page.fine()
