"""The web page in a real browser against a real cluster."""

import json
import os
import pathlib
import re
import urllib.request

import pytest

from web_site import AXE, HOSTILE, Page, Site, free_port, wait_for

PAGES = ["/", "/experiments", "/experiments/{e}", "/experiments/{e}/trials", "/experiments/{e}/curves", "/experiments/{e}/analysis",
         "/experiments/{e}/search", "/experiments/{e}/checkpoints", "/experiments/{e}/logs", "/experiments/{e}/code",
         "/experiments/{e}/config", "/experiments/{e}/config?show=differences", "/experiments/{e}/events", "/trials/{t}", "/trials/{t}/metrics", "/trials/{t}/logs",
         "/trials/{t}/checkpoints", "/trials/{t}/events", "/compare?experiments={e}", "/cluster", "/queue", "/actors", "/logs", "/events",
         "/settings"]


# The pictures of docs/web.md. They are made where TROUPE_WEB_PICTURES names a folder.
PICTURES = {"/experiments/{e}/curves": "curves", "/experiments/{e}/analysis": "analysis", "/experiments/{e}/search": "search", "/cluster": "cluster"}


def best_trial(site):
    return site.json("experiment", "describe", str(site.search))["bestTrialId"]


def rows(page, name):
    return page.locator(f'[role=grid][aria-label="{name}"] [role=row][data-id]')


def cells(page, name, col):
    return page.locator(f'[role=grid][aria-label="{name}"] [role=row][data-id] [data-col="{col}"]').all_inner_texts()


# ---- signing in


def test_a_link_signs_in_once_and_leads_on(site, context):
    link = site.link("experiments?q=digits name!='a b'")
    tab = Page(context, site)
    tab.page.goto(link)
    tab.page.wait_for_selector("main[data-page=experiments][data-state=ready]")
    tab.at("/ui/experiments?q=digits%20name!=%27a%20b%27", but=["code"])
    assert tab.page.input_value("[aria-label=Experiments] input[type=search]") == "digits name!='a b'"
    assert tab.page.evaluate("document.cookie") == ""
    assert tab.page.evaluate("JSON.stringify(localStorage)") == "{}"
    name = [c for c in context.cookies() if c["name"].startswith("troupe-")]
    assert len(name) == 1 and name[0]["httpOnly"] and name[0]["sameSite"] == "Strict" and len(name[0]["name"]) == len("troupe-") + 8
    tab.fine()
    second = context.browser.new_context()
    other = second.new_page()
    other.goto(link)
    other.wait_for_selector("[role=alert]")
    assert "used before" in other.locator("[role=alert]").inner_text()
    second.close()


def test_the_code_is_in_no_log(site):
    code = site.link().split("code=")[1]
    for file in site.data.rglob("*"):
        try:
            if file.is_file() and file.stat().st_size < 50_000_000:
                assert code.encode() not in file.read_bytes(), file
        except FileNotFoundError:
            pass  # The journal has deleted the file meanwhile, because it does not need it any more.


def test_run_says_where_its_page_is(site):
    job = site.root / "job-run"
    job.mkdir()
    (job / "job.py").write_text("import troupe\ntroupe.validate({'loss': 1.0}, step=1)\n")
    (site.root / "run.yaml").write_text(f"name: run\nentrypoint: python3 job.py\n{SINGLE}\n")
    said = site.cli("run", str(site.root / "run.yaml"), str(job)).stdout
    number = re.search(r"experiment (\d+)", said)[1]
    assert f"web page: {site.url()}/ui/experiments/{number}\n" in said and f"troupe web experiments/{number}" in said


def test_a_wrong_password_says_so_and_the_right_one_leads_to_where_one_wanted(site, context):
    tab = Page(context, site)
    tab.page.goto(site.url() + "/ui/queue")
    tab.page.wait_for_selector("main[data-page=login]")
    assert tab.page.title() == "Sign in · Troupe"
    tab.page.get_by_label("Username").fill("admin")
    tab.page.get_by_label("Password").fill("wrong")
    tab.page.get_by_role("button", name="Sign in").click()
    tab.page.wait_for_selector("[role=alert]")
    tab.page.get_by_label("Password").fill("")
    tab.page.get_by_role("button", name="Sign in").click()
    tab.page.wait_for_selector("main[data-page=queue]")


