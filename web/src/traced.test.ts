import { describe, expect, it } from "vitest";
import { at, corners, leftToRight, nearest, placing, trace, unplaced, within } from "./traced";

describe("curves by their own points", () => {
  it("finds the corners of what can be drawn", () => {
    const all = [
      { x: [1, 2, 3], y: [5, NaN, -1] },
      { x: [0, 9], y: [Infinity, 2] },
    ];
    expect(corners(all, false, false)).toEqual({ x: [0, 9], y: [-1, 5] });
    expect(corners(all, true, true)).toEqual({ x: [1, 9], y: [2, 5] }); // 0 and -1 have no logarithm
    expect(corners([{ x: [1, 2, 3], y: [-1.7e308, 4, 1.7e308] }], false, false)).toEqual({ x: [1, 3], y: [4, 4] }); // numbers of this size count as infinite
    expect(corners([{ x: [1, 2], y: [NaN, NaN] }], false, false)).toEqual({ x: [1, 2], y: null });
    expect(corners([], false, false)).toEqual({ x: null, y: null });
  });

  it("places linear and logarithmic values", () => {
    expect(at(placing(0, 10, false, 100, 0), 2.5)).toBe(75);
    expect(at(placing(1, 100, true, 0, 200), 10)).toBeCloseTo(100);
  });

  it("orders points from left to right, those of one place as they were reported", () => {
    expect(leftToRight([1, 2, 2, 3])).toBe(null);
    expect(leftToRight([3, 1, 2, 1])).toEqual([1, 3, 2, 0]);
  });

  it("leaves gaps where a value is not finite, and tells of points that stand alone", () => {
    const said: string[] = [];
    const to = { moveTo: (x: number, y: number) => void said.push(`M${x},${y}`), lineTo: (x: number, y: number) => void said.push(`L${x},${y}`) };
    const same = { log: false, k: 1, low: 0, from: 0 };
    trace(to, { x: [1, 2, 3, 4, 5, 6, 7], y: [1, 2, NaN, 4, Infinity, 6, 7] }, same, same, (x, y) => void said.push(`.${x},${y}`));
    expect(said.join(" ")).toBe("M1,1 L2,2 M4,4 .4,4 M6,6 L7,7");
    said.length = 0;
    const log = { log: true, k: 1, low: 0, from: 0 };
    trace(to, { x: [0, 1, 100], y: [1, 0, 1000] }, log, log, (x, y) => void said.push(`.${x},${y}`));
    expect(said.join(" ")).toBe("M2,3 .2,3"); // an x of 0 has no place, and a y of 0 is a gap
  });

  it("finds the curve under the pointer", () => {
    const same = { log: false, k: 1, low: 0, from: 0 };
    const all = [
      { x: [0, 100], y: [0, 100] },
      { x: [0, 100], y: [50, 50] },
      { x: [], y: [] },
    ];
    expect(nearest(all, same, same, 20, 22, 24)).toEqual({ curve: 0, point: 0, x: 0, y: 0 });
    expect(nearest(all, same, same, 80, 55, 24)).toEqual({ curve: 1, point: 1, x: 100, y: 50 });
    expect(nearest(all, same, same, 20, 90, 24)).toBe(null);
    expect(nearest([{ x: [10], y: [10] }], same, same, 13, 14, 24)).toEqual({ curve: 0, point: 0, x: 10, y: 10 });
    expect(nearest([{ x: [0, 50, 100], y: [0, NaN, 0] }], same, same, 40, 0, 24)).toBe(null); // the place is in a gap
    expect(nearest([{ x: [0, 50, 100], y: [0, NaN, 0] }], same, same, 10, 0, 24)).toEqual({ curve: 0, point: 0, x: 0, y: 0 });
  });
});

it("points without a place on a logarithmic axis are counted", () => {
  const all = [{ x: [0, 1, 2, 3], y: [1, 0, -1, NaN] }, { x: [-1, 4], y: [-Infinity, 5] }];
  expect([unplaced(all, false, false), unplaced(all, true, false), unplaced(all, false, true), unplaced(all, true, true)]).toEqual([0, 1, 2, 3]);
});

describe("a pen that stays within reach", () => {
  it.each([
    [[[0, 0], [5, 5], [9, 9]], "M0,0 L5,5 L9,9"],
    [[[0, 0], [0, 40], [5, 0]], "M0,0 L0,10 M3.75,10 L5,0"],
    [[[-40, 5], [40, 5]], "M-10,5 L10,5"],
    [[[20, 20], [30, 30], [0, 0]], "M10,10 L0,0"],
    [[[20, 0], [20, 9]], ""],
  ])("%#", (points, drawn) => {
    const said: string[] = [];
    const pen = within({ moveTo: (x, y) => void said.push(`M${x},${y}`), lineTo: (x, y) => void said.push(`L${x},${y}`) }, 10);
    points.forEach(([x, y], i) => (i === 0 ? pen.moveTo(x!, y!) : pen.lineTo(x!, y!)));
    expect(said.join(" ")).toBe(drawn);
  });
});
