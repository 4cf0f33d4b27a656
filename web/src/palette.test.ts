import { expect, test } from "vitest";
import { offered, type Findable } from "./palette";

test("the palette begins with the experiment of the id, whatever its name and those of others", () => {
  const experiments = Array.from({ length: 40 }, (_, i) => ({ id: String(60 - i), title: `${60 - i} run 3 of 5` }));
  const all: Findable[] = [{ title: "Pause experiment 3" }, ...experiments, { id: "3", title: "3 digits" }];
  const ids = (text: string) => offered(all, text, 12).map((c) => c.id);
  expect(ids("3").slice(0, 3)).toEqual(["3", "39", "38"]);
  expect(ids("3").length).toBe(12);
  expect(ids(" 45 ")).toEqual(["45"]);
  expect(ids("digits")).toEqual(["3"]);
  expect(ids("pause")).toEqual([undefined]);
  expect(offered(all, "", 2)).toEqual(all.slice(0, 2));
});
