"""The web page in a real browser while its cluster goes on: what moves, what fails, who may what, the past."""

import re

import pytest

from web_site import HOSTILE, SINGLE, Page, Site, axe, best_trial, cells, chart, rows, wait_for


# ---- live


def test_a_running_search_moves_without_a_reload(site, page):
    page.go("/experiments")
    search = site.submit_search(name="moving", trials=4, epoch_s=5)  # The search has to run when the page is drawn.
    page.page.wait_for_selector(f'[role=row][data-id="{search}"]')
    page.go(f"/experiments/{search}/curves")
    c = chart(page)
    last = float(c.get_attribute("data-last-x"))
    wait_for(lambda: float(c.get_attribute("data-last-x") or 0) > last, 60)
    site.cli("experiment", "kill", str(search))
    page.fine()


def test_what_a_trial_uses_is_drawn(site, page):
    search = site.submit_search(name="uses", trials=1, epoch_s=20)
    trial = wait_for(lambda: (site.json("trial", "list", str(search)) or [{}])[0].get("id"), 60)
    page.go(f"/trials/{trial}/resources")
    memory = '[data-testid=resources] [data-testid=chart][data-metric="system.memory_bytes"][data-state=ready]'
    page.page.wait_for_selector(memory)
    wait_for(lambda: int(page.page.get_attribute(memory, "data-points") or 0) >= 2, 60)
    slot = page.page.locator("[data-testid=resources] section", has=page.page.get_by_role("heading", name=re.compile(r"Slot \d+ of .+, percent")))
    slot.locator('[data-testid=chart][data-metric$="/utilization_percent"][data-state=ready]').wait_for()
    site.cli("experiment", "kill", str(search))
    page.fine()


def test_a_search_by_regular_expression(site, page):
    page.go(f"/trials/{best_trial(site)}/logs")
    page.page.get_by_label("Regular expression").check()
    page.page.get_by_label("Search log").fill("[0-9]+")
    page.page.keyboard.press("Enter")
    page.page.wait_for_selector("[data-testid=hits][data-state=ready]:not([data-hits='0'])")
    page.page.get_by_label("Search log").fill("(")
    page.page.keyboard.press("Enter")
    page.page.wait_for_selector("[role=alert]:has-text('cannot be read')")


def test_pause_stops_the_page_and_goes_on_where_it_was(site, page):
    page.go("/experiments")
    page.page.keyboard.press(".")
    page.page.wait_for_selector("[data-testid=live][data-state=paused]")
    search = site.submit_search(name="unseen", trials=1)
    site.wait_ended(search)
    assert page.page.locator(f'[role=row][data-id="{search}"]').count() == 0
    page.page.keyboard.press(".")
    page.page.wait_for_selector(f'[role=row][data-id="{search}"]')


@pytest.mark.parametrize("shared", [True, False], ids=["a shared worker", "workers of their own"])
def test_ten_tabs_are_live(site, context, shared):
    if not shared:
        context.add_init_script("delete window.SharedWorker")
    tabs = [Page(context, site) for _ in range(10)]
    tabs[0].page.goto(site.link())
    tabs[0].page.wait_for_selector("main[data-page=home][data-state=ready]")
    for tab in tabs:
        tab.go("/experiments")
    search = site.submit_search(name="ten", trials=1)
    for tab in tabs:
        tab.page.bring_to_front()
        tab.page.wait_for_selector(f'[role=row][data-id="{search}"]')
    site.wait_ended(search)
    for tab in tabs[:3]:  # One of them may have the stream.
        tab.page.close()
    search = site.submit_search(name="seven", trials=1)
    for tab in tabs[3:]:
        tab.page.bring_to_front()
        tab.page.wait_for_selector(f'[role=row][data-id="{search}"]')
    site.wait_ended(search)


