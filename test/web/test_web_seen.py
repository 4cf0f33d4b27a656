"""Texts and marks in pictures, logs and labels can be read and told apart, in a real browser against a real cluster."""

import re

import pytest

from web_site import Page, Site, free_port, wait_for

TRIAL = r"""
import os, troupe
p = troupe.params(lr=1.2345e-5, momentum=0.991, net="vit", opt="adam")
for i in range(1, 4):
    troupe.validate({"loss": 0.991 + (p.momentum - 0.99) / 1000 + i * 1e-6}, step=i)
"""

CONFIG = """
hyperparameters:
  lr: {type: double, minval: 1.2345e-5, maxval: 1.2349e-5}
  momentum: {type: double, minval: 0.9910, maxval: 0.9919}
  net: {type: categorical, vals: [resnet50-v1-large, resnet50-v2-large, resnet50-v3-large-pretrained-on-imagenet, vit]}
  opt: {type: categorical, vals: [adam, sgd-with-momentum, sgd-with-nesterov-momentum]}
searcher: {name: random, metric: loss, max_trials: 14, max_concurrent_trials: 4}
reproducibility: {experiment_seed: 5}
max_restarts: 0
"""

# Records the texts that are written into canvases, by the name of the chart; "" stands for a picture in a file.
WRITTEN = """
    window.written = {};
    const write = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
        const chart = this.canvas.closest("figure")?.dataset.testid ?? "";
        (window.written[chart] ??= []).push(text);
        return write.call(this, text, ...rest);
    };
"""


@pytest.fixture(scope="module")
def alike(site):
    """The id of a search whose choices and numbers have the same beginnings."""
    search = site.submit("alike", TRIAL, CONFIG)
    assert "COMPLETED" in site.wait_ended(search)
    return search


def written(page, chart):
    return set(page.page.evaluate("chart => window.written[chart] ?? []", chart))


def test_words_and_numbers_of_charts_tell_choices_apart(site, page, alike):
    page.page.add_init_script(WRITTEN)
    page.go(f"/experiments/{alike}/analysis?ax=hp.net&ay=hp.lr&ac=hp.opt").settle()
    page.page.wait_for_selector("[data-testid=scatter][data-state=ready]")
    seen = written(page, "scatter")
    assert {"resnet50-v1-large", "resnet50-v2-large", "resnet50-v3-large-pretrained-on-imagenet", "vit"} <= seen, seen
    assert {"opt:", "adam", "sgd-with-momentum"} <= seen, "which colour is which choice"
    ticks = [t for t in seen if re.fullmatch(r"1\.23\d*e-5", t)]
    assert len(ticks) >= 2 and all(re.fullmatch(r"1\.234\d+e-5", t) for t in ticks), ticks
    assert {"best loss:"} <= written(page, "heatmap"), "what its colours mean"
    assert {"resnet50-v1-large", "resnet50-v2-large"} <= written(page, "parallel")
    page.go(f"/experiments/{alike}/analysis?ax=hp.momentum&ay=hp.net&ac=best").settle()
    page.page.wait_for_selector("[data-testid=scatter][data-state=ready]")
    seen = written(page, "scatter")
    assert {"resnet50-v1-large", "resnet50-v2-large", "best loss:"} <= seen, seen
    assert len([t for t in seen if re.fullmatch(r"0\.991\d", t)]) >= 3, seen
    page.fine()


def test_a_narrow_window_tells_choices_apart_too(site, page, alike):
    page.page.set_viewport_size({"width": 400, "height": 800})
    page.page.add_init_script(WRITTEN)
    page.go(f"/experiments/{alike}/analysis?ax=hp.net&ay=hp.net").settle()
    page.page.wait_for_selector("[data-testid=scatter][data-state=ready]")
    for chart in ("scatter", "heatmap", "parallel"):
        nets = {t for t in written(page, chart) if re.search("[12]-l", t)}
        assert {n for t in nets for n in re.findall("([12])-l", t)} == {"1", "2"}, (chart, written(page, chart))
    page.fine()


