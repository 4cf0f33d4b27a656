// The times in which runs of trials held slots, from the facts of their experiment.

import { ended } from "./ended";
import { clean, moment, span, state } from "./text";

export interface Held {
  trial: number;
  run: number | null; // null where the facts do not name it
  on: { agent: string; slots: number[] }[]; // empty where the facts do not say it
  from: number; // ms
  to: number | null; // ms; null while the run still holds its slots
  ended: string; // how the run ended, as a state: "COMPLETED", "FAILED"; "" where it goes on, or nothing says it
}

interface Fact {
  sequence: number;
  at: string;
  type: string;
  trial?: number;
  run?: number;
  on?: Held["on"]; // of allocation_placed; empty: the order to start was lost, and the run waits again
  why?: string; // of allocation_closed and run_ended: "completed", "failed"
  state?: string; // of trial_ended
}

/** The times in which runs held slots, ordered by their begin. With `upto` they are as after that fact: those that lasted then have no
 *  end. */
export function held(history: readonly Fact[], upto = Infinity): Held[] {
  const open = new Map<number, Held>();
  const all: Held[] = [];
  for (const f of history) {
    if (f.sequence > upto) break;
    if (f.trial === undefined) continue;
    const now = open.get(f.trial);
    const waits = f.type === "allocation_placed" && f.on?.length === 0;
    if (f.type === "allocation_placed" && !now && !waits) {
      const one: Held = { trial: f.trial, run: f.run ?? null, on: f.on ?? [], from: Date.parse(f.at), to: null, ended: "" };
      open.set(f.trial, one);
      all.push(one);
    } else if (now && (waits || f.type === "allocation_closed" || f.type === "run_ended" || f.type === "trial_ended")) {
      now.to = Date.parse(f.at);
      now.ended = waits ? "LOST" : f.type === "trial_ended" ? state(f.state) : (f.why ?? "").toUpperCase();
      open.delete(f.trial);
    }
  }
  return all;
}

/** The same runs, each with its own state. The last run of a trial that has ended has the state of the trial where it was stopped, or
 *  where nothing says how it ended. */
export function withStates(all: readonly Held[], trials: ReadonlyMap<number, string>): (Held & { state: string })[] {
  const last = new Map(all.map((h) => [h.trial, h]));
  const its = (h: Held): string => {
    const now = state(trials.get(h.trial));
    return (h.ended === "" || h.ended === "STOPPED") && last.get(h.trial) === h && ended({ state: now }) ? now : h.ended || "ENDED";
  };
  return all.map((h) => ({ ...h, state: h.to === null ? "RUNNING" : its(h) }));
}

/** A line of the chart: a slot of an agent, or room for runs without a slot. */
export interface Lane {
  agent: string;
  slot: number | null;
}

/** A lane for each slot that a run held, by agent and slot, and a bar on each slot of a run. Runs without slots stand below these, each
 *  on the first lane that is free when it begins. A run without an end lasts until `now`. */
export function lanes<T extends Held>(all: readonly T[], now: number): { bars: (T & Lane & { lane: number })[]; lanes: Lane[] } {
  const on = (h: Held): Lane[] => h.on.flatMap(({ agent, slots }) => slots.map((slot) => ({ agent, slot })));
  const key = (l: Lane) => `${l.slot} ${l.agent}`;
  const slots = Array.from(new Map(all.flatMap(on).map((l) => [key(l), l])).values()).sort((a, b) => a.agent.localeCompare(b.agent, undefined, { numeric: true }) || a.slot! - b.slot!);
  const at = new Map(slots.map((l, i) => [key(l), i]));
  const free: number[] = [];
  const bars = all
    .slice()
    .sort((a, b) => a.from - b.from)
    .flatMap((h) => {
      const its = on(h);
      if (its.length > 0) return its.map((l) => ({ ...h, ...l, lane: at.get(key(l))! }));
      let lane = free.findIndex((until) => until <= h.from);
      if (lane < 0) lane = free.push(0) - 1;
      free[lane] = h.to ?? now;
      return [{ ...h, agent: h.on.map((p) => p.agent).join(" "), slot: null, lane: slots.length + lane }];
    });
  return { bars, lanes: [...slots, ...free.map(() => ({ agent: "", slot: null }))] };
}

const placesText = (on: Held["on"]): string => on.map((p) => `${clean(p.agent)}${p.slots.length === 0 ? "" : ` ${p.slots.length === 1 ? "slot" : "slots"} ${p.slots.join(", ")}`}`).join("; ");

const mostTold = 3;

/** A trial and where and when its runs held slots, in words. `runs` are in their order; those without an end last until `now`. */
export function heldText(trial: string, runs: readonly (Held & { state: string })[], now: number, zone: "local" | "utc"): string {
  if (runs.length === 0) return "";
  const at = (ms: number) => moment(new Date(ms).toISOString(), zone);
  const long = (h: Held) => Math.max(0, (h.to ?? now) - h.from) / 1000;
  const told = runs.slice(-mostTold).map((h) => {
    const where = h.on.length > 0 ? ` on ${placesText(h.on)}` : "";
    return `${h.run === null ? "" : `run ${h.run} `}${h.state}${where} ${h.to === null ? `since ${at(h.from)}` : `from ${at(h.from)} to ${at(h.to)}`} (${span(long(h))}${h.to === null ? " so far" : ""})`;
  });
  const before = runs.length > mostTold ? `${runs.length} runs, ${span(runs.reduce((sum, h) => sum + long(h), 0))} in all; the last: ` : "";
  return `Trial ${trial}: ${before}${told.join("; ")}`;
}
