import { useSignalEffect } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { get, ifThere, type Experiment, type MetricInfo, type Trial } from "../api";
import { usePage } from "../page";
import { useChanges } from "../changes";
import { Curves } from "../curves";
import { goals, mainMetric, several } from "../goals";
import { hovered } from "../hover";
import { listen, returns } from "../live";
import { goalsFirst } from "../newest";
import { useNoMoment } from "../past";
import { params, set } from "../router";
import { elements } from "../topics";
import { askable } from "../trials";
import { clean, csv, flat, metricOf, number, short, worded } from "../text";
import { CopyLink, Empty, Failed, Link, save, useRead, isId } from "../ui";
import type { GetExperimentResponse, GetTrialResponse, MetricList, TrialProgressList } from "../api_types";

const most = 100;
const mostMetrics = 200; // limit of the metrics side by side
const searchable = 12; // from more metrics than this on, the table has a search

interface View {
  trials: (Trial & { config: Record<string, unknown> })[];
  experiments: Experiment[];
  metrics: MetricInfo[];
  metric: string;
  first: string[]; // the metrics of the searches, which come before the others
  open: number[]; // experiments of the address that have not ended, so that their best trial may change
  left: string[]; // the parts of the address that are not shown, with the reasons
}

type Summaries = ReadonlyMap<number, Trial>;

/** The trials of the experiments by id, with the summaries of these metrics. */
async function summaries(experiments: readonly number[], metrics: readonly string[], signal: AbortSignal): Promise<Summaries> {
  const lists = await Promise.all(experiments.map((id) => get<TrialProgressList>(`/troupe/v1/experiments/${id}/trials`, { metrics: elements(metrics) }, signal)));
  return new Map(lists.flatMap((l) => l.trials).map((t) => [t.id, t]));
}

/** The metrics that are shown side by side: the first that the search finds. */
const side = (v: Pick<View, "metrics" | "first">, look: string): string[] => goalsFirst(v.metrics, v.first, look).slice(0, mostMetrics).filter(askable);

/** The ids of a list of the address, and those of its parts that are none. */
function idsOf(name: "trials" | "experiments"): { ids: number[]; others: string[] } {
  const all = params.value.list(name);
  const id = (text: string) => (/^\d+$/.test(text) && isId(Number(text)) ? Number(text) : null);
  return { ids: Array.from(new Set(all.flatMap((x) => id(x) ?? []))), others: all.filter((x) => id(x) === null).map((x) => `'${x}' is not the id of ${name === "trials" ? "a trial" : "an experiment"}`) };
}

async function read(trials: number[], experiments: number[], signal: AbortSignal): Promise<View> {
  const one = (id: number) => get<GetExperimentResponse>(`/api/v1/experiments/${id}`, {}, signal).then((x) => x.experiment);
  const known = new Map<number, Experiment>();
  // Deleted experiments are named, and the others are compared.
  for (const e of await Promise.all(experiments.map((id) => ifThere(one(id))))) if (e) known.set(e.id, e);
  const lacks = (e: Experiment | undefined) => (!e ? "is not there" : several(e) ? "has several metrics, and no best trial" : "has no validation yet");
  const left = experiments.filter((e) => !known.get(e)?.bestTrialId).map((e) => `experiment ${e} ${lacks(known.get(e))}`);
  const asked = Array.from(new Set(trials.concat(experiments.flatMap((e) => known.get(e)?.bestTrialId ?? []))));
  if (asked.length > most) left.push(`the first ${most} of ${asked.length} trials are shown`);
  const tried = asked.slice(0, most);
  const ownerOf = await Promise.all(tried.map((id) => ifThere(get<GetTrialResponse>(`/api/v1/trials/${id}`, {}, signal).then((x) => x.trial.experimentId))));
  tried.forEach((id, i) => ownerOf[i] === null && left.push(`trial ${id} is not there`));
  const ids = tried.filter((_, i) => ownerOf[i] !== null);
  const owners = ownerOf.filter((id) => id !== null);
  const missing = Array.from(new Set(owners)).filter((id) => !known.has(id));
  for (const e of await Promise.all(missing.map(one))) known.set(e.id, e);
  const all = Array.from(new Set(owners));
  const infos = await Promise.all(all.map((id) => get<MetricList>(`/troupe/v1/experiments/${id}/metrics`, {}, signal)));
  const byName = new Map<string, MetricInfo>();
  for (const info of infos)
    for (const m of info.metrics) {
      const name = `${m.group}.${m.name}`;
      const known = byName.get(name);
      if (!known || Date.parse(known.lastReport) < Date.parse(m.lastReport)) byName.set(name, m);
    }
  const metrics = Array.from(byName.values());
  const first = Array.from(new Set(all.flatMap((id) => goals(known.get(id)!).map((m) => `validation.${m}`))));
  const byId = await summaries(all, side({ metrics, first }, ""), signal);
  return {
    trials: ids.flatMap((id) => {
      const t = byId.get(id);
      return t ? [{ ...t, config: known.get(t.experimentId)?.config ?? {} }] : [];
    }),
    experiments: all.map((id) => known.get(id)!),
    metrics,
    metric: all.length > 0 ? mainMetric(known.get(all[0]!)!) : "",
    first,
    open: experiments.filter((e) => known.has(e) && !known.get(e)!.endTime),
    left,
  };
}

