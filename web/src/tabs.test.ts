import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { shareAmongTabs, type Wire } from "./tabs";

type Message = { kind: string; missed?: boolean; topics?: string[]; of?: string };

let running = ""; // the worker whose code runs
const asleep = new Map<string, (() => void)[]>(); // the workers that sleep, with what they do when they wake

/** Runs code of a worker, at once or when it wakes. */
function as(worker: string, code: () => void): void {
  const later = asleep.get(worker);
  if (later) return void later.push(code);
  const before = running;
  running = worker;
  code();
  running = before;
}

class Channel implements Wire {
  static all = new Set<Channel>();
  readonly owner = running;
  onmessage: ((e: MessageEvent) => void) | null = null;
  constructor(readonly name: string) {
    Channel.all.add(this);
  }
  postMessage(message: unknown): void {
    if (!Channel.all.has(this)) throw new Error("the channel is closed");
    const data = structuredClone(message);
    for (const c of Channel.all) if (c !== this && c.name === this.name) queueMicrotask(() => as(c.owner, () => Channel.all.has(c) && c.onmessage?.({ data } as MessageEvent)));
  }
  close(): void {
    Channel.all.delete(this);
  }
}

/** One exclusive lock. */
class Lock {
  queue: (() => void)[] = [];
  take: (() => void) | null = null; // takes it away from who holds it
  request = ((_name: string, how: LockOptions, call: () => Promise<void>) =>
    new Promise<void>((done, fail) => {
      const worker = running;
      const grant = () => {
        const mine = (this.take = () => as(worker, () => fail(new Error("AbortError"))));
        as(worker, () =>
          void call().then(() => {
            if (this.take !== mine) return;
            this.take = null;
            done();
            this.queue.shift()?.();
          }),
        );
      };
      if (how.steal) {
        this.take?.();
        grant();
      } else if (this.take) this.queue.push(grant);
      else grant();
    })) as LockManager["request"];
}

/** A tab with its worker. */
class Tab {
  told: Message[] = [];
  serves = new Map<Wire, Message[]>(); // what its worker was told by the tabs that it serves
  private readonly page: Wire;
  constructor(
    readonly name: string,
    locks: Pick<LockManager, "request">,
  ) {
    this.page = { postMessage: (m) => void this.told.push(m as Message), onmessage: null };
    as(name, () =>
      shareAmongTabs("house", locks, {
        tab: this.page,
        adopt: (line) => {
          const heard: Message[] = [];
          this.serves.set(line, heard);
          line.onmessage = (e) => void ((e.data as Message).kind === "bye" ? this.serves.delete(line) : heard.push(e.data as Message));
        },
        resign: () => this.serves.clear(),
      }),
    );
  }
  says(message: object): this {
    as(this.name, () => this.page.onmessage!({ data: message } as MessageEvent));
    return this;
  }
  asks(...topics: string[]): this {
    return this.says({ kind: "topics", topics });
  }
  /** What each tab that is served said last, by its topics. */
  heard(): string[] {
    return Array.from(this.serves.values(), (all) => `${all.at(-1)?.topics?.join() ?? all.at(-1)?.kind}${all.at(-1)?.missed ? " missed" : ""}`).sort();
  }
  tells(message: Message): void {
    as(this.name, () => {
      for (const line of this.serves.keys()) line.postMessage(message);
    });
  }
}

/** Lets all messages arrive. */
async function settled(): Promise<void> {
  for (let i = 0; i < 100; ++i) await Promise.resolve();
}

async function passes(seconds: number): Promise<void> {
  for (let i = 0; i < seconds; ++i) {
    await settled();
    vi.advanceTimersByTime(1000);
  }
  await settled();
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "setInterval", "performance"] });
  vi.stubGlobal("BroadcastChannel", Channel);
  const every = setInterval;
  vi.stubGlobal("setInterval", (call: () => void, ms: number) => {
    const worker = running;
    return every(() => asleep.has(worker) || as(worker, call), ms);
  });
  Channel.all.clear();
  asleep.clear();
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

describe("without shared workers", () => {
  test("one worker serves all tabs", async () => {
    const locks = new Lock();
    const [a, b, c] = [new Tab("a", locks).asks("cluster"), new Tab("b", locks).asks("experiments"), new Tab("c", locks)];
    await settled();
    expect([a.heard(), b.heard(), c.heard()]).toEqual([["cluster", "experiments"], [], []]);
    c.asks("logs/7");
    await settled();
    expect(a.heard()).toEqual(["cluster", "experiments", "logs/7"]);
    a.tells({ kind: "event" });
    await settled();
    expect([a, b, c].map((t) => t.told.map((m) => m.kind))).toEqual([["event"], ["event"], ["event"]]);
    b.asks("experiment/3");
    await settled();
    expect(a.heard()).toEqual(["cluster", "experiment/3", "logs/7"]);
  });

  test("another one goes on when its tab is closed, and what was missed is read", async () => {
    const locks = new Lock();
    const [a, b, c] = [new Tab("a", locks).asks("cluster"), new Tab("b", locks).asks("experiments"), new Tab("c", locks).asks("logs/7")];
    await settled();
    a.says({ kind: "bye" });
    await settled();
    expect([a.heard(), b.heard(), c.heard()]).toEqual([[], ["experiments missed", "logs/7 missed"], []]);
    c.says({ kind: "bye" });
    await settled();
    expect(b.heard()).toEqual(["experiments missed"]);
    a.asks("cluster"); // the browser shows the page again
    await settled();
    expect([a.heard(), b.heard()]).toEqual([[], ["cluster missed", "experiments missed"]]);
    b.says({ kind: "bye" });
    await settled();
    expect(a.heard()).toEqual(["cluster missed"]);
  });

  test("a visible tab takes over from a worker that sleeps, which is served when it wakes", async () => {
    const locks = new Lock();
    const [a, b, c] = [new Tab("a", locks).asks("cluster"), new Tab("b", locks).says({ kind: "topics", topics: ["experiments"], hidden: true }), new Tab("c", locks).asks("logs/7")];
    await passes(60);
    expect([a.heard(), b.heard(), c.heard()], "nobody takes it from a worker that lives").toEqual([["cluster", "experiments", "logs/7"], [], []]);
    asleep.set("a", []);
    await passes(30);
    expect([b.heard(), c.heard()]).toEqual([[], ["experiments missed", "logs/7 missed"]]);
    const missed = asleep.get("a")!;
    asleep.clear();
    for (const code of missed) as("a", code);
    await passes(30);
    expect([a.heard(), b.heard(), c.heard()]).toEqual([[], [], ["cluster missed", "experiments missed", "logs/7 missed"]]);
  });
});
