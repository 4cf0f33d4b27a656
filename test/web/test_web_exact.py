"""What the page says of numbers, times and the pointer is exact, in a real browser against a real cluster."""

import datetime
import re

import pytest

from test_web_seen import WRITTEN, written
from web_site import SINGLE, chart, wait_for

SEEDS = """
import troupe
p = troupe.params(seed=1, share=0.5)
for i in range(1, 31):
    troupe.log({"loss": p.seed / i, "few": 1}, step=10 * i)
troupe.validate({"loss": p.seed - 1612660000}, step=300)
"""
GRID = """
hyperparameters:
  seed: {{type: categorical, vals: {vals}}}
  share: {{type: categorical, vals: [0.1234567891]}}
searcher: {{name: grid, metric: loss, max_concurrent_trials: 8}}
resources: {{slots_per_trial: 0}}
max_restarts: 0
"""
many = 32  # trials: more than a legend names


@pytest.fixture(scope="module")
def seeds(site):
    """The ids of a search over seeds of ten digits, and of its trials in the order of the seeds."""
    search = site.submit("seeds", SEEDS, GRID.format(vals=[1612660001 + i for i in range(many)]))
    assert "COMPLETED" in site.wait_ended(search)
    return search, [t["id"] for t in sorted(site.json("trial", "list", str(search)), key=lambda t: t["hparams"]["seed"])]


def test_whole_numbers_of_ten_digits_are_exact(site, page, seeds):
    search, trials = seeds
    page.go(f"/compare?trials={trials[0]},{trials[1]}")
    cells = page.page.locator("[data-testid=differences] [data-key='hp.seed'] td")
    wait_for(lambda: cells.all_inner_texts() == ["1612660001", "1612660002"], 10, what=cells.all_inner_texts)
    page.go(f"/trials/{trials[1]}")
    page.page.get_by_role("link", name="Trials with seed 1612660002").filter(has_text=re.compile("^1612660002$")).wait_for()
    page.page.get_by_text("0.1234567891", exact=True).wait_for()
    page.go(f"/experiments/{search}")
    page.page.locator("main dd", has_text=re.compile("^1612660001$")).wait_for()
    page.go(f"/experiments/{search}/trials?cols=id,hp.seed&sort=hp.seed")
    wait_for(lambda: page.page.locator("[role=gridcell][data-col='hp.seed']").first.inner_text() == "1612660001", 10)
    page.fine()


def test_a_zoom_on_logarithmic_axes_ends_where_one_dragged(site, page, seeds):
    page.page.add_init_script(WRITTEN)
    page.go(f"/compare?trials={seeds[1][0]}&metric=training.loss&from=120&to=130&logx=1&logy=1")
    numbers = lambda: sorted({float(t) for t in written(page, "chart") if re.fullmatch(r"[\d.]+(e[+-]?\d+)?", t)})
    wait_for(lambda: len([x for x in numbers() if 120 <= x <= 130]) >= 3, 10, what=numbers)
    assert not [x for x in numbers() if x < 120 or 130 < x < 1.2e8 or x > 1.4e8], numbers()
    page.fine()


def test_the_axis_is_what_one_zoomed_to_and_short_around_one_report(site, page, seeds):
    page.page.add_init_script(WRITTEN)
    page.go(f"/compare?trials={seeds[1][0]}&metric=training.loss&from=115&to=125")  # One report is there, at 120.
    numbers = lambda: sorted({float(t) for t in written(page, "chart") if re.fullmatch(r"[\d.]+", t)})
    wait_for(lambda: len([x for x in numbers() if 115 <= x <= 125]) >= 3, 10, what=numbers)
    assert not [x for x in numbers() if 0 < x < 115 or 125 < x < 1e7], numbers()
    page.go(f"/trials/{seeds[1][0]}?metric=validation.loss&x=time")
    days = lambda: {m[0] for t in written(page, "chart") for m in [re.search(r"\d{4}-\d\d-\d\d", t)] if m}
    wait_for(days, 10)
    now = datetime.datetime.now()
    assert days() <= {f"{now + datetime.timedelta(n):%Y-%m-%d}" for n in (-1, 0, 1)}, days()
    page.fine()


def test_times_of_an_axis_are_written_as_everywhere(site, page, seeds):
    page.page.add_init_script(WRITTEN)
    page.go(f"/trials/{seeds[1][0]}?metric=training.loss&x=time")
    wait_for(lambda: any(re.fullmatch(r"20\d\d-\d\d-\d\d", t) for t in written(page, "chart")), 10, what=lambda: written(page, "chart"))
    assert not [t for t in written(page, "chart") if re.search(r"[ap]m$|\d/\d", t)]
    page.fine()


