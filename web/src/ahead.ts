// A script of its own, the first of a page: what the page at an address will ask for is asked for while its code is on the way.

import { mainMetric } from "./goals";
import { read, type Params } from "./address";
import { answerTime, asked, lineOf, logQuery, parts, rangeOf, seriesPath, seriesQuery, type Query } from "./queries";
import type { GetExperimentResponse, Session } from "./api_types";

async function answer<T>(to: string): Promise<T> {
  const got = await fetch(to, { credentials: "same-origin", cache: "no-store", signal: AbortSignal.timeout(answerTime) });
  if (!got.ok) throw new Error(String(got.status));
  return got.json() as Promise<T>;
}

const coming = new Map<string, Promise<unknown>>();
const opened = location.href;

function ask<T>(path: string, query: Query = {}): Promise<T> {
  const to = asked(path, query);
  const mine = answer<T>(to);
  mine.catch(() => undefined);
  coming.set(to, mine);
  return mine;
}

/** The answer that was asked for ahead, to the first who wants it; undefined where none was, or the page is elsewhere by now. */
async function early<T>(to: string): Promise<T | undefined> {
  await begun;
  if (coming.size > 0 && location.href !== opened) coming.clear();
  const there = coming.get(to);
  coming.delete(to);
  return there?.catch(() => undefined) as Promise<T | undefined>; // a refusal is asked for again, with all that is done about one
}

function curves(id: number, p: Params, at: number): Promise<unknown> {
  const sel = p.list("sel").map(Number).filter(Number.isFinite);
  const of = sel.length > 0 ? { trials: sel } : { experiment: id };
  const series = (metric: string) => void ask(seriesPath, seriesQuery(metric, of, p.text("x", "step"), rangeOf(p.text("from"), p.text("to")), at));
  const metric = p.text("metric");
  const { group, name } = parts(metric);
  if (group && name) series(metric);
  const one = ask<GetExperimentResponse>(`/api/v1/experiments/${id}`);
  const usual = (x: GetExperimentResponse) => mainMetric(x.experiment) && series(mainMetric(x.experiment));
  if (!metric) one.then(usual, () => undefined);
  return one;
}

/** Asks exactly what the page at this address reads first, what takes longest before the rest; tells when there is what its frame shows. */
function begin(path: string, p: Params): Promise<unknown> | undefined {
  const [, kind, number, tab = ""] = path.split("/");
  const id = Number(number);
  const fine = id > 0 && Number.isSafeInteger(id);
  const at = Math.max(0, Math.floor(Number(p.text("at")) || 0));
  if (path === "/") {
    return Promise.all([ask("/api/v1/experiments", { limit: 200, orderBy: "ORDER_BY_DESC" }), ask("/troupe/v1/status")]);
  } else if (path === "/experiments") {
    return ask("/api/v1/experiments", { limit: -1 });
  } else if (kind === "experiments" && fine) {
    const of = `/troupe/v1/experiments/${id}`;
    const one = tab === "curves" ? curves(id, p, at) : ask(`/api/v1/experiments/${id}`);
    if (["", "trials", "curves"].includes(tab)) {
      // Metrics beside the trials are asked for where the address names some.
      if (tab !== "trials" || !/(?:^|[\s,-])m\./.test(`${p.text("cols")} ${p.text("sort")} ${p.text("q")}`)) void ask(`${of}/trials`, { at: at || undefined });
      if (tab !== "trials") void ask(`${of}/metrics`);
    }
    if (tab === "" || tab === "search") void ask(`${of}/search`, { at: at || undefined });
    if (tab === "") {
      void ask(`${of}/outcome`, { at: at || undefined });
      void ask(`${of}/explain`);
    }
    return one;
  } else if (kind === "trials" && fine) {
    const lines = tab === "logs" ? ask(`/troupe/v1/trials/${id}/log`, logQuery(lineOf(p.text("line")))) : null;
    const one = ask(`/api/v1/trials/${id}`);
    if (tab === "") void ask(`/troupe/v1/trials/${id}/explain`);
    return lines ?? one;
  }
  return undefined;
}

/** The first look into the storage of a site takes its time, which is free while answers are waited for: settings.ts reads it. */
function warm(): void {
  try {
    void localStorage.length;
  } catch {
    // a browser that keeps nothing
  }
}

/** Who one is. Only who is signed in asks for more: a refusal would stand on the console. */
const who: Promise<Session> = answer<Session>("/troupe/v1/session");
let frame: Promise<unknown> | undefined;
function start(signedIn: boolean): void {
  if (signedIn && location.href === opened) frame = begin(location.pathname.slice(3).replace(/\/+$/, "") || "/", read(location.search));
  warm();
}

/** Whether the server has said with the document that one was signed in. Browsers tell scripts so on loopback and over TLS alone: elsewhere
 *  the answer about who one is comes first. */
const known = (performance.getEntriesByType("navigation") as PerformanceNavigationTiming[]).some((x) => x.serverTiming?.some((t) => t.name === "signed-in"));
if (known) start(true);
const begun: Promise<void> = known ? Promise.resolve() : who.then((x) => start(!!x.user), () => undefined);

/** For at most so many ms: quick answers come before a first frame without them would have been drawn. */
const framed = (ms: number): Promise<unknown> => Promise.race([frame?.catch(() => undefined), new Promise((go) => setTimeout(go, ms))]);

export interface Ahead {
  who: Promise<Session>;
  begun: Promise<void>;
  early: <T>(to: string) => Promise<T | undefined>;
  framed: (ms: number) => Promise<unknown>;
}
(globalThis as unknown as { troupeAhead: Ahead }).troupeAhead = { who, begun, early, framed };
