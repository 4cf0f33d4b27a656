import { describe, expect, test } from "vitest";
import { comparator, condition, holds, parse, sorting, wholeKeys, type Cell } from "./filter";
import { appended, band, beyond, clipped, smoothed } from "./smooth";
import { areClose, areTiny, bounds, fitting, heatLine, linear, logarithmic, logarithmicEnds, logarithmicTicks, looks, looksOf, multiples, niceStep, niceTicks } from "./scales";
import { firstErrorLine, standing, wayOut, wouldFree } from "./reasons";
import { before, lastState, lastStates, segments } from "./terminal";
import { bytes, clean, clock, csv, flat, moment, named, number, plain, seconds, short, span, worded } from "./text";
import { joined, patched, pieces, read } from "./address";
import { drawn, goalsFirst, newestFirst } from "./newest";
import { asked, axisOf, deviceTitle, firstOf, importanceQuery, metricAxes, seriesQuery } from "./queries";
import { alive, othersOpen, steerable } from "./ended";
import { keptIn, listOf, topOf } from "./spot";
import { parts } from "./yaml";
import { restarts, restartsOver } from "./restarts";
import { held, heldText, lanes, withStates, type Held } from "./timeline";
import type { MetricValue, RungTrial } from "./api_types";
import { fateText, newestText } from "./rungs";
import { heldBy, holderOf, slotState, slotWord } from "./slots";
import { stepNames, steps } from "./steps";
import { goals, isEven, valueAt, wanted } from "./goals";

const passes = (filter: string, row: Record<string, Cell>): boolean => {
  const p = parse(filter, new Set(Object.keys(row)));
  if (!p.ok) throw new Error(p.fault.message);
  return p.conditions.every((c) => holds(c, (k) => row[k], ["id", "name"]));
};

describe("the filter language", () => {
  const row = { id: 12, name: "digits", state: "ERROR", best: 0.25, "hp.lr": 0.01, "hp.opt": "adam w", latest: NaN, why: null };
  test("compares numbers as numbers and texts without case", () => {
    expect(passes("best<0.3", row)).toBe(true);
    expect(passes("best<=0.25 best>=0.25", row)).toBe(true);
    expect(passes("state=error", row)).toBe(true);
    expect(passes("state!=error", row)).toBe(false);
    expect(passes("id>9", row)).toBe(true); // compared as texts, 10 is not above 9
  });
  test("hp. may be left out", () => {
    expect(passes("lr=0.01", row)).toBe(true);
    const keys = new Set(["id", "hp.id", "hp.net.width"]);
    expect(wholeKeys(["net.width", "id", "gone", "hp.net.width", "hp.id"], keys)).toEqual(["hp.net.width", "id", "hp.id"]);
    expect(["net.width", "-net.width", "hp.net.width", "-id", "gone"].map((sort) => sorting(sort, keys))).toEqual(["hp.net.width", "-hp.net.width", "hp.net.width", "-id", "gone"]);
  });
  test("quotes hold blanks", () => {
    expect(passes("opt='adam w'", row)).toBe(true);
    expect(passes("opt~'m W'", row)).toBe(true);
  });
  test("a number is neither above nor below a word", () => {
    for (const op of ["<", "<=", ">", ">=", "="]) expect(passes(`best${op}abc`, row)).toBe(false);
    expect(passes("best!=abc", row)).toBe(true);
    expect(passes("name<e", row)).toBe(true); // words are compared as words
  });
  test("a bare word is looked for in id and name", () => {
    expect(passes("Digi", row)).toBe(true);
    expect(passes("adam", row)).toBe(false);
  });
  test("what is missing matches no comparison, not even !=", () => {
    expect(passes("latest!=3", row)).toBe(false);
    expect(passes("why!=x", row)).toBe(false);
    expect(passes("latest<3", row)).toBe(false);
  });
  test("a wrong filter says where", () => {
    expect(parse("state=ERROR best<", new Set(["state", "best"]))).toEqual({ ok: false, fault: { at: 17, message: "what should best be compared with?" } });
    expect(parse("name='x", new Set(["name"]))).toEqual({ ok: false, fault: { at: 5, message: "this quote is not closed" } });
    expect(parse("a b zzz=1", new Set(["id"]))).toEqual({ ok: false, fault: { at: 4, message: "there is no column 'zzz'" } });
    expect(parse("lr>1 zzz=1", new Set(["hp.lr"]), true)).toMatchObject({ ok: true, conditions: [{ key: "hp.lr" }, { key: "zzz" }] }); // columns may still be loading
    expect(parse("lr==1", new Set(["lr"]))).toEqual({ ok: false, fault: { at: 3, message: "= cannot follow =: a value that begins with it stands in quotes" } });
    expect(parse("lr<<1", new Set(["lr"]))).toMatchObject({ ok: false, fault: { at: 3 } });
    expect(parse("lr<='=1'", new Set(["lr"]))).toMatchObject({ ok: true, conditions: [{ op: "<=", value: "=1" }] });
    expect(parse("=3")).toEqual({ ok: false, fault: { at: 0, message: "there is no column before =" } });
  });
});

describe("quotes in a filter", () => {
  const row = { id: 1, "hp.learning rate": 0.1, "hp.it's": "a=b", "hp.say": "don't 'stop' now" };
  test("hold keys too", () => {
    expect(passes("'hp.learning rate'=0.1", row)).toBe(true);
    expect(passes("'learning rate'>0.2", row)).toBe(false);
  });
  test("are doubled where one is meant", () => {
    expect(passes("say='don''t ''stop'' now'", row)).toBe(true);
    expect(parse("say=''", new Set(["say"]))).toEqual({ ok: true, conditions: [{ key: "say", op: "=", value: "", at: 0 }] });
  });
  test("alone are not closed", () => expect(parse("'")).toEqual({ ok: false, fault: { at: 0, message: "this quote is not closed" } }));
  test.each([["lr", "0.1"], ["learning rate", "x y"], ["it's", "don't"], ["a=b", "c<d"], ["layers", "[1,2]"], ["e", ""], ["שלום", "😀 #%2F"]])("%s of %s makes a condition that is read again", (key, value) => {
    expect(parse(condition(key, "=", value), new Set([key]))).toEqual({ ok: true, conditions: [{ key, op: "=", value, at: 0 }] });
  });
});

describe("sorting", () => {
  const sorted = (xs: Cell[], down: boolean) => xs.slice().sort(comparator<Cell>((x) => x, down));
  test("numbers that came as text sort as numbers", () => expect(sorted(["10", "9", "1e-3"], false)).toEqual(["1e-3", "9", "10"]));
  test("missing and NaN come last in both directions", () => {
    expect(sorted([null, 2, NaN, 1], false).slice(0, 2)).toEqual([1, 2]);
    expect(sorted([null, 2, NaN, 1], true).slice(0, 2)).toEqual([2, 1]);
  });
  test("infinities are numbers", () => expect(sorted([Infinity, 1, -Infinity], false)).toEqual([-Infinity, 1, Infinity]));
});

