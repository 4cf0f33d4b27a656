import { describe, expect, test } from "vitest";
import { asCell, comparator, holds, parse, type Cell } from "./filter";
import cases from "../../test/data/filter_language.json";

type Row = Record<string, Cell>;
const rows: Row[] = cases.rows.map((r) => Object.fromEntries(Object.entries(r).map(([k, x]) => [k, asCell(x)])));
const keys = new Set(Object.keys(rows[0]!));
const ids = (all: readonly Row[]) => all.map((r) => r.id);

// The command line is tested with the same cases: test/unit/cli/selection_test.cpp.
describe("the filter language of page and command line", () => {
  test.each(cases.filters as [string, number[] | null][])("%s", (filter, wanted) => {
    const p = parse(filter, keys);
    expect(p.ok ? ids(rows.filter((r) => p.conditions.every((c) => holds(c, (k) => r[k], cases.bare)))) : null).toEqual(wanted);
  });
  test.each(cases.faults as [string, number, string][])("%s is wrong", (filter, at, message) => {
    expect(parse(filter, keys)).toEqual({ ok: false, fault: { at, message } });
  });
  test.each(cases.sorts as [string, number[]][])("sorted by %s", (sort, wanted) => {
    expect(ids(rows.slice().sort(comparator((r) => r[sort.replace(/^-/, "")], sort.startsWith("-"))))).toEqual(wanted);
  });
});
