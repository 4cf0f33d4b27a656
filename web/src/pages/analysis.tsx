import { useMemo } from "preact/hooks";
import { get, Refused, type Experiment } from "../api";
import { Grid } from "../grid";
import { hovered } from "../hover";
import { params, set } from "../router";
import { clean, csv, short } from "../text";
import { dimension, Front, Heatmap, History, Parallel, passes, readBrushes, Scatter, Timeline, writeBrushes, type Brush } from "../plots";
import { bestSoFar } from "../spark";
import { trialColumns, useHparams, useMetrics, useTrials } from "../trials";
import { Empty, Failed, Link, save, useRead } from "../ui";
import { smallerIsBetter } from "./experiment";
import type { Importance, ParetoFront } from "../api_types";

export function Analysis(props: { of: Experiment }) {
  const e = props.of;
  const { rows, now, again } = useTrials(e.id, []);
  const { metrics } = useMetrics(e.id);
  const all = rows.value ?? [];
  const hps = useHparams(all);
  const p = params.value;
  const brushText = p.text("brush");
  const brushes = useMemo(() => readBrushes(brushText), [brushText]);
  const passing = useMemo(() => new Set(all.filter((t) => passes(t, brushes, all)).map((t) => t.id)), [all, brushes]);
  const shown = useMemo(() => all.filter((t) => passing.has(t.id)), [all, passing]);
  const varying = useMemo(() => hps.filter((h) => new Set(all.map((t) => JSON.stringify(t.hp[h]))).size > 1), [all, hps]);
  const keys = [...varying.map((h) => `hp.${h}`), "best", "latest", "steps"];
  const pick = (name: string, usual: string) => (keys.includes(p.text(name)) ? p.text(name) : usual);
  const xKey = pick("ax", keys[0] ?? "steps");
  const yKey = pick("ay", "best");
  const cKey = pick("ac", keys[1] ?? "best");
  const title = (k: string) => (k === "best" ? `best ${e.searcherMetric}` : k.replace(/^hp\./, ""));
  const dim = useMemo(() => new Map(keys.map((k) => [k, dimension(all, k, title(k))])), [all, keys.join(",")]);
  const points = useMemo(() => bestSoFar(shown, smallerIsBetter(e)), [shown]);
  const onBrush = (fresh: Brush[]) => set({ brush: writeBrushes([...brushes.filter((b) => !fresh.some((f) => f.key === b.key)), ...fresh.map((b) => ({ ...b, key: b.key.replace(/^hp\./, "") }))]) });
  const columns = useMemo(() => trialColumns(hps, metrics.value, e.searcherMetric), [hps, metrics.value]);
  if (now.value.state === "error" && !rows.value) return <Failed why={now.value.why} again={again} />;
  if (rows.value && all.length === 0) return <Empty>No trial yet.</Empty>;
  if (!rows.value) return null;
  const choose = (label: string, name: string, at: string) => (
    <label>
      <span>{label}</span>
      <select aria-label={label} value={at} onChange={(ev) => set({ [name]: ev.currentTarget.value })}>
        {keys.map((k) => (
          <option key={k} value={k}>
            {clean(title(k))}
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <>
      {brushes.length > 0 && (
        <p role="status">
          {passing.size} of {all.length} trials pass {brushes.map((b) => `${clean(b.key)} ${typeof b.from === "number" ? short(b.from) : clean(String(b.from))} … ${typeof b.to === "number" ? short(b.to as number) : clean(String(b.to))}`).join(", ")}.{" "}
          <button type="button" onClick={() => set({ brush: null })}>
            Show all
          </button>
        </p>
      )}
      <section>
        <h2>Best so far</h2>
        <History points={points} metric={e.searcherMetric} />
      </section>
      <section>
        <h2>Importance of hyperparameters</h2>
        <ImportanceChart of={e} trials={all.filter((t) => t.best).length} />
      </section>
      <section>
        <h2>Parallel coordinates</h2>
        <p class="hint">Drag along an axis to keep the trials in between.</p>
        <Parallel
          rows={all}
          passing={passing}
          dims={[...varying.slice(0, 12).map((h) => dim.get(`hp.${h}`)!), dim.get("best")!]}
          brushes={brushes}
          onBrush={(key, b) => onBrush(b ? [{ ...b, key: key.replace(/^hp\./, "") }] : [])}
        />
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
      {varying.length >= 2 && (
        <section>
          <h2>Heat map</h2>
          <p class="hint">
            The mean of {clean(e.searcherMetric)} over {clean(title(xKey))} and {clean(title(cKey === xKey ? keys[0]! : cKey))}; the axes are those chosen above.
          </p>
          <Heatmap rows={shown} x={dim.get(xKey)!} y={dim.get(cKey === xKey ? `hp.${varying.find((h) => `hp.${h}` !== xKey)!}` : cKey)!} of={dim.get("best")!} />
        </section>
      )}
      <Pareto of={e} passing={passing} />
      <section>
        <h2>Timeline</h2>
        <Timeline rows={shown} />
      </section>
      <section>
        <h2>Trials</h2>
        <Grid name="Trials" rows={all} pass={(t) => passing.has(t.id)} columns={columns} id={(t) => String(t.id)} link={(t) => `/trials/${t.id}`} usualSort="id" hovers selectable bare={["id"]} height={320} command={`troupe trial list ${e.id}`} />
      </section>
    </>
  );
}

function ImportanceChart(props: { of: Experiment; trials: number }) {
  const e = props.of;
  const { now, again } = useRead(`importance ${e.id} ${Math.floor(props.trials / 5)}`, (signal) =>
    get<Importance>(`/troupe/v1/experiments/${e.id}/importance`, {}, signal).catch((why: unknown) => {
      if (why instanceof Refused && why.status === 400) return { method: "", trials: 0, hparams: [], why: why.message };
      throw why;
    }),
  );
  const v = now.value;
  if (v.state === "error") return <Failed why={v.why} again={again} />;
  if (v.state === "loading") return null;
  if ("why" in v.value) return <Empty>{clean(String(v.value.why))}</Empty>;
  return (
    <div data-testid="importance">
      <ul class="bars">
        {v.value.hparams.map((h) => (
          <li key={h.name} data-hp={h.name} data-value={h.importance}>
            <span class="name">{clean(h.name)}</span>
            <meter min={0} max={1} value={h.importance} aria-label={`${clean(h.name)} ${short(h.importance, 3)}`} />
            <span class="num">{short(h.importance, 3)}</span>
          </li>
        ))}
      </ul>
      <p class="hint">
        {v.value.method} over {v.value.trials} trials.{" "}
        <button type="button" onClick={() => save(`importance-${e.id}.csv`, "text/csv", csv([["hyperparameter", "importance"], ...v.value.hparams.map((h) => [h.name, h.importance] as (string | number)[])]))}>
          Download CSV
        </button>
      </p>
    </div>
  );
}

function Pareto(props: { of: Experiment; passing: ReadonlySet<number> }) {
  const several = Array.isArray((props.of.config["searcher"] as { metrics?: unknown } | undefined)?.metrics) || Array.isArray((props.of.config["searcher"] as { metric?: unknown } | undefined)?.metric);
  const { now } = useRead(`pareto ${props.of.id} ${several} ${props.of.numTrials}`, (signal) => (several ? get<ParetoFront>(`/troupe/v1/experiments/${props.of.id}/pareto`, {}, signal) : Promise.resolve(null)));
  const f = now.value.state === "ready" ? now.value.value : null;
  if (!f || f.metrics.length < 2) return null;
  const [a, b] = f.metrics as [ParetoFront["metrics"][0], ParetoFront["metrics"][0]];
  const shown = f.front.filter((p) => props.passing.has(p.trialId));
  const points = shown.map((p) => ({ id: String(p.trialId), x: p.metrics[a.name] ?? NaN, y: p.metrics[b.name] ?? NaN }));
  return (
    <section>
      <h2>Pareto front</h2>
      <div>
        <Front points={points} x={a.name} y={b.name} />
        <p class="hint">
          {points.length} of {f.trials} trials are beaten by none in {f.metrics.map((m) => clean(m.name)).join(" and ")} at once.
        </p>
        <ul class="columns">
          {shown.map((p) => (
            <li key={p.trialId} class={hovered.value === String(p.trialId) ? "hovered" : ""} onMouseEnter={() => (hovered.value = String(p.trialId))} onMouseLeave={() => (hovered.value = null)}>
              <Link to={`/trials/${p.trialId}`}>trial {p.trialId}</Link>{" "}
              {f.metrics.map((m) => `${clean(m.name)} ${short(p.metrics[m.name] ?? null)}`).join(", ")}
            </li>
          ))}
        </ul>
      </div>
    </section>
  );
}