describe("smoothing", () => {
  test("is corrected for its start", () => expect(smoothed([4, 4, 4], 0.9).every((v) => Math.abs(v - 4) < 1e-12)).toBe(true));
  test("what is not finite stays a gap and counts for nothing", () => {
    const y = smoothed([1, NaN, 1], 0.5);
    expect(y[1]).toBeNaN();
    expect(y[2]).toBeCloseTo(1, 12);
  });
  test("clipping leaves the bulk", () => {
    const range = clipped([...Array.from({ length: 100 }, (_, i) => i), 1e9])!;
    expect(range[1]).toBeLessThan(200);
    expect(clipped([1])).toBeNull();
    expect(clipped([NaN, NaN, Infinity])).toBeNull();
    const huge = clipped([-1e308, ...Array.from({ length: 9 }, () => 1e307), 1e308])!;
    expect(huge.every(Number.isFinite)).toBe(true);
  });
  const decay = Array.from({ length: 16 }, (_, i) => 2 - i / 10);
  const curves = (spike: number) => Array.from({ length: 12 }, (_, t) => decay.map((y, i) => (i === t ? spike : y))).flat();
  test.each<[string, number[], [number, number]]>([
    ["a spike in each curve", curves(1e6), [0, 3]],
    ["a spike downwards", curves(-1e6), [0, 3]],
    ["a fifth of the values at one end", [...decay, 1e6, 2e6, 3e6, 4e6], [0, 3]],
    ["a fifth at both ends", [...decay, 1e6, 2e6, 3e6, 4e6, -1e6, -2e6, -3e6, -4e6], [0, 3]],
    ["a spike of a constant curve", [...Array.from({ length: 16 }, () => 0.7), 1e6], [0.6, 0.8]],
    ["a spike of a curve of zeros", [...Array.from({ length: 16 }, () => 0), 1e6], [-1, 1]],
  ])("clips %s", (_, values, [low, high]) => {
    const range = clipped(values)!;
    expect([range[0] >= low, range[0] < range[1], range[1] <= high]).toEqual([true, true, true]);
    expect(beyond(values, range)).toBe(values.filter((v) => Math.abs(v) >= 1e6).length);
  });
  test("clips nothing where nothing is far out", () => {
    for (const values of [decay, [1, 2], [0.1, 0.1, 0.1, 0.1, 0.2], [-1e308, 0, 1e308]]) expect(clipped(values)).toBeNull();
    expect(beyond([NaN, -Infinity, Infinity], [0, 1])).toBe(0);
  });
  test("a range on a logarithmic axis stays above 0", () => {
    const decades = Array.from({ length: 16 }, (_, i) => Math.pow(10, -i / 4)); // far apart, and none is far out by its logarithm
    expect(clipped(decades, true)).toBeNull();
    expect(clipped(decades)).not.toBeNull();
    const range = clipped([...decades, 1e-30, -3, 0], true)!;
    expect(range[0]).toBeGreaterThan(1e-5);
    expect(range[0]).toBeLessThan(2e-4);
    expect(beyond([...decades, 1e-30, -3, 0], range, true)).toBe(1);
    expect(clipped([-1, -2, 0], true)).toBeNull();
    const level = clipped([...Array.from({ length: 9 }, () => 0.1), 1e6], true)!;
    expect([level[0] < 0.1, level[1] > 0.1, level[1] < 1]).toEqual([true, true, true]);
  });
  test("what one drags over is kept in numbers that still tell it from what is beside it", () => {
    expect(bounds(0.123456789, 0.987654321)).toEqual([0.1234, 0.9877]);
    expect(bounds(1764046123.4, 1764046183.9)).toEqual([1764046123.4, 1764046183.9]);
    expect(bounds(1000003, 1000101)).toEqual([1000003, 1000101]);
    expect(bounds(9, 1)).toEqual([1, 9]);
    expect(bounds(2.5, 2.5)).toEqual([2.5, 2.5]);
    expect(bounds(1e-7, 3.33333e-4)).toEqual([1e-7, 3.334e-4]);
    for (const [a, b] of [[1 / 3, 2 / 3], [-1e308, 1e308], [-5, 1e-9], [1e15 + 1, 1e15 + 3], [-2 / 3, -1 / 3]] as const) {
      const [low, high] = bounds(a, b);
      expect(low <= a && high >= b && Number.isFinite(low) && Number.isFinite(high), `${a}..${b}: ${low}..${high}`).toBe(true);
    }
  });
  test("a logarithmic axis of curves ends where these do, and has ticks wherever it ends", () => {
    expect(logarithmicEnds(1200, 1300)).toEqual([1200, 1300]);
    for (const [a, b] of [[null, null], [0, 5], [-1, 5], [NaN, 5], [1, Infinity]] as const) expect(logarithmicEnds(a, b)).toEqual([null, null]);
    expect(logarithmicEnds(7, 7)).toEqual([3.5, 14]);
    const [low, high] = logarithmicEnds(1, 100, 0.05) as [number, number];
    expect([low, high].map((x) => Number(x.toPrecision(3)))).toEqual([0.794, 126]);
    expect(logarithmicEnds(5e-324, 1.7e308, 0.05).every((x) => Number.isFinite(x) && x! > 0)).toBe(true);
    expect(logarithmicTicks(1200, 1300)).toEqual([1200, 1220, 1240, 1260, 1280, 1300]);
    expect(logarithmicTicks(0.02, 3)).toEqual([0.02, 0.05, 0.1, 0.2, 0.5, 1, 2]);
    expect(logarithmicTicks(1, 10_000)).toEqual([1, 10, 100, 1000, 10_000]);
    for (const [a, b] of [[5e-324, 1.7e308], [1e-30, 1e30], [3, 3.0001], [9, 95]] as const) {
      const ticks = logarithmicTicks(a, b);
      expect(ticks.length >= 2 && ticks.length <= 12, `${a}..${b}: ${ticks.join()}`).toBe(true);
    }
  });
  test("points that came while one read are not lost, and none is drawn twice", () => {
    const read = [{ trial: 1, row: 3, count: 3, x: [1, 2, 3], y: [1, 2, 3] }];
    const came = [{ trial: 1, row: 3, x: [2, 3], y: [2, 3] }, { trial: 1, row: 5, x: [3, 4, 5], y: [3, 4, 5] }, { trial: 2, row: 1, x: [1], y: [9] }];
    const all = came.reduce(appended, read);
    expect(all).toEqual([
      { trial: 1, row: 5, count: 5, x: [1, 2, 3, 4, 5], y: [1, 2, 3, 4, 5] },
      { trial: 2, row: 1, count: 1, x: [1], y: [9] },
    ]);
  });
  test("a band has the mean of those that are there", () => {
    const b = band([
      { x: [0, 2], y: [0, 2] },
      { x: [0, 1], y: [2, 3] },
    ]);
    expect(b.x).toEqual([0, 1, 2]);
    expect(b.mean).toEqual([1, 2, 2]);
    expect(b.low).toEqual([0, 1, 2]);
    expect(b.high).toEqual([2, 3, 2]);
  });
  test("a mean with an infinite value is infinite, and one of nothing but NaN is none", () => {
    const b = band([
      { x: [0, 1, 2, 3], y: [0, Infinity, NaN, 3] },
      { x: [0, 1, 2], y: [2, 4, NaN] },
      { x: [0, 2], y: [1, 1] },
    ]);
    expect(b).toEqual({ x: [0, 1, 2, 3], mean: [1, Infinity, 1, 3], low: [0, 1, 1, 3], high: [2, 4, 1, 3] });
    expect(band([{ x: [0, 1], y: [NaN, -Infinity] }])).toEqual({ x: [0, 1], mean: [NaN, -Infinity], low: [NaN, NaN], high: [NaN, NaN] });
  });
});

