"""The requests of a page that is opened: each is made once, and the large answers are asked for first."""

import csv
import json

import pytest

from web_site import Page, wait_for

# Addresses of pages, each with the requests that the page must make.
OPENED = {
    "/": ["/api/v1/experiments?limit=200&orderBy=ORDER_BY_DESC", "/troupe/v1/status"],
    "/experiments": ["/api/v1/experiments?limit=-1"],
    "/experiments/{e}": ["/api/v1/experiments/{e}", "/troupe/v1/experiments/{e}/trials", "/troupe/v1/experiments/{e}/outcome"],
    "/experiments/{e}/trials": ["/api/v1/experiments/{e}", "/troupe/v1/experiments/{e}/trials"],
    "/experiments/{e}/trials?cols=id,m.training.loss": ["/api/v1/experiments/{e}", "/troupe/v1/experiments/{e}/trials?metrics=training.loss"],
    "/experiments/{e}/curves": ["/api/v1/experiments/{e}", "/troupe/v1/experiments/{e}/trials", "/troupe/v1/series?experiment={e}&group=validation&metric=loss&x=step&points=500"],
    "/experiments/{e}/curves?metric=training.loss&x=relative": ["/troupe/v1/series?experiment={e}&group=training&metric=loss&x=relative&points=500"],
    "/experiments/{e}/curves?sel={t}&from=2&to=9": ["/troupe/v1/series?trials={t}&group=validation&metric=loss&x=step&points=2000&from=2&to=9"],
    "/experiments/{e}/search": ["/api/v1/experiments/{e}", "/troupe/v1/experiments/{e}/search"],
    "/trials/{t}": ["/api/v1/trials/{t}", "/troupe/v1/trials/{t}/explain"],
    "/trials/{t}/logs": ["/troupe/v1/trials/{t}/log?limit=40", "/api/v1/trials/{t}"],
    "/trials/{t}/logs?line=2": ["/troupe/v1/trials/{t}/log?from=1&limit=40"],
}


@pytest.fixture
def opened(site, page):
    """A function that opens an address in a new tab. It returns the tab and the requests of the tab, in their order."""

    def go(path, height=900, wanted=()):
        tab = Page(page.page.context, site)
        tab.page.set_viewport_size({"width": 1280, "height": height})
        asked = []
        tab.page.on("request", lambda r: asked.append(r.url.removeprefix(site.url())))
        tab.go(path)
        wait_for(lambda: tab.page.evaluate("true") and set(wanted) <= set(asked), what=lambda: asked)
        tab.stays(lambda: tab.faults == [], 1.5)
        return tab, [a for a in asked if not a.startswith("/ui/")]

    return go


@pytest.mark.parametrize("path", OPENED)
def test_each_read_is_asked_for_once_and_before_the_page_is_there(site, opened, path):
    t = site.json("experiment", "describe", str(site.search))["bestTrialId"]
    fill = lambda text: text.format(e=site.search, t=t)
    tab, asked = opened(fill(path), wanted=[fill(one) for one in OPENED[path]])
    assert asked[0] == "/troupe/v1/session" and len(asked) == len(set(asked)), asked


def test_who_is_signed_in_asks_at_once(site, page):
    """The server says with the document whether the user is signed in, so that no request waits for the answer about the user."""
    tab, asked = page.page.context.new_page(), []
    tab.on("request", lambda r: asked.append(r.url.removeprefix(site.url())))
    tab.route("**/troupe/v1/session", lambda route: None)  # This request is never answered.
    tab.goto(site.url() + f"/ui/experiments/{site.search}/trials")
    tab.wait_for_load_state()
    wanted = {"/troupe/v1/session", f"/troupe/v1/experiments/{site.search}/trials"}
    wait_for(lambda: tab.evaluate("true") and wanted <= set(asked), 10, what=lambda: asked)


def test_a_document_that_is_kept_does_not_say_who_was_signed_in(site, page):
    """An answer 304 has no body. Its header says anew whether the user is signed in."""
    assert page.go("/experiments").page.context.cookies()
    says = "performance.getEntriesByType('navigation')[0].serverTiming.map(t => t.name)"
    assert page.page.evaluate(says) == ["signed-in"]
    page.page.context.clear_cookies()
    page.page.goto(site.url() + "/ui/experiments")
    page.page.wait_for_selector("main[data-page=login]")
    assert page.page.evaluate(says) == ["signed-out"]
    page.fine()


def test_the_first_rows_of_a_long_list_do_not_wait_for_the_others(site, page):
    """The first rows appear with the number of all rows, and a file that is saved at that time has all rows."""
    url = f"{site.url()}/troupe/v1/experiments/{site.search}/trials"
    rows = page.page.request.get(url).json()["trials"]
    many = {"trials": [{**rows[i % len(rows)], "id": i + 1} for i in range(2000)]}
    one = page.page.request.get(f"{site.url()}/api/v1/experiments/{site.search}").json()
    one["experiment"]["numTrials"] = 2000
    tab = Page(page.page.context, site)
    tab.page.route(f"**/troupe/v1/experiments/{site.search}/trials", lambda route: route.fulfill(body=json.dumps(many, separators=(",", ":")), content_type="application/json"))
    tab.page.route(f"**/api/v1/experiments/{site.search}", lambda route: route.fulfill(json=one))
    tab.page.add_init_script("""window.seen = [];
        new MutationObserver(() => { for (const grid of document.querySelectorAll('[role=grid][aria-label=Trials]')) {
            const one = [grid.dataset.all, grid.dataset.rows, grid.querySelector('[role=row][data-id]')?.dataset.id ?? ''].join();
            if (window.seen[window.seen.length - 1] === one) continue;
            if (one.endsWith(',1') && !window.seen.some(x => x.endsWith(',1'))) [...document.querySelectorAll('button')].find(b => b.textContent === 'Download CSV').click();
            window.seen.push(one);
        } }).observe(document, {subtree: true, childList: true, attributes: true});""")
    with tab.page.expect_download() as got:
        tab.go(f"/experiments/{site.search}/trials")
    assert [r["id"] for r in csv.DictReader(open(got.value.path(), newline=""))] == [str(i + 1) for i in range(2000)]
    assert [x for x in tab.page.evaluate("window.seen") if x != "0,0,"] == ["2000,2000,1"]
    tab.fine()


def test_pages_without_a_chart_do_without_what_draws_charts(site, opened):
    scripts = lambda tab: tab.page.evaluate("performance.getEntriesByType('resource').map(r => r.name).filter(n => n.includes('uPlot'))")
    assert scripts(opened("/experiments")[0]) == []
    assert len(scripts(opened(f"/experiments/{site.search}/curves")[0])) == 1


def test_the_large_chart_is_drawn_before_small_ones_are_asked_for(site, opened):
    tab, asked = opened(f"/experiments/{site.search}/curves?metric=training.loss", height=2400)  # All charts are in view.
    tab.page.locator("[data-testid=more-metrics] [data-testid=chart]").first.wait_for()
    series = [a for a in asked if "/series?" in a]
    assert "group=training&metric=loss" in series[0]
    took = tab.page.evaluate("performance.getEntriesByType('resource').filter(r => r.name.includes('/series?')).map(r => [r.startTime, r.responseEnd])")
    assert all(start >= took[0][1] for start, _ in took[1:]), took


def test_who_is_not_signed_in_asks_for_nothing_that_is_refused(site, context):
    tab = Page(context, site)
    tab.page.goto(site.url() + f"/ui/experiments/{site.search}/curves")
    tab.page.wait_for_selector("main[data-page=login]")
    tab.stays(lambda: tab.faults == [], 0.5)