def test_the_page_goes_on_after_kill_9_of_the_master(own_site, own_tab, context):
    site, tab = own_site, own_tab
    tab.page.get_by_label("Filter").fill("name~after")
    site.kill_node()
    tab.page.wait_for_selector("[data-testid=live][data-state=lost]")
    assert "connection lost, trying again" in tab.page.inner_text("body")
    assert tab.page.get_by_label("Filter").input_value() == "name~after"
    site.up(slots=2)
    tab.page.wait_for_selector("[data-testid=live][data-state=live]")
    tab.page.goto(site.url() + "/ui/settings")  # This page follows nothing.
    tab.page.wait_for_selector("main[data-page=settings][data-state=ready]")
    site.kill_node()
    tab.page.wait_for_selector("[data-testid=live][data-state=lost]")
    asked = []
    context.route(re.compile("/ui/$"), lambda route: (asked.append(route), route.continue_()))
    site.up(slots=2)
    tab.page.wait_for_selector("[data-testid=live][data-state=live]")
    wait_for(lambda: (tab.page.wait_for_timeout(50), asked)[1])
    assert tab.page.get_by_role("button", name="Reload").count() == 0, "the same page is there"
    context.unroute(re.compile("/ui/$"))
    context.route(re.compile("/ui/$"), lambda route: route.fulfill(body="<script type=module src=/ui/assets/index-another.js></script>"))
    site.kill_node()
    tab.page.wait_for_selector("[data-testid=live][data-state=lost]")
    site.up(slots=2)
    tab.page.get_by_role("button", name="Reload").wait_for()
    context.unroute(re.compile("/ui/$"))
    tab.page.goto(site.url() + "/ui/experiments?q=name~after")
    tab.page.wait_for_selector("[data-testid=live][data-state=live]")
    search = site.submit_search(name="after", trials=1)
    tab.page.wait_for_selector(f'[role=row][data-id="{search}"]')


def test_a_new_version_of_the_server_offers_a_reload(site, context):
    def older(route):
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "version": "0.0.9"})
    context.route(re.compile("/troupe/v1/session$"), older)  # as if this page came from the server before an upgrade
    tab = Page(context, site)
    tab.page.goto(site.link("experiments"))
    offer = tab.page.get_by_role("button", name="Reload")
    offer.wait_for()
    assert "The server is another version now" in tab.page.inner_text("body")
    tab.page.get_by_label("Filter").fill("name~digits")
    tab.at("q=name")
    context.unroute(re.compile("/troupe/v1/session$"))
    offer.click()
    tab.ready().at("q=name")
    offer.wait_for(state="detached")
    tab.fine()


def test_a_stream_whose_script_does_not_come_is_tried_again(site, context):
    context.route("**/live-worker-*.js", lambda route: route.abort())
    tab = Page(context, site)
    tab.page.goto(site.link("experiments"))
    tab.page.wait_for_selector("[data-testid=live][data-state=lost]")
    context.unroute("**/live-worker-*.js")
    tab.page.wait_for_selector("[data-testid=live][data-state=live]")


# ---- by keyboard alone


def test_from_sign_in_to_a_paused_experiment_by_keyboard(site, context):
    search = site.submit_search(name="keys", trials=4, epoch_s=20)
    tab = Page(context, site)
    press = tab.page.keyboard.press
    tab.page.goto(site.url() + "/ui/")
    tab.page.wait_for_selector("main[data-page=login]")
    wait_for(lambda: tab.page.evaluate("document.activeElement.name") == "username", 5)
    tab.page.keyboard.type("admin")
    press("Tab")
    press("Enter")
    tab.page.wait_for_selector("main[data-page=home][data-state=ready]")
    press("g")
    press("e")
    tab.page.wait_for_selector("main[data-page=experiments][data-state=ready]")
    wait_for(lambda: tab.page.evaluate("document.activeElement.tagName") == "H1", 5)
    press("/")
    tab.page.keyboard.type(f"id={search}")
    press("Tab")
    wait_for(lambda: tab.page.get_attribute("[role=grid]", "data-rows") == "1", 5)
    press("j")
    press("Enter")
    tab.page.wait_for_selector("main[data-page=experiment][data-state=ready]")
    for _ in range(60):
        if tab.page.evaluate("document.activeElement.textContent") == "Pause":
            break
        press("Tab")
    press("Enter")
    tab.page.get_by_role("button", name="Resume").wait_for()
    press("Control+k")
    tab.page.get_by_role("dialog", name="Command palette").wait_for()
    tab.page.keyboard.type("queue")
    press("Enter")
    tab.page.wait_for_selector("main[data-page=queue]")
    press("?")
    tab.page.get_by_role("dialog", name="Keyboard shortcuts").wait_for()
    press("Escape")
    site.cli("experiment", "kill", str(search))
    tab.fine()


