// Back, forward and a reload return to the place where the user was. The entry of the history keeps that place, and the window and the
// grids go there when their content has arrived.

import { signal } from "@preact/signals";
import { keptIn, listOf, type Kept, type Spot } from "./spot";

const here = (): string => listOf(location.pathname, location.search);

/** Counts the returns to entries of the history. The first is the start of the page. */
export const returned = signal(0);

let back: Kept | null = null; // what the present entry says, without the grids that are at their places already
const grids = new Map<string, () => Spot | null>();

/** Registers the place of a grid, until the returned function is called. `where` gives null at the top, where no row is active. */
export function standsAt(name: string, where: () => Spot | null): () => void {
  grids.set(name, where);
  return () => void (grids.get(name) === where && grids.delete(name));
}

/** The place to which a grid returns, which is given only once. null where none is known. */
export function spotFor(name: string): Spot | null {
  if (!back) return null;
  const found = back.grids[name] ?? { top: 0, row: "", above: 0 };
  delete back.grids[name];
  return found;
}

const longest = 200; // limit in letters of a row's id that is kept
let due: ReturnType<typeof setTimeout> | undefined;

function keep(): void {
  clearTimeout(due);
  const now: Kept = { of: here(), y: toward || Math.round(scrollY), grids: { ...back?.grids } };
  for (const [name, where] of grids) {
    const spot = where();
    if (spot && Math.max(spot.row.length, spot.active?.length ?? 0) <= longest) now.grids[name] = spot;
  }
  history.replaceState(now, "");
}

/** Stores the place when nothing has moved for 300 ms, because browsers limit how often an entry may be changed. */
export function moved(): void {
  clearTimeout(due);
  due = setTimeout(keep, 300);
}

// A reload, or a browser that discards a hidden tab, may come before these 300 ms are over. In `pagehide` a change of the entry would be
// too late, because the new page has the state already.
addEventListener("beforeunload", keep);
document.addEventListener("visibilitychange", () => document.hidden && keep());

/** To be called before another address is shown. `pushed` says that it gets a new entry. Returns the state of that entry. */
export function leave(pushed: boolean, path: string, search: string): Kept | null {
  moved();
  if (!pushed && listOf(path, search) === here()) return history.state as Kept | null;
  if (pushed) {
    keep();
    moved();
  }
  back = null;
  arrive();
  return null;
}

/** To be called when the browser shows an entry again, with the state of that entry. */
export function cameBack(state: unknown): void {
  clearTimeout(due);
  back = keptIn(state, here());
  ++returned.value;
  arrive();
  if (back) goTo(back.y);
}

// ---- the window

let toward = 0; // the place to which the window has to go when the page is long enough; 0 for none
let watch: ResizeObserver | undefined;
let settled: ReturnType<typeof setTimeout> | undefined;
const ownHands = ["wheel", "touchstart", "pointerdown", "keydown"] as const;

/** Whether the window is on its way to its former place. A focus must not scroll it then. */
export const isReturning = (): boolean => toward > 0;

function arrive(): void {
  toward = 0;
  clearTimeout(settled);
  watch?.disconnect();
  for (const e of ownHands) removeEventListener(e, arrive, true);
}

function goTo(y: number): void {
  scrollTo(0, y);
  if (y === 0) return;
  toward = y;
  const end = performance.now() + 10_000;
  const look = () => {
    clearTimeout(settled);
    scrollTo(0, y);
    // The page may still become shorter or longer. A user who scrolls meanwhile stays where they go.
    settled = setTimeout(() => (Math.abs(scrollY - y) <= 1 || performance.now() > end ? arrive() : look()), 1000);
  };
  watch = new ResizeObserver(look);
  watch.observe(document.body);
  for (const e of ownHands) addEventListener(e, arrive, { capture: true, passive: true });
}

history.scrollRestoration = "manual"; // the browser would scroll before the content is loaded
back = keptIn(history.state, here());
if (back) goTo(back.y);
addEventListener("scroll", moved, { passive: true });
