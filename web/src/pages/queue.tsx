import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { get, type Explanation, type Waiting } from "../api";
import { usePage } from "../app";
import { Grid, type Column } from "../grid";
import { listen, returns } from "../live";
import { wouldFree } from "../reasons";
import { clean } from "../text";
import { Empty, Failed, Link, Time, useRead } from "../ui";

interface Row extends Waiting {
  order: number;
  trial: string;
  why: Explanation | null;
}

export default function Queue() {
  const rows = useSignal<readonly Row[] | null>(null);
  const known = useRef(new Map<string, Explanation>());
  const { now, again } = useRead("queue", (signal) => get<{ waiting: Waiting[] }>("/troupe/v1/queue", {}, signal));
  const show = (list: Waiting[]) => {
    rows.value = list.map((w, i) => ({ ...w, order: i + 1, trial: w.allocation.split(".")[0] ?? "", why: known.current.get(w.allocation) ?? null }));
    // Reasons of the first hundred; those further back read the same.
    for (const w of list.slice(0, 100)) {
      const trial = w.allocation.split(".")[0] ?? "";
      if (known.current.has(w.allocation) || !/^\d+$/.test(trial)) continue;
      get<Explanation>(`/troupe/v1/trials/${trial}/explain`).then(
        (x) => {
          known.current.set(w.allocation, x);
          rows.value = (rows.peek() ?? []).map((r) => (r.allocation === w.allocation ? { ...r, why: x } : r));
        },
        () => undefined,
      );
    }
  };
  useSignalEffect(() => {
    if (now.value.state === "ready") show(now.value.value.waiting);
  });
  useEffect(
    () =>
      listen(["cluster"], (e) => {
        if (e.name === "cluster") show((e.data["waiting"] as Waiting[] | undefined) ?? []);
      }),
    [],
  );
  useSignalEffect(() => {
    if (returns.value > 0) again();
  });
  const columns: Column<Row>[] = [
    { key: "order", title: "Place", value: (r) => r.order, width: 70 },
    { key: "id", title: "Trial", value: (r) => r.trial, show: (r) => (/^\d+$/.test(r.trial) ? <Link to={`/trials/${r.trial}`}>{r.trial}</Link> : clean(r.allocation)), width: 110 },
    { key: "slots", title: "Slots", value: (r) => r.slots, width: 70 },
    { key: "pool", title: "Pool", value: (r) => r.pool, width: 110 },
    { key: "since", title: "Since", value: (r) => r.why?.since ?? null, show: (r) => <Time at={r.why?.since} />, width: 170 },
    { key: "why", title: "Why it waits", value: (r) => r.why?.reason.text ?? null, width: 420 },
    { key: "free", title: "What would free slots", value: (r) => (r.why ? wouldFree(r.why) : null), width: 240 },
  ];
  const all = rows.value;
  usePage("Queue", now.value.state === "error" && !all ? "error" : !all ? "loading" : all.length === 0 ? "empty" : "ready");
  return (
    <>
      <h1 tabIndex={-1}>Queue</h1>
      {now.value.state === "error" && !all && <Failed why={now.value.why} again={again} />}
      {all && <Grid name="Queue" rows={all} columns={columns} id={(r) => r.allocation} usualSort="order" bare={["id", "pool"]} command="troupe shell -c queue" empty={<Empty>Nothing waits for slots.</Empty>} />}
    </>
  );
}
