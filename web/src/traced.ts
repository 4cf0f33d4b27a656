// How curves lie on a canvas, each by its own points.

export interface Points {
  x: readonly number[];
  y: readonly number[];
}
export type Place = (v: number) => number;
type Range = [number, number];

/** From values to pixels: of `low` to `from`, of `high` to `to`. */
export function placing(low: number, high: number, log: boolean, from: number, to: number): Place {
  if (log) {
    const a = Math.log10(low);
    const k = (to - from) / (Math.log10(high) - a);
    return (v) => from + (Math.log10(v) - a) * k;
  }
  const k = (to - from) / (high - low);
  return (v) => from + (v - low) * k;
}

const fits = (v: number, log: boolean): boolean => Number.isFinite(v) && (!log || v > 0);

/** The corners of all that can be drawn; null where nothing can. */
export function corners(all: readonly Points[], logX: boolean, logY: boolean): { x: Range | null; y: Range | null } {
  let x0 = Infinity;
  let x1 = -Infinity;
  let y0 = Infinity;
  let y1 = -Infinity;
  for (const l of all)
    for (let i = 0; i < l.x.length; ++i) {
      const x = l.x[i]!;
      if (!fits(x, logX)) continue;
      if (x < x0) x0 = x;
      if (x > x1) x1 = x;
      const y = l.y[i]!;
      if (!fits(y, logY)) continue;
      if (y < y0) y0 = y;
      if (y > y1) y1 = y;
    }
  return { x: x0 <= x1 ? [x0, x1] : null, y: y0 <= y1 ? [y0, y1] : null };
}

/** The order of the points from left to right; null where they stand in it already. */
export function leftToRight(x: readonly number[]): number[] | null {
  for (let i = 1; i < x.length; ++i) if (x[i]! < x[i - 1]!) return Array.from(x, (_, k) => k).sort((a, b) => x[a]! - x[b]! || a - b);
  return null;
}

/** Draws one curve; what is not finite, or has no logarithm, is a gap. Points that stand alone are told to `lonely`. */
export function trace(to: { moveTo(x: number, y: number): void; lineTo(x: number, y: number): void }, l: Points, px: Place, py: Place, logX: boolean, logY: boolean, lonely?: (x: number, y: number) => void): void {
  let run = 0; // points since the last gap
  let x = 0;
  let y = 0;
  for (let i = 0; i < l.x.length; ++i) {
    if (!fits(l.x[i]!, logX)) continue;
    if (!fits(l.y[i]!, logY)) {
      if (run === 1) lonely?.(x, y);
      run = 0;
      continue;
    }
    x = px(l.x[i]!);
    y = py(l.y[i]!);
    if (run++ === 0) to.moveTo(x, y);
    else to.lineTo(x, y);
  }
  if (run === 1) lonely?.(x, y);
}

/** The curve that passes nearest above or below a place, and where its nearest point is; null where none is within `reach` pixels. */
export function nearest(all: readonly Points[], px: Place, py: Place, x: number, y: number, reach: number): { curve: number; x: number; y: number } | null {
  let best: { curve: number; x: number; y: number } | null = null;
  let least = reach;
  all.forEach((l, curve) => {
    // The first point that is not left of the place.
    let low = 0;
    let high = l.x.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (px(l.x[mid]!) < x) low = mid + 1;
      else high = mid;
    }
    const at = (i: number) => (i >= 0 && i < l.x.length ? { x: px(l.x[i]!), y: py(l.y[i]!) } : null);
    const fine = (p: { x: number; y: number } | null) => p !== null && Number.isFinite(p.x) && Number.isFinite(p.y);
    const [a, b] = [at(low - 1), at(low)];
    const near = !fine(a) ? b : !fine(b) ? a : x - a!.x < b!.x - x ? a : b;
    if (!fine(near)) return;
    // Between two points the line counts, beside them the point.
    const between = fine(a) && fine(b) && b!.x > a!.x;
    const far = between ? Math.abs(a!.y + ((b!.y - a!.y) * (x - a!.x)) / (b!.x - a!.x) - y) : Math.hypot(near!.x - x, near!.y - y);
    if (far < least) {
      least = far;
      best = { curve, x: near!.x, y: near!.y };
    }
  });
  return best;
}
