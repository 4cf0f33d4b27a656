// A line chart: uPlot draws, this keeps it as what is to be shown changes.

import { useSignal, useSignalEffect, type Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { Legend, NumbersTable, type Curve } from "./curves";
import { hovered } from "./hover";
import { bounds } from "./scales";
import { shownTheme, zone } from "./settings";
import { clean, short } from "./text";
import { save } from "./ui";

export interface Drawn {
  id: string; // of the trial, or of the group
  label: string;
  x: number[];
  y: number[];
  colour: string;
  dash: number[];
  raw?: number[]; // the curve before it was smoothed: stays faint
  band?: { low: number[]; high: number[] };
}

export interface ChartProps {
  name: string;
  metric: string;
  lines: Drawn[] | null; // null: on their way
  xTitle: string;
  logX: boolean;
  logY: boolean;
  yRange: [number, number] | null;
  height: number;
  onZoom?: (from: number, to: number) => void;
  onCsv?: () => void;
  marks?: { at: number; label: string }[] | undefined;
  note?: string;
  none?: ComponentChildren; // said where there is no curve
  numbers: Signal<Curve[] | null>;
}

interface Layer {
  line: Drawn;
  faint: boolean;
}

export function Chart(props: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const frame = useRef<HTMLElement>(null);
  const plot = useRef<{ u: uPlot; layers: Layer[]; shape: string } | null>(null);
  const table = useSignal(false);
  const now = useRef(props);
  now.current = props;

  const draw = () => {
    const p = now.current;
    const el = box.current;
    const outer = frame.current;
    if (!el || !outer || !p.lines) return;
    const layers: Layer[] = [];
    for (const line of p.lines) {
      if (line.raw) layers.push({ line: { ...line, y: line.raw }, faint: true });
      layers.push({ line, faint: false });
      if (line.band) {
        layers.push({ line: { ...line, y: line.band.low }, faint: true });
        layers.push({ line: { ...line, y: line.band.high }, faint: true });
      }
    }
    const data = joined(layers, p.logX, p.logY);
    const shape = [p.logX, p.logY, p.xTitle, shownTheme.peek(), layers.map((l) => l.line.id + l.line.colour + l.faint).join(), p.yRange?.join(), p.marks?.length].join("|");
    const old = plot.current;
    if (old && old.shape === shape) {
      old.layers = layers;
      old.u.setData(data);
    } else {
      old?.u.destroy();
      const u = new uPlot(options(p, layers, el.clientWidth || 800, outer), data, el);
      plot.current = { u, layers, shape };
    }
    const points = p.lines.reduce((n, l) => n + l.x.length, 0);
    let last = -Infinity;
    for (const l of p.lines) for (const x of l.x) if (x > last) last = x;
    // After the next frame the pixels are there.
    requestAnimationFrame(() => {
      outer.dataset["series"] = String(now.current.lines?.length ?? 0);
      outer.dataset["points"] = String(points);
      outer.dataset["marks"] = (now.current.marks ?? []).map((m) => m.at).join();
      outer.dataset["lastX"] = Number.isFinite(last) ? String(last) : "";
      outer.dataset["state"] = points > 0 ? "ready" : "empty";
    });
  };

  // Made when it comes into view.
  const seen = useRef(false);
  useEffect(() => {
    const el = box.current!;
    const look = new IntersectionObserver((all) => {
      if (!all.some((x) => x.isIntersecting)) return;
      look.disconnect();
      seen.current = true;
      draw();
    });
    look.observe(el);
    const size = new ResizeObserver(() => {
      if (plot.current && el.clientWidth > 0) plot.current.u.setSize({ width: el.clientWidth, height: now.current.height });
    });
    size.observe(el);
    return () => {
      look.disconnect();
      size.disconnect();
      plot.current?.u.destroy();
      plot.current = null;
    };
  }, []);
  // Another metric: what is drawn is not of it yet.
  useLayoutEffect(() => {
    if (frame.current) frame.current.dataset["state"] = "loading";
  }, [props.metric]);
  useEffect(() => {
    if (frame.current && !props.lines) frame.current.dataset["state"] = "loading";
    if (seen.current) draw();
  }, [props.lines, props.logX, props.logY, props.yRange, props.xTitle, props.marks?.length]);
  useSignalEffect(() => {
    shownTheme.value;
    if (seen.current) draw();
  });
  // What is pointed at elsewhere is marked here.
  useSignalEffect(() => {
    const id = hovered.value;
    const mine = plot.current;
    if (!mine) return;
    const i = id === null ? -1 : mine.layers.findIndex((l) => !l.faint && l.line.id === id);
    if (frame.current) frame.current.dataset["hovered"] = i >= 0 ? id! : "";
    mine.u.setSeries(i >= 0 ? i + 1 : null, { focus: i >= 0 });
  });

  const values = props.lines?.length ?? 0;
  const label = `${props.name}, ${values} ${values === 1 ? "curve" : "curves"}`;
  return (
    <figure class="chart" data-testid="chart" data-metric={props.metric} data-state="loading" ref={frame}>
      <div ref={box} class="plot" role="img" aria-label={clean(label)} />
      {props.lines && values === 0 && <p class="empty">{props.none ?? <>No report of <bdi>{clean(props.metric)}</bdi> yet.</>}</p>}
      {props.lines && <Legend lines={props.lines} />}
      <figcaption>
        {props.note && <span class="note">{props.note} </span>}
        <button type="button" aria-expanded={table.value} onClick={() => (table.value = !table.value)}>
          Show as table
        </button>
        {props.onCsv && (
          <button type="button" onClick={props.onCsv}>
            Download CSV
          </button>
        )}
        <button
          type="button"
          onClick={() => {
            const canvas = plot.current?.u.ctx.canvas;
            canvas?.toBlob((png) => png && save(`${props.metric}.png`, "image/png", png));
          }}
        >
          Download PNG
        </button>
      </figcaption>
      {table.value && <NumbersTable lines={props.numbers} />}
    </figure>
  );
}

/** All curves over the x of all; what a logarithm does not have is left out. */
function joined(layers: Layer[], logX: boolean, logY: boolean): uPlot.AlignedData {
  const seen = new Set<number>();
  for (const l of layers) for (const x of l.line.x) if (Number.isFinite(x) && (!logX || x > 0)) seen.add(x);
  const xs = Float64Array.from(seen).sort();
  const place = new Map<number, number>();
  xs.forEach((x, i) => place.set(x, i));
  const out: (number | null | undefined)[][] = [];
  for (const l of layers) {
    const y = new Array<number | null | undefined>(xs.length).fill(undefined);
    l.line.x.forEach((x, i) => {
      const at = place.get(x);
      if (at === undefined) return;
      const v = l.line.y[i]!;
      y[at] = Number.isFinite(v) && (!logY || v > 0) ? v : null; // null is a gap, undefined none
    });
    out.push(y);
  }
  return [xs as unknown as number[], ...out] as uPlot.AlignedData;
}

function options(p: ChartProps, layers: Layer[], width: number, frame: HTMLElement): uPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const text = style.getPropertyValue("--text").trim() || "#222";
  const lines = style.getPropertyValue("--line").trim() || "#ddd";
  const axis = { stroke: text, grid: { stroke: lines, width: 1 }, ticks: { stroke: lines, width: 1 } };
  const wall = p.xTitle === "time";
  return {
    width,
    height: p.height,
    pxAlign: 0,
    tzDate: (seconds) => {
      const at = new Date(seconds * 1000);
      return zone.peek() === "utc" ? new Date(at.getTime() + at.getTimezoneOffset() * 60_000) : at;
    },
    legend: { show: false },
    scales: {
      x: { time: wall, distr: p.logX && !wall ? 3 : 1 },
      y: { distr: p.logY ? 3 : 1, ...(p.yRange ? { range: () => p.yRange! } : {}) },
    },
    axes: [
      { ...axis, label: wall ? "" : p.xTitle, labelSize: 20, size: 36 },
      { ...axis, size: 68, values: (_u, ticks) => ticks.map((t) => (t === null ? "" : short(t, 4))) },
    ],
    series: [
      {},
      ...layers.map((l) => ({
        label: l.line.label,
        stroke: l.line.colour,
        alpha: l.faint ? 0.25 : 1,
        width: l.faint ? 1 : 1.5,
        dash: l.faint ? [] : l.line.dash,
        spanGaps: false,
        points: { show: (_u: uPlot, _i: number) => l.line.x.length === 1, size: 5 },
      })),
    ],
    bands: layers.flatMap((l, i) =>
      l.line.band && !l.faint ? [{ series: [i + 3, i + 2] as [number, number], fill: l.line.colour + "30" }] : [],
    ),
    focus: { alpha: 0.2 },
    cursor: {
      focus: { prox: 24 },
      drag: { x: true, y: false, setScale: false },
      points: { show: layers.length <= 40 },
    },
    hooks: {
      setSelect: [
        (u) => {
          if (u.select.width < 4) return;
          const a = u.posToVal(u.select.left, "x");
          const b = u.posToVal(u.select.left + u.select.width, "x");
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          p.onZoom?.(...bounds(a, b));
        },
      ],
      setSeries: [
        (_u, i, how) => {
          if (!(how as { focus?: boolean }).focus) return;
          const l = i === null || i === undefined ? null : layers[i - 1];
          const id = l ? l.line.id : null;
          if (u_active(frame) && hovered.peek() !== id) hovered.value = id;
        },
      ],
      draw: [(u) => marks(u, p, layers, text)],
    },
  };
}

