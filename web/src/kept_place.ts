// Back, forward and a reload lead to where one was: the entry of the history keeps it, and the window and the grids go there once what they
// show has arrived.

import { signal } from "@preact/signals";
import { keptIn, listOf, type Kept, type Spot } from "./spot";

const here = (): string => listOf(location.pathname, location.search);

/** Counts how often one came back to an entry; the first is the beginning of the page. */
export const returned = signal(0);

let back: Kept | null = null; // what the present entry says, less the grids that stand there already
const grids = new Map<string, () => Spot | null>();

/** The place of a grid, as long as it is on the page; null: at its top. */
export function standsAt(name: string, where: () => Spot | null): () => void {
  grids.set(name, where);
  return () => void (grids.get(name) === where && grids.delete(name));
}

/** Gives a grid the place where it was; null where nothing is known of it. */
export function spotFor(name: string): Spot | null {
  if (!back) return null;
  const found = back.grids[name] ?? { top: 0, row: "", above: 0 };
  delete back.grids[name];
  return found;
}

const longest = 200; // letters of a row's id that are kept
let due: ReturnType<typeof setTimeout> | undefined;

function keep(): void {
  clearTimeout(due);
  const now: Kept = { of: here(), y: toward || Math.round(scrollY), grids: { ...back?.grids } };
  for (const [name, where] of grids) {
    const spot = where();
    if (spot && spot.row.length <= longest) now.grids[name] = spot;
  }
  history.replaceState(now, "");
}

/** Keeps the place once nothing has moved for a moment: browsers limit how often an entry may be changed. */
export function moved(): void {
  clearTimeout(due);
  due = setTimeout(keep, 300);
}

// A reload, and a browser that gives up a hidden tab, may come before that moment is over. In `pagehide` a change of the entry would be too
// late: the new page has the state already.
addEventListener("beforeunload", keep);
document.addEventListener("visibilitychange", () => document.hidden && keep());

/** Before another address is shown. `pushed`: it is a new entry. Gives the state for it. */
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

/** The browser shows an entry again, whose state is this. */
export function cameBack(state: unknown): void {
  clearTimeout(due);
  back = keptIn(state, here());
  ++returned.value;
  arrive();
  if (back) goTo(back.y);
}

// ---- the window

let toward = 0; // where the window is to be once the page is long enough
let watch: ResizeObserver | undefined;
let settled: ReturnType<typeof setTimeout> | undefined;
const ownHands = ["wheel", "touchstart", "pointerdown", "keydown"] as const;

/** Whether the window goes to where it was: a focus must not scroll it then. */
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
    // What comes later may still be shorter or longer; who scrolls meanwhile goes where they want.
    settled = setTimeout(() => (Math.abs(scrollY - y) <= 1 || performance.now() > end ? arrive() : look()), 1000);
  };
  watch = new ResizeObserver(look);
  watch.observe(document.body);
  for (const e of ownHands) addEventListener(e, arrive, { capture: true, passive: true });
}

history.scrollRestoration = "manual"; // the browser would do it before the content is there
back = keptIn(history.state, here());
if (back) goTo(back.y);
addEventListener("scroll", moved, { passive: true });
