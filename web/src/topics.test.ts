import { describe, expect, test } from "vitest";
import { asked, elements, experimentOf, isTopic } from "./topics";

describe("topics of the stream", () => {
  test("are those that the server knows", () => {
    for (const good of ["experiments", "cluster", "experiment/7", "logs/12", "series/7/validation/loss", "series/7/validation/val/loss", "series/1/training/a.b c%2F#'\"😀", "series/7/training/a,b", "series/7/training/"]) expect(isTopic(good), good).toBe(true);
    for (const bad of ["", "experiment/0", "experiment/", "experiment/1e+23", "logs/NaN", "logs/-1", "series/7", "series/7/loss", "series/7//loss", "agents"]) expect(isTopic(bad), bad).toBe(false);
  });
  test("one that is wrong does not take the others with it", () => expect(asked(["experiments", "experiment/0", "cluster"])).toEqual(["cluster", "experiments"]));
  test("may have commas and percent signs in their names", () => expect(elements(["training.a,b", "training.50%2C", "validation.loss"])).toBe("training.a%2Cb,training.50%252C,validation.loss"));
  test("are at most a hundred, and curves give way to lists and logs", () => {
    const many = Array.from({ length: 150 }, (_, i) => `series/7/training/m${i}`);
    const all = asked([...many, "logs/3", "experiment/7", "logs/3"]);
    expect(all.length).toBe(100);
    expect(all.slice(0, 2)).toEqual(["experiment/7", "logs/3"]);
    expect(asked([...many].reverse())).toEqual(asked(many));
  });
  test("of what is seen come before the others, and experiments before all curves", () => {
    const curves = (e: number) => Array.from({ length: 60 }, (_, i) => `series/${e}/training/m${i}`);
    const all = asked([...curves(7), ...curves(12), "experiment/7", "experiment/12"], new Set(curves(12)));
    expect(all.length).toBe(100);
    expect(all).toEqual(expect.arrayContaining([...curves(12), "experiment/7", "experiment/12"]));
    const experiments = Array.from({ length: 60 }, (_, i) => `experiment/${i + 1}`);
    expect(asked([...experiments, ...curves(7)], new Set(curves(7)))).toEqual(expect.arrayContaining(experiments));
  });
  test("that are too long leave room for short ones", () => expect(asked([`series/7/training/${"a".repeat(13_000)}`, "series/7/training/b"])).toEqual(["series/7/training/b"]));
  test("of curves have an experiment", () => expect(["series/7/training/a/b", "experiment/7", "cluster"].map(experimentOf)).toEqual(["experiment/7", "", ""]));
  test("fit into an address", () => {
    const long = Array.from({ length: 100 }, (_, i) => `series/7/training/${"ש".repeat(200)}${i}`);
    expect(encodeURIComponent(asked(long).join(",")).length).toBeLessThan(12_400);
  });
});
