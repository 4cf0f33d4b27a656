// Follows the changes of the cluster by one stream.

import { effect, signal } from "@preact/signals";
import sharedUrl from "./live-worker.ts?sharedworker&url";
import { included, stood } from "./asked";
import { askAgain, firstSequence, isOther, request, session, sessionIn, signedIn, signs, type Session } from "./api";
import { experimentOf } from "./topics";
import type { Experiment, LiveCluster, LiveGone, LiveHello, LiveLost, LivePoints, LogLine, TrialProgress } from "./api_types";

export type LiveState = "live" | "paused" | "lost";
export const paused = signal(false);
export const connection = signal<"live" | "lost" | "idle">("idle");
export const lastData = signal<Date | null>(null);
/** Counts the returns of the connection, and the changes of the user's rights. After each, everything except rows of lists is read
 *  again. */
export const returns = signal(0);
/** Counts the changes of the user's rights: what was shown of things that are hidden now must not stay. */
export const rights = signal(0);
/** Whether the server has another version than the page, so that a reload is offered. */
export const newVersion = signal(false);

/** The events that docs/api.md describes. */
export type LiveEvent =
  | { name: "hello"; data: LiveHello }
  | { name: "experiment"; data: Experiment }
  | { name: "gone"; data: LiveGone }
  | { name: "trial"; data: TrialProgress }
  | { name: "points"; data: LivePoints }
  | { name: "line"; data: LogLine }
  | { name: "cluster"; data: LiveCluster }
  | { name: "lost"; data: LiveLost };
type Listener = { topics: string[]; on: (e: LiveEvent) => void };

const listeners = new Set<Listener>();
let held: { l: Listener; e: LiveEvent }[] = []; // events that arrived while updates were paused, the tab was hidden, or it asked for the password
let missed = false; // whether more arrived than `held` may have, the connection was lost, or the rights have changed, so that everything is read again
const mostHeld = 20_000;
const waits = (): boolean => paused.peek() || document.hidden || askAgain.peek();
let owed: (() => void)[] = []; // calls to make when nothing of that holds any more

/** Calls the function at once, or, while the tab shows no changes, when it does again. */
export function whenSeen(call: () => void): void {
  if (!waits()) call();
  else if (!owed.includes(call)) owed.push(call);
}

const policy = (window as unknown as { trustedTypes?: { createPolicy(n: string, r: object): { createScriptURL(u: string): string } } }).trustedTypes?.createPolicy("troupe", {
  createScriptURL: (url: string) => {
    if (new URL(url, location.href).origin !== location.origin) throw new TypeError("not ours");
    return url;
  },
});
const trusted = (url: string) => policy?.createScriptURL(url) ?? url;

// ---- topics without a place in the stream, which is that of all tabs

let left: ReadonlySet<string> = new Set();
const stale = new Set<string>(); // those of which something may have changed
const reported = new Set<number>(); // the experiments whose trials have reported since their curves were read

/** Lets those who listen to these topics read again. */
function readAgain(topics: Iterable<string>): void {
  for (const t of topics) stale.add(t);
  if (stale.size > 0) whenSeen(tellStale);
}

function tellStale(): void {
  const all = new Set(stale);
  stale.clear();
  for (const l of listeners) {
    const topic = l.topics.find((t) => all.has(t));
    if (topic !== undefined) l.on({ name: "lost", data: { topic, count: 0 } });
  }
}

/** What changes between two streams is in neither, so that topics which come or go are read once more. */
function leftAre(topics: readonly string[]): void {
  const now = new Set(topics);
  const changed = [...left, ...now].filter((t) => left.has(t) !== now.has(t));
  left = now;
  readAgain(changed);
}

/** The curves of an experiment that are not followed are read again when its trials report, at most once a second. */
function trialsReport(experiment: number): void {
  if (left.size === 0 || reported.has(experiment)) return;
  reported.add(experiment);
  setTimeout(() => {
    reported.delete(experiment);
    readAgain(Array.from(left).filter((t) => experimentOf(t) === `experiment/${experiment}`));
  }, 1000);
}

