// The restarts of a trial.

/** The restarts, each with the step from which the run continued and its place on the axes of time. A run that never had an agent took
 *  no time, where other runs had one. */
export function restarts(runs: readonly { run: number; agents: readonly string[]; fromSteps: number; startTime: string; endTime: string | null }[]): { x: string; at: number; label: string }[] {
  let ran = 0;
  const placed = runs.some((r) => r.agents.length > 0);
  return runs.flatMap((r, i) => {
    const at = Date.parse(r.startTime) / 1000;
    const label = `run ${r.run}`;
    const out = i === 0 ? [] : [{ x: "step", at: r.fromSteps, label }, { x: "time", at, label }, { x: "relative", at: ran, label }];
    if (!placed || r.agents.length > 0) ran += ((r.endTime ? Date.parse(r.endTime) : Date.now()) - Date.parse(r.startTime)) / 1000;
    return out;
  });
}
