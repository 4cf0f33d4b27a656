import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { stood } from "../asked";
import { get, isUnknown, may, post, type Experiment, type Explanation, type Trial } from "../api";
import { usePage, type PageProps } from "../page";
import { useChanges } from "../changes";
import { CheckpointGrid } from "../checkpoints";
import { Curves, MoreCurves } from "../curves";
import { EventGrid } from "../events";
import { goals, mainMetric } from "../goals";
import { Grid, type Column } from "../grid";
import { isStale, listen, paused, returns } from "../live";
import { Log } from "../log";
import { Resources } from "../resources";
import { restarts } from "../restarts";
import { useNoMoment } from "../past";
import { params, set } from "../router";
import { Structured } from "../structured";
import { before, segments } from "../terminal";
import { asChoice, condition } from "../filter";
import { clean, flat, number, span, state, worded } from "../text";
import { useMetrics } from "../trials";
import { drawn } from "../newest";
import { stepNames, steps } from "../steps";
import { CopyCommand, CopyLink, Empty, Facts, Failed, Link, question, refused, say, State, tell, Time, useAtOnce, useRead, isId } from "../ui";
import { duration } from "./experiments";
import { ended } from "../ended";
import type { GetExperimentResponse, GetTaskResponse, GetTrialResponse, LogPage, MetricReport as Report, Task, Trial as Full } from "../api_types";

const tabs: [string, string][] = [
  ["", "Curves"],
  ["metrics", "Metrics"],
  ["logs", "Logs"],
  ["resources", "Resources"],
  ["checkpoints", "Checkpoints"],
  ["events", "Events"],
];

interface View {
  trial: Full;
  experiment: Experiment;
  task: Task;
}

export default function TrialPage(props: PageProps) {
  return isId(props.id) ? <One {...props} /> : <Unknown id={props.path.split("/")[2] ?? ""} />;
}

function Unknown(props: { id: string }) {
  usePage(`Trial ${props.id}`, "error");
  return (
    <>
      <h1 tabIndex={-1}>Trial {props.id}</h1>
      <p>There is no trial {props.id}.</p>
    </>
  );
}

