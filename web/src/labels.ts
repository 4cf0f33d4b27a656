// Texts beside the axes of charts: as wide as the room allows, and shortened so that no two look the same.

import { clean, moment, nameOf, rounded, short } from "./text";

/** The width of a text in pixels. */
export type Measure = (text: string) => number;

/** The largest count from `least` to `most` for which `fits` is true, or `least` where there is none. */
function largest(least: number, most: number, fits: (count: number) => boolean): number {
  while (least < most) {
    const middle = Math.ceil((least + most) / 2);
    if (fits(middle)) least = middle;
    else most = middle - 1;
  }
  return least;
}

/** A text that is wider than `room` without its middle. */
export function shortened(text: string, room: number, measure: Measure): string {
  if (measure(text) <= room) return text;
  const chars = Array.from(text);
  const of = (count: number) => chars.slice(0, Math.ceil(count / 2)).join("") + "…" + chars.slice(chars.length - Math.floor(count / 2)).join("");
  return of(largest(0, Math.max(0, chars.length - 1), (count) => measure(of(count)) <= room));
}

/** A text that is shown from letter `from` on: with as much of its beginning as fits, or else without its end. */
function shownFrom(chars: readonly string[], from: number, room: number, measure: Measure): string {
  const tail = chars.slice(from).join("");
  if (measure("…" + tail) > room) {
    const of = (count: number) => "…" + chars.slice(from, from + count).join("") + "…";
    return of(largest(1, Math.max(1, chars.length - from - 1), (count) => measure(of(count)) <= room));
  }
  const of = (count: number) => chars.slice(0, count).join("") + "…" + tail;
  return of(largest(0, Math.max(0, from - 1), (count) => measure(of(count)) <= room));
}

/** The texts, each at most `room` wide: without the middle, or, where texts would look the same, without the part that they share. */
export function labels(texts: readonly string[], room: number, measure: Measure): string[] {
  const out = texts.map((t) => shortened(t, room, measure));
  const part = (among: readonly number[], before: number): void => {
    const groups = new Map<string, number[]>();
    for (const i of among) groups.set(out[i]!, [...(groups.get(out[i]!) ?? []), i]);
    for (const group of groups.values()) {
      const chars = group.map((i) => Array.from(texts[i]!));
      if (new Set(group.map((i) => texts[i]!)).size < 2) continue;
      let same = 0;
      while (chars.every((c) => c.length > same && c[same] === chars[0]![same])) ++same;
      if (same <= before) continue; // the part that differs does not fit
      group.forEach((i, n) => (out[i] = shownFrom(chars[n]!, same, room, measure)));
      part(group, same);
    }
  };
  part(Array.from(texts.keys()), -1);
  return out;
}

/** The ticks of an axis as texts, with as many digits as the step between them needs, and at least `least`. The text of null is empty. */
export function tickTexts(ticks: readonly (number | null)[], least = 3): string[] {
  const there = ticks.filter((t): t is number => t !== null && Number.isFinite(t)).sort((a, b) => a - b);
  let step = Infinity;
  there.forEach((t, i) => {
    if (i > 0 && t > there[i - 1]!) step = Math.min(step, t - there[i - 1]!);
  });
  let digits = least;
  while (digits < 17 && step < Infinity && there.some((t) => Math.abs(Number(rounded(t, digits)) - t) > step / 100)) ++digits;
  return ticks.map((t) => (t === null ? "" : rounded(t, digits)));
}

const day = 86_400; // seconds

/** The ticks of an axis of time, in seconds since 1970, as texts. The date stands below the first tick and below each that has another. */
export function timeTexts(ticks: readonly number[], zone: "local" | "utc"): string[] {
  let step = Infinity;
  ticks.forEach((t, i) => i > 0 && (step = Math.min(step, t - ticks[i - 1]!)));
  if (ticks.length === 1) step = 1;
  const digits = step < 0.0999 ? 3 : step < 0.999 ? 1 : 0; // of parts of a second
  let before = "";
  return ticks.map((t) => {
    const text = moment(new Date(t * 1000).toISOString(), zone);
    const date = text.slice(0, 10);
    const parts = digits > 0 ? (((t % 1) + 1) % 1).toFixed(digits).slice(1) : "";
    const clock = text.slice(11, step < 60 ? 19 : 16) + parts;
    const same = date === before;
    before = date;
    return step >= day ? date : same ? clock : `${clock}\n${date}`;
  });
}

/** The row of each text, so that none stands over another one: the first row in which it has room. They are in order of `from`. */
export function inRows(texts: readonly { from: number; to: number }[]): number[] {
  const ends: number[] = [];
  return texts.map((t) => {
    const free = ends.findIndex((end) => end <= t.from);
    const row = free < 0 ? ends.length : free;
    ends[row] = t.to;
    return row;
  });
}

/** The title of an X axis of curves. "" for wall time, whose texts need none. */
export function axisTitle(x: string): string {
  return x === "time" ? "" : x === "relative" ? "time it ran, in s" : nameOf(x.replace(/^metric:/, ""));
}

/** What the pointer is on, in words. */
export function spotText(label: string, xTitle: string, x: number, y: number, zone: "local" | "utc"): string {
  const at = xTitle === "time" ? moment(new Date(x * 1000).toISOString(), zone) : xTitle === "relative" ? `after ${short(x, 6)} s` : `${axisTitle(xTitle)} ${short(x, 6)}`;
  return `${subject(label)}: ${at}, ${short(y, 6)}`;
}

/** The name of a curve at the beginning of a line. */
export const subject = (label: string): string => clean(label.replace(/^trial (?=\d+$)/, "Trial "));
