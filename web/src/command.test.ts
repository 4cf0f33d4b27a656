import { describe, expect, test } from "vitest";
import { passes, readBrushes, type Row } from "./brush";
import { brushes, listed, piped, quoted, typed } from "./command";
import { asCell, holds, parse } from "./filter";

const of = (where: string, sort = "") => {
  const p = parse(where);
  return { where, conditions: p.ok ? p.conditions : [], sort };
};

describe("the command of a grid", () => {
  test("has the filter as one word, and the order", () => {
    expect(listed("troupe experiment list", of(""))).toBe("troupe experiment list");
    expect(listed("troupe experiment list", of("  "))).toBe("troupe experiment list");
    expect(listed("troupe trial list 7", of("state=ERROR best<0.1 'two words'", "-best"))).toBe("troupe trial list 7 --where 'state=ERROR best<0.1 '\\''two words'\\''' --sort -best");
    expect(listed("troupe trial list 7", of("", "hp.learning rate"))).toBe("troupe trial list 7 --sort 'hp.learning rate'");
  });
  test("is read by a shell as it was meant", () => {
    for (const plain of ["x", "-best", "a=b", "hp.lr", "m.training.val/loss", "50%"]) expect(quoted(plain)).toBe(plain);
    for (const odd of ["", "#", "~", "a b", "$HOME `id` \"q\" \\ \n!*?", "ש\u{1f600}", "x;y", "a|b", "(", "{a,b}"]) expect(quoted(odd)).toBe(`'${odd}'`);
    expect(quoted("don't")).toBe("'don'\\''t'");
    expect(quoted("'")).toBe("''\\'''");
  });
  test("of actors goes through the shell's own words", () => {
    const keys = { id: "actor", rate: "msg_per_s" };
    expect(piped("ps", keys, of(""))).toBe("troupe shell -e ps");
    expect(piped("ps", keys, of("trial rate>0 node='a b'", "-backlog"))).toBe(`troupe shell -e 'ps | where '\\''actor~trial'\\'' '\\''msg_per_s>0'\\'' '\\''node=a b'\\'' | order -backlog'`);
  });
  test("names what brushes keep as conditions", () => {
    expect(brushes([{ key: "lr", from: 0.001, to: 0.01 }, { key: "best", from: 1, to: 1 }, { key: "a b", from: "it's", to: "it's" }], [])).toBe("hp.lr>=0.001 hp.lr<=0.01 best=1 'hp.a b'='it''s'");
  });
  test("keeps the rows that a brush of choices keeps", () => {
    const rowsOf = (values: unknown[]) => values.map((x, i) => ({ id: i + 1, hp: x === undefined ? {} : { x } }) as unknown as Row);
    for (const [values, brush, expected] of [
      [["resnet18", "resnet50", "resnet101", "Vgg16"], "x:resnet101..resnet50", "hp.x!=Vgg16"],
      [["resnet18", "resnet50", "resnet101", "Vgg16", undefined], "x:Vgg16..resnet50", "hp.x!=''"],
      [[10, 50, "word", 2, undefined], "x:10..word", "hp.x!=2"],
      [[0.001, 0.01, 0.1, 0.5, 0.25, "auto"], "x:0.25..auto", "hp.x!=0.001 hp.x!=0.01 hp.x!=0.1"],
      [["-5", "-3", "-10", "none", "two words"], "x:-3..-5", "hp.x!=-10 hp.x!=none hp.x!='two words'"],
      [["a", "b", undefined], "x:b..b", "hp.x=b"],
      [[1, 2, 3], "x:1..2", "hp.x>=1 hp.x<=2"],
    ] as [unknown[], string, string][]) {
      const rows = rowsOf(values);
      const text = brushes(readBrushes(brush), rows);
      expect(text).toBe(expected);
      const kept = rows.filter((t) => of(text).conditions.every((c) => holds(c, () => asCell(t.hp["x"]), [])));
      expect(kept.length).toBeGreaterThan(0);
      expect(kept).toEqual(rows.filter((t) => passes(t, readBrushes(brush))));
    }
  });
  test("says conditions again as they are typed", () => {
    for (const text of ["a=1 b~'x y' word", "'a b'>=2 c!=d"]) {
      const all = of(text).conditions;
      expect(of(typed(all)).conditions.map(({ key, op, value }) => [key, op, value])).toEqual(all.map(({ key, op, value }) => [key, op, value]));
    }
  });
});
