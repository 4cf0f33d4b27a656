// From numbers to places, for our own charts.

export interface Scale {
  at(x: number): number; // the place of a number, from 0 to 1
  back(p: number): number;
  ticks: number[];
}

/** A multiple of a step without the error of its last digit. */
const inDigits = (x: number): number => (Number.isSafeInteger(x) ? x : Number(x.toPrecision(15)));

export function niceTicks(low: number, high: number, count: number): number[] {
  if (!(high > low)) return [low];
  const raw = high / Math.max(1, count) - low / Math.max(1, count);
  if (!(raw > Number.MIN_VALUE)) return [low, high];
  const size = Math.pow(10, Math.floor(Math.log10(raw)));
  const step = [1, 2, 5, 10].map((m) => m * size).find((s) => s >= raw) ?? raw;
  const out: number[] = [];
  // Where numbers are much larger than their differences, several ticks may be the same number.
  const first = Math.ceil(low / step);
  for (let i = 0; i <= 2 * count + 2 && (first + i) * step <= high + step * 1e-9; ++i) {
    const x = inDigits((first + i) * step);
    if (Number.isFinite(x) && out[out.length - 1] !== x) out.push(x);
  }
  return out;
}

export function linear(low: number, high: number): Scale {
  if (!(high > low)) {
    const room = Math.max(0.5, Math.abs(low) * 1e-3);
    high = Math.min(Number.MAX_VALUE, low + room);
    low = Math.max(-Number.MAX_VALUE, low - room);
  }
  const half = high / 2 - low / 2; // halves, so that nothing overflows
  if (half === 0) return { at: (x) => (x > low ? 1 : 0), back: (p) => (p < 0.5 ? low : high), ticks: [low, high] };
  return { at: (x) => (x / 2 - low / 2) / half, back: (p) => low * (1 - p) + p * high, ticks: niceTicks(low, high, 5) };
}

export function logarithmic(low: number, high: number): Scale {
  if (!(low > 0) || !(high > low)) return linear(low, high);
  const a = Math.log10(low);
  const b = Math.log10(high);
  const ticks: number[] = [];
  for (let e = Math.ceil(a - 1e-9); e <= b + 1e-9; ++e) ticks.push(Number(`1e${e}`)); // `pow` may be slightly off
  return {
    at: (x) => (Math.log10(x) - a) / (b - a),
    back: (p) => Math.pow(10, a + p * (b - a)),
    ticks: ticks.length >= 2 ? ticks : [low, high],
  };
}

/** The ends of a logarithmic axis of curves, with a part of its length as room on both sides. Without values, or where they have no
 *  logarithm, there are none. */
export function logarithmicEnds(low: number | null, high: number | null, room = 0): [number, number] | [null, null] {
  if (low === null || high === null || !(low > 0) || !(high >= low) || high === Infinity) return [null, null];
  const k = high > low ? Math.pow(10, room * (Math.log10(high) - Math.log10(low))) : 2;
  return [Math.max(Number.MIN_VALUE, low / k), Math.min(Number.MAX_VALUE, high * k)];
}

/** The smallest of 1, 2, 2.5 and 5 times a power of ten that is no smaller than `least`. */
export function niceStep(least: number): number {
  if (!(least > 0) || !Number.isFinite(least)) return 1;
  const e = Math.floor(Math.log10(least));
  const found = [1, 2, 2.5, 5].map((m) => Number(`${m}e${e}`)).find((x) => x >= least * (1 - 1e-12));
  return found ?? Number(`1e${e + 1}`);
}

/** The multiples of a step from `low` to `high`, at most 100. */
export function multiples(low: number, high: number, step: number): number[] {
  const out: number[] = [];
  const first = Math.ceil(low / step - 1e-9);
  for (let i = 0; i < 100 && (first + i) * step <= high + step * 1e-9; ++i) {
    const x = inDigits((first + i) * step) + 0; // without the sign of a zero
    if (Number.isFinite(x) && out[out.length - 1] !== x) out.push(x);
  }
  return out;
}

/** Below this size numbers are drawn as 0, because their differences have too few digits. */
export const leastSize = 1e-290;
/** Whether these ends are close for their size, and differ by more than the last digits of their numbers. */
export const areClose = (low: number, high: number): boolean => {
  const size = Math.max(Math.abs(low), Math.abs(high));
  return high - low < 1e-9 * size && high - low > 2 * Number.EPSILON * size;
};
/** Whether the library would take the difference of these ends for none. */
export const areTiny = (low: number | null, high: number | null): boolean => low !== null && high !== null && high > low && high - low < 1e-20 && Math.max(Math.abs(low), Math.abs(high)) < 1e-12;

