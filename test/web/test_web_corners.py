"""Special cases of the page in which a review found faults, in a real browser against a real cluster."""

import pathlib
import re
import subprocess
import urllib.parse

import pytest

from web_site import BINARY, Page, Site, cells, chart, wait_for

EVENTS = '[role=grid][aria-label="Events"]'


# ---- events


def test_ten_tabs_of_events_leave_room_for_others(site, context):
    """Browsers allow six connections to a host, so that no tab may keep a connection of its own."""
    tabs = [Page(context, site) for _ in range(10)]
    tabs[0].page.goto(site.link("events"))
    tabs[0].page.wait_for_selector(f'{EVENTS}:not([data-all="0"])')
    for tab in tabs[1:]:
        tab.page.goto(site.url() + "/ui/events")
    for tab in tabs:
        tab.page.wait_for_selector(f'{EVENTS}:not([data-all="0"])')
    before = int(tabs[9].page.get_attribute(EVENTS, "data-all"))
    search = site.submit_search(name="told", trials=1)
    for tab in tabs:
        tab.page.bring_to_front()
        wait_for(lambda: int(tab.page.get_attribute(EVENTS, "data-all")) > before, 20)
        tab.fine()
    site.wait_ended(search)


def test_an_idle_page_of_events_asks_seldom(site, page):
    page.go("/events")
    page.page.wait_for_selector(f'{EVENTS}:not([data-all="0"])')
    page.settle()
    asked = []
    page.page.on("request", lambda r: asked.append(r.url))
    page.stays(lambda: len(asked) <= 3, 10, lambda: asked)


def test_an_open_actor_asks_seldom(site, page):
    """The list and the panel are read in turn."""
    page.go("/actors?at=cluster")
    panel = page.page.get_by_role("region", name="Actor cluster")
    panel.locator("dt:text-is('kind')").wait_for()
    panel.locator("li:has-text('child')").first.wait_for()
    asked = []
    page.page.on("request", lambda r: asked.append(r.url.split("/shell/")[-1].split("?")[0]))
    page.stays(lambda: len(asked) <= 3, 10, lambda: asked)
    wait_for(lambda: page.page.evaluate("true") and asked)
    begun = len(asked)
    panel.get_by_role("button", name="Read again").click()
    wait_for(lambda: page.page.evaluate("true") and "info,state" in ",".join(asked[begun:]), what=lambda: asked)
    page.fine()


def test_who_did_what_is_told_from_facts(site, page, monkeypatch):
    monkeypatch.setitem(site.env, "TROUPE_USER", "admin")  # as whom the tab is signed in: others hear less of roles
    site.cli("experiment", "set", str(site.search), "--notes", "looked at")
    page.go("/events?kind=audit")
    page.page.wait_for_selector(f'{EVENTS}:not([data-all="0"])')
    facts = []

    def all_are_shown():  # More facts may come meanwhile.
        facts[:] = site.json("events", "--kind", "audit")
        return int(page.page.get_attribute(EVENTS, "data-all")) == len(facts)
    wait_for(all_are_shown, 10)
    assert cells(page.page, "Events", "by")[0] == facts[-1]["fields"]["by"]
    page.page.get_by_label("Experiment").select_option(str(site.search))
    mine = site.json("events", "--kind", "audit", "--experiment", str(site.search))
    wait_for(lambda: int(page.page.get_attribute(EVENTS, "data-all")) == len(mine), 10)
    assert ("experiment_created", mine[0]["fields"]["owner"]) in zip(cells(page.page, "Events", "type"), cells(page.page, "Events", "by"))
    for kind in ("shell", "supervision", "node", "fault"):
        page.go(f"/events?kind={kind}")
        assert page.page.get_by_label("Kind").input_value() == kind
    page.fine()


# ---- reports


def test_reports_forget_what_an_older_data_directory_lacks(site, page):
    experiment = site.submit("reports", "import time, troupe\nfor step in range(1, 6):\n    troupe.log({'loss': 1.0 / step}, step=step)\ntime.sleep(1000)\n", "searcher: {name: single, metric: loss}\nresources: {slots_per_trial: 0}")
    trial = wait_for(lambda: (site.json("trial", "list", str(experiment)) or [{}])[0].get("id"), 60)
    path = f"/troupe/v1/trials/{trial}/metrics"
    rows = wait_for(lambda: len(all := page.page.request.get(site.url() + path).json()) == 5 and all, 60)
    page.go(f"/trials/{trial}/metrics")
    shown = lambda count: page.page.wait_for_selector(f'[role=grid][aria-label="Reports"][data-all="{count}"]')
    shown(5)
    older = rows[:2]

    def answer(route):
        after = int(dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(route.request.url).query)).get("after", 0))
        route.fulfill(json=[r for r in older if r["row"] > after])

    page.page.route(f"**{path}?**", answer)
    shown(2)
    # Its new reports may have numbers that the former ones had.
    older.append({**rows[2], "endTime": "2040-01-01T00:00:00Z"})
    shown(3)
    older[2:] = rows[2:4]
    shown(4)
    page.page.unroute(f"**{path}?**")
    site.cli("experiment", "kill", str(experiment))
    page.fine()


# ---- the past