@pytest.mark.parametrize("to", ["https://evil.example/", "//evil.example/ui/", "/api/v1/users", "javascript:alert(1)", "/ui/login"])
def test_next_leads_only_below_ui(site, context, to):
    tab = Page(context, site)
    code = site.link().split("#")[1]
    tab.page.goto(site.url() + "/ui/login?next=" + to + "#" + code)
    tab.page.wait_for_selector("main[data-page=home]")
    wait_for(lambda: tab.page.evaluate("location.href") == site.url() + "/ui/", what=lambda: tab.page.evaluate("location.href"))
    tab.fine()


def test_signing_out_ends_the_session(site, page):
    page.page.get_by_role("button", name="Sign out").click()
    page.page.wait_for_selector("main[data-page=login]")
    page.page.goto(site.url() + "/ui/cluster")
    page.page.wait_for_selector("main[data-page=login]")


def test_a_session_that_ends_in_the_middle_asks_over_the_page(site, page):
    page.go(f"/experiments/{site.search}/trials")
    page.page.get_by_label("Filter").fill("best<")
    page.page.context.clear_cookies()
    page.page.get_by_role("tab", name="Checkpoints").click()
    dialog = page.page.get_by_role("dialog", name="Sign in again")
    dialog.wait_for()
    assert page.page.evaluate("document.activeElement.name") == "password", "who types at once types it"
    dialog.get_by_label("Username").fill("admin")
    dialog.get_by_role("button", name="Sign in").click()
    page.page.wait_for_selector('[role=grid][aria-label="Checkpoints"][data-rows]:not([data-rows="0"])')


def test_what_one_tab_chooses_or_says_counts_in_the_others(site, context):
    first, second = Page(context, site), Page(context, site)
    first.page.goto(site.link("settings"))
    first.page.wait_for_selector("main[data-page=settings]")
    second.page.goto(site.url() + f"/ui/experiments/{site.search}/trials")
    second.page.wait_for_selector("main[data-state=ready]")
    second.page.evaluate("""() => {
        window.written = [];
        for (const name of ["setItem", "removeItem"]) {
            const usual = Storage.prototype[name];
            Storage.prototype[name] = function (...words) { window.written.push(words); return usual.apply(this, words); };
        }
    }""")
    for theme in ("dark", "light", "dark"):
        first.page.get_by_label("Theme").select_option(theme)
    for tab in (first, second):
        tab.page.wait_for_selector("html[data-theme=dark]")
    assert second.page.evaluate("window.written") == [], "what a tab only hears of would stand over what the other one chooses next"
    assert [tab.page.evaluate("localStorage.getItem('troupe.theme')") for tab in (first, second)] == ["dark", "dark"]
    context.clear_cookies()
    second.page.get_by_role("tab", name="Checkpoints").click()
    second.page.get_by_role("dialog", name="Sign in again").wait_for()
    first.page.goto(site.url() + "/ui/")  # The first page asks whether the user is signed in.
    first.page.wait_for_selector("main[data-page=login]")
    first.page.get_by_label("Username").fill("admin")
    first.page.get_by_role("button", name="Sign in").click()
    first.page.wait_for_selector("main[data-page=home]")
    second.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # as when the user returns to the tab
    second.page.wait_for_selector('[role=grid][aria-label="Checkpoints"]')
    second.page.get_by_role("dialog", name="Sign in again").wait_for(state="hidden")


# ---- every page


