import { useMemo, useRef } from "preact/hooks";
import { get, type Experiment } from "../api";
import { useChanges } from "../changes";
import { brushes as kept } from "../command";
import { asNumber } from "../filter";
import { Files, saveBars } from "../figure";
import { goals, isEven, several } from "../goals";
import { Grid } from "../grid";
import { hovered } from "../hover";
import { pastTime } from "../past";
import { importanceQuery } from "../queries";
import { params, pastAt, set } from "../router";
import { clean, metricOf, nameOf, number, short } from "../text";
import { addressed, between, dimension, full, noBrushes, passes, readBrushes, value, withBrushes, writeBrushes, type Brush } from "../brush";
import { Front, Heatmap, History as BestSoFar, Parallel, Scatter, Timeline } from "../plots";
import { bestSoFar } from "../spark";
import { held } from "../timeline";
import { askable, namedMetrics, trialColumns, useHparams, useMetrics, useTrials, type Row } from "../trials";
import { Empty, Failed, Link, say, useRead, useRested } from "../ui";
import { smallerIsBetter } from "./experiment";
import { ended } from "../ended";
import type { History, Importance, ParetoFront } from "../api_types";

const mostAxes = 12;
/** A part of 1 as text, in thousandths. */
const part = (x: number): string => short(Math.round(x * 1000) / 1000, 3);

const leastTrials = 8; // number of trials from which on the server computes the importance of hyperparameters

