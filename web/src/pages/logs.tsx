import { useSignal } from "@preact/signals";
import { get } from "../api";
import { usePage } from "../page";
import { SearchLog } from "../log";
import { go, params, set } from "../router";
import { clean } from "../text";
import { CopyLink, useRead } from "../ui";
import type { GetExperimentsResponse } from "../api_types";

export default function Logs() {
  usePage("Logs", "ready");
  const of = params.value.text("experiment");
  const typed = useSignal(of);
  const { now } = useRead("names", (signal) => get<GetExperimentsResponse>("/api/v1/experiments", { limit: 200, orderBy: "ORDER_BY_DESC" }, signal));
  const list = now.value.state === "ready" ? now.value.value.experiments : [];
  return (
    <>
      <div class="titleline">
        <h1 tabIndex={-1}>Logs</h1>
        <div class="buttons">
          <CopyLink />
        </div>
      </div>
      <label>
        <span>Experiment</span>
        <select aria-label="Experiment"
          value={of}
          onChange={(e) => {
            typed.value = e.currentTarget.value;
            set({ experiment: e.currentTarget.value });
          }}
        >
          <option value="">All</option>
          {list.map((e) => (
            <option key={e.id} value={e.id}>
              {e.id} {clean(e.name)}
            </option>
          ))}
        </select>
      </label>
      <SearchLog where={of ? `experiment=${encodeURIComponent(of)}` : ""} wide onHit={(h) => go(`/trials/${h.trial}/logs?line=${h.line}`)} />
    </>
  );
}
