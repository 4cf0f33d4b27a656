// One stream for all tabs where the browser has no shared workers. Each tab has a worker of its own then, and the one that holds a lock
// has the stream. It speaks to each tab, also to its own, over a channel.

/** What a tab and the code that has the stream speak over: the port of a shared worker, or a channel. */
export interface Wire {
  postMessage(message: unknown): void;
  onmessage: ((e: MessageEvent) => void) | null;
}

interface Parts {
  tab: Wire; // to the page of this worker
  adopt: (tab: Wire) => void; // begins to serve a tab
  resign: () => void; // gives up all tabs and the stream
}

const beat = 5000; // ms between two signs of life of the worker that holds the lock
const mute = 20_000; // ms without one after which a visible tab takes the lock: browsers may put hidden tabs to sleep

/** Serves the tab of this worker, and all others while this worker holds the lock. `house` names the lock, and differs between versions of
 *  the page, as their tabs might not understand each other. */
export function shareAmongTabs(house: string, locks: Pick<LockManager, "request">, { tab, adopt, resign }: Parts): void {
  const id = `${Date.now()}-${Math.random()}`;
  const all = new BroadcastChannel(house); // here a tab says that it is there, and a worker that it holds the lock now
  const mine = new BroadcastChannel(`${house}/${id}`); // to the worker that holds the lock, which may be this one
  let asked: { hidden?: boolean } | null = null; // what the page asked for last; null before that, and once the page is left
  let adopted = false;
  let told = false; // whether any worker has known what the page asks for
  let waiting = false; // whether the lock is asked for
  let heard = 0; // time in ms of the last message to this tab
  let looked = 0; // time in ms of the last look at it
  let served: Map<string, BroadcastChannel> | null = null; // the tabs by their ids, while this worker holds the lock
  let release = (): void => undefined;

  const take = (one: string): void => {
    let line = served!.get(one);
    if (!line) {
      served!.set(one, (line = new BroadcastChannel(`${house}/${one}`)));
      adopt(line);
    }
    line.postMessage({ kind: "adopted" });
  };
  const drop = (one: string): void => {
    const line = served?.get(one);
    line?.onmessage?.({ data: { kind: "bye" } } as MessageEvent);
    line?.close();
    served?.delete(one);
  };
  const end = (): void => {
    if (!served) return;
    resign();
    for (const line of served.values()) line.close();
    served = null;
    release();
  };
  const come = (steal = false): void => {
    heard = performance.now();
    adopted = false;
    if (!steal) all.postMessage({ kind: "tab", id });
    if (waiting && !steal) return;
    waiting ||= !steal;
    const held = async (): Promise<void> => {
      if (!steal) waiting = false;
      if (!asked) return; // the page was left while it waited
      served = new Map();
      adopted = false;
      all.postMessage({ kind: "begins" });
      take(id);
      await new Promise<void>((done) => (release = done));
    };
    locks.request(house, steal ? { steal } : {}, held).catch(() => {
      end();
      if (asked) come();
    });
  };
  all.onmessage = ({ data }: MessageEvent<{ kind: string; id: string }>) => {
    if (data.kind === "tab" && served) take(data.id);
    if (data.kind === "bye") drop(data.id);
    if (data.kind === "begins") end(); // the lock was taken away while this worker slept
    if (data.kind === "begins" && asked) {
      adopted = false;
      all.postMessage({ kind: "tab", id });
    }
  };
  mine.onmessage = ({ data }: MessageEvent<{ kind: string }>) => {
    heard = performance.now();
    if (data.kind === "beat") return;
    if (data.kind !== "adopted") return tab.postMessage(data);
    if (adopted || !asked) return;
    adopted = true;
    mine.postMessage(told ? { ...asked, missed: true } : asked);
    told = true;
  };
  tab.onmessage = ({ data }: MessageEvent<{ kind: string; hidden?: boolean }>) => {
    if (data.kind === "bye") {
      asked = null;
      all.postMessage({ kind: "bye", id });
      return end();
    }
    const came = asked === null;
    if (data.kind === "topics") asked = data;
    if (came && asked) come();
    else if (adopted) mine.postMessage(data);
  };
  setInterval(() => {
    for (const line of served?.values() ?? []) line.postMessage({ kind: "beat" });
    const now = performance.now();
    if (now - looked > mute / 2) heard = now; // it is this worker that slept
    looked = now;
    if (asked && !asked.hidden && now - heard > mute) come(true);
  }, beat);
}
