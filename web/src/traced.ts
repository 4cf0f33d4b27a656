// The places of curves on a canvas, each by its own points.

export interface Points {
  x: readonly number[];
  y: readonly number[];
}
type Range = [number, number];

// Most of this runs once over each point of a new page, before the browser has compiled it. So it has plain loops without calls.

/** From values to pixels: `k` times the distance of the value, or of its logarithm, from `low`, and then `from`. A sum with `k * value`
 *  would lose the digits in which large values differ. */
export interface Place {
  log: boolean;
  k: number;
  low: number;
  from: number;
}

/** The mapping of `low` to `from` and of `high` to `to`. */
export function placing(low: number, high: number, log: boolean, from: number, to: number): Place {
  const a = log ? Math.log10(low) : low;
  const k = (to - from) / ((log ? Math.log10(high) : high) - a);
  return { log, k, low: a, from };
}
export const at = (p: Place, v: number): number => p.from + p.k * ((p.log ? Math.log10(v) : v) - p.low);

/** From this size on numbers count as infinite, because the difference of two of them may be. */
export const most = 1e307;

/** The ranges of everything that can be drawn. null where nothing can. */
export function corners(all: readonly Points[], logX: boolean, logY: boolean): { x: Range | null; y: Range | null } {
  let x0 = Infinity;
  let x1 = -Infinity;
  let y0 = Infinity;
  let y1 = -Infinity;
  const lowX = logX ? 0 : -most;
  const lowY = logY ? 0 : -most;
  for (const l of all)
    for (let i = 0; i < l.x.length; ++i) {
      const x = l.x[i]!;
      if (!(x > lowX && x < most)) continue;
      if (x < x0) x0 = x;
      if (x > x1) x1 = x;
      const y = l.y[i]!;
      if (!(y > lowY && y < most)) continue;
      if (y < y0) y0 = y;
      if (y > y1) y1 = y;
    }
  return { x: x0 <= x1 ? [x0, x1] : null, y: y0 <= y1 ? [y0, y1] : null };
}

/** The number of points, infinite ones left out, that have no place on logarithmic axes. */
export function unplaced(all: readonly Points[], logX: boolean, logY: boolean): number {
  let n = 0;
  if (logX || logY)
    for (const l of all)
      for (let i = 0; i < l.x.length; ++i) if (Math.abs(l.y[i]!) < most && ((logX && l.x[i]! <= 0) || (logY && l.y[i]! <= 0))) ++n;
  return n;
}

/** The order of the points from left to right. null where they have that order already. */
export function leftToRight(x: readonly number[]): number[] | null {
  for (let i = 1; i < x.length; ++i) if (x[i]! < x[i - 1]!) return Array.from(x, (_, k) => k).sort((a, b) => x[a]! - x[b]! || a - b);
  return null;
}

/** Draws one curve. Values that count as infinite, are NaN or have no logarithm are gaps. `lonely` gets the points that have no neighbour. */
export function trace(to: { moveTo(x: number, y: number): void; lineTo(x: number, y: number): void }, l: Points, px: Place, py: Place, lonely?: (x: number, y: number) => void): void {
  const lowX = px.log ? 0 : -most;
  const lowY = py.log ? 0 : -most;
  let run = 0; // number of points since the last gap
  let x = 0;
  let y = 0;
  for (let i = 0; i < l.x.length; ++i) {
    const vx = l.x[i]!;
    const vy = l.y[i]!;
    if (!(vx > lowX && vx < most)) continue;
    if (!(vy > lowY && vy < most)) {
      if (run === 1) lonely?.(x, y);
      run = 0;
      continue;
    }
    x = px.from + px.k * ((px.log ? Math.log10(vx) : vx) - px.low);
    y = py.from + py.k * ((py.log ? Math.log10(vy) : vy) - py.low);
    if (run++ === 0) to.moveTo(x, y);
    else to.lineTo(x, y);
  }
  if (run === 1) lonely?.(x, y);
}

interface Pen {
  moveTo(x: number, y: number): void;
  lineTo(x: number, y: number): void;
}

/** A pen that draws only what lies within `far` pixels of the origin: browsers draw a line solid that has more than a million dashes, most of
 *  them out of sight. */
export function within(to: Pen, far: number): Pen {
  let [x0, y0] = [0, 0];
  let there = false; // whether the pen below stands at that place
  const inside = (x: number, y: number) => Math.abs(x) <= far && Math.abs(y) <= far;
  return {
    moveTo(x, y) {
      [x0, y0, there] = [x, y, inside(x, y)];
      if (there) to.moveTo(x, y);
    },
    lineTo(x, y) {
      let [first, last] = [0, 1]; // the part of the line that is drawn (Liang and Barsky, 1984)
      const [dx, dy] = [x - x0, y - y0];
      for (const [p, q] of [
        [-dx, x0 + far],
        [dx, far - x0],
        [-dy, y0 + far],
        [dy, far - y0],
      ] as const) {
        if (p === 0) last = q < 0 ? -1 : last;
        else if (p < 0) first = Math.max(first, q / p);
        else last = Math.min(last, q / p);
      }
      if (first <= last) {
        if (!there) to.moveTo(x0 + first * dx, y0 + first * dy);
        to.lineTo(last === 1 ? x : x0 + last * dx, last === 1 ? y : y0 + last * dy);
      }
      [x0, y0, there] = [x, y, inside(x, y)];
    },
  };
}

/** The curve that passes nearest to a place, above or below it, and the nearest point of that curve with its number. null where none is within `reach`
 *  pixels. */
export function nearest(all: readonly Points[], px: Place, py: Place, x: number, y: number, reach: number): { curve: number; point: number; x: number; y: number } | null {
  let best: { curve: number; point: number; x: number; y: number } | null = null;
  let least = reach;
  all.forEach((l, curve) => {
    // The first point that is not left of the place.
    let low = 0;
    let high = l.x.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (!(at(px, l.x[mid]!) >= x)) low = mid + 1;
      else high = mid;
    }
    const point = (i: number) => (i >= 0 && i < l.x.length && Math.abs(l.y[i]!) < most ? { x: at(px, l.x[i]!), y: at(py, l.y[i]!) } : null);
    const fine = (p: { x: number; y: number } | null) => p !== null && Number.isFinite(p.x) && Number.isFinite(p.y);
    const [a, b] = [point(low - 1), point(low)];
    const near = !fine(a) ? b : !fine(b) ? a : x - a!.x < b!.x - x ? a : b;
    if (!fine(near)) return;
    // Between two points the distance to the line counts, elsewhere the distance to the point.
    const between = fine(a) && fine(b) && b!.x > a!.x;
    const far = between ? Math.abs(a!.y + ((b!.y - a!.y) * (x - a!.x)) / (b!.x - a!.x) - y) : Math.hypot(near!.x - x, near!.y - y);
    if (far < least) {
      least = far;
      best = { curve, point: near === a ? low - 1 : low, x: near!.x, y: near!.y };
    }
  });
  return best;
}
