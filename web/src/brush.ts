// The brushes of an address say which trials are kept: "lr:0.001..0.01;opt:adam..adam".

import { joined, pieces } from "./address";
import { asChoice, asNumber, comparator } from "./filter";
import { bounds, fitting, linear, type Scale } from "./scales";
import { clean, number, short } from "./text";
import type { TrialProgress } from "./api_types";

export interface Row extends TrialProgress {
  hp: Record<string, unknown>;
}

/** One axis of trials: a hyperparameter or a metric. */
export interface Dimension {
  key: string; // as in "hp.lr" or "best"
  title: string;
  scale: Scale;
  place: (t: Row) => number | null; // place on the axis, from 0 to 1
  beyond: (t: Row) => number | null; // an infinity or NaN, which has no place
  label: (t: Row) => string;
  choices: string[] | null; // null for a dimension of numbers
}

const own = ["best", "latest", "steps", "id"];

export function value(t: Row, key: string): number | string | null {
  const x = key === "best" ? number(t.best?.metric) : key === "latest" ? number(t.latest?.metric) : key === "steps" ? t.totalBatches : key === "id" ? t.id : key.startsWith("m.") ? number(t.metrics?.[key.slice(2)]?.last) : asChoice(t.hp[key.replace(/^hp\./, "")]);
  return x === undefined || x === null ? null : typeof x === "boolean" ? String(x) : x;
}

const asSorted = comparator((x: string) => x, false);

/** The order of choices on an axis, which is that of a sorted column. Texts that are one number, such as "1" and "1.0", are equal. */
export function inOrder(a: string, b: string): number {
  const order = asSorted(a, b);
  return order !== 0 || (asNumber(a) !== null && asNumber(b) !== null) ? order : a === b ? 0 : a < b ? -1 : 1;
}

/** The place of choice `i` on an axis, from 0 to 1. */
export const placeOf = (i: number, choices: number): number => (choices > 1 ? i / (choices - 1) : 0.5);

/** The dimension of a key. `may` says whether the scale may be logarithmic, which it is where the values lie far apart. */
export function dimension(rows: readonly Row[], key: string, title = key.replace(/^hp\./, ""), may = true): Dimension {
  const all = rows.map((t) => value(t, key)).filter((x) => x !== null);
  if (all.length > 0 && all.every((x) => typeof x === "number")) {
    const scale = fitting(all as number[], may);
    return {
      key,
      title,
      scale,
      choices: null,
      place: (t) => {
        const x = value(t, key);
        return typeof x === "number" && Number.isFinite(x) ? Math.min(1, Math.max(0, scale.at(x))) : null;
      },
      beyond: (t) => {
        const x = value(t, key);
        return typeof x === "number" && !Number.isFinite(x) ? x : null;
      },
      label: (t) => short(value(t, key) as number | null),
    };
  }
  const choices = Array.from(new Set(all.map(String))).sort(inOrder);
  const at = new Map(choices.map((c, i) => [c, placeOf(i, choices.length)]));
  return {
    key,
    title,
    scale: linear(0, Math.max(1, choices.length - 1)),
    choices,
    place: (t) => {
      const x = value(t, key);
      return x === null ? null : (at.get(String(x)) ?? null);
    },
    beyond: () => null,
    label: (t) => clean(String(value(t, key) ?? "")),
  };
}

/** The place of a number, where those that have none stand at the ends: infinities at theirs, NaN at the lower one. */
export function clamped(d: Dimension, t: Row): number | null {
  const x = d.beyond(t);
  return x === null ? d.place(t) : x > 0 ? 1 : 0;
}

/** One side of a heat map: a cell for each choice, or for each of a few whole numbers, or otherwise `most` equal ranges of the axis. */
export function celled(d: Dimension, rows: readonly Row[], most: number): Dimension & { cells: number; cell: (t: Row) => number | null } {
  const all = Array.from(new Set(rows.map((t) => value(t, d.key)).filter((x): x is number => typeof x === "number" && Number.isFinite(x)))).sort((a, b) => a - b);
  if (!d.choices && all.length > 0 && all.length <= most && all.every(Number.isInteger)) {
    const at = new Map(all.map((x, i) => [x as unknown, i]));
    return { ...d, choices: all.map((x) => short(x)), cells: all.length, cell: (t) => at.get(value(t, d.key)) ?? null };
  }
  const cells = d.choices ? Math.max(1, d.choices.length) : most;
  const cell = (t: Row) => {
    const p = d.place(t);
    return p === null ? null : d.choices ? Math.round(p * (cells - 1)) : Math.min(cells - 1, Math.floor(p * cells));
  };
  return { ...d, cells, cell };
}