def test_keys_that_come_faster_than_frames_are_the_grids(site, context):
    search = site.submit_search(name="swift", trials=1)
    tab = Page(context, site)
    tab.page.goto(site.link(f"experiments?q=id%3D{search}"))
    tab.page.wait_for_selector("main[data-page=experiments][data-state=ready]")
    wait_for(lambda: tab.page.get_attribute("[role=grid]", "data-rows") == "1", 5)
    tab.page.get_by_role("button", name="Columns").focus()
    tab.page.evaluate("""() => {
        for (const key of ["j", "Enter"])
            document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
    }""")
    tab.page.wait_for_selector(f"main[data-page=experiment]:has-text('{search}')")
    wait_for(lambda: tab.page.evaluate("location.href").endswith(f"/experiments/{search}"))
    tab.fine()


def test_kill_asks_once_and_esc_leaves_it(site, page):
    search = site.submit_search(name="victim", trials=2, epoch_s=60)
    page.go(f"/experiments?sel={search},{site.search}")  # One of them has ended and takes no orders.
    page.page.get_by_role("button", name="Kill", exact=True).click()
    page.page.get_by_role("alertdialog", name=f"Kill experiment {search}?").wait_for()
    page.page.keyboard.press("Escape")
    page.page.get_by_role("button", name="Pause", exact=True).click()
    page.page.wait_for_selector(f"[role=status]:has-text('experiment {search} is paused')")
    page.page.get_by_role("button", name="Resume", exact=True).click()
    page.page.wait_for_selector(f"[role=status]:has-text('experiment {search} is resumed')")
    page.go(f"/experiments/{search}")
    page.page.get_by_role("button", name="Kill", exact=True).click()
    page.page.get_by_role("alertdialog", name=f"Kill experiment {search}?").wait_for()
    page.page.keyboard.press("Escape")
    assert page.page.get_by_role("alertdialog").count() == 0
    assert "CANCELED" not in site.json("experiment", "describe", str(search))["state"]
    page.page.get_by_role("button", name="Kill", exact=True).click()
    page.page.get_by_role("alertdialog").get_by_role("button", name="Kill").click()
    assert "CANCELED" in site.wait_ended(search)
    page.page.wait_for_selector("[data-testid=explain]:has-text('killed by admin')")
    why = page.page.request.get(f"{site.url()}/troupe/v1/experiments/{search}/explain").json()
    assert why["reason"] == {"code": "ended", "text": "was ended: killed by admin"} and why["wouldFree"] == [] and why["since"]


def test_what_does_not_stop_can_be_killed(site, page):
    """A cancel waits for the trial's last checkpoint. Until then Kill is the only order."""
    began = site.root / "began"
    script = f"import pathlib, time\npathlib.Path({str(began)!r}).touch()\ntime.sleep(1000)\n"
    search = site.submit("stubborn", script, "searcher: {name: single, metric: loss, max_length: {batches: 1}}\nmax_restarts: 0")
    wait_for(began.exists)
    button = lambda name: page.page.get_by_role("button", name=name, exact=True)
    page.go(f"/experiments/{search}")
    button("Cancel").click()
    button("Cancel").wait_for(state="detached")
    for path in (f"/experiments/{search}", f"/experiments?sel={search}", f"/trials/{site.json('trial', 'list', str(search))[0]['id']}"):
        page.go(path)
        page.page.wait_for_selector("[class*=state-stopping]")
        button("Kill").wait_for()
        assert button("Pause").count() + button("Cancel").count() == 0, path
    page.go(f"/experiments/{search}")
    button("Kill").click()
    page.page.get_by_role("alertdialog", name=f"Kill experiment {search}?").get_by_role("button", name="Kill").click()
    wait_for(lambda: site.json("experiment", "describe", str(search))["state"] == "STATE_CANCELED")
    wait_for(lambda: button("Kill").count() == 0)
    page.fine()


# ---- who may what, and texts of others


def test_what_one_may_not_do_is_not_offered(site, context):
    tab = Page(context, site)
    tab.page.goto(site.link("settings", user="determined"))
    tab.page.wait_for_selector("main[data-page=settings][data-state=ready]")
    assert tab.page.get_by_role("heading", name="Users").count() == 0
    tab.go("/cluster")
    assert tab.page.get_by_role("button", name="Drain").count() == 0
    tab.fine()


