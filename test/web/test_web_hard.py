"""Names, values and addresses that are hard to show, in a real browser against a real cluster."""

import json
import re
from urllib.parse import quote

import pytest

from web_site import PAGES, SINGLE, cells, chart, rows, wait_for

NAMES = ["a,b", "val/loss", "x.y.z", "50%", "a%2Fb", "#1 'q' \"d\"", "\U0001f600", "\u05e9\u05dc\u05d5\u05dd", "group", "steps", "__proto__", "constructor",
         "loss.min", "<i>x</i>", "r\u202eltr"]

SCRIPT = r'''
import json, os, troupe
names = json.loads(os.environ["NAMES"])
trial = int(os.environ["DET_TRIAL_ID"])
print("\x1b[?25lhidden cursor\x1b[?25h \x1b[38;5;196mbright\x1b[0m", flush=True)
for i in range(1, 6):
    troupe.log({**{n: i + 0.5 for n in names}, "huge": 1e308 if i % 2 else -1e308, "zero": -0.0, "nan": float("nan"),
                "inf": float("inf") if i == 2 else i, "loss": 1.0 / (i + trial % 3), "flat": 7}, step=i)
troupe.validate({"loss": 1.0 / trial, "vector": list(range(5000)), "ragged": [[1, 2], [3]], "matrix": [[i * j for i in range(130)] for j in range(120)],
                 "minus": [[-1, 0], [0.5, 1]], "labelled": {"matrix": [[1, 2], [3, 4]], "labels": ["<b>a</b>", "r\u202e"]},
                 "table": {"columns": ["k", "k"], "rows": [[1, "x"], [2, None]]}, "maps": [{"a": 1, "b": 2}, {"b": "<b>"}], "unlike": [{"a": 1}, {"b": 2}], "text": "r\u202eltr",
                 "tree": {"": {"k": []}}, "nothing": [], "none": None}, step=5)
'''

CONFIG = """
hyperparameters:
  "learning rate": {type: categorical, vals: [0.1, 0.2]}
  layers: {type: categorical, vals: [[1, 2], [3]]}
  mixed: {type: categorical, vals: [1, two, true, "10"]}
  "it's": "don't 'stop'"
  "a,b": 5
  "=<>~": "=<>~ x"
  list: [1, {a: 2}]
  best: 3
searcher: {name: random, metric: loss, max_length: {batches: 5}, max_trials: 10, max_concurrent_trials: 4}
reproducibility: {experiment_seed: 3}
max_restarts: 0
environment: {environment_variables: [%s]}
""" % json.dumps("NAMES=" + json.dumps(NAMES))


@pytest.fixture(scope="module")
def hard(site):
    """The id of a search with such names and values."""
    search = site.submit("hard-\u05e9\u05dc\u05d5\u05dd", SCRIPT, CONFIG)
    assert "COMPLETED" in site.wait_ended(search)
    return search


@pytest.fixture(scope="module")
def empty(site):
    """The id of a search without trials."""
    job = site.root / "job"
    job.mkdir(exist_ok=True)
    config = site.root / "empty.yaml"
    config.write_text("name: empty\nentrypoint: python3 job.py\nhyperparameters: {x: {type: double, minval: 0, maxval: 1}}\nsearcher: {name: custom, metric: loss}\n")
    return site.json("experiment", "create", str(config), str(job))["id"]


def trial_of(site, search):
    return site.json("trial", "list", str(search))[0]["id"]


def live(page):
    page.page.wait_for_selector("[data-testid=live][data-state=live]")
    page.stays(lambda: page.page.get_attribute("[data-testid=live]", "data-state") == "live", 0.6)


# ---- pages


