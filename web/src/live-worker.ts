// One stream of changes for all open tabs of a browser, because browsers allow six connections to a host. It is the stream of the user whose
// cookie the browser had when it began, and only the tabs of that user hear it.

import { shareAmongTabs, type Wire } from "./tabs";
import { asked, elements, isTopic } from "./topics";

interface Port {
  topics: Set<string>;
  user: number; // id of the user who is signed in on the tab; 0 until the tab has said so
  heard: number;
  missed: boolean; // whether the tab was left out for a while, so that it reads everything again
  hidden: boolean;
  left: string; // the topics of the tab that the stream has no room for, as the tab knows them
}

const ports = new Map<Wire, Port>();
let alone = false; // whether other tabs have streams of their own, so that a hidden tab leaves its place to them
let stream: EventSource | null = null;
let older: EventSource | null = null; // the stream with the former topics, kept until the new one has begun: a stream gives points and lines only from its connection on
let begun = false; // whether the stream has sent `hello`
let user = 0; // whose stream it is; 0 until it has begun
let wanted = "";
let followed: ReadonlySet<string> = new Set(); // the topics in `wanted`
let last = 0; // number of the newest fact that was reported
let state: "live" | "lost" | "idle" = "idle";
let again: ReturnType<typeof setTimeout> | undefined;
let heard = 0; // time in ms of the newest event, or when the stream was asked for
let pause = 500;

const mute = 20_000; // ms without an event after which the server counts as lost: it sends one every 5 s, also where nothing changes
const silence = 180_000; // ms after whose silence a tab counts as closed; hidden tabs send a message once a minute

function tell(message: unknown, to?: (p: Port) => boolean): void {
  for (const [port, p] of ports) if (!to || to(p)) port.postMessage(message);
}

function become(next: typeof state): void {
  if (state === next) return;
  state = next;
  tell({ kind: "state", state, silent: performance.now() - heard });
}

function topicsOf(name: string, data: Record<string, unknown>): string[] {
  switch (name) {
    case "experiment":
      return ["experiments", `experiment/${String(data["id"])}`];
    case "gone":
      return ["experiments", `experiment/${String(data["experiment"])}`];
    case "trial":
      return [`experiment/${String(data["experimentId"])}`];
    case "points":
      return [`series/${String(data["experiment"])}/${String(data["group"])}/${String(data["metric"])}`];
    case "line":
      return [`logs/${String(data["trial"])}`];
    case "cluster":
      return ["cluster"];
    default:
      return [];
  }
}

const overlap = 700; // ms in which the older stream reports what was before the new one; the server looks four times a second

function leave(): void {
  older?.close();
  stream?.close();
  older = stream = null;
  begun = false;
  user = 0;
}

function connect(): void {
  clearTimeout(again);
  if (wanted === "") {
    leave();
    return become("idle");
  }
  if (stream && begun) {
    older?.close();
    older = stream;
  } else stream?.close();
  begun = false;
  const after = last;
  let of = 0; // the user of this stream
  const source = new EventSource(`/troupe/v1/live?topics=${encodeURIComponent(wanted)}${after > 0 ? `&after=${after}` : ""}`);
  stream = source;
  heard = performance.now();
  source.addEventListener("alive", () => {
    if (source === stream) heard = performance.now();
  });
  for (const name of ["hello", "experiment", "gone", "trial", "points", "line", "cluster", "lost"])
    source.addEventListener(name, (e) => {
      if (source !== stream && source !== older) return;
      heard = performance.now();
      const event = e as MessageEvent<string>;
      last = Math.max(last, Number(event.lastEventId) || 0);
      const data = JSON.parse(event.data) as Record<string, unknown>;
      if (name === "hello") {
        pause = 500;
        begun = true;
        user = of = Number(data["user"]) || 0;
        const restored = Number(data["sequence"]) < after; // an older backup of the data directory
        if (restored) last = Number(data["sequence"]);
        const before = older;
        setTimeout(() => {
          before?.close();
          if (older === before) older = null;
        }, overlap);
        const again = restored || state === "lost";
        become("live");
        for (const [port, p] of ports) {
          port.postMessage({ kind: "event", name, data, after: again || p.missed });
          p.missed = p.user === 0 ? p.missed : p.user !== of; // the tab hears from whom the stream is, and asks who is signed in
        }
        tellLeft();
        return;
      }
      const topics = topicsOf(name, data);
      tell({ kind: "event", name, data }, (p) => p.user === of && (topics.length === 0 || topics.some((t) => p.topics.has(t))));
    });
  source.onerror = () => {
    source.close();
    if (source === older) older = null;
    if (source === stream) lose();
  };
}