describe("scales", () => {
  test("two trials of one chart look alike only where there are more than looks", () => {
    expect([...looksOf([33, 1, 65])]).toEqual([
      [1, 1],
      [33, 2],
      [65, 3],
    ]);
    expect(looksOf([7, 2, 3]).get(7)).toBe(7);
    expect(new Set(looksOf(Array.from({ length: 32 }, (_, n) => 32 * n)).values()).size).toBe(32);
    expect(looksOf(Array.from({ length: 40 }, (_, n) => n)).get(35)).toBe(3);
  });

  test("go there and back", () => {
    for (const s of [linear(2, 10), logarithmic(0.001, 10), linear(3, 3)]) for (const p of [0, 0.3, 1]) expect(s.at(s.back(p))).toBeCloseTo(p, 9);
  });
  test("decades are logarithmic", () => {
    expect(fitting([1e-4, 1]).at(1e-2)).toBeCloseTo(0.5, 9);
    expect(fitting([1, 3]).at(2)).toBeCloseTo(0.5, 9);
    expect(fitting([]).ticks.length).toBeGreaterThan(0);
  });
  test("the largest numbers there are keep their places", () => {
    for (const [low, high] of [[-1e308, 1e308], [1e308, 1e308], [0, 1.7e308], [-1.7e308, -1.7e308], [1e17, 1e17 + 32], [5e-324, 1e-323], [0, 5e-324]] as const) {
      const s = fitting([low, high]);
      for (const x of [low, high]) expect(s.at(x), `${x} in ${low}..${high}`).toSatisfy((p: number) => p >= 0 && p <= 1);
      if (low < high) expect(s.at(low)).toBeLessThan(s.at(high));
      expect(Number.isFinite(s.back(0)) && Number.isFinite(s.back(1))).toBe(true);
      expect(s.ticks.length).toBeLessThan(30);
    }
    expect(linear(-0, 0).at(0)).toBeCloseTo(0.5, 9);
  });
  test("axes of curves have ticks at any size", () => {
    expect([0.3, 1, 2.1, 2.5, 6, 0.07, 3e-19, 7e38, 2e-320].map(niceStep)).toEqual([0.5, 1, 2.5, 2.5, 10, 0.1, 5e-19, 1e39, 2e-320]);
    expect(multiples(-0.12, 0.31, 0.1)).toEqual([-0.1, 0, 0.1, 0.2, 0.3]);
    expect(multiples(0.9e-18, 3.1e-18, 1e-18)).toEqual([1e-18, 2e-18, 3e-18]);
    expect(multiples(0, 5e41, 2e41)).toEqual([0, 2e41, 4e41]);
    expect(multiples(1e9, 1e9 + 0.0025, 1e-3)).toEqual([1e9, 1000000000.001, 1000000000.002]);
    expect(multiples(9e15 + 1, 9e15 + 3, 1)).toEqual([9000000000000001, 9000000000000002, 9000000000000003]);
    expect([areClose(1e9, 1e9 + 0.01), areClose(9e15 + 1, 9e15 + 8), areClose(9e15, 9e15 + 2), areClose(1, 1 + 1e-16), areClose(1, 1), areClose(1, 2)]).toEqual([true, true, false, false, false, false]);
    expect([areTiny(1e-31, 7e-31), areTiny(0, 1e-19), areTiny(1, 1 + 1e-16), areTiny(0, 0), areTiny(null, null)]).toEqual([true, false, false, false, false]);
  });
  test("ticks are round", () => expect(niceTicks(0, 1, 5)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]));
  test("the ninth look differs from the first", () => expect(looks(8)).not.toEqual(looks(0)));
});

describe("colours of values", () => {
  const light = (rgb: number[]): number => rgb.map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((n, v, i) => n + v * [0.2126, 0.7152, 0.0722][i]!, 0);
  const contrast = (a: number[], b: number[]): number => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  test.each([
    ["light", [255, 255, 255]],
    ["dark", [20, 23, 26]],
  ] as [string, number[]][])("are seen on the ground of the %s theme", (theme, ground) => {
    for (let p = 0; p <= 1; p += 0.05) expect(contrast(heatLine(p, theme === "dark").match(/\d+/g)!.map(Number), ground), `at ${p}`).toBeGreaterThanOrEqual(3);
  });
});

describe("a line of a log", () => {
  test("shows its last state", () => {
    expect(lastState(" 1%|\r 50%|#####\r100%|##########\r")).toBe("100%|##########");
    expect(lastState("abc\b\b\bX")).toBe("Xbc");
    expect(lastState("\b1\b\u001b[31m2\u001b[0m")).toBe("\u001b[0m\u001b[31m2");
    expect(lastState("50 %\b\b\b\b60 %\r70 %\b\b\b\b80 %")).toBe("80 %");
  });
  test("begins with the rank and the level that it was printed with", () => {
    for (const [level, rank, text, expected, stream = "stdout"] of [
      ["WARNING", 0, "disk is nearly full", "WARNING: "],
      ["INFO", 3, "from three", "[rank=3] INFO: "],
      ["", 3, "plain", "[rank=3] "],
      ["", 0, "plain", ""],
      ["INFO", 0, "INFO: twice", ""],
      ["INFO", 0, "INFORMATION", "INFO: "],
      ["ERROR", 1, "Trial 27 crashed", "ERROR: ", "troupe"],
      ["\u001b[31m", 0, "of an older build", "\u241b[31m: "],
    ] as [string, number, string, string, string?][])
      expect(before({ level, rank, text, stream })).toBe(expected);
  });
  test("of a progress bar the state that stands is shown, for each rank and stream", () => {
    const line = (text: string, rank = 0, stream = "stderr") => ({ text, rank, stream });
    const lines = [line("10 %\r"), line("a"), line("20 %\r"), line("5 %\r", 1), line("out\r", 0, "stdout"), line("30 %")];
    expect(lastStates(lines).map((l) => l.text)).toEqual(["a", "5 %\r", "out\r", "30 %"]);
  });
  test("has the colours of a terminal, and no other sequence", () => {
    expect(segments("a\u001b[1;31mred\u001b[0mb\u001b[2Jc\u001b]0;title\u0007d")).toEqual([
      { text: "a", classes: "" },
      { text: "red", classes: "fg1 bold" },
      { text: "b", classes: "" },
      { text: "c", classes: "" },
      { text: "d", classes: "" },
    ]);
  });
});

describe("an axis of a hyperparameter", () => {
  const e = { config: { hyperparameters: { x: { type: "double", minval: 0, maxval: 1 }, lr: { type: "log" }, opt: { b1: { type: "int" }, b2: { type: "log" } }, c: { type: "const", val: 3 } } } };
  test("is linear where its values are drawn evenly", () => {
    expect(["x", "lr", "opt.b1", "opt.b2", "c", "gone", "opt"].map((name) => isEven(e, name))).toEqual([true, false, true, false, false, false, false]);
  });
});

