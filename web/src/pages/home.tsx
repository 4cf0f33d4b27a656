import { useEffect, useRef } from "preact/hooks";
import { get, session, type Experiment, type Explanation, type ExperimentExplanation, type LogLine } from "../api";
import { ended, othersOpen } from "../ended";
import { several } from "../goals";
import { listen } from "../live";
import { usePage } from "../page";
import { useChanges } from "../changes";
import { firstErrorLine, standing } from "../reasons";
import { before, segments } from "../terminal";
import { short, clean, nameOf, number } from "../text";
import { Copy, Failed, Link, Progress, State, Time, useRead } from "../ui";
import type { GetExperimentsResponse, LogPage, Outcome, Status, TrialProgressList } from "../api_types";

interface View {
  all: Experiment[];
  failed: Experiment[]; // the last ones that failed
  others: number; // number of experiments of other users that have not ended
  status: Status;
  waiting: { id: number; name: string; why: ExperimentExplanation }[];
}

const newest = 200;
const live = ["ACTIVE", "STOPPING_CANCELED", "STOPPING_KILLED", "STOPPING_COMPLETED", "STOPPING_ERROR"] as const;

async function read(signal: AbortSignal): Promise<View> {
  const [list, status] = await Promise.all([
    get<GetExperimentsResponse>("/api/v1/experiments", { limit: newest, orderBy: "ORDER_BY_DESC" }, signal),
    get<Status>("/troupe/v1/status", {}, signal),
  ]);
  const me = session.peek()?.user.username ?? "";
  let failed = list.experiments.filter((e) => e.state === "STATE_ERROR");
  let others = list.experiments.filter((e) => !ended(e) && e.username !== me).length;
  // Experiments that run, wait or have failed may not be among the newest ones.
  if (list.experiments.length === newest) {
    const of = (states: readonly string[], limit: number, more = "") => get<GetExperimentsResponse>(`/api/v1/experiments?limit=${limit}&orderBy=ORDER_BY_DESC&${states.map((s) => `states=STATE_${s}`).join("&")}${more}`, {}, signal);
    const mine = `&users=${encodeURIComponent(me)}`;
    const [run, own, held, paused, bad] = await Promise.all([of(live, 50), of(live, newest, mine), of(["PAUSED"], 50, mine), of(["PAUSED"], 1), of(["ERROR"], 5, "&sortBy=SORT_BY_END_TIME")]);
    const known = new Set(list.experiments.map((e) => e.id));
    for (const e of [own, held, run].flatMap((x) => x.experiments)) if (!known.has(e.id) && known.add(e.id)) list.experiments.push(e);
    failed = bad.experiments;
    const total = (x: GetExperimentsResponse) => x.pagination.total ?? 0;
    others = Math.max(0, total(run) + total(paused) - total(own) - total(held));
  }
  failed = failed.toSorted((x, y) => Date.parse(y.endTime ?? "") - Date.parse(x.endTime ?? "")).slice(0, 5);
  // Of the experiments that wait, the user's own come first, and paused ones last.
  const place = (e: Experiment) => (e.state === "STATE_PAUSED" ? 2 : 0) + (e.username === me ? 0 : 1);
  const open = list.experiments.filter((e) => !ended(e)).toSorted((x, y) => place(x) - place(y)).slice(0, 20);
  const why = await Promise.all(open.map((e) => get<ExperimentExplanation>(`/troupe/v1/experiments/${e.id}/explain`, {}, signal).catch(() => null)));
  return {
    all: list.experiments,
    failed,
    others,
    status,
    waiting: open.flatMap((e, i) => (why[i] && (e.state === "STATE_PAUSED" || why[i].trials.waiting > 0 || why[i].trials.running === 0) ? [{ id: e.id, name: e.name, why: why[i] }] : [])),
  };
}

const counts = (s: Pick<Status, "slots" | "waiting">): string => [s.slots.total, s.slots.used, s.waiting].join();

const commands = ["troupe run configs/experiments/digits-asha.yaml", "troupe experiment create CONFIG.yaml DIR"];

export default function Home() {
  const { now, again } = useRead("home", read);
  useChanges(["experiments"], 300, again);
  const view = now.value;
  // Agents register and leave, and tasks that are not trials hold slots, without a change of an experiment.
  const shown = useRef("");
  if (view.state === "ready") shown.current = counts(view.value.status);
  useEffect(() => listen(["cluster"], (e) => void (e.name === "cluster" && shown.current !== "" && shown.current !== counts(e.data.status) && again())), []);
  usePage("Home", view.state === "loading" ? "loading" : view.state === "error" ? "error" : view.value.all.length === 0 ? "empty" : "ready");
  return (
    <>
      <h1 tabIndex={-1}>Home</h1>
      {view.state === "error" && <Failed why={view.why} again={again} />}
      {view.state === "ready" && (view.value.all.length === 0 ? <Begin /> : <Overview {...view.value} />)}
    </>
  );
}