// Where not even the experiments are followed, time alone decides.
setInterval(() => {
  if (left.size > 0 && !waits()) readAgain(Array.from(left).filter((t) => experimentOf(t) === "" || left.has(experimentOf(t))));
}, 5000);

interface Wire {
  post(x: unknown): void;
}
let wire: Wire | null = null;

function open(): Wire {
  let spoken = false;
  const listen = (e: Parameters<typeof heard>[0]): void => {
    spoken = true;
    heard(e);
  };
  // The server may be gone before the script of the worker is loaded.
  const failed = (): void => {
    if (spoken) return;
    wire = null;
    lastData.value ??= new Date();
    connection.value = "lost";
    setTimeout(tellTopics, 2000);
  };
  if (typeof SharedWorker !== "undefined") {
    const worker = new SharedWorker(trusted(sharedUrl), { type: "module", name: "troupe-live" });
    worker.port.onmessage = listen;
    worker.onerror = failed;
    return { post: (x) => worker.port.postMessage(x) };
  }
  const worker = new Worker(trusted(sharedUrl), { type: "module" });
  worker.onmessage = listen;
  worker.onerror = failed;
  return { post: (x) => worker.postMessage(x) };
}

/** Reads the session again. A page whose user is not signed in any more asks for the password; where another user is, it begins anew. */
function lookWhoOneIs(same: (now: Session) => void, away: () => void = () => undefined): void {
  if (!session.peek()) return;
  void request("GET", "/troupe/v1/session")
    .then((x) => x.json())
    .then((answer) => {
      const now = sessionIn(answer as never);
      if (!session.peek()) return;
      if (!now) askAgain.value = true;
      else if (isOther(now)) location.reload();
      else same(now);
    }, away); // the server cannot be reached
}

/** The server began anew: whether it has another page than this one, although its version is the same. */
function lookForAnotherPage(): void {
  const own = document.querySelector<HTMLScriptElement>("script[type=module][src]")?.src;
  if (!own) return;
  void fetch("/ui/").then(
    async (x) => {
      if (x.ok && !(await x.text()).includes(new URL(own).pathname)) newVersion.value = true;
    },
    () => undefined, // the server is away again
  );
}

/** Called when a stream has failed, because the user may no longer be signed in. `looked` is the time of the last request in ms. */
let looked = 0;
function streamHasFailed(): void {
  if (askAgain.peek() || document.hidden || performance.now() - looked < 3000) return;
  looked = performance.now();
  lookWhoOneIs(() => undefined);
}

/** Called when somebody may have signed in on another tab: the user for whose password this tab asks, or another one. */
function signedInElsewhere(): void {
  lookWhoOneIs((now) => {
    if (askAgain.peek()) signedIn(now);
  });
}

/** Called when the stream is another user's, or the worker does not know this tab. */
function tellWhoOneIs(): void {
  lookWhoOneIs(() => setTimeout(tellTopics, 1000)); // not at once, so that a server that contradicts itself is not asked without end
}

/** Called when the server says that the rights of the user have changed: what lists show, and what the page offers. */
function rightsHaveChanged(): void {
  missed = true;
  ++rights.value;
  // Before all is read again, a page whose thing is hidden now has left it, so that its parts are not asked for.
  lookWhoOneIs((now) => {
    if (!askAgain.peek()) session.value = now;
    release();
  }, release);
}

function heard(e: MessageEvent<{ kind: string; state?: "live" | "lost" | "idle"; silent?: number; name?: string; data?: unknown; after?: boolean; topics?: string[] }>): void {
  const m = e.data;
  if (m.kind === "state") {
    if (m.state === "lost" && (connection.peek() === "live" || !lastData.peek())) lastData.value = new Date(Date.now() - (m.silent ?? 0));
    connection.value = m.state ?? "idle";
    if (m.state === "live" && askAgain.peek()) signedInElsewhere();
    return;
  }
  if (m.kind === "failed") return streamHasFailed();
  if (m.kind === "who") return tellWhoOneIs();
  if (m.kind === "left") return leftAre(m.topics ?? []);
  lastData.value = new Date();
  const event = { name: m.name, data: m.data } as LiveEvent;
  if (event.name === "hello") {
    if (event.data.version !== session.peek()?.version) newVersion.value = session.peek() != null;
    else if (event.data.masterId !== session.peek()?.masterId) lookForAnotherPage();
    if (event.data.user !== session.peek()?.user.id) return tellWhoOneIs();
    if (m.after) {
      missed = true;
      release();
    }
    return;
  }
  if (event.name === "lost" && event.data.topic === "experiments") return rightsHaveChanged();
  if (event.name === "trial") trialsReport(event.data.experimentId);
  for (const l of listeners) {
    if (!concerns(l.topics, event)) continue;
    if (!waits()) l.on(event);
    else if (missed) continue;
    else if (held.push({ l, e: event }) > mostHeld) {
      held = [];
      missed = true;
    }
  }
}

