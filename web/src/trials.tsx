// The trials of an experiment, kept up to date, and their grid.

import { useSignal, useSignalEffect, type Signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { firstRows, stand } from "./asked";
import { get, type MetricInfo, type Trial } from "./api";
import type { Column } from "./grid";
import { isStale, listen, returns } from "./live";
import { asked } from "./queries";
import { pastAt } from "./router";
import type { Row } from "./brush";
import { asChoice, parse } from "./filter";
import { clean, flat, named, nameOf, number, span, state } from "./text";
import { duration } from "./pages/experiments";
import { elements } from "./topics";
import { State, Time, useAtOnce, useRead } from "./ui";
import type { MetricList, TrialProgressList } from "./api_types";

export type { Row };

const withHp = (t: Trial): Row => ({ ...t, hp: flat(t.hparams) });

const atOnce = Promise.resolve();

/** The trials of an experiment. `wanted` names the metrics, such as "training.loss", whose summaries each trial gets. Reading waits for
 *  `when`. */
export function useTrials(experiment: number, wanted: string[], when: Promise<void> = atOnce) {
  const rows = useSignal<readonly Row[] | null>(null);
  const first = useSignal<readonly Row[] | null>(null); // the first rows of a long list that is still loading
  const at = pastAt.value;
  const rowsAt = useSignal(at); // the moment of `rows`, which stay while another moment is read
  const key = `${experiment} ${wanted.join(",")} ${at}`;
  const path = `/troupe/v1/experiments/${experiment}/trials`;
  const query = { metrics: elements(wanted), at: at || undefined };
  const { now, again } = useRead(key, (signal) => (experiment ? when.then(() => get<TrialProgressList>(path, query, signal)) : Promise.resolve({ trials: [] })));
  useAtOnce(() => {
    if (now.value.state !== "ready") return;
    rows.value = now.value.value.trials.map(withHp);
    rowsAt.value = at;
  });
  useLayoutEffect(() => {
    let gone = false;
    void firstRows(asked(path, query)).then((some) => {
      if (!some || gone || rows.peek()) return;
      const few = (some as Trial[]).map(withHp);
      // Where there are many hyperparameters, only the whole list shows which of them vary.
      if (few.every((t) => Object.keys(t.hp).length <= fewHparams)) first.value = few;
      else stand();
    });
    return () => {
      gone = true;
      first.value = null;
    };
  }, [key]);
  const reread = useRef(again);
  reread.current = again;
  useEffect(() => {
    if (at > 0) return; // the past does not change
    let fresh = new Map<number, Row>();
    let due = 0;
    let summaries: ReturnType<typeof setTimeout> | undefined;
    const stop = listen([`experiment/${experiment}`], (e) => {
      // The only sign of a deleted trial is that the number of trials falls.
      if (e.name === "experiment" && e.data.id === experiment && e.data.numTrials < (rows.peek()?.length ?? 0)) reread.current();
      if (isStale(e, `experiment/${experiment}`)) reread.current();
      if (e.name !== "trial" || e.data.experimentId !== experiment) return;
      const one = withHp(e.data);
      fresh.set(one.id, one);
      if (wanted.length > 0) summaries ??= setTimeout(() => ((summaries = undefined), reread.current()), 3000);
      due ||= requestAnimationFrame(() => {
        due = 0;
        const changed = fresh;
        fresh = new Map();
        const old = rows.peek();
        if (!old) return;
        const next = old.map((r) => {
          const c = changed.get(r.id);
          if (!c) return r;
          changed.delete(r.id);
          return r.metrics ? { ...c, metrics: r.metrics } : c;
        });
        rows.value = changed.size > 0 ? [...next, ...changed.values()] : next;
      });
    });
    return () => {
      stop();
      cancelAnimationFrame(due);
      clearTimeout(summaries);
    };
  }, [key]);
  useSignalEffect(() => {
    if (returns.value > 0) again();
  });
  return { rows, first, now, again, rowsAt };
}

const namesOf = (all: readonly MetricInfo[]): string => all.map((m) => `${m.group}.${m.name} ${m.kind}`).join("\n");

/** The metrics of an experiment. `known` says whether the list was read. */
export function useMetrics(experiment: number, when: Promise<void> = atOnce): { metrics: Signal<MetricInfo[]>; known: Signal<boolean>; again: () => void } {
  const metrics = useSignal<MetricInfo[]>([]);
  const known = useSignal(false);
  const { now, again } = useRead(`metrics ${experiment}`, (signal) =>
    experiment ? when.then(() => get<MetricList>(`/troupe/v1/experiments/${experiment}/metrics`, {}, signal)) : Promise.resolve({ metrics: [] }),
  );
  useAtOnce(() => {
    if (now.value.state === "ready" && namesOf(now.value.value.metrics) !== namesOf(metrics.peek())) metrics.value = now.value.value.metrics; // later reports must not move what is drawn
    known.value = now.value.state !== "loading";
  });
  // A new search has no metrics yet, and more are reported later.
  useEffect(() => {
    if (!experiment) return;
    let due: ReturnType<typeof setTimeout> | undefined;
    const stop = listen([`experiment/${experiment}`], () => {
      due ??= setTimeout(() => ((due = undefined), again()), metrics.peek().length === 0 ? 1000 : 10_000);
    });
    return () => {
      stop();
      clearTimeout(due);
    };
  }, [experiment]);
  return { metrics, known, again };
}

/** All hyperparameters of the trials, by name. */
export function useHparams(rows: readonly Row[] | null): string[] {
  const names = useRef<string[]>([]);
  return useMemo(() => {
    const all = new Set<string>();
    for (const r of rows ?? []) for (const k of Object.keys(r.hp)) all.add(k);
    const next = Array.from(all).sort();
    if (next.join("\n") !== names.current.join("\n")) names.current = next;
    return names.current;
  }, [rows]);
}

const fewHparams = 6;

/** The hyperparameters that are shown where the address names no columns. Of many these are the first that vary. */
export function shownHparams(hparams: string[], rows: readonly Row[] | null): string[] {
  if (hparams.length <= fewHparams) return hparams;
  return hparams.filter((h) => new Set((rows ?? []).map((t) => JSON.stringify(t.hp[h]))).size > 1).slice(0, fewHparams);
}

/** The columns of the grid. `goals` are the metrics of the search; several of them are columns each, because no trial is the best in
 *  all. */
export function trialColumns(hparams: string[], metrics: readonly MetricInfo[], goals: readonly string[], shown = hparams): Column<Row>[] {
  const one = goals.length < 2;
  const many = one ? [] : goals.map((name) => ({ group: "validation", name }));
  const numeric = metrics.filter((m) => m.kind === "number" && !many.some((g) => g.group === m.group && g.name === m.name));
  const names = new Set(metrics.map((m) => `${m.group}.${m.name}`));
  const of = (m: Pick<MetricInfo, "group" | "name">, usual: boolean): Column<Row>[] =>
    // Where a metric has the name that is the key for another metric's lowest value, the key means that metric.
    (["last", "min", "max"] as const).filter((how) => how === "last" || !names.has(`${m.group}.${m.name}.${how}`)).map((how) => ({
      key: how === "last" ? `m.${m.group}.${m.name}` : `m.${m.group}.${m.name}.${how}`,
      title: `${nameOf(m.name)} (${m.group}, ${how})`,
      value: (t) => number(t.metrics?.[`${m.group}.${m.name}`]?.[how]),
      usual: usual && how === "last",
      width: 140,
    }));
  return [
    { key: "id", title: "Trial", value: (t) => t.id, width: 84 },
    { key: "best", title: one && goals[0] ? `Best ${nameOf(goals[0])}` : "Best", value: (t) => number(t.best?.metric), usual: one, width: 120 },
    ...many.flatMap((m) => of(m, true)),
    { key: "state", title: "State", value: (t) => state(t.state), show: (t) => <State of={t.state} />, width: 120 },
    { key: "latest", title: "Latest", value: (t) => number(t.latest?.metric), usual: one, width: 100 },
    { key: "steps", title: "Steps", value: (t) => t.totalBatches, width: 80 },
    ...hparams.map((h) => ({ key: `hp.${h}`, title: h, value: (t: Row) => asChoice(t.hp[h]), usual: shown.includes(h), width: 110 })),
    { key: "restarts", title: "Restarts", value: (t) => t.restarts, width: 100 },
    { key: "agent", title: "Agent", value: (t) => t.agents.join(" "), width: 110 },
    { key: "started", title: "Started", value: (t) => t.startTime, show: (t) => <Time at={t.startTime} />, usual: false, width: 190 },
    { key: "duration", title: "Duration", value: duration, show: (t) => span(duration(t)), width: 110 },
    { key: "why", title: "Why it ended", value: (t) => t.stop?.why ?? t.why, show: (t) => <span title={clean(t.stop?.why ?? t.why)}>{clean(t.stop?.why ?? t.why)}</span>, width: 260 },
    ...numeric.flatMap((m) => of(m, false)),
  ];
}

/** The metrics that keys of columns, such as "m.training.loss.min", name. Only their summaries are asked for. */
export function namedMetrics(keys: readonly string[], filter: string, known: readonly MetricInfo[]): string[] {
  const parsed = parse(filter);
  // An unfinished filter names the same columns as before.
  const inFilter = parsed.ok ? parsed.conditions.map((c) => c.key) : filter.split(/\s+/).map((word) => /^[^=<>!~]*/.exec(word)![0]);
  const names = new Set(known.map((m) => `${m.group}.${m.name}`));
  const all = new Set<string>();
  for (const key of [...keys.map((k) => k.replace(/^-/, "")), ...inFilter]) {
    if (!key.startsWith("m.")) continue;
    const whole = key.slice(2);
    const bare = whole.replace(/\.(?:min|max|last)$/, "");
    if (names.size === 0) all.add(bare);
    else for (const one of [whole, bare]) if (names.has(one)) all.add(one);
  }
  return Array.from(all).filter(askable).sort();
}

/** Whether a text is the name of a metric with its group. */
export const askable = (metric: string): boolean => named(metric).group !== "";
