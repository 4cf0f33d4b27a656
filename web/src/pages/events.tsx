import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get } from "../api";
import { usePage } from "../page";
import { quoted } from "../command";
import { ChooseExperiment } from "../experiment_choice";
import { EventGrid } from "../events";
import { Grid, type Column } from "../grid";
import { params, set } from "../router";
import { paused } from "../live";
import { clean } from "../text";
import { Empty, Failed, Time, useRead } from "../ui";
import type { ShellEvent, ShellEvents } from "../api_types";

interface Row extends ShellEvent {
  id: string; // stays the same when the row is read again
}

function withIds(rows: readonly ShellEvent[]): Row[] {
  const seen = new Map<string, number>();
  return rows.map((r) => {
    const id = `${r.at} ${r.actor} ${r.what}`;
    const n = seen.get(id) ?? 0;
    seen.set(id, n + 1);
    return { ...r, id: n > 0 ? `${id} ${n}` : id };
  });
}

const columns: Column<Row>[] = [
  { key: "at", title: "At", value: (r) => r.at, show: (r) => <Time at={r.at} />, width: 190 },
  { key: "kind", title: "Kind", value: (r) => r.kind, width: 110 },
  { key: "user", title: "User", value: (r) => r.user, width: 120 },
  { key: "actor", title: "Actor", value: (r) => r.actor, width: 180 },
  { key: "what", title: "What", value: (r) => r.what, show: (r) => <span title={clean(r.what)}>{clean(r.what)}</span>, width: 500 },
];
const kinds: [string, string][] = [
  ["", "Facts"],
  ["audit", "Who did what"],
  ["shell", "Orders in the shell"],
  ["supervision", "Deaths and restarts of actors"],
  ["node", "Nodes"],
  ["fault", "Faults"],
];

/** Whether a kind of events are facts of the journal. The desk of the shell has all others. */
const isFacts = (kind: string): boolean => kind === "" || kind === "audit";

export default function Events() {
  const kind = params.value.text("kind");
  const experiment = params.value.text("experiment");
  const read = useSignal(""); // the list that was read
  const asked = `${kind} ${experiment}`;
  usePage("Events", read.value === asked ? "ready" : "loading");
  const got = () => void (read.value = asked);
  return (
    <>
      <h1 tabIndex={-1}>Events</h1>
      <div class="toolbar">
        <label>
          <span>Kind</span>
          <select aria-label="Kind" value={kind} onChange={(e) => set({ kind: e.currentTarget.value })}>
            {kinds.map(([k, name]) => (
              <option key={k} value={k}>
                {name}
              </option>
            ))}
          </select>
        </label>
        {isFacts(kind) && (
          <label>
            <span>Experiment</span>
            <ChooseExperiment />
          </label>
        )}
      </div>
      {isFacts(kind) ? (
        <EventGrid
          key={asked}
          onRead={got}
          query={[...(kind === "audit" ? ["kind=audit"] : []), ...(experiment ? [`experiment=${encodeURIComponent(experiment)}`] : [])].join("&")}
          topics={["experiments", "cluster"]}
          audit={kind === "audit"}
          command={kind === "audit" ? `troupe events --kind audit${experiment ? ` --experiment ${quoted(experiment)}` : ""}` : experiment ? `troupe experiment events ${quoted(experiment)}` : "troupe events"}
        />
      ) : (
        <Desk kind={kind} key={kind} onRead={got} />
      )}
    </>
  );
}

/** The events that the desk of the shell keeps, which are not facts of the journal. The desk has another word for orders. */
function Desk(props: { kind: string; onRead: () => void }) {
  const { now, again } = useRead(`desk ${props.kind}`, (signal) => get<ShellEvents>("/troupe/v1/shell/events", { kind: props.kind === "shell" ? "audit" : props.kind, max: 1000 }, signal));
  useEffect(() => {
    const due = setInterval(() => document.hidden || paused.peek() || again(), 5000);
    return () => clearInterval(due);
  }, []);
  const v = now.value;
  useEffect(() => {
    if (v.state !== "loading") props.onRead();
  }, [v.state]);
  if (v.state === "error") return <Failed whole why={v.why} again={again} />;
  const rows = v.state === "ready" ? withIds(v.value.rows) : [];
  return <Grid name="Events" rows={rows} columns={columns} id={(r) => r.id} usualSort="-at" bare={["actor", "what", "user"]} command={`troupe events --kind ${props.kind}`} empty={v.state === "ready" ? <Empty>No event yet.</Empty> : ""} />;
}
