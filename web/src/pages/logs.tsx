import { useEffect } from "preact/hooks";
import { get, ifThere } from "../api";
import { searched } from "../command";
import { usePage } from "../page";
import { ChooseExperiment } from "../experiment_choice";
import { SearchLog } from "../log";
import { listen } from "../live";
import { params } from "../router";
import { clean } from "../text";
import { CopyCommand, CopyLink, useRead } from "../ui";

export default function Logs() {
  usePage("Logs", "ready");
  const of = params.value.text("experiment");
  const asked = of.split(",");
  // Where one of several experiments was deleted, the search goes on in the others.
  const { now, again } = useRead(`there ${of}`, async (signal) => {
    if (asked.length < 2) return asked;
    const found = await Promise.all(asked.map((id) => ifThere(get(`/api/v1/experiments/${encodeURIComponent(id)}`, {}, signal))));
    return asked.filter((_, i) => found[i] !== null);
  });
  useEffect(() => listen(["experiments"], (e) => e.name === "gone" && again()), []);
  const known = now.value.state === "ready" && now.value.value.length > 0 ? now.value.value : asked; // where none exists, the server's refusal is shown
  const gone = asked.filter((id) => !known.includes(id));
  return (
    <>
      <div class="titleline">
        <h1 tabIndex={-1}>Logs</h1>
        <div class="buttons">
          <CopyLink />
          {/^\d+$/.test(of) && <CopyCommand command={searched(`troupe experiment logs ${of}`, params.value)} />}
        </div>
      </div>
      <label>
        <span>Experiment</span>
        <ChooseExperiment several />
      </label>
      {gone.length > 0 && <p class="hint">Not there: {clean(gone.join(", "))}.</p>}
      <SearchLog where={of ? `experiment=${encodeURIComponent(known.join(","))}` : ""} waits={asked.length > 1 && now.value.state === "loading"} />
    </>
  );
}
