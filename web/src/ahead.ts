// The first script of a page. It asks for the data that the page at the address will need while the page's code is loading.

import { mainMetric } from "./goals";
import { read, type Params } from "./address";
import { answerTime, asked, axisOf, factOf, firstOf, lineOf, logQuery, parts, rangeOf, seriesPath, seriesQuery, withLines, type Query } from "./queries";
import type { GetExperimentResponse, Session } from "./api_types";

/** The newest fact that every answer to these requests includes, of those that have come; 0: none has. */
let oldest = 0;
const asking: Promise<unknown>[] = [];
async function fetched(to: string): Promise<Response> {
  const sent = fetch(to, { credentials: "same-origin", cache: "no-store", signal: AbortSignal.timeout(answerTime) });
  asking.push(sent);
  const got = await sent;
  const sequence = Number(got.headers.get("Troupe-Sequence")) || 0;
  if (sequence > 0) oldest = Math.min(oldest || sequence, sequence);
  if (!got.ok) throw new Error(String(got.status));
  return got;
}
/** Waits, at most 2 s, for the beginning of all answers, and gives the newest fact that each of them includes. */
const included = (): Promise<number> => Promise.race([Promise.allSettled(asking), new Promise((go) => setTimeout(go, 2000))]).then(() => oldest);
const answer = <T>(to: string): Promise<T> => fetched(to).then((got) => got.json() as Promise<T>);

const coming = new Map<string, Promise<unknown>>();
const there = new Map<string, unknown>(); // the answers of them that have arrived
const opened = location.href;

/** The less important parts of a page wait for this: until the main part is shown, or for at most 300 ms. */
let go: () => void;
const stood = new Promise<void>((done) => (go = done));
const stand = (): void => void requestAnimationFrame(() => setTimeout(go));
setTimeout(() => go(), 300);

/** The first rows of a long list are shown while the rest arrives, and the rest is parsed once they are shown. `screen` is their number. */
const screen = 40;
const long = 100_000; // letters; a list whose text has more of them is long
let listed = "";
let begins: (rows: unknown[] | null) => void;
const beginning = new Promise<unknown[] | null>((done) => (begins = done));
/** Gives the first caller the first rows of a list that was asked for ahead. null where the list is short or was not asked for. */
async function firstRows(to: string): Promise<unknown[] | null> {
  if (to !== listed || location.href !== opened) return null;
  listed = "";
  return beginning;
}
async function list<T>(to: string, key: string): Promise<T> {
  listed = to;
  const got = await fetched(to);
  const reader = got.body!.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let rows: unknown[] | null = null;
  for (;;) {
    const { done, value } = await reader.read();
    text += decoder.decode(value, { stream: !done });
    if (done) break;
    if (!rows && text.length > long && (rows = firstOf(text, key, screen))) begins(rows);
  }
  if (rows) await stood;
  else begins(null);
  return JSON.parse(text) as T;
}

function ask<T>(path: string, query: Query = {}, how: (to: string) => Promise<T> = answer): Promise<T> {
  const to = asked(path, query);
  const mine = how(to);
  mine.then(
    (value) => coming.get(to) === mine && there.set(to, value),
    () => undefined,
  );
  coming.set(to, mine);
  return mine;
}

const forget = (to: string): void => void (coming.delete(to), there.delete(to));
/** Forgets all answers where the page has changed. */
function stillHere(): boolean {
  if (location.href === opened) return true;
  coming.clear();
  there.clear();
  return false;
}

/** Gives the first caller an answer that was asked for ahead and has arrived. undefined where it has not, or the page has changed. */
function arrived<T>(to: string): T | undefined {
  if (!stillHere() || !there.has(to)) return undefined;
  const value = there.get(to) as T;
  forget(to);
  return value;
}

/** Gives the first caller an answer that was asked for ahead. undefined where it was not asked for, or the page has changed. */
async function early<T>(to: string): Promise<T | undefined> {
  await begun;
  stillHere();
  const mine = coming.get(to);
  forget(to);
  return mine?.catch(() => undefined) as Promise<T | undefined>; // after a refusal the page asks again, and handles refusals itself
}

function curves(id: number, p: Params, at: number): Promise<unknown> {
  const sel = p.list("sel").map(Number).filter(Number.isFinite);
  const of = sel.length > 0 ? { trials: sel } : { experiment: id };
  const series = (metric: string) => void ask(seriesPath, seriesQuery(metric, of, axisOf(p.text("x")), rangeOf(p.text("from"), p.text("to")), at));
  const metric = p.text("metric");
  const { group, name } = parts(metric);
  if (group && name) series(metric);
  const one = ask<GetExperimentResponse>(`/api/v1/experiments/${id}`);
  const usual = (x: GetExperimentResponse) => mainMetric(x.experiment) && series(mainMetric(x.experiment));
  if (!metric) one.then(usual, () => undefined);
  return one;
}