function concerns(topics: string[], e: LiveEvent): boolean {
  switch (e.name) {
    case "experiment":
      return topics.includes("experiments") || topics.includes(`experiment/${e.data.id}`);
    case "gone":
      return topics.includes("experiments") || topics.includes(`experiment/${e.data.experiment}`);
    case "trial":
      return topics.includes(`experiment/${e.data.experimentId}`);
    case "points":
      return topics.includes(`series/${e.data.experiment}/${e.data.group}/${e.data.metric}`);
    case "line":
      return topics.includes(`logs/${e.data.trial}`);
    case "cluster":
      return topics.includes("cluster");
    default:
      return true;
  }
}

function release(): void {
  if (waits()) return;
  const calls = owed;
  owed = [];
  for (const call of calls) call();
  const all = held;
  held = [];
  if (missed) {
    missed = false;
    ++returns.value;
    return;
  }
  for (const { l, e } of all) if (listeners.has(l)) l.on(e);
}

/** Without a signed-in user there is no stream, because the server would refuse it. */
function tellTopics(): void {
  if (!session.peek()) return;
  const all = new Set<string>();
  for (const l of listeners) l.topics.forEach((t) => all.add(t));
  for (const t of Array.from(all)) if (experimentOf(t) !== "") all.add(experimentOf(t)); // for curves that find no room in the stream
  if (all.size === 0) all.add("cluster"); // a page that follows nothing notices a lost connection too
  // The first answers, of which some came before the page's own code, may be older than what the stream of other tabs has reported.
  const after = wire ? 0 : Math.min(ahead || Infinity, firstSequence.peek() || Infinity);
  wire ??= open();
  wire.post({ kind: "topics", topics: Array.from(all), after: Number.isFinite(after) ? after : 0, user: session.peek()!.user.id, hidden: document.hidden });
}

let telling = false;
let ahead = 0;
function soon(): void {
  if (telling) return;
  telling = true;
  // The worker may need a process of its own, so it is started when the page has shown its first content.
  void Promise.all([included(), stood]).then(([read]) => {
    telling = false;
    ahead = read;
    tellTopics();
  });
}

/** Whether the event says that a topic, which is not followed, may have changed. */
export const isStale = (e: LiveEvent, topic: string): boolean => e.name === "lost" && e.data.topic === topic;

/** Calls `on` for every change under these topics, until the returned function is called. */
export function listen(topics: string[], on: (e: LiveEvent) => void): () => void {
  const l = { topics, on };
  listeners.add(l);
  soon();
  return () => {
    listeners.delete(l);
    soon();
  };
}

document.addEventListener("visibilitychange", () => {
  release();
  soon();
  if (!document.hidden && askAgain.peek()) signedInElsewhere();
});
effect(() => {
  if (session.value) soon();
});
effect(() => {
  if (!paused.value && !askAgain.value) queueMicrotask(release);
});
signs.onmessage = (e: MessageEvent<number>) => {
  if (askAgain.peek() ? e.data !== 0 : e.data !== session.peek()?.user.id) signedInElsewhere();
};
setInterval(() => wire?.post({ kind: "here" }), 30_000);
window.addEventListener("pagehide", () => wire?.post({ kind: "bye" }));
window.addEventListener("pageshow", (e) => {
  if (!e.persisted) return;
  missed = true;
  signedInElsewhere();
  tellTopics();
  release();
});
