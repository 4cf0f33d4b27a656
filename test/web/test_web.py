"""The web page in a real browser against a real cluster."""

import json
import os
import pathlib
import re
import urllib.request

import pytest

from web_site import PAGES, SINGLE, Page, axe, best_trial, cells, chart, rows, wait_for

# The pictures of docs/web.md. They are made where TROUPE_WEB_PICTURES names a folder.
PICTURES = {"/experiments/{e}/curves": "curves", "/experiments/{e}/analysis": "analysis", "/experiments/{e}/search": "search", "/cluster": "cluster"}


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
    other.goto(site.link("experiments?q=digits name!='a b'"))  # In the same tab: the fragment alone is another one.
    other.wait_for_selector("main[data-page=experiments][data-state=ready]")
    assert "code=" not in other.url
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
    page.page.get_by_text("No trial has a value of width, so that none passes.").wait_for()
    with page.page.expect_request(lambda r: "/importance?trials=1," in r.url):  # all eight pass
        page.go(f"/experiments/{site.search}/analysis?brush=x:0..1")


def test_importance_and_rungs(site, page):
    page.go(f"/experiments/{site.search}/analysis")
    page.page.wait_for_selector("[data-testid=importance]")
    parts = page.page.locator("[data-testid=importance] [data-hp]").evaluate_all("all => all.map(x => Number(x.dataset.value))")
    assert parts == sorted(parts, reverse=True) and abs(sum(parts) - 1) < 1e-6
    page.go(f"/experiments/{site.search}/search")
    page.page.wait_for_selector("[data-testid=rungs] [data-rung]")
    entered = page.page.locator("[data-testid=rungs] [data-rung='0']").evaluate_all("all => all.map(x => Number(x.dataset.entered))")
    assert sum(entered) == 8
    fates = page.page.locator("[data-testid=rungs] .rung a").evaluate_all("all => all.map(x => x.title)")
    assert any(re.fullmatch(r"[\d.]+, went on; bound: at most [\d.]+", text) for text in fates) and any(re.fullmatch(r"[\d.]+, stopped; bound: at most [\d.]+", text) for text in fates), fates
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
