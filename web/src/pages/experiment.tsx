import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { stood } from "../asked";
import { get, isUnknown, may, post, type Experiment, type ExperimentExplanation, type Trial } from "../api";
import { usePage, type PageProps } from "../page";
import { Curves, MoreCurves } from "../curves";
import { goals, mainMetric, several, wanted } from "../goals";
import { Grid } from "../grid";
import { useChanges } from "../changes";
import { isStale, listen, returns } from "../live";
import { standing } from "../reasons";
import { pastTime, TimeSlider, UnknownMoment, useNoMoment } from "../past";
import { go, params, pastAt, timed } from "../router";
import { clean, flat, nameOf, number, short, span, state, worded } from "../text";
import { namedMetrics, shownHparams, trialColumns, useHparams, useMetrics, useTrials, type Row } from "../trials";
import { askToKill, CopyCommand, CopyLink, each, Empty, Facts, Failed, Link, Progress, question, refused, say, State, tell, Time, useRead, isId, useAtOnce } from "../ui";
import { CheckpointGrid } from "../checkpoints";
import { Download } from "../download";
import { searched } from "../command";
import { EventGrid } from "../events";
import { SearchLog } from "../log";
import { duration } from "./experiments";
import { Analysis } from "./analysis";
import { SearchStory } from "./search";
import { Code, Config, Fork } from "./files";
import { alive, ended, stopping } from "../ended";
import type { GetExperimentResponse, Outcome, SearchStory as Story } from "../api_types";

const tabs: [string, string][] = [
  ["", "Overview"],
  ["trials", "Trials"],
  ["curves", "Curves"],
  ["analysis", "Analysis"],
  ["search", "Search"],
  ["checkpoints", "Checkpoints"],
  ["logs", "Logs"],
  ["code", "Code"],
  ["config", "Config"],
  ["events", "Events"],
];

/** The command with the same answer as the tab; empty where there is none. */
function commandFor(tab: string, id: number): string {
  if (tab === "logs") return searched(`troupe experiment logs ${id}`, params.value);
  return tab === "" ? `troupe experiment describe ${id}` : "";
}

const withGrid = ["trials", "checkpoints", "events", "analysis"]; // tabs whose grid has links of its own

const mostMeasured = 24; // limit of the metrics of the best trial on the overview

const thoseTrials = (ids: string[]): string => (ids.length === 1 ? `trial ${ids[0]}` : `${ids.length} trials`);

/** An address of the experiment, with the moment that is shown. */
const then = (to: string): string => (pastAt.value > 0 ? `${to}${to.includes("?") ? "&" : "?"}at=${pastAt.value}` : to);

export default function ExperimentPage(props: PageProps) {
  return isId(props.id) ? <One {...props} /> : <Unknown id={props.path.split("/")[2] ?? ""} />;
}

function Unknown(props: { id: string }) {
  usePage(`Experiment ${props.id}`, "error");
  return (
    <>
      <h1 tabIndex={-1}>Experiment {props.id}</h1>
      <p>
        There is no experiment {props.id}. <Link to="/experiments">All experiments</Link>
      </p>
    </>
  );
}

