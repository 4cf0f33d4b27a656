// The restarts of a trial.

export interface Mark {
  x: string; // the axis
  at: number;
  label: string;
}

/** The restarts, each with the step from which the run continued and its place on the axes of time. Runs at one place have one mark. A
 *  run that never had an agent took no time, where other runs had one. */
export function restarts(runs: readonly { run: number; agents: readonly string[]; fromSteps: number; startTime: string; endTime: string | null }[]): Mark[] {
  let ran = 0;
  const placed = runs.some((r) => r.agents.length > 0);
  const of = new Map<string, { x: string; at: number; runs: number[] }>();
  runs.forEach((r, i) => {
    const start = Date.parse(r.startTime) / 1000;
    for (const [x, at] of i === 0 ? [] : ([["step", r.fromSteps], ["time", start], ["relative", ran]] as const)) {
      const known = of.get(`${x} ${at}`);
      if (known) known.runs.push(r.run);
      else of.set(`${x} ${at}`, { x, at, runs: [r.run] });
    }
    if (!placed || r.agents.length > 0) ran += (r.endTime ? Date.parse(r.endTime) : Date.now()) / 1000 - start;
  });
  return Array.from(of.values(), (m) => ({ x: m.x, at: m.at, label: named(m.runs) }));
}

/** The restarts on an axis that is a metric, which grows with the steps: `curve` has its values over the steps. A run continued where the
 *  last report at or before its step stood. */
export function restartsOver(x: string, marks: readonly Mark[], curve: { x: readonly number[]; y: readonly number[] }): Mark[] {
  return marks.flatMap((m) => {
    if (m.x !== "step" || curve.x.length === 0) return [];
    const at = curve.y[Math.max(0, curve.x.findLastIndex((step) => step <= m.at))]!;
    return Number.isFinite(at) ? [{ ...m, x, at }] : [];
  });
}

/** Some runs in words: "run 2", "runs 2–5, 7". */
function named(runs: readonly number[]): string {
  const parts: [number, number][] = [];
  for (const r of runs) {
    const last = parts[parts.length - 1];
    if (last && last[1] + 1 === r) last[1] = r;
    else parts.push([r, r]);
  }
  return `${runs.length > 1 ? "runs" : "run"} ${parts.map(([a, b]) => (a === b ? `${a}` : `${a}–${b}`)).join(", ")}`;
}
