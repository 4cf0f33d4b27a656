// What a trial used of its hosts over time: a chart for each metric of the group "system".

import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { Chart, type Drawn } from "./chart";
import { UnknownAxis, UnknownRange, useSeries } from "./curves";
import { get } from "./api";
import { axisOf, deviceTitle } from "./queries";
import { looks } from "./scales";
import { clean, csv } from "./text";
import { Empty, Failed, save } from "./ui";
import { params, set } from "./router";
import type { MetricList } from "./api_types";

const usual: [string, string][] = [
  ["cpu_percent", "Processor, percent of one core"],
  ["memory_bytes", "Memory, bytes"],
  ["read_bytes_per_s", "Read from disk, bytes a second"],
  ["write_bytes_per_s", "Written to disk, bytes a second"],
];

/** The metrics of the slots that the trial had in any of its runs. */
function useDevices(experiment: number, trial: number, runs: number): readonly [string, string][] {
  const names = useSignal<readonly string[]>([]);
  useEffect(() => {
    const stop = new AbortController();
    let again: ReturnType<typeof setTimeout> | undefined;
    const read = (tries: number): void =>
      void get<MetricList>(`/troupe/v1/experiments/${experiment}/metrics`, { group: "system", trial }, stop.signal).then(
        ({ metrics }) => {
          names.value = metrics.map((m) => m.name).filter((name) => !usual.some(([one]) => one === name));
          if (tries > 1) again = setTimeout(() => read(tries - 1), 5000);
        },
        () => undefined, // the charts beside these report the fault
      );
    read(4); // an agent takes a sample every 5 s
    return () => {
      stop.abort();
      clearTimeout(again);
    };
  }, [experiment, trial, runs]);
  return names.value.map((name) => [name, deviceTitle(name)]);
}

export function Resources(props: { trial: number; experiment: number; runs: number; over: boolean }) {
  const devices = useDevices(props.experiment, props.trial, props.runs);
  return (
    <>
      <UnknownAxis usual="time" />
      <UnknownRange />
      <div data-testid="resources" class="grid2">
        {[...usual, ...devices].map(([name, title]) => (
          <One key={name} name={name} title={title} trial={props.trial} experiment={props.experiment} over={props.over} />
        ))}
        <p class="hint">
          Every agent looks every 5 s.{" "}
          {params.value.text("from") !== "" && (
            <button type="button" onClick={() => set({ from: null, to: null })}>
              Whole range
            </button>
          )}
        </p>
      </div>
    </>
  );
}

function One(props: { name: string; title: string; trial: number; experiment: number; over: boolean }) {
  const metric = `system.${props.name}`;
  const p = params.value;
  const x = axisOf(p.text("x"), "time");
  const [from, to] = [p.text("from"), p.text("to")];
  const range = useMemo<[number, number] | null>(() => (from !== "" && to !== "" && Number(from) <= Number(to) ? [Number(from), Number(to)] : null), [from, to]);
  const { lines, fault, again } = useSeries(metric, { trials: [props.trial] }, x, range, [props.experiment]);
  const drawn: Drawn[] | null = lines.value?.map((l) => ({ id: String(l.trial), label: `trial ${l.trial}`, x: l.x, y: l.y, ...looks(l.trial % 32) })) ?? null;
  const none = drawn !== null && drawn.every((l) => l.x.length === 0);
  return (
    <section>
      <h2>
        <bdi>{clean(props.title)}</bdi>
      </h2>
      {fault.value != null && !lines.value ? (
        <Failed why={fault.value} again={again} />
      ) : none ? (
        <Empty>{range ? "No sample in this time." : props.over ? "The trial ended without a sample." : "No sample yet."}</Empty>
      ) : (
        <Chart
          name={`${props.title} of trial ${props.trial}`}
          metric={metric}
          lines={drawn}
          xTitle={x}
          logX={false}
          logY={false}
          yRange={null}
          xRange={range}
          height={220}
          onZoom={(a, b) => set({ from: a, to: b })}
          numbers={lines}
          onCsv={() => save(`${metric}.csv`, "text/csv", csv([[x, metric], ...(lines.value ?? []).flatMap((l) => l.x.map((v, i) => [v, l.y[i]!] as (string | number | null)[]))]))}
        />
      )}
    </section>
  );
}
