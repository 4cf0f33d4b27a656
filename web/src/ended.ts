// Which experiments and trials have ended.

import { condition } from "./filter";

type Thing = { id: number; state: string };

/** Whether a thing has ended, also where it is being deleted. A thing that is stopping has not ended: it can still be killed. */
export const ended = (e: Pick<Thing, "state">): boolean => /^(?:STATE_)?(?:COMPLETED|CANCELED|ERROR|DELET)/.test(e.state);
export const stopping = (e: Pick<Thing, "state">): boolean => /STOPPING/.test(e.state);

const among = (all: readonly Thing[], ids: readonly string[], which: (e: Thing) => boolean): string[] => {
  const those = new Set(all.filter(which).map((e) => String(e.id)));
  return ids.filter((id) => those.has(id));
};
/** Those of the ids whose things can still be killed. */
export const alive = (all: readonly Thing[], ids: readonly string[]): string[] => among(all, ids, (e) => !ended(e));
/** Those of the ids whose things still take the other orders. */
export const steerable = (all: readonly Thing[], ids: readonly string[]): string[] => among(all, ids, (e) => !ended(e) && !stopping(e));

/** The filter for experiments of other users that have not ended. */
export const othersOpen = (me: string): string => [...["COMPLETED", "CANCELED", "ERROR"].map((s) => condition("state", "!=", s)), condition("owner", "!=", me)].join(" ");
