// The goal of a search: one metric, or several metrics, of which no single trial is the best in all.

import type { CheckpointRow, Experiment } from "./api_types";
import { number } from "./text";

type About = Pick<Experiment, "searcherMetric" | "config">;

const given = (x: unknown): unknown[] | null => (Array.isArray(x) && x.length > 0 ? x : null);

export function goals(e: About): string[] {
  const searcher = e.config["searcher"] as { metrics?: unknown; metric?: unknown } | null | undefined;
  if (e.searcherMetric) return [e.searcherMetric];
  const list = given(searcher?.metrics) ?? given(searcher?.metric);
  return list ? list.map(String) : [];
}

export const several = (e: About): boolean => goals(e).length > 1;

/** The metric that charts show first. "" where the search names none. */
export const mainMetric = (e: About): string => (goals(e).length > 0 ? `validation.${goals(e)[0]}` : "");

/** The value of a metric of the search in the validation of a checkpoint. null where that validation lacks it. */
export function valueAt(c: { training: Pick<CheckpointRow["training"], "validationMetrics"> }, metric: string): number | null {
  const all = c.training.validationMetrics?.["avgMetrics"] as Record<string, unknown> | undefined;
  return number(all?.[metric]);
}

/** The goal in words: "smallest loss and largest size". */
export function wanted(e: About): string {
  const said = e.config["searcher"] as { smaller_is_better?: unknown; smaller_is_better_each?: unknown } | null | undefined;
  const of = given(said?.smaller_is_better_each) ?? said?.smaller_is_better;
  const smaller = (i: number) => (Array.isArray(of) ? of[i] : of) !== false;
  return goals(e)
    .map((m, i) => `${smaller(i) ? "smallest" : "largest"} ${m}`)
    .join(" and ");
}

/** Whether the configuration draws a hyperparameter ("opt.lr") evenly, so that its axis is linear however far the values lie apart. */
export function isEven(e: Pick<Experiment, "config">, name: string): boolean {
  let at: unknown = e.config["hyperparameters"];
  let rest = name;
  while (at !== null && typeof at === "object") {
    const space = at as Record<string, unknown>;
    if (rest === "") return space["type"] === "double" || space["type"] === "int";
    const key = Object.keys(space).find((k) => rest === k || rest.startsWith(k + "."));
    if (key === undefined) return false;
    at = space[key];
    rest = rest.slice(key.length + 1);
  }
  return false;
}