def test_each_page_of_hard_names_works(site, page, hard):
    t = trial_of(site, hard)
    for path in PAGES:
        at = path.format(e=hard, t=t)
        page.page.goto(site.url() + "/ui" + at)
        page.page.wait_for_selector("main[data-state=ready], main[data-state=empty]")
        page.settle()
        assert page.faults == [], (at, page.faults)
        assert page.page.locator("[role=alert]:visible p, .fault").all_inner_texts() == [], at
        assert page.page.locator("main i:has-text('x'), main b:has-text('a')").count() == 0, at
        seen = page.page.evaluate("""[document.title, document.body.textContent, ...[...document.querySelectorAll('[title], [aria-label]')].flatMap(
            x => [x.title, x.getAttribute('aria-label') ?? ''])]""")
        assert [x[:200] for x in seen if re.search("[\u202a-\u202e\u2066-\u2069]", x)] == [], at
    live(page)


def test_a_search_without_trials_says_so(site, page, empty):
    for path, text in [("", "No validation yet"), ("/trials", "No trial yet"), ("/curves", "No report of"), ("/analysis", "No trial yet"), ("/search", "No decision yet"),
                       ("/checkpoints", "No checkpoint yet"), ("/logs", "Logs of its trials"), ("/trials?q=x%3C1&sort=-x", "No trial yet")]:
        page.page.goto(f"{site.url()}/ui/experiments/{empty}{path}")
        page.page.wait_for_selector(f"main[data-state=ready]:has-text('{text}')")
        assert page.page.locator(".fault").count() == 0, path
    page.page.goto(f"{site.url()}/ui/compare?experiments={empty}")
    page.page.wait_for_selector(f"main[data-state=empty]:has-text('experiment {empty} has no validation yet')")
    page.fine()


@pytest.mark.parametrize("id", ["0", "00", "99999999999999999999", "9007199254740993", "4294967296"])
def test_an_id_that_there_cannot_be_is_unknown_and_ends_no_stream(site, page, id):
    page.go(f"/experiments/{id}", "error")
    assert f"no experiment {int(id) if len(id) < 15 and id != '00' else id}" in page.page.inner_text("main")
    page.go(f"/trials/{id}/logs", "error")
    assert "There is no trial" in page.page.inner_text("main")
    page.go("/experiments")
    live(page)
    page.fine_but(404)


def test_each_page_fits_a_narrow_window(site, page, hard):
    page.page.set_viewport_size({"width": 360, "height": 740})
    t = trial_of(site, hard)
    wide = {}
    for path in PAGES + ["/actors?at=cluster"]:
        at = path.format(e=hard, t=t)
        page.page.goto(site.url() + "/ui" + at)
        page.page.wait_for_selector("main[data-state=ready], main[data-state=empty]")
        page.settle()
        if (width := page.page.evaluate("document.documentElement.scrollWidth")) > 362:
            wide[at] = (width, page.page.evaluate("""[...document.querySelectorAll('main *')].filter(x => x.getBoundingClientRect().right > 362
                && !x.closest('.gridscroll, .tablebox, .logbox, pre, .editor')).slice(0, 3).map(x => x.outerHTML.slice(0, 120))"""))
    assert wide == {}, json.dumps(wide, indent=1)


def test_home_shows_the_first_error_line_of_the_last_failures(site, page):
    search = site.submit("raises", "print('loading', flush=True)\nraise RuntimeError('no such <b>file</b>')\n", f"{SINGLE}\nmax_restarts: 0")
    assert "ERROR" in site.wait_ended(search)
    page.go("/")
    card = page.page.locator(f"li:has(a[href='/ui/experiments/{search}'])")
    card.locator("text=RuntimeError: no such <b>file</b>").wait_for()
    card.locator(".line a").click()
    page.page.wait_for_selector(".logline.marked:has-text('RuntimeError')")
    page.fine()


def test_a_file_of_many_lines_is_shown_in_part(site, page):
    job = site.root / "job-lines"
    job.mkdir()
    (job / "job.py").write_text("print(1)\n")
    (job / "many.txt").write_text("line\n" * 300_000)
    (site.root / "lines.yaml").write_text(f"name: lines\nentrypoint: python3 job.py\n{SINGLE}\n")
    search = site.json("experiment", "create", str(site.root / "lines.yaml"), str(job))["id"]
    page.go(f"/experiments/{search}/code")
    page.page.get_by_role("button", name="many.txt").click()
    page.page.wait_for_selector("text=The first 5000 of 300001 lines")
    assert page.page.locator(".file code").count() == 5000
    page.fine()


