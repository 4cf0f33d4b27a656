// The axes of our own charts, and the key of their colours: how much room these take, and how they are drawn.

import { placeOf, type Dimension } from "./brush";
import type { Ink } from "./figure";
import { labels, shortened, tickTexts, type Measure } from "./labels";
import { clean } from "./text";

interface Mark {
  at: number; // place on the axis, from 0 to 1
  text: string;
}

/** The place of a chart in its canvas, in pixels of the page, and the marks beside it. */
export interface Frame {
  left: number;
  top: number;
  width: number; // of the chart without its margins
  height: number;
  below: number;
  x: Mark[];
  y: Mark[];
  upright: boolean; // whether the texts of the horizontal axis are turned upright
}

const line = 14; // pixels of a line of text
const [rightPad, topPad, leastLeft, leastBelow] = [16, 16, 64, 36];
const [title, gap] = [22, 6]; // pixels of the vertical title, and of the gap between texts and axis
const mostUpright = 110; // limit in pixels of an upright text
const leastLying = 100; // pixels from which on a horizontal text is easier to read

/** The marks of an axis at their places. With `cells`, a choice is in the middle of its cell. */
export function marks(d: Dimension, cells = false): Mark[] {
  if (d.choices) return d.choices.map((t, i) => ({ at: cells ? (i + 0.5) / d.choices!.length : placeOf(i, d.choices!.length), text: clean(t) }));
  const texts = tickTexts(d.scale.ticks);
  return d.scale.ticks.map((t, i) => ({ at: d.scale.at(t), text: texts[i]! })).filter((m) => m.at >= -0.001 && m.at <= 1.001);
}

/** The marks with texts that are at most `room` pixels wide. */
export function fitted(all: readonly Mark[], room: number, measure: Measure): Mark[] {
  const texts = labels(
    all.map((m) => m.text),
    room,
    measure,
  );
  return all.map((m, i) => ({ at: m.at, text: texts[i]! }));
}

/** Every n-th of the marks, so that they are at least `each` pixels apart on an axis of `long` pixels. */
function thinned(all: readonly Mark[], each: number, long: number): Mark[] {
  const next = Math.ceil(each / Math.max(1e-9, step(all) * long) - 1e-9);
  return all.filter((_, i) => i % Math.max(1, next) === 0);
}

/** The smallest distance between two marks, as a part of the axis. */
function step(all: readonly Mark[]): number {
  let least = 1;
  for (let i = 1; i < all.length; ++i) least = Math.min(least, Math.abs(all[i]!.at - all[i - 1]!.at));
  return least;
}

/** The width that the texts of a horizontal axis of choices may have. The first and the last one move inwards where they would leave
 *  the canvas, and so towards their neighbours. */
function roomUnder(all: readonly Mark[], left: number, width: number): number {
  const room = step(all) * width - 8;
  if (all.length < 2) return Math.min(room, left + width + rightPad - 4);
  const before = left - 2 + all[0]!.at * width;
  const after = rightPad - 2 + (1 - all[all.length - 1]!.at) * width;
  return Math.min(room, (room + before) / 1.5, (room + after) / 1.5, all.length === 2 ? (room + before + after) / 2 : room);
}

/** The frame in a canvas of `w` times `h` pixels, of which the key takes the upper `key` pixels. */
export function frame(w: number, h: number, x: Dimension, y: Dimension, cells: boolean, key: number, measure: Measure): Frame {
  const widest = (all: readonly Mark[]) => Math.max(0, ...all.map((m) => measure(m.text)));
  const top = topPad + key;
  const beside = fitted(marks(y, cells), Math.max(leastLeft, Math.min(0.3 * w, 260)) - title - gap, measure);
  const left = Math.max(leastLeft, title + widest(beside) + gap);
  const width = Math.max(1, w - left - rightPad);
  let under = marks(x, cells);
  let upright = false;
  if (!x.choices) under = thinned(under, widest(under) + 8, width);
  else {
    const room = roomUnder(under, left, width);
    upright = widest(under) > room && room < leastLying;
    under = upright ? thinned(fitted(under, mostUpright, measure), line, width) : fitted(under, room, measure);
  }
  const below = upright ? Math.max(leastBelow, gap + widest(under) + line + 8) : leastBelow;
  const height = Math.max(1, h - top - below);
  return { left, top, width, height, below, x: under, y: thinned(beside, line, height), upright };
}

