// Which experiments and trials have ended.

import { condition } from "./filter";

type Thing = { id: number; state: string };

export const ended = (e: Pick<Thing, "state">): boolean => /COMPLETED|CANCELED|ERROR|DELETED/.test(e.state);

/** Those of the ids that can still be given orders. */
export function alive(all: readonly Thing[], ids: readonly string[]): string[] {
  const open = new Set(all.filter((e) => !ended(e)).map((e) => String(e.id)));
  return ids.filter((id) => open.has(id));
}

/** The filter for experiments of other users that have not ended. */
export const othersOpen = (me: string): string => [...["COMPLETED", "CANCELED", "ERROR"].map((s) => condition("state", "!=", s)), condition("owner", "!=", me)].join(" ");
