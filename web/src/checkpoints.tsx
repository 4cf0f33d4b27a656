import { useSignal, useSignalEffect } from "@preact/signals";
import { get, type Checkpoint } from "./api";
import { useChanges } from "./changes";
import { Download } from "./download";
import { valueAt } from "./goals";
import { Grid, type Column } from "./grid";
import { bytes, clean, state } from "./text";
import { Empty, Failed, Link, State, Time, useRead } from "./ui";
import type { GetExperimentCheckpointsResponse } from "./api_types";

const size = (c: Checkpoint) => Object.values(c.resources).reduce((n, b) => n + Number(b), 0);

export function CheckpointGrid(props: { path: string; topic: string; command: string; goals: readonly string[] }) {
  const rows = useSignal<readonly Checkpoint[]>([]);
  const { now, again } = useRead(props.path, (signal) => get<GetExperimentCheckpointsResponse>(props.path, {}, signal));
  useSignalEffect(() => {
    if (now.value.state === "ready") rows.value = now.value.value.checkpoints;
  });
  useChanges([props.topic], 2000, again);
  const columns: Column<Checkpoint>[] = [
    { key: "uuid", title: "Checkpoint", value: (c) => c.uuid, show: (c) => <code title={clean(c.uuid)}>{clean(c.uuid)}</code>, width: 290 },
    ...props.goals.map((m): Column<Checkpoint> => ({ key: props.goals.length > 1 ? `m.validation.${m}` : "metric", title: m, value: (c) => valueAt(c, m), width: 110 })),
    { key: "trial", title: "Trial", value: (c) => c.trialId, show: (c) => <Link to={`/trials/${c.trialId}`}>{c.trialId}</Link>, width: 80 },
    { key: "step", title: "Step", value: (c) => c.metadata.steps_completed ?? null, width: 90 },
    { key: "size", title: "Size", value: size, show: (c) => bytes(size(c)), width: 100 },
    { key: "state", title: "State", value: (c) => state(c.state), show: (c) => <State of={c.state} />, width: 140 },
    { key: "at", title: "Saved", value: (c) => c.reportTime, show: (c) => <Time at={c.reportTime} />, width: 190 },
    {
      key: "download",
      title: "Files",
      value: (c) => Object.keys(c.resources).length,
      show: (c) =>
        c.state === "STATE_COMPLETED" ? (
          <Download href={`/troupe/v1/checkpoints/${c.uuid}/files`} name={`${c.uuid}.tar`} />
        ) : (
          state(c.state).toLowerCase().replaceAll("_", " ")
        ),
      file: null,
      width: 110,
    },
  ];
  if (now.value.state === "error") return <Failed whole why={now.value.why} again={again} />;
  return <Grid name="Checkpoints" rows={rows.value} columns={columns} id={(c) => c.uuid} usualSort="-at" otherOrder bare={["uuid"]} command={props.command} empty={now.value.state === "ready" ? <Empty>No checkpoint yet.</Empty> : ""} />;
}