def test_the_picture_of_the_importance_has_a_sentence_for_a_title(site, page, alike):
    page.page.add_init_script(WRITTEN)
    page.go(f"/experiments/{alike}/analysis")
    figure = page.page.get_by_test_id("importance")
    with page.page.expect_download() as got:
        figure.get_by_role("button", name="Download PNG").click()
    assert got.value.suggested_filename == f"importance-{alike}.png"
    titles = [t for t in written(page, "") if "mportance" in t]
    assert len(titles) == 1 and re.fullmatch(rf"Importance of hyperparameters for loss in experiment {alike}: .+ over 14 trials", titles[0]), titles


# ---- logs

PRINT = r"""
import troupe
E = "\x1b["
print(f"usual {E}7mreverse{E}27m {E}31;7mred reverse{E}0m {E}7;44mon blue reverse{E}0m {E}48;2;10;10;10mtrue black{E}0m {E}2;7mdim reverse{E}0m", flush=True)
print("".join(f"{E}48;5;{n}m {n} {E}0m" for n in range(232, 256)), flush=True)
for ground in (40, 41, 42, 43, 44, 45, 46, 47, 100, 107):
    print("".join(f"{E}{ground};{ink}m{ground};{ink}{E}0m {E}7;{ground};{ink}mr{ground};{ink}{E}0m {E}2;{ground}md{ground}{E}0m " for ink in range(30, 38)), flush=True)
print("WARNING: disk is nearly full", "ERROR: boom", "[rank=3] INFO: from three", "last", sep="\n", flush=True)
troupe.validate({"loss": 1.0}, step=1)
"""

