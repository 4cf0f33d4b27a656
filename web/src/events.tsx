// Facts as they come: the newest ones first read, further ones as they are committed.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { explain, request } from "./api";
import { Grid, type Column } from "./grid";
import { paused, returns } from "./live";
import { clean } from "./text";
import { Empty, Failed, Time } from "./ui";

interface Fact {
  sequence: number;
  entity: string;
  type: string;
  at: string;
  experiment?: number;
  rest: string;
}

const columns: Column<Fact>[] = [
  { key: "sequence", title: "Number", value: (f) => f.sequence, width: 110 },
  { key: "at", title: "At", value: (f) => f.at, show: (f) => <Time at={f.at} />, width: 190 },
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
    ...(experiment === undefined ? {} : { experiment: experiment as number }),
    rest: JSON.stringify(rest).slice(0, 2000),
  };
}

/** `query`: "experiment=7" or "entity=trial/12". Its own connection, which ends with the page. */
export function EventGrid(props: { query: string; command: string }) {
  const rows = useSignal<readonly Fact[]>([]);
  const fault = useSignal<unknown>(null);
  const turn = useSignal(0);
  useEffect(() => {
    const abort = new AbortController();
    let fresh: Fact[] = [];
    let due: ReturnType<typeof setTimeout> | undefined;
    const flush = () => {
      due = undefined;
      if (paused.peek()) return void (due = setTimeout(flush, 500));
      const known = rows.peek()[rows.peek().length - 1]?.sequence ?? 0;
      rows.value = rows.peek().concat(fresh.filter((f) => f.sequence > known)).slice(-most);
      fresh = [];
    };
    const read = async () => {
      const after = rows.peek()[rows.peek().length - 1]?.sequence ?? 0;
      const answer = await request("GET", `/troupe/v1/events?after=${after}${props.query ? "&" + props.query : ""}`, undefined, abort.signal);
      const reader = answer.body!.getReader();
      const decoder = new TextDecoder();
      let rest = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        rest += decoder.decode(value, { stream: true });
        const parts = rest.split("\n");
        rest = parts.pop() ?? "";
        for (const line of parts) if (line.startsWith("data: ")) fresh.push(fact(line.slice(6)));
        if (fresh.length > 0) due ??= setTimeout(flush, 250);
      }
    };
    void (async () => {
      for (let pause = 500; !abort.signal.aborted; pause = Math.min(5000, pause * 1.6)) {
        try {
          await read();
          fault.value = null;
        } catch (why) {
          if (abort.signal.aborted) return;
          if (rows.peek().length === 0) fault.value = why;
        }
        await new Promise((go) => setTimeout(go, pause));
      }
    })();
    return () => {
      abort.abort();
      clearTimeout(due);
    };
  }, [props.query, turn.value, returns.value]);
  if (fault.value !== null && rows.value.length === 0) return <Failed why={explain(fault.value)} again={() => ++turn.value} />;
  return <Grid name="Events" rows={rows.value} columns={columns} id={(f) => String(f.sequence)} usualSort="-sequence" bare={["type", "entity"]} command={props.command} empty={<Empty>No event yet.</Empty>} />;
}
