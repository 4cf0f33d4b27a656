// The use of slots over time, and by whom.

import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { get } from "./api";
import { useChanges } from "./changes";
import { Chart, type Drawn } from "./chart";
import type { Curve } from "./curves";
import { params, set } from "./router";
import { looks } from "./scales";
import { clean, csv } from "./text";
import { Empty, Failed, Link, NoSuch, save, useRead } from "./ui";
import type { Usage } from "./api_types";

const spans: [string, string, number, number][] = [
  ["1h", "1 hour", 3600, 20],
  ["24h", "24 hours", 86_400, 300],
  ["30d", "30 days", 30 * 86_400, 10_800],
];

const mostRows = 200;

export function UsageOverTime() {
  const asked = params.value.text("span", "1h");
  const [span, , seconds, step] = spans.find(([key]) => key === asked) ?? spans[0]!;
  const { now, again } = useRead(`usage ${span}`, (signal) => {
    const to = new Date();
    return get<Usage>("/troupe/v1/usage", { from: new Date(to.getTime() - seconds * 1000).toISOString(), to: to.toISOString(), step }, signal);
  });
  useChanges(["cluster"], 4000, again);
  const v = now.value;
  const u = v.state === "ready" ? v.value : null;
  const numbers = useSignal<Curve[] | null>(null);
  const lines = useMemo<Drawn[] | null>(() => {
    if (!u) return null;
    const x = u.slots.t.map((t) => Date.parse(t) / 1000);
    const all: [string, number[]][] = [
      ["total", u.slots.total],
      ["used", u.slots.used],
      ["waiting", u.slots.waiting],
    ];
    numbers.value = all.map(([label, y], i) => ({ label, trial: i, row: 0, count: y.length, x, y }));
    return all.map(([label, y], i) => ({ id: label, label, x, y, ...looks(i) }));
  }, [u]);
  const users = useMemo(() => {
    const all = new Map<string, number>();
    for (const one of u?.by ?? []) all.set(one.user, (all.get(one.user) ?? 0) + one.slotHours);
    return Array.from(all).sort((a, b) => b[1] - a[1]);
  }, [u]);
  const rows = u?.by ?? [];
  return (
    <>
      <section>
        <h2>Slots over time</h2>
        <div class="toolbar">
          <label>
            <span>Time</span>
            <select aria-label="Time" value={span} onChange={(e) => set({ span: e.currentTarget.value === "1h" ? null : e.currentTarget.value })}>
              {spans.map(([key, name]) => (
                <option key={key} value={key}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        </div>
        {asked !== span && <NoSuch what="span" asked={asked} known={spans.map(([key]) => key)} shown={span} />}
        {v.state === "error" ? (
          <Failed why={v.why} again={again} />
        ) : (
          <Chart
            name={`Slots over ${span}: total, used and waiting`}
            metric="slots"
            lines={lines}
            xTitle="time"
            logX={false}
            logY={false}
            yRange={null}
            height={240}
            note="means of each stretch"
            numbers={numbers}
            onCsv={() => u && save(`slots-${span}.csv`, "text/csv", csv([["t", "total", "used", "waiting"], ...u.slots.t.map((t, i) => [t, u.slots.total[i]!, u.slots.used[i]!, u.slots.waiting[i]!] as (string | number)[])]))}
          />
        )}
      </section>
      <section>
        <h2>Slot-hours</h2>
        <ul class="columns" data-testid="slot-hours">
          {users.map(([user, hours]) => (
            <li key={user} data-user={user} data-hours={hours}>
              <bdi>{clean(user)}</bdi>: {hours.toFixed(3)}
            </li>
          ))}
        </ul>
        {u && rows.length === 0 && <Empty>No slot was used.</Empty>}
        {rows.length > 0 && (
          <>
            <div class="tablebox" tabIndex={0} role="group" aria-label="Slot-hours by user and experiment, scrolls">
              <table data-testid="slot-hours-by" data-rows={rows.length}>
                <thead>
                  <tr>
                    <th scope="col">User</th>
                    <th scope="col">Experiment</th>
                    <th scope="col">Slot-hours</th>
                  </tr>
                </thead>
                <tbody>
                  {rows.slice(0, mostRows).map((r) => (
                    <tr key={`${r.user}/${r.experiment}`} data-id={r.experiment ?? ""}>
                      <td>
                        <bdi>{clean(r.user)}</bdi>
                      </td>
                      <td>{r.experiment === null ? "other tasks" : <Link to={`/experiments/${r.experiment}`}>{r.experiment}</Link>}</td>
                      <td class="num">{r.slotHours.toFixed(4)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
            {rows.length > mostRows && (
              <p class="hint">
                The first {mostRows} of {rows.length}; the CSV has all.
              </p>
            )}
            <p>
              <button type="button" onClick={() => save(`slot-hours-${span}.csv`, "text/csv", csv([["user", "experiment", "slot_hours"], ...rows.map((r) => [r.user, r.experiment, r.slotHours])]))}>
                Download CSV
              </button>
            </p>
          </>
        )}
      </section>
    </>
  );
}
