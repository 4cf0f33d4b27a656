import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { get, may, type Agent, type Slot } from "../api";
import { Drain } from "../drain";
import { Files, savePicture } from "../figure";
import { usePage } from "../page";
import { Grid, type Column } from "../grid";
import { listen, returns } from "../live";
import { bytes, clean } from "../text";
import { Empty, Failed, Link, State, Time, useRead } from "../ui";
import { busy, heldBy, holderOf, slots, slotState, slotWord } from "../slots";
import { UsageOverTime } from "../usage";
import type { GetAgentsResponse, Pools } from "../api_types";

const standing = (a: Agent): string => (a.draining || a.state === "draining" ? "DRAINING" : a.enabled ? a.state.toUpperCase() : "DISABLED");

const columns: Column<Agent>[] = [
  { key: "id", title: "Agent", value: (a) => a.id, width: 160 },
  { key: "state", title: "State", value: standing, show: (a) => <State of={standing(a)} />, width: 120 },
  { key: "slots", title: "Slots", value: (a) => slots(a).length, width: 80 },
  { key: "used", title: "Used", value: busy, width: 80 },
  { key: "pool", title: "Pool", value: (a) => a.resourcePools.join(" "), width: 120 },
  { key: "host", title: "Host", value: (a) => a.addresses.join(" "), width: 160 },
  { key: "version", title: "Version", value: (a) => a.version, width: 90 },
  { key: "registered", title: "Registered", value: (a) => a.registeredTime, show: (a) => <Time at={a.registeredTime} />, width: 190 },
];

/** The owners of allocations that hold slots. Each is asked for once, and at most a hundred are. */
function useOwners(all: readonly Agent[]): ReadonlyMap<string, string> {
  const known = useSignal<ReadonlyMap<string, string>>(new Map());
  const asked = useRef(new Set<string>());
  const held = all.flatMap((a) => slots(a).flatMap((s) => (s.container && holderOf(s).kind !== "hidden" ? [s.container.id] : [])));
  const missing = Array.from(new Set(held)).filter((id) => !asked.current.has(id)).slice(0, 100);
  useEffect(() => {
    for (const id of missing) {
      asked.current.add(id);
      get<{ user: string }>(`/troupe/v1/allocations/${id}/explain`).then(
        (x) => (known.value = new Map(known.peek()).set(id, x.user)),
        () => undefined,
      );
    }
  }, [missing.join()]);
  return known.value;
}

/** The age in ms that the stream's state of the cluster may have. After an order the cluster is read instead. */
const mostBehind = 2000;

/** The slots as files: as numbers, and as a picture. */
function SlotFiles(props: { agents: readonly Agent[]; owners: ReadonlyMap<string, string> }) {
  const task = (s: Slot) => holderOf(s).id;
  const table = {
    columns: ["agent", "slot", "device", "state", "trial", "user", "utilization_percent", "memory_used_bytes", "temperature_celsius"],
    rows: () => props.agents.flatMap((a) => slots(a).map((s) => [a.id, s.id, s.device?.brand ?? "", slotState(a, s), task(s), props.owners.get(s.container?.id ?? "") ?? "", s.usage?.utilization_percent ?? null, s.usage?.memory_used_bytes ?? null, s.usage?.temperature_celsius ?? null])),
  };
  const picture = () => {
    const [left, wide, tall] = [180, 48, 34];
    savePicture("slots", `Slots of ${props.agents.length} ${props.agents.length === 1 ? "agent" : "agents"}: what each does, or the trial that holds it`, left + wide * Math.max(1, ...props.agents.map((a) => slots(a).length)) + 8, tall * props.agents.length + 16, (c, k) =>
      props.agents.forEach((a, i) => {
        const y = 8 + i * tall;
        c.fillStyle = k.text;
        c.textAlign = "left";
        c.fillText(clean(a.id), 8, y + tall / 2, left - 16);
        c.textAlign = "center";
        slots(a).forEach((s, j) => {
          const of = slotState(a, s);
          const x = left + j * wide;
          c.fillStyle = of === "busy" ? k.accent : k.line;
          if (of === "busy" || of === "disabled") c.fillRect(x, y + 2, wide - 6, tall - 6);
          c.strokeStyle = of === "busy" ? k.accent : k.faint;
          c.setLineDash(of === "draining" ? [4, 3] : []);
          c.strokeRect(x, y + 2, wide - 6, tall - 6);
          c.fillStyle = of === "busy" ? k.onAccent : k.text;
          c.fillText(task(s) || slotWord(of), x + (wide - 6) / 2, y + tall / 2, wide - 10);
        });
      }),
    );
  };
  return <Files name="slots" title="Slots" table={table} picture={picture} />;
}

