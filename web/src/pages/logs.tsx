import { searched } from "../command";
import { usePage } from "../page";
import { ChooseExperiment } from "../experiment_choice";
import { SearchLog } from "../log";
import { go, params } from "../router";
import { CopyCommand, CopyLink } from "../ui";

export default function Logs() {
  usePage("Logs", "ready");
  const of = params.value.text("experiment");
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
      <SearchLog where={of ? `experiment=${encodeURIComponent(of)}` : ""} wide onHit={(h) => go(`/trials/${h.trial}/logs?line=${h.line}`)} />
    </>
  );
}
