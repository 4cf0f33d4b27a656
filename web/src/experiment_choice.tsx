// Which experiment a page is about; in the address.

import { get } from "./api";
import { params, set } from "./router";
import { clean } from "./text";
import { useRead } from "./ui";
import type { GetExperimentsResponse } from "./api_types";

export function ChooseExperiment() {
  const chosen = params.value.text("experiment");
  const { now } = useRead("names", (signal) => get<GetExperimentsResponse>("/api/v1/experiments", { limit: 200, orderBy: "ORDER_BY_DESC" }, signal));
  const list = now.value.state === "ready" ? now.value.value.experiments : [];
  const older = chosen !== "" && !list.some((e) => String(e.id) === chosen); // than the newest
  return (
    <select aria-label="Experiment" value={chosen} onChange={(e) => set({ experiment: e.currentTarget.value })}>
      <option value="">All</option>
      {older && <option value={chosen}>{clean(chosen)}</option>}
      {list.map((e) => (
        <option key={e.id} value={e.id}>
          {e.id} {clean(e.name)}
        </option>
      ))}
    </select>
  );
}