function One(props: PageProps) {
  const id = props.id;
  const view = useSignal<View | null>(null);
  const gone = useSignal(false);
  const trials = useRef(0); // number of trials of its experiment
  useNoMoment();
  const { now, again } = useRead(`trial ${id}`, async (signal) => {
    if (props.tab === "logs") await stood; // the lines of the log come first
    const left = gone.peek(); // otherwise an answer from before its end would bring it back
    try {
      const { trial } = await get<GetTrialResponse>(`/api/v1/trials/${id}`, {}, signal);
      const [e, t] = await Promise.all([get<GetExperimentResponse>(`/api/v1/experiments/${trial.experimentId}`, {}, signal), get<GetTaskResponse>(`/api/v1/tasks/${encodeURIComponent(trial.taskId)}`, {}, signal)]);
      if (left) gone.value = false; // its user may see it again
      return { trial, experiment: e.experiment, task: t.task };
    } catch (why) {
      if (isUnknown(why) && view.peek()) gone.value = true; // a page that was hidden or paused has not heard of it
      throw why;
    }
  });
  useAtOnce(() => {
    if (now.value.state !== "ready") return;
    const [old, fresh] = [view.peek()?.trial, now.value.value.trial];
    if (old && old.id === fresh.id && old.state !== fresh.state) tell(`trial ${id} is ${state(fresh.state).toLowerCase()}`);
    view.value = now.value.value;
  });
  const v = view.value;
  useEffect(() => {
    if (!v) return;
    trials.current ||= v.experiment.numTrials;
    let due: ReturnType<typeof setTimeout> | undefined;
    const stop = listen([`experiment/${v.trial.experimentId}`], (e) => {
      if (e.name === "gone" && e.data.experiment === v.trial.experimentId) gone.value = true;
      if (e.name === "experiment" && e.data.id === v.trial.experimentId) {
        // A trial of the experiment was deleted, maybe this one.
        if (e.data.numTrials < trials.current) get<GetTrialResponse>(`/api/v1/trials/${id}`).catch((why: unknown) => void (isUnknown(why) && (gone.value = true)));
        trials.current = e.data.numTrials;
        if (e.data.name !== view.peek()?.experiment.name) due ??= setTimeout(() => ((due = undefined), again()), 500);
      }
      if (!isStale(e, `experiment/${v.trial.experimentId}`) && (e.name !== "trial" || e.data.id !== id)) return;
      due ??= setTimeout(() => ((due = undefined), again()), 500);
    });
    return () => {
      stop();
      clearTimeout(due);
    };
  }, [id, v?.trial.experimentId]);
  useSignalEffect(() => {
    if (returns.value > 0) again();
  });
  const unknown = now.value.state === "error" && !v && isUnknown(now.value.why);
  useEffect(() => {
    if (!unknown || gone.value) return;
    let due: ReturnType<typeof setTimeout> | undefined;
    const look = () => {
      due = undefined;
      get<GetTrialResponse>(`/api/v1/trials/${id}`).then(again, () => {});
    };
    const stop = listen(["experiments"], (e) => void (e.name === "experiment" && (due ??= setTimeout(look, 1000)))); // the trial may still be created
    return () => {
      stop();
      clearTimeout(due);
    };
  }, [id, unknown]);
  const failed = now.value.state === "error" && !v;
  const known = tabs.some(([t]) => t === props.tab);
  usePage(`Trial ${id}`, failed || gone.value || !known ? "error" : v ? "ready" : "loading");
  if (gone.value) return <Unknown id={String(id)} />;
  if (failed && now.value.state === "error")
    return isUnknown(now.value.why) ? (
      <Unknown id={String(id)} />
    ) : (
      <>
        <h1 tabIndex={-1}>Trial {id}</h1>
        <Failed why={now.value.why} again={again} />
      </>
    );
  return (
    <>
      <div class="titleline">
        <h1 tabIndex={-1}>Trial {id}</h1>
        {v && (
          <>
            <State of={v.trial.state} />
            <span>
              of{" "}
              <Link to={`/experiments/${v.trial.experimentId}`}>
                experiment {v.trial.experimentId} <bdi>{clean(v.experiment.name)}</bdi>
              </Link>
            </span>
            <div class="buttons">
              {may("kill trial", v.experiment.workspaceId) && !ended(v.trial) && (
                <button
                  type="button"
                  class="danger"
                  onClick={() =>
                    (question.value = {
                      title: `Kill trial ${id}?`,
                      text: `Trial ${id} of experiment ${v.trial.experimentId}: what was not saved in a checkpoint is lost.`,
                      button: "Kill",
                      go: () => void post(`/api/v1/trials/${id}/kill`).then(() => say(`trial ${id} is killed`), refused),
                    })
                  }
                >
                  Kill
                </button>
              )}
              {props.tab === "" && (
                <>
                  <CopyLink />
                  <CopyCommand command={`troupe trial describe ${id}`} />
                </>
              )}
            </div>
          </>
        )}
      </div>
      <div class="tabs" role="tablist" aria-label={`Trial ${id}`}>
        {tabs.map(([t, name]) => (
          <Link key={t} to={`/trials/${id}${t ? "/" + t : ""}`} role="tab" selected={props.tab === t}>
            {name}
          </Link>
        ))}
      </div>
      {props.tab === "logs" && (
        <div role="tabpanel" aria-label="Logs">
          <Log trial={id} />
        </div>
      )}
      {v && props.tab !== "logs" && (
        <div role="tabpanel" aria-label={tabs.find(([t]) => t === props.tab)?.[1] ?? ""}>
          {props.tab === "" && <Overview {...v} />}
          {props.tab === "metrics" && <Reports trial={v.trial} />}
          {props.tab === "resources" && (
            <>
              <CopyLink />
              <Resources trial={v.trial.id} experiment={v.experiment.id} runs={v.task.allocations.length} over={ended(v.trial)} />
            </>
          )}
          {props.tab === "checkpoints" && <CheckpointGrid path={`/api/v1/trials/${id}/checkpoints`} topic={`experiment/${v.trial.experimentId}`} command={`troupe checkpoint list --trial ${id}`} goals={goals(v.experiment)} />}
          {props.tab === "events" && <EventGrid query={`entity=trial/${id}`} topics={[`experiment/${v.trial.experimentId}`]} command={`troupe trial events ${id}`} />}
          {!known && <p>There is no such page of a trial.</p>}
        </div>
      )}
    </>
  );
}

