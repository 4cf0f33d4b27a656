// Changes of a curve before it is drawn.

/** Smooths exponentially, with bias correction. Values that are not finite stay as they are and do not count. */
export function smoothed(y: readonly number[], weight: number): number[] {
  if (weight <= 0) return y.slice();
  let last = 0;
  let seen = 0;
  return y.map((v) => {
    if (!Number.isFinite(v)) return v;
    last = last * weight + (1 - weight) * v;
    ++seen;
    return last / (1 - Math.pow(weight, seen));
  });
}

const farOut = 3; // distance of the outer fences from the quartiles, in interquartile ranges

/** The range of the values without those that are far out; null where none is. Far out is what lies beyond Tukey's outer fences, three
 *  interquartile ranges from the quartiles (J. W. Tukey, Exploratory Data Analysis, 1977, chapter 2), so that up to a fifth of the
 *  values at each end may be outliers. On a logarithmic axis only values above 0 count, by their logarithms. Where the quartiles are
 *  equal, the size of that value, or a decade of a logarithmic axis, stands in for their distance. */
export function clipped(values: readonly number[], logarithmic = false): [number, number] | null {
  const sorted = values.filter((v) => Number.isFinite(v) && (!logarithmic || v > 0)).sort((a, b) => a - b);
  if (sorted.length === 0) return null;
  const placed = (i: number) => (logarithmic ? Math.log10(sorted[i]!) : sorted[i]!);
  const quantile = (p: number) => {
    const at = p * (sorted.length - 1);
    const [a, b] = [placed(Math.floor(at)), placed(Math.ceil(at))];
    return a === b ? a : a * (1 - (at % 1)) + b * (at % 1);
  };
  const [q1, q3] = [quantile(0.25), quantile(0.75)];
  const spread = q3 - q1 || (logarithmic ? 1 : Math.abs(q1) || 1);
  const inside = (i: number) => placed(i) >= q1 - farOut * spread && placed(i) <= q3 + farOut * spread;
  let first = 0;
  let last = sorted.length - 1;
  while (!inside(first)) ++first;
  while (!inside(last)) --last;
  if (first === 0 && last === sorted.length - 1) return null;
  const [low, high] = [sorted[first]!, sorted[last]!];
  if (logarithmic) {
    const room = Math.pow(low < high ? high / low : 10, 0.1);
    return [low / room || low, Number.isFinite(high * room) ? high * room : high];
  }
  const room = high * 0.1 - low * 0.1 || Math.abs(high) * 0.1 || 1;
  return [Math.max(-Number.MAX_VALUE, low - room), Math.min(Number.MAX_VALUE, high + room)];
}

/** The number of the values that have a place on the axis, but beyond this range. */
export const beyond = (values: readonly number[], [low, high]: readonly [number, number], logarithmic = false): number => values.filter((v) => Number.isFinite(v) && (!logarithmic || v > 0) && (v < low || v > high)).length;

export interface Line {
  x: number[];
  y: number[];
}

/** The mean, lowest and highest value of several curves at each x that one of them has. Between its points a curve counts with the
 *  interpolated value. NaN counts only where nothing else is; an infinity makes the mean infinite, and no band. */
export function band(lines: readonly Line[], most = 400): { x: number[]; mean: number[]; low: number[]; high: number[] } {
  const all = Array.from(new Set(lines.flatMap((l) => l.x))).sort((a, b) => a - b);
  const step = Math.max(1, Math.ceil(all.length / most));
  const x = all.filter((_, i) => i % step === 0 || i === all.length - 1);
  const mean: number[] = [];
  const low: number[] = [];
  const high: number[] = [];
  const at = lines.map(() => 0);
  for (const v of x) {
    let sum = 0;
    let n = 0;
    let least = Infinity;
    let most_ = -Infinity;
    lines.forEach((line, k) => {
      let i = at[k]!;
      while (i + 1 < line.x.length && line.x[i + 1]! <= v) ++i;
      at[k] = i;
      const x0 = line.x[i];
      if (x0 === undefined || v < x0) return;
      const x1 = line.x[i + 1];
      const y0 = line.y[i]!;
      if (x1 === undefined && v > x0) return;
      const between = x1 !== undefined && v !== x0;
      const y = between ? y0 + ((line.y[i + 1]! - y0) * (v - x0)) / (x1 - x0) : y0;
      if (Number.isNaN(y) || (between && !Number.isFinite(y))) return;
      sum += y;
      ++n;
      if (!Number.isFinite(y)) return;
      least = Math.min(least, y);
      most_ = Math.max(most_, y);
    });
    mean.push(n ? sum / n : NaN);
    low.push(least <= most_ ? least : NaN);
    high.push(least <= most_ ? most_ : NaN);
  }
  return { x, mean, low, high };
}

/** Points of a trial that the stream has delivered. `row` is the newest report among them. */
export interface Fresh {
  trial: number;
  row: number;
  x: number[];
  y: number[];
}

/** Adds later points to the curves. Points that a curve has already are left out. */
export function appended<C extends Fresh & { count: number }>(lines: readonly C[], p: Fresh): (C | (Fresh & { count: number }))[] {
  if (!lines.some((line) => line.trial === p.trial)) return [...lines, { ...p, count: p.x.length }];
  return lines.map((line) => {
    if (line.trial !== p.trial || p.row <= line.row) return line;
    const last = line.x[line.x.length - 1] ?? -Infinity;
    const from = p.x.findIndex((x) => x > last);
    return from < 0 ? line : { ...line, row: p.row, count: line.count + p.x.length - from, x: line.x.concat(p.x.slice(from)), y: line.y.concat(p.y.slice(from)) };
  });
}