# ---- lists


def test_a_column_with_a_comma_is_kept_by_the_address(site, page, hard):
    page.go(f"/experiments/{hard}/trials")
    page.page.wait_for_selector('[role=grid][data-all="10"]')
    page.page.get_by_role("button", name="Columns").click()
    dialog = page.page.get_by_role("dialog", name="Columns")
    for key in ["hp.a,b", "hp.=<>~", "m.training.val/loss", "m.training.loss.min", "m.training.50%"]:
        dialog.get_by_label("Search").fill(key)
        box = dialog.locator("li", has=page.page.locator(f"code:text-is({json.dumps(key)})")).get_by_role("checkbox").first
        if not box.is_checked():
            box.check()
    dialog.get_by_role("button", name="Close").click()
    page.page.reload()
    page.page.wait_for_selector('[role=grid][data-all="10"]')
    heads = page.page.locator('[role=grid] [role=columnheader]').evaluate_all("all => all.map(x => x.dataset.col)")
    assert {"hp.a,b", "hp.=<>~", "m.training.val/loss", "m.training.loss.min", "m.training.50%"} <= set(heads), heads
    assert set(cells(page.page, "Trials", "hp.a,b")) == {"5"}
    wait_for(lambda: set(cells(page.page, "Trials", "m.training.val/loss")) == {"5.5"}, 10)
    page.fine()


def test_a_click_on_a_hyperparameter_finds_trials_alike(site, page, hard):
    trial = trial_of(site, hard)
    page.go(f"/trials/{trial}")
    links = page.page.locator("section:has(h2:text-is('Hyperparameters')) a")
    count = links.count()
    assert count == 8
    for i in range(count):
        page.go(f"/trials/{trial}").settle()  # so that nothing moves while one clicks
        label = links.nth(i).get_attribute("aria-label")
        links.nth(i).click()
        page.page.wait_for_selector('[role=grid][aria-label="Trials"][data-all="10"]')
        page.settle()
        assert page.page.locator(".fault").count() == 0, label
        assert page.page.locator(f'[role=row][data-id="{trial}"]').count() == 1, label
    page.fine()


def test_a_filter_with_only_a_quote_keeps_the_rows(site, page, hard):
    page.go(f"/experiments/{hard}/trials?q='")
    page.page.wait_for_selector('[role=grid][data-all="10"][data-rows="10"]')
    assert page.page.locator(".fault").inner_text() == "At 1: this quote is not closed"
    box = page.page.get_by_label("Filter")
    box.fill("'learning rate'=0.1")
    wait_for(lambda: 0 < int(page.page.get_attribute("[role=grid]", "data-rows")) < 10, 5)
    kept = page.page.get_attribute("[role=grid]", "data-rows")
    box.fill("'learning rate'=0.1 m.training.loss<2 '")
    page.page.wait_for_selector(".fault")
    page.stays(lambda: page.page.get_attribute("[role=grid]", "data-rows") == kept, 0.5)
    page.fine()


def test_a_filter_of_the_address_shows_no_fault_while_its_columns_come(site, page, hard):
    page.page.add_init_script("""new MutationObserver(() => { if (document.querySelector('.fault')) window.sawFault = document.querySelector('.fault').textContent; })
        .observe(document, {childList: true, subtree: true})""")
    page.go(f"/experiments/{hard}/trials?q='learning rate'%3E0 m.training.loss%3E0&cols=id,m.training.loss&sort=-m.training.loss")
    page.page.wait_for_selector('[role=grid][data-all="10"][data-rows="10"]')
    wait_for(lambda: all(cells(page.page, "Trials", "m.training.loss")), 10)
    losses = [float(x) for x in cells(page.page, "Trials", "m.training.loss")]
    assert losses == sorted(losses, reverse=True)
    assert page.page.evaluate("window.sawFault") is None