def test_what_the_pointer_is_on_is_named_and_left_at_once(site, page, seeds):
    search, trials = seeds
    page.go(f"/experiments/{search}/curves?metric=training.loss&logy=1")
    c = chart(page)
    assert c.get_attribute("data-series") == str(many) and page.page.locator(".legend").count() == 0
    c.scroll_into_view_if_needed()
    box = c.locator(".u-over").bounding_box()
    spot = c.locator(".spot")

    def named():
        for step in range(40):  # down until a curve is near
            page.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * step / 40)
            if re.match(r"Trial \d+: step \d+, [\d.e+]+$", spot.inner_text()):
                return True
    wait_for(named, 10, what=spot.inner_text)
    assert c.get_attribute("data-hovered") in map(str, trials)
    assert c.locator("[aria-hidden=true].spot").count() == 1
    page.page.mouse.move(2, 2)  # in one step, over nothing between
    wait_for(lambda: c.get_attribute("data-hovered") == "" and spot.inner_text() == "", 5, what=spot.inner_text)
    page.go(f"/experiments/{search}/analysis")
    page.page.wait_for_selector("[data-testid=scatter][data-state=ready]")
    row = page.page.locator("[role=grid][aria-label=Trials] [role=row][data-id]").first
    row.scroll_into_view_if_needed()
    row.hover()
    for name in ("history", "parallel", "scatter"):
        wait_for(lambda: re.match(rf"Trial {row.get_attribute('data-id')}: \S.* \d", page.page.inner_text(f"[data-testid={name}] .spot")), 5)
    page.fine()


def test_a_trial_without_a_report_has_no_numbers(site, page, seeds):
    other = site.json("trial", "list", str(site.search))[0]["id"]
    page.go(f"/compare?trials={seeds[1][0]},{other}&metric=training.few")
    chart(page).get_by_role("button", name="Show as table").click()
    row = page.page.locator(f'[role=grid][aria-label="Curves as numbers"] [role=row][data-id="{other}"]')
    assert row.locator("[role=gridcell]").all_inner_texts() == [str(other), "0", "", "", "", ""]
    page.fine()


def test_durations_of_the_past_end_at_its_moment(site, page, seeds):
    search = seeds[0]
    history = page.page.request.get(f"{site.url()}/troupe/v1/experiments/{search}/history").json()["history"]
    when = lambda text: datetime.datetime.fromisoformat(text)
    moment = history[len(history) // 3]
    passed = (when(moment["at"]) - when(history[0]["at"])).total_seconds()
    page.go(f"/experiments/{search}/trials?at={moment['sequence']}")
    grid = "[role=grid][aria-label=Trials]"
    wait_for(lambda: int(page.page.get_attribute(grid, "data-all")) > 0, 10)
    page.go(f"/experiments/{search}/trials?at={moment['sequence']}&q=state%3DRUNNING+duration>={0}")
    wait_for(lambda: int(page.page.get_attribute(grid, "data-rows")) > 0, 10)
    page.go(f"/experiments/{search}/trials?at={moment['sequence']}&q=duration>{passed + 0.1}")
    wait_for(lambda: int(page.page.get_attribute(grid, "data-all")) > 0, 10)
    page.stays(lambda: page.page.get_attribute(grid, "data-rows") == "0", 1)
    page.fine()


def test_hits_of_all_logs_are_links(site, page):
    page.go("/logs?q=hello")
    hit = page.page.locator("ol.hits a").first
    to = hit.get_attribute("href")
    assert re.fullmatch(r"/ui/trials/\d+/logs\?line=\d+", to), to
    hit.click()
    page.at(to)
    page.page.wait_for_selector("[role=log] [data-line].marked")
    page.fine()


def test_files_of_checkpoints_have_no_column_of_links(site, page):
    page.go(f"/experiments/{site.search}/checkpoints")
    page.page.wait_for_selector("[role=grid][aria-label=Checkpoints] [data-col=download] a")
    with page.page.expect_download() as got:
        page.page.get_by_role("button", name="Download CSV").click()
    head = open(got.value.path()).readline()
    assert head.startswith("uuid,metric,") and "download" not in head
    page.fine()


def test_the_focus_stays_with_what_was_pressed(site, page):
    page.go(f"/trials/{site.json('trial', 'list', str(site.search))[0]['id']}")
    enlarge = page.page.get_by_role("button", name="Enlarge training.odd")
    enlarge.scroll_into_view_if_needed()
    enlarge.press("Enter")
    page.page.wait_for_selector('[data-testid=chart][data-metric="training.odd"][data-state=ready]')
    assert page.page.evaluate("document.activeElement.getAttribute('aria-label')") == "Metric"
    page.go("/actors?at=cluster")
    page.page.get_by_role("button", name="Trace for 10 s").press("Enter")
    page.page.get_by_role("button", name="Tracing for 10 s").wait_for()
    assert page.page.evaluate("document.activeElement.innerText") == "Tracing for 10 s"
    page.fine()


def test_a_page_whose_code_does_not_come_is_an_error(site, page):
    page.page.route("**/assets/queue-*.js", lambda route: route.abort())
    page.page.get_by_role("link", name="Queue").click()
    page.page.get_by_role("button", name="Try again").wait_for()
    page.ready("error")
    assert page.page.title() == "Queue · Troupe"


def test_home_tells_what_runs_from_what_is_paused(site, page, monkeypatch):
    monkeypatch.setitem(site.env, "TROUPE_USER", "admin")  # as whom the tab is signed in
    search = site.submit("held", "import time\nwhile True:\n    time.sleep(1)\n", SINGLE)
    listed = lambda heading: page.page.locator(f"section:has(h2:text-is('{heading}')) a[href='/ui/experiments/{search}']").count()
    wait_for(lambda: listed("Running") == 1, 20)
    site.cli("experiment", "pause", str(search))
    wait_for(lambda: listed("Running") == 0 and listed("Waiting") == 1, 20)
    site.cli("experiment", "kill", str(search))
    page.fine()
