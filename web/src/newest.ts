// The choice of the drawn metrics where there are very many.

import type { MetricInfo } from "./api_types";

/** The names of numeric metrics, the last reported first. Those of one report are ordered by name. */
export function newestFirst(metrics: readonly MetricInfo[]): string[] {
  return metrics
    .filter((m) => m.kind === "number" && m.group !== "system")
    .map((m) => ({ name: `${m.group}.${m.name}`, at: Date.parse(m.lastReport) }))
    .sort((a, b) => b.at - a.at || (a.name < b.name ? -1 : 1))
    .map((m) => m.name);
}

const words = (look: string): string[] => look.toLowerCase().split(/\s+/).filter(Boolean);

/** The names of numeric metrics that contain all the words. Those in `first` come before the others. */
export function goalsFirst(metrics: readonly MetricInfo[], first: readonly string[], look: string): string[] {
  const all = words(look);
  const names = metrics
    .filter((m) => m.kind === "number")
    .map((m) => `${m.group}.${m.name}`)
    .filter((m) => all.every((w) => m.toLowerCase().includes(w)));
  const lead = new Set(first.filter((m) => names.includes(m)));
  return [...lead, ...names.filter((m) => !lead.has(m))];
}

/** The pinned metrics, and the first `most` of the others that contain all the words. `found` is the number of all others that do. */
export function drawn(names: readonly string[], pins: readonly string[], look: string, most: number): { shown: string[]; found: number } {
  const all = words(look);
  const found = names.filter((m) => !pins.includes(m) && all.every((w) => m.toLowerCase().includes(w)));
  return { shown: [...pins.filter((m) => names.includes(m)), ...found.slice(0, most)], found: found.length };
}
