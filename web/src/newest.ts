// Which of a very large number of metrics are drawn.

import type { MetricInfo } from "./api_types";

/** Names of numeric metrics, the last reported first; within one report by name. */
export function newestFirst(metrics: readonly MetricInfo[]): string[] {
  return metrics
    .filter((m) => m.kind === "number" && m.group !== "system")
    .map((m) => ({ name: `${m.group}.${m.name}`, at: Date.parse(m.lastReport) }))
    .sort((a, b) => b.at - a.at || (a.name < b.name ? -1 : 1))
    .map((m) => m.name);
}

/** The pinned metrics, and the first `most` of the others that contain all the words; `found` counts the latter. */
export function drawn(names: readonly string[], pins: readonly string[], look: string, most: number): { shown: string[]; found: number } {
  const words = look.toLowerCase().split(/\s+/).filter(Boolean);
  const found = names.filter((m) => !pins.includes(m) && words.every((w) => m.toLowerCase().includes(w)));
  return { shown: [...pins.filter((m) => names.includes(m)), ...found.slice(0, most)], found: found.length };
}