function One(props: PageProps) {
  const id = props.id;
  const one = useSignal<Experiment | null>(null);
  const gone = useSignal(false);
  const { now, again } = useRead(`experiment ${id}`, async (signal) => {
    const left = gone.peek(); // otherwise an answer from before its end would bring it back
    try {
      const answer = await get<GetExperimentResponse>(`/api/v1/experiments/${id}`, {}, signal);
      if (left) gone.value = false; // its user may see it again
      return answer;
    } catch (why) {
      if (isUnknown(why) && one.peek()) gone.value = true; // a page that was hidden or paused has not heard of it
      throw why;
    }
  });
  useAtOnce(() => {
    if (now.value.state === "ready") one.value = now.value.value.experiment;
  });
  useEffect(() => {
    return listen([`experiment/${id}`], (e) => {
      if (e.name === "gone" && e.data.experiment === id && one.peek()) gone.value = true;
      if (isStale(e, `experiment/${id}`)) again();
      if (e.name !== "experiment" || e.data.id !== id) return;
      const fresh = e.data;
      const old = one.peek();
      if (old && old.state !== fresh.state) tell(`experiment ${id} is ${state(fresh.state).toLowerCase()}`);
      one.value = { ...old, ...fresh };
    });
  }, [id]);
  useSignalEffect(() => {
    if (returns.value > 0) again();
  });
  useNoMoment([props.tab], !timed.includes(props.tab));
  const e = one.value;
  const view = now.value;
  const known = tabs.some(([t]) => t === props.tab);
  const unknown = gone.value || (view.state === "error" && !e && isUnknown(view.why));
  usePage(e && !unknown ? `Experiment ${id}: ${clean(e.name)}` : `Experiment ${id}`, view.state === "error" || unknown || !known ? "error" : e ? "ready" : "loading");
  useEffect(() => {
    if (!unknown || gone.value) return;
    return listen(["experiments"], (x) => void (x.name === "experiment" && x.data.id === id && again())); // the experiment may still be created
  }, [id, unknown]);
  if (unknown) return <Unknown id={String(id)} />;
  if (view.state === "error" && !e)
    return (
      <>
        <h1 tabIndex={-1}>Experiment {id}</h1>
        <Failed why={view.why} again={again} />
      </>
    );
  return (
    <>
      <div class="titleline">
        <h1 tabIndex={-1}>
          Experiment {id}: <bdi>{clean(e?.name ?? "")}</bdi>
        </h1>
        {e && pastAt.value === 0 && <State of={e.state} />}
        {e && pastAt.value > 0 && !withGrid.includes(props.tab) && (
          <div class="buttons">
            <CopyLink />
          </div>
        )}
        {e && pastAt.value === 0 && <Actions of={e} plain={withGrid.includes(props.tab)} command={commandFor(props.tab, id)} />}
      </div>
      <div class="tabs" role="tablist" aria-label={`Experiment ${id}`}>
        {tabs.map(([t, name]) => (
          <Link key={t} to={timed.includes(t) ? then(`/experiments/${id}${t ? "/" + t : ""}`) : `/experiments/${id}/${t}`} role="tab" selected={props.tab === t}>
            {name}
          </Link>
        ))}
      </div>
      {e && timed.includes(props.tab) && <UnknownMoment />}
      {e && timed.includes(props.tab) && <TimeSlider experiment={id} />}
      {e && (
        <div role="tabpanel" aria-label={tabs.find(([t]) => t === props.tab)?.[1] ?? ""}>
          {props.tab === "" && <Overview of={e} />}
          {props.tab === "trials" && <Trials of={e} />}
          {props.tab === "curves" && <AllCurves of={e} />}
          {props.tab === "analysis" && <Analysis of={e} />}
          {props.tab === "search" && <SearchStory of={e} />}
          {props.tab === "checkpoints" && <CheckpointGrid path={`/api/v1/experiments/${id}/checkpoints`} topic={`experiment/${id}`} command={`troupe checkpoint list ${id}`} goals={goals(e)} />}
          {props.tab === "logs" && <Logs of={e} />}
          {props.tab === "code" && <Code of={e} />}
          {props.tab === "config" && <Config of={e} />}
          {props.tab === "events" && <EventGrid query={`experiment=${id}`} topics={[`experiment/${id}`]} command={`troupe experiment events ${id}`} />}
          {!known && <p>There is no such page of an experiment.</p>}
        </div>
      )}
    </>
  );
}