describe("what terminals are told beside colours", () => {
  const seen = (line: string) => segments(line).map((s) => s.text).join("");
  const classes = (line: string) => segments(line).map((s) => s.classes);
  test("is not shown: a hidden cursor, marks of links, colours between colons", () => {
    expect(seen("\u001b[?25lworking\u001b[?25h")).toBe("working");
    expect(seen("\u001b]8;;http://x\u001b\\link\u001b]8;;\u001b\\")).toBe("link");
    expect(seen("\u001b[38:2::255:0:0mred\u001b[0m")).toBe("red");
    expect(seen("\u001b[>4;1ma\u001b[1 qb\u001b(Bc\u001b=d\u001bPx\u001b\\e")).toBe("abcde");
    expect(seen("a\u001b")).toBe("a\u241b");
  });
  test("is done where it moves the cursor or erases within the line", () => {
    expect(seen("12345\u001b[3D\u001b[Kx")).toBe("12x");
    expect(seen("abc\u001b[1Gx")).toBe("xbc");
    expect(seen("abc\u001b[2Kdef")).toBe("   def");
    expect(seen("abcd\u001b[2D\u001b[1Kx")).toBe("  xd");
    expect(seen("a\u001b[3Cb\u001b[99Dc\u001b[6Gd")).toBe("c   bd");
    expect(seen("a\u001b[99999999Cb").length).toBe(10_001);
    expect(seen("abc\b\u001b[1;2Dxyz\u001b[3K")).toBe("axyz");
    expect(classes("\u001b[31mx\u001b[0;32my\u001b[1D\u001b[0mz")).toEqual(["fg1", ""]);
    expect(lastState(Array.from({ length: 10_000 }, (_, i) => `\u001b[3${i % 8}mx`).join("") + "\b").length).toBeLessThan(1_000_000);
    expect(segments("\u001b[31m12\u001b[1D3\u001b[0m4")).toEqual([
      { text: "13", classes: "fg1" },
      { text: "4", classes: "" },
    ]);
  });
  test("many colours become the nearest of eight", () => {
    expect(classes("\u001b[38;5;196mx")).toEqual(["fg1"]); // a red
    expect(classes("\u001b[38;5;9mx")).toEqual(["fg1"]);
    expect(classes("\u001b[38;5;46mx")).toEqual(["fg2"]); // a green
    expect(classes("\u001b[38;5;21mx")).toEqual(["fg4"]); // a blue
    expect(classes("\u001b[38;2;230;30;200mx")).toEqual(["fg5"]);
    expect(classes("\u001b[38:2::255:0:0mx")).toEqual(["fg1"]);
    expect(classes("\u001b[38:2::0:255:0mx\u001b[38:2:0:0:255my\u001b[38:5:46mz")).toEqual(["fg2", "fg4", "fg2"]);
    expect(classes("\u001b[38;5;245mx")).toEqual([""]); // greys look like the rest of the text
    expect(classes("\u001b[48;5;196;1mx")).toEqual(["bg1 bold"]);
  });
  test("stand behind the text, too", () => {
    expect(classes("\u001b[41mx\u001b[104my\u001b[49mz")).toEqual(["bg1", "bg4", ""]);
    expect(classes("\u001b[32;48;2;0;0;255mx\u001b[0my")).toEqual(["fg2 bg4", ""]);
    expect(classes("\u001b[31;1;48;5;245mx")).toEqual(["fg1 grey2 bold"]);
  });
  test("greys behind the text are what they are", () => {
    expect(classes("\u001b[40ma\u001b[100mb\u001b[47mc\u001b[107md")).toEqual(["grey0", "grey1", "grey2", "grey3"]);
    expect(classes("\u001b[48;2;10;10;10mx\u001b[48:2::250:250:250my\u001b[48;5;0mz")).toEqual(["grey0", "grey3", "grey0"]);
    const all = Array.from({ length: 24 }, (_, i) => classes(`\u001b[48;5;${232 + i}mx`)[0]!);
    expect(Array.from(new Set(all))).toEqual(["grey0", "grey1", "grey2", "grey3"]);
    expect(classes("\u001b[30;47mx\u001b[97;40my\u001b[38;5;232my")).toEqual(["grey2", "grey0", "grey0"]);
  });
  test("reverse video changes letters and ground for one another", () => {
    expect(classes("a\u001b[7mb\u001b[27mc\u001b[7;1md\u001b[0me")).toEqual(["", "reverse", "", "reverse bold", ""]);
    expect(classes("\u001b[7;31ma\u001b[44mb\u001b[39mc\u001b[49md")).toEqual(["bg1", "fg4 bg1", "fg4 reverse", "reverse"]);
    expect(classes("\u001b[7;30ma\u001b[37;41mb\u001b[0;7;40mc")).toEqual(["grey0", "fg1 grey2", "reverse"]);
  });
});

describe("a line that is pointed at", () => {
  test("is shown though a later state has written over it", () => {
    const line = (n: number, text: string) => ({ line: n, text, rank: 0, stream: "stderr" });
    const lines = [line(1, "10 %\r"), line(2, "20 %\r"), line(3, "done")];
    expect(lastStates(lines).map((l) => l.line)).toEqual([3]);
    expect(lastStates(lines, "1").map((l) => l.line)).toEqual([1, 3]);
  });
});

describe("texts of users", () => {
  test("cannot turn the direction or hide", () => {
    expect(clean("a\u202eb\u0007c\u009bd")).toBe("a\ufffdb\u2407c\ufffdd");
    expect(clean("täglich\t✓")).toBe("täglich\t✓");
    expect(clean("a\u2028b\u2029c")).toBe("a\ufffdb\ufffdc"); // these two characters would begin another line
  });
  test("make no formula in a table", () => expect(csv([["=1+1", -2, 'a"b', null, NaN]])).toBe("'=1+1,-2,\"a\"\"b\",,NaN\r\n"));
  test("keep their numbers in a table", () => expect(csv([["-5", "+1.5e-3", "-.5", "-5+1", "-x", "-Infinity"]])).toBe("-5,+1.5e-3,-.5,'-5+1,'-x,'-Infinity\r\n"));
});

test("numbers of the API", () => {
  expect(number("NaN")).toBeNaN();
  expect(number("-Infinity")).toBe(-Infinity);
  expect(number("3")).toBeNull();
});
test("numbers for people", () => {
  expect([0, 12, 0.1 + 0.2, 1e-7, 1612660001, 1e16, NaN, -Infinity].map((x) => short(x))).toEqual(["0", "12", "0.3", "1e-7", "1612660001", "1e+16", "NaN", "−∞"]);
  expect(bytes(1234567)).toBe("1.23 MB");
  expect(span(7500)).toBe("2 h 5 min");
  expect(moment("2026-01-02T03:04:05Z", "utc")).toBe("2026-01-02 03:04:05Z");
  expect(flat({ a: { b: 1 }, c: [2] })).toEqual({ "a.b": 1, c: [2] });
});
test("a hyperparameter as text is the same wherever it stands", () => {
  expect(["adam", 0.1, -0, true, [1, 2], { a: [{ b: 1 }] }, null, undefined, "NaN"].map(worded)).toEqual(["adam", "0.1", "0", "true", "[1,2]", '{"a":[{"b":1}]}', "null", "—", "NaN"]);
});
test("a time goes into a field and back", () => {
  expect(clock(Date.parse("2026-01-02T03:04:05Z") / 1000, "utc")).toBe("2026-01-02T03:04:05");
  for (const zone of ["utc", "local"] as const) expect(seconds(clock(1_764_046_123, zone), zone)).toBe(1_764_046_123);
  expect(clock(NaN, "utc")).toBe("");
  expect(seconds("", "local")).toBeNaN();
});
test("a metric has a group and a name", () => {
  expect(named("validation.val/loss, a.b %2F")).toEqual({ group: "validation", name: "val/loss, a.b %2F" });
  expect(asked("/s", seriesQuery("training.", { experiment: 7 }, "step", null, 0))).toBe("/s?experiment=7&group=training&metric=&x=step&points=500");
  expect(named("training.")).toEqual({ group: "training", name: "" });
  for (const wrong of ["", "loss", ".loss"]) expect(named(wrong)).toEqual({ group: "", name: "" });
});
test("what is in a map is its own", () => {
  expect(flat({ a: {}, b: { c: {} }, d: [] })).toEqual({ a: {}, "b.c": {}, d: [] }); // empty maps and lists stay
  const odd = flat(JSON.parse('{"__proto__": 1, "x": {"constructor": 2}}'));
  expect(Object.keys(odd)).toEqual(["__proto__", "x.constructor"]);
  expect(odd["constructor"]).toBeUndefined();
  expect(odd["toString"]).toBeUndefined();
});
test("JSON keeps what it has no number for", () => expect(JSON.parse(JSON.stringify([NaN, Infinity, -Infinity, 1, null, "x"].map(plain)))).toEqual(["NaN", "Infinity", "-Infinity", 1, null, "x"]));
test("the address keeps what is not its default", () => {
  expect(patched("/experiments", "?q=a&sort=id", { q: "", sort: "-best", cols: null })).toBe("/experiments?sort=-best");
  expect(patched("/experiments", "", { q: "state=ERROR best<1" })).toBe("/experiments?q=state%3DERROR+best%3C1");
  expect(read("?sel=1,2,,3").list("sel")).toEqual(["1", "2", "3"]);
  expect(read("?smooth=2").number("smooth", 0, 0, 0.99)).toBe(0.99);
  expect(read("?logy=1").flag("logy")).toBe(true);
  expect(read("?q=name~50%&x=%zz&y=%00").text("q")).toBe("name~50%");
});

