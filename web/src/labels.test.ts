import { describe, expect, test } from "vitest";
import { axisTitle, inRows, labels, shortened, spotText, subject, tickTexts, timeTexts } from "./labels";
import { fitting, logarithmic, niceTicks } from "./scales";

const measure = (text: string) => 7 * Array.from(text).length; // pixels

describe("labels of an axis", () => {
  test("lose their middle where they are too wide", () => {
    expect(shortened("resnet50-v1-large", 200, measure)).toBe("resnet50-v1-large");
    expect(shortened("resnet50-v1-large", 63, measure)).toBe("resn…arge");
    expect(shortened("😀😀😀😀", 21, measure)).toBe("😀…😀");
    expect(shortened("abc", 1, measure)).toBe("…");
  });
  test("of two choices are never one", () => {
    expect(labels(["resnet50-v1-large", "resnet50-v2-large"], 63, measure)).toEqual(["r…1-large", "r…2-large"]);
    for (const all of [
      ["resnet50-v1-large", "resnet50-v2-large", "resnet50-v2-large-pretrained", "vit"],
      ["a-very-long-name-with-x-in-the-middle-of-it", "a-very-long-name-with-y-in-the-middle-of-it", "a-very-long-name-with-yy-in-the-middle-of-it", "a-very-long-name-with"],
      Array.from({ length: 30 }, (_, i) => `configs/experiments/deep/${i % 6}/model-of-the-year/${i}/weights-of-all.yaml`),
    ])
      for (const room of [42, 63, 100, 150]) {
        const shown = labels(all, room, measure);
        expect(new Set(shown).size, `${room}: ${shown.join(", ")}`).toBe(all.length);
        for (const t of shown) expect(measure(t)).toBeLessThanOrEqual(room);
      }
    expect(labels(["same", "same"], 21, measure)).toEqual(["s…e", "s…e"]);
  });
});

describe("ticks", () => {
  test.each([
    [1.2345e-5, 1.2349e-5],
    [0.991, 0.9919],
    [1000.5, 1001.5],
    [1e9, 1e9 + 3],
    [-0.30001, -0.3],
    [123456.1, 123456.2],
  ])("from %s to %s tell one another apart, and say where they are", (low, high) => {
    const ticks = niceTicks(low, high, 5);
    const texts = tickTexts(ticks);
    expect(new Set(texts).size).toBe(ticks.length);
    ticks.forEach((t, i) => expect(Math.abs(Number(texts[i]) - t)).toBeLessThan((high - low) / 100));
  });
  test("have no more digits than they need", () => {
    expect(tickTexts(niceTicks(0.991, 0.9919, 5))).toEqual(["0.991", "0.9912", "0.9914", "0.9916", "0.9918"]);
    expect(tickTexts(niceTicks(1.2345e-5, 1.2349e-5, 5))).toEqual(["1.2345e-5", "1.2346e-5", "1.2347e-5", "1.2348e-5", "1.2349e-5"]);
    expect(tickTexts(niceTicks(0, 1, 5))).toEqual(["0", "0.2", "0.4", "0.6", "0.8", "1"]);
    expect(tickTexts(logarithmic(1e-5, 1).ticks)).toEqual(["1e-5", "0.0001", "0.001", "0.01", "0.1", "1"]);
    expect(tickTexts([null, 1, NaN])).toEqual(["", "1", "NaN"]);
    for (const values of [[5e-324, 1e-323], [-1e308, 1e308], [3, 3]]) expect(tickTexts(fitting(values).ticks).every((t) => t.length < 26)).toBe(true);
  });
});

describe("times on an axis", () => {
  const at = (text: string) => Date.parse(text) / 1000;
  test("are written as everywhere, with the date where it is another", () => {
    expect(timeTexts([at("2026-11-29T09:00:00Z"), at("2026-11-29T21:00:00Z"), at("2026-11-30T09:00:00Z")], "utc")).toEqual(["09:00\n2026-11-29", "21:00", "09:00\n2026-11-30"]);
    expect(timeTexts([at("2026-11-29T00:00:00Z"), at("2026-11-30T00:00:00Z")], "utc")).toEqual(["2026-11-29", "2026-11-30"]);
    expect(timeTexts([at("2026-11-29T09:00:00Z"), at("2026-11-29T09:00:30Z")], "utc")).toEqual(["09:00:00\n2026-11-29", "09:00:30"]);
    expect(timeTexts([at("2026-11-29T09:00:00Z"), at("2026-11-29T09:00:00.5Z")], "utc")).toEqual(["09:00:00.0\n2026-11-29", "09:00:00.5"]);
    expect(timeTexts([], "utc")).toEqual([]);
    expect(timeTexts([at("2026-11-29T09:00:00Z")], "utc")).toEqual(["09:00:00\n2026-11-29"]);
  });
});

test("an axis has a title in words, with its unit", () => {
  expect(["step", "time", "relative", "epoch", "metric:acc", "metric: "].map(axisTitle)).toEqual(["step", "", "time it ran, in s", "epoch", "acc", "' '"]);
});

test("texts that would stand over one another have rows of their own", () => {
  const at = (...froms: number[]) => inRows(froms.map((from) => ({ from, to: from + 10 })));
  expect([at(), at(0, 10, 20), at(0, 5, 10, 12, 15)]).toEqual([[], [0, 0, 0], [0, 1, 0, 2, 1]]);
});

test("what the pointer is on, in words", () => {
  expect(spotText("trial 7", "step", 1200, 0.123456789, "utc")).toBe("Trial 7: step 1200, 0.123457");
  expect(spotText("lr=0.1 (3)", "metric:acc", 0.5, 1612660001, "utc")).toBe("lr=0.1 (3): acc 0.5, 1612660001");
  expect(spotText("trial 7", "relative", 61.5, 2, "utc")).toBe("Trial 7: after 61.5 s, 2");
  expect(spotText("used", "time", Date.parse("2026-11-29T09:00:00Z") / 1000, 3, "utc")).toBe("used: 2026-11-29 09:00:00Z, 3");
  expect(subject("trial 12")).toBe("Trial 12");
});