def test_missing_and_nan_are_last_in_both_directions(site, page, hard):
    page.go(f"/experiments/{hard}/trials?cols=id,m.training.nan,m.training.inf,hp.mixed&sort=m.training.nan")
    page.page.wait_for_selector('[role=grid][data-all="10"]')
    for sort in ["hp.mixed", "-hp.mixed"]:
        page.go(f"/experiments/{hard}/trials?cols=id,hp.mixed&sort={sort}")
        page.page.wait_for_selector('[role=grid][data-all="10"]')
        seen = cells(page.page, "Trials", "hp.mixed")
        numbers = [float(x) for x in seen if re.fullmatch(r"[\d.]+", x)]
        assert numbers == sorted(numbers, reverse=sort.startswith("-")), seen
    page.fine()


def test_json_of_a_grid_has_what_numbers_cannot_say(site, page, hard):
    page.go(f"/experiments/{hard}/trials?cols=id,m.training.nan,m.training.huge,m.training.zero,hp.layers")
    page.page.wait_for_selector('[role=grid][data-all="10"]')
    wait_for(lambda: all(cells(page.page, "Trials", "m.training.nan")), 10)
    with page.page.expect_download() as got:
        page.page.get_by_role("button", name="Download JSON").click()
    first = json.load(open(got.value.path()))[0]
    with page.page.expect_download() as table:
        page.page.get_by_role("button", name="Download CSV").click()
    assert open(table.value.path()).readline().strip().split(",") == list(first)
    assert first["m.training.nan"] == "NaN" and first["m.training.huge"] == 1e308 and first["m.training.zero"] == 0 and first["hp.layers"] in ("[1,2]", "[3]")


def test_the_default_order_stays_out_of_the_address(site, page, hard):
    page.go("/experiments")
    page.page.wait_for_selector('[role=grid] [role=row][data-id]')
    button = page.page.locator('[role=columnheader][data-col="id"] button')
    button.click()
    page.at("sort=id")
    button.click()
    page.at(but=["sort"])
    assert page.page.locator('[role=columnheader][data-col="id"]').get_attribute("aria-sort") == "descending"


# ---- charts


def test_curves_of_every_name(site, page, hard):
    values = ["huge", "zero", "nan", "inf", "flat"]
    for name in NAMES + values:
        for how in ["", "&logy=1&clip=1&smooth=0.9", "&group=layers&logx=1"] if name in values else [""]:
            page.page.goto(f"{site.url()}/ui/experiments/{hard}/curves?metric={quote('training.' + name, safe='')}{how}")
            page.page.wait_for_selector("figure[data-testid=chart] >> nth=0")
            wait_for(lambda: page.page.locator("[data-testid=chart]").first.get_attribute("data-state") in ("ready", "empty"), 10)
            c = page.page.locator("[data-testid=chart]").first
            assert c.get_attribute("data-metric") == "training." + name
            assert c.get_attribute("data-state") == "ready" and c.get_attribute("data-series") == ("2" if "group" in how else "10"), (name, how)
            assert page.faults == [], (name, how, page.faults)
    live(page)


def test_a_group_of_lists_and_maps_is_named_by_them(site, page, hard):
    page.go(f"/experiments/{hard}/curves?group=layers&metric=training.loss")
    chart(page)
    assert sorted(re.sub(r" \(\d+\)", "", x) for x in page.page.locator(".legend li").first.locator("xpath=..").locator("li").all_inner_texts()) == ["layers=[1,2]", "layers=[3]"]
    assert sorted(page.page.locator(".legend").first.locator("bdi").all_inner_texts()) == ["[1,2]", "[3]", "layers", "layers"], "a text that runs to the left moves no sign beside it"


def drag(page, box, x0, x1, y0=0.5, y1=0.5):
    page.mouse.move(box["x"] + box["width"] * x0, box["y"] + box["height"] * y0)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * (x0 + x1) / 2, box["y"] + box["height"] * (y0 + y1) / 2)
    page.mouse.move(box["x"] + box["width"] * x1, box["y"] + box["height"] * y1)
    page.mouse.up()