def test_hostile_names_stay_text(site, page):
    search = site.submit_search(name=HOSTILE, trials=1)
    site.wait_ended(search)
    trial = site.json("experiment", "describe", str(search))["bestTrialId"]
    for path in ["/", "/experiments", f"/experiments/{search}", f"/experiments/{search}/trials?cols=id,hp.opt", f"/experiments/{search}/config",
                 f"/trials/{trial}", f"/trials/{trial}/metrics", f"/trials/{trial}/logs", f"/compare?trials={trial}",
                 f"/experiments/{search}/curves?metric=validation.%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E", "/events"]:
        page.go(path).settle()
        assert page.page.locator("main script, main img, main b:has-text('x')").count() == 0, path
        assert "\u202e" not in page.page.inner_text("body"), path
    page.fine()


def test_stored_html_never_runs_as_ours(site, page):
    page.go(f"/experiments/{site.search}/checkpoints")
    page.page.wait_for_selector('[role=grid][aria-label="Checkpoints"] [role=row][data-id]')
    uuid = rows(page.page, "Checkpoints").first.get_attribute("data-id")
    for path in [f"/troupe/v1/checkpoints/{uuid}/files?path=page.html", f"/troupe/v1/checkpoints/{uuid}/files",
                 f"/troupe/v1/experiments/{site.search}/file?path=job.py"]:
        got = page.page.request.get(site.url() + path)
        assert got.status == 200, path
        assert got.headers["content-disposition"].startswith("attachment"), path
        assert got.headers["content-security-policy"] == "sandbox" and got.headers["x-content-type-options"] == "nosniff", path


def test_two_clusters_on_one_host_do_not_sign_each_other_out(site, page, tmp_path):
    other = Site(tmp_path)
    other.up(slots=1)
    try:
        tab = page.page.context.new_page()
        tab.goto(other.link())
        tab.wait_for_selector("main[data-page=home]")
        page.go("/cluster")
        tab.goto(other.url() + "/ui/cluster")
        tab.wait_for_selector("main[data-page=cluster]")
        assert len({c["name"] for c in page.page.context.cookies() if c["name"].startswith("troupe-")}) == 2
    finally:
        other.close()


# ---- what failed, and what began again

BREAKS_ONCE = """
import os, sys, troupe
info = troupe.info() if hasattr(troupe, "info") else None
begun = 0
import pathlib
mark = pathlib.Path(os.environ["MARK"])
again = mark.exists()
for step in range(41 if again else 1, 81):
    troupe.log({"loss": 1.0 / step, "epoch": step // 10}, step=step)
    if step % 40 == 0:
        troupe.validate({"loss": 1.0 / step}, step=step)
        with troupe.checkpoint(step) as path:
            (path / "model").write_text(str(step))
        if not again:
            mark.write_text("x")
            sys.exit("the first run breaks")
"""


def test_a_restart_is_marked_on_every_axis_that_knows_of_it(site, page):
    mark = site.root / "broke"
    search = site.submit("breaks", BREAKS_ONCE, f"{SINGLE}\nmax_restarts: 2\nenvironment: {{environment_variables: ['MARK={mark}']}}")
    site.wait_ended(search)
    trial = site.json("trial", "list", str(search))[0]["id"]
    page.go(f"/trials/{trial}?metric=training.loss")
    page.page.wait_for_selector('[data-testid=chart][data-metric="training.loss"][data-state=ready][data-marks="40"]')
    page.page.get_by_label("X axis").select_option("time")
    page.page.wait_for_selector('[data-testid=chart][data-metric="training.loss"][data-state=ready][data-marks]:not([data-marks=""]):not([data-marks="40"])')
    for axis in ("epoch", "metric:epoch"):
        page.page.get_by_label("X axis").select_option(axis)
        page.page.wait_for_selector('[data-testid=chart][data-metric="training.loss"][data-state=ready][data-marks="4"]')
    assert page.page.locator("td[data-col=agents]").all_inner_texts()[0] != ""
    page.fine()


def test_a_failed_trial_shows_its_last_lines(site, page):
    search = site.submit("fails", "print('loading', flush=True)\nraise RuntimeError('no such <b>file</b>')\n", f"{SINGLE}\nmax_restarts: 0")
    assert "ERROR" in site.wait_ended(search)
    trial = site.json("trial", "list", str(search))[0]["id"]
    page.go(f"/trials/{trial}")
    page.page.wait_for_selector("[data-testid=last-lines] li")
    lines = page.page.locator("[data-testid=last-lines] li")
    assert "no such <b>file</b>" in page.page.inner_text("[data-testid=last-lines]")
    number = lines.last.get_attribute("data-line")
    lines.last.locator("a").click()
    page.page.wait_for_selector(f'[role=log] [data-line="{number}"].marked')
    page.fine()