describe("lists in the address", () => {
  const names = ["a,b", "50%", "x%2Cy", "back\\slash", "end\\", "val/loss", "#1 'q' \"", "😀", "שלום", "m.training.a,b.min"];
  test("keep names whatever stands in them", () => {
    expect(pieces(joined(names, ","), ",")).toEqual(names);
    const to = patched("/experiments/7/trials", "", { cols: names });
    expect(read(to.slice(to.indexOf("?"))).list("cols")).toEqual(names);
  });
  test("are read as people write them", () => {
    expect(read("?cols=id,hp.lr,m.validation.loss").list("cols")).toEqual(["id", "hp.lr", "m.validation.loss"]);
    expect(pieces("a\\b,c", ",")).toEqual(["a\\b", "c"]);
    expect(pieces("", ",")).toEqual([]);
  });
});

describe("what has not ended", () => {
  const all = [
    { id: 1, state: "STATE_ACTIVE", owner: "admin" },
    { id: 2, state: "STATE_COMPLETED", owner: "admin" },
    { id: 3, state: "STATE_PAUSED", owner: "admin" },
    { id: 4, state: "STATE_PAUSED", owner: "o' zoe" },
    { id: 5, state: "STATE_ERROR", owner: "admin" },
    { id: 6, state: "STATE_CANCELED", owner: "admin" },
    { id: 7, state: "STATE_STOPPING_CANCELED", owner: "admin" },
  ];
  test("alone takes orders", () => expect(alive(all, ["5", "3", "2", "1", "77"])).toEqual(["3", "1"]));
  test("can be killed while it is stopping, which is the one order that it takes then", () => {
    expect(alive(all, ["7", "1", "6"])).toEqual(["7", "1"]);
    expect(steerable(all, ["7", "1", "6"])).toEqual(["1"]);
  });
  test("is nothing that is being deleted", () => {
    const going = ["STATE_DELETING", "STATE_DELETE_FAILED", "STATE_DELETED"].map((state, i) => ({ id: i + 1, state }));
    expect(alive(going, ["1", "2", "3"])).toEqual([]);
  });
  test("of others is what the link of the first page lists", () => {
    const shown = (me: string) => all.filter((e) => passes(othersOpen(me), { ...e, state: e.state.replace("STATE_", "") })).map((e) => e.id);
    expect(shown("o' zoe")).toEqual([1, 3, 7]);
    expect(shown("admin")).toEqual([4]);
  });
});

describe("where one was on a page", () => {
  const of = listOf("/ui/experiments/7/trials", "?sort=hp.lr&q=lr<1");
  const kept = { of, y: 120, grids: { Trials: { top: 700, row: "12", above: 4 } } };
  test("is known again where the same rows stand in the same order", () => {
    expect(keptIn(kept, listOf("/ui/experiments/7/trials", "?q=lr<1&sel=3,4&sort=hp.lr&cols=id"))).toEqual(kept);
    for (const [path, search] of [
      ["/ui/experiments/7/trials", "?sort=-hp.lr&q=lr<1"],
      ["/ui/experiments/7/trials", "?sort=hp.lr"],
      ["/ui/experiments/7/trials", "?sort=hp.lr&q=lr<1&brush=x:1..2"],
      ["/ui/experiments/8/trials", "?sort=hp.lr&q=lr<1"],
    ] as const)
      expect(keptIn(kept, listOf(path, search))).toBeNull();
  });
  test("has the row of the keyboard, also at the top", () => {
    const top = { of, y: 0, grids: { Trials: { top: 0, row: "", above: 0, active: "3" } } };
    expect(keptIn(top, of)).toEqual(top);
  });
  test("is not taken from what is no such state", () => {
    for (const state of [null, undefined, 7, "x", {}, { of }, { of, y: -1 }, { of, y: NaN }]) expect(keptIn(state, of)).toBeNull();
    expect(keptIn({ of, y: 3, grids: { A: { top: "x", row: "1", above: 0 }, B: { top: 1, row: "1", above: 0 }, C: { top: 1, row: "1", above: 0, active: 3 } } }, of)?.grids).toEqual({ B: { top: 1, row: "1", above: 0 } });
  });
  test("is that of a row, wherever it stands now", () => {
    expect(topOf(kept.grids.Trials, 30, 36)).toBe(30 * 36 + 4);
    expect(topOf(kept.grids.Trials, -1, 36)).toBe(700);
  });
});

describe("why something waits", () => {
  const waits = {
    allocation: "4.1", trial: 4, experiment: 3, pool: "default", state: "QUEUED" as const, slots: 2, priority: 42, weight: 1, user: "ada", since: "", waitedSeconds: 3, position: 1,
    also: [], agents: [], behind: null, reservation: null, estimate: null, reason: { code: "busy", text: "it is next, and waits for 1 slot, which others hold" }, advice: "",
    wouldFree: [
      { allocation: "1.1", agents: ["a", "b"], slots: 8, how: "ends" as const, stopping: false, preemptedFor: null, costSeconds: 0, fromPriority: null, expectedSeconds: 360 },
      { allocation: "2.1", agents: ["c"], slots: 1, how: "preempted" as const, stopping: false, preemptedFor: null, costSeconds: 41, fromPriority: null, expectedSeconds: null },
      { allocation: "6.1", agents: ["c"], slots: 1, how: "preempted" as const, stopping: false, preemptedFor: null, costSeconds: 4, fromPriority: null, expectedSeconds: 17 },
      { allocation: "5.1", agents: ["c"], slots: 1, how: "preempted" as const, stopping: true, preemptedFor: "4.1", costSeconds: 41, fromPriority: null, expectedSeconds: null },
    ],
  };
  test.each([
    [{ state: "ACTIVE", trials: { running: 2, waiting: 1, paused: 0 }, waiting: [waits] }, "2 running, 1 waiting; trial 4: it is next, and waits for 1 slot, which others hold"],
    [{ state: "ACTIVE", trials: { running: 0, waiting: 1, paused: 0 }, waiting: [{ ...waits, advice: "ask" }] }, "1 waiting; trial 4: it is next, and waits for 1 slot, which others hold (ask)"],
    [{ state: "PAUSED", trials: { running: 0, waiting: 0, paused: 0 }, waiting: [] }, "it is paused"],
    [{ state: "CANCELED", trials: { running: 0, waiting: 0, paused: 0 }, waiting: [], reason: { code: "ended", text: "was ended: killed by ada" } }, "was ended: killed by ada"],
  ])("%#", (x, text) => expect(standing({ experiment: 3, pool: "default", since: "", advice: "", wouldFree: [], reason: { code: "paused", text: "it is paused" }, ...x })).toBe(text));
  test("what would free slots", () => expect(wouldFree(waits)).toBe(`1.1 (8 slots on a, b) ends in about ${span(360)}; 2.1 (1 slot on c) could be preempted; 6.1 (1 slot on c) could be preempted in about ${span(17)}; 5.1 (1 slot on c) is being preempted for 4.1`));
  test("what one can do where nothing that runs would free slots", () => {
    const advice = "troupe agent enable vm";
    expect([wayOut({ ...waits, wouldFree: [], advice }), wayOut({ ...waits, wouldFree: [] })]).toEqual([advice, ""]);
    expect(wayOut({ ...waits, advice })).toBe(wouldFree(waits));
  });
});

