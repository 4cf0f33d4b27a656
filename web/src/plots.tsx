// Our own charts, drawn on canvas or as SVG. They share scales, one hover and one brush.

import { useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { drawAxes, fitted, frame, keyOf, marks, type Frame, type Key } from "./axes";
import { edgeMark, Files, font, ink, measure, rowText, saveCanvas, Spot, type Ink, type Table } from "./figure";
import { hovered } from "./hover";
import { go } from "./router";
import { brushed, celled, clamped, full, inOrder, placeOf, value, type Brush, type Dimension, type Row } from "./brush";
import { shortened } from "./labels";
import { fitting, heat, heatLine, linear, type Scale } from "./scales";
import { heldText, lanes, withStates, type Held } from "./timeline";
import { shownTheme, zone } from "./settings";
import { clean, isolated, moment, nameOf, short } from "./text";

/** The values of some dimensions, a row for each trial. */
const tableOf = (rows: readonly Row[], dims: readonly Dimension[]): Table => ({
  columns: ["trial", ...dims.map((d) => d.title)],
  rows: () => rows.map((t) => [t.id, ...dims.map((d) => value(t, d.key))]),
});

// ---- drawing

/** A canvas as wide as its place. It is drawn again when its content, its size, the theme or the hover changes. */
export function Drawing(props: {
  testid: string;
  name: string;
  height: number;
  draw: (c: CanvasRenderingContext2D, width: number, height: number, ink: Ink) => void;
  depends: unknown[];
  data?: Record<string, string | number>;
  at?: (x: number, y: number, width: number, height: number) => string | null; // the id of the trial at that place
  onClick?: (id: string) => void;
  onDrag?: (x0: number, y0: number, x1: number, y1: number, width: number, height: number) => void;
  table: Table; // the numbers of the chart
  spot?: (id: string) => string; // the trial under the pointer in words; default: its row of the table
  file?: string; // name of the file; default: `testid`
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const figure = useRef<HTMLElement>(null);
  const now = useRef(props);
  now.current = props;
  const due = useRef(0);
  const start = useRef<[number, number] | null>(null);
  const reach = useRef<[number, number] | null>(null); // the ends of a running drag
  const paint = () => {
    due.current ||= requestAnimationFrame(() => {
      due.current = 0;
      const el = canvas.current;
      if (!el || document.hidden) return;
      const width = el.clientWidth;
      const height = now.current.height;
      const ratio = devicePixelRatio || 1;
      if (el.width !== Math.round(width * ratio)) el.width = Math.round(width * ratio);
      if (el.height !== Math.round(height * ratio)) el.height = Math.round(height * ratio);
      const c = el.getContext("2d")!;
      c.setTransform(ratio, 0, 0, ratio, 0, 0);
      c.clearRect(0, 0, width, height);
      c.font = font;
      now.current.draw(c, width, height, ink());
      if (start.current && reach.current) {
        const [[x0, y0], [x1, y1]] = [start.current, reach.current];
        c.strokeStyle = ink().accent;
        c.setLineDash([4, 3]);
        c.strokeRect(Math.min(x0, x1), Math.min(y0, y1), Math.abs(x1 - x0), Math.abs(y1 - y0));
        c.setLineDash([]);
      }
      if (figure.current) figure.current.dataset["state"] = "ready";
    });
  };
  useEffect(paint, props.depends);
  useSignalEffect(() => {
    hovered.value;
    shownTheme.value;
    if (figure.current) figure.current.dataset["hovered"] = hovered.value ?? "";
    paint();
  });
  useEffect(() => {
    const size = new ResizeObserver(paint);
    size.observe(canvas.current!);
    canvas.current!.style.height = `${props.height}px`;
    return () => {
      size.disconnect();
      cancelAnimationFrame(due.current);
    };
  }, [props.height]);
  const place = (e: MouseEvent): [number, number] => {
    const r = canvas.current!.getBoundingClientRect();
    return [e.clientX - r.left, e.clientY - r.top];
  };
  return (
    <figure class="chart own" data-testid={props.testid} ref={figure} {...Object.fromEntries(Object.entries(props.data ?? {}).map(([k, v]) => [`data-${k}`, v]))}>
      <canvas
        ref={canvas}
        role="img"
        aria-label={props.name}
        onPointerMove={(e) => {
          const [x, y] = place(e);
          if (start.current && now.current.onDrag) {
            reach.current = [x, y];
            paint();
          }
          const id = now.current.at?.(x, y, canvas.current!.clientWidth, props.height) ?? null;
          if (hovered.peek() !== id) hovered.value = id;
        }}
        onPointerLeave={() => (hovered.value = null)}
        onPointerDown={(e) => {
          if (e.button !== 0) return;
          start.current = place(e);
          e.currentTarget.setPointerCapture(e.pointerId); // the drag may end outside of the chart
        }}
        onPointerCancel={() => {
          start.current = reach.current = null;
          paint();
        }}
        onPointerUp={(e) => {
          const from = start.current;
          start.current = reach.current = null;
          paint();
          if (!from) return;
          const [x, y] = place(e);
          if (Math.hypot(x - from[0], y - from[1]) > 5) props.onDrag?.(from[0], from[1], x, y, canvas.current!.clientWidth, props.height);
          else {
            const id = props.at?.(x, y, canvas.current!.clientWidth, props.height);
            if (id) (props.onClick ?? ((t: string) => go(`/trials/${t}`)))(id);
          }
        }}
      />
      <Files
        name={props.file ?? props.testid}
        title={props.name}
        table={props.table}
        picture={() => {
          hovered.value = null; // the picture has no mark, and is saved after that was drawn
          requestAnimationFrame(() => canvas.current && saveCanvas(props.file ?? props.testid, canvas.current, props.name));
        }}
      >
        <Spot text={(id) => now.current.spot?.(id) ?? rowText(now.current.table, id)} />
      </Files>
    </figure>
  );
}

function nearest(points: { id: string; x: number; y: number }[], x: number, y: number, within = 12): string | null {
  let best: string | null = null;
  let least = within * within;
  for (const p of points) {
    const d = (p.x - x) ** 2 + (p.y - y) ** 2;
    if (d < least) {
      least = d;
      best = p.id;
    }
  }
  return best;
}

/** Keeps the result for the last size, because each move of the pointer asks where the points of a chart are. */
function lastOf<T>(make: (w: number, h: number) => T): (w: number, h: number) => T {
  let last: { w: number; h: number; made: T } | null = null;
  return (w, h) => {
    if (last?.w !== w || last.h !== h) last = { w, h, made: make(w, h) };
    return last.made;
  };
}

const noKey: Key = { tall: 0, draw: () => undefined };

/** An axis that is not a hyperparameter. */
const axisOf = (title: string, scale: Scale): Dimension => ({ key: "", title, scale, choices: null, place: () => null, beyond: () => null, label: () => "" });

export function Scatter(props: { rows: readonly Row[]; x: Dimension; y: Dimension; colour: Dimension | null; onBrush?: (axes: string[], b: (Brush | null)[]) => void; testid?: string; height?: number }) {
  const { x, y, colour } = props;
  const points = props.rows.flatMap((t) => {
    const [px, py] = [clamped(x, t), clamped(y, t)];
    return px === null || py === null ? [] : [{ id: String(t.id), px, py, c: colour ? clamped(colour, t) : null, beyond: [x.beyond(t), y.beyond(t)] as const }];
  });
  const keyed = lastOf((w) => (colour ? keyOf(colour, w, points.some((p) => p.c === null), measure) : noKey));
  const framed = lastOf((w, h) => frame(w, h, x, y, false, keyed(w, 0).tall, measure));
  const places = (w: number, h: number) => {
    const f = framed(w, h);
    return points.map((p) => ({ id: p.id, x: f.left + p.px * f.width, y: f.top + (1 - p.py) * f.height, c: p.c, beyond: p.beyond }));
  };
  return (
    <Drawing
      testid={props.testid ?? "scatter"}
      name={`Scatter of ${props.rows.length} trials: ${clean(props.x.title)} and ${clean(props.y.title)}`}
      height={props.height ?? 320}
      depends={[props.rows, props.x, props.y, props.colour]}
      table={tableOf(props.rows, props.colour ? [props.x, props.y, props.colour] : [props.x, props.y])}
      data={{ trials: props.rows.length, drawn: points.length, beyond: points.filter((p) => p.beyond.some((b) => b !== null)).length }}
      draw={(c, w, h, k) => {
        const of = (p: number) => heatLine(p, shownTheme.peek() === "dark");
        keyed(w, 0).draw(c, k, of);
        drawAxes(c, framed(w, h), k, x, y, measure);
        for (const p of places(w, h)) {
          const on = hovered.peek() === p.id;
          c.fillStyle = p.c === null ? k.accent : of(p.c);
          c.strokeStyle = k.text;
          const [bx, by] = p.beyond;
          if (bx !== null || by !== null) {
            edgeMark(c, p.x, p.y, by ?? bx!, on ? 14 : 8, by === null);
            continue;
          }
          c.beginPath();
          c.arc(p.x, p.y, on ? 7 : 4, 0, 2 * Math.PI);
          c.fill();
          if (on) c.stroke();
        }
      }}
      at={(px, py, w, h) => nearest(places(w, h), px, py)}
      onDrag={(x0, y0, x1, y1, w, h) => {
        const f = framed(w, h);
        // Two brushes of the same axis count as one.
        const over = new Map([
          [y.key, brushed(y, 1 - (y0 - f.top) / f.height, 1 - (y1 - f.top) / f.height)],
          [x.key, brushed(x, (x0 - f.left) / f.width, (x1 - f.left) / f.width)],
        ]);
        props.onBrush?.(Array.from(over.keys()), Array.from(over.values()));
      }}
    />
  );
}

/** The best value so far over the trials, in the order of their ends. */
export function History(props: { points: { trial: number; value: number; best: number }[]; metric: string }) {
  const all = props.points.flatMap((p) => [p.value, p.best]);
  const y = fitting(all);
  const dims = [axisOf("trials ended", linear(1, props.points.length)), axisOf(props.metric, y)] as const;
  const framed = lastOf((w, h) => frame(w, h, ...dims, false, 0, measure));
  const at = (i: number, f: Frame) => f.left + (props.points.length > 1 ? i / (props.points.length - 1) : 0.5) * f.width;
  const up = (v: number, f: Frame) => f.top + (Number.isFinite(v) ? 1 - y.at(v) : v > 0 ? 0 : 1) * f.height;
  const last = props.points[props.points.length - 1];
  return (
    <Drawing
      testid="history"
      name={`Best ${nameOf(props.metric)} so far over ${props.points.length} trials: ${short(last?.best ?? null)}`}
      height={280}
      depends={[props.points]}
      table={{ columns: ["trial", props.metric, "best so far"], rows: () => props.points.map((p) => [p.trial, p.value, p.best]) }}
      data={{ trials: props.points.length, best: last ? last.best : "" }}
      draw={(c, w, h, k) => {
        const f = framed(w, h);
        drawAxes(c, f, k, ...dims, measure);
        props.points.forEach((p, i) => {
          const on = hovered.peek() === String(p.trial);
          c.fillStyle = on ? k.text : k.accent;
          c.globalAlpha = on ? 1 : 0.5;
          if (!Number.isFinite(p.value)) return edgeMark(c, at(i, f), up(p.value, f), p.value, on ? 14 : 9);
          c.beginPath();
          c.arc(at(i, f), up(p.value, f), on ? 6 : 3, 0, 2 * Math.PI);
          c.fill();
        });
        c.globalAlpha = 1;
        c.strokeStyle = "#d55e00";
        c.lineWidth = 2;
        c.beginPath();
        props.points.forEach((p, i) => {
          if (i > 0) c.lineTo(at(i, f), up(props.points[i - 1]!.best, f));
          c[i > 0 ? "lineTo" : "moveTo"](at(i, f), up(p.best, f));
        });
        c.stroke();
        c.lineWidth = 1;
      }}
      at={(x, y_, w, h) =>
        nearest(
          props.points.map((p, i) => ({ id: String(p.trial), x: at(i, framed(w, h)), y: up(p.value, framed(w, h)) })),
          x,
          y_,
        )
      }
    />
  );
}

export function Parallel(props: { rows: readonly Row[]; passing: ReadonlySet<number>; dims: Dimension[]; brushes: Brush[]; onBrush: (key: string, b: Brush | null) => void }) {
  const { dims } = props;
  const words = dims.map((d) => marks(d));
  const apart = lastOf((w) => {
    const widest = Math.max(0, ...(words[dims.length - 1] ?? []).map((m) => measure(m.text)));
    const right = Math.max(60, Math.min(widest + 12, 200, w / 4)); // room for the texts right of the last axis
    return { right, between: dims.length > 1 ? (w - 60 - right) / (dims.length - 1) : w / 2 };
  });
  const x = (i: number, w: number) => (dims.length > 1 ? 60 + i * apart(w, 0).between : w / 2);
  const top = 34;
  const y = (p: number, h: number) => top + (1 - p) * (h - top - 24);
  const colour = dims[dims.length - 1];
  const line = (t: Row, w: number, h: number) => dims.map((d, i) => [x(i, w), clamped(d, t)] as const).filter((p): p is readonly [number, number] => p[1] !== null).map(([a, p]) => [a, y(p, h)] as const);
  return (
    <Drawing
      testid="parallel"
      name={`Parallel coordinates of ${props.passing.size} trials over ${dims.length} axes`}
      height={360}
      depends={[props.rows, props.passing, dims, props.brushes]}
      table={tableOf(
        props.rows.filter((t) => props.passing.has(t.id)),
        dims,
      )}
      data={{ trials: props.passing.size }}
      draw={(c, w, h, k) => {
        const stroke = (t: Row, on: boolean) => {
          const p = line(t, w, h);
          c.beginPath();
          p.forEach(([a, b], i) => c[i > 0 ? "lineTo" : "moveTo"](a, b));
          c.lineWidth = on ? 3 : 1;
          c.stroke();
        };
        c.globalAlpha = 0.5;
        c.strokeStyle = k.faint;
        for (const t of props.rows) if (!props.passing.has(t.id)) stroke(t, false);
        c.globalAlpha = props.passing.size > 200 ? 0.35 : 1;
        for (const t of props.rows) {
          if (!props.passing.has(t.id)) continue;
          c.strokeStyle = c.fillStyle = heatLine((colour && clamped(colour, t)) ?? 0, shownTheme.peek() === "dark");
          stroke(t, false);
          dims.forEach((d, i) => {
            const b = d.beyond(t);
            if (b !== null) edgeMark(c, x(i, w), y(b > 0 ? 1 : 0, h), b, 8);
          });
        }
        c.globalAlpha = 1;
        const h_ = props.rows.find((t) => String(t.id) === hovered.peek());
        if (h_) {
          c.strokeStyle = k.text;
          stroke(h_, true);
        }
        c.lineWidth = 1;
        c.fillStyle = k.text;
        const { right, between } = apart(w, 0);
        dims.forEach((d, i) => {
          const a = x(i, w);
          c.strokeStyle = k.text;
          c.beginPath();
          c.moveTo(a, y(0, h));
          c.lineTo(a, y(1, h));
          c.stroke();
          if (d === colour) {
            // The axis whose values give the lines their colours.
            const [low, high] = [y(0, h), y(1, h)];
            for (let at = high; at < low; at += 2) {
              c.fillStyle = heatLine((low - at) / (low - high), shownTheme.peek() === "dark");
              c.fillRect(a - 5, at, 5, 2);
            }
            c.fillStyle = k.text;
          }
          c.textAlign = "center";
          c.fillText(shortened(clean(d.title), Math.min(between - 8, 2 * Math.min(a, w - a) - 4), measure), a, 14);
          c.textAlign = "left";
          let below = NaN; // where the text before stands; one that would stand over it is left out
          for (const m of fitted(words[i]!, (i < dims.length - 1 ? between : right) - 12, measure)) {
            const to = y(m.at, h) + 4;
            if (Math.abs(to - below) < 11) continue;
            c.fillText(m.text, a + 4, to);
            below = to;
          }
          const b = props.brushes.find((br) => full(br.key) === d.key);
          const end = (x: number | string) => (d.choices ? placeOf(d.choices.findIndex((c) => inOrder(c, String(x)) === 0), d.choices.length) : typeof x === "number" ? Math.min(1, Math.max(0, d.scale.at(x))) : NaN);
          if (b && end(b.from) >= 0 && end(b.to) >= 0) {
            c.fillStyle = k.accent + "55";
            const p0 = y(end(b.to), h) - (d.choices ? 6 : 0);
            const p1 = y(end(b.from), h) + (d.choices ? 6 : 0);
            c.fillRect(a - 8, p0, 16, p1 - p0);
            c.fillStyle = k.text;
          }
        });
      }}
      at={(px, py, w, h) => {
        let best: string | null = null;
        let least = 8;
        for (const t of props.rows) {
          if (!props.passing.has(t.id)) continue;
          const p = line(t, w, h);
          for (let i = 1; i < p.length; ++i) {
            const [ax, ay] = p[i - 1]!;
            const [bx, by] = p[i]!;
            if (px < ax || px > bx) continue;
            const d = Math.abs(ay + ((by - ay) * (px - ax)) / (bx - ax || 1) - py);
            if (d < least) {
              least = d;
              best = String(t.id);
            }
          }
        }
        return best;
      }}
      onDrag={(x0, y0, _x1, y1, w, h) => {
        let i = 0;
        dims.forEach((_, j) => {
          if (Math.abs(x(j, w) - x0) < Math.abs(x(i, w) - x0)) i = j;
        });
        const d = dims[i];
        if (!d) return;
        const p = (v: number) => Math.min(1, Math.max(0, 1 - (v - top) / (h - top - 24)));
        props.onBrush(d.key, brushed(d, p(y0), p(y1)));
      }}
    />
  );
}

const mostCells = 8; // limit of the cells of a side that is not a choice

/** The mean of a metric over two hyperparameters. */
export function Heatmap(props: { rows: readonly Row[]; x: Dimension; y: Dimension; of: Dimension }) {
  const x = celled(props.x, props.rows, mostCells);
  const y = celled(props.y, props.rows, mostCells);
  const [nx, ny] = [x.cells, y.cells];
  const sums = new Map<number, { sum: number; n: number; ids: string[] }>();
  for (const t of props.rows) {
    const i = x.cell(t);
    const j = y.cell(t);
    const v = props.of.place(t) ?? props.of.beyond(t);
    if (i === null || j === null || v === null) continue;
    const key = j * nx + i;
    const one = sums.get(key) ?? { sum: 0, n: 0, ids: [] };
    one.sum += v;
    ++one.n;
    one.ids.push(String(t.id));
    sums.set(key, one);
  }
  const keyed = lastOf((w) => keyOf(props.of, w, false, measure));
  const framed = lastOf((w, h) => frame(w, h, x, y, true, keyed(w, 0).tall, measure));
  return (
    <Drawing
      testid="heatmap"
      name={`Heat map of ${clean(props.of.title)} over ${clean(props.x.title)} and ${clean(props.y.title)}`}
      height={320}
      depends={[props.rows, props.x, props.y, props.of]}
      table={tableOf(props.rows, [props.x, props.y, props.of])}
      data={{ cells: sums.size, columns: nx, lines: ny, beyond: Array.from(sums.values()).filter((s) => !Number.isFinite(s.sum)).length }}
      draw={(c, w, h, k) => {
        const f = framed(w, h);
        const gw = f.width / nx;
        const gh = f.height / ny;
        for (const [key, one] of sums) {
          const i = key % nx;
          const j = Math.floor(key / nx);
          const mean = one.sum / one.n;
          c.fillStyle = heat(Math.min(1, Math.max(0, mean)));
          if (!Number.isNaN(mean)) c.fillRect(f.left + i * gw + 1, f.top + (ny - 1 - j) * gh + 1, gw - 2, gh - 2);
          if (!Number.isFinite(mean)) {
            c.fillStyle = mean === -Infinity ? "#fff" : mean > 0 ? "#000" : k.text;
            c.textAlign = "center";
            c.fillText(short(mean), f.left + (i + 0.5) * gw, f.top + (ny - 0.5 - j) * gh + 4);
          }
          c.strokeStyle = k.text; // because the darkest and the lightest colour are close to the background of a theme
          c.globalAlpha = 0.5;
          c.strokeRect(f.left + i * gw + 1, f.top + (ny - 1 - j) * gh + 1, gw - 2, gh - 2);
          c.globalAlpha = 1;
          if (hovered.peek() !== null && one.ids.includes(hovered.peek()!)) {
            c.strokeStyle = k.text;
            c.lineWidth = 3;
            c.strokeRect(f.left + i * gw + 1, f.top + (ny - 1 - j) * gh + 1, gw - 2, gh - 2);
            c.lineWidth = 1;
          }
        }
        keyed(w, 0).draw(c, k, heat);
        drawAxes(c, f, k, x, y, measure, false);
      }}
      at={(px, py, w, h) => {
        const f = framed(w, h);
        const i = Math.floor((px - f.left) / (f.width / nx));
        const j = ny - 1 - Math.floor((py - f.top) / (f.height / ny));
        return i >= 0 && i < nx && j >= 0 && j < ny ? (sums.get(j * nx + i)?.ids[0] ?? null) : null;
      }}
    />
  );
}

const colourOf = (its: string, k: Ink): string => (/ERROR|FAILED|LOST|INVALID/.test(its) ? "#d55e00" : /COMPLETED/.test(its) ? "#009e73" : /RUNNING/.test(its) ? "#0072b2" : k.faint);

const highest = 8000; // height of a timeline in px; browsers draw no picture that is much higher

/** The times in which runs held slots, a lane for each slot. Times that have no end yet are drawn to `until`. */
export function Timeline(props: { rows: readonly Row[]; held: readonly Held[]; until: number }) {
  const states = new Map(props.rows.map((t) => [t.id, t.state]));
  const now = props.until;
  const runs = withStates(
    props.held.filter((h) => states.has(h.trial)),
    states,
  );
  const { bars, lanes: lines } = lanes(runs, now);
  const agents = Array.from(new Set(lines.filter((l) => l.slot !== null).map((l) => l.agent)));
  const slots = lines.filter((l) => l.slot !== null).length;
  const end = (b: Held) => b.to ?? now;
  const from = bars[0]?.from ?? now;
  let to = from + 1000;
  for (const b of bars) to = Math.max(to, end(b));
  const tall = Math.min(Math.max(8, Math.min(22, 400 / Math.max(1, lines.length))), highest / Math.max(1, lines.length));
  // The names of the lanes, or of the agents where a lane has no room for a text.
  const names =
    tall >= 12
      ? lines.flatMap((l, i) => (l.slot === null ? [] : [{ text: `${isolated(l.agent)} ${l.slot}`, at: (i + 0.5) * tall }]))
      : agents.flatMap((agent) => {
          const first = lines.findIndex((l) => l.agent === agent);
          const count = lines.filter((l) => l.agent === agent && l.slot !== null).length;
          return count * tall >= 12 ? [{ text: isolated(agent), at: (first + count / 2) * tall }] : [];
        });
  const left = lastOf((w) => (names.length > 0 ? Math.min(16 + Math.max(...names.map((n) => measure(n.text))), w / 4) : 8));
  const x = (t: number, w: number) => left(w, 0) + ((t - from) / (to - from)) * (w - left(w, 0) - 8);
  const count = (n: number, what: string) => `${n} ${what}${n === 1 ? "" : "s"}`;
  return (
    <Drawing
      testid="timeline"
      name={`Timeline of ${count(props.rows.length, "trial")}${slots > 0 ? ` on ${count(slots, "slot")} of ${count(agents.length, "agent")}` : ""}`}
      height={Math.round(lines.length * tall + 40)}
      depends={[props.rows, props.held]}
      table={{
        columns: ["trial", "run", "from", "to", "state", "agent", "slot"],
        rows: () => bars.map((b) => [b.trial, b.run, new Date(b.from).toISOString(), b.to === null ? null : new Date(b.to).toISOString(), b.state, b.agent, b.slot]),
      }}
      spot={(id) =>
        heldText(
          id,
          runs.filter((h) => String(h.trial) === id),
          now,
          zone.value,
        )
      }
      data={{ trials: props.rows.length, lanes: lines.length, slots }}
      draw={(c, w, h, k) => {
        for (const b of bars) {
          c.fillStyle = colourOf(b.state, k);
          const on = hovered.peek() === String(b.trial);
          c.globalAlpha = on ? 1 : 0.8;
          c.fillRect(x(b.from, w), 8 + b.lane * tall, Math.max(2, x(end(b), w) - x(b.from, w)), tall - 2);
          c.globalAlpha = 1;
          if (on) {
            c.strokeStyle = k.text;
            c.strokeRect(x(b.from, w), 8 + b.lane * tall, Math.max(2, x(end(b), w) - x(b.from, w)), tall - 2);
          }
        }
        c.fillStyle = k.text;
        c.textAlign = "right";
        for (const n of names) c.fillText(shortened(n.text, left(w, 0) - 12, measure), left(w, 0) - 6, 8 + n.at + 3);
        c.fillText(moment(new Date(to).toISOString(), zone.peek()), w - 8, h - 8);
        c.textAlign = "left";
        c.fillText(moment(new Date(from).toISOString(), zone.peek()), left(w, 0), h - 8);
      }}
      at={(px, py, w) => {
        const b = bars.find((one) => px >= x(one.from, w) - 2 && px <= x(end(one), w) + 2 && py >= 8 + one.lane * tall && py < 8 + (one.lane + 1) * tall);
        return b ? String(b.trial) : null;
      }}
    />
  );
}

/** The trials that no other trial beats in every metric. */
export function Front(props: { points: { id: string; x: number; y: number }[]; x: string; y: string }) {
  const x = axisOf(props.x, fitting(props.points.map((p) => p.x)));
  const y = axisOf(props.y, fitting(props.points.map((p) => p.y)));
  const part = (of: Dimension, v: number) => (Number.isFinite(v) ? of.scale.at(v) : v > 0 ? 1 : 0);
  const framed = lastOf((w, h) => frame(w, h, x, y, false, 0, measure));
  const places = (w: number, h: number) => {
    const f = framed(w, h);
    return props.points.map((p) => ({ id: p.id, x: f.left + part(x, p.x) * f.width, y: f.top + (1 - part(y, p.y)) * f.height, of: p }));
  };
  return (
    <Drawing
      testid="pareto"
      name={`Pareto front of ${props.points.length} trials: ${nameOf(props.x)} and ${nameOf(props.y)}`}
      height={280}
      depends={[props.points]}
      table={{ columns: ["trial", props.x, props.y], rows: () => props.points.map((p) => [Number(p.id), p.x, p.y]) }}
      data={{ front: props.points.length }}
      draw={(c, w, h, k) => {
        drawAxes(c, framed(w, h), k, x, y, measure);
        for (const p of places(w, h)) {
          const on = hovered.peek() === p.id;
          c.fillStyle = k.accent;
          c.strokeStyle = k.text;
          const beside = Number.isFinite(p.of.y);
          if (!beside || !Number.isFinite(p.of.x)) {
            edgeMark(c, p.x, p.y, beside ? p.of.x : p.of.y, on ? 16 : 10, beside);
            continue;
          }
          c.beginPath();
          c.arc(p.x, p.y, on ? 8 : 5, 0, 2 * Math.PI);
          c.fill();
          if (on) c.stroke();
        }
      }}
      at={(px, py, w, h) => nearest(places(w, h), px, py)}
    />
  );
}
