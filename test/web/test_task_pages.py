"""The page of a hostile task in a real browser. It reaches nothing of the cluster, of the viewer's login, or of another task."""

import asyncio
import contextlib
import json
import re
import ssl
import threading
import urllib.error
import urllib.parse
import urllib.request

import pytest

from web_site import BROWSER, Site, free_port, stays, wait_for

SERVER = r'''
import base64, hashlib, http.server, json, os

class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *words): pass
    def do_GET(self):
        with open(os.environ["SEEN"], "a") as seen:
            seen.write(json.dumps({"method": self.command, "path": self.path, "headers": dict(self.headers.items())}) + "\n")
        if self.headers.get("Upgrade") == "websocket":
            key = hashlib.sha1((self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
            self.close_connection = True
            self.send_response(101)
            for name, text in (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", base64.b64encode(key).decode())):
                self.send_header(name, text)
            return self.end_headers()
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        script = self.path.endswith("sw.js")
        body = b"self.addEventListener('fetch', e => e.respondWith(new Response('taken')));" if script else b"<title>task</title><p id=here>here"
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript" if script else "text/html")
        self.send_header("Service-Worker-Allowed", "/")
        self.send_header("Clear-Site-Data", '"cookies"')
        for name in ("troupe-12345678", "auth", "plain"):
            self.send_header("Set-Cookie", name + "=set-by-the-task; Path=/; Domain=localhost")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_POST = do_GET

http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Page).serve_forever()
'''
# The hostile page makes each of these attempts. The result is what the page can read, and has to be a refusal.
ATTEMPT = r'''
async ([how, url, more]) => {
  const fetched = async (options) => {
    try {
      const got = await fetch(url, options);
      return got.type === "opaque" ? "opaque" : got.status + " " + (await got.text()).slice(0, 200);
    } catch (e) { return "refused"; }
  };
  switch (how) {
    case "fetch": return fetched({credentials: "include"});
    case "forge": return fetched({credentials: "include", mode: "no-cors", method: "POST", body: more || "{}"});
    case "image": return new Promise(r => { const i = new Image(); i.onload = () => r("loaded"); i.onerror = () => r("refused"); i.src = url; });
    case "script": return new Promise(r => { const s = document.createElement("script"); s.onload = () => r("loaded"); s.onerror = () => r("refused");
                                             s.src = url; document.head.append(s); });
    case "socket": return new Promise(r => { const s = new WebSocket(url); s.onopen = () => r("open"); s.onerror = () => r("refused"); });
    case "worker": return !navigator.serviceWorker ? "refused" : navigator.serviceWorker.register(url, {scope: more}).then(() => "registered", () => "refused");
    case "frame": return new Promise(r => {
      const f = document.createElement("iframe");
      f.src = url;
      f.onload = () => setTimeout(() => { let text; try { text = f.contentDocument.body.innerText; } catch (e) { text = "refused"; } r(text); }, 300);
      document.body.append(f);
    });
    case "window": {
      const w = open(url);
      for (let turn = 0; turn < 600 && w && !w.closed; ++turn) {  // what it opens with is empty, and of the page that opened it
        try {
          const text = w.document.body?.innerText;
          if (text) return text;
        } catch (e) { return "refused"; }
        await new Promise(r => setTimeout(r, 50));
      }
      return "refused";
    }
  }
}
'''


class Task:
    def __init__(self, site, name, user="admin"):
        self.seen_file = site.root / f"{name}.seen"
        job = site.root / name
        job.mkdir()
        (job / "server.py").write_text(SERVER)
        config = site.root / f"{name}.yaml"
        port = free_port()
        config.write_text(f"entrypoint: python3 server.py\nresources: {{slots: 0}}\nenvironment:\n"
                          f"  environment_variables: ['SEEN={self.seen_file}', 'PORT={port}']\n"
                          f"  proxy_ports: [{{proxy_port: {port}, default_service_id: true}}]\n")
        env, site.env["TROUPE_USER"] = dict(site.env), user
        self.id = site.cli("task", "create", str(config), "-c", str(job)).stdout.strip()
        site.env.clear()
        site.env.update(env)
        wait_for(lambda: self.seen_file.exists() or self.reached(site), 60, 0.2)

    def reached(self, site):
        try:
            return urllib.request.urlopen(site.request(f"/proxy/{self.id}/"), timeout=120).status == 200
        except urllib.error.HTTPError:
            return False

    def seen(self):
        return [json.loads(line) for line in self.seen_file.read_text().splitlines()]


