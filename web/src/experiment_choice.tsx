// The choice of the experiment that a page is about, or with `several` of more than one. The address holds the choice.

import { useSignalEffect } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get } from "./api";
import { listen, returns } from "./live";
import { params, set } from "./router";
import { clean } from "./text";
import { useRead } from "./ui";
import type { GetExperimentsResponse } from "./api_types";

export function ChooseExperiment(props: { several?: boolean }) {
  const chosen = params.value.text("experiment");
  const all = chosen.split(",");
  const { now, again } = useRead("names", (signal) => get<GetExperimentsResponse>("/api/v1/experiments", { limit: 200, orderBy: "ORDER_BY_DESC" }, signal));
  useSignalEffect(() => {
    if (returns.value > 0) again();
  });
  useEffect(() => listen(["experiments"], (e) => e.name === "gone" && again()), []);
  const list = now.value.state === "ready" ? now.value.value.experiments : [];
  const older = chosen !== "" && !list.some((e) => String(e.id) === chosen); // whether the chosen one is not among the newest, which the list has
  const option = (e: (typeof list)[number]) => (
    <option key={e.id} value={e.id}>
      {e.id} {clean(e.name)}
    </option>
  );
  return (
    <>
      <select aria-label="Experiment" value={chosen} onChange={(e) => set({ experiment: e.currentTarget.value })}>
        <option value="">All</option>
        {older && <option value={chosen}>{clean(all.join(", "))}</option>}
        {list.map(option)}
      </select>
      {props.several && chosen !== "" && (
        <select aria-label="One more experiment" value="" onChange={(e) => set({ experiment: [...all, e.currentTarget.value].join(",") })}>
          <option value="">One more</option>
          {list.filter((e) => !all.includes(String(e.id))).map(option)}
        </select>
      )}
    </>
  );
}