def test_a_zoom_over_wall_time_keeps_its_seconds(site, page, hard):
    page.go(f"/trials/{trial_of(site, hard)}?metric=training.loss&x=time")
    c = chart(page)
    def zoomed():
        drag(page.page, c.locator(".u-over").bounding_box(), 0.1, 0.9)
        page.settle()
        return "from=" in page.page.evaluate("location.href")

    wait_for(zoomed, 20, 0.5)  # Data that arrive meanwhile may move the chart.
    a, b = (float(re.search(rf"{end}=([\d.e+]+)", page.page.evaluate("location.href")).group(1)) for end in ("from", "to"))
    assert 0 < b - a < 60, (a, b)
    page.page.get_by_role("button", name="Whole range").click()
    wait_for(lambda: "from=" not in page.page.evaluate("location.href"), 5)
    page.fine()


def test_a_zoom_where_nothing_is_says_so(site, page, hard):
    page.page.goto(f"{site.url()}/ui/experiments/{hard}/curves?metric=training.loss&from=100&to=200")
    page.page.wait_for_selector("[data-testid=chart][data-state=empty]:has-text('between these ends')")
    page.page.get_by_role("button", name="Whole range").click()
    assert chart(page).get_attribute("data-series") == "10"


def test_an_axis_that_the_other_group_does_not_have_is_given_up(site, page, hard):
    page.go(f"/experiments/{hard}/curves?metric=training.loss&x=metric:a,b")
    assert chart(page).get_attribute("data-last-x") == "5.5"
    assert page.page.get_by_label("X axis").input_value() == "metric:a,b"
    page.page.get_by_label("Metric", exact=True).select_option("validation.loss")
    page.page.wait_for_selector('[data-testid=chart][data-metric="validation.loss"][data-state=ready]')
    page.at(but=["x="])
    page.fine()


# ---- analysis


def test_scatter_over_any_metric_and_one_brush_for_each_axis(site, page, hard):
    page.go(f"/experiments/{hard}/analysis")
    page.page.wait_for_selector("[data-testid=scatter][data-state=ready]")
    offered = page.page.get_by_label("Horizontal").locator("option").all_inner_texts()
    assert "hp.best" in offered and len(set(offered)) == len(offered), offered
    page.page.get_by_label("Horizontal").select_option("m.training.loss")
    page.page.get_by_label("Vertical").select_option("hp.learning rate")
    page.page.get_by_label("Colour").select_option("hp.layers")
    box = page.page.locator("[data-testid=scatter] canvas")
    def over(x0):
        before = page.page.evaluate("location.href")
        box.scroll_into_view_if_needed()
        drag(page.page, box.bounding_box(), x0, 0.99, 0.02, 0.98)
        page.settle()
        return page.page.evaluate("location.href") != before

    for x0 in (0.3, 0.02):
        wait_for(lambda: over(x0), 20, 0.5)  # Data that arrive meanwhile may move the chart.
    text = page.page.evaluate("new URLSearchParams(location.search).get('brush')")
    assert text.count("learning rate:") == 1 and text.count("m.training.loss:") == 1, text
    assert page.page.get_attribute('[role=grid][aria-label="Trials"]', "data-rows") == "10"
    page.page.reload()
    page.page.wait_for_selector('[data-testid=scatter][data-trials="10"]')
    page.page.get_by_role("button", name="Show all").click()
    box = page.page.locator("[data-testid=parallel] canvas")
    box.scroll_into_view_if_needed()
    size = box.bounding_box()
    axes = 4  # learning rate, layers, mixed, best
    for i in (1, 2):  # layers, learning rate
        at = (60 + i / (axes - 1) * (size["width"] - 120)) / size["width"]
        drag(page.page, size, at, at, 0.05, 0.45)
        page.settle()
    text = page.page.evaluate("new URLSearchParams(location.search).get('brush')")
    assert text.count(";") == 1, text
    assert 0 < int(page.page.get_attribute("[data-testid=parallel]", "data-trials")) < 10
    page.fine()


