"""The web page's figures, as ratios to one unit in one run:

    TROUPE_BINARY=build/release/troupe .web-tools/bin/python perf/web/web.py [--rounds 5] [--small] [--optuna VENV]

Unit U: uPlot alone in an empty page, 100 series x 10,000 points in memory, 1200 x 500 px, from `new uPlot` to the frame after its
drawing. It is measured again in each round, between the others; figures are medians over the rounds. `--optuna` names a virtual
environment with optuna-dashboard, which then shows as many trials (its list of trials; its table is no more in its menu). `--small` is a tenth of everything, to try the script.
"""

import argparse
import gzip
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "web"))
from web_site import Page, Site, browser, free_port, wait_for  # noqa: E402

UPLOT = ROOT / "web" / "node_modules" / "uplot" / "dist"
UNIT = """async () => {
    const x = Array.from({length: 10000}, (_, i) => i);
    const data = [x];
    for (let s = 0; s < 100; ++s) data.push(x.map(i => Math.sin(i / (50 + s)) + s + (i * 7919 % 97) / 97));
    const frame = () => new Promise(go => requestAnimationFrame(go));
    await frame();
    const t = performance.now();
    new uPlot({width: 1200, height: 500, series: [{}, ...data.slice(1).map((_, i) => ({stroke: `hsl(${i * 3.6},70%,40%)`}))]}, data, document.body);
    await frame(); await frame();
    return (performance.now() - t) / 1000;
}"""

CURVES = "import troupe\np = troupe.params(x=0.5)\nfor i in range(1, {reports} + 1):\n    troupe.log({{'loss': p.x / i + (i * 7919 % 97) / 970}}, step=i)\ntroupe.validate({{'loss': p.x}}, step={reports})\n"
SMALL = "import troupe\np = troupe.params(x=0.5)\nfor i in range(1, 17):\n    troupe.validate({'loss': p.x + 1 / i}, step=i)\n"
LINES = "import sys\nfor i in range(1, {lines} + 1):\n    sys.stdout.write(f'{{i}} epoch {{i % 1000}} loss {{1 / i:.6f}} ' + 'word ' * (i % 7) + ('needle' if i % 5000 == 0 else '') + '\\n')\n"
LIVE = "import time, troupe\nend = time.time() + {seconds}\ni = 0\nwhile time.time() < end:\n    for _ in range(20):\n        i += 1\n        troupe.log({{'loss': 1 / i}}, step=i)\n    time.sleep(0.01)\n"
STAMP = "import time, troupe\ntime.sleep(6)\nfor i in range(1, 61):\n    troupe.log({'at': time.time()}, step=i)\n    time.sleep(0.25)\n"

SEEN = """(() => { const look = () => { if (document.querySelector(%s)) { watch.disconnect(); requestAnimationFrame(() => { window.troupeSeen = performance.now(); }); } };
    const watch = new MutationObserver(look);
    watch.observe(document, {subtree: true, childList: true, attributes: true}); })()"""
LONGEST = """() => { window.longest = 0; new PerformanceObserver(l => { for (const e of l.getEntries()) window.longest = Math.max(window.longest, e.duration); }).observe({entryTypes: ['longtask']}); }"""


def search(trials, at_once):
    return (f"hyperparameters: {{x: {{type: double, minval: 0, maxval: 1}}}}\n"
            f"searcher: {{name: random, metric: loss, max_trials: {trials}, max_concurrent_trials: {at_once}}}\nmax_restarts: 0")


SINGLE = "searcher: {name: single, metric: loss, max_length: {batches: 100}}\nmax_restarts: 0"