/** Draws the axes. `grid` says whether each mark has a line across the chart. */
export function drawAxes(c: CanvasRenderingContext2D, f: Frame, k: Ink, x: Dimension, y: Dimension, measure: Measure, grid = true): void {
  const bottom = f.top + f.height;
  const across = (x0: number, y0: number, x1: number, y1: number) => {
    if (!grid) return;
    c.beginPath();
    c.moveTo(x0, y0);
    c.lineTo(x1, y1);
    c.stroke();
  };
  c.strokeStyle = k.line;
  c.fillStyle = k.text;
  for (const m of f.x) {
    const at = f.left + m.at * f.width;
    across(at, f.top, at, bottom);
    if (f.upright) {
      c.save();
      c.translate(at + 4, bottom + gap);
      c.rotate(-Math.PI / 2);
      c.textAlign = "right";
      c.fillText(m.text, 0, 0);
      c.restore();
    } else {
      const half = measure(m.text) / 2;
      c.textAlign = "center";
      c.fillText(m.text, Math.max(half + 2, Math.min(at, f.left + f.width + rightPad - half - 2)), bottom + 16);
    }
  }
  c.textAlign = "right";
  for (const m of f.y) {
    const at = f.top + (1 - m.at) * f.height;
    across(f.left, at, f.left + f.width, at);
    c.fillText(m.text, f.left - gap, at + 4);
  }
  c.textAlign = "center";
  c.fillText(shortened(clean(x.title), f.width, measure), f.left + f.width / 2, bottom + f.below - 5);
  c.save();
  c.translate(11, f.top + f.height / 2);
  c.rotate(-Math.PI / 2);
  c.fillText(shortened(clean(y.title), f.height, measure), 0, 0);
  c.restore();
}

// ---- colours

/** The meaning of a chart's colours: each choice with its colour, or a small scale from the lowest to the highest value. */
export interface Key {
  tall: number; // pixels above the chart
  draw: (c: CanvasRenderingContext2D, ink: Ink, colour: (p: number) => string) => void;
}

const mostRows = 3; // rows of choices; where more are needed, a scale from the first to the last choice is shown
const [dot, scaleWide] = [10, 120];

/** The key of a chart. `none` says whether some of the drawn trials have no value, and so the page's own colour. */
export function keyOf(d: Dimension, w: number, none: boolean, measure: Measure): Key {
  const parts: { x: number; y: number; text: string; p: number | null }[] = [];
  const head = `${shortened(clean(d.title), Math.min(200, w / 3), measure)}:`;
  let x = 8 + measure(head) + 10;
  let row = 0;
  const put = (text: string, p: number | null) => {
    const wide = dot + 4 + measure(text);
    if (x + wide > w - 8 && x > 8) {
      x = 8;
      ++row;
    }
    parts.push({ x, y: 2 + row * (line + 4), text, p });
    x += wide + 14;
  };
  if (d.choices) {
    const texts = labels(d.choices.map(clean), Math.min(180, w / 2), measure);
    texts.forEach((t, i) => put(t, placeOf(i, texts.length)));
    if (none) put("no value", null);
    if (row < mostRows)
      return {
        tall: (row + 1) * (line + 4),
        draw: (c, k, colour) => {
          c.textAlign = "left";
          c.fillStyle = k.text;
          c.fillText(head, 8, 13);
          for (const part of parts) {
            c.fillStyle = part.p === null ? k.accent : colour(part.p);
            c.fillRect(part.x, part.y + 2, dot, dot);
            c.fillStyle = k.text;
            c.fillText(part.text, part.x + dot + 4, part.y + 11);
          }
        },
      };
  }
  const range = [0, 1].map((p) => Number(d.scale.back(p).toPrecision(12)));
  const ends = d.choices ? labels([d.choices[0]!, d.choices[d.choices.length - 1]!].map(clean), Math.min(180, w / 4), measure) : tickTexts(range, range.every(Number.isInteger) ? 6 : 3);
  const half = d.scale.at(d.scale.back(0) / 2 + d.scale.back(1) / 2);
  const rest = [d.choices ? `(${d.choices.length} choices)` : Math.abs(half - 0.5) > 0.01 ? "(logarithmic)" : "", none ? "without value:" : ""].filter(Boolean).join(" ");
  return {
    tall: line + 4,
    draw: (c, k, colour) => {
      const from = 8 + measure(head) + 10 + measure(ends[0]!) + 6;
      c.textAlign = "left";
      c.fillStyle = k.text;
      c.fillText(`${head}`, 8, 13);
      c.fillText(ends[0]!, from - 6 - measure(ends[0]!), 13);
      for (let i = 0; i < scaleWide; i += 2) {
        c.fillStyle = colour(i / (scaleWide - 2));
        c.fillRect(from + i, 4, 2, dot);
      }
      c.fillStyle = k.text;
      c.fillText(ends[1]!, from + scaleWide + 6, 13);
      const after = from + scaleWide + 6 + measure(ends[1]!) + 8;
      c.fillText(rest, after, 13);
      if (!none) return;
      c.fillStyle = k.accent;
      c.fillRect(after + measure(rest) + 4, 4, dot, dot);
    },
  };
}