def test_the_timeline_has_a_line_for_each_slot(site, page):
    page.go(f"/experiments/{site.search}/analysis")
    page.page.locator("h2:text-is('Timeline')").scroll_into_view_if_needed()
    page.page.wait_for_selector("[data-testid=timeline][data-state=ready]")
    timeline = page.page.locator("[data-testid=timeline]")
    assert 1 <= int(timeline.get_attribute("data-slots")) <= 4 and timeline.get_attribute("data-lanes") == timeline.get_attribute("data-slots")
    timeline.get_by_role("button", name="Show as table").click()
    bars = [row.split("\t") for row in timeline.locator("tbody tr").all_inner_texts()]
    assert len(bars) == 8 and all(run and agent and slot in "0123" for _, run, _, _, _, agent, slot in bars), bars
    page.fine()


def test_j_brings_the_grid_into_sight(site, page, hard):
    page.go(f"/experiments/{hard}/analysis")
    page.page.wait_for_selector('[role=grid][aria-label="Trials"][data-all="10"]')
    page.settle()
    page.page.keyboard.press("j")
    row = rows(page.page, "Trials").first
    wait_for(lambda: 0 < row.bounding_box()["y"] < page.page.viewport_size["height"] - 20, 5)
    assert page.page.evaluate("document.activeElement.dataset.id") == row.get_attribute("data-id")


# ---- structured metrics, compare


def test_structured_metrics_of_any_kind_and_size(site, page, hard):
    page.go(f"/trials/{trial_of(site, hard)}/metrics")
    page.page.wait_for_selector('[data-testid=matrix][data-rows="120"][data-cols="130"]')
    assert page.page.locator('[data-testid=matrix][data-rows="120"] tbody td').count() == 100 * 100
    assert page.page.locator('[data-testid=matrix][data-rows="2"]').count() == 2
    assert page.page.locator('[data-testid=table-metric]').count() == 2
    bars = page.page.locator("[data-testid=bars]")
    assert bars.get_attribute("data-bars") == "5000"
    bars.scroll_into_view_if_needed()
    bars.get_by_role("button", name="Show as table").click()
    assert bars.locator("tbody tr").count() == 1000
    with page.page.expect_download() as got:
        bars.get_by_role("button", name="Download CSV").click()
    assert open(got.value.path()).read().count("\n") == 5001
    page.fine()


def test_compare_of_hard_names_and_more_than_a_hundred(site, page, hard):
    ids = [t["id"] for t in site.json("trial", "list", str(hard))]
    page.page.goto(f"{site.url()}/ui/compare?trials={ids[0]},{ids[1]},{ids[1]},x,-1,0&baseline=nonsense")
    page.page.wait_for_selector("main[data-page=compare][data-state=ready]")
    assert page.page.locator("[data-testid=differences] thead th").count() == 3
    assert page.page.locator("main .fault").all_inner_texts() == [f"'{wrong}' is not the id of a trial, so it is left out." for wrong in ("x", "-1", "0")] + [
        f"baseline=nonsense is not one of these trials, so trial {ids[0]} is the baseline."]
    keys = page.page.locator("[data-testid=differences] [data-key]").evaluate_all("all => all.map(x => x.dataset.key)")
    assert all(k.startswith("hp.") for k in keys)
    page.page.get_by_role("button", name="Only differences").click()
    page.page.wait_for_selector("[data-testid=differences] [data-key='hp.list']")
    assert '[1,{"a":2}]' in page.page.inner_text("[data-testid=differences] [data-key='hp.list']")
    page.fine()


# ---- orders


def test_a_refusal_is_seen_until_one_closes_it(site, page):
    """A tab that is paused does not hear that the experiment has ended, and still offers orders."""
    ends = site.submit("ends", "import time\ntime.sleep(600)\n", "searcher: {name: single, metric: loss}\nmax_restarts: 0")
    page.go(f"/experiments?q=id%3D{ends}")
    page.page.wait_for_selector('[role=grid][data-rows="1"]')
    page.page.keyboard.press(".")
    page.page.wait_for_selector("[data-testid=live][data-state=paused]")
    site.cli("experiment", "kill", str(ends))
    site.wait_ended(ends)
    page.page.keyboard.press("j")
    page.page.keyboard.press("x")
    page.page.get_by_role("button", name="Pause", exact=True).click()
    alert = page.page.locator("[role=alert]:has-text('experiment')")
    alert.wait_for()
    assert f"experiment {ends}: " in alert.inner_text() and alert.bounding_box()["width"] > 100
    alert.get_by_role("button", name="Close").click()
    assert page.page.locator("[role=alert]:has-text('experiment')").count() == 0
    page.fine_but(400)


