import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

/** A stream to the server, whose events the test gives. */
class Stream {
  static all: Stream[] = [];
  static get newest(): Stream {
    return this.all[this.all.length - 1]!;
  }
  static get open(): number {
    return this.all.filter((s) => !s.closed).length;
  }
  closed = false;
  onerror: () => void = () => undefined;
  private readonly on = new Map<string, (e: unknown) => void>();
  constructor(readonly address: string) {
    Stream.all.push(this);
  }
  addEventListener(name: string, call: (e: unknown) => void): void {
    this.on.set(name, call);
  }
  close(): void {
    this.closed = true;
  }
  says(name: string, id: number, data: object): void {
    if (!this.closed) this.on.get(name)!({ lastEventId: String(id), data: JSON.stringify(data) });
  }
  begins(user: number, sequence: number): void {
    this.says("hello", sequence, { user, sequence, masterId: "m", version: "1" });
  }
}

interface Told {
  kind: string;
  state?: string;
  name?: string;
  data?: { id?: number };
  after?: boolean;
  topics?: string[];
}

/** A tab: the worker's end of its port, and what it was told. */
class Tab {
  told: Told[] = [];
  onmessage: (e: { data: unknown }) => void = () => undefined;
  constructor(readonly user: number) {
    (self as unknown as { onconnect: (e: { ports: Tab[] }) => void }).onconnect({ ports: [this] });
  }
  postMessage(message: Told): void {
    this.told.push(message);
  }
  asks(topics: string[], after = 0, hidden = false): this {
    this.onmessage({ data: { kind: "topics", topics, after, user: this.user, hidden } });
    return this;
  }
  here(): void {
    this.onmessage({ data: { kind: "here" } });
  }
  rows(): number[] {
    return this.told.filter((m) => m.name === "experiment").map((m) => m.data!.id!);
  }
  left(): string[] {
    return this.told.filter((m) => m.kind === "left").at(-1)?.topics ?? [];
  }
  greeted(): (boolean | undefined)[] {
    return this.told.filter((m) => m.name === "hello").map((m) => m.after);
  }
}

const admin = 1;
const eve = 7;

async function begin(scope: object): Promise<void> {
  Stream.all = [];
  vi.stubGlobal("self", scope);
  vi.resetModules();
  await import("./live-worker");
}

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "performance"] });
  vi.stubGlobal("EventSource", Stream);
  await begin({ onconnect: null });
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