/** Only the chart under the pointer says what is pointed at. */
function u_active(frame: HTMLElement): boolean {
  return frame.matches(":hover");
}

/** What has no place on the axis: infinities and NaN at the edges; and where a run began again. */
function marks(u: uPlot, p: ChartProps, layers: Layer[], text: string): void {
  const c = u.ctx;
  const { left, top, width, height } = u.bbox;
  c.save();
  c.beginPath();
  c.rect(left, top, width, height);
  c.clip();
  const size = 5 * devicePixelRatio;
  for (const l of layers) {
    if (l.faint) continue;
    const raw = l.line.raw ?? l.line.y;
    raw.forEach((v, i) => {
      if (Number.isFinite(v)) return;
      const x = u.valToPos(l.line.x[i]!, "x", true);
      c.strokeStyle = c.fillStyle = l.line.colour;
      c.beginPath();
      if (Number.isNaN(v)) {
        c.moveTo(x - size / 2, top + height - size * 1.5);
        c.lineTo(x + size / 2, top + height - size / 2);
        c.moveTo(x + size / 2, top + height - size * 1.5);
        c.lineTo(x - size / 2, top + height - size / 2);
        c.stroke();
      } else {
        const y = v > 0 ? top : top + height;
        c.moveTo(x, y);
        c.lineTo(x - size / 2, y + (v > 0 ? size : -size));
        c.lineTo(x + size / 2, y + (v > 0 ? size : -size));
        c.fill();
      }
    });
  }
  for (const m of p.marks ?? []) {
    const x = u.valToPos(m.at, "x", true);
    c.strokeStyle = c.fillStyle = text;
    c.setLineDash([4, 4]);
    c.beginPath();
    c.moveTo(x, top);
    c.lineTo(x, top + height);
    c.stroke();
    c.setLineDash([]);
    c.fillText(m.label, x + 4, top + 12 * devicePixelRatio);
  }
  c.restore();
}