@pytest.fixture
def viewer(context, site):
    tab = context.new_page()
    tab.goto(site.link())
    tab.wait_for_selector("main[data-page=home]")
    return tab


def opened(context, site, task):
    tab = context.new_page()
    tab.goto(f"{site.url()}/det/interactive/{task.id}/")
    tab.wait_for_selector("#here")
    return tab


def shown(tab):
    """Whether the viewer is still signed in."""
    return tab.evaluate("fetch('/api/v1/me').then(r => r.status)") == 200


REFUSALS = ('{"error":', "This page is open for those only", "at this address a browser opens the tasks of its own user alone")


def attack(tab, api, task, other, page_of_other):
    """Makes all attempts from the page on `tab`. Returns those that were not refused."""
    at = urllib.parse.urlsplit(tab.url)
    own = f"{at.scheme}://{at.netloc}"
    port = urllib.parse.urlsplit(api).port
    tries = [("fetch", f"{host}{path}", None) for host in (api, f"http://localhost:{port}", own)
             for path in ("/api/v1/me", "/troupe/v1/tasks", "/ui/", "/api/v1/master", "/det/interactive/" + other.id + "/")]
    tries += [("forge", api + "/api/v1/auth/logout", None), ("forge", api + f"/troupe/v1/tasks/{other.id}/kill", None),
              ("forge", own + f"/troupe/v1/tasks/{other.id}/kill", None), ("forge", page_of_other, None),
              ("forge", api + "/api/v1/auth/login", '{"username": "determined", "password": ""}')]
    tries += [("fetch", page_of_other, None), ("image", page_of_other, None), ("script", page_of_other, None), ("frame", page_of_other, None),
              ("fetch", own + f"/proxy/{other.id}/", None), ("frame", api + "/ui/", None), ("script", api + "/api/v1/me", None),
              ("frame", api + f"/det/interactive/{other.id}/", None), ("window", api + "/ui/", None), ("window", api + "/api/v1/me", None),
              ("socket", page_of_other.replace("http", "ws", 1), None), ("socket", api.replace("http", "ws", 1) + "/api/v1/me", None),
              ("worker", f"/proxy/{task.id}/sw.js", "/"), ("worker", f"/proxy/{task.id}/sw.js", "/proxy/")]
    reached = []
    for how, url, more in tries:
        got = tab.evaluate(ATTEMPT, [how, url, more])
        if not re.fullmatch(r"refused|opaque|", got) and not re.match(r"(401|403|404|421) ", got) and not got.startswith(REFUSALS):
            reached.append((how, url, more, got))
    return reached


def test_a_hostile_page_reaches_nothing(site, context, viewer):
    task, other = Task(site, "hostile"), Task(site, "victim")
    theirs = opened(context, site, other)
    page = opened(context, site, task)
    assert urllib.parse.urlsplit(page.url).hostname == f"{task.id}.localhost"
    assert page.evaluate("[location.search, document.referrer, String(window.opener), document.cookie.includes('troupe')]") == ["", "", "null", False]
    # The attempts work: they succeed at the page's own address.
    for how, url, more, got in [("fetch", page.url, None, "200 <title>task"), ("frame", page.url, None, "here"), ("window", page.url, None, "here"),
                                ("script", page.url + "sw.js", None, "loaded"), ("forge", page.url, None, "200")]:
        assert page.evaluate(ATTEMPT, [how, url, more]).startswith(got), how
    before = len(other.seen())
    assert attack(page, site.url(), task, other, theirs.url) == []
    assert len(other.seen()) == before, other.seen()[before:]
    # The viewer is still signed in, the other task runs, and no task has seen a credential.
    assert shown(viewer) and site.call(f"/troupe/v1/tasks/{other.id}")[1]["state"] == "ACTIVE"
    for request in task.seen() + other.seen():
        assert not re.search(r"troupe-|auth=|Bearer|[uvp]1\.", json.dumps(request["headers"])), request
        assert "troupe_code" not in request["path"]
    ours = [c for c in context.cookies() if c["name"].startswith(("troupe-", "auth"))]
    assert ours and all(c["httpOnly"] and c["sameSite"] == "Strict" and c["value"] != "set-by-the-task" for c in ours), ours
    # The page cannot control the page of the cluster that opened it.
    with context.expect_page() as opening:
        viewer.evaluate(f"open('/det/interactive/{task.id}/')")
    child = opening.value
    child.wait_for_selector("#here")
    assert child.evaluate("window.opener === null || window.opener.closed")
    child.evaluate("window.opener && (() => { try { window.opener.location = 'about:blank' } catch (e) {} })()")
    stays(lambda: viewer.url.startswith(site.url() + "/ui"), 0.3, lambda: viewer.wait_for_timeout(50))
    # A worker for the page's own scope is allowed, and serves no other address.
    assert page.evaluate(ATTEMPT, ["worker", f"/proxy/{task.id}/sw.js", f"/proxy/{task.id}/"]) == "registered"
    assert viewer.evaluate("fetch('/api/v1/me').then(r => r.text())") != "taken"