export default function Compare() {
  const [{ ids: trials, others: odd }, { ids: experiments, others: odder }] = [idsOf("trials"), idsOf("experiments")];
  const key = `compare ${trials.join()} ${experiments.join()}`;
  const { now, again } = useRead(key, (signal) => read(trials, experiments, signal));
  useNoMoment();
  const v = now.value;
  const running = v.state === "ready" ? v.value.open.concat(v.value.trials.filter((t) => !t.endTime).map((t) => t.experimentId)) : [];
  useChanges(
    Array.from(new Set(running)).map((e) => `experiment/${e}`),
    3000,
    again,
  );
  // What is deleted leaves the comparison, also where all has ended.
  const of = v.state === "ready" ? v.value.experiments : [];
  useEffect(() => {
    if (of.length === 0) return;
    const counts = new Map(of.map((e) => [e.id, e.numTrials]));
    return listen(["experiments"], (e) => {
      const left = e.name === "gone" ? counts.has(e.data.experiment) : e.name === "experiment" && e.data.numTrials < (counts.get(e.data.id) ?? 0);
      if (left) again();
    });
  }, [of]);
  useSignalEffect(() => {
    if (returns.value > 0) again(); // something may have been deleted meanwhile
  });
  usePage("Compare", v.state === "error" ? "error" : v.state === "loading" ? "loading" : v.value.trials.length === 0 ? "empty" : "ready");
  return (
    <>
      <div class="titleline">
        <h1 tabIndex={-1}>Compare</h1>
        <div class="buttons">
          <CopyLink />
        </div>
      </div>
      {v.state === "error" && <Failed why={v.why} again={again} />}
      {odd.concat(odder).map((text, i) => (
        <p key={i} class="fault" role="alert">
          <bdi>{clean(text)}</bdi>, so it is left out.
        </p>
      ))}
      {v.state === "ready" && (v.value.trials.length === 0 ? <Empty>Nothing to compare: select trials or experiments in a grid and press Compare. {v.value.left.join("; ")}</Empty> : <Side {...v.value} />)}
    </>
  );
}

/** A value as text. In a configuration, null means that nothing is set; as a hyperparameter it is a choice like others. */
const told = (key: string, x: unknown): string => worded(key.startsWith("config.") ? (x ?? undefined) : x);