def test_a_tab_that_knows_no_moment_shows_now(site, page):
    """These tabs cannot show the past. With `at` in the address they show the present, and do not claim to show anything else."""
    history = page.page.request.get(f"{site.url()}/troupe/v1/experiments/{site.search}/history").json()["history"]
    at = history[len(history) // 2]["sequence"]
    for tab in ("checkpoints", "logs", "code", "config", "events"):
        page.go(f"/experiments/{site.search}/{tab}?at={at}")
        page.page.get_by_role("button", name="Fork").wait_for()
        assert page.page.locator(".titleline .state").inner_text() == "COMPLETED", tab
        assert page.page.locator("[data-testid=as-of], [data-testid=time-slider]").count() == 0, tab
    page.fine()


# ---- changes while a page is open


def test_home_hears_of_an_agent_that_comes(tmp_path, chromium):
    """No experiment changes when an agent registers."""
    site = Site(tmp_path)
    site.up(slots=4)
    context = chromium.new_context()
    try:
        site.wait_ended(site.submit_search(name="one", trials=1))
        tab = Page(context, site)
        tab.page.goto(site.link())
        tab.page.wait_for_selector("main[data-page=home][data-state=ready]")
        tab.settle()
        shown = tab.page.locator("main .strip")
        wait_for(lambda: shown.inner_text() == "0 of 4 slots used", 10)
        with open(tmp_path / "log", "w") as log:
            agent = subprocess.Popen([BINARY, "agent", "--master", site.url().removeprefix("http://"), "--name", "guest", "--slots", "2", "--data-dir", str(tmp_path / "guest")], env=site.env, stdout=log, stderr=log)
        wait_for(lambda: shown.inner_text() == "0 of 6 slots used", 20)
        agent.terminate()
        agent.wait()
        wait_for(lambda: shown.inner_text() == "0 of 4 slots used", 60)
        tab.fine()
    finally:
        context.close()
        site.close()


def test_a_page_of_what_was_deleted_says_so(site, page):
    search = site.submit_search(name="deleted", trials=1)
    site.wait_ended(search)
    trial = site.json("trial", "list", str(search))[0]["id"]
    tabs = [page, Page(page.page.context, site), Page(page.page.context, site)]
    events, hits = Page(page.page.context, site), Page(page.page.context, site)
    events.go(f"/events?experiment={search}")
    events.page.wait_for_selector('[role=grid][aria-label="Events"] [role=row][data-id]')
    hits.go(f"/logs?experiment={search}&regex=1&q=.")
    hits.page.wait_for_selector("[data-testid=hits][data-state=ready]:not([data-hits='0'])")
    for tab, path in zip(tabs, [f"/experiments/{search}", f"/trials/{trial}", f"/trials/{trial}/logs"]):
        tab.go(path).settle()
    site.cli("experiment", "delete", str(search), "--yes")
    for tab, said in zip(tabs, [f"no experiment {search}", f"no trial {trial}", f"no trial {trial}"]):
        tab.page.bring_to_front()
        tab.page.wait_for_selector(f"main[data-state=error]:has-text('There is {said}')")
    for tab in (events, hits):
        tab.page.bring_to_front()
        tab.page.wait_for_selector(f"[role=alert]:has-text(\"'{search}' not found\")")
        tab.page.wait_for_selector(f"select[aria-label=Experiment]:not(:has(option:has-text('{search} deleted')))", state="attached")
    assert hits.page.locator("[data-testid=hits]").get_attribute("data-hits") == "0"


def test_a_pool_without_an_agent_is_shown(tmp_path, chromium):
    site = Site(tmp_path)
    (tmp_path / "cluster.yaml").write_text("troupe: 1\npools: {main: {default: true}, idle: {}}\n")
    site.up_words += ("--file", str(tmp_path / "cluster.yaml"))
    site.up(slots=1)
    context = chromium.new_context()
    try:
        tab = Page(context, site)
        tab.page.goto(site.link("cluster"))
        shown = tab.page.locator("[data-pool]")
        wait_for(lambda: shown.all_inner_texts() == ["idle: 0 of 0 slots used", "main: 0 of 1 slots used"], 20, what=shown.all_inner_texts)
        tab.fine()
    finally:
        context.close()
        site.close()


def test_a_run_of_a_search_that_was_deleted_leaves_its_grid(site, page):
    search = site.submit_search(name="fewer", trials=2)
    site.wait_ended(search)
    first, second = [row["id"] for row in site.json("trial", "list", str(search))]
    other = Page(page.page.context, site)
    other.go(f"/trials/{first}").settle()
    page.go(f"/experiments/{search}/trials").settle()
    page.page.wait_for_selector('[role=grid][aria-label="Trials"][data-all="2"]')
    assert site.call("/api/v1/runs/delete", {"runIds": [first]})[1]["results"] == [{"error": "", "id": first}]
    page.page.wait_for_selector('[role=grid][aria-label="Trials"][data-all="1"]')
    assert cells(page.page, "Trials", "id") == [str(second)]
    other.page.bring_to_front()
    other.page.wait_for_selector(f"main[data-state=error]:has-text('There is no trial {first}')")


def test_what_is_not_there_leaves_the_others(site, page):
    """A list in an address may name things that were deleted since."""
    one, other = [row["id"] for row in site.json("trial", "list", str(site.search))][:2]
    page.go(f"/compare?experiments={site.search},99999&trials={one},{other},99998")
    assert {"experiment 99999 is not there", "trial 99998 is not there"} <= set(re.split("; |[.]\n", page.page.inner_text("main p.hint") + "\n"))
    best = site.json("experiment", "describe", str(site.search))["bestTrialId"]
    page.page.wait_for_selector(f"[data-testid=chart][data-series='{len({one, other, best})}']")
    page.go(f"/experiments/{site.search}/curves?sel={one},99998")
    page.page.wait_for_selector("[data-testid=chart][data-series='1']")
    page.settle()
    assert page.page.locator("[role=alert]").count() == 0 and "1 selected trials; not there: 99998" in page.page.inner_text("main")
    page.go(f"/logs?experiment={site.search},99999&q=hello")
    page.page.wait_for_selector("[data-testid=hits][data-state=ready]:not([data-hits='0'])")
    page.go(f"/experiments?sel={site.search},99999")
    page.page.wait_for_selector(".selection:has-text('1 selected')")
    page.fine_but(404)


def test_a_comparison_of_many_metrics_begins_with_that_of_the_search(site, page):
    url = f"{site.url()}/troupe/v1/experiments/{site.search}/metrics"
    one, other = [row["id"] for row in site.json("trial", "list", str(site.search))][:2]
    known = page.page.request.get(url).json()["metrics"]
    loss = next(m for m in known if m["group"] == "training" and m["name"] == "loss")
    made = [{**loss, "name": f"layer{i}"} for i in range(300)]
    page.page.route(url, lambda route: route.fulfill(json={"metrics": made + known}))
    page.go(f"/compare?trials={one},{other}")
    table = page.page.locator("[data-testid=metrics-side][data-state=ready]")
    keys = lambda: table.locator("[data-key]").evaluate_all("all => all.map(x => x.dataset.key)")
    assert (keys()[0], len(keys())) == ("validation.loss", 200)
    page.page.get_by_label("Search metrics").fill("training loss")
    wait_for(lambda: keys() == ["training.loss"] and "—" not in table.locator("[data-key] td").all_inner_texts(), what=keys)
    page.fine()


def test_an_overview_says_how_many_metrics_it_leaves_out(site, page):
    url = f"{site.url()}/troupe/v1/experiments/{site.search}/outcome"
    outcome = page.page.request.get(url).json()
    metrics = outcome["bestTrial"]["bestValidation"]["metrics"]["avgMetrics"]
    few = sum(isinstance(x, (int, float)) for x in metrics.values())
    page.go(f"/experiments/{site.search}")
    page.page.get_by_role("heading", name="Its metrics").wait_for()
    assert page.page.get_by_text("The first 24 of").count() == 0
    metrics.update({f"layer{i}": i for i in range(30)})
    page.page.route(url, lambda route: route.fulfill(json=outcome))
    page.go(f"/experiments/{site.search}")
    page.page.get_by_text(f"The first 24 of {few + 30}: all of them.").wait_for()
    page.page.get_by_role("link", name="all of them").click()
    page.page.wait_for_selector("main[data-page=trial]")
    page.fine()


# ---- the search


def test_every_decision_can_be_read(site, page):
    url = f"{site.url()}/troupe/v1/experiments/{site.search}/search"
    story = page.page.request.get(url).json()
    story["decisions"] = [{**story["decisions"][0], "sequence": i + 1} for i in range(1200)]
    page.page.route(url, lambda route: route.fulfill(json=story))
    page.go(f"/experiments/{site.search}/search")
    rows = page.page.locator("[data-testid=decisions] li")
    for count in (500, 1000, 1200):
        wait_for(lambda: rows.count() == count, 10)
        if count < 1200:
            page.page.get_by_role("button", name="Earlier decisions").click()
    assert page.page.get_by_role("button", name="Earlier decisions").count() == 0
    page.fine()


# ---- settings


def test_the_focus_goes_along_with_a_new_password(site, page):
    page.go("/settings")
    row = page.page.locator("[data-user=determined]")
    row.get_by_role("button", name="New password").focus()
    page.page.keyboard.press("Enter")
    wait_for(lambda: page.page.evaluate("document.activeElement.type") == "password", 5)
    page.page.keyboard.press("Escape")
    wait_for(lambda: page.page.evaluate("document.activeElement.textContent") == "New password", 5)
    page.fine()


def test_a_refusal_covers_nothing_that_cannot_be_scrolled_away(site, page):
    page.page.set_viewport_size({"width": 1280, "height": 620})
    page.go("/settings")
    page.page.route("**/api/v1/users/*", lambda route: route.fulfill(status=400, json={"error": {"code": 9, "error": "this stays as it is"}}))
    page.page.locator("[data-user=determined]").get_by_role("button", name="Deactivate").click()
    page.page.get_by_role("alertdialog").get_by_role("button", name="Deactivate").click()
    note = page.page.locator(".said.bad:has-text('this stays as it is')")
    note.wait_for()
    page.page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    button = page.page.get_by_role("button", name="Make user")
    wait_for(lambda: button.bounding_box()["y"] + button.bounding_box()["height"] <= note.bounding_box()["y"], 5, what=lambda: (button.bounding_box(), note.bounding_box()))
    page.fine_but(400)


# ---- orders


def test_what_an_unmanaged_experiment_refuses_is_not_offered(site, page):
    """Only the processes of an unmanaged experiment start and pause it."""
    status, body = site.call("/api/v1/experiments", {"config": "name: outside\nentrypoint: none\nsearcher: {name: custom, metric: loss}\n", "unmanaged": True})
    assert status == 200, body
    search = body["experiment"]["id"]
    page.go(f"/experiments/{search}")
    page.page.get_by_role("button", name="Cancel").wait_for()
    assert page.page.get_by_role("button", name="Pause").count() == 0 and page.page.get_by_role("button", name="Resume").count() == 0
    page.page.keyboard.press("Control+k")
    page.page.keyboard.type(f"experiment {search}")
    page.page.locator(f"[role=option]:has-text('Kill experiment {search}')").wait_for()
    assert page.page.locator("[role=option]:has-text('Resume'), [role=option]:has-text('Pause')").count() == 0
    page.page.locator(f"[role=option]:has-text('Kill experiment {search}')").click()
    page.page.get_by_role("alertdialog", name=f"Kill experiment {search}?").get_by_role("button", name="Kill").click()
    assert "CANCELED" in site.wait_ended(search)
    page.fine()


def test_what_the_server_refuses_is_not_asked_for_again(site, page):
    page.go("/events?experiment=abc", state="error")
    page.page.locator("[role=alert]:has-text('is not a whole number')").wait_for()
    asked = []
    page.page.on("request", lambda r: asked.append(r.url) if "/session" in r.url or "/events?" in r.url else None)
    page.stays(lambda: [url for url in asked if "/ui/" not in url] == [], 5)
    with page.page.expect_request(lambda r: "/troupe/v1/events" in r.url):
        page.page.get_by_role("button", name="Try again").click()
    page.fine_but(400)


def test_two_users_in_one_browser(tmp_path, chromium):
    """The tabs of a browser have one cookie. When another user signs in on one tab, all of them are that user's, and hear what that user may see."""
    site = Site(tmp_path)
    context = chromium.new_context()
    try:
        site.up_with_roles(("Editor", "team"))
        site.cli("project", "create", "team", "hers")
        config = "name: asleep\nentrypoint: sleep 1000\nsearcher: {name: single, metric: loss}\nresources: {slots_per_trial: 0}\n"
        create = lambda project: site.call("/api/v1/experiments", {"config": config, "projectId": project, "activate": True})[1]["experiment"]["id"]
        tabs = first, second = Page(context, site), Page(context, site)

        def enters(tab, user):
            tab.page.goto(site.link("experiments", user=user))
            for one in tabs:
                one.page.wait_for_selector("main[data-page=experiments]")
                one.page.locator("header .who").get_by_text(user, exact=True).wait_for()
                one.page.wait_for_selector("[data-testid=live][data-state=live]")

        def hear(*experiments, but=()):
            for tab in tabs:
                row = lambda e: tab.page.locator(f"[role=row][data-id='{e}']")
                for experiment in experiments:
                    row(experiment).wait_for()
                assert [e for e in but if row(e).count() > 0] == []

        first.page.goto(site.link("experiments"))
        first.page.wait_for_selector("main[data-page=experiments]")
        second.go("/experiments", state="empty")
        seen = [create(1)]
        hear(*seen)
        enters(second, "eve")
        secret = create(1)
        seen.append(create(2))
        hear(seen[1], but=(seen[0], secret))
        enters(first, "admin")
        seen.append(create(1))
        hear(*seen, secret)
        # A tab that asks for the password shows nothing of the next user behind its question.
        first.page.get_by_role("button", name="Sign out").click()
        second.page.get_by_role("dialog", name="Sign in again").wait_for()
        enters(first, "eve")
        hear(seen[1], but=(seen[0], seen[2], secret))
        assert second.page.get_by_role("dialog", name="Sign in again").count() == 0

        def fork():
            second.go(f"/experiments/{seen[1]}")
            second.page.get_by_role("button", name="Fork").click()
            dialog = second.page.get_by_role("dialog", name=f"Fork experiment {seen[1]}")
            dialog.get_by_text("The server accepts it.").wait_for()
            return dialog.get_by_label("Configuration")

        # What was typed into an editor stays for who typed it, and is shown to nobody else.
        box = fork()
        plain = box.input_value()
        box.press("Control+End")
        second.page.keyboard.type("# eve's")
        for user, text in (("admin", plain), ("eve", plain + "# eve's")):
            first.page.goto(site.link("experiments", user=user))
            second.page.locator("header .who").get_by_text(user, exact=True).wait_for()
            assert fork().input_value() == text
        second.page.keyboard.press("Escape")
        second.page.get_by_role("alertdialog").get_by_role("button", name="Discard").click()
        assert fork().input_value() == plain
        for tab in tabs:
            tab.fine_but(404)  # what a tab asks for while another user signs in, that user may not see
    finally:
        context.close()
        site.close()


def test_rights_are_those_of_the_workspace(tmp_path, chromium):
    """With roles, a user may view in one workspace and change in another. A fork goes to the project of its parent."""
    site = Site(tmp_path)
    context = chromium.new_context()
    try:
        site.up_with_roles(("Viewer", "Uncategorized"), ("Editor", "team"))
        site.cli("project", "create", "team", "hers")
        config = "name: asleep\nentrypoint: echo a secret word; sleep 1000\nsearcher: {name: single, metric: loss}\nresources: {slots_per_trial: 0}\n"
        others, hers = [site.call("/api/v1/experiments", {"config": config, "projectId": project, "activate": True})[1]["experiment"]["id"] for project in (1, 2)]
        trials = {e: wait_for(lambda: (site.json("trial", "list", str(e)) or [{}])[0].get("id"), 60) for e in (others, hers)}
        tab = Page(context, site)
        tab.page.goto(site.link(user="eve"))
        tab.page.wait_for_selector("main[data-page=home][data-state=ready]")
        links = tab.page.get_by_role("navigation", name="Main").get_by_role("link")
        assert links.all_inner_texts() == ["Home", "Experiments", "Cluster", "Queue", "Logs", "Events", "Settings"], "she may not see actors"
        tab.page.keyboard.press("?")
        keys = tab.page.get_by_role("dialog", name="Keyboard shortcuts")
        keys.wait_for()
        assert "g l, g v, g s" in keys.inner_text() and "ctors" not in keys.inner_text()
        tab.page.keyboard.press("Escape")
        keys.wait_for(state="hidden")
        for key in "ga":
            tab.page.keyboard.press(key)
        tab.settle()
        assert tab.page.evaluate("location.pathname") == "/ui/"
        orders = ["Pause", "Cancel", "Kill", "Fork"]
        offered = lambda: [name for name in orders if tab.page.get_by_role("button", name=name, exact=True).count() > 0]
        for search, there in [(others, []), (hers, orders)]:
            tab.go(f"/experiments/{search}").settle()
            assert offered() == there
            tab.go(f"/trials/{trials[search]}").settle()
            assert offered() == [name for name in there if name == "Kill"]
        for selected, there in [(f"{others}", []), (f"{others},{hers}", []), (f"{hers}", ["Pause", "Cancel", "Kill"])]:
            tab.go(f"/experiments?sel={selected}").settle()
            assert tab.page.get_by_role("button", name="Compare").count() == 1 and offered() == there
        tab.go(f"/experiments/{hers}")
        tab.page.get_by_role("button", name="Fork").click()
        tab.page.get_by_text("The server accepts it.").wait_for()
        tab.page.get_by_role("button", name="Submit").click()
        at = lambda: tab.page.evaluate("location.pathname").split("/")[-1]  # `page.url` is not updated while the test waits.
        wait_for(lambda: at() != str(hers), 10)
        made = tab.page.request.get(f"{site.url()}/api/v1/experiments/{at()}").json()["experiment"]
        assert made["projectId"] == 2 and made["forkedFrom"] == hers
        tab.fine()
        # A right that is taken away changes open pages too.
        tab.go(f"/experiments/{others}").settle()
        trial, table, paused, events = (Page(context, site) for _ in range(4))
        trial.go(f"/trials/{trials[others]}").settle()
        table.go("/experiments").settle()
        paused.go(f"/experiments/{others}/config").settle()
        paused.page.keyboard.press(".")
        paused.page.locator("[data-testid=live][data-state=paused]").wait_for()
        events.go("/events").settle()
        of = lambda e: events.page.locator(f"[role=row] [data-col=entity]:text-is('experiment/{e}')")
        of(others).first.wait_for()
        row = lambda e: table.page.locator(f"[role=row][data-id='{e}']")
        row(others).wait_for()
        for one in trials.values():
            wait_for(lambda: "a secret word" in site.cli("trial", "logs", str(one)).stdout, 60)
        hits = Page(context, site)
        hits.go("/logs?q=secret")
        hit = lambda e: hits.page.locator("ol.hits li").filter(has_text=f"trial {trials[e]}, ").first
        hit(others).wait_for()
        site.cli("role", "give", "Viewer", "--user", "eve", "--workspace", "Uncategorized", "--take")
        hit(others).wait_for(state="detached")
        hit(hers).wait_for()
        tab.page.get_by_text(f"There is no experiment {others}.").wait_for()
        trial.page.get_by_text(f"There is no trial {trials[others]}.").wait_for()
        row(others).wait_for(state="detached")
        assert row(hers).count() == 1
        of(hers).first.wait_for()
        wait_for(lambda: of(others).count() == 0, 20)
        assert events.page.get_by_label("Experiment", exact=True).locator(f"option[value='{others}']").count() == 0
        # A page that was paused meanwhile leaves it when it goes on.
        paused.page.bring_to_front()
        paused.page.keyboard.press(".")
        paused.page.get_by_text(f"There is no experiment {others}.").wait_for()
        # When the right comes back, they show it again.
        site.cli("role", "give", "Viewer", "--user", "eve", "--workspace", "Uncategorized")
        for one, heading in ((tab, f"Experiment {others}: asleep"), (trial, f"Trial {trials[others]}"), (paused, f"Experiment {others}: asleep")):
            one.page.bring_to_front()
            one.ready()
            assert one.page.locator("h1").inner_text() == heading and one.page.title() == heading + " · Troupe"
            one.page.get_by_role("tab").first.wait_for()
        row(others).wait_for()
        for one in (tab, trial, table, paused, events):
            one.fine_but(404)
    finally:
        context.close()
        site.close()


# ---- devices


def test_gpus_have_charts_and_their_load_is_seen(tmp_path, chromium):
    """A library with the name and functions of NVIDIA's reports two GPUs, one 40 and the other 50 percent busy."""
    source = pathlib.Path(__file__).resolve().parents[1] / "data/fake_nvml/fake_nvml.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "libnvidia-ml.so.1", source], check=True)
    site = Site(tmp_path)
    site.env["LD_LIBRARY_PATH"] = str(tmp_path)
    site.up(slots=None)
    context = chromium.new_context()
    try:
        experiment = site.submit("gpu", "import time, troupe\ntroupe.params(x=1)\ntime.sleep(1000)\n",
                                 "hyperparameters: {x: 1}\nsearcher: {name: single, metric: loss}\nresources: {slots_per_trial: 2}")
        trial = wait_for(lambda: (site.json("trial", "list", str(experiment)) or [{}])[0].get("id"), 60)
        tab = Page(context, site)
        tab.page.goto(site.link(f"trials/{trial}/resources"))
        for slot, percent in [(0, 40), (1, 50)]:
            for title in (r"percent", r"memory, bytes", r"°C"):
                tab.page.get_by_role("heading", name=re.compile(rf"^GPU {slot} of .+, {title}$")).wait_for()
            chart = f'[data-testid=resources] [data-testid=chart][data-metric$="/{slot}/gpu_percent"][data-state=ready]'
            tab.page.locator(chart.removesuffix("[data-state=ready]")).scroll_into_view_if_needed()  # Charts out of view are not drawn.
            tab.page.wait_for_selector(chart)
            assert tab.page.request.get(f"{site.url()}/troupe/v1/series?trials={trial}&group=system&metric="
                                        + tab.page.get_attribute(chart, "data-metric").removeprefix("system.")).json()["series"][0]["y"][0] == percent
        tab.go("/cluster")
        tab.page.wait_for_selector(f"[data-slot='1'][title*='slot 1 (Fake GPU B): busy, trial {trial} of '][title*=', 50 %, 2.15 GB, 61 °C']")
        tab.fine()
    finally:
        context.close()
        site.close()


# ---- axes


def test_an_axis_that_there_is_not_is_said_once(site, page):
    for path, usual in [(f"/experiments/{site.search}/curves", "step"), (f"/trials/{site.json('trial', 'list', str(site.search))[0]['id']}/resources", "time")]:
        page.page.goto(site.url() + f"/ui{path}?x=st%3Cb%3Eep")
        said = page.page.locator("main .fault")
        said.wait_for()
        page.settle()
        assert said.count() == 1 and "There is no X axis 'st<b>ep'." in said.inner_text() and f"shown is {usual}." in said.inner_text()
        assert page.page.locator("main .failed").count() == 0
    page.page.goto(site.url() + f"/ui/experiments/{site.search}/curves?x=nothing")
    page.page.wait_for_selector("[data-testid=chart][data-metric='validation.loss'][data-state=ready]")
    page.page.get_by_label("X axis").select_option("relative")
    wait_for(lambda: page.page.locator("main .fault").count() == 0, 5)
    page.fine()


def test_a_smoothing_that_there_is_not_is_said(site, page):
    for wrong, shown in [("abc", "0"), ("7", "0.99"), ("-1", "0")]:
        page.page.goto(site.url() + f"/ui/experiments/{site.search}/curves?smooth={wrong}")
        page.page.wait_for_selector(f"main .fault:has-text(\"There is no smoothing '{wrong}'\"):has-text('Shown is {shown}.')")
    page.page.get_by_label("Smoothing").fill("0.5")
    page.page.keyboard.press("Enter")
    wait_for(lambda: page.page.locator("main .fault").count() == 0, 5)
    page.fine()


@pytest.mark.parametrize("path, text", [
    ("/cluster?span=7d", "There is no span '7d'. Known are 1h, 24h and 30d; shown is 1h."),
    ("/experiments/{e}/config?show=b%3Cb%3Eg", "There is no view 'b<b>g'. Known are submitted, resolved and differences; shown is submitted."),
    ("/experiments/{e}/analysis?brush=nope:1..2", "No trial has a value of nope, so that none passes."),
    ("/experiments/{e}/analysis?brush=lr:zzz", "lr:zzz in the address is not a range of values"),
])
def test_a_word_of_an_address_that_means_nothing_is_said(site, page, path, text):
    page.page.goto(site.url() + "/ui" + path.format(e=site.search))
    said = page.page.locator("main .fault[role=alert]")
    said.wait_for()
    assert said.count() == 1 and text in said.inner_text(), said.all_inner_texts()
    page.fine()


def test_an_ended_trial_without_a_sample_says_so(site, page):
    trial = site.json("trial", "list", str(site.search))[0]["id"]
    page.page.route("**/troupe/v1/series?*", lambda route: route.fulfill(json={"sequence": 1, "group": "system", "metric": "", "x": "time", "series": []}))
    page.go(f"/trials/{trial}/resources")
    page.page.get_by_text("The trial ended without a sample.").first.wait_for()
    assert page.page.get_by_text("No sample yet.").count() == 0
    page.fine()


def test_an_actor_is_offered_what_it_can_take(site, page):
    page.go("/actors?at=nobody/1")
    box = page.page.get_by_label("Actor nobody/1")
    box.get_by_text("no actor 'nobody/1'").wait_for()
    assert box.get_by_role("button").all_inner_texts() == ["Read again", "Close", "Try again"]
    page.fine_but(404)
    agent = page.page.request.get(f"{site.url()}/api/v1/agents").json()["agents"][0]["id"]
    page.go(f"/actors?at=agent/{agent}")
    box = page.page.get_by_label(f"Actor agent/{agent}", exact=True)
    box.get_by_role("button", name="Drain").click()
    page.page.get_by_role("alertdialog").get_by_role("button", name="Drain").click()
    box.get_by_role("button", name="Take work again").click()
    box.get_by_role("button", name="Drain").wait_for()


def test_spikes_are_clipped_and_counted(site, page):
    script = "import troupe\np = troupe.params(x=1)\nfor step in range(1, 17):\n    troupe.validate({'loss': 1e6 if step == p.x else 2 - step / 10}, step=step)\n"
    experiment = site.submit("spikes", script, "hyperparameters: {x: {type: int, minval: 1, maxval: 6, count: 6}}\nsearcher: {name: grid, metric: loss, max_concurrent_trials: 4}\nresources: {slots_per_trial: 0}")
    site.wait_ended(experiment)
    said = "6 reported values lie beyond the ends of the Y axis"
    page.go(f"/experiments/{experiment}/curves")
    assert said not in chart(page).inner_text()
    page.page.get_by_label("Clip outliers").check()
    page.page.get_by_text(said).wait_for()
    page.fine()


def test_a_metric_with_a_zero_byte_has_a_curve(site, page):
    script = "import troupe\ntroupe.params(x=1)\nfor step in range(1, 6):\n    troupe.log({'a\\0b': 1 / step}, step=step)\ntroupe.validate({'loss': 1.0}, step=5)\n"
    experiment = site.submit("zero", script, "hyperparameters: {x: 1}\nsearcher: {name: single, metric: loss}")
    site.wait_ended(experiment)
    trial = site.json("trial", "list", str(experiment))[0]["id"]
    for path in (f"/compare?trials={trial}", f"/trials/{trial}"):
        page.go(path)
        page.page.get_by_label("Metric", exact=True).select_option(label="training.a\u2400b")
        page.page.wait_for_selector("[data-testid=chart][data-state=ready][data-series='1'][data-last-x='5'] [aria-label*='training.a\u2400b']")
        assert page.page.locator("main .fault, main .failed").count() == 0, path
    page.fine()


def test_a_range_that_there_is_not_is_said(site, page):
    page.page.goto(site.url() + f"/ui/experiments/{site.search}/curves?from=abc")
    page.page.wait_for_selector("main .fault:has-text(\"There is no range from 'abc' to ''\")")
    page.go(f"/experiments/{site.search}/analysis")
    page.page.wait_for_selector("[data-testid=parallel][data-trials='8'][data-state=ready]")
    box = page.page.locator("form:has(button:text-is('Keep what lies between'))")
    keep = box.get_by_role("button")
    box.get_by_label("Axis").select_option("hp.x")
    box.get_by_label("From").fill("abc")
    keep.click()
    page.page.get_by_text("'abc' is not a number, and x has only numbers").first.wait_for()
    assert "brush=" not in page.page.evaluate("location.search")
    xs = sorted(t["hparams"]["x"] for t in site.json("trial", "list", str(site.search)))
    for start, end, passing in [("", xs[2], 3), ("\u2212\u221e", xs[3], 4), (xs[5], "", 3), ("", "", 8)]:
        box.get_by_label("From").fill(str(start))
        box.get_by_label("To").fill(str(end))
        keep.click()
        page.page.wait_for_selector(f"[data-testid=parallel][data-trials='{passing}']")
    page.fine()


def test_a_comparison_hears_of_a_deletion(site, page):
    script = "import troupe\ntroupe.params(x=1)\ntroupe.validate({'loss': 1.0}, step=1)\n"
    made = [site.submit(f"leaves-{i}", script, "hyperparameters: {x: 1}\nsearcher: {name: single, metric: loss}") for i in range(2)]
    for one in made:
        site.wait_ended(one)
    trials = [site.json("trial", "list", str(one))[0]["id"] for one in made]
    page.go(f"/compare?trials={trials[0]},{trials[1]}")
    heads = page.page.locator("[data-testid=differences] thead th")
    wait_for(lambda: heads.count() == 3, 10, what=heads.count)
    site.cli("experiment", "delete", str(made[1]), "--yes")
    wait_for(lambda: heads.count() == 2, 15, what=heads.count)
    page.page.wait_for_selector(f"main p.hint:has-text('trial {trials[1]} is not there')")
    page.fine_but(404)


INFINITE = """
import troupe
p = troupe.params(x=1, y=1)
troupe.validate({"loss": [0.5, float("inf"), float("-inf"), float("nan"), 2.0, 1.0][p.x - 1 + 3 * (p.y - 1)]}, step=1)
"""


def test_infinite_values_have_marks_in_every_chart(site, page):
    hparams = "hyperparameters: {x: {type: int, minval: 1, maxval: 3, count: 3}, y: {type: int, minval: 1, maxval: 2, count: 2}}"
    experiment = site.submit("infinite", INFINITE, f"{hparams}\nsearcher: {{name: grid, metric: loss, max_concurrent_trials: 4}}\nresources: {{slots_per_trial: 0}}\nmax_restarts: 0")
    site.wait_ended(experiment)
    page.go(f"/experiments/{experiment}/analysis")
    of = lambda chart, key: page.page.get_attribute(f"[data-testid={chart}]", f"data-{key}")
    wait_for(lambda: (of("history", "trials"), of("history", "best")) == ("5", "-Infinity"), 10, what=lambda: (of("history", "trials"), of("history", "best")))
    assert (of("scatter", "trials"), of("scatter", "drawn"), of("scatter", "beyond")) == ("6", "5", "2")
    assert (of("heatmap", "cells"), of("heatmap", "beyond")) == ("5", "2")
    page.page.wait_for_selector("[data-testid=parallel][data-trials='6'][data-state=ready]")
    line = page.page.request.get(f"{site.url()}/troupe/v1/experiments/{experiment}/outcome?history=50").json()["bestSoFar"]
    assert len(line) == 5 and line[-1] == "-Infinity"
    page.go("/experiments?q=name=infinite")
    spark = page.page.locator(f"[role=row][data-id='{experiment}'] .spark polyline")
    wait_for(lambda: (spark.get_attribute("points") or "").endswith("100,20") and "NaN" not in spark.get_attribute("points"), 10, what=lambda: spark.get_attribute("points"))
    page.fine()


SIZES = """
import troupe
p = troupe.params(x=1)
for step in range(1, 9):
    troupe.log({"most": (-1) ** step * 1.7e308, "wide": [3.0, 1.7e308, 1.0, -1.7e308][step % 4], "least": 5e-324 * step, "near": 1e9 + 0.001 * step, "whole": 9 * 10**15 + step,
                "below": -float(step), "signs": (-1) ** step * float(step)}, step=step)
troupe.validate({"loss": 1.7e308 * (-1) ** (p.x + 1)}, step=8)
"""
# How many pixels of the canvas have the colour of a curve, and on how many rows.
INKED = """() => { const c = document.querySelector('[data-testid=chart] canvas'), all = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, rows = new Set(); let n = 0;
    for (let i = 0; i < all.length; i += 4) if (Math.max(all[i], all[i + 1], all[i + 2]) - Math.min(all[i], all[i + 1], all[i + 2]) > 60) { ++n; rows.add(Math.floor(i / 4 / c.width)); }
    return [n, rows.size]; }"""


def test_values_of_any_size_are_drawn(site, page):
    """Where a chart leaves points out, it says so."""
    experiment = site.submit("sizes", SIZES, "hyperparameters: {x: {type: int, minval: 1, maxval: 2, count: 2}}\nsearcher: {name: grid, metric: loss, max_concurrent_trials: 1}\nresources: {slots_per_trial: 0}")
    site.wait_ended(experiment)
    for metric, more, least, rows, drawn, says in [("most", "", 20, 4, 16, ""), ("wide", "", 100, 10, 16, ""), ("least", "", 100, 1, 16, ""), ("near", "", 100, 100, 16, ""), ("whole", "", 100, 100, 16, ""), ("below", "", 100, 100, 16, ""),
                                            ("below", "&logy=1", 0, 0, 0, "16 points of 0 or less not drawn"), ("signs", "&logy=1", 20, 10, 8, "8 points of 0 or less not drawn"), ("below", "&logy=1&logx=1", 0, 0, 0, "16 points")]:
        page.go(f"/experiments/{experiment}/curves?metric=training.{metric}{more}")
        page.page.wait_for_selector(f"[data-testid=chart][data-metric='training.{metric}'][data-state=ready][data-points='{drawn}']")
        wait_for(lambda: (inked := page.page.evaluate(INKED))[0] >= least and inked[1] >= rows, 10, what=lambda: (metric, more, page.page.evaluate(INKED)))
        note = page.page.locator("[data-testid=chart] .note")
        assert (note.inner_text() if note.count() else "").startswith(says) and (says or not note.count()), (metric, more)
    page.go("/experiments?q=name=sizes")
    spark = page.page.locator(f"[role=row][data-id='{experiment}'] .spark polyline")
    wait_for(lambda: spark.get_attribute("points") == "0,2 100,18", 10, what=lambda: spark.get_attribute("points"))
    page.fine()


def test_a_metric_without_a_name_has_a_curve(site, page):
    script = "import troupe\ntroupe.params(x=1)\nfor step in range(1, 6):\n    troupe.log({'': 1 / step, 'part': step}, step=step)\ntroupe.validate({'loss': 1.0, '': 0.25}, step=5)\n"
    experiment = site.submit("nameless", script, "hyperparameters: {x: 1}\nsearcher: {name: single, metric: loss}")
    site.wait_ended(experiment)
    page.page.goto(f"{site.url()}/ui/experiments/{experiment}/curves")
    page.page.wait_for_selector("[data-testid=chart][data-metric='validation.loss'][data-state=ready]")
    page.page.get_by_label("Metric", exact=True).select_option("training.")
    page.page.wait_for_selector("[data-testid=chart][data-metric='training.'][data-state=ready][data-series='1'][data-last-x='5'] [aria-label*=\"training.''\"]")
    page.page.get_by_label("Metric", exact=True).select_option("training.part")
    assert page.page.locator("option[value='metric:']").inner_text() == "''"
    page.page.get_by_label("X axis").select_option("metric:")
    page.page.wait_for_selector("[data-testid=chart][data-metric='training.part'][data-state=ready][data-series='1'][data-last-x='1']")
    assert page.page.locator("main .fault").count() == 0
    trial = page.page.request.get(f"{site.url()}/troupe/v1/experiments/{experiment}/trials").json()["trials"][0]["id"]
    for path, shown in [("trials?cols=m.training.", "[role=columnheader]:has-text(\"'' (training, last)\")"), ("analysis", "option[value='m.training.']:text-is(\"training.''\")")]:
        page.go(f"/experiments/{experiment}/{path}")
        page.page.wait_for_selector(shown, state="attached")
    page.go(f"/compare?trials={trial},{site.json('trial', 'list', str(site.search))[0]['id']}")
    page.page.wait_for_selector("[data-testid=metrics-side] th:has-text(\"training.'' (last)\")")
    page.go(f"/experiments/{experiment}")
    page.page.wait_for_selector("dl.facts dt:text-is(\"''\") + dd:text-is(\"0.25\")")
    page.fine()


def test_groups_wait_for_the_trials_that_they_are_of(site, page):
    """A chart in groups is not drawn before the trials are known: it would show a single curve of all."""
    opts = {trial["hparams"]["opt"] for trial in page.page.request.get(f"{site.url()}/troupe/v1/experiments/{site.search}/trials").json()["trials"]}
    tab = Page(page.page.context, site)
    tab.page.add_init_script("""window.series = new Set();
        new MutationObserver(() => { const chart = document.querySelector('.curves [data-testid=chart][data-state=ready]'); if (chart) window.series.add(chart.dataset.series); })
            .observe(document, {subtree: true, childList: true, attributes: true});""")
    held = []
    tab.page.route(f"**/troupe/v1/experiments/{site.search}/trials", lambda route: held.append(route))
    with tab.page.expect_response(lambda r: "/series?" in r.url):
        tab.page.goto(f"{site.url()}/ui/experiments/{site.search}/curves?group=opt")
    tab.page.locator("[data-testid=chart]").first.wait_for()
    tab.page.evaluate("new Promise(go => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(go, 100))))")
    held[0].continue_()
    tab.page.wait_for_selector(".curves [data-testid=chart][data-state=ready]")
    assert tab.page.evaluate("Array.from(window.series)") == [str(len(opts))]
    tab.fine()
    page.go(f"/experiments/{site.search}/curves?group=nothing")
    page.page.wait_for_selector("main .fault:has-text(\"There is no hyperparameter 'nothing' to group by.\")")
    wait_for(lambda: page.page.locator("[data-testid=chart]").first.get_attribute("data-series") == "8", 5)
    page.fine()


def test_a_heat_map_of_few_whole_numbers_has_no_empty_column(site, page):
    """The values of such an axis are not a range: each value has a column."""
    rows = page.page.request.get(f"{site.url()}/troupe/v1/experiments/{site.search}/trials").json()
    for i, trial in enumerate(rows["trials"]):
        trial["hparams"] = {"size": [16, 32, 1024][i % 3], "layers": i % 2}
    page.page.route(f"**/experiments/{site.search}/trials", lambda route: route.fulfill(json=rows))
    page.go(f"/experiments/{site.search}/analysis?ax=hp.size&ac=hp.layers")
    map = page.page.locator("[data-testid=heatmap]")
    wait_for(lambda: [map.get_attribute(f"data-{name}") for name in ("columns", "lines", "cells")] == ["3", "2", "6"], 10)
    page.fine()


# ---- typed text and the selected row stay


REPORTS = """
import time, troupe
troupe.params(x=1)
print("log 2999 and more", flush=True)
for step in range(1, 100_000):
    troupe.log({"loss": 1 / step}, step=step)
    if step % 3 == 0:
        troupe.validate({"loss": 1 / step}, step=step)
    if troupe.should_stop():
        break
    time.sleep(0.1)
"""


def test_what_one_types_stays_while_reports_come(site, page):
    search = site.submit("typed", REPORTS, "hyperparameters: {x: 1}\nsearcher: {name: random, metric: loss, max_trials: 1}\nmax_restarts: 0\n")
    page.go(f"/experiments/{search}/curves")
    chart = page.page.get_by_test_id("chart").first
    shown = lambda: int(chart.get_attribute("data-last-x") or 0)  # noqa: E731
    wait_for(lambda: shown() > 10, 20)
    for label, typed in (("From", "15"), ("Smoothing", "0.35")):
        field = page.page.get_by_label(label)
        field.click()
        field.press("Control+a")
        for n in range(1, len(typed) + 1):
            field.press(typed[n - 1])
            before = shown()
            wait_for(lambda: shown() > before, 10)
            assert float(field.input_value() or 0) == float(typed[:n].rstrip(".")), (label, typed[:n], field.input_value())
        field.press("Enter")
        page.at({"From": "from=15", "Smoothing": "smooth=0.35"}[label])
        if label == "From":
            page.page.get_by_role("button", name="Whole range").click()
    page.go(f"/experiments/{search}/config?show=differences")
    field = page.page.get_by_label("To experiment (empty: the defaults)")
    field.fill("1")
    page.stays(lambda: field.input_value() == "1", 2, field.input_value)
    field.press("Enter")
    page.at("to=1")
    site.cli("experiment", "kill", str(search))
    page.fine()


def test_a_choice_beside_a_search_keeps_what_was_typed(site, page):
    page.go(f"/experiments/{site.search}/logs")
    box = page.page.get_by_label("Search log")
    box.fill(r"hello from \w =")
    page.page.get_by_label("Regular expression").check()
    wait_for(lambda: int(page.page.get_attribute("[data-testid=hits]", "data-hits") or 0) == 8, 10, what=lambda: page.page.url)
    assert box.input_value() == r"hello from \w ="
    box.fill("hello")
    page.page.get_by_label("Regular expression").uncheck()
    page.at("q=hello", but=["regex"])
    page.go("/logs")
    box.fill("hello from")
    page.page.get_by_label("Experiment", exact=True).select_option(str(site.search))
    page.stays(lambda: box.input_value() == "hello from", 0.5, box.input_value)
    box.press("Enter")
    wait_for(lambda: int(page.page.get_attribute("[data-testid=hits]", "data-hits") or 0) == 8, 10, what=lambda: page.page.url)
    page.fine()


def test_a_download_of_who_is_signed_in_no_more_asks_first(site, page):
    page.go(f"/experiments/{site.search}/checkpoints")
    page.page.evaluate("fetch('/api/v1/auth/logout', {method: 'POST'})")
    page.page.get_by_role("link", name="Download").first.click()
    dialog = page.page.get_by_role("dialog", name="Sign in again")
    dialog.wait_for()
    with page.page.expect_download() as got:
        dialog.get_by_role("button", name="Sign in").click()
    assert got.value.suggested_filename.endswith(".tar") and got.value.path().stat().st_size > 0
    page.fine_but(401)


def test_play_tells_where_it_stopped_and_not_each_place(site, page):
    moments = page.page.request.get(f"{site.url()}/troupe/v1/experiments/{site.search}/history").json()["history"]
    page.go(f"/experiments/{site.search}?at={moments[1]['sequence']}")
    page.page.get_by_role("button", name="Play").click()
    told = page.page.get_by_test_id("as-of")
    first = told.inner_text()
    wait_for(lambda: told.inner_text() != first, 10)
    assert told.get_attribute("aria-live") == "off"
    page.page.get_by_role("button", name="Play").click()
    wait_for(lambda: told.get_attribute("aria-live") == "polite", 5)
    wait_for(lambda: "as of" in page.page.locator("[aria-live=polite]:not([data-testid])").all_inner_texts()[0], 5)
    page.fine()


def test_keys_go_on_in_a_grid_when_their_row_has_left_the_view(site, page):
    page.go("/events")
    wait_for(lambda: int(page.page.get_attribute(EVENTS, "data-all") or 0) > 60, 40)
    page.settle()
    box = page.page.locator(".gridscroll")
    top = lambda: box.evaluate("b => b.scrollTop")  # noqa: E731
    end = box.evaluate("b => b.scrollHeight - b.clientHeight")
    page.page.keyboard.press("j")
    page.page.keyboard.press("j")
    for key, at in [("End", end), ("Home", 0), ("End", end)]:
        page.page.keyboard.press(key)
        wait_for(lambda: abs(top() - at) < 2, 10)
        assert box.evaluate("b => b.contains(document.activeElement)"), key
    page.page.keyboard.press("j")
    assert page.page.evaluate("document.activeElement.dataset.id")
    assert top() > end / 2, "j goes on where one looks"
    page.fine()


def test_what_an_address_names_and_the_grid_lacks_is_said(site, page):
    page.go(f"/experiments?sel={site.search},99999&cols=id,nosuch")
    page.page.wait_for_selector(f'[role=row][data-id="{site.search}"][aria-selected=true]')
    said = " ".join(page.page.locator("[role=alert]").all_inner_texts())
    assert "nosuch" in said and "99999" in said and f"{site.search}," not in said


def test_who_is_in_a_row_stays_there_while_newer_ones_come(site, page):
    page.go("/events")
    page.page.wait_for_selector(f'{EVENTS}:not([data-all="0"])')
    page.settle()
    top = lambda: page.page.evaluate("[document.activeElement.dataset.id ?? '', Math.round(document.activeElement.getBoundingClientRect().top)]")  # noqa: E731
    for _ in range(3):
        page.page.keyboard.press("j")
    stood = top()
    assert stood[0]
    before = int(page.page.get_attribute(EVENTS, "data-all"))
    search = site.submit_search(name="newer", trials=4)
    wait_for(lambda: int(page.page.get_attribute(EVENTS, "data-all")) > before + 40, 40)
    site.wait_ended(search)
    assert top() == stood
    # Selected text stays as well. Without a selected row the newest rows are shown.
    page.page.evaluate("document.activeElement.blur()")
    again = site.submit_search(name="newest", trials=1)
    scroller = page.page.get_by_role("group", name="Events, scrolls")
    wait_for(lambda: scroller.evaluate("box => box.scrollTop") == 0, 20)
    site.wait_ended(again)
    page.fine()


MANY_MATRICES = """
import troupe
troupe.params(x=1)
troupe.validate({**{f"cm{n:02}": [[n, 0], [0, 1]] for n in range(14)}, "tail": [1, float("nan"), float("inf")], "zloss": 0.5, "loss": 0.25}, step=1)
"""


def test_of_many_structured_metrics_the_rest_is_found_by_a_search(site, page):
    search = site.submit("many-matrices", MANY_MATRICES, "hyperparameters: {x: 1}\nsearcher: {name: random, metric: loss, max_trials: 1}\n")
    assert "COMPLETED" in site.wait_ended(search)
    page.go(f"/trials/{site.json('trial', 'list', str(search))[0]['id']}/metrics")
    matrices = page.page.locator("[data-testid=matrix]")
    wait_for(lambda: matrices.count() == 12, 10)
    assert page.page.get_by_text("12 of 15 metrics that are no numbers").count() == 1
    columns = page.page.locator('[role=grid][aria-label="Reports"] [role=columnheader]').evaluate_all("all => all.map(x => x.dataset.col)")
    assert {"loss", "zloss"} <= set(columns), "numbers are columns, however many metrics are none"
    page.page.get_by_label("Search metrics").fill("cm13")
    wait_for(lambda: matrices.count() == 1, 10)
    page.at("mq=cm13")
    page.page.get_by_label("Search metrics").fill("tail")
    page.page.wait_for_selector("[data-testid=bars][data-bars='3']")
    page.fine()


TWO_GROUPS = """
import troupe
troupe.params(x=1)
troupe.log({f"m{n:04}": n for n in range(1000)}, step=0)
for step in range(1, 4):
    troupe.log({"cm": [[step, 0], [0, 1]]}, step=step)
    troupe.validate({"cm": [[0, step], [10, 0]], "loss": 1 / step}, step=step)
"""


def test_structured_metrics_of_one_name_have_sliders_of_their_own(site, page):
    search = site.submit("two-groups", TWO_GROUPS, "hyperparameters: {x: 1}\nsearcher: {name: random, metric: loss, max_trials: 1}\n")
    assert "COMPLETED" in site.wait_ended(search)
    page.go(f"/trials/{site.json('trial', 'list', str(search))[0]['id']}/metrics")
    slider = page.page.get_by_label("Step 3 (3 of 3) of validation.cm")
    slider.wait_for()
    assert page.page.get_by_label("Step 3 (3 of 3) of training.cm").count() == 1
    slider.focus()
    slider.press("ArrowLeft")
    page.page.get_by_label("Step 2 (2 of 3) of validation.cm").wait_for()
    page.at("step.validation.cm=2")
    section = page.page.locator("section:has(> h2:text-is('validation.cm'))")
    assert section.locator("[data-testid=matrix]").inner_text().split() != [] and "10" in section.inner_text()
    page.page.get_by_label("Filter").fill("loss<0.4")  # The metric after the first 1,000 is a column, too.
    page.page.wait_for_selector('[role=grid][aria-label="Reports"][data-rows="1"]')
    page.fine()


def test_a_page_of_what_is_not_there_yet_hears_that_it_was_made(site, page):
    made = site.submit_search(name="last so far", trials=1)
    page.go(f"/experiments/{made + 1}", "error")
    assert f"no experiment {made + 1}" in page.page.inner_text("main")
    site.wait_ended(made)
    trial = site.trials(made)[0]["id"] + 1
    other = Page(page.page.context, site)
    other.go(f"/trials/{trial}", "error")
    assert f"no trial {trial}" in other.page.inner_text("main")
    assert site.submit_search(name="made now", trials=1) == made + 1
    page.page.wait_for_selector("main[data-state=ready] h1:has-text('made now')")
    other.page.wait_for_selector(f"main[data-state=ready] h1:has-text('Trial {trial}')")
    page.fine_but(404)
    other.fine_but(404)
    site.wait_ended(made + 1)


def test_a_comparison_hears_of_the_first_validation(site, page):
    gate = site.root / "gate-of-validation"
    script = f"import os, time, troupe\ntroupe.params()\nwhile not os.path.exists({str(gate)!r}):\n    time.sleep(0.05)\ntroupe.validate({{'loss': 0.5}}, step=1)\ntime.sleep(5)\n"
    made = [site.submit(name, script, "searcher: {name: single, metric: loss}\nresources: {slots_per_trial: 0}\nmax_restarts: 0") for name in ("late-one", "late-other")]
    page.go(f"/compare?experiments={made[0]},{made[1]}", "empty")
    assert f"experiment {made[1]} has no validation yet" in page.page.inner_text("main")
    gate.touch()
    page.page.wait_for_selector("main[data-page=compare][data-state=ready]")
    page.page.wait_for_selector("[data-testid=chart][data-series='2']")
    page.fine()
    for one in made:
        site.wait_ended(one)