def axe(page):
    page.page.add_script_tag  # The policy forbids foreign scripts. This goes past the policy on purpose.
    page.page.evaluate(AXE.read_text())
    found = page.page.evaluate("axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']})")
    return [(v["id"], [n["html"][:160] + " | " + n.get("failureSummary", "")[:200] for n in v["nodes"]][:3]) for v in found["violations"] if v["impact"] in ("serious", "critical")]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_page_has_no_error_and_no_barrier(site, page, theme):
    page.page.evaluate(f"localStorage.setItem('troupe.theme', '{theme}')")
    t = best_trial(site)
    bad = {}
    for path in PAGES:
        at = path.format(e=site.search, t=t)
        page.page.goto(site.url() + "/ui" + at)
        page.page.wait_for_selector("main[data-state=ready], main[data-state=empty]")
        assert page.page.evaluate("document.documentElement.dataset.theme") == theme
        page.settle()
        if (folder := os.environ.get("TROUPE_WEB_PICTURES")) and theme == "light" and path in PICTURES:
            page.page.screenshot(path=pathlib.Path(folder) / f"{PICTURES[path]}.png")
        if found := axe(page):
            bad[at] = found
        assert page.faults == [], (at, page.faults)
        assert page.page.title().endswith(" · Troupe")
    assert bad == {}, json.dumps(bad, indent=1)


def test_narrow_and_large(site, page):
    page.page.set_viewport_size({"width": 360, "height": 740})
    for path in ["/", "/experiments", f"/experiments/{site.search}", f"/trials/{best_trial(site)}", "/settings"]:
        page.page.goto(site.url() + "/ui" + path)
        page.page.wait_for_selector("main[data-state=ready]")
        assert page.page.evaluate("document.documentElement.scrollWidth") <= 362, path


def test_unknown_ids_and_addresses_say_so(site, page):
    page.go("/experiments/999999", "error")
    assert "no experiment 999999" in page.page.inner_text("main")
    page.go("/trials/999999", "error")
    page.go("/no/such/page", "error")
    assert page.page.get_attribute("main", "data-page") == "not-found"
    assert page.page.title() == "Not found · Troupe"


def test_headers_and_links_of_determined(site):
    got = urllib.request.urlopen(site.url() + "/ui/experiments/7/trials")
    policy = got.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "require-trusted-types-for 'script'" in policy
    assert got.headers["X-Content-Type-Options"] == "nosniff" and got.headers["Cache-Control"] == "no-cache"
    assert got.headers["Server-Timing"] == "signed-out"
    asset = re.search(r'/ui/(assets/index-[^"]+\.js)', got.read().decode())[0]
    kept = urllib.request.urlopen(site.url() + asset)  # Everybody may keep the file for a year, because it says nothing about who asks.
    assert "immutable" in kept.headers["Cache-Control"] and kept.headers["Server-Timing"] is None
    assert urllib.request.urlopen(site.url() + "/det/experiments/7/trials/12").url == site.url() + "/ui/trials/12"
    for path in ["/ui/assets/nothing.js", "/api/v1/nothing", "/troupe/v1/nothing"]:
        with pytest.raises(urllib.error.HTTPError) as fault:
            urllib.request.urlopen(site.url() + path)
        assert fault.value.code == 404, path


# ---- grids


def test_the_grid_has_the_metric_second_and_the_right_count(site, page):
    page.go(f"/experiments/{site.search}/trials")
    page.page.wait_for_selector('[role=grid][aria-label="Trials"][data-all="8"]')
    heads = page.page.locator('[role=grid][aria-label="Trials"] [role=columnheader]').evaluate_all("all => all.map(x => x.dataset.col)")
    assert [h for h in heads if h != "select"][:2] == ["id", "best"]


def test_an_order_by_a_short_key_or_by_none(site, page):
    page.go(f"/experiments/{site.search}/trials?sort=-lr")
    page.page.wait_for_selector("[data-col='hp.lr'][aria-sort=descending]")
    page.go(f"/experiments/{site.search}/trials?sort=nothing")
    page.page.wait_for_selector("[role=alert]:has-text(\"There is no column 'nothing' to sort by.\")")


