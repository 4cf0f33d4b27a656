// The preferences that this browser keeps. Nothing about the user is kept.

import { effect, signal } from "@preact/signals";

export type Theme = "system" | "dark" | "light";

function kept<T extends string>(key: string, usual: T, allowed: readonly T[]) {
  const stored = (): T => {
    try {
      const text = localStorage.getItem("troupe." + key) as T | null;
      if (text !== null && allowed.includes(text)) return text;
    } catch {
      // the browser stores nothing
    }
    return usual;
  };
  const s = signal<T>(stored());
  addEventListener("storage", (e) => {
    if (e.key !== "troupe." + key && e.key !== null) return;
    s.value = stored(); // another tab has made a choice; it is read anew, because the event may be an old one
  });
  effect(() => {
    const to = s.value;
    // A value that is stored already is not written again: a tab that gets the choice of another tab would otherwise overwrite that tab's
    // next choice, of which it does not know yet.
    if (to === stored()) return;
    try {
      if (to === usual) localStorage.removeItem("troupe." + key);
      else localStorage.setItem("troupe." + key, to);
    } catch {
      // the browser stores nothing
    }
  });
  return s;
}

export const theme = kept<Theme>("theme", "system", ["system", "dark", "light"]);
export const density = kept("density", "comfortable", ["comfortable", "compact"]);
export const zone = kept<"local" | "utc">("zone", "local", ["local", "utc"]);
export const singleKeys = kept("keys", "on", ["on", "off"]);

const dark = matchMedia("(prefers-color-scheme: dark)");
export const shownTheme = signal<"dark" | "light">("light");
const show = () => (shownTheme.value = theme.value === "system" ? (dark.matches ? "dark" : "light") : theme.value);
dark.addEventListener("change", show);
effect(() => void show());
effect(() => {
  document.documentElement.dataset.theme = shownTheme.value;
  document.documentElement.dataset.density = density.value;
});
