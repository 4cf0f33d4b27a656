// A line chart. uPlot draws the axes, the cursor and the canvas; each curve is drawn from its own points.

import { useSignal, useSignalEffect, type Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { stand } from "./asked";
import { Legend, NumbersTable, type Curve } from "./curves";
import { edgeMark, font, measure, saveCanvas, Spot } from "./figure";
import { hovered } from "./hover";
import { axisTitle, inRows, spotText, subject, tickTexts, timeTexts } from "./labels";
import { areClose, areTiny, bounds, leastSize, logarithmicEnds, logarithmicTicks, multiples, niceStep } from "./scales";
import { shownTheme, zone } from "./settings";
import { clean, metricOf } from "./text";
import { at, corners, leftToRight, most, nearest, placing, trace, unplaced, within, type Place } from "./traced";
import { Failed } from "./ui";

let Plot: typeof uPlot | null = null;
let coming: Promise<void> | null = null;
/** Loads the library that draws. Its start takes 40 ms (`Intl.NumberFormat`), so that only pages with a chart load it. */
export const plotter = (): Promise<void> => (coming ??= import("uplot").then((m) => void (Plot = m.default)));

export interface Drawn {
  id: string; // of the trial or the group
  label: string;
  group?: [name: string, value: string, curves: number]; // where the line is a mean: what its curves have in common, and their number
  x: number[];
  y: number[];
  colour: string;
  dash: number[];
  raw?: number[]; // the curve before smoothing, drawn faint
  band?: { low: number[]; high: number[] };
}

export interface ChartProps {
  name: string;
  metric: string;
  lines: Drawn[] | null; // null while they are not loaded
  xTitle: string;
  logX: boolean;
  logY: boolean;
  yRange: [number, number] | null;
  xRange?: [number, number] | null; // the part of the X axis that is shown
  height: number;
  onZoom?: (from: number, to: number) => void;
  onCsv?: () => void;
  marks?: { at: number; label: string }[] | undefined;
  whole?: boolean; // whether the axis is as long as the curves and the marks, and not a part of it
  note?: string;
  none?: ComponentChildren; // shown in place of the chart where there is no curve
  numbers: Signal<Curve[] | null>;
}

/** What is drawn now. The hooks of the plot read it anew each time. */
interface Kept {
  u: uPlot;
  layers: Layer[];
  shape: string;
}

interface Layer {
  line: Drawn;
  x: number[]; // in rising order
  y: number[];
  faint: boolean;
}

const outOfSight = 50_000; // px from the corner of a chart
const many = 30; // From this number of curves on, lines are thin and solid, because wide dashed lines are slow.

function layersOf(lines: readonly Drawn[]): Layer[] {
  return lines.flatMap((line) => {
    const order = leftToRight(line.x);
    const inOrder = (list: number[]) => (order ? order.map((i) => list[i]!) : list);
    const layer = (y: number[], faint: boolean) => ({ line, x: inOrder(line.x), y: inOrder(y), faint });
    return [...(line.raw ? [layer(line.raw, true)] : []), layer(line.y, false), ...(line.band ? [layer(line.band.low, true), layer(line.band.high, true)] : [])];
  });
}

export function Chart(props: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const frame = useRef<HTMLElement>(null);
  const plot = useRef<Kept | null>(null);
  const table = useSignal(false);
  const spot = useSignal<{ id: string; x: number; y: number } | null>(null); // the point under the pointer
  const lacking = useSignal<unknown>(null);
  const now = useRef(props);
  now.current = props;

  const draw = () => {
    const p = now.current;
    const el = box.current;
    const outer = frame.current;
    if (!el || !outer || !p.lines) return;
    if (!Plot) {
      plotter().then(draw, (why: unknown) => (lacking.value = why)); // another version of the page has been installed meanwhile
      return;
    }
    const layers = layersOf(p.lines);
    const all = corners(layers, logarithmicX(p), p.logY);
    const data = edges(all, p);
    const shape = [p.logX, p.logY, p.xTitle, shownTheme.peek(), p.yRange?.join()].join("|");
    const old = plot.current;
    if (old && old.shape === shape) {
      old.layers = layers;
      old.u.setData(data);
    } else {
      old?.u.destroy();
      const mine = { layers, shape } as Kept;
      mine.u = new Plot(options(now, mine, el.clientWidth || 800, outer, spot), data, el);
      plot.current = mine;
    }
    const points = p.lines.reduce((n, l) => n + l.x.length, 0);
    const placed = points - unplaced(p.lines, logarithmicX(p), p.logY);
    const last = all.x?.[1] ?? NaN;
    // uPlot draws after this has run, and the pixels exist only then.
    queueMicrotask(() => {
      stand();
      outer.dataset["series"] = String(now.current.lines?.length ?? 0);
      outer.dataset["points"] = String(placed);
      outer.dataset["marks"] = (now.current.marks ?? []).map((m) => m.at).join();
      outer.dataset["lastX"] = Number.isFinite(last) ? String(last) : "";
      outer.dataset["state"] = points > 0 ? "ready" : "empty";
    });
  };

  // The chart is made when it comes into view.
  const seen = useRef(false);
  useEffect(() => {
    const el = box.current!;
    const look = new IntersectionObserver((all) => {
      if (!all.some((x) => x.isIntersecting)) return;
      look.disconnect();
      if (seen.current) return;
      seen.current = true;
      draw();
    });
    look.observe(el);
    const size = new ResizeObserver(() => {
      const u = plot.current?.u;
      if (u && el.clientWidth > 0 && el.clientWidth !== u.width) u.setSize({ width: el.clientWidth, height: now.current.height });
    });
    size.observe(el);
    return () => {
      look.disconnect();
      size.disconnect();
      plot.current?.u.destroy();
      plot.current = null;
    };
  }, []);
  // After a change of the metric, the drawn curves still belong to the former one.
  useLayoutEffect(() => {
    if (frame.current) frame.current.dataset["state"] = "loading";
  }, [props.metric]);
  useLayoutEffect(() => {
    if (frame.current && !props.lines) frame.current.dataset["state"] = "loading";
    const at = seen.current || !props.lines ? null : box.current!.getBoundingClientRect();
    if (at && at.top < innerHeight && at.bottom > 0) seen.current = true;
    if (seen.current) draw();
  }, [props.lines, props.logX, props.logY, props.yRange, props.xRange, props.xTitle, props.marks?.length]);
  useSignalEffect(() => {
    shownTheme.value;
    if (plot.current && !plot.current.shape.includes(shownTheme.value)) draw();
  });
  // Marks in this chart the trial that the pointer is on elsewhere.
  useSignalEffect(() => {
    const id = hovered.value;
    const mine = plot.current;
    if (!mine) return;
    if (id === null && !frame.current?.dataset["hovered"]) return;
    const on = id !== null && mine.layers.some((l) => l.line.id === id);
    if (frame.current) frame.current.dataset["hovered"] = on ? id : "";
    mine.u.redraw(false);
  });

  const said = (id: string): string => {
    const line = props.lines?.find((l) => l.id === id);
    if (!line) return "";
    const at = spot.value?.id === id ? spot.value : null; // null where the pointer is elsewhere
    return at ? spotText(line.label, props.xTitle, at.x, at.y, zone.value) : subject(line.label);
  };
  const values = props.lines?.length ?? 0;
  const left = useMemo(() => unplaced(props.lines ?? [], logarithmicX(props), props.logY), [props.lines, props.logX, props.logY, props.xTitle]);
  const note = [...(props.note ? [props.note] : []), ...(left > 0 ? [`${left} ${left === 1 ? "point" : "points"} of 0 or less not drawn: a logarithmic axis has no place for them`] : [])].join("; ");
  const label = `${props.name}, ${values} ${values === 1 ? "curve" : "curves"}`;
  return (
    <figure class="chart" data-testid="chart" data-metric={props.metric} data-state="loading" ref={frame}>
      <div ref={box} class="plot" role="img" aria-label={clean(label)} onPointerLeave={() => (hovered.value = null)} />
      {lacking.value !== null && <Failed why={lacking.value} again={() => location.reload()} />}
      {props.lines && values === 0 && <p class="empty">{props.none ?? <>No report of <bdi>{metricOf(props.metric)}</bdi> yet.</>}</p>}
      {props.lines && <Legend lines={props.lines} />}
      <figcaption>
        {note && <span class="note">{note} </span>}
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
            hovered.value = null; // the picture has no mark, and is saved after that was drawn
            if (canvas) queueMicrotask(() => saveCanvas(props.metric, canvas, label, props.lines ?? []));
          }}
        >
          Download PNG
        </button>
        <Spot text={said} />
      </figcaption>
      {table.value && <NumbersTable lines={props.numbers} />}
    </figure>
  );
}