# Finds texts of the log with too little contrast to their background.
DIM = """() => {
    const c = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
    const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((n, v, i) => n + v * [0.2126, 0.7152, 0.0722][i], 0);
    const shown = colours => { for (const one of colours) { c.fillStyle = one; c.fillRect(0, 0, 1, 1); } return [...c.getImageData(0, 0, 1, 1).data]; };
    const bad = [];
    for (const x of document.querySelectorAll(".logline .what bdi")) {
        const grounds = [];
        for (let at = x; at; at = at.parentElement) grounds.unshift(getComputedStyle(at).backgroundColor);
        const [ground, ink] = [light(shown(grounds)), light(shown([...grounds, getComputedStyle(x).color]))];
        const contrast = (Math.max(ground, ink) + 0.05) / (Math.min(ground, ink) + 0.05);
        if (contrast < 4.5) bad.push(`${x.textContent} (${x.className}): ${contrast.toFixed(2)}`);
    }
    return bad;
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_grounds_of_a_log_are_seen_and_its_letters_can_be_read(site, page, theme):
    if not hasattr(site, "grounds"):
        site.grounds = site.submit("grounds", PRINT, "searcher: {name: single, metric: loss}\nmax_restarts: 0")
        assert "COMPLETED" in site.wait_ended(site.grounds)
    page.page.evaluate(f"localStorage.setItem('troupe.theme', '{theme}')")
    trial = site.json("trial", "list", str(site.grounds))[0]["id"]
    page.go(f"/trials/{trial}/logs")
    page.page.wait_for_selector(".logline:has-text('107;37')")
    printed = site.cli("trial", "logs", str(trial)).stdout.splitlines()
    shown = page.page.locator(".logline .what").all_inner_texts()
    for line in ("WARNING: disk is nearly full", "ERROR: boom", "[rank=3] INFO: from three", "last"):
        assert line in printed and line in shown, (line, printed, shown)
    assert "WARNING: disk is nearly full" in page.page.locator(".logline.odd .what").all_inner_texts()
    assert page.page.locator(".logline .what bdi").count() > 200
    assert page.page.evaluate(DIM) == []
    ground = lambda text: page.page.locator(f".logline .what bdi:text-is('{text}')").first.evaluate("x => getComputedStyle(x).backgroundColor")
    assert ground("usual ") == "rgba(0, 0, 0, 0)"
    assert ground("true black") == "rgb(0, 0, 0)"
    assert ground("reverse") == ("rgb(29, 34, 38)" if theme == "light" else "rgb(244, 246, 248)")
    assert ground(" 232 ") != ground(" 255 ")
    page.fine()


# ---- slots and actors


def test_a_slot_of_a_run_that_one_may_not_see_is_of_another(tmp_path, chromium):
    site = Site(tmp_path)
    context = chromium.new_context()
    try:
        site.up_with_roles(("Viewer", "team"))
        config = "name: asleep\nentrypoint: sleep 1000\nsearcher: {name: single, metric: loss}\n"
        site.call("/api/v1/experiments", {"config": config, "projectId": 1, "activate": True})
        tab = Page(context, site)
        tab.page.goto(site.link("cluster", user="eve"))
        slot = tab.page.locator("[data-testid=slots] .slot[data-state=busy]")
        slot.wait_for()
        tab.settle()
        assert slot.inner_text() == "busy"
        assert ": busy, of another" in slot.get_attribute("title") and "hidden-" not in tab.page.locator("main").evaluate("x => x.outerHTML")
        site.call("/troupe/v1/shell/drain", {"node": site.json("agent", "list")[0]["id"], "on": True})
        tab.page.locator("[data-testid=slots] .slot[data-state=draining]").wait_for()
        assert tab.page.locator("[data-testid=slots] .slot").inner_text() == "drain"
        tab.fine()
    finally:
        context.close()
        site.close()


def test_actors_stand_below_one_another(site, page):
    """The actors of a node are in one column, because several columns would hide who owns whom."""
    page.go("/actors")
    page.page.wait_for_selector("[data-testid=topology] [data-actor=cluster]")
    wait_for(lambda: page.page.locator("[data-testid=topology] li").count() > 8, 10)
    places = page.page.locator("[data-testid=topology] section").first.locator("li").evaluate_all("all => all.map(x => [x.getBoundingClientRect().left, x.getBoundingClientRect().top])")
    assert len({left for left, _ in places}) == 1 and [top for _, top in places] == sorted(top for _, top in places)
    # With four nodes, the last card is as wide as the others.
    page.page.locator("[data-testid=topology] section").first.evaluate("x => { for (let i = 0; i < 3; ++i) x.after(x.cloneNode(true)); }")
    wide = page.page.locator("[data-testid=topology] section").evaluate_all("all => all.map(x => Math.round(x.getBoundingClientRect().width))")
    assert len(wide) == 4 and len(set(wide)) == 1, wide


# ---- typed text stays


def fork(page, site):
    page.go(f"/experiments/{site.search}")
    page.page.get_by_role("button", name="Fork").click()
    dialog = page.page.get_by_role("dialog", name=f"Fork experiment {site.search}")
    dialog.get_by_text("The server accepts it.").wait_for()
    return dialog


def test_who_types_while_the_password_is_asked_for_goes_on_typing(site, page):
    dialog = fork(page, site)
    box = dialog.get_by_label("Configuration")
    before = box.input_value()
    box.press("Control+End")
    page.page.context.clear_cookies()
    again = page.page.get_by_role("dialog", name="Sign in again")
    typed = ""
    for i in range(200):
        page.page.keyboard.type("#" if i == 0 else chr(97 + i % 26), delay=20)
        typed += "#" if i == 0 else chr(97 + i % 26)
        if i % 20 == 19:
            page.page.wait_for_timeout(400)  # The page asks the server when the user has stopped typing.
        if again.is_visible():
            break
    again.wait_for()
    page.page.keyboard.type("later 1", delay=20)
    page.page.keyboard.press("Backspace")
    page.page.keyboard.press("Enter")
    page.page.keyboard.type("# end", delay=20)
    assert again.get_by_label("Password").input_value() == "" and again.get_by_label("Username").input_value() == "admin"
    assert box.input_value() == before + typed + "later \n# end"
    page.page.keyboard.press("Tab")
    assert page.page.evaluate("document.activeElement.name") == "password"
    page.page.keyboard.press("Enter")
    again.wait_for(state="hidden")
    dialog.get_by_text("The server accepts it.").wait_for()
    page.page.keyboard.type("!")
    wait_for(lambda: box.input_value() == before + typed + "later \n# end!", 3, what=lambda: page.page.evaluate("[document.activeElement.tagName, document.activeElement.selectionStart, document.activeElement.value.length, document.activeElement.value]"))  # The cursor is where it was.
    page.fine_but(401)


def test_changes_to_a_fork_are_lost_after_a_question_alone(site, page):
    made = page.page.request.get(f"{site.url()}/api/v1/experiments/{site.search}").json()["experiment"]["originalConfig"]
    status, body = site.call("/api/v1/experiments", {"config": made.replace("\n", "\r\n"), "parentId": site.search, "activate": False})
    assert status == 200, body
    other = body["experiment"]["id"]
    page.go(f"/experiments/{other}/config")
    page.page.wait_for_selector("[data-testid=config]:has-text('searcher')")
    assert "\u240d" not in page.page.inner_text("[data-testid=config]")
    page.go(f"/experiments/{other}")
    page.page.get_by_role("button", name="Fork").click()
    dialog = page.page.get_by_role("dialog", name=f"Fork experiment {other}")
    box = dialog.get_by_label("Configuration")
    dialog.get_by_text("The server accepts it.").wait_for()
    assert "\u240d" not in dialog.locator("pre").inner_text()
    page.page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")  # Nothing was changed.
    page.page.get_by_role("button", name="Fork").click()
    dialog.get_by_text("The server accepts it.").wait_for()
    box.press("Control+End")
    page.page.keyboard.type("# more")
    question = page.page.get_by_role("alertdialog", name="Discard the changes?")
    for _ in range(3):
        page.page.keyboard.press("Escape")
        question.wait_for()
        page.page.keyboard.press("Escape")
        question.wait_for(state="hidden")
        assert box.input_value().endswith("# more")
    page.page.keyboard.press("Escape")
    question.get_by_role("button", name="Discard").click()
    dialog.wait_for(state="hidden")
    wait_for(lambda: page.page.evaluate("document.activeElement.textContent") == "Fork", 5)
    site.cli("experiment", "kill", str(other))
    page.fine()


def test_a_fork_is_checked_again_when_the_server_can_be_reached(site, page):
    dialog = fork(page, site)
    submit = dialog.get_by_role("button", name="Submit")
    page.page.context.route("**/api/v1/experiments", lambda route: route.abort())
    dialog.get_by_label("Configuration").press("Control+End")
    page.page.keyboard.type("# more")
    dialog.get_by_text("the server cannot be reached").wait_for()
    assert submit.is_disabled()
    page.page.context.unroute("**/api/v1/experiments")
    dialog.get_by_role("button", name="Try again").click()
    dialog.get_by_text("The server accepts it.").wait_for()
    assert submit.is_enabled() and dialog.get_by_role("button", name="Try again").count() == 0


def test_a_fork_is_checked_again_after_an_outage(tmp_path, chromium):
    site = Site(tmp_path)
    site.listen = f"127.0.0.1:{free_port()}"
    site.up(slots=2)
    context = chromium.new_context()
    try:
        site.search = site.submit_search(trials=1)
        site.wait_ended(site.search)
        tab = Page(context, site)
        tab.page.goto(site.link())
        tab.page.wait_for_selector("main[data-page=home][data-state=ready]")
        dialog = fork(tab, site)
        site.kill_node()
        dialog.get_by_label("Configuration").press("Control+End")
        tab.page.keyboard.type("# more")
        dialog.get_by_text("the server cannot be reached").wait_for()
        tab.page.wait_for_selector("[data-testid=live][data-state=lost]")
        site.up(slots=2)
        dialog.get_by_text("The server accepts it.").wait_for()
        assert dialog.get_by_role("button", name="Submit").is_enabled()
        assert dialog.get_by_label("Configuration").input_value().endswith("# more")
    finally:
        context.close()
        site.close()