def test_hyperparameters_sort_as_numbers_and_the_address_keeps_it(site, page):
    page.go(f"/experiments/{site.search}/trials?cols=id,lr")  # The prefix `hp.` may be left out.
    page.page.wait_for_selector('[role=grid][data-all="8"]')
    page.page.locator('[data-col="hp.lr"] button').click()
    page.at("sort=hp.lr")
    shown = lambda: [float(x) for x in cells(page.page, "Trials", "hp.lr")]
    wait_for(lambda: (now := shown()) == sorted(now) and len(now) == 8, what=shown)
    up = shown()
    page.page.locator('[data-col="hp.lr"] button').click()
    down = sorted(up, reverse=True)
    wait_for(lambda: shown() == down, what=shown)
    assert page.page.locator('[role=columnheader][data-col="hp.lr"]').get_attribute("aria-sort") == "descending"
    page.page.reload()
    page.page.wait_for_selector('[role=grid][data-all="8"]')
    wait_for(lambda: shown() == down, what=shown)
    page.page.go_back()
    wait_for(lambda: shown() == up, what=shown)


def test_the_filter_and_its_faults(site, page):
    page.go(f"/experiments/{site.search}/trials")
    page.page.wait_for_selector('[role=grid][data-all="8"]')
    box = page.page.get_by_label("Filter")
    page.page.keyboard.press("j")
    box.fill("opt=adam x<2")
    wait_for(lambda: 0 < int(page.page.get_attribute("[role=grid]", "data-rows")) < 8, 5)
    kept = page.page.get_attribute("[role=grid]", "data-rows")
    box.fill("opt=adam x<")
    page.page.wait_for_selector("[role=alert]")
    assert "At 12" in page.page.inner_text("[role=alert]")
    assert page.page.get_attribute("[role=grid]", "data-rows") == kept
    box.fill("state=ERROR")
    wait_for(lambda: page.page.get_attribute("[role=grid]", "data-rows") == "0", 5)
    box.evaluate("field => field.blur()")
    page.page.keyboard.press("x")  # The filter hides the row that `j` went to, so that nothing is selected.
    assert "sel=" not in page.page.evaluate("location.href")


def test_a_filtered_row_opens_its_own_trial(site, page):
    page.go(f"/experiments/{site.search}/trials?sort=-best")
    page.page.wait_for_selector('[role=grid][data-all="8"]')
    first = rows(page.page, "Trials").first
    trial = first.get_attribute("data-id")
    first.locator("a").first.click()
    page.page.wait_for_selector("main[data-page=trial][data-state=ready]")
    assert page.page.title() == f"Trial {trial} · Troupe"


def test_metrics_as_columns(site, page):
    page.go(f"/experiments/{site.search}/trials?cols=id,m.training.loss,m.training.loss.min,m.validation.loss.max")
    wait_for(lambda: all(cells(page.page, "Trials", "m.training.loss.min")) and len(cells(page.page, "Trials", "m.training.loss.min")) == 8, 10)
    for last, low in zip(cells(page.page, "Trials", "m.training.loss"), cells(page.page, "Trials", "m.training.loss.min")):
        assert float(last) == float(low)  # The loss falls in every step.


# ---- charts


def chart(page):
    page.page.wait_for_selector("[data-testid=chart][data-state=ready]")
    return page.page.locator("[data-testid=chart]").first


def test_curves_of_all_trials_and_their_numbers(site, page):
    page.go(f"/experiments/{site.search}/curves")
    c = chart(page)
    assert c.get_attribute("data-series") == "8" and c.get_attribute("data-metric") == "validation.loss" and c.get_attribute("data-last-x") == "16"
    c.get_by_role("button", name="Show as table").click()
    wait_for(lambda: page.page.locator('[role=grid][aria-label="Curves as numbers"] [data-id]').count() == 8)
    page.page.get_by_label("Metric", exact=True).select_option("training.odd")
    page.page.wait_for_selector('[data-testid=chart][data-metric="training.odd"][data-state=ready]')
    page.at("metric=training.odd")
    page.fine()  # NaN and infinities have caused no error.


