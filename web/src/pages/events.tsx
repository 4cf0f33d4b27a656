import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get } from "../api";
import { usePage } from "../page";
import { EventGrid } from "../events";
import { Grid, type Column } from "../grid";
import { params, set } from "../router";
import { clean } from "../text";
import { Empty, Failed, Time, useRead } from "../ui";
import type { GetExperimentsResponse, ShellEvent, ShellEvents } from "../api_types";

interface Row extends ShellEvent {
  number: number;
}
const columns: Column<Row>[] = [
  { key: "at", title: "At", value: (r) => r.at, show: (r) => <Time at={r.at} />, width: 170 },
  { key: "kind", title: "Kind", value: (r) => r.kind, width: 110 },
  { key: "user", title: "User", value: (r) => r.user, width: 120 },
  { key: "actor", title: "Actor", value: (r) => r.actor, width: 180 },
  { key: "what", title: "What", value: (r) => r.what, show: (r) => <span title={clean(r.what)}>{clean(r.what)}</span>, width: 500 },
];
const kinds = ["", "audit", "supervision", "node", "fault"];

export default function Events() {
  usePage("Events", "ready");
  const kind = params.value.text("kind");
  const experiment = params.value.text("experiment");
  const { now } = useRead("names", (signal) => get<GetExperimentsResponse>("/api/v1/experiments", { limit: 200, orderBy: "ORDER_BY_DESC" }, signal));
  const list = now.value.state === "ready" ? now.value.value.experiments : [];
  return (
    <>
      <h1 tabIndex={-1}>Events</h1>
      <div class="toolbar">
        <label>
          <span>Kind</span>
          <select aria-label="Kind" value={kind} onChange={(e) => set({ kind: e.currentTarget.value })}>
            {kinds.map((k) => (
              <option key={k} value={k}>
                {k === "" ? "Facts" : k === "audit" ? "Who did what" : k === "supervision" ? "Deaths and restarts of actors" : k === "node" ? "Nodes" : "Faults"}
              </option>
            ))}
          </select>
        </label>
        {kind === "" && (
          <label>
            <span>Experiment</span>
            <select aria-label="Experiment" value={experiment} onChange={(e) => set({ experiment: e.currentTarget.value })}>
              <option value="">All</option>
              {list.map((e) => (
                <option key={e.id} value={e.id}>
                  {e.id} {clean(e.name)}
                </option>
              ))}
            </select>
          </label>
        )}
      </div>
      {kind === "" ? <EventGrid query={experiment ? `experiment=${encodeURIComponent(experiment)}` : ""} command={experiment ? `troupe experiment events ${experiment}` : "troupe shell -c 'events kind=state --max 10000'"} /> : <Desk kind={kind} key={kind} />}
    </>
  );
}

/** What the desk of the shell keeps: not facts of the journal. */
function Desk(props: { kind: string }) {
  const again_ = useSignal(0);
  const { now, again } = useRead(`desk ${props.kind} ${again_.value}`, (signal) => get<ShellEvents>("/troupe/v1/shell/events", { kind: props.kind, max: 1000 }, signal));
  useEffect(() => {
    const due = setInterval(() => document.hidden || again(), 5000);
    return () => clearInterval(due);
  }, []);
  const v = now.value;
  if (v.state === "error") return <Failed why={v.why} again={again} />;
  const rows = v.state === "ready" ? v.value.rows.map((r, number) => ({ ...r, number })) : [];
  return <Grid name="Events" rows={rows} columns={columns} id={(r) => String(r.number)} usualSort="-at" bare={["actor", "what", "user"]} command={`troupe shell -c 'events kind=${props.kind}'`} empty={v.state === "ready" ? <Empty>No event yet.</Empty> : ""} />;
}