const logarithmicX = (p: ChartProps): boolean => p.logX && p.xTitle !== "time";

/** The data for uPlot: only the corners of all curves, from which it finds its scales. A run may have begun before its first report. */
function edges(all: ReturnType<typeof corners>, p: ChartProps): uPlot.AlignedData {
  if (!all.x) return [[], [], []];
  const marked = p.whole ? (p.marks ?? []).map((m) => m.at).filter((at) => at > (logarithmicX(p) ? 0 : -Infinity)) : [];
  const [low, high] = [Math.min(all.x[0], ...marked), Math.max(all.x[1], ...marked)];
  // Of equal ends the library would make ends that are years apart.
  const x = low < high ? [low, high] : loneEnds(p, low);
  return [x, x.map(() => all.y?.[0] ?? null), x.map(() => all.y?.[1] ?? null)];
}

function options(now: { current: ChartProps }, kept: Kept, width: number, frame: HTMLElement, spot: Signal<{ id: string; x: number; y: number } | null>): uPlot.Options {
  const p = now.current;
  const style = getComputedStyle(document.documentElement);
  const text = style.getPropertyValue("--text").trim() || "#222";
  const lines = style.getPropertyValue("--line").trim() || "#ddd";
  const axis = { stroke: text, font, labelFont: "bold " + font, grid: { stroke: lines, width: 1 }, ticks: { stroke: lines, width: 1 } };
  const wall = p.xTitle === "time";
  const edge = { paths: () => null, points: { show: false } };
  const dot = document.createElement("div"); // marks the nearest point of the curve under the pointer
  dot.className = "nearest";
  dot.hidden = true;
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
      x: { time: wall, distr: logarithmicX(p) ? 3 : 1, range: (_u, a, b) => xEnds(now.current, a, b) },
      y: { distr: p.logY ? 3 : 1, ...(p.yRange ? { range: () => p.yRange! } : { range: (_u, a, b) => (p.logY ? logarithmicEnds(a, b, 0.05) : linearEnds(a, b)) }) },
    },
    axes: [
      { ...axis, ...(logarithmicX(p) ? powers : wall ? {} : plain()), label: axisTitle(p.xTitle), labelSize: 20, size: 36, ...(wall ? { space: 80, values: (_u, ticks) => timeTexts(ticks, zone.peek()) } : { values: (_u, ticks) => tickTexts(ticks, 6) }) },
      { ...axis, ...(p.logY ? powers : plain()), size: (_u, texts) => Math.max(68, ...(texts ?? []).map((t) => 20 + measure(t))), values: (_u, ticks) => tickTexts(ticks, 4) },
    ],
    series: [{}, edge, edge],
    cursor: {
      drag: { x: true, y: false, setScale: false },
      points: { show: false },
    },
    hooks: {
      ready: [(u) => u.over.append(dot)],
      setSelect: [
        (u) => {
          if (u.select.width < 4) return;
          const a = u.posToVal(u.select.left, "x");
          const b = u.posToVal(u.select.left + u.select.width, "x");
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          now.current.onZoom?.(...bounds(a, b));
        },
      ],
      setCursor: [
        (u) => {
          const { left = -1, top = -1 } = u.cursor;
          const curves = kept.layers.filter((l) => !l.faint);
          const places = left >= 0 ? placesOf(u, true) : null;
          const found = places && nearest(curves, places.x, places.y, left, top, 24);
          dot.hidden = !found;
          if (found) {
            dot.style.transform = `translate(${found.x}px, ${found.y}px)`;
            dot.style.background = curves[found.curve]!.line.colour;
          }
          const on = found && curves[found.curve]!;
          const id = on ? on.line.id : null;
          spot.value = on && { id: on.line.id, x: on.x[found.point]!, y: on.y[found.point]! };
          if (u_active(frame) && hovered.peek() !== id) hovered.value = id;
        },
      ],
      draw: [
        (u) => {
          const c = u.ctx;
          const { left, top, width, height } = u.bbox;
          c.save();
          c.beginPath();
          c.rect(left, top, width, height);
          c.clip();
          drawn(u, now.current, kept.layers);
          marks(u, now.current, kept.layers, text);
          c.restore();
        },
      ],
    },
  };
}

