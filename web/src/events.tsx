// Facts, added as they happen. They are read up to the newest one and then from there on. A stream for each tab would use up the
// connections of the browser.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { explain, Refused, request } from "./api";
import { Grid, type Column } from "./grid";
import { listen, paused, returns, rights } from "./live";
import { clean } from "./text";
import { Empty, Failed, Time } from "./ui";

interface Fact {
  sequence: number;
  entity: string;
  type: string;
  at: string;
  experiment?: number;
  by: string; // name of the user; empty where no user caused the fact
  rest: string;
}

const columns = (audit: boolean): Column<Fact>[] => [
  { key: "sequence", title: "Number", value: (f) => f.sequence, width: 110 },
  { key: "at", title: "At", value: (f) => f.at, show: (f) => <Time at={f.at} />, width: 190 },
  { key: "by", title: "By", value: (f) => f.by, usual: audit, width: 120 },
  { key: "type", title: "What", value: (f) => f.type, width: 190 },
  { key: "entity", title: "Of", value: (f) => f.entity, width: 150 },
  { key: "experiment", title: "Experiment", value: (f) => f.experiment ?? null, width: 130 },
  { key: "fields", title: "Fields", value: (f) => f.rest, show: (f) => <span title={clean(f.rest)}>{clean(f.rest)}</span>, width: 520 },
];

const most = 10_000;

function fact(text: string): Fact {
  const { sequence, entity, type, at, experiment, number: _, ...rest } = JSON.parse(text) as Record<string, unknown>;
  return {
    sequence: sequence as number,
    entity: String(entity),
    type: String(type),
    at: String(at),
    by: typeof rest["by"] === "string" ? rest["by"] : "",
    ...(experiment === undefined ? {} : { experiment: experiment as number }),
    rest: JSON.stringify(rest).slice(0, 2000),
  };
}

const chosen = (query: string): number[] => (new URLSearchParams(query).get("experiment") ?? "").split(",").map(Number);
const facts = [columns(false), columns(true)] as const;
const pauseAfterChange = 400; // ms
const untold = 4000; // ms between two looks for facts that no topic reports

/** `query` chooses the facts: "experiment=7", "entity=trial/12", "kind=audit". */
export function EventGrid(props: { query: string; topics: readonly string[]; command: string; audit?: boolean; onRead?: () => void }) {
  const rows = useSignal<readonly Fact[]>([]);
  const whole = useSignal(false); // whether all earlier facts were read
  const cut = useSignal(false); // whether older facts are left out
  const fault = useSignal<unknown>(null);
  const turn = useSignal(0);
  const read = useRef(rights.peek()); // with which rights the rows were read
  useEffect(() => {
    const forget = () => {
      rows.value = [];
      whole.value = cut.value = false;
    };
    if (read.current !== rights.peek()) forget();
    read.current = rights.peek();
    const abort = new AbortController();
    let known = rows.peek()[rows.peek().length - 1]?.sequence ?? 0; // number of the newest fact that was read
    let due: ReturnType<typeof setTimeout> | undefined;
    let dueAt = Infinity;
    let busy = false;
    let changed = false; // whether something changed during the read
    let refused = false;
    let stale = false; // whether an experiment of these facts is gone, so that all are read again
    const show = (fresh: Fact[]) => {
      if (fresh.length === 0) return;
      const all = rows.peek().concat(fresh);
      cut.value ||= all.length > most;
      rows.value = all.slice(-most);
    };
    const follow = async () => {
      const newest = Number((await request("GET", "/troupe/v1/session", undefined, abort.signal)).headers.get("Troupe-Sequence")) || 0;
      // With a smaller number the server has an older data directory.
      if (newest < known || stale) {
        forget();
        known = 0;
        stale = false;
      }
      if (newest <= known) return;
      if (props.query === "" && known < newest - most) {
        known = newest - most;
        cut.value = true;
      }
      const answer = await request("GET", `/troupe/v1/events?after=${known}&until=${newest}${props.query ? "&" + props.query : ""}`, undefined, abort.signal, true);
      const reader = answer.body!.getReader();
      const decoder = new TextDecoder();
      let rest = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        rest += decoder.decode(value, { stream: true });
        const parts = rest.split("\n");
        rest = parts.pop() ?? "";
        const fresh = parts.filter((line) => line.startsWith("data: ")).map((line) => fact(line.slice(6)));
        known = fresh[fresh.length - 1]?.sequence ?? known; // after a lost connection the next read begins here
        show(fresh);
      }
      known = newest;
      whole.value = true;
    };
    const look = (after: number) => {
      const at = performance.now() + after;
      if (at >= dueAt || refused) return;
      dueAt = at;
      clearTimeout(due);
      due = setTimeout(() => {
        dueAt = Infinity;
        if (busy) return void (changed = true);
        if (paused.peek() || document.hidden) return look(pauseAfterChange);
        busy = true;
        changed = false;
        follow()
          .then(
            () => (fault.value = null),
            (why: unknown) => {
              if (!abort.signal.aborted) fault.value = why;
              refused = why instanceof Refused && why.status < 500; // a refusal is final
            },
          )
          .finally(() => {
            busy = false;
            if (!abort.signal.aborted && !refused) look(changed ? pauseAfterChange : untold);
          });
      }, after);
    };
    look(0);
    const stop = listen([...props.topics], (e) => {
      if (e.name === "gone") stale ||= chosen(props.query).includes(e.data.experiment) || rows.peek().some((f) => f.experiment === e.data.experiment);
      look(pauseAfterChange);
    });
    return () => {
      stop();
      abort.abort();
      clearTimeout(due);
    };
  }, [props.query, turn.value, returns.value, rights.value]);
  const known = whole.value || fault.value !== null;
  useEffect(() => {
    if (known) props.onRead?.();
  }, [known]);
  if (fault.value !== null && rows.value.length === 0) return <Failed whole why={explain(fault.value)} again={() => ++turn.value} />;
  return (
    <>
      {cut.value && rows.value.length > 0 && (
        <p class="hint">
          The newest {most} events; `{props.command}` has all of them.
        </p>
      )}
      <Grid name="Events" rows={rows.value} columns={facts[props.audit ? 1 : 0]} id={(f) => String(f.sequence)} usualSort="-sequence" otherOrder bare={["type", "entity"]} loading={!whole.value} command={props.command} empty={whole.value ? <Empty>No event yet.</Empty> : ""} />
    </>
  );
}
