// Learning curves of some trials, with the controls that change how these are drawn. The address holds all of it.

import { signal, useComputed, useSignal, useSignalEffect, type Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { get, isUnknown, type MetricInfo, type Series, type SeriesLine, type Trial } from "./api";
import { Chart, type Drawn } from "./chart";
import { Ends, endsOf } from "./ends";
import { KeptInput } from "./kept_input";
import { listen, returns } from "./live";
import { drawn as newest, newestFirst } from "./newest";
import { params, pastAt, set } from "./router";
import { looks, looksOf } from "./scales";
import { axisOf, metricAxes, parts, rangeOf, seriesPath, seriesQuery } from "./queries";
import { restartsOver, type Mark } from "./restarts";
import { isTopic } from "./topics";
import { appended, band, beyond, clipped, smoothed, type Fresh } from "./smooth";
import { clean, flat, metricOf, nameOf, number, short, csv, worded } from "./text";
import { Failed, NoSuch, save, useRead } from "./ui";
import { hovered } from "./hover";

export interface Curve {
  label?: string; // name of a line that is not a trial
  trial: number;
  row: number;
  count: number;
  x: number[];
  y: number[];
}

function numbers(list: (number | string)[]): number[] {
  for (let i = 0; i < list.length; ++i) if (typeof list[i] !== "number") return list.map((v) => number(v) ?? NaN);
  return list as number[];
}
const curve = (s: SeriesLine): Curve => ({ trial: s.trial, row: s.row, count: s.count, x: numbers(s.x), y: numbers(s.y) });

const mostTrials = 1000; // limit of the trials whose curves the server gives in one answer
const most = 2000; // limit of the drawn points of a curve; above it the curve is thinned out again

/** The curves of one metric, kept up to date. */
export function useSeries(metric: string, of: { experiment?: number; trials?: number[] }, x: string, range: [number, number] | null, experiments: number[], past = pastAt.value) {
  const lines = useSignal<Curve[] | null>(null);
  const fault = useSignal<unknown>(null);
  const turn = useRef(0);
  const meanwhile = useRef<Fresh[] | null>(null); // points that the stream delivered during a read, whose answer may be older
  const { group, name } = parts(metric);
  const who = of.experiment ? `experiment=${of.experiment}` : `trials=${(of.trials ?? []).join(",")}`;
  const query = seriesQuery(metric, of, x, range, past);
  const { points } = query;
  const key = `${metric}|${who}|${x}|${range?.join("..") ?? ""}|${points}|${past}`;
  const read = () => {
    if (!group || (!of.experiment && !of.trials?.length)) {
      lines.value = [];
      return;
    }
    const mine = ++turn.current;
    meanwhile.current = [];
    get<Series>(seriesPath, query).then(
      (s) => {
        if (mine !== turn.current) return;
        fault.value = null;
        lines.value = (meanwhile.current ?? []).reduce<Curve[]>(appended, s.series.map(curve));
        meanwhile.current = null;
      },
      (why: unknown) => {
        if (mine !== turn.current) return;
        fault.value = why;
        meanwhile.current = null;
      },
    );
  };
  const before = useRef("");
  useLayoutEffect(() => {
    // The old picture stays while the same curves are read for another moment.
    const same = key.slice(0, key.lastIndexOf("|"));
    if (before.current !== same) lines.value = null;
    before.current = same;
    fault.value = null;
    read();
    return () => void ++turn.current;
  }, [key]);
  useSignalEffect(() => {
    if (returns.value > 0) read();
  });
  // The stream delivers new points, whose x is known. Where the X axis is another one, the curves are read again, at most every two
  // seconds.
  useEffect(() => {
    if (!group || past > 0) return;
    let pending = new Map<number, { row: number; x: number[]; y: number[] }>();
    let due = 0;
    let reread: ReturnType<typeof setTimeout> | undefined;
    const wanted = of.trials ? new Set(of.trials) : null;
    const later = () => {
      reread ??= setTimeout(() => {
        reread = undefined;
        if (meanwhile.current) later(); // the answer of the running read is shown first
        else read();
      }, 2000);
    };
    const newest = new Map<number, number>(); // the newest step of each trial
    let heard = false;
    const flush = () => {
      due = 0;
      const now = lines.peek();
      if (!now) return;
      const all = pending;
      pending = new Map();
      const next = now.map((line) => {
        const p = all.get(line.trial);
        all.delete(line.trial);
        if (!p || p.row <= line.row) return line;
        const last = line.x[line.x.length - 1] ?? -Infinity;
        let i = 0;
        while (i < p.x.length && p.x[i]! <= last) ++i;
        if (i > 0) later(); // the run has gone back to an earlier step, so that later reports of the former run do not count any more
        let nx = line.x.concat(p.x.slice(i));
        let ny = line.y.concat(p.y.slice(i));
        if (nx.length > most) [nx, ny] = thinned(nx, ny, points);
        return { trial: line.trial, row: p.row, count: line.count + p.x.length, x: nx, y: ny };
      });
      for (const [trial, p] of all) if (!wanted || wanted.has(trial)) next.push({ trial, row: p.row, count: p.x.length, x: p.x, y: p.y });
      lines.value = next;
    };
    // A metric whose name cannot be a topic is read again when the trials change.
    const topic = (e: number) => `series/${e}/${metric.replace(".", "/")}`;
    const stop = listen(
      experiments.map((e) => (isTopic(topic(e)) ? topic(e) : `experiment/${e}`)),
      (e) => {
        if (e.name === "lost") return meanwhile.current ? later() : read();
        if (e.name === "trial" && !isTopic(topic(e.data.experimentId))) return later();
        if (e.name !== "points" || e.data.group !== group || e.data.metric !== name) return;
        const trial = e.data.trial;
        if (wanted && !wanted.has(trial)) return;
        // Points between the first read and the beginning of the stream are in neither, so that the first message causes one more read.
        if (!heard || range || (x !== "step" && x !== "time")) later();
        heard = true;
        if (range || (x !== "step" && x !== "time")) return;
        const before = newest.get(trial) ?? -Infinity;
        newest.set(trial, e.data.steps[e.data.steps.length - 1] ?? before);
        if (e.data.steps[0]! < before || (e.data.steps[0] === before && before > 0)) later(); // a later value of a step replaces the one before
        const p = pending.get(trial) ?? { row: 0, x: [], y: [] };
        if (e.data.row <= p.row) return; // two streams report this point
        const fresh = { trial, row: e.data.row, x: x === "step" ? e.data.steps : e.data.at, y: numbers(e.data.y) };
        meanwhile.current?.push(fresh);
        p.x.push(...fresh.x);
        p.y.push(...fresh.y);
        p.row = fresh.row;
        pending.set(trial, p);
        due ||= requestAnimationFrame(flush);
      },
    );
    return () => {
      stop();
      cancelAnimationFrame(due);
      clearTimeout(reread);
    };
  }, [key, experiments.join(",")]);
  return { lines, fault, again: read };
}

/** Chooses points as the server does: the first, the last, the lowest and the highest of each bucket. */
export function thinned(x: number[], y: number[], to: number): [number[], number[]] {
  const buckets = Math.max(1, Math.floor(to / 5));
  const keep = new Set<number>();
  for (let b = 0; b < buckets; ++b) {
    const from = Math.floor((b * x.length) / buckets);
    const end = Math.floor(((b + 1) * x.length) / buckets);
    let low = -1;
    let high = -1;
    let odd = -1;
    for (let i = from; i < end; ++i) {
      if (!Number.isFinite(y[i]!)) odd = odd < 0 ? i : odd;
      else {
        if (low < 0 || y[i]! < y[low]!) low = i;
        if (high < 0 || y[i]! > y[high]!) high = i;
      }
    }
    for (const i of [from, low, high, odd, end - 1]) if (i >= 0 && i < x.length) keep.add(i);
  }
  const all = Array.from(keep).sort((a, b) => a - b);
  return [all.map((i) => x[i]!), all.map((i) => y[i]!)];
}

export interface CurvesProps {
  trials: readonly Trial[] | null; // gives names, groups and colours; null while they are not loaded
  only?: number[]; // where set, only these trials
  experiment?: number; // where set, all trials of this experiment
  experiments: number[]; // the experiments whose points are followed
  metrics: readonly MetricInfo[];
  metric: string; // used where the address names none; "" means the first metric
  height?: number;
  marks?: Mark[]; // restarts of the runs of the only trial
  at?: number; // the moment at which there are these trials; where it is not set, that of the address
}

/** Whether a refusal may be due to a trial that does not exist. The list of trials, which is still loading, will tell which one. */
const unsure = (props: CurvesProps, why: unknown): boolean => props.trials === null && props.only !== undefined && isUnknown(why);

/** The marks of a chart over this axis. Where the axis is a metric, the steps of the restarts are looked up in it. */
function useMarks(props: CurvesProps, metric: string, x: string): Mark[] | undefined {
  const { group } = parts(metric);
  const has = (name: string) => props.metrics.some((m) => m.group === group && m.name === name);
  const over = x === "epoch" ? ["epoch", "epochs"].find(has) : x.startsWith("metric:") ? x.slice("metric:".length) : undefined;
  const asked = over !== undefined && props.only && props.marks?.length ? over : undefined;
  const { now } = useRead(`marks ${props.only?.join()} ${group} ${asked === undefined ? "" : `.${asked}`} ${props.marks?.length}`, async (signal) =>
    asked === undefined ? null : await get<Series>(seriesPath, seriesQuery(`${group}.${asked}`, { trials: props.only! }, "step", null, 0), signal),
  );
  const line = now.value.state === "ready" ? now.value.value?.series[0] : undefined;
  return useMemo(() => (asked === undefined ? props.marks?.filter((m) => m.x === x) : line ? restartsOver(x, props.marks!, curve(line)) : []), [props.marks, x, asked, line]);
}

const shownAtOnce = 12;

/** The charts of the other metrics: first the pinned ones, then the newest that the search finds. Each is made when it comes into view. */
export function MoreCurves(props: CurvesProps) {
  const p = params.value;
  const main = p.text("metric", props.metric);
  const pins = p.list("pin");
  const look = p.text("mq");
  const all = useMemo(() => newestFirst(props.metrics), [props.metrics]);
  const others = all.filter((m) => m !== main);
  if (others.length === 0) return null;
  const { shown, found } = newest(others, pins, look, shownAtOnce);
  return (
    <section class="more" data-testid="more-metrics" data-metrics={others.length} data-found={found}>
      <h2>More metrics</h2>
      {others.length > 3 && (
        <div class="toolbar">
          <label class="grow">
            <span>Search metrics</span>
            <input type="search" spellcheck={false} value={look} onInput={(e) => set({ mq: e.currentTarget.value }, true)} />
          </label>
          <span role="status">{found > shownAtOnce ? `the newest ${shownAtOnce} of ${found}` : `${found}`}</span>
        </div>
      )}
      <div class="grid2">
        {shown.map((m) => (
          <section key={m} data-metric={m}>
            <div class="titleline">
              <h3>
                <bdi>{clean(m)}</bdi>
              </h3>
              <button type="button" aria-pressed={pins.includes(m)} aria-label={`Pin ${clean(m)}`} onClick={() => set({ pin: pins.includes(m) ? pins.filter((x) => x !== m) : [...pins, m] })}>
                Pin
              </button>
              <button type="button" aria-label={`Enlarge ${metricOf(m)}`} onClick={(e) => enlarge(e.currentTarget, m === props.metric ? null : m)}>
                Enlarge
              </button>
            </div>
            <InView height={220}>
              <SmallCurves {...props} metric={m} />
            </InView>
          </section>
        ))}
      </div>
    </section>
  );
}

/** Makes a metric that of the large chart. The button goes with its small chart, so the choice of the large one gets the focus. */
function enlarge(button: HTMLElement, metric: string | null): void {
  set({ metric });
  button.closest("main")?.querySelector<HTMLElement>(".curves select[aria-label='Metric']")?.focus();
}

/** Whether a large chart waits for its curves. The small charts below it wait meanwhile. */
const waiting = signal(false);

/** Keeps the room of a chart, which is made when it comes into view. */
function InView(props: { height: number; children: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  const seen = useSignal(false);
  useEffect(() => {
    box.current!.style.minHeight = `${props.height}px`;
    const look = new IntersectionObserver((all) => {
      if (!all.some((x) => x.isIntersecting)) return;
      look.disconnect();
      seen.value = true;
    });
    look.observe(box.current!);
    return () => look.disconnect();
  }, []);
  const begun = useRef(false);
  begun.current ||= seen.value && !waiting.value;
  return <div ref={box}>{begun.current && props.children}</div>;
}

function SmallCurves(props: CurvesProps) {
  const p = params.value;
  const chosen = axisOf(p.text("x"));
  // A metric of another group cannot be the x of these reports.
  const x = chosen.startsWith("metric:") && !props.metrics.some((m) => chosen === `metric:${m.name}` && m.group === parts(props.metric).group) ? "step" : chosen;
  const smooth = p.number("smooth", 0, 0, 0.99);
  const { lines, fault, again } = useSeries(props.metric, props.only ? { trials: props.only } : { experiment: props.experiment! }, x, null, props.experiments);
  const drawn = useMemo(() => (lines.value ? dress(lines.value, { smooth, group: "", byId: new Map() }) : null), [lines.value, smooth]);
  const marks = useMarks(props, props.metric, x);
  if (fault.value != null && !lines.value && !unsure(props, fault.value)) return <Failed whole why={fault.value} again={again} />;
  return (
    <Chart
      name={`Learning curves: ${metricOf(props.metric)}`}
      metric={props.metric}
      lines={drawn}
      xTitle={x}
      logX={p.flag("logx")}
      logY={p.flag("logy")}
      yRange={null}
      height={220}
      marks={marks}
      whole
      numbers={lines}
      onCsv={() => save(`${props.metric}.csv`, "text/csv", curvesCsv(x, props.metric, lines.value ?? []))}
    />
  );
}

const curvesCsv = (x: string, metric: string, lines: readonly Curve[]): string => csv([["trial", x, metric], ...lines.flatMap((l) => l.x.map((v, i) => [l.trial, v, l.y[i]!] as (string | number | null)[]))]);

/** Says that the X axis in the address does not exist, and that the charts below have the usual one. */
export function UnknownAxis(props: { usual?: string }) {
  const asked = params.value.text("x");
  const x = axisOf(asked, props.usual);
  if (asked === "" || asked === x) return null;
  return <NoSuch what="X axis" asked={asked} known={["step", "time", "relative", "epoch", "metric:NAME"]} shown={x} />;
}

/** Says that the smoothing in the address is none, or is beyond what there is. */
function UnknownSmoothing(props: { shown: number }) {
  const asked = params.value.text("smooth");
  if (asked === "" || Number(asked) === props.shown) return null;
  return (
    <p class="fault" role="alert">
      There is no smoothing '<bdi>{clean(asked)}</bdi>': it is a number from 0 to 0.99. Shown is {props.shown}.
    </p>
  );
}

/** Says that the ends of the X axis in the address are none. */
export function UnknownRange() {
  const ends = ["from", "to"].map((key) => params.value.text(key));
  if (ends.every((end) => end === "") || rangeOf(ends[0]!, ends[1]!)) return null;
  return (
    <p class="fault" role="alert">
      There is no range from '<bdi>{clean(ends[0]!)}</bdi>' to '<bdi>{clean(ends[1]!)}</bdi>': both ends have to be numbers. Shown is all.
    </p>
  );
}

export function Curves(props: CurvesProps) {
  const p = params.value;
  const named = props.metrics.filter((m) => m.kind === "number").map((m) => `${m.group}.${m.name}`);
  const usual = props.metric || (named[0] ?? "");
  const wanted = p.text("metric", usual);
  const x = axisOf(p.text("x"));
  const smooth = p.number("smooth", 0, 0, 0.99);
  const logX = p.flag("logx");
  const logY = p.flag("logy");
  const clip = p.flag("clip");
  const from = p.text("from");
  const to = p.text("to");
  const range = useMemo(() => rangeOf(from, to), [from, to]);
  const { lines, fault, again } = useSeries(wanted, props.only ? { trials: props.only } : { experiment: props.experiment! }, x, range, props.experiments, props.at);
  const marks = useMarks(props, wanted, x);
  const arrived = lines.value !== null || fault.value !== null;
  useLayoutEffect(() => {
    waiting.value = !arrived;
    return () => void (waiting.value = false);
  }, [arrived]);
  const byId = useMemo(() => new Map((props.trials ?? []).map((t) => [t.id, t])), [props.trials]);
  const hparams = useMemo(() => {
    const all = new Set<string>();
    for (const t of props.trials ?? []) Object.keys(flat(t.hparams)).forEach((k) => all.add(k));
    return Array.from(all).sort();
  }, [props.trials]);
  const said = p.text("group");
  const by = !hparams.includes(said) && said.startsWith("hp.") ? said.slice(3) : said;
  const group = props.trials && !hparams.includes(by) ? "" : by;
  // While the trials are not known, nobody knows which curves belong to one group.
  const drawn: Drawn[] | null = useMemo(() => (lines.value && (group === "" || props.trials) ? dress(lines.value, { smooth, group, byId }) : null), [lines.value, smooth, group, group && byId]);
  const [yRange, outliers] = useMemo<[[number, number] | null, number]>(() => {
    const reported = clip ? (lines.value ?? []).flatMap((l) => l.y) : [];
    const ends = clipped(reported, logY);
    return [ends, ends ? beyond(reported, ends, logY) : 0];
  }, [clip, lines.value, logY]);
  const options = named.includes(wanted) || !wanted ? named : [wanted, ...named];
  const thin = lines.value?.some((l) => l.x.length < l.count) ?? false;
  const more = props.only ? 0 : (props.trials?.length ?? 0) - mostTrials;
  const axes = useMemo(() => metricAxes(x, wanted, props.metrics), [x, wanted, props.metrics]);
  const epochs = props.metrics.some((m) => m.name === "epoch" || m.name === "epochs");
  /** Drops an X axis that the reports of the other group do not have. */
  const choose = (metric: string) => {
    const has = (m: MetricInfo) => x === `metric:${m.name}` && m.group === parts(metric).group;
    const lost = x.startsWith("metric:") && !props.metrics.some(has);
    set({ metric: metric === usual ? null : metric, ...(lost ? { x: null, from: null, to: null } : {}) });
  };
  return (
    <section class="curves">
      <div class="toolbar">
        <label>
          <span>Metric</span>
          <select aria-label="Metric" value={wanted} onChange={(e) => choose(e.currentTarget.value)}>
            {options.map((m) => (
              <option key={m} value={m}>
                {metricOf(m)}
              </option>
            ))}
          </select>
        </label>
        <label>
          <span>X axis</span>
          <select aria-label="X axis" value={x} onChange={(e) => set({ x: e.currentTarget.value === "step" ? null : e.currentTarget.value, from: null, to: null })}>
            <option value="step">Step</option>
            <option value="time">Wall time</option>
            <option value="relative">Time it ran</option>
            {(epochs || x === "epoch") && <option value="epoch">Epoch</option>}
            {axes.map((key) => (
              <option key={key} value={key}>
                {nameOf(key.slice("metric:".length))}
              </option>
            ))}
          </select>
        </label>
        <label>
          <span>Smoothing</span>
          <KeptInput type="number" min={0} max={0.99} step={0.01} value={smooth} commit={(text) => set({ smooth: Math.min(0.99, Math.max(0, Number(text) || 0)) || null })} />
        </label>
        <label>
          <span>Group by</span>
          <select aria-label="Group by" value={group} onChange={(e) => set({ group: e.currentTarget.value })}>
            <option value="">—</option>
            {hparams.map((h) => (
              <option key={h} value={h}>
                {nameOf(h)}
              </option>
            ))}
          </select>
        </label>
        <label class="check">
          <input type="checkbox" checked={logX} onChange={(e) => set({ logx: e.currentTarget.checked })} /> <span>Logarithmic X</span>
        </label>
        <label class="check">
          <input type="checkbox" checked={logY} onChange={(e) => set({ logy: e.currentTarget.checked })} /> <span>Logarithmic Y</span>
        </label>
        <label class="check">
          <input type="checkbox" checked={clip} onChange={(e) => set({ clip: e.currentTarget.checked })} /> <span>Clip outliers</span>
        </label>
        <Ends time={x === "time"} range={range} whole={() => endsOf((lines.value ?? []).map((l) => l.x))} />
      </div>
      <UnknownAxis />
      <UnknownSmoothing shown={smooth} />
      <UnknownRange />
      {group !== by && (
        <p class="fault" role="alert">
          There is no hyperparameter '<bdi>{clean(by)}</bdi>' to group by.
        </p>
      )}
      {fault.value != null && !lines.value && !unsure(props, fault.value) ? (
        <Failed why={fault.value} again={again} />
      ) : (
        <Chart
          name={`Learning curves: ${metricOf(wanted)}`}
          metric={wanted}
          lines={drawn}
          xTitle={x}
          logX={logX}
          logY={logY}
          yRange={yRange}
          xRange={range}
          height={props.height ?? 420}
          onZoom={(a, b) => set({ from: a, to: b })}
          marks={marks}
          whole={range === null}
          none={
            range ? (
              <>
                No report of <bdi>{clean(wanted)}</bdi> between these ends: Whole range shows all.
              </>
            ) : /^(?:epoch$|metric:)/.test(x) ? (
              <>
                No report of <bdi>{metricOf(wanted)}</bdi> has <bdi>{nameOf(x.replace(/^metric:/, ""))}</bdi> beside it.
              </>
            ) : undefined
          }
          note={[
            ...(more > 0 ? [`the best ${mostTrials} of ${mostTrials + more} trials`] : []),
            ...(outliers > 0 ? [`${outliers} ${thin ? "drawn" : "reported"} ${outliers === 1 ? "value lies" : "values lie"} beyond the ends of the Y axis`] : []),
            ...(thin ? ["thinned out: the first, last, lowest and highest report of each stretch"] : []),
          ].join("; ")}
          numbers={lines}
          onCsv={() =>
            save(`${wanted}.csv`, "text/csv", curvesCsv(x, wanted, lines.value ?? []))
          }
        />
      )}
    </section>
  );
}

function dress(lines: Curve[], how: { smooth: number; group: string; byId: Map<number, Trial> }): Drawn[] {
  if (how.group) {
    const groups = new Map<string, Curve[]>();
    for (const l of lines) {
      const t = how.byId.get(l.trial);
      const key = t ? worded(flat(t.hparams)[how.group]) : "—";
      groups.set(key, [...(groups.get(key) ?? []), l]);
    }
    return Array.from(groups)
      .sort(([a], [b]) => (Number(a) - Number(b) || a.localeCompare(b)) as number)
      .map(([key, list], i) => {
        const b = band(list.map((l) => ({ x: l.x, y: smoothed(l.y, how.smooth) })));
        return { id: `${how.group}=${key}`, label: `${how.group}=${key} (${list.length})`, group: [how.group, key, list.length], x: b.x, y: b.mean, ...looks(i), band: { low: b.low, high: b.high } };
      });
  }
  const shown = lines.filter((l) => l.x.length > 0);
  const look = looksOf(shown.map((l) => l.trial));
  return shown.map((l) => ({
    id: String(l.trial),
    label: `trial ${l.trial}`,
    x: l.x,
    y: smoothed(l.y, how.smooth),
    ...looks(look.get(l.trial)!),
    ...(how.smooth > 0 ? { raw: l.y } : {}),
  }));
}

/** The names of a chart's curves. The curve whose name is under the pointer is marked in the chart. */
export function Legend(props: { lines: Drawn[] }) {
  if (props.lines.length > 30) return null;
  return (
    <ul class="legend">
      {props.lines.map((l) => (
        <li key={l.id} class={hovered.value === l.id ? "hovered" : ""} onMouseEnter={() => (hovered.value = l.id)} onMouseLeave={() => (hovered.value = null)}>
          <svg viewBox="0 0 24 8" aria-hidden="true">
            <line x1="0" x2="24" y1="4" y2="4" stroke={l.colour} stroke-width="2.5" stroke-dasharray={l.dash.join(" ")} />
          </svg>
          {l.group ? (
            <>
              <bdi>{clean(l.group[0])}</bdi>=<bdi>{clean(l.group[1])}</bdi> ({l.group[2]})
            </>
          ) : (
            clean(l.label)
          )}
        </li>
      ))}
    </ul>
  );
}

/** The numbers of the curves, as the table of a chart. */
export function NumbersTable(props: { lines: Signal<Curve[] | null> }) {
  const rows = useComputed(() => props.lines.value ?? []);
  const cell = (v: number | undefined) => short(v, 6);
  return (
    <div class="tablebox" tabIndex={0} role="group" aria-label="Curves as numbers, scrolls">
      <div role="grid" class="plain" aria-label="Curves as numbers" data-rows={rows.value.length} data-all={rows.value.length}>
        <div role="row">
          {["trial", "points", "first", "last", "min", "max"].map((c) => (
            <span role="columnheader" data-col={c} key={c}>
              {c}
            </span>
          ))}
        </div>
        {rows.value.slice(0, 1000).map((l) => {
          const finite = l.y.filter(Number.isFinite);
          const ends = (of: (a: number, b: number) => number) => (finite.length > 0 ? cell(finite.reduce(of)) : l.y.length > 0 ? "NaN" : "");
          return (
            <div role="row" data-id={l.trial} key={l.trial}>
              <span role="gridcell" data-col="trial">
                {l.label ?? l.trial}
              </span>
              <span role="gridcell" data-col="points">
                {l.count}
              </span>
              <span role="gridcell" data-col="first">
                {cell(l.y[0])}
              </span>
              <span role="gridcell" data-col="last">
                {cell(l.y[l.y.length - 1])}
              </span>
              <span role="gridcell" data-col="min">
                {ends((a, b) => Math.min(a, b))}
              </span>
              <span role="gridcell" data-col="max">
                {ends((a, b) => Math.max(a, b))}
              </span>
            </div>
          );
        })}
      </div>
    </div>
  );
}
