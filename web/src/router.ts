// The address as a value: a path below /ui, whose parameters are the view.

import { batch, computed, signal } from "@preact/signals";
import { patched, read, type Params } from "./address";
import { cameBack, leave } from "./kept_place";
import { factOf } from "./queries";

export const prefix = "/ui";

export interface Place {
  path: string; // path below /ui, as in "/experiments/7/trials"
  search: string;
  hash: string;
}

function here(): Place {
  const path = location.pathname.startsWith(prefix) ? location.pathname.slice(prefix.length) : location.pathname;
  return { path: path.replace(/\/+$/, "") || "/", search: location.search, hash: location.hash };
}

export const place = signal<Place>(here());
export const path = computed(() => place.value.path);
export const params = computed<Params>(() => read(place.value.search));

/** The tabs of an experiment that can show the past. */
export const timed = ["", "trials", "curves", "analysis", "search"];

/** The number of the fact after which an experiment is shown. 0 for the present. */
export const pastAt = computed(() => (timed.includes(/^\/experiments\/\d+(?:\/(\w+))?$/.exec(place.value.path)?.slice(1).join("") ?? "-") ? factOf(params.value.text("at")) : 0));

window.addEventListener("popstate", (e) =>
  batch(() => {
    cameBack(e.state);
    place.value = here();
  }),
);

/** Goes to `to`, an address below /ui such as "/experiments?q=x". `replace` says that the entry of the history is replaced. */
export function go(to: string, replace = false): void {
  const whole = prefix + to;
  const at = new URL(whole, location.href);
  const state = leave(!replace, at.pathname, at.search);
  if (replace) history.replaceState(state, "", whole);
  else history.pushState(state, "", whole);
  place.value = here();
}

/** Changes parameters of the view. With `typed` the entry of the history is replaced, otherwise a new one is added. */
export function set(changes: Record<string, string | number | boolean | string[] | null>, typed = false): void {
  const now = place.peek();
  const to = patched(now.path, now.search, changes);
  if (to !== now.path + now.search) go(to, typed);
}

/** Handles a click on a link, so that the page stays loaded. Clicks with a modifier key are left to the browser. */
export function follow(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = (event.target as Element).closest?.("a");
  if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin || !link.pathname.startsWith(prefix)) return;
  event.preventDefault();
  const to = link.pathname.slice(prefix.length) + link.search;
  if (to !== place.peek().path + place.peek().search) go(to || "/");
}
