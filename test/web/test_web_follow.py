"""What an open page does while the cluster works, in a real browser against a real cluster."""

import re

import pytest

from web_site import SINGLE, Page, chart, go_on, wait_for

LINES = """
import os, sys, time
for i in range(1, 1201):
    print("line", i, "needle" if i % 100 == 0 else "", flush=i % 100 == 0)
print("\\x1b[?25l\\x1b[38;5;196mred needle\\x1b[0m\\x1b[?25h", flush=True)
for i in range(1, 5):
    print(f"{25 * i} %", end="\\r", file=sys.stderr, flush=True)
    time.sleep(0.1)
mark = os.environ["MARK"]
for i in range(1, 20_000):
    print("late", i, flush=True)
    time.sleep(0.1)
    if os.path.exists(mark):
        break
print("the end", flush=True)
"""


@pytest.fixture(scope="module")
def talking(site):
    """The id of a trial that writes lines until the end of the tests."""
    mark = site.root / "stop talking"
    search = site.submit("talks", LINES, f"{SINGLE}\nmax_restarts: 0\nenvironment: {{environment_variables: ['MARK={mark}']}}")
    try:
        trial = wait_for(lambda: (site.json("trial", "list", str(search)) or [{}])[0].get("id"), 60)
        wait_for(lambda: "late" in site.cli("trial", "logs", str(trial)).stdout, 60)
        yield trial
    finally:
        mark.write_text("x")


def shown(page):
    return page.page.locator("[role=log] [data-line]").evaluate_all("all => all.map(x => Number(x.dataset.line))")


def test_follow_goes_to_the_end_and_has_no_gap(site, page, talking):
    page.go(f"/trials/{talking}/logs?line=5")
    page.page.wait_for_selector("[role=log] [data-line='5'].marked")
    follow = page.page.get_by_role("button", name="Follow")
    assert follow.get_attribute("aria-pressed") == "false"
    follow.click()
    wait_for(lambda: "late" in page.page.locator("[role=log] [data-line]").last.inner_text(), 10)
    page.at(but=["line="])
    assert follow.get_attribute("aria-pressed") == "true"
    last = shown(page)[-1]
    wait_for(lambda: shown(page)[-1] > last + 10, 15)
    lines = shown(page)
    assert len(lines) <= 500
    assert all(b - a == 1 for a, b in zip(lines, lines[1:]) if a > 1210), lines  # A progress bar overwrites its lines.
    # A line that the user selects stays in view.
    page.page.locator("[role=log] [data-line] .number").nth(-5).click()
    assert follow.get_attribute("aria-pressed") == "false"
    marked = page.page.locator(".logline.marked")
    number = int(marked.get_attribute("data-line"))
    page.at(f"line={number}")
    log = page.page.locator("[role=log]").bounding_box()
    page.stays(lambda: log["y"] <= marked.bounding_box()["y"] <= log["y"] + log["height"] and f"line={number}" in page.page.url, 1.5)
    page.fine()


def test_a_line_that_is_not_there_is_said(site, page, talking):
    page.go(f"/trials/{talking}/logs?line=99999999")
    page.page.wait_for_selector("[role=alert]:has-text('There is no line 99999999 in this log')")
    assert len(shown(page)) >= 40
    for wrong in ("abc", "-3", "0", "1e3", "5'"):
        page.go(f"/trials/{talking}/logs?line={wrong}")
        wait_for(lambda: len(shown(page)) >= 50, 10)
        page.page.wait_for_selector(f"[role=alert]:has-text(\"There is no line '{wrong}' in this log\")")
        assert page.page.get_by_role("button", name="Follow").get_attribute("aria-pressed") == "true", wrong
    page.fine()


def test_scrolling_reads_on_in_both_directions(site, page, talking):
    page.go(f"/trials/{talking}/logs?line=700")
    page.page.wait_for_selector("[role=log] [data-line='700'].marked")
    page.page.locator("[role=log]").hover()

    def at_the_top():
        page.page.mouse.wheel(0, -900)
        return 1 in shown(page)

    wait_for(at_the_top, 20)
    lines = shown(page)
    assert lines[0] == 1 and lines == list(range(1, len(lines) + 1)) and len(lines) <= 500
    page.fine()