describe("the first error line", () => {
  const of = (...texts: string[]) => firstErrorLine([...texts.map((text) => ({ stream: "stderr", level: "", text })), { stream: "troupe", level: "ERROR", text: "Trial 27 crashed: error" }])?.text;
  test("is the exception, the first one of a chain", () => {
    expect(of("loading", "Traceback (most recent call last):", '  File "/job.py", line 2, in <module>', "    raise RuntimeError('x')", "RuntimeError: x", "During handling of the above exception, another exception occurred:", "KeyError: 'y'")).toBe("RuntimeError: x");
    expect(of("\u001b[31mtorch.cuda.OutOfMemoryError: CUDA out of memory\u001b[0m")).toContain("OutOfMemoryError");
  });
  test("else what sounds like a fault, else the last line", () => {
    expect(of("begin", "./run.sh: line 3: 12 Segmentation fault (core dumped)", "end")).toContain("Segmentation");
    expect(of("begin", "bash: troupe-x: command not found", "")).toBe("bash: troupe-x: command not found");
    expect(of()).toBeUndefined();
    expect(firstErrorLine(["INFO", "ERROR", ""].map((level, i) => ({ stream: "stdout", level, text: `line ${i}` })))?.text).toBe("line 1");
  });
});

describe("a configuration in colours", () => {
  const kinds = (text: string) => parts(text).map((l) => l.filter((p) => p.kind !== "plain").map((p) => `${p.kind}:${p.text}`));
  test("gives the text again, whatever it is", () => {
    const text = "a: 1 # x\n - b: 'it''s'\n\tc: {d: [1, 2.5e-3, \"#no\"], e: x y}\nf: |\n  any: thing # here\n\n g: http://x:80/#y\n\"q\": 'open\n]} : ,";
    expect(parts(text).map((l) => l.map((p) => p.text).join("")).join("\n")).toBe(text);
  });
  test("knows keys, numbers, words, texts and comments", () => {
    expect(kinds("lr: {type: log, minval: -4} # small")).toEqual([["key:lr", "mark::", "mark:{", "key:type", "mark::", "string:log", "mark:,", "key:minval", "mark::", "number:-4", "mark:}", "comment:# small"]]);
    expect(kinds("- on: true\n- python3 job.py --x 3")).toEqual([
      ["mark:-", "key:on", "mark::", "word:true"],
      ["mark:-", "string:python3 job.py --x 3"],
    ]);
    expect(kinds("run: |\n  a: 1\n  b\nnext: 2")).toEqual([["key:run", "mark::", "mark:|"], ["string:  a: 1"], ["string:  b"], ["key:next", "mark::", "number:2"]]);
  });
});

test("a scale has room where infinities stand", () => {
  const ends = (values: number[]) => [0, 1].map((p) => Number(fitting(values).back(p).toPrecision(4)));
  expect([ends([1, 2]), ends([1, 2, Infinity]), ends([1, 2, -Infinity, NaN]), ends([1, 1000, Infinity])]).toEqual([[1, 2], [1, 2.08], [0.92, 2], [1, 1738]]);
});

describe("restarts", () => {
  test("are marked at the step that a run went on from, and in time", () => {
    const t = (s: number) => new Date(1_700_000_000_000 + s * 1000).toISOString();
    expect(
      restarts([
        { run: 1, agents: ["a"], fromSteps: 0, startTime: t(0), endTime: t(10) },
        { run: 2, agents: ["a"], fromSteps: 400, startTime: t(60), endTime: t(65) },
      ]),
    ).toEqual([
      { x: "step", at: 400, label: "run 2" },
      { x: "time", at: 1_700_000_060, label: "run 2" },
      { x: "relative", at: 10, label: "run 2" },
    ]);
    const waited = restarts([
      { run: 1, agents: ["a"], fromSteps: 0, startTime: t(0), endTime: t(10) },
      { run: 2, agents: [], fromSteps: 0, startTime: t(20), endTime: t(90) },
      { run: 3, agents: ["a"], fromSteps: 400, startTime: t(95), endTime: null },
    ]);
    expect(waited.filter((m) => m.x === "relative")).toEqual([{ x: "relative", at: 10, label: "runs 2–3" }]);
  });
  test("stand on the axis of a metric where it was at their steps", () => {
    const marks = [{ x: "step", at: 40, label: "run 2" }, { x: "time", at: 7, label: "run 2" }, { x: "step", at: 5, label: "run 3" }];
    expect(restartsOver("epoch", marks, { x: [10, 20, 50], y: [1, 2, 5] })).toEqual([
      { x: "epoch", at: 2, label: "run 2" },
      { x: "epoch", at: 1, label: "run 3" },
    ]);
    expect(restartsOver("epoch", marks, { x: [], y: [] })).toEqual([]);
  });
  test("at one place have one mark", () => {
    const t = (s: number) => new Date(1_700_000_000_000 + s * 1000).toISOString();
    const run = (n: number, fromSteps: number) => ({ run: n, agents: ["a"], fromSteps, startTime: t(10 * n), endTime: t(10 * n + 5) });
    const all = restarts([run(1, 0), run(2, 40), run(3, 40), run(4, 40), run(5, 90), run(6, 40)]);
    expect(all.filter((m) => m.x === "step")).toEqual([
      { x: "step", at: 40, label: "runs 2–4, 6" },
      { x: "step", at: 90, label: "run 5" },
    ]);
    expect(all.filter((m) => m.x === "time").length).toBe(5);
  });
});

