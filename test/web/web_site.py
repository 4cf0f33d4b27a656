"""A real cluster, and a browser that shows its page."""

import json
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cluster"))

from cluster_under_test import BINARY, PATIENCE_S, Cluster, free_port, go_on, stays, wait_for  # noqa: E402,F401
from playwright.sync_api import sync_playwright  # noqa: E402

BROWSER = os.environ.get("TROUPE_CHROMIUM", "/usr/bin/chromium")
AXE = pathlib.Path(__file__).resolve().parent.parent.parent / "web" / "node_modules" / "axe-core" / "axe.min.js"

# A trial that ends quickly, with reports and lines that are hard to show.
TRIAL = r'''
import math, os, sys, time, troupe
p = troupe.params(x=0.5, lr=0.1, opt="adam")
print("hello from x =", p.x, flush=True)
print("\x1b[31mred\x1b[0m and <b>not bold</b> \u202egnol", flush=True)
for epoch in range(1, 17):
    time.sleep(float(os.environ.get("EPOCH_S", "0.02")))
    troupe.log({"loss": 1.0 / epoch, "odd": float("nan") if epoch == 3 else float("inf") if epoch == 5 else epoch}, step=epoch)
    troupe.validate({"loss": (p.x - 0.3) ** 2 + 1.0 / epoch, "epoch": epoch, "confusion": [[epoch, 1], [2, 3 * epoch]],
                     "<img src=x onerror=alert(1)>": epoch}, step=epoch)
    if epoch % 8 == 0:
        with troupe.checkpoint(epoch) as path:
            (path / "page.html").write_text("<script>alert(1)</script>")
    if troupe.should_stop():
        break
print("done", flush=True)
'''

CONFIG = """
name: {name}
entrypoint: python3 job.py
hyperparameters:
  x: {{type: double, minval: 0, maxval: 1}}
  lr: {{type: log, base: 10, minval: -4, maxval: 0}}
  opt: {{type: categorical, vals: [adam, "<i>sgd</i>"]}}
searcher: {{name: adaptive_asha, metric: loss, time_metric: epoch, max_time: 16, max_trials: {trials}, max_concurrent_trials: 4, divisor: 4, mode: aggressive}}
reproducibility: {{experiment_seed: 7}}
max_restarts: 0
environment: {{environment_variables: ["EPOCH_S={epoch_s}"]}}
"""

# Of an experiment with one trial, for `Site.submit`.
SINGLE = "searcher: {name: single, metric: loss, max_length: {batches: 100}}"

# Every page; {e} is an experiment and {t} one of its trials.
PAGES = ["/", "/experiments", "/experiments/{e}", "/experiments/{e}/trials", "/experiments/{e}/curves", "/experiments/{e}/analysis",
         "/experiments/{e}/search", "/experiments/{e}/checkpoints", "/experiments/{e}/logs", "/experiments/{e}/code",
         "/experiments/{e}/config", "/experiments/{e}/config?show=differences", "/experiments/{e}/events", "/trials/{t}", "/trials/{t}/metrics", "/trials/{t}/logs",
         "/trials/{t}/checkpoints", "/trials/{t}/events", "/compare?experiments={e}", "/cluster", "/queue", "/actors", "/logs", "/events",
         "/settings"]

HOSTILE = "<script>alert(1)</script>\u202e\u0007 \" ' & <b>x"


