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

/** The range without the outermost twentieth of the values at each end. On a logarithmic axis only values above 0 count. */
export function clipped(values: readonly number[], logarithmic = false): [number, number] | null {
  const sorted = values.filter((v) => Number.isFinite(v) && (!logarithmic || v > 0)).sort((a, b) => a - b);
  if (sorted.length < 2) return null;
  const at = (p: number) => sorted[Math.min(sorted.length - 1, Math.max(0, Math.round(p * (sorted.length - 1))))]!;
  const low = at(0.05);
  const high = at(0.95);
  if (!(low < high)) return null;
  if (logarithmic) {
    const room = Math.pow(high / low, 0.1);
    return [low / room || low, Number.isFinite(high * room) ? high * room : high];
  }
  const room = high * 0.1 - low * 0.1;
  return [Math.max(-Number.MAX_VALUE, low - room), Math.min(Number.MAX_VALUE, high + room)];
}

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
