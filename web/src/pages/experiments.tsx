import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { get, may, post, type Experiment } from "../api";
import { usePage } from "../page";
import { alive, steerable } from "../ended";
import { goals } from "../goals";
import { Grid, type Column } from "../grid";
import { listen, returns } from "../live";
import { pastTime } from "../past";
import { go, pastAt } from "../router";
import { clean, number, span, state } from "../text";
import { each, Empty, Failed, Progress, question, State, Time, useRead, useAtOnce } from "../ui";
import { Spark, values } from "../spark";
import type { GetExperimentsResponse } from "../api_types";

/** The seconds that something took, or has taken so far: until now, or until the moment that is shown. */
export function duration(e: { startTime: string; endTime?: string }): number {
  const until = e.endTime ? Date.parse(e.endTime) : pastAt.peek() > 0 ? pastTime.peek() : Date.now();
  return (until - Date.parse(e.startTime)) / 1000;
}

const columns: Column<Experiment>[] = [
  { key: "id", title: "Id", value: (e) => e.id, width: 64 },
  { key: "name", title: "Name", value: (e) => e.name, width: 220 },
  { key: "best", title: "Best", value: (e) => number(e.bestTrialSearcherMetric), width: 110 },
  { key: "state", title: "State", value: (e) => state(e.state), show: (e) => <State of={e.state} />, width: 120 },
  { key: "progress", title: "Progress", value: (e) => e.progress, show: (e) => <Progress of={e.progress} />, width: 150 },
  { key: "trials", title: "Trials", value: (e) => e.numTrials, width: 80 },
  { key: "spark", title: "Best so far", value: (e) => number(e.bestTrialSearcherMetric), show: (e) => <Spark experiment={e} />, file: (e) => values(e).then((all) => all.join(" ")), width: 130 },
  { key: "owner", title: "Owner", value: (e) => e.username, width: 120 },
  { key: "started", title: "Started", value: (e) => e.startTime, show: (e) => <Time at={e.startTime} />, width: 190 },
  { key: "duration", title: "Duration", value: duration, show: (e) => span(duration(e)), width: 110 },
  { key: "metric", title: "Metric", value: (e) => goals(e).join(" "), usual: false, width: 110 },
  { key: "searcher", title: "Searcher", value: (e) => e.searcherType, usual: false, width: 130 },
];

export default function Experiments() {
  const rows = useSignal<readonly Experiment[]>([]);
  const { now, again } = useRead("experiments", (signal) => get<GetExperimentsResponse>("/api/v1/experiments", { limit: -1 }, signal));
  useAtOnce(() => {
    if (now.value.state === "ready") rows.value = now.value.value.experiments;
  });
  useEffect(() => {
    let fresh = new Map<number, Experiment>();
    let due = 0;
    const stop = listen(["experiments"], (e) => {
      if (e.name === "gone") rows.value = rows.peek().filter((r) => r.id !== e.data.experiment);
      if (e.name !== "experiment") return;
      const one = e.data as unknown as Experiment;
      fresh.set(one.id, one);
      due ||= requestAnimationFrame(() => {
        due = 0;
        const changed = fresh;
        fresh = new Map();
        const next = rows.peek().map((r) => {
          const c = changed.get(r.id);
          changed.delete(r.id);
          return c ?? r;
        });
        rows.value = [...next, ...changed.values()];
      });
    });
    return () => {
      cancelAnimationFrame(due);
      stop();
    };
  }, []);
  useSignalEffect(() => {
    if (returns.value > 0) again();
  });
  const all = rows.value;
  const view = now.value;
  usePage("Experiments", view.state === "error" ? "error" : view.state === "loading" ? "loading" : all.length === 0 ? "empty" : "ready");
  const command = useMemo(() => "troupe experiment list", []);
  const order = (ids: string[], what: string, done: string) => each(ids, "experiment", (id) => post(`/api/v1/experiments/${id}/${what}`), ids.length === 1 ? `experiment ${ids[0]} is ${done}` : `${ids.length} experiments are ${done}`);
  const named = 10; // limit of the names in the question
  const namesOf = (ids: string[]) => ids.slice(0, named).map((id) => `${id} ${clean(all.find((e) => String(e.id) === id)?.name ?? "")}`).join(", ") + (ids.length > named ? ` and ${ids.length - named} more` : "");
  const placesOf = (ids: string[]) => ids.map((id) => all.find((e) => String(e.id) === id)?.workspaceId);
  const several = (ids: string[]) => (ids.length === 1 ? `experiment ${ids[0]}` : `${ids.length} experiments`);
  return (
    <>
      <h1 tabIndex={-1}>Experiments</h1>
      {view.state === "error" && <Failed why={view.why} again={again} />}
      {view.state !== "error" && (
        <Grid
          name="Experiments"
          rows={all}
          columns={columns}
          id={(e) => String(e.id)}
          link={(e) => `/experiments/${e.id}`}
          usualSort="-id"
          otherOrder
          selectable
          command={command}
          empty={view.state === "loading" ? "" : <Empty>No experiments yet.</Empty>}
          actions={(ids) => {
            const live = alive(all, ids); // the others take no orders
            const steered = steerable(all, ids);
            return ids.length > 0 && (
              <>
                <button type="button" onClick={() => go(`/compare?experiments=${ids.join(",")}`)}>
                  Compare
                </button>
                {steered.length > 0 && may("change experiment", ...placesOf(steered)) && (
                  <>
                    <button type="button" onClick={() => void order(steered, "pause", "paused")}>
                      Pause
                    </button>
                    <button type="button" onClick={() => void order(steered, "activate", "resumed")}>
                      Resume
                    </button>
                    <button type="button" onClick={() => void order(steered, "cancel", "canceled")}>
                      Cancel
                    </button>
                  </>
                )}
                {live.length > 0 && may("kill experiment", ...placesOf(live)) && (
                  <button
                    type="button"
                    class="danger"
                    onClick={() =>
                      (question.value = {
                        title: `Kill ${several(live)}?`,
                        text: `${namesOf(live)}: what was not saved in a checkpoint is lost.`,
                        button: "Kill",
                        go: () => void order(live, "kill", "killed"),
                      })
                    }
                  >
                    Kill
                  </button>
                )}
              </>
            );
          }}
        />
      )}
    </>
  );
}