describe("the timeline", () => {
  const fact = (sequence: number, type: string, trial?: number) => ({ sequence, type, at: new Date(1_000_000 + sequence * 1000).toISOString(), ...(trial ? { trial } : {}) });
  const history = [fact(1, "experiment_created"), fact(2, "run_started", 1), fact(3, "run_started", 2), fact(4, "allocation_placed", 1), fact(6, "allocation_closed", 1), fact(7, "run_ended", 1), fact(8, "allocation_placed", 2), fact(9, "run_started", 1), fact(11, "allocation_placed", 1)];
  const at = (n: number) => 1_000_000 + n * 1000;
  const bar = (trial: number, from: number, to: number | null, more: Partial<Held> = {}): Held => ({ trial, run: null, on: [], from, to, ended: "", ...more });
  test("shows when runs held slots, and not when they waited for them", () => {
    expect(held(history)).toEqual([bar(1, at(4), at(6)), bar(2, at(8), null), bar(1, at(11), null)]);
    expect(held(history, 5)).toEqual([bar(1, at(4), null)]);
    const nowhere = { ...fact(5, "allocation_placed", 1), on: [] };
    expect(held([fact(4, "allocation_placed", 1), nowhere])).toEqual([bar(1, at(4), at(5), { ended: "LOST" })]);
  });
  const vm = (...slots: number[]) => ({ agent: "vm2", slots });
  const placed = (n: number, trial: number, run: number, on: Held["on"]) => ({ ...fact(n, "allocation_placed", trial), run, on });
  const closed = (n: number, trial: number, why: string) => ({ ...fact(n, "allocation_closed", trial), why });
  const gang = [vm(1), { agent: "vm10", slots: [0] }];
  const runs = held([placed(1, 1, 1, [vm(0)]), placed(2, 2, 1, gang), placed(3, 3, 1, [{ agent: "vm2", slots: [] }]), closed(4, 1, "failed"), placed(5, 1, 2, [vm(0)]), placed(6, 4, 1, [{ agent: "vm2", slots: [] }]), closed(7, 1, "completed"), { ...fact(8, "trial_ended", 2), state: "CANCELED" }]);
  test("gives each run its own state", () => {
    const states = new Map([[1, "STATE_COMPLETED"], [2, "STATE_CANCELED"], [3, "STATE_ACTIVE"], [4, "STATE_ACTIVE"]]);
    expect(withStates(runs, states).map((h) => [h.trial, h.run, h.state])).toEqual([[1, 1, "FAILED"], [2, 1, "CANCELED"], [3, 1, "RUNNING"], [1, 2, "COMPLETED"], [4, 1, "RUNNING"]]);
    const untold = [bar(1, at(1), at(2)), bar(1, at(3), at(4))];
    expect(withStates(untold, states).map((h) => h.state)).toEqual(["ENDED", "COMPLETED"]);
    const stopped = [1, 1, 3].map((trial, i) => bar(trial, at(i), at(i + 1), { ended: "STOPPED" }));
    expect(withStates(stopped, states).map((h) => h.state)).toEqual(["STOPPED", "COMPLETED", "STOPPED"]);
  });
  test("has a lane for each slot of each agent, and lanes for runs without slots at the end", () => {
    const shown = lanes(runs, at(20));
    expect(shown.lanes).toEqual([{ agent: "vm2", slot: 0 }, { agent: "vm2", slot: 1 }, { agent: "vm10", slot: 0 }, { agent: "", slot: null }, { agent: "", slot: null }]);
    expect(shown.bars.map((b) => [b.trial, b.run, b.lane, b.agent, b.slot])).toEqual([[1, 1, 0, "vm2", 0], [2, 1, 1, "vm2", 1], [2, 1, 2, "vm10", 0], [3, 1, 3, "vm2", null], [1, 2, 0, "vm2", 0], [4, 1, 4, "vm2", null]]);
    const old = lanes(held(history), at(20)); // facts that do not say where
    expect([old.bars.map((b) => b.lane), old.lanes.length]).toEqual([[0, 0, 1], 2]);
    expect(lanes([], 0)).toEqual({ bars: [], lanes: [] });
  });
  test("names what is hovered: run, state, place, times of the settings, how long", () => {
    const from = Date.UTC(2026, 0, 2, 3, 4, 5);
    const run = (n: number, state: string, to: number | null) => ({ ...bar(7, from, to, { run: n, on: gang }), state });
    const first = "run 1 FAILED on vm2 slot 1; vm10 slot 0 from 2026-01-02 03:04:05Z to 2026-01-02 03:05:06Z (1 min 1 s)";
    expect(heldText("7", [run(1, "FAILED", from + 61_000)], 0, "utc")).toBe(`Trial 7: ${first}`);
    expect(heldText("7", [run(1, "FAILED", from + 61_000), { ...run(2, "RUNNING", null), on: [vm(0, 1)] }], from + 9000, "utc")).toBe(`Trial 7: ${first}; run 2 RUNNING on vm2 slots 0, 1 since 2026-01-02 03:04:05Z (9 s so far)`);
    expect(heldText("7", [1, 2, 3, 4].map((n) => run(n, "LOST", from + 15_000)), 0, "utc")).toMatch(/^Trial 7: 4 runs, 1 min 0 s in all; the last: run 2 LOST on /);
    expect(heldText("8", [], 0, "utc")).toBe("");
  });
});

describe("of very many metrics", () => {
  const info = (name: string, seconds: number, group = "training", kind: "number" | "matrix" = "number") => ({ group, name, kind, trials: 1, reports: 1, lastReport: new Date(1e12 + seconds * 1000).toISOString() });
  // Metric 7 * i % 1000 is reported at second i.
  const thousand = Array.from({ length: 1000 }, (_, i) => info(`m${(7 * i) % 1000}`, i)).sort((a, b) => (a.name < b.name ? -1 : 1));
  test("the newest are those that were reported last, not those of the first names", () => {
    const { shown, found } = drawn(newestFirst(thousand), [], "", 12);
    expect(shown).toEqual(Array.from({ length: 12 }, (_, i) => `training.m${(7 * (999 - i)) % 1000}`));
    expect(found).toBe(1000);
  });
  test("those that are pinned come first and count for none of the twelve", () => {
    const { shown, found } = drawn(newestFirst(thousand), ["training.m0", "training.gone"], "", 12);
    expect(shown.length).toBe(13);
    expect(shown[0]).toBe("training.m0");
    expect(found).toBe(999);
  });
  test("a search finds the old ones too", () => expect(drawn(newestFirst(thousand), [], "M7 train", 200).shown).toContain("training.m7"));
  test("times are compared as times, and in one report names decide", () => {
    const rows = [{ ...info("b", 0), lastReport: "2026-11-24T10:00:00.5Z" }, { ...info("a", 0), lastReport: "2026-11-24T10:00:00.50Z" }, { ...info("c", 0), lastReport: "2026-11-24T10:00:01Z" }];
    expect(newestFirst(rows)).toEqual(["training.c", "training.a", "training.b"]);
  });
  test("those of the search come before the others, however many there are", () => {
    const all = [...thousand, info("loss", 1, "validation"), info("cm", 1, "validation", "matrix")];
    expect(goalsFirst(all, ["validation.loss", "validation.gone", "validation.cm"], "").slice(0, 2)).toEqual(["validation.loss", "training.m0"]);
    expect(goalsFirst(all, ["validation.loss"], "")).toHaveLength(1001);
    expect(goalsFirst(all, ["validation.loss"], "M99 train")).toEqual(expect.arrayContaining(["training.m99", "training.m990"]));
    expect(goalsFirst(all, ["validation.loss"], "m99")).not.toContain("validation.loss");
  });
  test("each of the same report can be the X axis", () => {
    const axes = metricAxes("step", "training.m7", [...thousand, info("loss", 1, "validation"), info("cm", 1, "training", "matrix")]);
    expect(axes).toHaveLength(999);
    expect(axes).toContain("metric:m999");
    for (const other of ["metric:m7", "metric:loss", "metric:cm"]) expect(axes).not.toContain(other);
    expect(metricAxes("metric:gone", "training.m7", thousand)[0]).toBe("metric:gone");
  });
  test("what is no number and what hosts report is not among them", () => expect(newestFirst([info("x", 1, "system"), info("y", 2, "training", "matrix")])).toEqual([]));
});