export function Analysis(props: { of: Experiment }) {
  const e = props.of;
  const { metrics, known } = useMetrics(e.id);
  const p = params.value;
  const brushText = p.text("brush");
  const brushes = useMemo(() => readBrushes(brushText), [brushText]);
  const past = pastAt.value > 0;
  const chosen = ["ax", "ay", "ac"].map((name) => p.text(name));
  const many = several(e);
  const aims = many ? goals(e).map((m) => `m.validation.${m}`) : ["best"]; // the metrics by which trials are compared
  const aim = aims[0]!;
  const important = goals(e).find((m) => m === p.text("imp")) ?? goals(e)[0] ?? "";
  const { rows, now, again } = useTrials(e.id, namedMetrics([...chosen, ...aims, ...brushes.map((b) => b.key), ...p.list("cols"), p.text("sort")], p.text("q"), metrics.value));
  const all = rows.value ?? [];
  const hps = useHparams(all);
  const passing = useMemo(() => new Set(all.filter((t) => passes(t, brushes)).map((t) => t.id)), [all, brushes]);
  const shown = useMemo(() => all.filter((t) => passing.has(t.id)), [all, passing]);
  const within = useMemo(() => kept(brushes, all), [brushes, all]);
  const empty = useMemo(() => brushes.filter((b) => all.every((t) => value(t, full(b.key)) === null)), [brushes, all]);
  const varying = useMemo(() => hps.filter((h) => new Set(all.map((t) => JSON.stringify(t.hp[h]))).size > 1), [all, hps]);
  const numeric = metrics.value.filter((m) => m.kind === "number").map((m) => `${m.group}.${m.name}`);
  const others = numeric.filter(askable).map((m) => `m.${m}`).filter((m) => !aims.includes(m));
  const keys = [...varying.map((h) => `hp.${h}`), ...aims, ...(many ? [] : ["latest"]), "steps", ...hps.filter((h) => !varying.includes(h)).map((h) => `hp.${h}`), ...others];
  const pick = (at: string, usual: string) => (keys.includes(at) ? at : usual);
  const xKey = pick(chosen[0]!, keys[0]!);
  const yKey = pick(chosen[1]!, aim);
  const cKey = pick(chosen[2]!, keys[1] ?? aim);
  const title = (k: string) => (k === "best" ? `best ${nameOf(e.searcherMetric)}` : k.startsWith("m.") ? metricOf(k.slice(2)) : nameOf(addressed(k)));
  // The heat map shows the two hyperparameters that were chosen, or else the first that vary.
  const [heatX, heatY] = Array.from(new Set([...[xKey, cKey, yKey].filter((k) => k.startsWith("hp.")), ...varying.map((h) => `hp.${h}`)]));
  const drawn = new Set([...varying.map((h) => `hp.${h}`), ...aims, xKey, yKey, cKey, ...[heatX, heatY].flatMap((k) => k ?? [])]);
  const dim = useMemo(() => new Map(Array.from(drawn).map((k) => [k, dimension(all, k, title(k), !k.startsWith("hp.") || !isEven(e, k.slice(3)))])), [all, Array.from(drawn).join("\n")]);
  const points = useMemo(() => bestSoFar(shown, smallerIsBetter(e)), [shown]);
  const onBrush = (axes: string[], fresh: (Brush | null)[]) => set({ brush: writeBrushes(withBrushes(brushes, axes, fresh)) });
  const columns = useMemo(() => trialColumns(hps, metrics.value, goals(e), hps.length > 6 ? varying.slice(0, 6) : hps), [hps, metrics.value, varying.join("\n"), pastTime.value]);
  if (now.value.state === "error" && !rows.value) return <Failed whole why={now.value.why} again={again} />;
  if (rows.value && all.length === 0) return <Empty>No trial yet.</Empty>;
  if (!rows.value) return null;
  const end = (x: number | string) => (typeof x === "number" ? short(x) : clean(x));
  const choose = (label: string, name: string, at: string) => (
    <label>
      <span>{label}</span>
      <select aria-label={label} value={at} onChange={(ev) => set({ [name]: ev.currentTarget.value })}>
        {keys.map((k) => (
          <option key={k} value={k}>
            {title(k)}
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <>
      {noBrushes(brushText).map((part, i) => (
        <p key={i} class="fault" role="alert">
          <bdi>{clean(part)}</bdi> in the address is not a range of values, and keeps nothing out. A range is KEY:FROM..TO.
        </p>
      ))}
      {brushes.length > 0 && (
        <p role="status">
          {passing.size} of {all.length} trials pass{" "}
          {brushes.map((b, i) => (
            <span key={i}>
              {i > 0 && ", "}
              <bdi>{title(full(b.key))}</bdi> <bdi>{end(b.from)}</bdi> … <bdi>{end(b.to)}</bdi>
            </span>
          ))}
          .{" "}
          <button type="button" onClick={() => set({ brush: null })}>
            Show all
          </button>
        </p>
      )}
      {empty.map((b, i) => (
        <p key={i} class="fault" role="alert">
          No trial has a value of <bdi>{title(full(b.key))}</bdi>, so that none passes.
        </p>
      ))}
      {!many && (
        <section>
          <h2>Best so far</h2>
          <BestSoFar points={points} metric={e.searcherMetric} />
        </section>
      )}
      <section>
        <h2>Importance of hyperparameters</h2>
        {many && !past && (
          <div class="toolbar">
            <label>
              <span>Importance for</span>
              <select value={important} onChange={(x) => set({ imp: x.currentTarget.value === goals(e)[0] ? null : x.currentTarget.value })}>
                {goals(e).map((m) => (
                  <option key={m} value={m}>
                    {clean(m)}
                  </option>
                ))}
              </select>
            </label>
          </div>
        )}
        {past ? <p class="hint">Known of all its trials alone, as they are now.</p> : <ImportanceChart of={e} metric={important} brush={brushText} trials={shown.filter((t) => Number.isFinite(value(t, many ? `m.validation.${important}` : aim))).map((t) => t.id)} />}
      </section>
      <section>
        <h2>Parallel coordinates</h2>
        <p class="hint">
          Drag along an axis to keep the trials in between.{varying.length > mostAxes && ` The first ${mostAxes} of ${varying.length} hyperparameters that vary.`}
        </p>
        <Parallel
          rows={all}
          passing={passing}
          dims={[...varying.slice(0, mostAxes).map((h) => dim.get(`hp.${h}`)!), ...aims.map((k) => dim.get(k)!)]}
          brushes={brushes}
          onBrush={(key, b) => onBrush([key], [b])}
        />
        <BrushFields keys={keys} title={title} numbers={(key) => !dimension(all, key).choices} onBrush={(key, b) => onBrush([key], [b])} />
      </section>
      <section>
        <h2>Scatter</h2>
        <div class="toolbar">
          {choose("Horizontal", "ax", xKey)}
          {choose("Vertical", "ay", yKey)}
          {choose("Colour", "ac", cKey)}
        </div>
        <Scatter rows={shown} x={dim.get(xKey)!} y={dim.get(yKey)!} colour={dim.get(cKey) ?? null} onBrush={onBrush} />
      </section>
      {heatX && heatY && varying.length >= 2 && (
        <section>
          <h2>Heat map</h2>
          <p class="hint">
            The mean of <bdi>{nameOf(goals(e)[0] ?? "")}</bdi> over <bdi>{title(heatX)}</bdi> and <bdi>{title(heatY)}</bdi>; other hyperparameters are chosen above.
          </p>
          <Heatmap rows={shown} x={dim.get(heatX)!} y={dim.get(heatY)!} of={dim.get(aim)!} />
        </section>
      )}
      {!past && <Pareto of={e} passing={passing} />}
      <section>
        <h2>Timeline</h2>
        <OnSlots of={e} rows={shown} />
      </section>
      <section>
        <h2>Trials</h2>
        <Grid name="Trials" rows={all} pass={(t) => passing.has(t.id)} columns={columns} id={(t) => String(t.id)} link={(t) => `/trials/${t.id}`} usualSort="id" hovers selectable bare={["id"]} height={320} loading={!known.value} command={`troupe trial list ${e.id}${past ? ` --at ${pastAt.value}` : ""}`} within={within} />
      </section>
    </>
  );
}

function OnSlots(props: { of: Experiment; rows: readonly Row[] }) {
  const at = pastAt.value;
  const { now, again } = useRead(`history ${props.of.id}`, (signal) => get<History>(`/troupe/v1/experiments/${props.of.id}/history`, {}, signal));
  useChanges(ended(props.of) ? [] : [`experiment/${props.of.id}`], 10_000, again);
  const v = now.value;
  const all = v.state === "ready" ? v.value.history : null;
  const [bars, until] = useMemo(() => {
    const last = all?.findLast((f) => at === 0 || f.sequence <= at);
    return [held(all ?? [], at || Infinity), at > 0 && last ? Date.parse(last.at) : Date.now()];
  }, [all, at]);
  if (v.state === "error") return <Failed whole why={v.why} again={again} />;
  if (all && bars.length === 0) return <p class="empty">No trial of it held a slot.</p>;
  return all && <Timeline rows={props.rows} held={bars} until={until} />;
}

/** Fields that set the same ranges as a drag over the chart. */
function BrushFields(props: { keys: string[]; title: (key: string) => string; numbers: (key: string) => boolean; onBrush: (key: string, b: Brush | null) => void }) {
  const axis = useRef<HTMLSelectElement>(null);
  const from = useRef<HTMLInputElement>(null);
  const to = useRef<HTMLInputElement>(null);
  return (
    <form
      class="toolbar"
      onSubmit={(e) => {
        e.preventDefault();
        const key = axis.current!.value;
        const ends = [from.current!.value, to.current!.value].map((text) => text.trim().replace(/^[-−]?∞$/, (x) => (x === "∞" ? "Infinity" : "-Infinity")));
        const [a, b] = ends as [string, string];
        const numbers = props.numbers(key);
        const wrong = ends.find((text) => numbers && text !== "" && Number.isNaN(asNumber(text) ?? NaN));
        if (wrong !== undefined) return say(`'${clean(wrong)}' is not a number, and ${props.title(key)} has only numbers`);
        if (!numbers && (a === "") !== (b === "")) return say("a range of words needs both ends");
        props.onBrush(key, a !== "" || b !== "" ? between(addressed(key), a, b) : null);
      }}
    >
      <label>
        <span>Axis</span>
        <select ref={axis}>
          {props.keys.map((k) => (
            <option key={k} value={k}>
              {props.title(k)}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span>From</span>
        <input ref={from} type="text" spellcheck={false} autocomplete="off" />
      </label>
      <label>
        <span>To</span>
        <input ref={to} type="text" spellcheck={false} autocomplete="off" />
      </label>
      <button type="submit">Keep what lies between</button>
    </form>
  );
}

const mostNamed = 1000; // as many as the server takes
const brushRest = 500; // ms without a change of the brush, after which the server is asked

/** `trials` are the trials with a value that pass the brush. Where they are too few, nothing is asked for, because the console would
 *  show a refusal. */
function ImportanceChart(props: { of: Experiment; metric: string; brush: string; trials: readonly number[] }) {
  const e = props.of;
  const count = props.trials.length;
  const few = count < leastTrials;
  const brushed = readBrushes(props.brush).length > 0;
  const only = brushed && count <= mostNamed ? props.trials : null;
  const key = useRested(`importance ${e.id} ${props.metric} ${count < 10 ? count : Math.floor(count / 5)} ${brushed ? props.brush : ""}`, brushed ? brushRest : 0);
  const { now, again } = useRead(key, (signal) =>
    few ? Promise.resolve(null) : get<Importance>(`/troupe/v1/experiments/${e.id}/importance`, importanceQuery(several(e) ? props.metric : "", only), signal),
  );
  const v = now.value;
  if (few)
    return (
      <Empty>
        The importance of hyperparameters needs at least {leastTrials} trials with <bdi>{nameOf(props.metric)}</bdi>; there are {count}
        {brushed && " that pass"}.
      </Empty>
    );
  if (v.state === "error") return <Failed whole why={v.why} again={again} />;
  const x = v.state === "ready" ? v.value : null;
  if (!x) return null;
  return (
    <figure class="chart" data-testid="importance">
      <ul class="bars">
        {x.hparams.map((h) => (
          <li key={h.name} data-hp={h.name} data-value={h.importance}>
            <span class="name">{nameOf(h.name)}</span>
            <meter min={0} max={1} value={h.importance} aria-label={`${nameOf(h.name)} ${part(h.importance)}`} />
            <span class="num">{part(h.importance)}</span>
          </li>
        ))}
      </ul>
      <Files
        name={`importance-${e.id}`}
        title="Importance of hyperparameters"
        table={{ columns: ["hyperparameter", "importance"], rows: () => x.hparams.map((h) => [h.name, h.importance]) }}
        picture={() => saveBars(`importance-${e.id}`, `Importance of hyperparameters for ${nameOf(props.metric)} in experiment ${e.id}: ${x.method} over ${x.trials} trials`, x.hparams.map((h) => ({ name: h.name, part: h.importance, text: part(h.importance) })))}
      >
        <span class="note">
          {x.method} over {x.trials} trials{only ? " that pass" : brushed && `: more than ${mostNamed} pass, too many to ask for`}.
        </span>
      </Files>
    </figure>
  );
}

function Pareto(props: { of: Experiment; passing: ReadonlySet<number> }) {
  const { now, again } = useRead(`pareto ${props.of.id}`, (signal) => (several(props.of) ? get<ParetoFront>(`/troupe/v1/experiments/${props.of.id}/pareto`, {}, signal) : Promise.resolve(null)));
  useChanges(several(props.of) ? [`experiment/${props.of.id}`] : [], 3000, again);
  const f = now.value.state === "ready" ? now.value.value : null;
  if (!f || f.metrics.length < 2) return null;
  const [a, b] = f.metrics as [ParetoFront["metrics"][0], ParetoFront["metrics"][0]];
  const shown = f.front.filter((p) => props.passing.has(p.trialId));
  const points = shown.map((p) => ({ id: String(p.trialId), x: number(p.metrics[a.name]) ?? NaN, y: number(p.metrics[b.name]) ?? NaN }));
  return (
    <section>
      <h2>Pareto front</h2>
      <div>
        <Front points={points} x={a.name} y={b.name} />
        <p class="hint">
          {points.length} of {f.trials} trials are beaten by none in {f.metrics.map((m) => nameOf(m.name)).join(" and ")} at once.
          {f.leftOut > 0 && ` ${f.leftOut} more lack one of these, or have a value that is not finite.`}
        </p>
        <ul class="columns">
          {shown.map((p) => (
            <li key={p.trialId} class={hovered.value === String(p.trialId) ? "hovered" : ""} onMouseEnter={() => (hovered.value = String(p.trialId))} onMouseLeave={() => (hovered.value = null)}>
              <Link to={`/trials/${p.trialId}`}>trial {p.trialId}</Link>{" "}
              {f.metrics.map((m, i) => (
                <span key={m.name}>
                  {i > 0 && ", "}
                  <bdi>{nameOf(m.name)}</bdi> {short(number(p.metrics[m.name]))}
                </span>
              ))}
            </li>
          ))}
        </ul>
      </div>
    </section>
  );
}