# ---- slots over time


def test_slots_over_time_and_slot_hours_by_user(site, page):
    page.go("/cluster")
    page.page.wait_for_selector('[data-testid=chart][data-metric=slots][data-state=ready][data-series="3"]')
    assert float(page.page.locator("[data-testid=slot-hours] li").first.get_attribute("data-hours")) > 0
    assert page.page.locator(f'[data-testid=slot-hours-by] tr[data-id="{site.search}"]').count() == 1
    page.page.get_by_label("Time", exact=True).select_option("24h")
    page.at("span=24h")
    page.page.wait_for_selector('[data-testid=chart][data-metric=slots][data-state=ready]')
    assert page.page.get_by_text("The first 200 of").count() == 0
    def many(route):
        usage = page.page.request.get(route.request.url).json()
        usage["by"] = [{"user": f"user{i}", "experiment": None, "slotHours": 1.0} for i in range(203)]
        route.fulfill(json=usage)

    page.page.route("**/troupe/v1/usage?*", many)
    page.go("/cluster")
    page.page.get_by_text("The first 200 of 203; the CSV has all.").wait_for()
    page.page.unroute("**/troupe/v1/usage?*")
    got = page.page.request.get(site.url() + "/troupe/v1/usage?step=60").json()["slots"]
    assert len({len(got[k]) for k in ("t", "total", "used", "waiting")}) == 1 and len(got["t"]) == 1440
    assert max(got["total"]) > 0 and 0 < max(got["used"]) <= 4 and max(got["waiting"]) > 0
    table = page.page.request.get(site.url() + "/troupe/v1/usage", headers={"Accept": "text/csv"})
    assert table.headers["content-type"].startswith("text/csv") and table.text().startswith("user,experiment,slot_hours")
    assert page.page.request.get(site.url() + "/troupe/v1/usage?step=0").status == 400
    page.fine()


def test_slots_of_an_agent_that_drains_say_so(site, page):
    search = site.submit_search(name="drained", trials=1, epoch_s=60)
    page.go("/cluster")
    page.page.wait_for_selector("[data-testid=slots] [data-state=busy]")
    page.page.get_by_role("button", name="Drain").click()
    page.page.get_by_role("alertdialog").get_by_role("button", name="Drain").click()
    wait_for(lambda: page.page.locator("[data-testid=slots] [data-state=draining]").count() == 4, 10)
    # The stream's state is older than the state that was read after the order.
    page.stays(lambda: page.page.locator("[data-testid=slots] [data-state=draining]").count() == 4, 2)
    waits = site.submit_search(name="waits", trials=1)
    page.go("/queue")
    wait_for(lambda: any("troupe agent enable" in text for text in cells(page.page, "Queue", "free")), 10, what=lambda: cells(page.page, "Queue", "free"))
    site.cli("experiment", "kill", str(waits))
    page.go("/cluster")
    page.page.get_by_role("button", name="Take work again").click()
    page.page.wait_for_selector("[data-testid=slots] [data-state=free]")
    site.cli("experiment", "kill", str(search))
    page.fine()


# ---- a fork, in an editor


def test_the_editor_has_colours_and_faults_at_their_line(site, page):
    page.go(f"/experiments/{site.search}")
    page.page.get_by_role("button", name="Fork").click()
    dialog = page.page.get_by_role("dialog", name=f"Fork experiment {site.search}")
    box = dialog.get_by_label("Configuration")
    wait_for(lambda: "searcher:" in box.input_value(), 10)
    assert "searcher" in dialog.locator(".y-key").all_inner_texts() and dialog.locator(".y-number").count() > 0
    text = box.input_value().rstrip("\n")
    dialog.get_by_text("The server accepts it.").wait_for()
    box.fill(text + "\nmax_restart: 3\n")
    line = text.count("\n") + 2
    dialog.locator(f'.gutter .bad[data-line="{line}"]').wait_for()
    assert "max_restart" in dialog.locator(f'pre .bad[data-line="{line}"]').inner_text()
    assert dialog.get_by_role("button", name="Submit").is_disabled()
    dialog.get_by_role("button", name=f"Line {line}").first.click()
    assert page.page.evaluate("[document.activeElement.selectionStart, document.activeElement.value.slice(document.activeElement.selectionStart, document.activeElement.selectionEnd)]")[1] == "max_restart: 3"
    assert axe(page) == []
    box.fill("")
    wait_for(lambda: dialog.locator("#editor-faults").inner_text().strip() == "the configuration is empty: there is nothing to submit", 5)
    assert dialog.get_by_role("button", name="Submit").is_disabled()
    box.fill(text.replace("digits", "forked"))
    dialog.get_by_text("The server accepts it.").wait_for()
    page.fine_but(400)