class Bench:
    def __init__(self, options):
        self.options = options
        self.load = os.getloadavg()
        self.site = Site(pathlib.Path(tempfile.mkdtemp(prefix="troupe-web-")))
        self.site.up(slots=8)
        self.playwright, self.browser = browser()
        self.figures = {}
        self.units = []
        signed = self.browser.new_context()
        page = signed.new_page()
        page.goto(self.site.link())
        page.wait_for_selector("main[data-page=home][data-state=ready], main[data-page=home][data-state=empty]")
        self.state = signed.storage_state()
        signed.close()

    def note(self, name, x):
        self.figures.setdefault(name, []).append(x)

    def unit(self):
        page = self.browser.new_page(viewport={"width": 1280, "height": 700})
        page.set_content("<!doctype html><body></body>")
        page.add_style_tag(path=UPLOT / "uPlot.min.css")
        page.add_script_tag(path=UPLOT / "uPlot.iife.min.js")
        self.units.append(page.evaluate(UNIT))
        page.close()

    def cold(self, path, selector):
        """Opens a path in a fresh browser profile that is signed in. Returns the seconds from the request to the frame that has the
        selector, by the clock of the page, the KiB on the wire, the page and its context. Playwright looks only afterwards, because it
        runs a script of 330 kB in the page for that, which takes 20 to 40 ms."""
        time.sleep(1)  # The browser still frees what was closed before, such as a heavy page of a peer.
        context = self.browser.new_context(viewport={"width": 1400, "height": 900}, storage_state=self.state)
        context.add_init_script(SEEN % json.dumps(selector))
        page = context.new_page()
        wire = context.new_cdp_session(page)
        wire.send("Network.enable")
        taken = [0]
        wire.on("Network.loadingFinished", lambda e: taken.__setitem__(0, taken[0] + e.get("encodedDataLength", 0)))
        page.goto(self.site.url() + "/ui" + path, wait_until="commit")
        page.wait_for_timeout(1500)
        page.wait_for_selector(selector, timeout=120000)
        seconds = page.evaluate("window.troupeSeen") / 1000
        return seconds, taken[0] / 1024, page, context

    def other(self, url, selector):
        """Times the page of a peer by Playwright's clock, because a selector of CSS alone cannot find its rows."""
        context = self.browser.new_context(viewport={"width": 1400, "height": 900})
        page = context.new_page()
        t = time.time()
        page.goto(url, wait_until="commit")
        page.wait_for_selector(selector, timeout=120000)
        seconds = time.time() - t
        context.close()
        return seconds

    def ended(self, experiment, seconds=900):
        self.site.wait_ended(experiment, seconds)
        return experiment

    def seed(self):
        part = 0.1 if self.options.small else 1
        self.reports, self.many, self.lines, self.million = int(10000 * part), int(2000 * part), int(100000 * part), int(1000000 * part)
        t = time.time()
        self.curves = self.ended(self.site.submit("curves", CURVES.format(reports=self.reports), search(100, 8)))
        self.list100 = self.curves
        self.list2000 = self.ended(self.site.submit("many", SMALL, search(self.many, 8)))
        self.log = self.ended(self.site.submit("log", LINES.format(lines=self.lines), SINGLE))
        self.logs = self.ended(self.site.submit("logs", LINES.format(lines=self.million), SINGLE))
        print(f"seeded in {time.time() - t:.0f} s", flush=True)

    def trial(self, experiment):
        return self.site.json("trial", "list", str(experiment))[0]["id"]

    # ---- one round

    def curves_round(self):
        chart = '[data-testid=chart][data-metric="training.loss"][data-state=ready][data-series="100"]'
        seconds, _, page, context = self.cold(f"/experiments/{self.curves}/curves?metric=training.loss", chart)
        self.note("curves, cold", seconds)
        page.get_by_label("Metric", exact=True).select_option("validation.loss")
        page.wait_for_selector('[data-testid=chart][data-metric="validation.loss"][data-state=ready]')
        page.wait_for_timeout(300)
        # from the choice of the metric to the drawn chart, by the clock of the page
        self.note("curves, from the choice of the metric", page.evaluate("""chart => new Promise(go => {
            const select = document.querySelector('select[aria-label=Metric]');
            const t = performance.now();
            const first = document.querySelector('[data-testid=chart]'); // the large one; small ones stand below it
            const look = () => first.matches(chart) ? go((performance.now() - t) / 1000) : requestAnimationFrame(look);
            select.value = 'training.loss';
            select.dispatchEvent(new Event('change', {bubbles: true}));
            look();
        })""", chart))
        series = f"/troupe/v1/series?experiment={self.curves}&group=training&metric=loss&points=500"
        self.note("series", page.evaluate("""async path => {
            const t = performance.now();
            await (await fetch(path, {cache: 'no-store'})).arrayBuffer();
            return (performance.now() - t) / 1000;
        }""", series))
        body = page.request.get(self.site.url() + series).body()
        self.note("series, kB", len(gzip.compress(body, 6)) / 1024)
        context.close()

    def lists_round(self):
        for name, id, count in (("100", self.list100, 100), ("2000", self.list2000, self.many)):
            seconds, kb, page, context = self.cold(f"/experiments/{id}/trials", f'[role=grid][aria-label=Trials][data-all="{count}"] [role=row][data-id]')
            self.note(f"list of {name}", seconds)
            self.note(f"list of {name}, kB", kb)
            if name == "2000":
                page.evaluate(LONGEST)
                page.evaluate("""async () => { const box = document.querySelector('.gridscroll');
                    for (let y = 0; y < box.scrollHeight; y += 400) { box.scrollTop = y; await new Promise(requestAnimationFrame); } }""")
                page.wait_for_timeout(300)
                self.note("longest task of scrolling", page.evaluate("window.longest") / 1000)
            context.close()
        for name, port in getattr(self, "optuna", {}).items():
            self.note(f"optuna-dashboard, list of {name}", self.other(f"http://127.0.0.1:{port}/dashboard/studies/1/trials", "text=/^Trial [0-9]+$/"))
        seconds, kb, page, context = self.cold("/", "main[data-page=home][data-state=ready]")
        self.note("home, cold", seconds)
        context.close()

    def log_round(self):
        seconds, _, page, context = self.cold(f"/trials/{self.trial(self.log)}/logs", f'[role=log][data-lines="{self.lines}"] [data-line="{self.lines}"]')
        self.note("log opens", seconds)
        t = time.time()
        got = page.request.get(self.site.url() + f"/troupe/v1/logs/search?q=needle&trial={self.trial(self.logs)}&limit=1000", timeout=120000)
        text = got.text()
        self.note("search of a log", time.time() - t)
        end = json.loads(text.splitlines()[-1])["end"]
        assert end["hits"] == text.count('"result"') == self.million // 5000 and end["scanned"] == self.million, end
        t = time.time()
        # grep has to write to a pipe: with /dev/null it would end at the first line that it finds.
        subprocess.run(["grep", "-c", "needle", str(self.text)], check=True, stdout=subprocess.PIPE)
        self.note("grep -c", time.time() - t)
        context.close()

    # ---- once

    def live(self):
        experiment = self.site.submit("stamp", STAMP, SINGLE)
        trial = wait_for(lambda: (self.site.json("trial", "list", str(experiment)) or [{}])[0].get("id"), 60)
        _, _, page, context = self.cold(f"/trials/{trial}?metric=training.at", "[data-testid=chart]")
        page.evaluate("""() => { window.seen = new Map(); const chart = document.querySelector('[data-testid=chart]');
            new MutationObserver(() => { const n = Number(chart.dataset.points); if (n && !window.seen.has(n)) window.seen.set(n, Date.now() / 1000); }).observe(chart, {attributes: true}); }""")
        self.ended(experiment)
        page.wait_for_timeout(2500)
        reports = page.request.get(self.site.url() + f"/troupe/v1/trials/{trial}/metrics?group=training").json()
        seen = dict(page.evaluate("Array.from(window.seen)"))
        late = [next((seen[k] for k in sorted(seen) if k >= n), None) for n in range(1, len(reports) + 1)]
        waits = sorted(at - r["metrics"]["at"] for at, r in zip(late, reports) if at and at - r["metrics"]["at"] < 60)[: len(reports)]
        self.note("a report on the page, s (median)", statistics.median(waits))
        self.note("a report on the page, s (worst)", max(waits))
        context.close()
        experiment = self.site.submit("flood", LIVE.format(seconds=45), SINGLE)
        trial = wait_for(lambda: (self.site.json("trial", "list", str(experiment)) or [{}])[0].get("id"), 60)
        _, _, page, context = self.cold(f"/trials/{trial}?metric=training.loss", '[data-testid=chart][data-state=ready]')
        session = context.new_cdp_session(page)
        heap = lambda: (session.send("HeapProfiler.collectGarbage"), page.evaluate("performance.memory.usedJSHeapSize"))[1] / 2**20
        page.evaluate(LONGEST)
        page.wait_for_timeout(3000)
        before, points = heap(), page.evaluate("document.querySelector('[data-testid=chart]').dataset.lastX")
        page.evaluate("window.longest = 0")
        page.wait_for_timeout(30000)
        self.note("longest task under reports", page.evaluate("window.longest") / 1000)
        self.note("reports a second meanwhile", (float(page.evaluate("document.querySelector('[data-testid=chart]').dataset.lastX")) - float(points)) / 30)
        self.note("heap after 30 s, MB more", heap() - before)
        self.ended(experiment)
        context.close()
        _, _, page, context = self.cold("/experiments", "main[data-page=experiments][data-state=ready]")
        page.wait_for_timeout(2000)
        requests = []
        page.on("request", lambda r: requests.append(r.url))
        page.wait_for_timeout(10000)
        self.note("requests of an idle tab in 10 s", len(requests))
        context.close()

    def past(self):
        _, _, page, context = self.cold("/", "main[data-page=home][data-state=ready]")
        url = self.site.url() + f"/troupe/v1/experiments/{self.list2000}"
        got = page.request.get(url + "/history", timeout=120000)
        if got.status != 200:
            print("this server shows no past", flush=True)
            return context.close()
        facts = [h["sequence"] for h in got.json()["history"]]
        print(f"{len(facts)} facts of {self.many} trials", flush=True)
        for part in (0.25, 0.5, 0.75, 0.95):
            t = time.time()
            rows = page.request.get(url + f"/trials?at={facts[int(len(facts) * part)]}", timeout=120000).json()["trials"]
            self.note("time travel", time.time() - t)
            assert 0 < len(rows) <= self.many
        context.close()

    def sizes(self):
        _, _, page, context = self.cold("/experiments", "main[data-page=experiments][data-state=ready]")
        first = [r for r in page.evaluate("performance.getEntriesByType('resource').map(r => r.name)") if r.endswith((".js", ".css"))]
        at = lambda url: len(gzip.compress(page.request.get(url).body(), 9)) / 1024
        self.note("JavaScript and CSS of the first page, kB gzip", sum(at(u) for u in set(first)))
        html = page.request.get(self.site.url() + "/ui/").text()
        names, todo = set(), [u.split('"')[0] for u in html.split('/ui/')[1:]]
        while todo:
            name = todo.pop()
            if name in names or not name.endswith((".js", ".css")):
                continue
            names.add(name)
            text = page.request.get(self.site.url() + "/ui/" + name).text()
            for ending in (".js", ".css"):
                for piece in text.split(ending)[:-1]:
                    word = piece[max(piece.rfind(q) for q in "\"'`(/") + 1:] + ending
                    if "-" in word and len(word) < 60:
                        todo.append("assets/" + word)
        sizes = [at(self.site.url() + "/ui/" + n) for n in names if page.request.get(self.site.url() + "/ui/" + n).status == 200]
        self.note("JavaScript and CSS of all pages, kB gzip", sum(sizes))
        context.close()

    def peers(self):
        if not self.options.optuna:
            return
        self.optuna, self.servers = {}, []
        folder = self.site.root / "optuna"
        folder.mkdir()
        (folder / "seed.py").write_text("""
import random, sys, optuna
from optuna.distributions import FloatDistribution as F, IntDistribution as I, CategoricalDistribution as C
n, R = int(sys.argv[1]), random.Random(0)
optuna.logging.set_verbosity(optuna.logging.WARNING)
s = optuna.create_study(study_name="digits", storage=f"sqlite:///optuna-{n}.db", direction="maximize")
D = dict(lr=F(1e-4, 1e-1, log=True), hidden=I(16, 256), dropout=F(0, .6), batch_size=C([32, 64, 128]), weight_decay=F(1e-6, 1e-2, log=True))
for i in range(n):
    v = {k: 1 - R.random() / k for k in range(1, 17)}
    p = dict(lr=10 ** R.uniform(-4, -1), hidden=R.randint(16, 256), dropout=R.uniform(0, .6), batch_size=R.choice([32, 64, 128]), weight_decay=10 ** R.uniform(-6, -2))
    s.add_trial(optuna.trial.create_trial(params=p, distributions=D, value=v[16], intermediate_values=v))
""")
        # The command of Optuna's dashboard serves one connection at a time, and would wait without end on the second one that Chromium
        # opens.
        (folder / "serve.py").write_text("""
import socketserver, sys, optuna_dashboard
from wsgiref import simple_server
class Server(socketserver.ThreadingMixIn, simple_server.WSGIServer):
    daemon_threads = True
simple_server.make_server("127.0.0.1", int(sys.argv[2]), optuna_dashboard.wsgi(sys.argv[1]), Server).serve_forever()
""")
        bin = pathlib.Path(self.options.optuna) / "bin"
        for name, count in (("100", 100), ("2000", self.many)):
            subprocess.run([bin / "python", "seed.py", str(count)], cwd=folder, check=True)
            port = free_port()
            self.servers.append(subprocess.Popen([bin / "python", "serve.py", f"sqlite:///optuna-{count}.db", str(port)], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            self.optuna[name] = port
            wait_for(lambda: self.listens(port), 60)

    def listens(self, port):
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=1).close() is None
        except OSError:
            return False

    def run(self):
        self.seed()
        self.peers()
        self.text = self.site.root / "log.txt"
        subprocess.run([sys.executable, "-c", LINES.format(lines=self.million)], stdout=self.text.open("w"), check=True)
        print(f"load of the rounds: {os.getloadavg()[0]:.1f}", flush=True)
        for n in range(self.options.rounds):
            for step in (self.unit, self.curves_round, self.unit, self.lists_round, self.unit, self.log_round):
                step()
            print(f"round {n + 1}: " + ", ".join(f"{k} {v[-1]:.3f}" for k, v in self.figures.items()), flush=True)
        self.live()
        self.sizes()
        self.past()
        for one in getattr(self, "servers", []):
            one.terminate()
        self.browser.close()
        self.playwright.stop()
        self.site.close()

    def report(self):
        u = statistics.median(self.units)
        print(f"{self.options.rounds} rounds on {os.cpu_count()} processors, load {' '.join(f'{x:.1f}' for x in self.load)} at the start, "
              f"{' '.join(f'{x:.1f}' for x in os.getloadavg())} at the end")
        m = {k: statistics.median(v) for k, v in self.figures.items()}
        print(f"U = {u:.3f} s (of {len(self.units)}, {min(self.units):.3f} to {max(self.units):.3f})")
        asked = {"curves, from the choice of the metric": 1.1, "curves, cold": 2, "series": 0.35, "list of 100": 1.6, "list of 2000": 1.6, "home, cold": 1,
                 "longest task under reports": 0.35, "longest task of scrolling": 0.25, "log opens": 1}
        bounds = {"series, kB": 1024, "list of 100, kB": 600, "list of 2000, kB": 600, "a report on the page, s (median)": 0.5, "a report on the page, s (worst)": 2,
                  "heap after 30 s, MB more": 20, "requests of an idle tab in 10 s": 3, "JavaScript and CSS of the first page, kB gzip": 120,
                  "JavaScript and CSS of all pages, kB gzip": 300, "time travel": 1}
        for name, x in m.items():
            if name in asked:
                print(f"{name:52} {x:8.3f} s = {x / u:5.2f} U (at most {asked[name]} U){'' if x / u <= asked[name] else '   MISSED'}")
            else:
                wrong = name in bounds and x > bounds[name]
                print(f"{name:52} {x:8.3f}{f' (at most {bounds[name]})' if name in bounds else ''}{'   MISSED' if wrong else ''}")
        ratios = [("list of 2000 / list of 100", m["list of 2000"] / m["list of 100"], 1.3),
                  ("search of a log / grep -c", m["search of a log"] / m["grep -c"], 3)]
        for name, most in (("100", 0.3), ("2000", 0.15)):
            if f"optuna-dashboard, list of {name}" in m:
                ratios.append((f"list of {name} / optuna-dashboard's", m[f"list of {name}"] / m[f"optuna-dashboard, list of {name}"], most))
        for name, x, most in ratios:
            print(f"{name:52} {x:8.2f} (at most {most}){'' if x <= most else '   MISSED'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--optuna")
    bench = Bench(parser.parse_args())
    bench.run()
    bench.report()
