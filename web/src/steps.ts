// The structured metrics of a trial, each with the reports that have it.

import type { MetricReport as Report } from "./api_types";

type Told = Pick<Report, "group" | "metrics" | "row" | "totalBatches">;

/** One entry for each name and group. The title contains the group where several groups have the name. */
export function steps<R extends Told>(names: readonly string[], reports: readonly R[]): { name: string; title: string; reports: R[] }[] {
  return names.flatMap((name) => {
    const groups = new Map<string, R[]>();
    for (const r of reports) if (Object.hasOwn(r.metrics, name)) {
        const known = groups.get(r.group);
        if (known) known.push(r);
        else groups.set(r.group, [r]);
      }
    return Array.from(groups, ([group, of]) => ({ name, title: groups.size > 1 ? `${group}.${name}` : name, reports: of }));
  });
}

/** The name of each report in the address: its step, and also its row where several reports have the same step. */
export function stepNames(reports: readonly Told[]): string[] {
  const of = new Map<number, number>();
  for (const r of reports) of.set(r.totalBatches, (of.get(r.totalBatches) ?? 0) + 1);
  return reports.map((r) => (of.get(r.totalBatches) === 1 ? String(r.totalBatches) : `${r.totalBatches}@${r.row}`));
}