/** The ticks of a linear axis, of any size: the library itself draws none at distances below 1e-16 and above 1e32. */
function plain(): Partial<uPlot.Axis> {
  let step = 1;
  return {
    incrs: (_u, _axis, low, high, length, space) => {
      step = niceStep(((high - low) / length) * space);
      return anyStep;
    },
    splits: (_u, _axis, low, high) => multiples(low, high, step),
  };
}
const anyStep = [1e300]; // a distance that the library accepts, and that nobody reads
/** The ticks of a logarithmic axis. The library has them, and its ends, at whole powers of ten alone. */
const powers: Partial<uPlot.Axis> = { incrs: () => anyStep, splits: (_u, _axis, low, high) => logarithmicTicks(low, high), filter: (_u, ticks) => ticks };

function xEnds(p: ChartProps, low: number | null, high: number | null): [number, number] | [null, null] {
  if (p.xRange && p.xRange[0] < p.xRange[1] && (!logarithmicX(p) || p.xRange[0] > 0)) return p.xRange;
  return logarithmicX(p) ? logarithmicEnds(low, high) : low === null || high === null ? [null, null] : [low, high];
}

/** The ends of an X axis with one value. */
function loneEnds(p: ChartProps, x: number): [number, number] {
  if (logarithmicX(p)) return [Math.max(Number.MIN_VALUE, x / 2), Math.min(Number.MAX_VALUE, x * 2)];
  const room = p.xTitle === "time" ? 2 : Math.abs(x) < leastSize ? 1 : Math.abs(x);
  return [Math.max(-Number.MAX_VALUE, x - room), Math.min(Number.MAX_VALUE, x + room)];
}

