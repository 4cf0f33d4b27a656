import { describe, expect, test } from "vitest";
import { brushed, celled, dimension, noBrushes, passes, readBrushes, value, withBrushes, writeBrushes, type Row } from "./brush";

const row = (id: number, hp: Record<string, unknown>, best: number | string = id): Row => ({ id, hp, hparams: {}, totalBatches: id * 1000, best: { metric: best }, latest: null, metrics: { "training.a,b": { last: id, min: 0, max: 9 } } }) as unknown as Row;
const kept = (rows: Row[], text: string) => rows.filter((t) => passes(t, readBrushes(text))).map((t) => t.id);

describe("brushes", () => {
  test("of the issue", () => {
    expect(readBrushes("lr:0.001..0.01")).toEqual([{ key: "lr", from: 0.001, to: 0.01 }]);
    expect(readBrushes("lr:1e-4..1e-2;opt:adam..sgd;best:-3..-1.5")).toEqual([
      { key: "lr", from: 1e-4, to: 1e-2 },
      { key: "opt", from: "adam", to: "sgd" },
      { key: "best", from: -3, to: -1.5 },
    ]);
    expect(readBrushes("lr:0.5;x..y;")).toEqual([]);
    expect(noBrushes("lr:0.5;k:1..2;x..y;")).toEqual(["lr:0.5", "x..y"]);
    expect(readBrushes("lr:0.4..0.2")).toEqual([{ key: "lr", from: 0.2, to: 0.4 }]);
    expect(readBrushes("act:relu..9")).toEqual([{ key: "act", from: "9", to: "relu" }]); // words as on the axis, where numbers are first
    expect(readBrushes("opt:sgd..adam")).toEqual([{ key: "opt", from: "adam", to: "sgd" }]);
    expect(readBrushes("lr:..0.2;best:3..")).toEqual([{ key: "lr", from: -Infinity, to: 0.2 }, { key: "best", from: 3, to: Infinity }]);
    expect(writeBrushes(readBrushes("lr:..0.2"))).toBe("lr:-Infinity..0.2");
    expect(readBrushes(":1..2")).toEqual([{ key: "", from: 1, to: 2 }]); // an empty name is allowed
  });
  test("are read again whatever stands in names and values", () => {
    const all = [
      { key: "a:b;c", from: "x..y", to: "z;:\\" },
      { key: "back\\slash", from: "...", to: "http://a/.." },
      { key: "m.validation.val/loss, x", from: -0.5, to: 1e308 },
      { key: "hp.best", from: 1, to: 2 },
      { key: "😀 %2F #", from: "'\"", to: "שלום" },
    ];
    expect(readBrushes(writeBrushes(all))).toEqual(all);
  });
  test("keep numbers, words, and words that look like numbers", () => {
    const rows = [row(1, { n: "1", k: 1, opt: "adam" }), row(2, { n: "10", k: "x", opt: "sgd" }), row(3, { n: "9", opt: "sgd" })];
    expect(kept(rows, "n:1..9")).toEqual([1, 3]);
    expect(kept(rows, "k:0..5")).toEqual([1]); // a missing value passes no brush
    expect(kept(rows, "opt:sgd..sgd;best:2..2")).toEqual([2]);
    expect(kept(rows, "m.training.a,b:2..3")).toEqual([2, 3]);
    expect(kept([row(1, {}, "NaN"), row(2, {}, 1)], "best:0..5")).toEqual([2]);
  });
  test("of choices keep what lies between, whatever is read again from the address", () => {
    const rows = ["-5", "-3", "-10", "none", "1e-3", "0x10"].map((n, i) => row(i + 1, { n }));
    const d = dimension(rows, "hp.n"); // -10 -5 -3 1e-3 0x10 none
    const drawn = (from: number, to: number) => kept(rows, writeBrushes([brushed(d, from / 5, to / 5)!]));
    expect(drawn(1, 2)).toEqual([1, 2]);
    expect(drawn(3, 3)).toEqual([5]);
    expect(drawn(4, 4)).toEqual([6]);
    expect(drawn(2, 5)).toEqual([2, 4, 5, 6]);
    expect(kept(rows, "n:-3..-5")).toEqual([1, 2]);
  });
  test("a hyperparameter that is called best is not the best", () => {
    const rows = [row(1, { best: 50 }), row(2, { best: 1 })];
    const b = brushed(dimension(rows, "hp.best"), 0.5, 1)!;
    expect(b.key).toBe("hp.best");
    expect(rows.filter((t) => passes(t, [b])).map((t) => t.id)).toEqual([1]);
  });
  test("hold what they were drawn over, to its ends", () => {
    const rows = [0.12344444, 0.5, 0.98765432].map((x, i) => row(i + 1, { x }));
    const d = dimension(rows, "hp.x");
    expect(rows.every((t) => passes(t, [brushed(d, 0, 1)!]))).toBe(true);
    const steps = [1_000_001, 1_000_050, 1_000_100].map((x, i) => row(i + 1, { x }));
    const some = brushed(dimension(steps, "hp.x"), 0.4, 0.6)!;
    expect(steps.filter((t) => passes(t, [some])).map((t) => t.id)).toEqual([2]);
  });
  test("of choices hold those whose places lie between", () => {
    const rows = ["a", "b", "c"].map((opt, i) => row(i + 1, { opt }));
    const d = dimension(rows, "hp.opt");
    expect(brushed(d, 0.4, 1)).toEqual({ key: "opt", from: "b", to: "c" });
    expect(brushed(d, 0.1, 0.4)).toBeNull();
    const one = dimension([row(1, { opt: "a" })], "hp.opt");
    expect(brushed(one, 0.3, 0.7)).toEqual({ key: "opt", from: "a", to: "a" });
  });
  test("one axis has one", () => {
    const all = readBrushes("x:0..1;y:0..1");
    expect(withBrushes(all, ["hp.x"], [{ key: "x", from: 2, to: 3 }])).toEqual([all[1], { key: "x", from: 2, to: 3 }]);
    expect(withBrushes(all, ["hp.y"], [null])).toEqual([all[0]]);
  });
});