test("a slot in one word", () => {
  const agent = { draining: false, enabled: true, state: "alive" };
  const slot = { draining: false, enabled: true, container: null };
  const held = { ...slot, container: { id: "3.1" } as never };
  expect([slotState(agent, slot), slotState(agent, held)]).toEqual(["free", "busy"]);
  expect([slotState(agent, { ...held, enabled: false }), slotState({ ...agent, enabled: false }, slot)]).toEqual(["disabled", "disabled"]);
  // The server also reports a draining agent as not enabled.
  const draining = { ...agent, draining: true, enabled: false };
  expect([slotState(draining, held), slotState(draining, slot)]).toEqual(["draining", "draining"]);
  const away = { ...agent, state: "away" };
  expect([slotState(away, held), slotState(away, slot)]).toEqual(["busy", "disabled"]);
});

test("what holds a slot is told as far as one may see it", () => {
  const slot = (id: string) => ({ container: id === "" ? null : ({ id } as never) });
  expect(["", "7.2", "hidden-0", "hidden-aux-1", "cmd-3.1"].map((id) => holderOf(slot(id)))).toEqual([
    { kind: "none", id: "" },
    { kind: "trial", id: "7" },
    { kind: "hidden", id: "" },
    { kind: "hidden", id: "" },
    { kind: "task", id: "cmd-3" },
  ]);
  expect([heldBy(slot("7.2"), "ada"), heldBy(slot("7.2"), ""), heldBy(slot("hidden-0"), ""), heldBy(slot(""), "")]).toEqual(["trial 7 of ada", "trial 7", "of another", ""]);
  expect((["free", "busy", "draining", "disabled"] as const).map(slotWord)).toEqual(["", "busy", "drain", "off"]);
});

test("structured metrics stand by name and group, and each report has a name of its own", () => {
  const report = (row: number, group: string, totalBatches: number, metrics: object) => ({ row, group, totalBatches, metrics: metrics as Record<string, unknown> });
  const all = [report(1, "training", 1, { cm: [1] }), report(2, "validation", 1, { cm: [2], table: [3] }), report(3, "training", 2, { cm: [4] }), report(4, "training", 2, { cm: [5] }), report(5, "validation", 2, {})];
  const found = steps(["cm", "table"], all);
  expect(found.map((x) => [x.name, x.title, x.reports.map((r) => r.row)])).toEqual([
    ["cm", "training.cm", [1, 3, 4]],
    ["cm", "validation.cm", [2]],
    ["table", "table", [2]],
  ]);
  expect(stepNames(found[0]!.reports)).toEqual(["1", "2@3", "2@4"]);
});

test("devices of a slot are named as people do", () => {
  expect(deviceTitle("gpu01/0/gpu_percent")).toBe("GPU 0 of gpu01, percent");
  expect(deviceTitle("a/b/12/gpu_memory_bytes")).toBe("GPU 12 of a/b, memory, bytes");
  expect(deviceTitle("vm/1/utilization_percent")).toBe("Slot 1 of vm, percent");
  for (const other of ["vm/1/else", "gpu_percent", "vm/x/gpu_percent", "a/1/constructor"]) expect(deviceTitle(other)).toBe(other);
});

describe("what is asked for", () => {
  test("an X axis that there is not is the usual one", () => {
    expect(["step", "time", "relative", "epoch", "metric:a b", "metric:", "", "Step", "metric", "steps"].map((x) => axisOf(x))).toEqual(["step", "time", "relative", "epoch", "metric:a b", "metric:", ...Array(4).fill("step")]);
    expect(axisOf("", "time")).toBe("time");
  });
  test("the first rows of an answer of which a part is there", () => {
    const rows = [{ id: 1, hparams: { a: '}]"\\', b: [1, [2]] } }, { id: 2, why: "a \"quote\", {" }, { id: 3 }];
    const text = JSON.stringify({ trials: rows });
    expect(firstOf(text, "trials", 2)).toEqual(rows.slice(0, 2));
    const end = text.indexOf(',{"id":3');
    for (let i = 0; i < text.length; ++i) expect(firstOf(text.slice(0, i), "trials", 2)).toEqual(i < end ? null : rows.slice(0, 2));
    expect(firstOf(text, "trials", 4)).toBeNull(); // the list has fewer elements
    expect(firstOf('{"trials":[]}', "trials", 1)).toBeNull();
    expect(firstOf('{"other":[{}]}', "trials", 1)).toBeNull();
  });
});

test("the aims of a search are read as the searcher reads them", () => {
  const of = (searcher: Record<string, unknown>, searcherMetric = "") => ({ searcherMetric, config: { searcher } });
  expect(goals(of({ metric: "loss" }, "loss"))).toEqual(["loss"]);
  expect(goals(of({ metrics: ["loss", "acc"] }))).toEqual(["loss", "acc"]);
  expect(goals(of({ metric: ["loss", "acc"] }))).toEqual(["loss", "acc"]);
  expect(wanted(of({ metrics: ["loss", "acc"], smaller_is_better_each: [true, false] }))).toBe("smallest loss and largest acc");
  expect(wanted(of({ metrics: ["loss", "acc"], smaller_is_better: [false, true] }))).toBe("largest loss and smallest acc");
  expect(wanted(of({ metrics: ["loss", "acc"], smaller_is_better: false }))).toBe("largest loss and largest acc");
});

test("a checkpoint has the metrics of its search from the validation at its step", () => {
  const at = (avgMetrics: Record<string, unknown>) => ({ training: { validationMetrics: { avgMetrics } } });
  expect([valueAt(at({ loss: 0.5, size: "NaN" }), "loss"), valueAt(at({ loss: 0.5, size: "NaN" }), "size"), valueAt(at({ loss: 0.5 }), "acc"), valueAt({ training: {} }, "loss")]).toEqual([0.5, NaN, null, null]);
});

test("importance is asked for of all trials, or of those that pass a brush", () => {
  const of = (metric: string, trials: number[] | null) => asked("/i", importanceQuery(metric, trials));
  expect([of("", null), of("loss", null), of("", [3, 5]), of("loss", [3])]).toEqual(["/i", "/i?metric=loss", "/i?trials=3,5", "/i?metric=loss&trials=3"]);
});

describe("the rungs of a search", () => {
  const trial = (id: number, metric: number, fate: RungTrial["fate"], needed?: MetricValue) => ({ trial: id, metric, fate, ...(needed === undefined ? {} : { needed }) });
  const rung = { needed: 0.95 };
  test.each([
    [trial(1, 0.9, "went on", 0.97), true, "0.9, went on; bound: at most 0.97"],
    [trial(2, 1.2, "stopped", 0.95), false, "1.2, stopped; bound: at least 0.95"],
    [trial(3, 0.9, "waits"), true, "0.9, waits; last bound: at most 0.95"],
    [trial(4, 0.5, "finished"), true, "0.5, finished"],
    [trial(5, 1.2, "stopped", "Infinity"), true, "1.2, stopped"],
  ])("say by which value against which: %#", (t, smallerIsBetter, text) => expect(fateText(t, rung, { smallerIsBetter })).toBe(text));
  test("have no bound before a decision", () => {
    expect(fateText(trial(1, 0.97, "went on"), { needed: "NaN" }, { smallerIsBetter: true })).toBe("0.97, went on; no bound is known");
    expect(newestText({ needed: "NaN" }, { smallerIsBetter: true })).toBe("");
    expect(newestText(rung, { smallerIsBetter: false })).toBe(", last bound: at least 0.95");
  });
});
