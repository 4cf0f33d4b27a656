import { get, type Experiment } from "../api";
import { useChanges } from "../changes";
import { Files, saveBars } from "../figure";
import { wanted } from "../goals";
import { hovered } from "../hover";
import { clean, number, short, csv } from "../text";
import { Empty, Failed, Link, save, Time, useRead } from "../ui";
import { useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import { pastAt } from "../router";
import { against, fateText, newestText } from "../rungs";
import type { Rung, SearchStory as Story } from "../api_types";

type Seen = Rung & { bracket: number; rung: number };

/** The rungs as files: as numbers, and as a picture. */
function RungFiles(props: { id: number; units: string; of: readonly Seen[] }) {
  const most = Math.max(1, ...props.of.map((r) => r.entered));
  const table = {
    columns: ["bracket", "rung", props.units, "entered", "stopped", "needed", "trial", "metric", "fate", "against", "bound of"],
    rows: () =>
      props.of.flatMap((r) =>
        r.trials.map((t) => {
          const known = against(t, r);
          return [r.bracket, r.rung, r.units, r.entered, r.stopped, number(r.needed), t.trial, number(t.metric), t.fate, known?.bound ?? null, known ? (known.own ? "its decision" : "the last decision") : null];
        }),
      ),
  };
  const bars = () => props.of.map((r) => ({ name: `bracket ${r.bracket}, ${r.units} ${props.units}`, part: r.entered / most, text: `${r.entered} entered, ${r.stopped} stopped` }));
  return <Files name={`rungs-${props.id}`} title="Brackets and rungs" table={table} picture={() => saveBars(`rungs-${props.id}`, `Brackets and rungs of experiment ${props.id}`, bars())} />;
}

function Rungs(props: { id: number; of: Story }) {
  const s = props.of;
  const brackets = useMemo(() => s.brackets.map((b, i) => b.rungs.map((r, k): Seen => ({ ...r, bracket: i, rung: k }))), [s]);
  const units = s.timeMetric || "reports";
  return (
    <section>
      <h2>Brackets and rungs</h2>
      <figure data-testid="rungs" class="chart">
        <div class="brackets">
          {brackets.map((rungs, i) => (
            <div key={i} class="bracket">
              <h3>Bracket {i}</h3>
              <ol>
                {rungs.map((r) => (
                  <li key={r.rung} class="rung" data-bracket={i} data-rung={r.rung} data-entered={r.entered} data-stopped={r.stopped}>
                    <div>
                      <strong>
                        {r.units} <bdi>{clean(units)}</bdi>
                      </strong>{" "}
                      — {r.entered} entered, {r.stopped} stopped
                      {newestText(r, s)}
                    </div>
                    <div class="rungtrials">
                      {r.trials.map((t) => {
                        const text = fateText(t, r, s);
                        return (
                          <Link key={t.trial} to={`/trials/${t.trial}`} class={`fate fate-${t.fate.replace(" ", "-")}${hovered.value === String(t.trial) ? " hovered" : ""}`} label={`trial ${t.trial}: ${text}`} title={text} hover={String(t.trial)}>
                            {t.trial}
                          </Link>
                        );
                      })}
                    </div>
                  </li>
                ))}
              </ol>
            </div>
          ))}
        </div>
        <p class="hint">
          <span class="fate fate-went-on">went on</span> <span class="fate fate-runs">runs</span> <span class="fate fate-waits">waits</span> <span class="fate fate-stopped">stopped</span> <span class="fate fate-finished">finished</span>{" "}
          <span class="fate fate-ended">ended</span>
        </p>
        <p class="hint">A bound is that of the moment at which the search decided about the trial. Beside a trial that waits stands the last one of its rung.</p>
        <RungFiles id={props.id} units={units} of={brackets.flat()} />
      </figure>
    </section>
  );
}

const atOnce = 500; // limit of the decisions in the document

export function SearchStory(props: { of: Experiment }) {
  const id = props.of.id;
  const at = pastAt.value;
  const { now, again } = useRead(`search ${id} ${at}`, (signal) => get<Story>(`/troupe/v1/experiments/${id}/search`, { at: at || undefined }, signal));
  const kept = useRef<Story | null>(null);
  const shown = useSignal(atOnce);
  useChanges(at > 0 ? [] : [`experiment/${id}`], 1000, again);
  const v = now.value;
  if (v.state === "error") return <Failed whole why={v.why} again={again} />;
  if (v.state === "ready") kept.current = v.value;
  const s = kept.current; // kept while another moment is read
  if (!s) return null;
  return (
    <>
      <p>
        {clean(s.searcher)}: <bdi>{clean(wanted(props.of))}</bdi>
      </p>
      {s.brackets.length > 0 && <Rungs id={id} of={s} />}
      <section>
        <h2>Decisions</h2>
        <p>
          <button
            type="button"
            onClick={() =>
              save(
                `decisions-${id}.csv`,
                "text/csv",
                csv([["sequence", "at", "trial", "what", "why", "rung", "metric", "needed", "source"], ...s.decisions.map((d) => [d.sequence, d.at, d.trial ?? null, d.what, d.why, d.rung ?? null, number(d.metric), number(d.needed), d.source ?? null])]),
              )
            }
          >
            Download CSV
          </button>{" "}
          <button type="button" onClick={() => save(`decisions-${id}.json`, "application/json", JSON.stringify(s.decisions, null, 1))}>
            Download JSON
          </button>
        </p>
        {s.decisions.length === 0 && <Empty>No decision yet.</Empty>}
        <ol class="decisions" data-testid="decisions" data-count={s.decisions.length}>
          {s.decisions
            .slice(-shown.value)
            .reverse()
            .map((d, i) => (
              <li key={`${d.sequence}.${i}`}>
                <Time at={d.at} /> {d.trial ? <Link to={`/trials/${d.trial}`}>trial {d.trial}</Link> : "experiment"} {clean(d.what)}
                {d.rung !== undefined && ` at rung ${d.rung}`}
                {d.metric !== undefined && `: ${short(number(d.metric))}`}
                {d.needed !== undefined && number(d.needed) !== null && !Number.isNaN(number(d.needed)) && ` against ${short(number(d.needed))}`}
                {d.source !== undefined && (
                  <>
                    {" "}
                    from <Link to={`/trials/${d.source}`}>trial {d.source}</Link>
                  </>
                )}
                {d.why && (
                  <>
                    {" — "}
                    <bdi>{clean(d.why)}</bdi>
                  </>
                )}
              </li>
            ))}
        </ol>
        {s.decisions.length > shown.value && (
          <p class="hint">
            The last {shown.value} of {s.decisions.length}.{" "}
            <button type="button" onClick={() => (shown.value += atOnce)}>
              Earlier decisions
            </button>
          </p>
        )}
      </section>
    </>
  );
}