/** The ends of a linear Y axis. The library chooses them, except where it would take different values for equal ones. */
function linearEnds(low: number | null, high: number | null): [number, number] | [null, null] {
  if (low === null || high === null) return [null, null];
  if (Math.max(Math.abs(low), Math.abs(high)) < leastSize) return Plot!.rangeNum(0, 0, 0.1, true) as [number, number];
  if (!areTiny(low, high) && !areClose(low, high)) return Plot!.rangeNum(low, high, 0.1, true) as [number, number];
  const room = (high - low) / 10;
  return [low - room, high + room];
}

/** The functions from values to places on the canvas, or with `pointer` to pixels from the corner of the plot. */
function placesOf(u: uPlot, pointer = false): { x: Place; y: Place } | null {
  const { x, y } = u.scales as { x: uPlot.Scale; y: uPlot.Scale };
  if (x.min == null || x.max == null || y.min == null || y.max == null) return null;
  const { clientWidth, clientHeight } = u.over;
  const { left, top, width, height } = pointer ? { left: 0, top: 0, width: clientWidth, height: clientHeight } : u.bbox;
  return { x: placing(x.min, x.max, x.distr === 3, left, left + width), y: placing(y.min, y.max, y.distr === 3, top + height, top) };
}

/** Draws the curves. The curve under the pointer is drawn last, and all others are pale then. */
function drawn(u: uPlot, p: ChartProps, layers: Layer[]): void {
  const places = placesOf(u);
  if (!places) return;
  const c = u.ctx;
  const ratio = devicePixelRatio;
  const plain = (p.lines?.length ?? 0) > many;
  const id = hovered.peek();
  const on = id === null ? [] : layers.filter((l) => l.line.id === id);
  c.lineJoin = "round";
  c.lineCap = "butt";
  for (const l of on.length > 0 ? [...layers.filter((one) => one.line.id !== id), ...on] : layers) {
    const pale = on.length > 0 && l.line.id !== id ? 0.2 : 1;
    c.strokeStyle = c.fillStyle = l.line.colour;
    if (l.line.band && !l.faint) between(c, l, places, p, pale);
    c.globalAlpha = (l.faint ? 0.25 : 1) * pale;
    c.lineWidth = (l.faint || plain ? 1 : 1.5) * ratio;
    c.setLineDash(l.faint || plain ? [] : l.line.dash.map((d) => d * ratio));
    const alone: [number, number][] = [];
    c.beginPath();
    trace(within(c, outOfSight), l, places.x, places.y, (x, y) => alone.push([x, y]));
    c.stroke();
    for (const [x, y] of alone) {
      c.beginPath();
      c.arc(x, y, 2.5 * ratio, 0, 2 * Math.PI);
      c.fill();
    }
  }
  c.globalAlpha = 1;
  c.setLineDash([]);
}