def test_copying_works_without_the_clipboard_of_a_secure_page(site, page):
    page.page.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page.go(f"/experiments/{site.search}/trials?sort=-best")
    page.page.wait_for_selector('[role=grid][data-all="8"]')
    page.page.get_by_role("button", name="Copy link").click()
    page.page.get_by_label("Filter").click()
    page.page.keyboard.press("Control+v")
    wait_for(lambda: page.page.get_by_label("Filter").input_value().endswith(f"/ui/experiments/{site.search}/trials?sort=-best"), 5)
    page.fine()


# ---- keys


def test_no_key_acts_under_a_dialog(site, page):
    page.go(f"/experiments/{site.search}")
    page.page.get_by_role("button", name="Fork").click()
    page.page.get_by_role("dialog", name=f"Fork experiment {site.search}").wait_for()
    page.page.keyboard.press("Control+k")
    page.stays(lambda: page.page.get_by_role("dialog", name="Command palette").count() == 0, 0.2)
    page.page.keyboard.press("Escape")
    page.page.keyboard.press("Control+k")
    page.page.get_by_role("dialog", name="Command palette").wait_for()
    page.page.keyboard.type("987654")
    page.page.keyboard.press("Enter")
    page.page.wait_for_selector("main[data-page=experiment][data-state=error]:has-text('no experiment 987654')")
    page.fine_but(404)


def test_focus_goes_to_the_heading_of_a_page_that_is_not_there(site, page):
    page.go("/experiments")
    page.page.evaluate("history.pushState(null, '', '/ui/no/such'); dispatchEvent(new PopStateEvent('popstate'))")
    page.page.wait_for_selector("main[data-page=not-found]")
    wait_for(lambda: page.page.evaluate("document.activeElement.tagName") == "H1", 5)


def test_every_key_of_two_and_none_while_typing(site, page):
    page.go("/")
    for key, name in zip("ecqalvsh", ["experiments", "cluster", "queue", "actors", "logs", "events", "settings", "home"]):
        page.page.keyboard.press("g")
        page.page.keyboard.press(key)
        page.page.wait_for_selector(f"main[data-page={name}]")
    page.go("/experiments")
    page.page.keyboard.press("/")
    page.page.keyboard.type("g e ? . x j")
    assert page.page.get_by_label("Filter").input_value() == "g e ? . x j"
    assert page.page.get_by_role("dialog").count() == 0 and page.page.get_attribute("[data-testid=live]", "data-state") == "live"
    page.go("/settings")
    page.page.get_by_label("Theme").focus()
    page.page.keyboard.press("g")
    page.page.keyboard.press("e")
    page.stays(lambda: page.page.get_attribute("main", "data-page") == "settings", 0.3)
    page.page.get_by_label("Theme").select_option("dark")
    assert page.page.get_attribute("html", "data-theme") == "dark"
    page.page.get_by_label("Theme").select_option("light")
    page.page.get_by_label("Single-key shortcuts").uncheck()
    page.page.locator("h1").click()
    for key in ["?", ".", "g", "e", "j"]:
        page.page.keyboard.press(key)
    page.stays(lambda: page.page.get_attribute("main", "data-page") == "settings" and page.page.get_by_role("dialog").count() == 0, 0.3)
    assert page.page.get_attribute("[data-testid=live]", "data-state") == "live"
    page.page.keyboard.press("Control+k")
    page.page.get_by_role("dialog", name="Command palette").wait_for()
    page.page.keyboard.press("Escape")
    page.page.get_by_label("Single-key shortcuts").check()
    page.fine()


# ---- without dragging