/** The actions for an experiment. `plain` says that a grid below has links of its own. */
function Actions(props: { of: Experiment; plain: boolean; command: string }) {
  const e = props.of;
  const fork = useSignal(false);
  const order = (what: string, done: string) =>
    post(`/api/v1/experiments/${e.id}/${what}`).then(
      () => say(`experiment ${e.id} is ${done}`),
      refused,
    );
  return (
    <div class="buttons">
      {may("change experiment", e.workspaceId) && !ended(e) && !stopping(e) && (
        <>
          {e.unmanaged ? null : e.state === "STATE_PAUSED" ? (
            <button type="button" onClick={() => void order("activate", "resumed")}>
              Resume
            </button>
          ) : (
            <button type="button" onClick={() => void order("pause", "about to pause")}>
              Pause
            </button>
          )}
          <button type="button" onClick={() => void order("cancel", "canceled; its trials save a last checkpoint, from which `troupe experiment continue` goes on")}>
            Cancel
          </button>
        </>
      )}
      {may("kill experiment", e.workspaceId) && !ended(e) && (
        <button
          type="button"
          class="danger"
          onClick={() =>
            askToKill(e)
          }
        >
          Kill
        </button>
      )}
      {may("create experiment", e.workspaceId) && (
        <button type="button" onClick={() => (fork.value = true)}>
          Fork
        </button>
      )}
      {fork.value && <Fork of={e} onClose={() => (fork.value = false)} />}
      {!props.plain && (
        <>
          <CopyLink />
          {props.command && <CopyCommand command={props.command} />}
        </>
      )}
    </div>
  );
}

export function ranked<T extends Trial>(rows: readonly T[], smaller: boolean): T[] {
  const worth = (t: T) => {
    const m = number(t.best?.metric);
    return m === null || Number.isNaN(m) ? Infinity : smaller ? m : -m;
  };
  return rows.slice().sort((a, b) => (worth(a) === worth(b) ? Number(b.best !== null) - Number(a.best !== null) || a.id - b.id : worth(a) - worth(b)));
}

export function smallerIsBetter(e: Experiment): boolean {
  const s = e.config["searcher"] as { smaller_is_better?: unknown } | undefined;
  return s?.smaller_is_better !== false;
}

function Overview(props: { of: Experiment }) {
  const e = props.of;
  const past = pastAt.value;
  const { now, again } = useRead(past > 0 ? `outcome ${e.id} at ${past}` : `outcome ${e.id} ${e.bestTrialId} ${e.bestTrialSearcherMetric} ${e.state}`, (signal) => get<Outcome>(`/troupe/v1/experiments/${e.id}/outcome`, { at: past || undefined }, signal));
  const why = useRead(`explain ${e.id} ${e.state}`, (signal) => get<ExperimentExplanation>(`/troupe/v1/experiments/${e.id}/explain`, {}, signal));
  useChanges(past > 0 || ended(e) ? [] : [`experiment/${e.id}`], 1500, why.again); // the reason may change while the experiment does not
  const { rows, rowsAt } = useTrials(e.id, []);
  const { metrics } = useMetrics(e.id);
  const best = useMemo(() => ranked(rows.value ?? [], smallerIsBetter(e)).slice(0, 10), [rows.value]);
  const ids = best.map((t) => t.id).sort((a, b) => a - b);
  const kept = useRef<Outcome | null>(null);
  if (now.value.state === "ready") kept.current = now.value.value;
  const o = now.value.state === "error" ? null : kept.current; // kept while another moment is read
  const x = why.now.value.state === "ready" ? why.now.value.value : null;
  const measured = Object.entries(o?.bestTrial?.bestValidation?.metrics.avgMetrics ?? {}).filter(([, v]) => number(v) !== null);
  return (
    <>
      <Facts
        rows={[
          ["State", <State of={past > 0 ? (o?.state ?? "") : e.state} />],
          ["Why", <span data-testid="explain">{clean(o?.why || (x && past === 0 ? standing(x) : ""))}</span>],
          ["Progress", <Progress of={past > 0 ? (o?.progress ?? 0) : e.progress} />],
          ["Trials", String(past > 0 ? (o?.numTrials ?? "") : e.numTrials)],
          ["Owner", e.username],
          ["Searcher", `${e.searcherType}${goals(e).length > 0 ? ", " : ""}${wanted(e)}`],
          ["Started", <Time at={e.startTime} />],
          ...(past > 0 ? [] : ([["Duration", span(duration(e))]] as [string, preact.ComponentChildren][])),
          ...(e.forkedFrom ? ([["Forked from", <Link to={`/experiments/${e.forkedFrom}`}>experiment {e.forkedFrom}</Link>]] as [string, preact.ComponentChildren][]) : []),
        ]}
      />
      <section>
        <h2>Best trial</h2>
        {now.value.state === "error" && <Failed whole={past > 0} why={now.value.why} again={again} />}
        {o && !o.bestTrialId && (
          <Empty>
            {several(e) ? (
              <>
                Of several metrics no trial is the best in all: <Link to={then(`/experiments/${e.id}/analysis`)}>those that none beats</Link>.
              </>
            ) : (
              "No validation yet."
            )}
          </Empty>
        )}
        {o?.bestTrialId && (
          <>
            <p>
              <Link to={`/trials/${o.bestTrialId}`}>Trial {o.bestTrialId}</Link>: <bdi>{nameOf(e.searcherMetric)}</bdi> <strong>{short(number(o.bestMetric), 6)}</strong>
            </p>
            <Facts rows={Object.entries(flat(o.bestTrial?.hparams ?? {})).map(([k, v]) => [k, worded(v)])} />
            {measured.length > 0 && (
              <>
                <h3>Its metrics</h3>
                <Facts rows={measured.slice(0, mostMeasured).map(([k, v]) => [k, short(number(v), 6)])} />
                {measured.length > mostMeasured && (
                  <p class="hint">
                    The first {mostMeasured} of {measured.length}: <Link to={`/trials/${o.bestTrialId}/metrics`}>all of them</Link>.
                  </p>
                )}
              </>
            )}
            {o.bestCheckpoint && (
              <p>
                Checkpoint <code>{clean(o.bestCheckpoint.uuid)}</code> at step {o.bestCheckpoint.totalBatches}{" "}
                <Download href={`/troupe/v1/checkpoints/${o.bestCheckpoint.uuid}/files`} name={`${o.bestCheckpoint.uuid}.tar`} />
              </p>
            )}
          </>
        )}
      </section>
      {ids.length > 0 && (
        <section>
          <h2>{ids.length === 1 ? "Its curve" : several(e) ? `Curves of its first ${ids.length} trials` : `Curves of the ${ids.length} best`}</h2>
          <Curves trials={rows.value} only={ids} experiments={[e.id]} metrics={metrics.value} metric={mainMetric(e)} height={320} at={rowsAt.value} />
        </section>
      )}
      <LastDecisions of={e} at={past} />
    </>
  );
}