export interface Brush {
  key: string; // as in the address, without "hp." where that can be left out
  from: number | string;
  to: number | string;
}

/** The brush between two ends as they are typed. Beside a number, an end that is left out is open. */
export function between(key: string, a: string, b: string): Brush {
  const open = (text: string, other: string, end: number) => (text === "" && asNumber(other) !== null ? end : asNumber(text));
  const [x, y] = [open(a, b, -Infinity), open(b, a, Infinity)];
  if (x !== null && y !== null && !Number.isNaN(x + y)) return { key, from: Math.min(x, y), to: Math.max(x, y) };
  return inOrder(a, b) <= 0 ? { key, from: a, to: b } : { key, from: b, to: a };
}

/** A colon, point or backslash in a name gets a backslash before it. */
const escaped = (text: string): string => text.replace(/[\\:.]/g, "\\$&");
const unescaped = (text: string): string => text.replace(/\\([\\:.])/g, "$1");

function readBrush(part: string): Brush | null {
  const m = /^((?:[^\\:]|\\.)*):(.*)$/s.exec(part);
  if (!m) return null;
  // Numbers contain points, so that two points separate the ends.
  const ends = /^((?:[^\\]|\\.)*?)\.\.((?!\.).*)$/s.exec(m[2]!);
  return ends ? between(unescaped(m[1]!), unescaped(ends[1]!), unescaped(ends[2]!)) : null;
}

export const readBrushes = (text: string): Brush[] => pieces(text, ";").flatMap((part) => readBrush(part) ?? []);

/** The parts of an address that should be brushes and are none. */
export const noBrushes = (text: string): string[] => pieces(text, ";").filter((part) => part.trim() !== "" && !readBrush(part));

export function writeBrushes(all: readonly Brush[]): string {
  const end = (x: number | string) => (typeof x === "number" ? String(x) : escaped(x));
  const name = (key: string) => key.replace(/[\\:]/g, "\\$&");
  return joined(
    all.map((b) => `${name(b.key)}:${end(b.from)}..${end(b.to)}`),
    ";",
  );
}

/** The key of a dimension as it is written in the address. */
export const addressed = (key: string): string => {
  const bare = key.replace(/^hp\./, "");
  return bare === key || own.includes(bare) || /^(?:m|hp)\./.test(bare) ? key : bare;
};

/** The key of the dimension that a key of the address means. */
export const full = (key: string): string => (own.includes(key) || /^(?:m|hp)\./.test(key) ? key : `hp.${key}`);

/** The range between two places of an axis, or null where nothing lies between them. */
export function brushed(d: Dimension, a: number, b: number): Brush | null {
  const [low, high] = [Math.max(0, Math.min(a, b)), Math.min(1, Math.max(a, b))];
  if (low > 1 || high < 0) return null;
  const key = addressed(d.key);
  if (d.choices) {
    const within = d.choices.filter((_, i) => placeOf(i, d.choices!.length) >= low && placeOf(i, d.choices!.length) <= high);
    return within.length > 0 ? { key, from: within[0]!, to: within[within.length - 1]! } : null;
  }
  const [from, to] = bounds(d.scale.back(low), d.scale.back(high));
  return { key, from, to };
}

/** At most one brush for each axis: new brushes replace those of the same axes. */
export function withBrushes(all: readonly Brush[], axes: readonly string[], fresh: readonly (Brush | null)[]): Brush[] {
  return [...all.filter((b) => !axes.includes(full(b.key))), ...fresh.filter((b): b is Brush => b !== null)];
}

/** Whether a brush keeps the trials of a value. */
export function keeps(b: Brush, x: number | string | null): boolean {
  if (x === null) return false;
  if (typeof x === "number" && typeof b.from === "number" && typeof b.to === "number") return x >= b.from && x <= b.to;
  return inOrder(String(x), String(b.from)) >= 0 && inOrder(String(x), String(b.to)) <= 0;
}

export const passes = (t: Row, brushes: readonly Brush[]): boolean => brushes.every((b) => keeps(b, value(t, full(b.key))));
