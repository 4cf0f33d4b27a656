// A small line with the best value so far of a search, trial by trial. It is loaded when it comes into view.

import { useEffect, useRef } from "preact/hooks";
import { get, type Experiment, type Trial } from "./api";
import { linear } from "./scales";
import { number } from "./text";
import type { Outcome } from "./api_types";

const known = new Map<string, Promise<number[]>>();

export function bestSoFar(trials: readonly Trial[], smaller: boolean): { trial: number; at: string; value: number; best: number }[] {
  let best = NaN;
  return trials
    .filter((t) => t.best && !Number.isNaN(number(t.best.metric) ?? NaN))
    .sort((a, b) => (a.endTime ?? "9").localeCompare(b.endTime ?? "9") || a.id - b.id)
    .map((t) => {
      const y = number(t.best!.metric)!;
      best = Number.isNaN(best) ? y : smaller ? Math.min(best, y) : Math.max(best, y);
      return { trial: t.id, at: t.endTime ?? t.startTime, value: y, best };
    });
}

/** The best value so far after each trial, at most 50 values. */
export function values(e: Experiment): Promise<number[]> {
  const key = `${e.id} ${e.numTrials} ${e.bestTrialSearcherMetric}`;
  let mine = known.get(key);
  if (!mine) {
    mine = get<Outcome>(`/troupe/v1/experiments/${e.id}/outcome`, { history: 50 }).then((x) => (x.bestSoFar ?? []).flatMap((y) => number(y) ?? []));
    mine.catch(() => known.delete(key));
    if (known.size > 500) known.clear();
    known.set(key, mine);
  }
  return mine;
}

export function Spark(props: { experiment: Experiment }) {
  const box = useRef<SVGSVGElement>(null);
  const e = props.experiment;
  useEffect(() => {
    const svg = box.current!;
    let gone = false;
    const seen = new IntersectionObserver((all) => {
      if (!all.some((x) => x.isIntersecting)) return;
      seen.disconnect();
      void values(e).then((y) => {
        if (gone) return;
        const finite = y.filter(Number.isFinite);
        const [low, high] = [Math.min(...finite), Math.max(...finite)];
        const up = (v: number) => (v === Infinity ? 0 : v === -Infinity ? 20 : high > low ? 18 - linear(low, high).at(v) * 16 : 10);
        const points = y.map((v, i) => `${y.length > 1 ? (i / (y.length - 1)) * 100 : 50},${up(v)}`);
        svg.querySelector("polyline")?.setAttribute("points", points.join(" "));
      }, () => undefined);
    });
    seen.observe(svg);
    return () => {
      gone = true;
      seen.disconnect();
    };
  }, [e.id, e.bestTrialSearcherMetric, e.numTrials]);
  return (
    <svg ref={box} class="spark" viewBox="0 0 100 20" preserveAspectRatio="none" aria-hidden="true">
      <polyline />
    </svg>
  );
}