def test_the_address_is_the_view(site, page, context):
    page.go(f"/experiments/{site.search}/curves")
    chart(page)
    page.page.get_by_label("X axis").select_option("relative")
    page.page.get_by_label("Smoothing").fill("0.5")
    page.page.get_by_label("Smoothing").press("Enter")
    page.page.get_by_label("Logarithmic Y").check()
    page.page.get_by_label("Group by").select_option("opt")
    page.page.wait_for_selector('[data-testid=chart][data-series="2"]')
    page.at("x=relative", "smooth=0.5", "logy=1", "group=opt")
    other = Page(context, site)
    other.page.goto(page.page.evaluate("location.href"))
    other.page.wait_for_selector('[data-testid=chart][data-series="2"][data-state=ready]')
    assert other.page.get_by_label("Smoothing").input_value() == "0.5" and other.page.get_by_label("Logarithmic Y").is_checked()
    page.page.get_by_label("X axis").select_option("step")
    page.at("?", but=["?x=", "&x="])  # A default is not part of the address.
    other.fine()


def test_back_and_a_reload_lead_to_where_one_was(site, page):
    tab = page.page
    tab.set_viewport_size({"width": 1000, "height": 400})
    grid = lambda: tab.evaluate("document.querySelector('.gridscroll')?.scrollTop ?? -1")
    window = lambda: tab.evaluate("Math.round(scrollY)")
    page.go(f"/experiments/{site.search}/trials?sort=hp.lr").settle()
    assert tab.evaluate("document.querySelector('.gridscroll').scrollTop = 70; scrollTo(0, 60); scrollY") == 60
    kept = lambda: tab.evaluate("[history.state?.grids.Trials?.top, history.state?.y]")
    wait_for(lambda: kept() == [70, 60], what=kept)
    tab.reload()
    wait_for(lambda: (grid(), window()) == (70, 60), 10, what=lambda: (grid(), window()))
    row = tab.locator("[role=row][data-id]").nth(4)
    row.locator("[data-col=id] a").evaluate("link => link.click()")
    tab.wait_for_selector("main[data-page=trial][data-state=ready]")
    tab.go_back()
    wait_for(lambda: (grid(), window()) == (70, 60), 10, what=lambda: (grid(), window()))
    page.settle()
    tab.locator("[role=columnheader][data-col=id] button").evaluate("button => button.click()")
    tab.locator("[role=columnheader][data-col=steps] button").evaluate("button => button.click()")  # An order of the rows has a scroll position of its own.
    page.at("sort=steps")
    tab.evaluate("document.querySelector('.gridscroll').scrollTop = 20")
    tab.go_back()
    tab.go_back()
    page.at("sort=hp.lr")
    wait_for(lambda: grid() == 70, 10, what=grid)
    page.go(f"/experiments/{site.search}/analysis").settle()
    tab.evaluate("scrollTo(0, 900)")
    wait_for(lambda: window() == 900, 10, what=window)
    tab.get_by_role("tab", name="Search").evaluate("link => link.click()")
    page.at("/search").settle()
    tab.go_back()
    wait_for(lambda: window() == 900, 10, what=window)
    page.go(f"/experiments/{site.search}/trials?sort=hp.lr").settle()
    tab.evaluate("""() => new Promise(done => {
        document.querySelector('.gridscroll').scrollTop = 35;
        scrollTo(0, 30);
        requestAnimationFrame(() => requestAnimationFrame(done));
    })""")
    tab.reload()  # before the page has stored the position by itself
    wait_for(lambda: (grid(), window()) == (35, 30), 10, what=lambda: (grid(), window()))
    page.fine()


def test_back_and_a_reload_lead_to_the_row_of_the_keyboard(site, page):
    tab = page.page
    tab.set_viewport_size({"width": 1000, "height": 900})
    page.go(f"/experiments/{site.search}/trials?sort=hp.lr").settle()
    ids = tab.locator("[role=row][data-id]").evaluate_all("all => all.map(row => row.dataset.id)")
    on = lambda: tab.evaluate("document.activeElement.dataset.id")
    for i in range(3):
        tab.keyboard.press("j")
        wait_for(lambda: on() == ids[i], 5, what=on)
    tab.keyboard.press("Enter")
    tab.wait_for_selector("main[data-page=trial][data-state=ready]")
    tab.go_back()
    page.at("sort=hp.lr").settle()
    tab.keyboard.press("j")
    wait_for(lambda: on() == ids[3], 5, what=on)
    tab.reload()
    page.ready().settle()
    tab.keyboard.press("k")
    wait_for(lambda: on() == ids[2], 5, what=on)
    page.fine()