describe("an axis", () => {
  test("of lists, maps and mixed kinds has choices", () => {
    const rows = [row(1, { layers: [1, 2] }), row(2, { layers: { a: 1 } }), row(3, { layers: 7 }), row(4, {})];
    const d = dimension(rows, "hp.layers");
    expect(d.choices).toEqual(expect.arrayContaining(["[1,2]", '{"a":1}', "7"]));
    expect(rows.map((t) => d.place(t) === null)).toEqual([false, false, false, true]);
    expect(value(rows[3]!, "hp.toString")).toBeNull();
  });
  test("of texts and numbers has its choices in the order of a sorted column", () => {
    for (const [values, expected] of [
      [[0.01, "auto", 0.5, 0.001, 0.25, 0.1], ["0.001", "0.01", "0.1", "0.25", "0.5", "auto"]],
      [["-5", "-3", "none", "-10"], ["-10", "-5", "-3", "none"]],
      [["1e-3", "5", "1e-2", "Adam", "adam"], ["1e-3", "1e-2", "5", "Adam", "adam"]],
      [["b", "", 2, "a"], ["2", "a", "b", ""]],
    ] as [unknown[], string[]][])
      expect(dimension(values.map((n, i) => row(i + 1, { n })), "hp.n").choices).toEqual(expected);
  });
  test("of nothing but NaN, or of the largest numbers, has places or none", () => {
    const nan = dimension([row(1, {}, "NaN"), row(2, {}, "NaN")], "best");
    expect(nan.place(row(1, {}, "NaN"))).toBeNull();
    const rows = [row(1, {}, 1e308), row(2, {}, -1e308), row(3, {}, -0)];
    expect(rows.map(dimension(rows, "best").place)).toEqual([1, 0, 0.5]);
  });
});

describe("a side of a heat map", () => {
  const side = (values: unknown[]) => {
    const rows = values.map((n, i) => row(i + 1, { n }));
    const d = celled(dimension(rows, "hp.n"), rows, 8);
    return { cells: d.cells, of: rows.map(d.cell), choices: d.choices };
  };
  test("of few whole numbers has one cell for each", () => {
    expect(side([3, 1, 2, 3])).toEqual({ cells: 3, of: [2, 0, 1, 2], choices: ["1", "2", "3"] });
    expect(side([16, 32, 1024])).toEqual({ cells: 3, of: [0, 1, 2], choices: ["16", "32", "1024"] });
    expect(side([7, null])).toEqual({ cells: 2, of: [0, 1], choices: ["7", "null"] });
    expect(side([7, undefined])).toEqual({ cells: 1, of: [0, null], choices: ["7"] });
  });
  test("of other numbers has equal stretches, of choices one cell for each", () => {
    expect(side([0, 0.5, 1])).toEqual({ cells: 8, of: [0, 4, 7], choices: null });
    expect(side([0, 1, 2, 3, 4, 5, 6, 7, 8]).cells).toBe(8);
    expect(side(["b", "a"])).toEqual({ cells: 2, of: [1, 0], choices: ["a", "b"] });
  });
});