def test_ends_of_a_chart_and_of_a_brush_as_fields(site, page, hard):
    page.go(f"/experiments/{hard}/curves?metric=training.loss")
    chart(page)
    page.page.get_by_label("From").fill("2")
    page.page.get_by_label("From").press("Enter")
    page.page.get_by_label("To", exact=True).fill("3.5")
    page.page.get_by_label("To", exact=True).press("Enter")
    wait_for(lambda: all(one in page.page.evaluate("location.href") for one in ("from=2", "to=3.5")), 5)
    page.page.wait_for_selector('[data-testid=chart][data-metric="training.loss"][data-state=ready][data-last-x="3"]')
    page.page.get_by_label("X axis").select_option("time")
    page.at(but=["from="])
    chart(page)
    page.page.get_by_label("From").fill("2020-01-02T03:04:05")
    page.page.get_by_label("From").blur()
    wait_for(lambda: "from=15779" in page.page.evaluate("location.href"), 5)
    assert page.page.get_by_label("From").input_value() == "2020-01-02T03:04:05"
    page.go(f"/experiments/{hard}/analysis")
    page.page.wait_for_selector("[data-testid=parallel][data-state=ready]")
    page.page.get_by_label("Axis").select_option("hp.layers")
    page.page.get_by_label("From").fill("[1,2]")
    page.page.get_by_label("To", exact=True).fill("[1,2]")
    page.page.get_by_role("button", name="Keep what lies between").click()
    wait_for(lambda: 0 < int(page.page.get_attribute("[data-testid=parallel]", "data-trials")) < 10, 5)
    kept = page.page.get_attribute("[data-testid=parallel]", "data-trials")
    page.page.reload()
    page.page.wait_for_selector(f'[data-testid=parallel][data-state=ready][data-trials="{kept}"]')
    page.fine()


# ---- the past, and the origin of an experiment


def test_links_keep_the_moment(site, page):
    history = page.page.request.get(f"{site.url()}/troupe/v1/experiments/{site.search}/history").json()["history"]
    at = history[len(history) * 3 // 4]["sequence"]
    page.go(f"/experiments/{site.search}/trials?at={at}")
    page.page.wait_for_selector("[data-testid=as-of]:has-text('as of 20')")
    rows(page.page, "Trials").first.get_by_role("checkbox").check()
    assert page.page.get_by_role("button", name="Kill").count() == 0
    page.page.get_by_role("button", name="Curves", exact=True).click()
    page.at(f"at={at}", "sel=")
    chart(page)
    page.page.get_by_role("link", name="All trials").click()
    page.at(f"at={at}", but=["sel="])
    assert page.page.get_by_role("button", name="Copy link").count() == 1
    page.page.keyboard.press("Control+k")
    page.page.get_by_role("dialog", name="Command palette").wait_for()
    page.page.keyboard.type("pause")
    assert page.page.locator("[role=option]:has-text('Pause')").count() == 0
    page.page.keyboard.press("Escape")
    page.go(f"/experiments/{site.search}/analysis?at={at}")
    page.page.wait_for_selector("[data-testid=timeline][data-state=ready]")
    assert page.page.locator("[data-testid=importance]").count() == 0
    page.fine()


def test_a_fork_differs_from_its_parent_and_from_the_defaults(site, page):
    made = page.page.request.get(f"{site.url()}/api/v1/experiments/{site.search}").json()["experiment"]["originalConfig"]
    status, body = site.call("/api/v1/experiments", {"config": made.replace("digits", "forked again"), "parentId": site.search, "activate": False})
    assert status == 200, body
    fork = body["experiment"]["id"]
    page.go(f"/experiments/{fork}/config?show=differences")
    page.page.wait_for_selector("[data-testid=differences] [data-key=name]")
    keys = lambda: page.page.locator("[data-testid=differences] [data-key]").evaluate_all("all => all.map(x => x.dataset.key)")
    assert keys() == ["name"]
    field = page.page.get_by_label("To experiment (empty: the defaults)")
    assert field.input_value() == str(site.search)
    field.fill("")
    field.press("Enter")
    wait_for(lambda: "max_restarts" in keys(), 10)
    page.page.reload()
    wait_for(lambda: "max_restarts" in keys(), 10)
    site.cli("experiment", "kill", str(fork))
    page.fine()