/** Fills the area between the lowest and the highest values of a group, between each two points. */
function between(c: CanvasRenderingContext2D, l: Layer, places: { x: Place; y: Place }, p: ChartProps, pale: number): void {
  const band = l.line.band!;
  const ok = (i: number) => [band.low[i]!, band.high[i]!].every((v) => Number.isFinite(v) && (!p.logY || v > 0)) && (!logarithmicX(p) || l.line.x[i]! > 0);
  c.globalAlpha = 0.19 * pale;
  for (let i = 0; i < l.line.x.length; ++i) {
    if (!ok(i)) continue;
    const from = i;
    c.beginPath();
    for (; i < l.line.x.length && ok(i); ++i) c.lineTo(at(places.x, l.line.x[i]!), at(places.y, band.high[i]!));
    for (let k = i - 1; k >= from; --k) c.lineTo(at(places.x, l.line.x[k]!), at(places.y, band.low[k]!));
    c.fill();
  }
}

/** Whether the pointer is over this chart: only that chart tells which trial the pointer is on. */
function u_active(frame: HTMLElement): boolean {
  return frame.matches(":hover");
}

/** Marks restarts of runs, and values that have no place on the axis (infinities and NaN) at the edges. */
function marks(u: uPlot, p: ChartProps, layers: Layer[], text: string): void {
  const c = u.ctx;
  const { left, top, width, height } = u.bbox;
  c.lineWidth = devicePixelRatio;
  const size = 5 * devicePixelRatio;
  for (const l of layers) {
    if (l.faint) continue;
    const raw = l.line.raw ?? l.line.y;
    for (let i = 0; i < raw.length; ++i) {
      const v = raw[i]!;
      if (Math.abs(v) < most) continue; // false for NaN, too
      c.strokeStyle = c.fillStyle = l.line.colour;
      const x = u.valToPos(l.line.x[i]!, "x", true);
      if (x >= left && x <= left + width) edgeMark(c, Math.min(left + width - size / 2, Math.max(left + size / 2, x)), v > 0 ? top : top + height, v, size);
    }
  }
  c.strokeStyle = c.fillStyle = text;
  c.textAlign = "left";
  const places = (p.marks ?? []).map((m) => ({ x: u.valToPos(m.at, "x", true), label: m.label })).sort((a, b) => a.x - b.x);
  const rows = inRows(places.map((m) => ({ from: m.x, to: m.x + c.measureText(m.label).width + 12 * devicePixelRatio })));
  places.forEach(({ x, label }, i) => {
    c.setLineDash([4, 4]);
    c.beginPath();
    c.moveTo(x, top);
    c.lineTo(x, top + height);
    c.stroke();
    c.setLineDash([]);
    c.fillText(label, x + 4, top + 12 * devicePixelRatio * (1 + rows[i]!));
  });
}