# ---- the past


def test_time_travel_shows_what_was(site, page):
    page.go(f"/experiments/{site.search}/trials")
    page.page.wait_for_selector('[role=grid][data-all="8"]')
    page.page.locator("[data-testid=time-slider]").focus()
    page.page.keyboard.press("Home")
    page.page.wait_for_selector('[role=grid][data-all="0"]')
    page.page.wait_for_selector("[data-testid=as-of]:has-text('as of 20')")
    page.at("at=")
    at = lambda: page.page.evaluate("new URL(location.href).searchParams.get('at')")
    first = at()
    page.page.keyboard.press("ArrowRight")
    wait_for(lambda: at() not in (first, None), what=at)
    page.page.keyboard.press("ArrowLeft")
    wait_for(lambda: at() == first, what=at)
    assert page.page.get_by_role("button", name="Fork").count() == 0
    history = page.page.request.get(site.url() + f"/troupe/v1/experiments/{site.search}/history").json()["history"]
    sequences = [h["sequence"] for h in history]
    assert sequences == sorted(sequences) and history[0]["type"] == "experiment_created"
    seen = []
    for h in history[:: max(1, len(history) // 12)]:
        at = h["sequence"]
        rows_ = page.page.request.get(site.url() + f"/troupe/v1/experiments/{site.search}/trials?at={at}").json()["trials"]
        story = page.page.request.get(site.url() + f"/troupe/v1/experiments/{site.search}/search?at={at}").json()
        outcome = page.page.request.get(site.url() + f"/troupe/v1/experiments/{site.search}/outcome?at={at}").json()
        series = page.page.request.get(site.url() + f"/troupe/v1/series?experiment={site.search}&group=training&metric=loss&at={at}").json()["series"]
        assert outcome["numTrials"] == len(rows_) == len(series)
        seen.append((len(rows_), len(story["decisions"]), sum(s["count"] for s in series)))
    assert all(list(column) == sorted(column) for column in zip(*seen)) and seen[0][0] == 0 and seen[-1][0] > 0, seen
    middle = sequences[len(sequences) // 2]
    page.go(f"/experiments/{site.search}?at={middle}")
    page.page.wait_for_selector("[data-testid=as-of]:has-text('as of 20')")
    page.page.get_by_role("tab", name="Search").click()
    page.page.wait_for_selector("[data-testid=decisions]")
    page.at(f"at={middle}")
    page.page.get_by_role("button", name="Play").click()
    wait_for(lambda: f"at={middle}" not in page.page.evaluate("location.search"), 10)
    page.page.get_by_role("button", name="Now").click()
    wait_for(lambda: "at=" not in page.page.evaluate("location.search"), 5)
    page.page.get_by_role("button", name="Fork").wait_for()
    for wrong in ("x", "0", "1" if sequences[0] > 1 else "-3"):
        assert page.page.request.get(site.url() + f"/troupe/v1/experiments/{site.search}/trials?at={wrong}").status == 400, wrong
    for wrong in ("x", "-3", "1.5", "0"):
        for path in (f"experiments/{site.search}", f"experiments/{site.search}/curves", "queue"):
            page.page.goto(f"{site.url()}/ui/{path}?at={wrong}")
            page.page.wait_for_selector(f"main .fault:has-text(\"There is no moment '{wrong}'\")")
            assert page.page.locator("[data-testid=as-of]").count() == 0
    page.page.goto(site.url() + f"/ui/experiments/{site.search}?at=99999999")
    page.page.wait_for_selector("main[data-state=error] [role=alert]")
    assert page.page.locator("[data-testid=as-of]:has-text('as of 20')").count() == 0, "there is no such moment"
    page.fine_but(400)


def test_the_queue_of_the_past(site, page):
    """Eight trials ran on four slots, so that some waited. The slider leads to the queue of such a moment."""
    history = page.page.request.get(site.url() + f"/troupe/v1/experiments/{site.search}/history").json()["history"]
    lengths = {h["sequence"]: page.page.request.get(site.url() + f"/troupe/v1/queue?at={h['sequence']}").json()["waiting"] for h in history}
    at = max(lengths, key=lambda one: len(lengths[one]))
    assert len(lengths[at]) >= 1 and lengths[history[-1]["sequence"]] == []
    page.go(f"/experiments/{site.search}?at={at}")
    page.page.get_by_role("link", name="Queue then").click()
    page.page.wait_for_selector("main[data-page=queue][data-state=ready] [data-testid=as-of]:has-text('as of 20')")
    page.at(f"/ui/queue?at={at}")
    assert sorted(cells(page.page, "Queue", "id")) == sorted(str(row["trial"]) for row in lengths[at])
    assert set(cells(page.page, "Queue", "why")) == {""} and axe(page) == []
    page.page.keyboard.press("j")
    page.page.keyboard.press("Enter")
    page.page.wait_for_selector("main[data-page=trial]")
    page.page.go_back()
    page.page.wait_for_selector("main[data-page=queue][data-state=ready] [data-testid=as-of]:has-text('as of 20')")
    page.page.get_by_role("button", name="Now").click()
    page.page.wait_for_selector("main[data-page=queue][data-state=empty]")
    page.at("/ui/queue", but=["?"])
    page.fine()


def test_differences_to_the_defaults_go_by_values(site, page):
    page.go(f"/experiments/{site.search}/config?show=differences")
    page.page.wait_for_selector("[data-testid=differences] [data-key]")
    shown = {row.get_attribute("data-key"): row.locator("td").all_inner_texts() for row in page.page.locator("[data-testid=differences] [data-key]").all()}
    assert shown["max_restarts"] == ["0", "5"] and shown["searcher.mode"] == ['"aggressive"', '"standard"']
    # The text names these keys, with the values of the defaults.
    assert "searcher.divisor" not in shown and "searcher.smaller_is_better" not in shown and "resources.slots_per_trial" not in shown
    assert not [key for key in shown if key.startswith(("checkpoint_storage", "optimizations", "profiling"))], shown
    page.fine()


def test_facts_have_a_command(site, page):
    page.page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.url())
    site.cli("experiment", "set", str(site.search), "--notes", "described anew")  # This fact belongs to no trial, and changes no state.
    for path, words in [(f"/experiments/{site.search}/events", ["experiment", "events", str(site.search)]), (f"/trials/{best_trial(site)}/events", ["trial", "events", str(best_trial(site))])]:
        page.go(path)
        printed = len(site.json(*words))
        page.page.wait_for_selector(f'[role=grid][aria-label="Events"][data-all="{printed}"]')
        page.page.get_by_role("button", name="Copy command").click()
        newest_first = [*words, "--sort", "-sequence"]  # the order of the grid
        assert page.page.evaluate("navigator.clipboard.readText()") == " ".join(["troupe", *newest_first])
        sequences = [fact["sequence"] for fact in site.json(*newest_first)]
        assert len(sequences) >= printed and sequences == sorted(sequences, reverse=True)
    page.fine()


# ---- actors


def test_actors_stand_below_their_owners_and_take_orders(site, page):
    page.go("/actors")
    page.page.wait_for_selector("[data-testid=topology] [data-actor=cluster]")
    depth = lambda actor: int(page.page.locator(f'[data-testid=topology] li:has([data-actor="{actor}"])').first.evaluate("x => x.style.getPropertyValue('--depth')"))
    wait_for(lambda: depth("retention") == depth("cluster") + 1, 10)
    page.page.locator('[data-testid=topology] [data-actor="pool/default"]').click()
    page.page.get_by_label("Message", exact=True).fill("no_such_message")
    page.page.get_by_role("button", name="Send").click()
    page.page.get_by_role("alertdialog", name="Send no_such_message to pool/default?").get_by_role("button", name="Send").click()
    page.page.wait_for_selector("[data-testid=answer]:has-text('no_such_message')")
    page.fine_but(400)