const none: readonly Report[] = [];

/** Whether a run has no slots yet. The start of such a run is the time at which it began to wait. */
const queued = (run: { state: string }): boolean => state(run.state) === "QUEUED";

function Overview(props: View) {
  const { trial, experiment, task } = props;
  const why = useRead(`explain trial ${trial.id} ${trial.state} ${trial.restarts} ${task.allocations.length}`, (signal) => get<Explanation>(`/troupe/v1/trials/${trial.id}/explain`, {}, signal));
  useChanges(ended(trial) ? [] : [`experiment/${trial.experimentId}`, "cluster"], 3000, why.again); // other trials decide why this one waits
  const { metrics } = useMetrics(trial.experimentId);
  const x = why.now.value.state === "ready" ? why.now.value.value : null;
  const rows = useMemo<Trial[]>(() => [{ ...trial, runs: 0, totalBatches: 0, best: null, latest: null, stop: null, latestCheckpoint: "", agents: [] }], [trial]);
  const runs = task.allocations;
  const places = new Map((x?.runs ?? []).map((r) => [r.run, r]));
  const marks = useMemo(() => restarts(x?.runs ?? []), [x]);
  return (
    <>
      <div class="box" data-testid="explain">
        {why.now.value.state === "error" && <Failed why={why.now.value.why} again={why.again} />}
        {x && (
          <>
            <p>
              <bdi>{clean(x.reason.text)}</bdi> <small>{x.state === "ENDED" ? "at" : "since"}</small> <Time at={x.since} />
            </p>
            {x.advice && <p class="hint">{clean(x.advice)}</p>}
            {x.log && x.log.length > 0 && <LastLines trial={trial.id} of={x.log} />}
          </>
        )}
      </div>
      <Curves trials={rows} only={[trial.id]} experiments={[trial.experimentId]} metrics={metrics.value} metric={mainMetric(experiment)} height={360} marks={marks} />
      <MoreCurves trials={rows} only={[trial.id]} experiments={[trial.experimentId]} metrics={metrics.value} metric={mainMetric(experiment)} marks={marks} />
      <section>
        <h2>Hyperparameters</h2>
        <Facts
          rows={Object.entries(flat(trial.hparams)).map(([k, v]) => {
            const text = <bdi>{clean(worded(v))}</bdi>;
            const cell = asChoice(v);
            // No filter matches a value that is missing or not a number.
            if (cell === null || cell === "" || Number.isNaN(cell)) return [k, text];
            return [
              k,
              <Link to={`/experiments/${trial.experimentId}/trials?q=${encodeURIComponent(condition(`hp.${k}`, "=", String(cell)))}`} label={clean(`Trials with ${k} ${String(cell)}`)}>
                {text}
              </Link>,
            ];
          })}
        />
      </section>
      <section>
        <h2>Runs</h2>
        <div class="tablebox" tabIndex={0} role="group" aria-label="Runs, scrolls">
          <table>
            <thead>
              <tr>
                <th scope="col">Run</th>
                <th scope="col">State</th>
                <th scope="col">Slots</th>
                <th scope="col">Ran on</th>
                <th scope="col">From step</th>
                <th scope="col">Started</th>
                <th scope="col">Duration</th>
                <th scope="col">How it ended</th>
              </tr>
            </thead>
            <tbody>
              {runs.map((r, i) => (
                <tr key={r.allocationId}>
                  <td>{i + 1}</td>
                  <td>{state(r.state)}</td>
                  <td>{queued(r) ? "" : r.slots}</td>
                  <td data-col="agents">
                    <bdi>{clean(places.get(i + 1)?.agents.join(", ") ?? "")}</bdi>
                  </td>
                  <td class="num">{places.get(i + 1)?.fromSteps ?? ""}</td>
                  <td>
                    {queued(r) ? "waits for slots" : <Time at={r.startTime} />}
                  </td>
                  <td>{queued(r) ? "" : span(duration(r))}</td>
                  <td>{clean(r.exitReason ?? "")}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </section>
    </>
  );
}

/** The last lines of a failed trial, each with a link to its place in the log. */
function LastLines(props: { trial: number; of: readonly number[] }) {
  const first = props.of[0]!;
  const { now } = useRead(`lines ${props.trial} ${first} ${props.of.length}`, (signal) => get<LogPage>(`/troupe/v1/trials/${props.trial}/log`, { from: first, limit: props.of.length }, signal));
  const found = now.value.state === "ready" ? now.value.value.lines : [];
  return (
    <div data-testid="last-lines">
      <h2>Its last lines</h2>
      <ol class="lastlines">
        {found.map((l) => (
          <li key={l.line} data-line={l.line}>
            <Link to={`/trials/${props.trial}/logs?line=${l.line}`} label={`Line ${l.line}`}>
              {l.line}
            </Link>{" "}
            {before(l)}
            <bdi>{segments(l.text).map((s) => s.text).join("")}</bdi>
          </li>
        ))}
      </ol>
    </div>
  );
}

const mostReports = 20_000;
const fixed = ["row", "group", "steps", "run", "at", "archived"]; // names of columns that exist already; metrics of these names get columns besides these
const mostStructured = 12;

function Reports(props: GetTrialResponse) {
  const id = props.trial.id;
  const { now, again } = useRead(`reports ${id}`, (signal) => get<Report[]>(`/troupe/v1/trials/${id}/metrics`, { limit: mostReports }, signal));
  const later = useSignal<readonly Report[]>([]);
  const v = now.value;
  const read = v.state === "ready" ? v.value : none;
  const rows = useMemo(() => (later.value.length > 0 ? [...read, ...later.value.filter((r) => r.row > (read[read.length - 1]?.row ?? 0))] : read), [read, later.value]);
  const newest = useRef<Report | undefined>(undefined);
  newest.current = rows[rows.length - 1];
  // A trial that reports is read again when the stream reports it, and every 5 s, because the stream does not report everything.
  const alive = !ended(props.trial);
  useEffect(() => {
    if (v.state !== "ready" || !alive) return;
    let busy = false;
    let soon: ReturnType<typeof setTimeout> | undefined;
    const abort = new AbortController();
    const more = () => {
      soon = undefined;
      if (busy || document.hidden || paused.peek() || !newest.current) return void (!newest.current && !document.hidden && again());
      busy = true;
      const known = newest.current!;
      get<Report[]>(`/troupe/v1/trials/${id}/metrics`, { after: known.row - 1, limit: 1000 }, abort.signal)
        .then(
          ([same, ...more]) => {
            if (same?.row === known.row && same.endTime === known.endTime) {
              if (more.length > 0) later.value = later.peek().concat(more);
              return;
            }
            later.value = []; // the server has an older data directory now
            again();
          },
          () => undefined,
        )
        .finally(() => (busy = false));
    };
    const due = setInterval(more, 5000);
    const stop = listen([`experiment/${props.trial.experimentId}`], (e) => {
      if (e.name === "trial" && e.data.id === id) soon ??= setTimeout(more, 500);
    });
    return () => {
      abort.abort();
      stop();
      clearInterval(due);
      clearTimeout(soon);
    };
  }, [id, v.state, alive, props.trial.experimentId]);
  const names = useMemo(() => {
    const all = new Map<string, boolean>(); // name of a metric to whether all its values are numbers
    for (const r of rows) for (const [k, x] of Object.entries(r.metrics)) all.set(k, (all.get(k) ?? true) && number(x) !== null);
    return all;
  }, [rows]);
  const usual = useMemo(() => new Set(Array.from(names).filter(([, numeric]) => numeric).slice(0, 12).map(([k]) => k)), [names]);
  const columns = useMemo<Column<Report>[]>(
    () => [
      { key: "row", title: "Report", value: (r) => r.row, width: 100 },
      { key: "group", title: "Group", value: (r) => r.group, width: 110 },
      { key: "steps", title: "Steps", value: (r) => r.totalBatches, width: 80 },
      { key: "run", title: "Run", value: (r) => r.trialRunId, width: 60 },
      { key: "at", title: "At", value: (r) => r.endTime, show: (r) => <Time at={r.endTime} />, width: 190 },
      { key: "archived", title: "Given up", value: (r) => (r.archived ? "yes" : ""), usual: false, width: 90 },
      ...Array.from(names).map(([k, numeric]) => ({ key: fixed.includes(k) ? `m.${k}` : k, title: k, value: (r: Report) => (numeric ? number(r.metrics[k]) : r.metrics[k] === undefined ? null : JSON.stringify(r.metrics[k])), usual: usual.has(k), width: 120 })),
    ],
    [names],
  );
  const structured = useMemo(() => steps(Array.from(names).filter(([, numeric]) => !numeric).map(([k]) => k), rows.filter((r) => !r.archived)), [names, rows]); // without reports of runs that were given up
  const look = params.value.text("mq");
  const named = structured.map((one) => one.title);
  const { shown, found } = drawn(named, [], look, mostStructured);
  if (v.state === "error") return <Failed whole why={v.why} again={again} />;
  return (
    <>
      {structured.length > mostStructured && (
        <div class="toolbar">
          <label class="grow">
            <span>Search metrics</span>
            <input type="search" spellcheck={false} value={look} onInput={(e) => set({ mq: e.currentTarget.value }, true)} />
          </label>
          <span role="status">{found > mostStructured ? `${mostStructured} of ${found} metrics that are no numbers; all of them are columns` : `${found}`}</span>
        </div>
      )}
      {structured.filter((one) => shown.includes(one.title)).map((one) => (
        <Steps key={one.title} {...one} />
      ))}
      {read.length === mostReports && <p class="hint">The first {mostReports} reports; `troupe trial metrics {id}` has all.</p>}
      <Grid name="Reports" rows={rows} columns={columns} id={(r) => String(r.row)} usualSort="row" bare={["group"]} command={`troupe trial metrics ${id}`} empty={v.state === "ready" ? <Empty>No report yet.</Empty> : ""} />
    </>
  );
}

/** A structured metric, with a slider through its steps. `title` contains the group where several groups have a metric of this name. */
function Steps(props: { name: string; title: string; reports: readonly Report[] }) {
  const key = `step.${props.title}`;
  const chosen = params.value.text(key);
  const named = stepNames(props.reports);
  const at = chosen === "" ? props.reports.length - 1 : Math.max(0, named.indexOf(chosen));
  const report = props.reports[at];
  if (!report) return null;
  return (
    <section>
      <h2>{clean(props.title)}</h2>
      {props.reports.length > 1 && (
        <label>
          <span>
            Step {report.totalBatches} ({at + 1} of {props.reports.length})
          </span>
          <input
            type="range"
            aria-label={`Step ${report.totalBatches} (${at + 1} of ${props.reports.length}) of ${clean(props.title)}`}
            min={0}
            max={props.reports.length - 1}
            value={at}
            onInput={(e) => {
              const to = Number(e.currentTarget.value);
              set({ [key]: to < props.reports.length - 1 ? named[to]! : null }, true);
            }}
          />
        </label>
      )}
      <Structured value={report.metrics[props.name]} name={props.name} />
    </section>
  );
}