def test_hover_in_the_grid_marks_the_charts(site, page):
    page.go(f"/experiments/{site.search}/analysis")
    page.page.wait_for_selector("[data-testid=parallel][data-state=ready]")
    row = rows(page.page, "Trials").first
    row.scroll_into_view_if_needed()
    row.hover()
    trial = row.get_attribute("data-id")
    for name in ["parallel", "scatter", "history", "timeline"]:
        wait_for(lambda: page.page.get_attribute(f"[data-testid={name}]", "data-hovered") == trial, 5)


def test_a_brush_filters_the_others_and_the_grid(site, page):
    page.go(f"/experiments/{site.search}/analysis?brush=x:0..0.5")
    page.page.wait_for_selector("[data-testid=parallel][data-state=ready]")
    passing = page.page.get_attribute("[data-testid=parallel]", "data-trials")
    assert 0 < int(passing) < 8
    wait_for(lambda: page.page.get_attribute('[role=grid][aria-label="Trials"]', "data-rows") == passing)
    wait_for(lambda: page.page.get_attribute("[data-testid=scatter]", "data-trials") == passing)
    page.page.get_by_role("button", name="Show all").click()
    wait_for(lambda: page.page.get_attribute("[data-testid=parallel]", "data-trials") == "8", 5)
    page.at(but=["brush"])
    page.go(f"/experiments/{site.search}/analysis?brush=width:0..1")
    page.page.get_by_text("No trial has a value of width.").wait_for()


def test_importance_and_rungs(site, page):
    page.go(f"/experiments/{site.search}/analysis")
    page.page.wait_for_selector("[data-testid=importance]")
    parts = page.page.locator("[data-testid=importance] [data-hp]").evaluate_all("all => all.map(x => Number(x.dataset.value))")
    assert parts == sorted(parts, reverse=True) and abs(sum(parts) - 1) < 1e-6
    page.go(f"/experiments/{site.search}/search")
    page.page.wait_for_selector("[data-testid=rungs] [data-rung]")
    entered = page.page.locator("[data-testid=rungs] [data-rung='0']").evaluate_all("all => all.map(x => Number(x.dataset.entered))")
    assert sum(entered) == 8
    text = page.page.inner_text("[data-testid=decisions]")
    assert re.search(r"stopped at rung \d+: [\d.]+ against [\d.]+", text), text[:500]


def test_too_few_trials_for_importance_are_no_error(site, page):
    search = site.submit_search(name="few", trials=2)
    site.wait_ended(search)
    page.go(f"/experiments/{search}/analysis")
    page.page.wait_for_selector("main:has-text('needs at least 8 trials with loss; there are 2')")
    page.fine()


def test_compare_shows_what_differs(site, page):
    page.go(f"/experiments/{site.search}/trials")
    page.page.wait_for_selector('[role=grid][data-all="8"]')
    for _ in range(2):
        page.page.keyboard.press("j")
        page.page.keyboard.press("x")
    wait_for(lambda: page.page.locator("[role=row][aria-selected=true]").count() == 2)
    page.page.keyboard.press("c")
    page.page.wait_for_selector("main[data-page=compare][data-state=ready]")
    keys = page.page.locator("[data-testid=differences] [data-key]").evaluate_all("all => all.map(x => x.dataset.key)")
    assert "hp.x" in keys and "hp.lr" in keys
    c = chart(page)
    assert c.get_attribute("data-series") == "2"
    page.fine()