def test_hits_are_as_a_terminal_shows_them(site, page, talking):
    page.go(f"/trials/{talking}/logs?q=needle")
    page.page.wait_for_selector("[data-testid=hits][data-state=ready][data-hits='13']")
    last = page.page.locator("[data-testid=hits] li").last
    assert last.locator(".what").inner_text() == "red needle" and last.locator("mark").inner_text() == "needle"
    page.go(f"/trials/{talking}/logs?q=line")
    page.page.wait_for_selector("[data-testid=hits][data-state=ready][data-hits='1000']:has-text('there may be more behind them')")
    more = page.page.get_by_role("button", name="More hits")
    for _ in range(10):
        more.click()
    page.page.wait_for_selector("[data-testid=hits][data-state=ready][data-hits='1200']")
    for _ in range(3):
        if more.count():
            more.click()
    assert page.page.locator("[data-testid=hits] li").count() == 1200
    page.fine()


LATER = """
import os, time, troupe
mark = os.environ["MARK"]
for i in range(1, 4000):
    troupe.log({"loss": 1.0 / i}, step=i)
    if os.path.exists(mark) and i % 4 == 0:
        troupe.log({"later": i}, step=i)
        troupe.validate({"loss": 1.0 / i}, step=i)
    time.sleep(0.25)
"""


def test_a_metric_that_comes_later_is_offered(site, page):
    mark = site.root / "now"
    search = site.submit("later", LATER, f"{SINGLE}\nmax_restarts: 0\nenvironment: {{environment_variables: ['MARK={mark}']}}")
    wait_for(lambda: site.json("trial", "list", str(search)), 60)
    page.go(f"/experiments/{search}/curves?metric=training.loss")
    chart(page)
    options = lambda: page.page.get_by_label("Metric", exact=True).locator("option").evaluate_all("all => all.map(x => x.value)")
    assert "training.later" not in options()
    mark.write_text("x")
    wait_for(lambda: "training.later" in options(), 60)
    site.cli("experiment", "kill", str(search))
    page.fine()


AGAIN = """
import os, pathlib, sys, time, troupe
mark = pathlib.Path(os.environ["MARK"])
again = mark.exists()
for i in range(41 if again else 1, 200):
    troupe.log({"loss": (1000 if again else 0) + i}, step=i)
    if i == 40 and not again:
        with troupe.checkpoint(i) as path:
            (path / "model").write_text("x")
    if i == 60 and not again:
        while not os.path.exists(os.environ["MARK"] + "-may-come"):  # until the page has drawn all this
            time.sleep(0.05)
        mark.write_text("x")
        sys.exit("breaks")
    time.sleep(0.1 if i < 60 else 0.5)
"""


def test_no_point_is_lost_between_the_first_read_and_the_stream(site, page, chromium):
    """The tabs are in browser contexts of their own, without a worker that runs already. The stream begins after the first read."""
    script = "import time, troupe\nfor i in range(1, 1601):\n    troupe.log({'loss': 1 / i}, step=i)\n    time.sleep(0.005)\n"
    search = site.submit("quick", script, f"{SINGLE}\nmax_restarts: 0")
    trial = wait_for(lambda: (site.json("trial", "list", str(search)) or [{}])[0].get("id"), 60)
    wait_for(lambda: page.page.request.get(f"{site.url()}/troupe/v1/trials/{trial}/metrics?limit=1").json(), 60)
    signed_in = page.page.context.storage_state()
    tabs = [Page(chromium.new_context(storage_state=signed_in), site) for _ in range(3)]
    for tab in tabs:
        tab.go(f"/trials/{trial}?metric=training.loss")
        tab.page.wait_for_selector("[data-testid=chart][data-metric='training.loss'][data-state=ready]")
    site.wait_ended(search)
    for tab in tabs:
        tab.page.bring_to_front()
        wait_for(lambda: chart(tab).get_attribute("data-points") == "1600", 10)
        tab.fine()
        tab.page.context.close()


REPORTS = """
import os, time, troupe
names = [f"{i:02d} " + "\\u05e9" * 400 for i in range(13)]
for step in range(1, 4000):
    troupe.log({name: step for name in names}, step=step)
    time.sleep(0.5)
    if os.path.exists(os.environ["MARK"]):
        break
"""


