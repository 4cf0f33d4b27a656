// The requests for reads.

import type { MetricInfo } from "./api_types";

export type Query = Record<string, string | number | boolean | undefined>;

/** The time in ms that a whole answer may take, longer than the server's own limits. */
export const answerTime = 60_000;

/** The address of a read. undefined and empty values are left out, except for the name of a metric. */
export function asked(path: string, query: Query = {}): string {
  const all = new URLSearchParams();
  for (const [key, x] of Object.entries(query)) if (x !== undefined && (x !== "" || (key === "metric" && query.group))) all.set(key, String(x));
  const text = all.toString().replaceAll("%2C", ","); // an address has a limit, and lists of trials are long
  return path + (text ? "?" + text : "");
}

/** Whether the page at an address begins with curves, so that the code that draws them is loaded ahead. */
export const withLines = (path: string): boolean => /^\/(?:experiments\/\d+(?:\/curves)?|trials\/\d+(?:\/resources)?|compare|cluster)$/.test(path);

export const seriesPath = "/troupe/v1/series";

/** The group and the name of a metric such as "validation.loss". */
export function parts(metric: string): { group: string; name: string } {
  const dot = metric.indexOf(".");
  return { group: metric.slice(0, dot), name: metric.slice(dot + 1) };
}

/** The query for the curves of an experiment, or of some trials. Fewer trials get more points. */
export function seriesQuery(metric: string, of: { experiment?: number; trials?: number[] }, x: string, range: [number, number] | null, past: number) {
  const { group, name } = parts(metric);
  const count = of.trials?.length ?? 100;
  return {
    ...(of.experiment ? { experiment: of.experiment } : { trials: (of.trials ?? []).join(",") }),
    group,
    metric: name,
    x,
    points: count <= 3 ? 2000 : count <= 30 ? 1000 : 500,
    from: range?.[0],
    to: range?.[1],
    at: past || undefined,
  };
}

/** The query for the importance of hyperparameters: for a metric, or by default that of the search; of these trials, or of all. */
export const importanceQuery = (metric: string, trials: readonly number[] | null): Query => ({ metric: metric || undefined, trials: trials ? trials.join(",") : undefined });

/** The number of lines of a log that are read first: the last ones, or those around a line. They are more than a screen has, and few
 *  enough to be there soon. */
const logFirst = 40;
/** The line that an address names; "" where it names none. */
export const lineOf = (text: string): string => (/^[1-9]\d{0,15}$/.test(text) ? text : "");
export const logQuery = (line: string): { from?: number; limit: number } => ({ ...(line === "" ? {} : { from: Math.max(1, Number(line) - logFirst / 2) }), limit: logFirst });

/** The number of the fact after which an address shows an experiment. 0 where it shows the present, or names no number. */
export const factOf = (text: string): number => (/^\d{1,15}$/.test(text) ? Number(text) : 0);

/** The X axis that an address names, or the usual one where there is none of that name. */
export const axisOf = (name: string, usual = "step"): string => (/^(?:step|time|relative|epoch|metric:.*)$/s.test(name) ? name : usual);

/** The X axes that are metrics of the same reports as this metric. The axis in use is always among them. */
export function metricAxes(x: string, metric: string, all: readonly MetricInfo[]): string[] {
  const { group, name } = parts(metric);
  const axes = all.filter((m) => m.kind === "number" && m.group === group && m.name !== name).map((m) => `metric:${m.name}`);
  return x.startsWith("metric:") && !axes.includes(x) ? [x, ...axes] : axes;
}

/** The first `most` elements of the list with which a JSON text begins, `{"key":[`. null where the text does not contain all of them
 *  yet. */
export function firstOf(text: string, key: string, most: number): unknown[] | null {
  const head = `{"${key}":`;
  if (!text.startsWith(head + "[")) return null;
  let depth = 0;
  let found = 0;
  for (let i = head.length; i < text.length; ++i) {
    const c = text[i];
    if (c === '"') {
      for (++i; i < text.length && text[i] !== '"'; ++i) if (text[i] === "\\") ++i;
    } else if (c === "[" || c === "{") ++depth;
    else if (c === "]" || c === "}") {
      if (--depth === 0) return null; // the list ends before it has `most` elements
      if (depth === 1 && ++found === most) return JSON.parse(text.slice(head.length, i + 1) + "]") as unknown[];
    }
  }
  return null;
}

/** The range of the x axis that an address names, or null. */
export function rangeOf(from: string, to: string): [number, number] | null {
  return from !== "" && to !== "" && Number.isFinite(+from) && Number.isFinite(+to) ? [+from, +to] : null;
}

const ofDevices = new Map<string, [string, string]>([
  ["gpu_percent", ["GPU", "percent"]],
  ["gpu_memory_bytes", ["GPU", "memory, bytes"]],
  ["gpu_temperature_celsius", ["GPU", "°C"]],
  ["gpu_errors", ["GPU", "memory errors that were not corrected"]],
  ["utilization_percent", ["Slot", "percent"]],
]);

/** The title of a metric `AGENT/SLOT/NAME` of the group `system`. Any other name stays as it is. */
export function deviceTitle(metric: string): string {
  const found = /^(.+)\/(\d+)\/(\w+)$/s.exec(metric);
  const known = found && ofDevices.get(found[3]!);
  return known ? `${known[0]} ${found[2]} of ${found[1]}, ${known[1]}` : metric;
}
