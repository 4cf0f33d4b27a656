// What the first page will ask for, asked for while the code of the page still starts.

import { read, type Params } from "./address";
import { logQuery, rangeOf, seriesPath, seriesQuery } from "./queries";
import type { GetExperimentResponse, Session } from "./api_types";

type Query = Record<string, string | number | boolean | undefined>;

/** What is undefined or empty is left out. */
export function address(path: string, query: Query = {}): string {
  const all = new URLSearchParams();
  for (const [key, x] of Object.entries(query)) if (x !== undefined && x !== "") all.set(key, String(x));
  const text = all.toString();
  return path + (text ? "?" + text : "");
}

async function answer<T>(to: string): Promise<T> {
  const got = await fetch(to, { credentials: "same-origin", cache: "no-store" });
  if (!got.ok) throw new Error(String(got.status));
  return got.json() as Promise<T>;
}

const asked = new Map<string, Promise<unknown>>();
const opened = location.href;

function ask<T>(path: string, query: Query = {}): Promise<T> {
  const to = address(path, query);
  const coming = answer<T>(to);
  coming.catch(() => undefined);
  asked.set(to, coming);
  return coming;
}

/** The answer that was asked for ahead, to the first who wants it; undefined where none was, or the page is elsewhere by now. */
export async function early<T>(to: string): Promise<T | undefined> {
  await begun;
  if (asked.size > 0 && location.href !== opened) asked.clear();
  const there = asked.get(to);
  asked.delete(to);
  return there?.catch(() => undefined) as Promise<T | undefined>; // a refusal is asked for again, with all that is done about one
}

function curves(id: number, p: Params, at: number): Promise<unknown> {
  const sel = p.list("sel").map(Number).filter(Number.isFinite);
  const of = sel.length > 0 ? { trials: sel } : { experiment: id };
  const series = (metric: string) => void ask(seriesPath, seriesQuery(metric, of, p.text("x", "step"), rangeOf(p.text("from"), p.text("to")), at));
  const metric = p.text("metric");
  if (metric.includes(".")) series(metric);
  const one = ask<GetExperimentResponse>(`/api/v1/experiments/${id}`);
  if (!metric) one.then((x) => series(`validation.${x.experiment.searcherMetric}`), () => undefined);
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
    const lines = tab === "logs" ? ask(`/troupe/v1/trials/${id}/log`, logQuery(p.text("line"))) : null;
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
export const who: Promise<Session> = answer<Session>("/troupe/v1/session");
let frame: Promise<unknown> | undefined;
const begun = who.then(
  (x) => {
    if (x.user && location.href === opened) frame = begin(location.pathname.slice(3).replace(/\/+$/, "") || "/", read(location.search));
    warm();
  },
  () => undefined,
);

/** For at most so many ms: quick answers come before a first frame without them would have been drawn. */
export const framed = (ms: number): Promise<unknown> => Promise.race([frame?.catch(() => undefined), new Promise((go) => setTimeout(go, ms))]);

// The rest of the page starts once these questions are on their way: what starts would hold up the answer that they wait for.
await Promise.race([begun, new Promise((go) => setTimeout(go, 100))]);