function Side(props: View) {
  const { trials } = props;
  const p = params.value;
  const only = p.text("only", "1") !== "0";
  const baseline = Number(p.text("baseline", String(trials[0]!.id)));
  const named = trials.find((t) => t.id === baseline);
  const base = named ?? trials[0]!;
  const ids = useMemo(() => trials.map((t) => t.id), [trials]);
  const facts = useMemo(
    () =>
      trials.map((t) => {
        const { hyperparameters: _, ...config } = t.config;
        return { ...Object.fromEntries(Object.entries(flat(t.hparams)).map(([k, v]) => [`hp.${k}`, v])), ...(trials.some((o) => o.experimentId !== t.experimentId) ? flat(config, "config.") : {}) } as Record<string, unknown>;
      }),
    [trials],
  );
  const keys = Array.from(new Set(facts.flatMap((f) => Object.keys(f)))).sort();
  const differs = (k: string) => new Set(facts.map((f) => JSON.stringify(f[k] ?? null))).size > 1;
  const shown = [...keys.filter(differs), ...(only ? [] : keys.filter((k) => !differs(k)))];
  const look = p.text("mq");
  const numbers = props.metrics.filter((m) => m.kind === "number").length;
  const found = goalsFirst(props.metrics, props.first, look).length;
  const metrics = side(props, look);
  // Metrics that only the search finds are read when it does.
  const usual = useMemo(() => new Set(side(props, "")), [props.metrics, props.first]);
  const more = metrics.filter((m) => !usual.has(m));
  const of = props.experiments.map((e) => e.id);
  const { now, again } = useRead(`side ${of.join()} ${more.join("\n")}`, async (signal): Promise<Summaries> => (more.length > 0 ? summaries(of, more, signal) : new Map()));
  useEffect(() => {
    if (more.length > 0) again();
  }, [trials]);
  const summed = now.value.state === "ready" ? now.value.value : null;
  const last = (t: Trial, m: string) => number((usual.has(m) ? t : summed?.get(t.id))?.metrics?.[m]?.last);
  const head = (
    <tr>
      <th scope="col">Key</th>
      {trials.map((t) => (
        <th scope="col" key={t.id} class={hovered.value === String(t.id) ? "hovered" : ""} onMouseEnter={() => (hovered.value = String(t.id))} onMouseLeave={() => (hovered.value = null)}>
          <Link to={`/trials/${t.id}`}>trial {t.id}</Link>
          {t.id === base.id && <small> baseline</small>}
        </th>
      ))}
    </tr>
  );
  return (
    <>
      {props.left.length > 0 && <p class="hint">{props.left.join("; ")}.</p>}
      {!named && (
        <p class="fault" role="alert">
          <bdi>{clean(`baseline=${p.text("baseline", "")}`)}</bdi> is not one of these trials, so trial {base.id} is the baseline.
        </p>
      )}
      <Curves trials={trials} only={ids} experiments={props.experiments.map((e) => e.id)} metrics={props.metrics} metric={props.metric} height={420} />
      <div class="toolbar">
        <button type="button" aria-pressed={only} onClick={() => set({ only: only ? "0" : null })}>
          Only differences
        </button>
        <label>
          <span>Baseline</span>
          <select aria-label="Baseline" value={base.id} onChange={(e) => set({ baseline: e.currentTarget.value === String(trials[0]!.id) ? null : e.currentTarget.value })}>
            {trials.map((t) => (
              <option key={t.id} value={t.id}>
                trial {t.id}
              </option>
            ))}
          </select>
        </label>
        <button type="button" onClick={() => save("compare.csv", "text/csv", csv([["key", ...ids], ...shown.map((k) => [k, ...facts.map((f) => (f[k] === undefined ? null : typeof f[k] === "number" ? (f[k] as number) : told(k, f[k])))])]))}>
          Download CSV
        </button>
      </div>
      <section>
        <h2>What differs</h2>
        <div class="tablebox" data-testid="differences" tabIndex={0} role="group" aria-label="What differs, scrolls">
          <table>
            <thead>{head}</thead>
            <tbody>
              {shown.map((k) => (
                <tr key={k} data-key={k} class={differs(k) ? "differs" : ""}>
                  <th scope="row">{clean(k)}</th>
                  {facts.map((f, i) => (
                    <td key={i} class={JSON.stringify(f[k] ?? null) !== JSON.stringify(facts[trials.indexOf(base)]?.[k] ?? null) ? "changed" : ""}>
                      {clean(told(k, f[k]))}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
          {shown.length === 0 && <Empty>Nothing differs.</Empty>}
        </div>
      </section>
      <section>
        <h2>Metrics side by side</h2>
        {(numbers > searchable || look !== "") && (
          <div class="toolbar">
            <label class="grow">
              <span>Search metrics</span>
              <input type="search" spellcheck={false} value={look} onInput={(e) => set({ mq: e.currentTarget.value }, true)} />
            </label>
            <span role="status">{found > metrics.length ? `the first ${metrics.length} of ${found}` : `${found}`}</span>
          </div>
        )}
        <div class="tablebox" tabIndex={0} role="group" aria-label="Metrics side by side, scrolls">
          <table data-testid="metrics-side" data-rows={metrics.length} data-state={more.length === 0 || summed ? "ready" : "loading"}>
            <thead>{head}</thead>
            <tbody>
              {metrics.map((m) => {
                const at = (t: Trial) => last(t, m);
                const zero = at(base);
                return (
                  <tr key={m} data-key={m}>
                    <th scope="row">
                      <bdi>{metricOf(m)}</bdi> (last)
                    </th>
                    {trials.map((t) => {
                      const x = at(t);
                      const d = x !== null && zero !== null && t.id !== base.id ? x - zero : null;
                      return (
                        <td key={t.id} class="num">
                          {short(x, 6)}
                          {d !== null && Number.isFinite(d) && <small> {d >= 0 ? "+" : ""}{short(d, 6)}</small>}
                        </td>
                      );
                    })}
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
        <p>
          <button type="button" onClick={() => save("metrics.csv", "text/csv", csv([["metric", ...ids], ...metrics.map((m) => [m, ...trials.map((t) => last(t, m))])]))}>
            Download CSV
          </button>
        </p>
      </section>
    </>
  );
}
