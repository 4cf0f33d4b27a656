// The bounds against which trials were measured at the rungs of a search.

import type { Decision, Rung, RungTrial, SearchStory } from "./api_types";
import { number, short } from "./text";

/** The bounds at one rung. The server tells the bound of each decision; a trial that waits, and each one of a search that does not tell
 *  them, is measured against the last one. */
export interface Bounds {
  own: ReadonlyMap<number, number>; // by trial that was decided about there
  last: number | null; // null where nothing was decided there
}

export function boundsOf(rung: number, of: Pick<Rung, "trials">, decisions: readonly Decision[]): Bounds {
  const here = new Set(of.trials.map((t) => t.trial));
  const own = new Map<number, number>();
  let last: number | null = null;
  for (const d of decisions) {
    const needed = number(d.needed);
    if (d.trial === undefined || !here.has(d.trial) || d.rung !== rung || needed === null || !Number.isFinite(needed)) continue;
    own.set(d.trial, needed);
    last = needed;
  }
  return { own, last };
}

/** The bound that a trial is compared with, and whether that is the bound of its own decision. */
export function against(trial: number, fate: string, all: Bounds): { bound: number; own: boolean } | null {
  const own = all.own.get(trial);
  if (own !== undefined) return { bound: own, own: true };
  return all.last === null || fate === "finished" ? null : { bound: all.last, own: false };
}

/** The fate of a trial at a rung in words: "0.907, went on; last bound: at most 0.95". */
export function fateText(t: RungTrial, all: Bounds, of: Pick<SearchStory, "smallerIsBetter">): string {
  const known = against(t.trial, t.fate, all);
  const bound = known ? `; ${known.own ? "bound" : "last bound"}: ${boundText(known.bound, of)}` : t.fate === "went on" ? "; no bound is known" : "";
  return `${short(number(t.metric))}, ${t.fate}${bound}`;
}

export const boundText = (bound: number, of: Pick<SearchStory, "smallerIsBetter">): string => `${of.smallerIsBetter ? "at most" : "at least"} ${short(bound)}`;
