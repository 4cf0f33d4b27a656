// Where one was on a page, as its entry of the history keeps it.

/** The place in a grid: the row at the top, and how far it is scrolled out of view. */
export interface Spot {
  top: number; // pixels, for a list that does not have that row any more
  row: string;
  above: number;
}

export interface Kept {
  of: string; // the list that was shown, by `listOf`
  y: number; // pixels of the window
  grids: Record<string, Spot>; // by the names of the grids
}

/** The part of an address that says which rows a page shows, and in which order. */
export function listOf(path: string, search: string): string {
  const all = new URLSearchParams(search);
  return JSON.stringify([path, ...["q", "sort", "brush", "at"].map((key) => all.get(key) ?? "")]);
}

const isPlace = (x: unknown): x is number => typeof x === "number" && Number.isFinite(x) && x >= 0;

/** What the state of an entry says of this list; null where it says nothing, or is that of another list. */
export function keptIn(state: unknown, of: string): Kept | null {
  const from = state as Partial<Kept> | null;
  if (typeof from !== "object" || from === null || from.of !== of || !isPlace(from.y)) return null;
  const grids = Object.entries(from.grids ?? {}).filter(([, s]) => isPlace(s.top) && isPlace(s.above) && typeof s.row === "string");
  return { of, y: from.y, grids: Object.fromEntries(grids) };
}

/** Where a grid scrolls to; `at`: the index of the row, -1 where it is gone. */
export const topOf = (spot: Spot, at: number, rowHeight: number): number => (at < 0 ? spot.top : at * rowHeight + spot.above);
