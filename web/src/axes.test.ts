import { describe, expect, test } from "vitest";
import { drawAxes, frame, keyOf, marks } from "./axes";
import type { Dimension } from "./brush";
import { fitting, linear } from "./scales";

const measure = (text: string) => 7 * text.length; // pixels
const ink = { text: "text", line: "line", faint: "faint", accent: "accent", onAccent: "" };
const numbers = (title: string, ...values: number[]): Dimension => ({ key: title, title, scale: fitting(values), choices: null, place: () => null, beyond: () => null, label: () => "" });
const choices = (title: string, ...all: string[]): Dimension => ({ key: title, title, scale: linear(0, 1), choices: all, place: () => null, beyond: () => null, label: () => "" });

/** Replaces a canvas, and records what is written and filled. */
function paper() {
  const texts: { text: string; x: number; align: string }[] = [];
  const fills: string[] = [];
  const c = {
    fillStyle: "",
    textAlign: "",
    fillText: (text: string, x: number) => texts.push({ text, x, align: c.textAlign }),
    fillRect: () => fills.push(c.fillStyle),
    ...Object.fromEntries(["beginPath", "moveTo", "lineTo", "stroke", "save", "restore", "translate", "rotate"].map((name) => [name, () => undefined])),
  };
  return { c: c as unknown as CanvasRenderingContext2D, texts, fills };
}

const nets = ["resnet50-v1-large", "resnet50-v2-large", "resnet50-v3-large-pretrained-on-everything-there-is", "vit"];

describe("beside a chart", () => {
  test.each([1200, 600, 320])("words of %s pixels stand in it, differ, and leave room for the title", (w) => {
    const [x, y] = [choices("net", ...nets), choices("net", ...nets)];
    const f = frame(w, 320, x, y, true, 0, measure);
    const { c, texts } = paper();
    drawAxes(c, f, ink, x, y, measure);
    for (const all of [f.x, f.y]) expect(new Set(all.map((m) => m.text)).size).toBe(4);
    const beside = texts.filter((t) => t.align === "right" && t.x === f.left - 6);
    expect(beside.length).toBe(4);
    for (const t of beside) expect(t.x - measure(t.text), t.text).toBeGreaterThanOrEqual(22); // the title needs the room left of this
    expect(f.width).toBeGreaterThan(w / 2);
    expect(f.height).toBeGreaterThan(150);
    if (!f.upright) for (const m of f.x) expect(measure(m.text)).toBeLessThan(f.width / 4);
  });
  test("numbers of a narrow chart do not stand on one another", () => {
    const f = frame(300, 320, numbers("lr", 1.2345e-5, 1.2349e-5), numbers("loss", 0.991, 0.9919), false, 0, measure);
    expect(f.x.length).toBeGreaterThan(1);
    for (let i = 1; i < f.x.length; ++i) expect((f.x[i]!.at - f.x[i - 1]!.at) * f.width).toBeGreaterThan(measure(f.x[i]!.text));
  });
  test.each([2, 3, 4].flatMap((n) => [1200, 600, 420].flatMap((w) => [true, false].map((cells) => [n, w, cells] as const))))("%s long words of %s pixels stand beside each other (in cells: %s)", (n, w, cells) => {
    const x = choices("net", ...Array.from({ length: n }, (_, i) => `${i} and a name that is as long as a chart is wide, or even longer than that, which some are, are they not? ${i}`));
    const f = frame(w, 320, x, numbers("loss", 0.991, 0.9919), cells, 0, measure);
    const { c, texts } = paper();
    drawAxes(c, f, ink, x, x, measure);
    if (f.upright) return expect(w).toBeLessThan(1200);
    const under = texts.filter((t) => t.align === "center" && f.x.some((m) => m.text === t.text)).sort((a, b) => a.x - b.x);
    expect(under.length).toBe(n);
    under.forEach((t, i) => {
      expect(t.x - measure(t.text) / 2, t.text).toBeGreaterThanOrEqual(0);
      expect(t.x + measure(t.text) / 2, t.text).toBeLessThanOrEqual(w);
      if (i > 0) expect(t.x - measure(t.text) / 2).toBeGreaterThanOrEqual(under[i - 1]!.x + measure(under[i - 1]!.text) / 2);
    });
  });
  test("hundreds of choices have a word here and there", () => {
    const d = choices("seed", ...Array.from({ length: 400 }, (_, i) => `seed ${i}`));
    const f = frame(1200, 320, d, d, true, 0, measure);
    expect(f.x.length * 14).toBeLessThan(1200);
    expect(f.y.length * 14).toBeLessThan(320);
    expect(marks(d, true).length).toBe(400);
  });
});

describe("the key of colours", () => {
  const shown = (d: Dimension, w: number, none = false) => {
    const { c, texts, fills } = paper();
    const key = keyOf(d, w, none, measure);
    key.draw(c, ink, (p) => `colour ${p}`);
    return { texts: texts.map((t) => t.text), fills, tall: key.tall };
  };
  test("names each choice beside its colour", () => {
    const { texts, fills } = shown(choices("opt", "adam", "sgd", "lion"), 1200, true);
    expect(texts).toEqual(["opt:", "adam", "sgd", "lion", "no value"]);
    expect(fills).toEqual(["colour 0", "colour 0.5", "colour 1", "accent"]);
  });
  test("is a scale from the lowest to the highest number", () => {
    const { texts, fills } = shown(numbers("loss", 0.991, 0.9919), 1200);
    expect(texts.slice(0, 3)).toEqual(["loss:", "0.991", "0.9919"]);
    expect([fills[0], fills.at(-1)]).toEqual(["colour 0", "colour 1"]);
    expect(shown(numbers("bs", 8, 1024), 1200).texts.slice(0, 3)).toEqual(["bs:", "8", "1024"]);
    expect(shown(numbers("lr", 1e-5, 1), 1200).texts).toContain("(logarithmic)");
  });
  test("takes more lines where it has to, and is a scale where even those are too few", () => {
    expect(shown(choices("net", ...nets), 400).tall).toBeGreaterThan(shown(choices("net", ...nets), 1200).tall);
    const many = shown(choices("seed", ...Array.from({ length: 400 }, (_, i) => `seed ${i}`)), 1200);
    expect(many.texts).toEqual(["seed:", "seed 0", "seed 399", "(400 choices)"]);
  });
});
