// One stream of changes for all open tabs of a browser, because browsers allow six connections to a host.

import { asked, elements } from "./topics";

interface Port {
  topics: Set<string>;
  heard: number;
}

const ports = new Map<MessagePort, Port>();
let stream: EventSource | null = null;
let older: EventSource | null = null; // the stream with the former topics, kept until the new one has begun: a stream gives points and lines only from its connection on
let begun = false; // whether the stream has sent `hello`
let wanted = "";
let last = 0; // number of the newest fact that was reported
let state: "live" | "lost" | "idle" = "idle";
let again: ReturnType<typeof setTimeout> | undefined;
let pause = 500;

const silence = 180_000; // ms after whose silence a tab counts as closed; hidden tabs send a message once a minute

function tell(message: unknown, to?: (p: Port) => boolean): void {
  for (const [port, p] of ports) if (!to || to(p)) port.postMessage(message);
}

function become(next: typeof state): void {
  if (state === next) return;
  state = next;
  tell({ kind: "state", state });
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
  const source = new EventSource(`/troupe/v1/live?topics=${encodeURIComponent(wanted)}${last > 0 ? `&after=${last}` : ""}`);
  stream = source;
  for (const name of ["hello", "experiment", "gone", "trial", "points", "line", "cluster", "lost"])
    source.addEventListener(name, (e) => {
      if (source !== stream && source !== older) return;
      const event = e as MessageEvent<string>;
      last = Math.max(last, Number(event.lastEventId) || 0);
      const data = JSON.parse(event.data) as Record<string, unknown>;
      if (name === "hello") {
        pause = 500;
        begun = true;
        const before = older;
        setTimeout(() => {
          before?.close();
          if (older === before) older = null;
        }, overlap);
        const after = state === "lost";
        become("live");
        tell({ kind: "event", name, data, after });
        return;
      }
      const topics = topicsOf(name, data);
      tell({ kind: "event", name, data }, (p) => topics.length === 0 || topics.some((t) => p.topics.has(t)));
    });
  source.onerror = () => {
    source.close();
    if (source === older) older = null;
    if (source !== stream) return;
    leave();
    become("lost");
    tell({ kind: "failed" });
    again = setTimeout(connect, pause);
    pause = Math.min(5000, pause * 1.6);
  };
}

function settle(): void {
  const now = performance.now();
  for (const [port, p] of ports) if (now - p.heard > silence) ports.delete(port);
  const next = elements(asked(Array.from(ports.values()).flatMap((p) => Array.from(p.topics))));
  if (next === wanted) return;
  wanted = next;
  connect();
}

function adopt(port: MessagePort): void {
  ports.set(port, { topics: new Set(), heard: performance.now() });
  port.onmessage = (e: MessageEvent<{ kind: string; topics?: string[]; after?: number }>) => {
    const p = ports.get(port) ?? { topics: new Set<string>(), heard: 0 };
    p.heard = performance.now();
    if (e.data.kind === "bye") {
      ports.delete(port);
    } else {
      if (e.data.kind === "topics") p.topics = new Set(e.data.topics);
      last ||= e.data.after ?? 0; // so that nothing is missed between the first read of the page and its stream
      ports.set(port, p);
    }
    settle();
  };
  port.postMessage({ kind: "state", state });
}

setInterval(settle, 30_000);
(self as unknown as { onconnect: (e: MessageEvent) => void }).onconnect = (e) => adopt(e.ports[0]!);
// Without shared workers, each tab runs this code in a worker of its own.
if (!("onconnect" in self) || typeof (self as unknown as { postMessage?: unknown }).postMessage === "function") {
  const own = new MessageChannel();
  own.port1.onmessage = (e) => (self as unknown as { postMessage(x: unknown): void }).postMessage(e.data);
  self.addEventListener("message", (e) => own.port1.postMessage((e as MessageEvent).data));
  adopt(own.port2);
}