function LastDecisions(props: { of: Experiment; at: number }) {
  const e = props.of;
  const { now, again } = useRead(`decisions ${e.id} ${props.at}`, (signal) => get<Story>(`/troupe/v1/experiments/${e.id}/search`, { at: props.at || undefined }, signal));
  useChanges(props.at > 0 ? [] : [`experiment/${e.id}`], 1500, again);
  const last = now.value.state === "ready" ? now.value.value.decisions.slice(-8).reverse() : [];
  if (last.length === 0) return null;
  return (
    <section>
      <h2>What the search did last</h2>
      <ol class="decisions">
        {last.map((d, i) => (
          <li key={i}>
            <Time at={d.at} /> {d.trial ? <Link to={`/trials/${d.trial}`}>trial {d.trial}</Link> : "experiment"} {clean(d.what)}
            {d.why && `: ${clean(d.why)}`}
          </li>
        ))}
      </ol>
      <p>
        <Link to={then(`/experiments/${e.id}/search`)}>All decisions</Link>
      </p>
    </section>
  );
}

function Trials(props: { of: Experiment }) {
  const e = props.of;
  const p = params.value;
  const mine = several(e) && p.list("cols").length === 0 ? goals(e).map((m) => `m.validation.${m}`) : []; // the columns of a search with several metrics
  const asked = [...p.list("cols"), ...mine, p.text("sort")];
  const plain = p.text("q") === "" && asked.every((c) => c === "");
  const { metrics, known } = useMetrics(e.id, plain ? stood : undefined); // the rows are shown before the columns that can be chosen
  const { rows, first, now, again } = useTrials(e.id, namedMetrics(asked, p.text("q"), metrics.value));
  const there = rows.value ?? (plain ? first.value : null);
  const hps = useHparams(there);
  const shown = shownHparams(hps, there).join("\n");
  const columns = useMemo(() => trialColumns(hps, metrics.value, goals(e), shown.split("\n")), [hps, metrics.value, e.searcherMetric, shown, pastTime.value]);
  if (now.value.state === "error" && !rows.value) return <Failed whole why={now.value.why} again={again} />;
  return (
    <Grid<Row>
      name="Trials"
      rows={there ?? []}
      {...(there && !rows.value ? { coming: e.numTrials } : {})}
      columns={columns}
      id={(t) => String(t.id)}
      link={(t) => `/trials/${t.id}`}
      usualSort="id"
      selectable
      hovers
      loading={!known.value}
      bare={["id"]}
      command={`troupe trial list ${e.id}${pastAt.value > 0 ? ` --at ${pastAt.value}` : ""}`}
      empty={rows.value ? <Empty>No trial yet.</Empty> : ""}
      actions={(ids) =>
        ids.length > 0 && (
          <>
            <button type="button" onClick={() => go(`/compare?trials=${ids.join(",")}`)}>
              Compare
            </button>
            <button type="button" onClick={() => go(then(`/experiments/${e.id}/curves?sel=${ids.join(",")}`))}>
              Curves
            </button>
            {may("kill trial", e.workspaceId) && pastAt.value === 0 && alive(there ?? [], ids).length > 0 && (
              <button
                type="button"
                class="danger"
                onClick={() => {
                  const live = alive(there ?? [], ids);
                  question.value = {
                    title: `Kill ${thoseTrials(live)}?`,
                    text: `Trials ${live.slice(0, 50).join(", ")}${live.length > 50 ? ` and ${live.length - 50} more` : ""}: what was not saved in a checkpoint is lost.`,
                    button: "Kill",
                    go: () => void each(live, "trial", (t) => post(`/api/v1/trials/${t}/kill`), `${thoseTrials(live)} ${live.length === 1 ? "is" : "are"} killed`),
                  };
                }}
              >
                Kill {thoseTrials(alive(there ?? [], ids))}
              </button>
            )}
          </>
        )
      }
    />
  );
}