/** Gives the stream up, and tries again after a pause. */
function lose(): void {
  leave();
  become("lost");
  tell({ kind: "failed" });
  again = setTimeout(connect, pause);
  pause = Math.min(5000, pause * 1.6);
}

/** Tells each tab which of its topics the stream has no room for, so that it reads these itself. */
function tellLeft(): void {
  for (const [port, p] of ports) {
    const left = Array.from(p.topics).filter((t) => isTopic(t) && !followed.has(t));
    const now = elements(left);
    if (now === p.left) continue;
    p.left = now;
    port.postMessage({ kind: "left", topics: left });
  }
}

/** Connects where the tabs ask for other topics, or, with `anew`, in any case. */
function settle(anew = false): void {
  const now = performance.now();
  for (const [port, p] of ports) if (now - p.heard > silence) ports.delete(port);
  const of = (some: Port[]) => new Set(some.flatMap((p) => Array.from(p.topics)));
  const all = Array.from(ports.values()).filter((p) => !alone || !p.hidden);
  const topics = asked(of(all), of(all.filter((p) => !p.hidden)));
  const next = elements(topics);
  followed = new Set(topics);
  if (next === wanted && !anew) return tellLeft();
  wanted = next;
  connect();
}

function adopt(port: Wire): void {
  const fresh = (): Port => ({ topics: new Set(), user: 0, heard: performance.now(), missed: false, hidden: false, left: "" });
  ports.set(port, fresh());
  port.onmessage = (e: MessageEvent<{ kind: string; topics?: string[]; after?: number; user?: number; hidden?: boolean; missed?: boolean }>) => {
    if (e.data.kind === "bye") {
      ports.delete(port);
      return settle();
    }
    const topics = e.data.kind === "topics" ? new Set(e.data.topics) : null;
    const p = ports.get(port) ?? { ...fresh(), missed: topics === null };
    p.heard = performance.now();
    ports.set(port, p);
    if (!topics) {
      if (p.user === 0) port.postMessage({ kind: "who" }); // a tab that was taken for closed, because it slept
      return settle();
    }
    p.missed ||= e.data.missed === true || (alone && p.hidden);
    // What was reported to others after the first read of the page, the tab has missed.
    const read = p.user === 0 && !p.missed ? (e.data.after ?? 0) : 0;
    const behind = read > 0 && (last === 0 || read < last);
    if (behind) last = read;
    p.topics = topics;
    p.hidden = e.data.hidden ?? false;
    p.user = e.data.user ?? 0;
    // Another user: either the cookie is that user's by now, or the next stream tells the tab that it is not.
    const other = begun && p.user !== user;
    if (other) leave();
    const anew = other || (stream !== null && (behind || p.missed));
    settle(anew);
  };
  port.postMessage({ kind: "state", state });
}

setInterval(settle, 30_000);
setInterval(() => {
  if (stream && performance.now() - heard > mute) lose(); // a server that hangs, or a cut of which nobody was told
}, 1000);
(self as unknown as { onconnect: (e: MessageEvent) => void }).onconnect = (e) => adopt(e.ports[0]!);
// Without shared workers, each tab runs this code in a worker of its own. Locks are missing too where the page has come over plain HTTP.
if (typeof self.postMessage === "function") {
  const tab = self as unknown as Wire;
  const resign = () => {
    ports.clear();
    settle();
  };
  alone = !("locks" in navigator) || typeof BroadcastChannel === "undefined";
  if (alone) adopt(tab);
  else shareAmongTabs(`troupe-live ${location.pathname}`, navigator.locks, { tab, adopt, resign });
}