def test_matrices_are_drawn(site, page):
    page.go(f"/trials/{best_trial(site)}/metrics")
    page.page.wait_for_selector('[data-testid=matrix][data-rows="2"][data-cols="2"]')
    slider = page.page.locator("input[type=range]").first
    slider.focus()
    page.page.keyboard.press("Home")
    wait_for(lambda: "step.confusion=1" in page.page.evaluate("location.href"), 5)
    wait_for(lambda: page.page.locator("[data-testid=matrix] tbody td").first.inner_text() == "1")


# ---- logs


def test_a_log_shows_what_a_terminal_would(site, page):
    page.go(f"/trials/{best_trial(site)}/logs")
    page.page.wait_for_selector("[role=log] [data-line]")
    text = page.page.inner_text("[role=log]")
    assert "red and <b>not bold</b>" in text and "\x1b" not in text and "\u202e" not in text
    assert page.page.locator("[role=log] .fg1").first.inner_text() == "red"
    page.page.get_by_label("Search log").fill("hello")
    page.page.keyboard.press("Enter")
    page.page.wait_for_selector('[data-testid=hits][data-hits="1"]')
    page.page.locator("[data-testid=hits] button").first.click()
    wait_for(lambda: "line=" in page.page.evaluate("location.href"), 5)
    wait_for(lambda: page.page.locator(".logline.marked").count() == 1)


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


def test_the_page_goes_on_after_kill_9_of_the_master(tmp_path, chromium):
    site = Site(tmp_path)
    site.listen = f"127.0.0.1:{free_port()}"
    site.up(slots=2)
    context = chromium.new_context()
    try:
        tab = Page(context, site)
        tab.page.goto(site.link("experiments"))
        tab.page.wait_for_selector("main[data-page=experiments]")
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
        site.up(slots=2)
        tab.page.goto(site.url() + "/ui/experiments?q=name~after")
        tab.page.wait_for_selector("[data-testid=live][data-state=live]")
        search = site.submit_search(name="after", trials=1)
        tab.page.wait_for_selector(f'[role=row][data-id="{search}"]')
    finally:
        context.close()
        site.close()


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

SINGLE = "searcher: {name: single, metric: loss, max_length: {batches: 100}}"

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
    wait_for(lambda: dialog.locator("#editor-faults").inner_text().strip() == "", 5)
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


# ---- every chart as numbers


def test_our_own_charts_are_tables_and_files_too(site, page):
    page.go(f"/experiments/{site.search}/analysis")
    page.page.wait_for_selector("[data-testid=parallel][data-state=ready]")
    for name, rows_ in [("history", 8), ("parallel", 8), ("scatter", 8), ("heatmap", 8), ("timeline", 8)]:
        figure = page.page.locator(f"[data-testid={name}]")
        figure.scroll_into_view_if_needed()
        figure.get_by_role("button", name="Show as table").click()
        assert figure.locator("tbody tr").count() == rows_, name
        with page.page.expect_download() as got:
            figure.get_by_role("button", name="Download CSV").click()
        text = open(got.value.path()).read()
        assert text.startswith("trial,") and text.count("\n") == rows_ + 1, text
        with page.page.expect_download() as got:
            figure.get_by_role("button", name="Download PNG").click()
        assert open(got.value.path(), "rb").read(4) == b"\x89PNG", name

    def files(where):
        for button, start in [("Download CSV", b""), ("Download PNG", b"\x89PNG")]:
            with page.page.expect_download() as got:
                page.page.locator(where).get_by_role("button", name=button).click()
            assert open(got.value.path(), "rb").read().startswith(start), (where, button)

    page.page.reload()  # Chromium lets a page save ten files in a row.
    files("[data-testid=importance]")
    assert axe(page) == []
    page.go(f"/experiments/{site.search}/search")
    files("[data-testid=rungs]")
    page.fine()