export default function Cluster() {
  const agents = useSignal<readonly Agent[] | null>(null);
  const { now, again } = useRead("agents", (signal) => get<GetAgentsResponse>("/api/v1/agents", {}, signal));
  useSignalEffect(() => {
    if (now.value.state === "ready") agents.value = now.value.value.agents;
  });
  const known = useRead("pools", (signal) => get<Pools>("/troupe/v1/pools", {}, signal)).now.value; // has the pools without an agent too
  const ordered = useRef(-Infinity); // the time of the user's last change on this page
  useEffect(
    () =>
      listen(["cluster"], (e) => {
        if (e.name !== "cluster") return;
        if (performance.now() - ordered.current < mostBehind) again();
        else agents.value = e.data.agents;
      }),
    [],
  );
  useSignalEffect(() => {
    if (returns.value > 0) again();
  });
  const all = agents.value ?? [];
  const owners = useOwners(all);
  const total = all.reduce((n, a) => n + slots(a).length, 0);
  const used = all.reduce((n, a) => n + busy(a), 0);
  usePage("Cluster", now.value.state === "error" && !agents.value ? "error" : !agents.value ? "loading" : all.length === 0 ? "empty" : "ready");
  const ordersDone = () => {
    ordered.current = performance.now();
    again();
  };
  const pools = Array.from(new Set([...all.flatMap((a) => a.resourcePools), ...(known.state === "ready" ? known.value.pools.map((p) => p.name) : [])])).sort();
  return (
    <>
      <div class="titleline">
        <h1 tabIndex={-1}>Cluster</h1>
        {agents.value && (
          <span>
            {used} of {total} slots used on {all.length} {all.length === 1 ? "agent" : "agents"}
          </span>
        )}
      </div>
      {now.value.state === "error" && !agents.value && <Failed why={now.value.why} again={again} />}
      {agents.value && all.length === 0 && <Empty>No agent is registered. `troupe agent --master HOST:PORT` on a host offers its slots.</Empty>}
      {all.length > 0 && (
        <>
          <section>
            <h2>Slots</h2>
            <figure data-testid="slots" class="chart">
              {all.map((a) => (
                <div key={a.id} class="slotrow">
                  <span class="name">
                    <bdi>{clean(a.id)}</bdi>
                  </span>
                  <ul>
                    {slots(a).map((s) => {
                      const state = slotState(a, s);
                      const holder = holderOf(s);
                      const u = s.usage;
                      const owner = s.container ? (owners.get(s.container.id) ?? "") : "";
                      const label = `${a.id} slot ${s.id}${s.device?.brand ? ` (${s.device.brand})` : ""}: ${state}${holder.kind === "none" ? "" : `, ${heldBy(s, owner)}`}${u?.utilization_percent !== undefined ? `, ${u.utilization_percent} %` : ""}${u?.memory_used_bytes ? `, ${bytes(u.memory_used_bytes)}` : ""}${u?.temperature_celsius ? `, ${u.temperature_celsius} °C` : ""}`;
                      return (
                        <li key={s.id} class={`slot slot-${state}`} data-agent={a.id} data-slot={s.id} data-state={state} data-user={owner} title={clean(label)}>
                          {holder.kind === "trial" ? (
                            <Link to={`/trials/${holder.id}`} label={clean(label)}>
                              {holder.id}
                            </Link>
                          ) : (
                            <span aria-label={clean(label)} role="img">
                              {slotWord(state)}
                            </span>
                          )}
                        </li>
                      );
                    })}
                  </ul>
                  {may("change agent") && <Drain of={a} done={ordersDone} />}
                </div>
              ))}
              <SlotFiles agents={all} owners={owners} />
            </figure>
          </section>
        </>
      )}
      {agents.value && (
        <>
          <section>
            <h2>Pools</h2>
            <ul class="columns">
              {pools.map((p) => {
                const mine = all.filter((a) => a.resourcePools.includes(p));
                return (
                  <li key={p} data-pool={p}>
                    <bdi>{clean(p)}</bdi>: {mine.reduce((n, a) => n + busy(a), 0)} of {mine.reduce((n, a) => n + slots(a).length, 0)} slots used
                  </li>
                );
              })}
            </ul>
          </section>
          <UsageOverTime />
          <section>
            <h2>Agents</h2>
            <Grid name="Agents" rows={all} columns={columns} id={(a) => a.id} usualSort="id" bare={["id", "host"]} command="troupe agent list" height={280} />
          </section>
        </>
      )}
    </>
  );
}