class Site(Cluster):
    def __init__(self, root):
        super().__init__(root)
        if folder := os.environ.get("TROUPE_WEB_DIR"):  # a built page in place of the one in the binary
            self.up_words = ("--web-dir", folder)

    def up_with_roles(self, *roles):
        """Starts a cluster with one slot, a workspace `team`, and a user `eve` who has these roles: (role, workspace). Commands run as
        the admin."""
        (self.root / "cluster.yaml").write_text("troupe: 1\ncluster: {authz: rbac}\n")
        self.up_words += ("--file", str(self.root / "cluster.yaml"))
        self.env["TROUPE_USER"] = "admin"
        self.up(slots=1)
        self.cli("user", "create", "eve")
        self.cli("workspace", "create", "team")
        for role, place in roles:
            self.cli("role", "give", role, "--user", "eve", "--workspace", place)

    def submit_search(self, name="digits", trials=8, epoch_s=0.02, script=TRIAL):
        job = self.root / "job"
        job.mkdir(exist_ok=True)
        (job / "job.py").write_text(script)
        config = self.root / f"{abs(hash((name, trials, epoch_s)))}.yaml"
        config.write_text(CONFIG.format(name=json.dumps(name), trials=trials, epoch_s=epoch_s))
        return self.json("experiment", "create", str(config), str(job))["id"]

    def submit(self, name, script, config):
        """Submits an experiment with this script, and with this configuration, which has no name and no entrypoint."""
        job = self.root / f"job-{name}"
        job.mkdir()
        (job / "job.py").write_text(script)
        (self.root / f"{name}.yaml").write_text(f"name: {name}\nentrypoint: python3 job.py\n{config}\n")
        return self.json("experiment", "create", str(self.root / f"{name}.yaml"), str(job))["id"]

    def wait_ended(self, experiment, seconds=300):
        def ended():
            state = self.json("experiment", "describe", str(experiment))["state"]
            return state if re.search("^STATE_(?:COMPLETED|ERROR|CANCELED)$", state) else None
        return wait_for(ended, seconds)

    def link(self, path="", user="admin"):
        env = {**self.env, "TROUPE_USER": user}
        import subprocess
        done = subprocess.run([BINARY, "web", path], env=env, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


class Page:
    """A tab that notes what must not happen: errors on the console, reports of the policy, and requests to other hosts."""

    opened = []  # tabs of the running test

    def __init__(self, context, site):
        self.page = context.new_page()
        self.page.set_default_timeout(1000 * PATIENCE_S)
        self.site = site
        self.faults = []
        self.unanswered = []
        Page.opened.append(self)
        self.page.on("request", lambda r: self.unanswered.append(r.url))
        for end in ("requestfinished", "requestfailed"):
            self.page.on(end, lambda r: r.url in self.unanswered and self.unanswered.remove(r.url))
        self.page.on("console", lambda m: self.faults.append(f"{m.text} {m.location.get('url', '')}") if m.type == "error" else None)
        self.page.on("pageerror", lambda e: self.faults.append(str(e)))
        self.page.on("request", self.look)
        self.page.on("dialog", lambda d: (self.faults.append("a dialog: " + d.message), d.dismiss()))

    def look(self, request):
        if not request.url.startswith((self.site.url(), "data:", "blob:")):
            self.faults.append("a request elsewhere: " + request.url)

    def go(self, path, state="ready"):
        self.page.goto(self.site.url() + "/ui" + path)
        self.ready(state)
        return self

    def ready(self, state="ready"):
        self.page.wait_for_selector(f"main[data-state={state}]")
        return self

    def at(self, *parts, but=()):
        """Waits until the address has all of these parts and none of `but`. The page changes the address a moment after an action, and
        `page.url` is updated even later."""
        address = lambda: self.page.evaluate("location.href")
        wait_for(lambda: (now := address()) and all(part in now for part in parts) and not any(part in now for part in but), what=address)
        return self

    def settle(self):
        """Waits until no request is open but those that never end, and the page is drawn."""
        def still():
            self.page.evaluate("new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
            endless = ("/troupe/v1/live", "/assets/live-worker")  # Playwright never reports an end of these.
            return not [url for url in self.unanswered if not any(part in url for part in endless)]
        wait_for(still, every=0, what=lambda: self.unanswered)
        return self

    def stays(self, true, seconds, what=lambda: None):
        stays(true, seconds, lambda: self.page.wait_for_timeout(50), what)

    def standing(self):
        """Describes a tab for a failed test: its address, its content, and its open requests."""
        lines = [f"faults: {self.faults}", f"unanswered: {self.unanswered}"]
        try:
            lines[:0] = [self.page.url, self.page.locator("body").evaluate("b => b.outerHTML", timeout=2000)[:1500]]
        except Exception as why:
            lines.append(f"it tells no more: {str(why)[:200]}")
        return "\n".join(lines)

    def fine(self):
        assert self.faults == [], self.faults

    def fine_but(self, status):
        """Checks that there are no faults but refusals with this status, which Chromium writes to the console."""
        assert [f for f in self.faults if f"status of {status}" not in f] == [], self.faults


def best_trial(site):
    return site.json("experiment", "describe", str(site.search))["bestTrialId"]


def rows(page, name):
    return page.locator(f'[role=grid][aria-label="{name}"] [role=row][data-id]')


def cells(page, name, col):
    return page.locator(f'[role=grid][aria-label="{name}"] [role=row][data-id] [data-col="{col}"]').all_inner_texts()


def chart(page):
    page.page.wait_for_selector("[data-testid=chart][data-state=ready]")
    return page.page.locator("[data-testid=chart]").first


def axe(page):
    """The serious findings of axe-core on this page."""
    page.page.evaluate(AXE.read_text())  # not a script of the page, which its policy would refuse
    found = page.page.evaluate("axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']})")
    return [(v["id"], [n["html"][:160] + " | " + n.get("failureSummary", "")[:200] for n in v["nodes"]][:3]) for v in found["violations"] if v["impact"] in ("serious", "critical")]


def browser():
    playwright = sync_playwright().start()
    try:
        return playwright, playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-dev-shm-usage"])
    except BaseException:
        playwright.stop()
        raise
