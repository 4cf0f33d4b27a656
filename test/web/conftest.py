import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from web_site import PATIENCE_S, Page, Site, browser, free_port  # noqa: E402


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Adds the address and the content of each open tab to the report of a failed test."""
    report = yield
    if report.failed:
        report.sections += [("a tab", tab.standing()) for tab in Page.opened]
    if call.when == "teardown":
        Page.opened.clear()
    return report


@pytest.fixture(scope="session")
def chromium():
    playwright, one = browser()
    yield one
    one.close()
    playwright.stop()


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """A cluster with a search that has ended; `site.search` is its id."""
    with Site(tmp_path_factory.mktemp("site")) as cluster:
        cluster.up(slots=4)
        cluster.search = cluster.submit_search()
        assert "COMPLETED" in cluster.wait_ended(cluster.search)
        yield cluster


@pytest.fixture
def context(chromium):
    one = chromium.new_context(viewport={"width": 1280, "height": 900})
    one.set_default_timeout(1000 * PATIENCE_S)
    yield one
    one.close()


@pytest.fixture
def own_site(tmp_path):
    """A cluster of the test's own, which keeps its address when it is started again."""
    with Site(tmp_path) as cluster:
        cluster.listen = f"127.0.0.1:{free_port()}"
        cluster.up(slots=2)
        yield cluster


@pytest.fixture
def own_tab(context, own_site):
    """A tab that is signed in to that cluster as the admin and shows the experiments."""
    tab = Page(context, own_site)
    tab.page.goto(own_site.link("experiments"))
    tab.page.wait_for_selector("main[data-page=experiments]")
    return tab


@pytest.fixture
def page(context, site):
    """A tab that is signed in as the admin and shows the first page."""
    tab = Page(context, site)
    tab.page.goto(site.link())
    tab.page.wait_for_selector("main[data-page=home][data-state=ready], main[data-page=home][data-state=empty]")
    return tab