def test_curves_that_find_no_room_in_the_stream_move_too(site, page, chromium):
    """The names of the metrics are so long that an address has room for few of them."""
    mark = site.root / "stop reports"
    search = site.submit("long", REPORTS, f"{SINGLE}\nmax_restarts: 0\nenvironment: {{environment_variables: ['MARK={mark}']}}")
    tall = chromium.new_context(viewport={"width": 1280, "height": 5000}, storage_state=page.page.context.storage_state())
    try:
        trial = wait_for(lambda: (site.json("trial", "list", str(search)) or [{}])[0].get("id"), 60)
        wait_for(lambda: len(page.page.request.get(f"{site.url()}/troupe/v1/experiments/{search}/metrics").json()["metrics"]) >= 13, 60)
        tab = Page(tall, site).go(f"/trials/{trial}")
        charts = lambda: tab.page.locator("[data-testid=more-metrics] [data-testid=chart]").evaluate_all("all => all.map(x => Number(x.dataset.lastX))")
        wait_for(lambda: len(charts()) >= 12 and all(charts()), 30, what=charts)
        for _ in range(2):
            before = max(charts())
            wait_for(lambda: min(charts()) > before, 30, what=charts)
        tab.fine()
    finally:
        mark.write_text("x")
        tall.close()


def test_a_run_that_was_given_up_leaves_an_open_chart(site, page):
    mark = site.root / "again"
    search = site.submit("again", AGAIN, f"{SINGLE}\nmax_restarts: 2\nenvironment: {{environment_variables: ['MARK={mark}']}}")
    trial = wait_for(lambda: (site.json("trial", "list", str(search)) or [{}])[0].get("id"), 60)
    page.go(f"/trials/{trial}?metric=training.loss")
    c = chart(page)
    wait_for(lambda: float(c.get_attribute("data-last-x") or 0) >= 58, 60)
    go_on(f"{mark}-may-come")
    c.get_by_role("button", name="Show as table").click()
    table = page.page.locator('[role=grid][aria-label="Curves as numbers"] [data-id]')
    wait_for(lambda: float(table.locator("[data-col=last]").inner_text()) > 1050, 60)
    # Points that the first run had reported from step 41 on are not drawn beside those of the second run.
    points = lambda: int(c.get_attribute("data-points"))
    wait_for(lambda: points() == int(float(c.get_attribute("data-last-x"))), 10, what=lambda: (points(), c.get_attribute("data-last-x")))
    site.cli("experiment", "kill", str(search))
    page.fine()


def test_a_cut_while_paused_moves_nothing_and_a_session_that_ended_is_asked_for(own_site, own_tab, context):
    site, tab = own_site, own_tab
    tab.page.wait_for_selector("[data-testid=live][data-state=live]")
    tab.page.keyboard.press(".")
    tab.page.wait_for_selector("[data-testid=live][data-state=paused]")
    site.kill_node()
    tab.page.wait_for_selector("text=connection lost, trying again")
    assert re.search(r"last data \d\d:\d\d\)", tab.page.inner_text("body"))
    site.up(slots=2)
    search = site.submit_search(name="unseen", trials=1)
    wait_for(lambda: "connection lost" not in tab.page.inner_text("body"), 30)
    tab.stays(lambda: tab.page.locator(f'[role=row][data-id="{search}"]').count() == 0, 1.5)
    tab.page.keyboard.press(".")
    tab.page.wait_for_selector(f'[role=row][data-id="{search}"]')
    # From here on nobody is signed in.
    tab.page.get_by_label("Filter").fill("name~unseen")
    context.clear_cookies()
    site.kill_node()
    site.up(slots=2)
    dialog = tab.page.get_by_role("dialog", name="Sign in again")
    dialog.wait_for()
    tab.page.keyboard.press("Escape")
    tab.page.keyboard.press("Escape")
    tab.stays(lambda: dialog.count() == 1, 0.3)  # Esc must not close it, because requests wait for it.
    assert dialog.get_by_label("Username").input_value() == "admin"
    dialog.get_by_role("button", name="Sign in").click()
    tab.page.wait_for_selector("[data-testid=live][data-state=live]")
    assert tab.page.get_by_label("Filter").input_value() == "name~unseen"
