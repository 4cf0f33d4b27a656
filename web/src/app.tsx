// The frame of all pages: navigation, the user, whether the page is live, and which page the address names.

import { signal, useSignalEffect } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { who } from "./asked";
import { askAgain, explain, pagesFor, request, session, sessionIn, signedIn, signedOut, type Session } from "./api";
import { plotter } from "./chart";
import { Shortcuts, Palette, useKeys } from "./keys";
import { connection, lastData, newVersion, paused } from "./live";
import { answerTime, withLines } from "./queries";
import { pageState, usePage, wholesFailed, type PageProps } from "./page";
import Experiment from "./pages/experiment";
import Experiments from "./pages/experiments";
import Home from "./pages/home";
import { SignIn } from "./pages/login";
import Trial from "./pages/trial";
import { isReturning } from "./kept_place";
import { follow, go, path, place } from "./router";
import { shownTheme, zone } from "./settings";
import { Confirm, Link, Note, said, useAtOnce } from "./ui";
import { clean, moment } from "./text";
import { fieldOf, goesBack, typesNow } from "./typed";

type Page = ComponentType<PageProps>;
type Load = () => Promise<{ default: Page }>;

// The first four pages share most of their code, and are loaded with the frame.
const pages: [RegExp, string, Load | null][] = [
  [/^\/$/, "home", null],
  [/^\/experiments$/, "experiments", null],
  [/^\/experiments\/(\d+)(?:\/(\w+))?$/, "experiment", null],
  [/^\/trials\/(\d+)(?:\/(\w+))?$/, "trial", null],
  [/^\/compare$/, "compare", () => import("./pages/compare")],
  [/^\/cluster$/, "cluster", () => import("./pages/cluster")],
  [/^\/queue$/, "queue", () => import("./pages/queue")],
  [/^\/actors$/, "actors", () => import("./pages/actors")],
  [/^\/logs$/, "logs", () => import("./pages/logs")],
  [/^\/events$/, "events", () => import("./pages/events")],
  [/^\/settings$/, "settings", () => import("./pages/settings")],
];

/** Addresses of this server outside of this page. The server sends users here who have to sign in first. */
const served = /^\/open\/(?:det|proxy)\//;

const nav: [string, string][] = [
  ["Home", "/"],
  ["Experiments", "/experiments"],
  ["Cluster", "/cluster"],
  ["Queue", "/queue"],
  ["Actors", "/actors"],
  ["Logs", "/logs"],
  ["Events", "/events"],
  ["Settings", "/settings"],
];

const loaded = new Map<string, Page>([
  ["home", Home],
  ["experiments", Experiments],
  ["experiment", Experiment],
  ["trial", Trial],
]);
const arrived = signal(0);
const missing = signal<unknown>(null);

/** Fails where the code of a page does not come in time, as a server that hangs would keep it loading for ever. */
function timely<T>(code: Promise<T>): Promise<T> {
  return Promise.race([
    code,
    new Promise<never>((_, fail) => {
      setTimeout(() => fail(new DOMException("", "TimeoutError")), answerTime);
    }),
  ]);
}

function found(at: string): { name: string; page: Page | null; props: PageProps } | null {
  for (const [shape, name, load] of pages) {
    const m = shape.exec(at);
    if (!m) continue;
    const props = { path: at, id: Number(m[1] ?? 0), tab: m[2] ?? "" };
    const page = loaded.get(name) ?? null;
    if (!page && load)
      timely(load()).then(
        (x) => {
          loaded.set(name, x.default);
          ++arrived.value;
        },
        (why: unknown) => (missing.value = why), // another version of the page has been installed meanwhile
      );
    return { name, page, props };
  }
  return null;
}

// The user, the code of the page and its data are asked for at the same time.
who.then(
  (answer) => {
    const mine = sessionIn(answer);
    if (mine) signedIn(mine);
    else signedOut();
  },
  () => signedOut(),
);
found(path.peek());
if (withLines(path.peek())) plotter().catch(() => undefined); // the chart reports a failure

