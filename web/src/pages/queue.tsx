import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { get, type Explanation, type Waiting } from "../api";
import { usePage } from "../page";
import { UnknownMoment } from "../past";
import { factOf } from "../queries";
import { Grid, type Column } from "../grid";
import { listen, returns } from "../live";
import { wayOut } from "../reasons";
import { params, set } from "../router";
import { clean } from "../text";
import { Empty, Failed, Link, Time, useRead } from "../ui";
import type { Queue as Waits } from "../api_types";

interface Row extends Waiting {
  why: Explanation | null;
}

export default function Queue() {
  const rows = useSignal<readonly Row[] | null>(null);
  const known = useRef(new Map<string, { why: Explanation | null; asked: number }>());
  // The number of a fact; 0 means now. For the past only the waiting runs are known, and not their turns and reasons.
  const at = factOf(params.value.text("at"));
  const { now, again } = useRead(`queue ${at}`, (signal) => get<Waits>("/troupe/v1/queue", { at: at || undefined }, signal));
  const show = (list: readonly Waiting[]) => {
    if (at > 0) {
      rows.value = list.map((w) => ({ ...w, why: null }));
      return;
    }
    rows.value = list.map((w) => ({ ...w, why: known.current.get(w.allocation)?.why ?? null }));
    // The reasons of the first hundred are read again when the queue changes. Runs further back have the same reasons.
    const now = performance.now();
    const waits = new Set(list.map((w) => w.allocation));
    for (const id of known.current.keys()) if (!waits.has(id)) known.current.delete(id);
    let anew = 10;
    for (const w of list.slice(0, 100)) {
      const before = known.current.get(w.allocation);
      if (before && (now - before.asked < 5000 || anew-- <= 0)) continue;
      known.current.set(w.allocation, { why: before?.why ?? null, asked: now });
      get<Explanation>(`/troupe/v1/allocations/${encodeURIComponent(w.allocation)}/explain`).then(
        (x) => {
          if (known.current.has(w.allocation)) known.current.set(w.allocation, { why: x, asked: now });
          rows.value = (rows.peek() ?? []).map((r) => (r.allocation === w.allocation ? { ...r, why: x } : r));
        },
        () => undefined, // the run does not wait any more
      );
    }
  };
  useSignalEffect(() => {
    if (now.value.state === "ready") show(now.value.value.waiting);
  });
  useEffect(() => {
    if (at > 0) return;
    return listen(["cluster"], (e) => {
      if (e.name === "cluster") show(e.data.waiting);
    });
  }, [at]);
  useSignalEffect(() => {
    if (returns.value > 0) again();
  });
  const columns: Column<Row>[] = [
    { key: "order", title: "Place", value: (r) => r.position, width: 70 },
    { key: "id", title: "Trial", value: (r) => (r.trial > 0 ? r.trial : r.allocation), show: (r) => (r.trial > 0 ? <Link to={`/trials/${r.trial}`}>{r.trial}</Link> : clean(r.allocation)), width: 110 },
    { key: "slots", title: "Slots", value: (r) => r.slots, width: 70 },
    { key: "pool", title: "Pool", value: (r) => r.pool, width: 110 },
    { key: "priority", title: "Priority", value: (r) => r.priority, width: 90 },
    { key: "user", title: "User", value: (r) => r.user, width: 110 },
    { key: "since", title: "Since", value: (r) => r.since, show: (r) => <Time at={r.since} />, width: 190 },
    { key: "why", title: "Why it waits", value: (r) => r.why?.reason.text ?? null, width: 420 },
    { key: "free", title: "What would free slots", value: (r) => (r.why ? wayOut(r.why) : null), width: 240 },
  ];
  const all = rows.value;
  usePage("Queue", now.value.state === "error" && !all ? "error" : !all ? "loading" : all.length === 0 ? "empty" : "ready");
  return (
    <>
      <h1 tabIndex={-1}>Queue</h1>
      <UnknownMoment />
      {at > 0 && now.value.state === "ready" && (
        <p class="past on">
          <span role="status" data-testid="as-of">
            as of <Time at={now.value.state === "ready" ? now.value.value.at : undefined} />, after fact {at}; whose turn it was and why each waited is kept nowhere
          </span>{" "}
          <button type="button" onClick={() => set({ at: null })}>
            Now
          </button>
        </p>
      )}
      {now.value.state === "error" && !all && <Failed why={now.value.why} again={again} />}
      {all && <Grid name="Queue" rows={all} columns={columns} id={(r) => r.allocation} usualSort={at > 0 ? "since" : "pool"} bare={["id", "pool"]} command={at > 0 ? `troupe queue list --at ${at}` : "troupe queue list"} empty={<Empty>{at > 0 ? "Nothing waited for slots." : "Nothing waits for slots."}</Empty>} />}
    </>
  );
}