@pytest.mark.parametrize("path", ["/det/interactive/{}/jupyter-lab/name/pool/wait", "/proxy/{}/here?x=1"], ids=["of the stock client", "of the service"])
def test_who_is_not_logged_in_comes_to_the_page_after_the_login(site, context, path):
    task = Task(site, "later-" + path.split("/")[1])
    tab = context.new_page()
    tab.goto(site.url() + path.format(task.id))
    tab.wait_for_selector("main[data-page=login]")
    tab.get_by_label("Username").fill("admin")
    tab.get_by_role("button", name="Sign in").click()
    tab.wait_for_selector("#here")
    there = urllib.parse.urlsplit(tab.url)
    assert there.hostname == f"{task.id}.localhost" and "troupe_code" not in there.query
    assert (there.path, there.query) == ((f"/proxy/{task.id}/here", "x=1") if "here" in path else (f"/proxy/{task.id}/", ""))


def test_logging_out_ends_the_view(site, context, viewer):
    task = Task(site, "seen")
    page = opened(context, site, task)
    ask = "fetch(location.href).then(r => r.status)"
    assert page.evaluate(ask) == 200
    assert viewer.evaluate("fetch('/api/v1/auth/logout', {method: 'POST'}).then(r => r.status)") == 200
    assert page.evaluate(ask) == 401
    page.reload()
    assert "Open it again" in page.inner_text("body")


def test_the_page_of_a_task_dies_with_it(site, context, viewer):
    task = Task(site, "short")
    page = opened(context, site, task)
    site.cli("task", "kill", task.id)
    wait_for(lambda: page.evaluate("fetch(location.href).then(r => r.status)") == 404, 20)


@pytest.fixture
def shared(tmp_path):
    """A master that is called by a name of the network and shows pages of tasks at a separate port."""
    pages = free_port()
    with Site(tmp_path) as one:
        one.listen = f"127.0.0.1:{free_port()}"
        file = tmp_path / "cluster.yaml"
        file.write_text(f"troupe: 1\ncluster: {{web_hosts: [head.lab], proxy_listen: '127.0.0.1:{pages}'}}\n")
        one.up_words = ("-f", str(file))
        one.up(slots=2)
        one.pages = f"http://head.lab:{pages}"
        yield one