export function App() {
  useKeys();
  useEffect(() => {
    document.addEventListener("click", follow);
    return () => document.removeEventListener("click", follow);
  }, []);
  // A user who is not signed in goes to the login page, and from there to the wanted page: one of ours, or one that a task serves.
  const elsewhere = session.value && served.test(path.value);
  useSignalEffect(() => {
    const to = place.value.path + place.value.search;
    if (session.value && served.test(path.value)) location.replace(to.slice("/open".length));
    if (session.value === null && path.value !== "/login") {
      go("/login" + (to === "/" ? "" : "?next=" + encodeURIComponent("/ui" + to)), true);
    }
  });
  arrived.value;
  const me = session.value;
  const at = path.value;
  const login = at === "/login";
  const page = login || me === null ? null : found(at);
  const main = useRef<HTMLElement>(null);
  const before = useRef(at);
  const inner = page?.name ?? (login ? "login" : "not-found");
  const ready = login ? me !== undefined : me !== null;
  useEffect(() => {
    // When another page is shown (not only another tab of the same page), its heading gets the focus, so that screen readers begin there.
    const group = (p: string) => p.split("/").slice(0, 3).join("/");
    if (group(before.current) === group(at) || (!login && (!ready || (page !== null && !page.page)))) return;
    const was = before.current;
    before.current = at;
    if (was !== "/login" && at === "/login") return; // A field of the login page has the focus.
    requestAnimationFrame(() => main.current?.querySelector<HTMLElement>("h1")?.focus({ preventScroll: isReturning() }));
  }, [at, page?.page, login, ready]);
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(e) => {
          e.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to content
      </a>
      <header>
        <Link to="/" class="brand" label="Troupe, home">
          Troupe
        </Link>
        {me && (
          <nav aria-label="Main">
            <ul>
              {pagesFor(nav).map(([name, to]) => (
                <li key={to}>
                  <Link to={to} current={to === "/" ? at === "/" : at.startsWith(to)}>
                    {name}
                  </Link>
                </li>
              ))}
            </ul>
          </nav>
        )}
        {me && <Standing who={me} />}
      </header>
      {newVersion.value && (
        <div class="notice" role="status">
          The server is another version now. <button onClick={() => location.reload()}>Reload</button>
        </div>
      )}
      {connection.value === "lost" && (
        <div class="notice" role="status">
          connection lost, trying again (last data {moment(lastData.value?.toISOString(), zone.value).slice(11, 16) || "—"})
        </div>
      )}
      <Main name={inner} refer={main}>
        {login ? (
          ready ? (
            <SignIn over={false} />
          ) : null
        ) : !ready || elsewhere ? null : !page ? (
          <NotFound />
        ) : page.page ? (
          <page.page {...page.props} key={page.name + page.props.id} />
        ) : missing.value ? (
          <Missing name={page.name} />
        ) : (
          <Coming name={page.name} />
        )}
      </Main>
      <div class="sr" role="status" aria-live="polite">
        {said.value}
      </div>
      <Note />
      <Confirm />
      <Shortcuts />
      <Palette />
      <Again />
    </>
  );
}

function Main(props: { name: string; refer: { current: HTMLElement | null }; children: preact.ComponentChildren }) {
  // Written at once, because rendering comes later and could miss a text that is replaced before.
  useAtOnce(() => {
    props.refer.current!.dataset.state = pageState.value === "ready" && wholesFailed.value > 0 ? "error" : pageState.value;
  });
  return (
    <main ref={props.refer} id="main" tabIndex={-1} data-page={props.name} data-shown={shownTheme.value}>
      {props.children}
    </main>
  );
}

const titleOf = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1);

/** Stands in place of a page whose code is on its way. */
function Coming(props: { name: string }) {
  usePage(titleOf(props.name), "loading");
  return <h1 tabIndex={-1}>{titleOf(props.name)}</h1>;
}

/** Stands in place of a page whose code did not come. */
function Missing(props: { name: string }) {
  usePage(titleOf(props.name), "error");
  return (
    <div class="failed" role="alert">
      <p>This part of the page could not be loaded: {clean(explain(missing.value))}</p>
      <button onClick={() => location.reload()}>Try again</button>
    </div>
  );
}

function NotFound() {
  usePage("Not found", "error");
  return (
    <>
      <h1 tabIndex={-1}>Not found</h1>
      <p>There is no page at this address.</p>
      <p>
        <Link to="/">Home</Link>
      </p>
    </>
  );
}

function Standing(props: { who: Session }) {
  const live = paused.value ? "paused" : connection.value === "lost" ? "lost" : "live";
  return (
    <div class="standing">
      <button type="button" class="live" data-testid="live" data-state={live} aria-pressed={paused.value} onClick={() => (paused.value = !paused.value)}>
        {live === "paused" ? "Paused" : live === "lost" ? "Lost" : "Live"}
      </button>
      <span class="who">{clean(props.who.user.displayName || props.who.user.username)}</span>
      <button
        type="button"
        onClick={() => {
          request("DELETE", "/troupe/v1/session").then(
            () => location.assign("/ui/login"),
            () => location.assign("/ui/login"),
          );
        }}
      >
        Sign out
      </button>
    </div>
  );
}

/** Asks for the password in a dialog over the page, which keeps all typed text. */
function Again() {
  const box = useRef<HTMLDialogElement>(null);
  const asked = askAgain.value;
  const interrupted = useMemo(() => {
    const field = asked ? fieldOf(document.activeElement) : null;
    return { field, typing: field !== null || typesNow() };
  }, [asked]);
  const last = useRef(interrupted);
  if (asked) last.current = interrupted;
  useEffect(() => {
    if (asked && !box.current?.open) box.current?.showModal();
    if (asked || !box.current?.open) return;
    const { field } = last.current;
    const back = field && goesBack(field);
    box.current.close();
    back?.();
  }, [asked]);
  return (
    <dialog ref={box} aria-label="Sign in again" onCancel={(e) => e.preventDefault()} onClose={() => askAgain.peek() && box.current?.showModal()}>
      {asked && <SignIn over interrupted={interrupted} />}
    </dialog>
  );
}