def test_more_metrics_are_drawn_when_they_come_into_view(site, page):
    page.go(f"/trials/{best_trial(site)}")
    chart(page)
    more = page.page.locator("[data-testid=more-metrics]")
    more.scroll_into_view_if_needed()
    more.locator('[data-metric="training.loss"] [data-testid=chart]').scroll_into_view_if_needed()
    page.page.wait_for_selector('[data-testid=more-metrics] [data-testid=chart][data-metric="training.loss"][data-state=ready]')
    more.get_by_role("button", name="Pin validation.epoch").click()
    page.at("pin=validation.epoch")
    assert more.locator("section[data-metric]").first.get_attribute("data-metric") == "validation.epoch"
    more.get_by_label("Search metrics").fill("odd")
    wait_for(lambda: more.locator("section[data-metric]").count() == 2, 5)  # The pinned metric stays.
    more.get_by_role("button", name="Enlarge training.odd").click()
    page.page.wait_for_selector('[data-testid=chart][data-metric="training.odd"]')
    page.at("metric=training.odd")
    page.fine()


def test_reports_come_without_a_reload(site, page):
    search = site.submit("reports", "import time, troupe\nfor i in range(1, 5000):\n    troupe.log({'loss': 1.0 / i}, step=i)\n    time.sleep(0.3)\n", SINGLE)
    trial = wait_for(lambda: (site.json("trial", "list", str(search)) or [{}])[0].get("id"), 60)
    page.go(f"/trials/{trial}/metrics")
    grid = '[role=grid][aria-label="Reports"]'
    first = wait_for(lambda: int(page.page.get_attribute(grid, "data-all") or 0), 30)
    wait_for(lambda: int(page.page.get_attribute(grid, "data-all")) > first + 5, 30)
    site.cli("experiment", "kill", str(search))
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


# ---- size


def test_the_first_page_is_small(site, context):
    sizes = {}
    tab = Page(context, site)
    tab.page.on("response", lambda r: sizes.__setitem__(r.url, int(r.headers.get("content-length", 0))))
    tab.page.goto(site.link("experiments"))
    tab.page.wait_for_selector("main[data-page=experiments][data-state=ready]")
    code = sum(n for url, n in sizes.items() if re.search(r"\.(js|css)$", url))
    assert 10_000 < code <= 120_000, sizes


QUICKLY = """async links => {
    const main = () => document.querySelector('main'), wait = ms => new Promise(go => setTimeout(go, ms)), stuck = [];
    for (let turn = 0; turn < 120; ++turn) {
        const [link, page] = links[turn % links.length];
        document.querySelector(link).click();
        const t = performance.now();
        while (main().dataset.page !== page || !['ready', 'empty'].includes(main().dataset.state)) {
            if (performance.now() - t > 15000) { stuck.push([turn, page, main().dataset.state, main().textContent.slice(0, 80)]); break; }
            await wait(Math.random() * 15);
        }
        await wait(Math.random() * 20);
    }
    return stuck;
}"""


def test_a_page_says_that_it_is_ready_however_quickly_pages_change(site, page):
    page.go("/experiments")
    pages = {"": "home", "cluster": "cluster", "experiments": "experiments", "queue": "queue"}
    assert page.page.evaluate(QUICKLY, [[f'nav a[href="/ui/{to}"]', name] for to, name in pages.items()]) == []
    page.fine()


SLOWLY = """() => { const ask = window.fetch;
    window.fetch = async (to, how) => { const got = await ask(to, how);
        if (String(to).startsWith('/api/v1/experiments?')) await new Promise((go, no) => { setTimeout(go, 1000); how?.signal?.addEventListener('abort', () => no(how.signal.reason)); });
        return got; }; }"""


def test_answers_that_come_slower_than_changes_arrive(site, page):
    """The first page reads again after each change. A read that has begun must not be cut off by the next."""
    search = site.submit_search(name="restless", trials=1000, epoch_s=0.15)
    page.go("/cluster")
    page.page.evaluate(SLOWLY)
    page.page.locator('nav a[href="/ui/"]').click()
    page.page.wait_for_selector("main[data-page=home][data-state=ready]")
    assert "COMPLETED" not in site.json("experiment", "describe", str(search))["state"], "changes went on all the time"
    site.cli("experiment", "kill", str(search))
    page.fine()