def test_a_port_of_pages_shows_a_browser_the_tasks_of_its_user_alone(shared, chromium):
    own, other = Task(shared, "own"), Task(shared, "others", user="determined")
    named = chromium.browser_type.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-dev-shm-usage",
                                                                               "--host-resolver-rules=MAP head.lab 127.0.0.1"])
    try:
        context = named.new_context()
        context.set_default_timeout(120_000)
        api = shared.url().replace("127.0.0.1", "head.lab")
        viewer = context.new_page()
        viewer.goto(shared.link().replace("127.0.0.1", "head.lab"))
        viewer.wait_for_selector("main[data-page=home]")
        page = context.new_page()
        page.goto(f"{api}/det/interactive/{own.id}/")
        page.wait_for_selector("#here")
        assert page.url == f"{shared.pages}/proxy/{own.id}/"
        # A user sees only pages of the user's own tasks there, an admin too, because all these pages have one origin.
        # Over plain HTTP a browser sends no Sec-Fetch-* headers. It is recognised all the same, and comes to the page from every address.
        direct = context.new_page()
        direct.goto(f"{api}/proxy/{own.id}/")
        direct.wait_for_selector("#here")
        assert direct.url == f"{shared.pages}/proxy/{own.id}/"
        refused = context.new_page()
        refused.goto(f"{api}/det/interactive/{other.id}/")
        assert "tasks of its own user alone" in refused.inner_text("body")
        before = len(other.seen())
        assert attack(page, api, own, other, f"{shared.pages}/proxy/{other.id}/") == []
        assert len(other.seen()) == before
        assert shown(viewer) and shared.call(f"/troupe/v1/tasks/{other.id}")[1]["state"] == "ACTIVE"
        for request in own.seen():
            assert not re.search(r"troupe-|auth=|Bearer|[uvp]1\.", json.dumps(request["headers"])), request
        # The port serves nothing of the cluster. A client that is not a browser is served as ever.
        port = urllib.parse.urlsplit(shared.pages).port
        for path, status in [("/health", 403), ("/ui/", 403), ("/api/v1/me", 403), (f"/proxy/{other.id}/", 200)]:
            request = shared.request(path)
            request.full_url = f"http://127.0.0.1:{port}{path}"
            try:
                got = urllib.request.urlopen(request, timeout=120).status
            except urllib.error.HTTPError as no:
                got = no.code
            assert got == status, path
        assert viewer.evaluate("fetch('/api/v1/auth/logout', {method: 'POST'}).then(r => r.status)") == 200
        assert page.evaluate("fetch(location.href).then(r => r.status)") == 401
    finally:
        named.close()


@contextlib.contextmanager
def speaking_tls(port, folder):
    """A proxy with TLS in front of a port of this host, with the certificate in `folder`. Yields the port of the proxy."""
    secured = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    secured.load_cert_chain(folder / "master.pem", folder / "master.key")

    async def carry(source, to):
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                to.write(data)
                await to.drain()
        to.close()

    async def serve(source, to):
        inner_source, inner_to = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(carry(source, inner_to), carry(inner_source, to))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        server = asyncio.run_coroutine_threadsafe(asyncio.start_server(serve, "127.0.0.1", 0, ssl=secured), loop).result(30)
        yield server.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def test_names_below_a_domain_have_pages_behind_a_proxy_that_speaks_tls(tmp_path, chromium):
    one = Site(tmp_path)
    (tmp_path / "cluster.yaml").write_text("troupe: 1\ncluster: {web_hosts: [head.lab], proxy_domain: tasks.lab}\n")
    one.up_words = ("-f", str(tmp_path / "cluster.yaml"))
    one.up(slots=2)
    one.cli("tls", "init", "--dir", str(tmp_path / "tls"), "--host", "head.lab")
    try:
        with speaking_tls(urllib.parse.urlsplit(one.url()).port, tmp_path / "tls") as port:
            named = chromium.browser_type.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-dev-shm-usage", "--ignore-certificate-errors",
                                                                               f"--host-resolver-rules=MAP *.lab 127.0.0.1:{port}"])
            try:
                own, other = Task(one, "own"), Task(one, "other")
                context = named.new_context(ignore_https_errors=True)
                context.set_default_timeout(120_000)
                link = urllib.parse.urlsplit(one.link())
                viewer = context.new_page()
                viewer.goto(f"https://head.lab{link.path}?{link.query}#{link.fragment}")
                viewer.wait_for_selector("main[data-page=home]")
                for task in (other, own):
                    page = context.new_page()
                    page.goto(f"https://head.lab/det/interactive/{task.id}/")
                    page.wait_for_selector("#here")
                    assert page.url == f"https://{task.id}.tasks.lab/proxy/{task.id}/"
                # When Chromium opens a WebSocket, it sends no header about the page but its origin.
                assert page.evaluate(ATTEMPT, ["socket", page.url.replace("http", "ws", 1), None]) == "open"
                seen = [request["headers"] for request in own.seen() if request["headers"]["Host"].endswith(".tasks.lab")]
                assert seen and {headers["X-Forwarded-Proto"] for headers in seen} == {"https"}, seen
                theirs = page.url.replace(own.id, other.id)
                before = len(other.seen())
                assert page.evaluate(ATTEMPT, ["socket", theirs.replace("http", "ws", 1), None]) == "refused"
                assert attack(page, "https://head.lab", own, other, theirs) == []
                assert len(other.seen()) == before
                assert shown(viewer)
            finally:
                named.close()
    finally:
        one.close()
