// The times in which runs of trials held slots, from the facts of their experiment.

import { moment, span, state } from "./text";

export interface Held {
  trial: number;
  from: number; // ms
  to: number | null; // ms; null while the trial still holds its slots
}

interface Fact {
  sequence: number;
  at: string;
  type: string;
  trial?: number;
  on?: unknown[]; // of allocation_placed; empty: the order to start was lost, and the run waits again
}

/** The times in which trials held slots, ordered by their begin. With `upto` they are as after that fact: those that lasted then have no
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
      const one = { trial: f.trial, from: Date.parse(f.at), to: null };
      open.set(f.trial, one);
      all.push(one);
    } else if (now && (waits || f.type === "allocation_closed" || f.type === "run_ended" || f.type === "trial_ended")) {
      now.to = Date.parse(f.at);
      open.delete(f.trial);
    }
  }
  return all;
}

/** Puts each bar on the first line that is free when it begins. A bar without an end lasts until `now`. */
export function lanes<T extends { from: number; to: number | null }>(bars: readonly T[], now: number): { bars: (T & { lane: number })[]; count: number } {
  const free: number[] = [];
  const placed = bars
    .slice()
    .sort((a, b) => a.from - b.from)
    .map((b) => {
      let lane = free.findIndex((at) => at <= b.from);
      if (lane < 0) lane = free.push(0) - 1;
      free[lane] = b.to ?? now;
      return { ...b, lane };
    });
  return { bars: placed, count: free.length };
}

/** A trial and when it held slots, in words. `bars` are its own, in their order; those without an end last until `now`. */
export function heldText(trial: string, its: string, bars: readonly { from: number; to: number | null }[], now: number, zone: "local" | "utc"): string {
  const first = bars[0];
  const last = bars[bars.length - 1];
  if (!first || !last) return "";
  const at = (ms: number) => moment(new Date(ms).toISOString(), zone);
  const seconds = bars.reduce((sum, b) => sum + Math.max(0, (b.to ?? now) - b.from) / 1000, 0);
  const often = bars.length > 1 ? ` ${bars.length} times` : "";
  const long = `${span(seconds)}${often ? " in all" : ""}${last.to === null ? " so far" : ""}`;
  return `Trial ${trial}: ${state(its)}, held slots${often} ${last.to === null ? `since ${at(first.from)}` : `from ${at(first.from)} to ${at(last.to)}`} (${long})`;
}
