// The bounds against which trials were measured at the rungs of a search.

import type { Rung, RungTrial, SearchStory } from "./api_types";
import { number, short } from "./text";

const finite = (of: RungTrial["needed"]): number | null => {
  const x = number(of);
  return x !== null && Number.isFinite(x) ? x : null;
};

/** The bound that a trial is compared with at a rung, and whether that is the bound of its own decision. A trial that waits, and each one
 *  of a search that does not tell the bounds, is compared with the newest one there. */
export function against(t: RungTrial, rung: Pick<Rung, "needed">): { bound: number; own: boolean } | null {
  const own = finite(t.needed);
  if (own !== null) return { bound: own, own: true };
  const newest = finite(rung.needed);
  return newest === null || t.needed !== undefined || t.fate === "finished" ? null : { bound: newest, own: false };
}

/** The fate of a trial at a rung in words: "0.907, went on; bound: at most 0.95". */
export function fateText(t: RungTrial, rung: Pick<Rung, "needed">, of: Pick<SearchStory, "smallerIsBetter">): string {
  const known = against(t, rung);
  const bound = known ? `; ${known.own ? "bound" : "last bound"}: ${boundText(known.bound, of)}` : t.fate === "went on" ? "; no bound is known" : "";
  return `${short(number(t.metric))}, ${t.fate}${bound}`;
}

/** The newest bound of a rung in words; empty where there is none. */
export const newestText = (rung: Pick<Rung, "needed">, of: Pick<SearchStory, "smallerIsBetter">): string => {
  const newest = finite(rung.needed);
  return newest === null ? "" : `, last bound: ${boundText(newest, of)}`;
};

const boundText = (bound: number, of: Pick<SearchStory, "smallerIsBetter">): string => `${of.smallerIsBetter ? "at most" : "at least"} ${short(bound)}`;
