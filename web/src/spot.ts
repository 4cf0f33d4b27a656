// The place on a page at which the user was, as the entry of the history keeps it.

/** The place in a grid: the row at the top, and by how many pixels that row is scrolled out of view. */
export interface Spot {
  top: number; // pixels, used where the list does not have that row any more
  row: string;
  above: number;
  active?: string; // the row that the keyboard was on; absent where it was on none
}

export interface Kept {
  of: string; // the list that was shown, as `listOf` names it
  y: number; // pixels by which the window was scrolled
  grids: Record<string, Spot>; // by the names of the grids
}

/** The part of an address that says which rows a page shows, and in which order. */
export function listOf(path: string, search: string): string {
  const all = new URLSearchParams(search);
  return JSON.stringify([path, ...["q", "sort", "brush", "at"].map((key) => all.get(key) ?? "")]);
}

const isPlace = (x: unknown): x is number => typeof x === "number" && Number.isFinite(x) && x >= 0;

/** What the state of an entry says about this list. null where it says nothing, or belongs to another list. */
export function keptIn(state: unknown, of: string): Kept | null {
  const from = state as Partial<Kept> | null;
  if (typeof from !== "object" || from === null || from.of !== of || !isPlace(from.y)) return null;
  const grids = Object.entries(from.grids ?? {}).filter(([, s]) => isPlace(s.top) && isPlace(s.above) && typeof s.row === "string" && (s.active === undefined || typeof s.active === "string"));
  return { of, y: from.y, grids: Object.fromEntries(grids) };
}

/** The pixels to which a grid scrolls. `at` is the index of the row, or -1 where the row does not exist any more. */
export const topOf = (spot: Spot, at: number, rowHeight: number): number => (at < 0 ? spot.top : at * rowHeight + spot.above);
