import { afterEach, expect, test, vi } from "vitest";
import { after, keep, kept } from "./typed";

afterEach(() => vi.unstubAllGlobals());

test("keys write as a field does", () => {
  const at = (text: string, from: number, to = from) => ({ value: text, from, to });
  const keys = (text: string, from: number, all: string[], multiline = true) => all.reduce((now, key) => after(key, now, multiline) ?? now, at(text, from));
  expect(keys("ad", 1, ["b", "c"])).toEqual(at("abcd", 3));
  expect(keys("a", 1, ["Enter", " ", "é", "😀", "Backspace", "Backspace"])).toEqual(at("a\n ", 3));
  expect(keys("a", 1, ["Enter"], false)).toEqual(at("a", 1));
  expect(keys("😀b", 0, ["Delete", "Delete", "Delete"])).toEqual(at("", 0));
  expect(keys("ab", 0, ["Backspace"])).toEqual(at("ab", 0));
  expect(after("x", at("abcd", 1, 3), true)).toEqual(at("axd", 2));
  expect(after("Backspace", at("abcd", 1, 3), true)).toEqual(at("ad", 1));
  for (const key of ["Shift", "Tab", "Escape", "ArrowLeft", "F5", "Dead", "Process"]) expect(after(key, at("abcd", 1, 3), true)).toBeNull();
});

test("what was typed is kept for its user alone, until it is forgotten", () => {
  const stored = new Map<string, string>();
  vi.stubGlobal("sessionStorage", { getItem: (k: string) => stored.get(k) ?? null, setItem: (k: string, x: string) => void stored.set(k, x), removeItem: (k: string) => void stored.delete(k) });
  keep(1, "fork 7", "name: mine");
  expect([kept(1, "fork 7"), kept(2, "fork 7"), kept(1, "fork 8")]).toEqual(["name: mine", "", ""]);
  keep(1, "fork 7", "");
  expect(kept(1, "fork 7")).toBe("");
  expect(stored.size).toBe(0);
});

test("a browser that stores nothing keeps nothing", () => {
  vi.stubGlobal("sessionStorage", undefined);
  keep(1, "fork 7", "name: mine");
  expect(kept(1, "fork 7")).toBe("");
});