describe("the stream that all tabs share", () => {
  test("is one for the tabs of one user", () => {
    const a = new Tab(admin).asks(["experiments"], 10);
    Stream.newest.begins(admin, 10);
    const b = new Tab(admin).asks(["experiments"], 10);
    expect(Stream.all.length).toBe(1);
    Stream.newest.says("experiment", 11, { id: 3 });
    expect([a.rows(), b.rows()]).toEqual([[3], [3]]);
  });

  test("is begun anew when another user has signed in, and only that user's tabs hear it", () => {
    const a = new Tab(admin).asks(["experiments"], 10);
    Stream.newest.begins(admin, 10);
    const former = Stream.newest;
    const e = new Tab(eve).asks(["experiments"], 10);
    expect(former.closed).toBe(true);
    expect(Stream.open).toBe(1);
    Stream.newest.begins(eve, 12);
    Stream.newest.says("experiment", 13, { id: 4 });
    expect([a.rows(), e.rows()]).toEqual([[], [4]]);
    expect(a.greeted().length, "it hears from whom the stream is").toBe(2);
  });

  test("of another user than the one that asks is not heard, and what was missed is read when it is one's own again", () => {
    const a = new Tab(admin).asks(["experiments"], 10);
    Stream.newest.begins(eve, 10); // the cookie was another user's by then
    Stream.newest.says("experiment", 11, { id: 3 });
    expect(a.rows()).toEqual([]);
    a.asks(["experiments"]);
    Stream.newest.begins(admin, 12);
    Stream.newest.says("experiment", 13, { id: 4 });
    expect(a.rows()).toEqual([4]);
    expect(a.greeted()).toEqual([false, true]);
  });

  test("while topics change, the older stream tells the tabs of its own user alone", () => {
    const a = new Tab(admin).asks(["experiments"], 10);
    Stream.newest.begins(admin, 10);
    const older = Stream.newest;
    a.asks(["experiments", "cluster"]);
    Stream.newest.begins(eve, 10);
    const e = new Tab(eve).asks(["experiments"], 10);
    older.says("experiment", 11, { id: 3 });
    Stream.newest.says("experiment", 11, { id: 4 });
    expect([a.rows(), e.rows()]).toEqual([[3], [4]]);
  });

  test("goes back to what a new tab has read, where others have heard of more", () => {
    new Tab(admin).asks(["experiments"], 10);
    Stream.newest.begins(admin, 10);
    Stream.newest.says("experiment", 15, { id: 3 });
    const b = new Tab(admin).asks(["experiments"], 12);
    expect(Stream.newest.address).toContain("after=12");
    Stream.newest.begins(admin, 15);
    Stream.newest.says("experiment", 15, { id: 3 });
    expect(b.rows()).toEqual([3]);
    vi.advanceTimersByTime(1000);
    expect(Stream.open).toBe(1);
  });

  test("begins where the server is after an older backup was restored, and all is read again", () => {
    const a = new Tab(admin).asks(["experiments"], 90);
    Stream.newest.begins(admin, 90);
    Stream.newest.says("experiment", 100, { id: 3 });
    Stream.newest.onerror();
    vi.advanceTimersByTime(1000);
    expect(Stream.newest.address).toContain("after=100");
    Stream.newest.begins(admin, 80);
    expect(a.greeted()).toEqual([false, true]);
    a.asks(["experiments", "cluster"]);
    expect(Stream.newest.address).toContain("after=80");
  });

  test("is given up when nothing is heard from the server, and asked for again", () => {
    const a = new Tab(admin).asks(["experiments"], 10);
    const states = () => a.told.filter((m) => m.kind === "state").map((m) => m.state);
    Stream.newest.begins(admin, 10);
    const first = Stream.newest;
    for (let s = 0; s < 60; s += 5) {
      vi.advanceTimersByTime(5000);
      first.says("alive", 0, {});
    }
    expect([Stream.newest, states().at(-1)]).toEqual([first, "live"]);
    vi.advanceTimersByTime(22_000);
    expect([first.closed, states().at(-1)]).toEqual([true, "lost"]);
    const second = Stream.newest;
    expect(second.address, "it goes on where it was").toContain("after=10");
    vi.advanceTimersByTime(22_000); // the server takes connections and answers none
    expect([second.closed, Stream.open]).toEqual([true, 1]);
    Stream.newest.begins(admin, 12);
    expect(states().at(-1)).toBe("live");
    expect(a.greeted()).toEqual([false, true]);
  });

  test("says when it was heard for the last time", () => {
    const a = new Tab(admin).asks(["experiments"], 10);
    Stream.newest.begins(admin, 10);
    vi.advanceTimersByTime(4000);
    Stream.newest.onerror();
    expect(a.told.findLast((m) => m.kind === "state")).toEqual({ kind: "state", state: "lost", silent: 4000 });
  });

  test("is left while the tab is hidden, where neither workers nor locks are shared", async () => {
    const told: Told[] = [];
    const scope = { onconnect: null, onmessage: null as unknown as (e: { data: unknown }) => void, postMessage: (m: Told) => void told.push(m) };
    vi.stubGlobal("navigator", {});
    await begin(scope);
    const asks = (hidden: boolean) => scope.onmessage({ data: { kind: "topics", topics: ["experiments"], after: 10, user: admin, hidden } });
    asks(false);
    Stream.newest.begins(admin, 10);
    expect(Stream.open).toBe(1);
    asks(true);
    expect(Stream.open).toBe(0);
    asks(false);
    Stream.newest.begins(admin, 12);
    expect([Stream.open, told.filter((m) => m.name === "hello").map((m) => m.after)]).toEqual([1, [false, true]]);
  });

  test("tells each tab which of its topics found no room, and those of visible tabs come first", () => {
    const curves = (e: number) => Array.from({ length: 60 }, (_, i) => `series/${e}/training/m${i}`);
    const a = new Tab(admin).asks([...curves(1), "experiment/1"], 10);
    Stream.newest.begins(admin, 10);
    expect(a.left()).toEqual([]);
    const b = new Tab(admin).asks([...curves(2), "experiment/2"], 10);
    Stream.newest.begins(admin, 10);
    expect([a.left().length, b.left().length]).toEqual([0, 22]);
    a.asks([...curves(1), "experiment/1"], 0, true);
    Stream.newest.begins(admin, 10);
    expect([a.left().length, b.left().length]).toEqual([22, 0]);
    const c = new Tab(admin).asks(curves(1).slice(-1), 10);
    Stream.newest.begins(admin, 10);
    expect(c.left(), "what another, visible tab wants too").toEqual([]);
    a.asks(["experiment/1"]);
    Stream.newest.begins(admin, 10);
    expect(a.left()).toEqual([]);
  });

  test("asks a tab that slept who it is, and then tells it to read everything", () => {
    const a = new Tab(admin).asks(["experiments"], 10);
    new Tab(admin).asks(["cluster"], 10);
    Stream.newest.begins(admin, 10);
    vi.advanceTimersByTime(220_000);
    a.here();
    expect(a.told.map((m) => m.kind)).toContain("who");
    a.asks(["experiments"]);
    Stream.newest.begins(admin, 11);
    expect(a.greeted().at(-1)).toBe(true);
  });
});