function AllCurves(props: { of: Experiment }) {
  const e = props.of;
  // What the chart does not need is loaded after the chart.
  const asked = params.value.list("sel").map(Number).filter(Number.isFinite);
  const { rows } = useTrials(e.id, [], params.value.text("group") === "" && asked.length === 0 ? stood : undefined);
  const { metrics } = useMetrics(e.id, stood);
  const there = new Set((rows.value ?? []).map((t) => t.id));
  const some = asked.length > 0;
  const sel = rows.value ? asked.filter((id) => there.has(id)) : asked; // other selected trials may have been deleted
  const gone = rows.value ? asked.filter((id) => !there.has(id)) : [];
  return (
    <>
      {some && (
        <p>
          {sel.length} selected trials{gone.length > 0 && `; not there: ${gone.join(", ")}`}. <Link to={then(`/experiments/${e.id}/curves`)}>All trials</Link>
        </p>
      )}
      <Curves
        trials={rows.value}
        {...(some ? { only: sel } : { experiment: e.id })}
        experiments={[e.id]}
        metrics={metrics.value}
        metric={mainMetric(e)}
        height={500}
      />
      <MoreCurves trials={rows.value} {...(some ? { only: sel } : { experiment: e.id })} experiments={[e.id]} metrics={metrics.value} metric={mainMetric(e)} />
    </>
  );
}

function Logs(props: { of: Experiment }) {
  const { rows } = useTrials(props.of.id, []);
  return (
    <>
      <SearchLog where={`experiment=${props.of.id}`} />
      <h2>Logs of its trials</h2>
      <ul class="columns">
        {(rows.value ?? []).map((t) => (
          <li key={t.id}>
            <Link to={`/trials/${t.id}/logs`}>trial {t.id}</Link> <State of={t.state} />
          </li>
        ))}
      </ul>
    </>
  );
}