function Begin() {
  return (
    <section class="empty">
      <h2>Nothing has run here yet</h2>
      <p>One of these begins a search:</p>
      <ul class="commands">
        {commands.map((c) => (
          <li key={c}>
            <code>{c}</code> <Copy text={() => c}>Copy</Copy>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Overview(props: View) {
  const me = session.value?.user.username;
  const running = props.all.filter((e) => !ended(e) && e.state !== "STATE_PAUSED"); // those that are paused stand below
  const mine = running.filter((e) => e.username === me);
  const failed = props.failed;
  const { total, used } = props.status.slots;
  return (
    <>
      <p class="strip">
        <Link to="/cluster">
          {used} of {total} slots used
        </Link>
      </p>
      <section>
        <h2>{mine.length === running.length ? "Running" : "Mine, running"}</h2>
        {mine.length === 0 ? (
          <p>
            Nothing of yours runs.{" "}
            {props.others > 0 && (
              <Link to={`/experiments?q=${encodeURIComponent(othersOpen(me ?? ""))}`}>
                {props.others} {props.others === 1 ? "experiment" : "experiments"} of others
              </Link>
            )}
          </p>
        ) : (
          <ul class="cards">
            {mine.map((e) => (
              <li key={e.id}>
                <Link to={`/experiments/${e.id}`}>
                  {e.id} <bdi>{clean(e.name)}</bdi>
                </Link>{" "}
                <State of={e.state} /> <Progress of={e.progress} />
                <div>
                  {e.bestTrialId ? (
                    <>
                      best <bdi>{nameOf(e.searcherMetric)}</bdi> {short(number(e.bestTrialSearcherMetric))} by <Link to={`/trials/${e.bestTrialId}`}>trial {e.bestTrialId}</Link>
                    </>
                  ) : (
                    several(e) ? "several metrics, of which none alone is the best" : "no validation yet"
                  )}
                </div>
              </li>
            ))}
          </ul>
        )}
      </section>
      {props.waiting.length > 0 && (
        <section>
          <h2>Waiting</h2>
          <ul class="cards">
            {props.waiting.map((w) => (
              <li key={w.id}>
                <Link to={`/experiments/${w.id}`}>
                  {w.id} <bdi>{clean(w.name)}</bdi>
                </Link>
                <div>{clean(standing(w.why))}</div>
              </li>
            ))}
          </ul>
        </section>
      )}
      {failed.length > 0 && (
        <section>
          <h2>Last failures</h2>
          <ul class="cards">
            {failed.map((e) => (
              <Failure key={e.id} of={e} />
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

/** The line in which the first failed trial of the experiment says what was wrong. */
async function errorOf(experiment: number, signal: AbortSignal): Promise<{ trial: number; line: LogLine } | null> {
  const all = await get<TrialProgressList>(`/troupe/v1/experiments/${experiment}/trials`, {}, signal);
  const trial = all.trials.find((t) => t.state === "STATE_ERROR")?.id;
  if (!trial) return null;
  const { log } = await get<Explanation>(`/troupe/v1/trials/${trial}/explain`, {}, signal);
  if (!log?.length) return null;
  const page = await get<LogPage>(`/troupe/v1/trials/${trial}/log`, { from: log[0], limit: log.length }, signal);
  const line = firstErrorLine(page.lines);
  return line && { trial, line };
}

function Failure(props: { of: Experiment }) {
  const { now } = useRead(`failure ${props.of.id}`, (signal) =>
    Promise.all([get<Outcome>(`/troupe/v1/experiments/${props.of.id}/outcome`, {}, signal), errorOf(props.of.id, signal).catch(() => null)]),
  );
  const [outcome, error] = now.value.state === "ready" ? now.value.value : [null, null];
  return (
    <li>
      <Link to={`/experiments/${props.of.id}`}>
        {props.of.id} <bdi>{clean(props.of.name)}</bdi>
      </Link>{" "}
      <Time at={props.of.endTime} /> <bdi>{clean(outcome?.why.split("\n")[0] ?? "")}</bdi>
      {error && (
        <div class="line">
          <Link to={`/trials/${error.trial}/logs?line=${error.line.line}`}>trial {error.trial}</Link> {before(error.line)}
          <bdi>{segments(error.line.text).map((s) => s.text).join("")}</bdi>
        </div>
      )}
    </li>
  );
}