/** Sends exactly the first requests of the page at this address, the slowest first. The promise ends when the content of the frame has
 *  arrived. */
function begin(path: string, p: Params): Promise<unknown> | undefined {
  const [, kind, number, tab = ""] = path.split("/");
  const id = Number(number);
  const fine = id > 0 && Number.isSafeInteger(id);
  const at = factOf(p.text("at"));
  if (path === "/") {
    return Promise.all([ask("/api/v1/experiments", { limit: 200, orderBy: "ORDER_BY_DESC" }), ask("/troupe/v1/status")]);
  } else if (path === "/experiments") {
    return ask("/api/v1/experiments", { limit: -1 });
  } else if (kind === "experiments" && fine) {
    const of = `/troupe/v1/experiments/${id}`;
    const one = tab === "curves" ? curves(id, p, at) : ask(`/api/v1/experiments/${id}`);
    // Metrics beside the trials are asked for only where the address names some.
    if (tab === "trials" && !/(?:^|[\s,-])m\./.test(`${p.text("cols")} ${p.text("sort")} ${p.text("q")}`)) {
      // Only without an order and a filter are these the first rows of the page.
      const plain = ["q", "sort", "cols", "at"].every((name) => p.text(name) === "");
      const all = ask(`${of}/trials`, { at: at || undefined }, plain ? (to) => list<unknown>(to, "trials") : answer);
      return Promise.all([one, plain ? Promise.race([beginning, all]) : all]);
    }
    if (tab === "" || (tab === "curves" && p.text("group") !== "")) void ask(`${of}/trials`, { at: at || undefined });
    if (tab === "") void ask(`${of}/metrics`);
    if (tab === "" || tab === "search") void ask(`${of}/search`, { at: at || undefined });
    if (tab === "") {
      void ask(`${of}/outcome`, { at: at || undefined });
      void ask(`${of}/explain`);
    }
    return one;
  } else if (kind === "trials" && fine) {
    const lines = tab === "logs" ? ask(`/troupe/v1/trials/${id}/log`, logQuery(lineOf(p.text("line")))) : null;
    if (lines) return lines;
    const one = ask(`/api/v1/trials/${id}`);
    if (tab === "") void ask(`/troupe/v1/trials/${id}/explain`);
    return one;
  }
  return undefined;
}

/** The address of the code that draws lines, which only the HTML names. */
const plotter = (document.currentScript as HTMLScriptElement).dataset["plotter"];
function load(): void {
  const link = document.createElement("link");
  link.rel = "modulepreload";
  link.href = plotter ?? "";
  document.head.append(link);
}

/** The first access to a site's storage is slow. It is made here, while answers are awaited, so that settings.ts finds the storage open. */
function warm(): void {
  try {
    void localStorage.length;
  } catch {
    // the browser stores nothing
  }
}

/** Asks for the user. More is asked only for a signed-in user, because the console would show refusals. */
const who: Promise<Session> = answer<Session>("/troupe/v1/session");
let frame: Promise<unknown> | undefined;
function start(signedIn: boolean): void {
  const path = location.pathname.slice(3).replace(/\/+$/, "") || "/";
  if (signedIn && location.href === opened) {
    frame = begin(path, read(location.search));
    if (plotter && withLines(path)) load();
  }
  warm();
}

/** Whether the server has said with the document that the user is signed in. Browsers show this header to scripts only on loopback and
 *  over TLS; elsewhere the page waits for the answer about the user. */
const known = (performance.getEntriesByType("navigation") as PerformanceNavigationTiming[]).some((x) => x.serverTiming?.some((t) => t.name === "signed-in"));
if (known) start(true);
const begun: Promise<void> = known ? Promise.resolve() : who.then((x) => start(!!x.user), () => undefined);

/** Waits at most `ms` for the content of the frame and for the user, so that fast answers are part of the first frame that is drawn. */
const framed = (ms: number): Promise<unknown> => Promise.race([frame && Promise.allSettled([frame, who]), new Promise((go) => setTimeout(go, ms))]);

export interface Ahead {
  who: Promise<Session>;
  begun: Promise<void>;
  early: <T>(to: string) => Promise<T | undefined>;
  arrived: <T>(to: string) => T | undefined;
  framed: (ms: number) => Promise<unknown>;
  firstRows: (to: string) => Promise<unknown[] | null>;
  stood: Promise<void>;
  stand: () => void;
  included: () => Promise<number>;
}
(globalThis as unknown as { troupeAhead: Ahead }).troupeAhead = { who, begun, early, arrived, framed, firstRows, stood, stand, included };