/** The ticks of a logarithmic axis: powers of ten, and between few of these more. */
export function logarithmicTicks(low: number, high: number): number[] {
  const a = Math.log10(low);
  const b = Math.log10(high);
  if (!(b - a >= 1)) return niceTicks(low, high, 5);
  const factors = b - a <= 2.5 ? [1, 2, 5] : [1];
  const each = Math.ceil((b - a) / 8); // every how many powers have a tick
  const out: number[] = [];
  for (let e = Math.floor(a / each) * each; e <= b; e += each)
    for (const f of factors) {
      const x = Number(`${f}e${e}`);
      if (x >= low * (1 - 1e-9) && x <= high * (1 + 1e-9)) out.push(x);
    }
  return out;
}

/** A scale for the values: linear, or logarithmic where `may` allows it and the values are positive and lie far apart. The ends at which
 *  infinities and NaN stand have room between them and the finite values. */
export function fitting(values: readonly number[], may = true): Scale {
  const finite = values.filter(Number.isFinite);
  if (finite.length === 0) return linear(0, 1);
  let low = Infinity;
  let high = -Infinity;
  for (const v of finite) {
    low = Math.min(low, v);
    high = Math.max(high, v);
  }
  const [below, above] = [values.some((v) => v === -Infinity || Number.isNaN(v)), values.includes(Infinity)].map((some) => (some ? 0.08 : 0)) as [number, number];
  const far = may && low > 0 && high / low >= 100;
  const size = far ? high / low : high - low;
  const wide = far ? [low / Math.pow(size, below), high * Math.pow(size, above)] : [low - size * below, high + size * above];
  return (far ? logarithmic : linear)(...((wide.every(Number.isFinite) ? wide : [low, high]) as [number, number]));
}

/** Two ends in rising order, with as many digits as the range between them needs. They are rounded outwards, so that the whole range
 *  stays inside. */
export function bounds(a: number, b: number): [number, number] {
  const low = Math.min(a, b);
  const high = Math.max(a, b);
  if (!(high > low)) return [low, high];
  const size = Math.pow(10, Math.floor(Math.log10(high / 2 - low / 2)) - 3);
  const rounded = (x: number, away: (y: number) => number) => {
    const to = Number((away(Number((x / size).toPrecision(15))) * size).toPrecision(15));
    return Number.isFinite(to) ? to : x;
  };
  const ends: [number, number] = [rounded(low, Math.floor), rounded(high, Math.ceil)];
  // A number just above 0 must not become 0, which has no place on a logarithmic axis.
  if (low > 0 && ends[0] <= 0) ends[0] = Number(low.toPrecision(4)) <= low ? Number(low.toPrecision(4)) : low;
  return [Math.min(low, ends[0]), Math.max(high, ends[1])];
}

/** The colours of Okabe and Ito, which people with a colour vision deficiency can tell apart. Dashes tell further curves apart. */
export const colours = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8f7f00", "#7f7f7f"];
const dashes: number[][] = [[], [8, 4], [2, 3], [10, 3, 2, 3]];

export function looks(i: number): { colour: string; dash: number[] } {
  return { colour: colours[i % colours.length]!, dash: dashes[Math.floor(i / colours.length) % dashes.length]! };
}

/** The number of each trial's look in a chart: that of its id, or the next one that no trial with a lower id has, while there are any. */
export function looksOf(trials: number[]): Map<number, number> {
  const all = colours.length * dashes.length;
  const out = new Map<number, number>();
  const taken = new Set<number>();
  for (const trial of [...new Set(trials)].sort((a, b) => a - b)) {
    let i = trial % all;
    for (let left = all; left > 0 && taken.size < all && taken.has(i); --left) i = (i + 1) % all;
    taken.add(i);
    out.set(trial, i);
  }
  return out;
}

/** A colour for 0 to 1, from dark blue to yellow, with evenly rising lightness (after viridis). */
export function heat(p: number): string {
  const stops = [
    [68, 1, 84],
    [59, 82, 139],
    [33, 145, 140],
    [94, 201, 98],
    [253, 231, 37],
  ];
  const q = Math.min(1, Math.max(0, Number.isFinite(p) ? p : 0)) * (stops.length - 1);
  const i = Math.min(stops.length - 2, Math.floor(q));
  const f = q - i;
  const c = stops[i]!.map((v, k) => Math.round(v + (stops[i + 1]![k]! - v) * f));
  return `rgb(${c[0]},${c[1]},${c[2]})`;
}

/** The colour for a thin line or point, from the part of the scale that is visible on the background of the page. */
export const heatLine = (p: number, dark: boolean): string => {
  const q = Math.min(1, Math.max(0, Number.isFinite(p) ? p : 0));
  return heat(dark ? 0.38 + 0.62 * q : 0.55 * q);
};
