// The filter language: conditions that are separated by blanks and must all hold.

import { decimal, number } from "./text";

export type Cell = number | string | boolean | null | undefined;

/** A value of a report or configuration as a cell. Lists and maps become JSON. */
export const asCell = (x: unknown): Cell => (x === undefined || x === null ? null : typeof x === "number" || typeof x === "boolean" ? x : typeof x === "string" ? (number(x) ?? x) : JSON.stringify(x));

/** A hyperparameter as a cell. null is one of its values, such as a choice of a search. */
export const asChoice = (x: unknown): Cell => (x === null ? "null" : asCell(x));

export interface Condition {
  key: string; // empty for a bare word
  op: "=" | "!=" | "<" | "<=" | ">" | ">=" | "~";
  value: string;
  at: number;
}
export interface Fault {
  at: number;
  message: string;
}
export type Parsed = { ok: true; conditions: Condition[] } | { ok: false; fault: Fault };

const ops = ["!=", "<=", ">=", "=", "<", ">", "~"] as const;

/** Parses a filter. `known` has the existing keys, and is missing where these are not known. `early` says that more keys may come. */
export function parse(text: string, known?: ReadonlySet<string>, early = false): Parsed {
  const conditions: Condition[] = [];
  let i = 0;
  const wrong = (at: number, message: string): Parsed => ({ ok: false, fault: { at, message } });
  while (i < text.length) {
    if (text[i] === " " || text[i] === "\t") {
      ++i;
      continue;
    }
    const start = i;
    let key = "";
    let value = "";
    let op: Condition["op"] | "" = "";
    let quoted = false;
    let doubled = -1; // where a second comparison follows a first one
    while (i < text.length && text[i] !== " " && text[i] !== "\t") {
      if (text[i] === "'") {
        const begun = i++;
        for (;; ++i) {
          if (i >= text.length) return wrong(begun, "this quote is not closed");
          if (text[i] === "'" && text[++i] !== "'") break; // a doubled quote is one quote of the text
          value += text[i];
        }
        quoted = true;
        continue;
      }
      const found: Condition["op"] | undefined = op === "" ? ops.find((o) => text.startsWith(o, i)) : undefined;
      if (found) {
        if (value === "") return wrong(i, `there is no column before ${found}`);
        key = value;
        value = "";
        quoted = false;
        op = found;
        i += found.length;
        if (ops.some((o) => text.startsWith(o, i))) doubled = i;
        continue;
      }
      value += text[i++];
    }
    if (op === "") {
      conditions.push({ key: "", op: "~", value, at: start });
      continue;
    }
    if (value === "" && !quoted) return wrong(i, `what should ${key} be compared with?`);
    if (doubled >= 0) return wrong(doubled, `${text[doubled]} cannot follow ${op}: a value that begins with it stands in quotes`);
    const column = known ? (resolve(key, known) ?? (early ? key : null)) : key;
    if (column === null) return wrong(start, `there is no column '${key}'`);
    conditions.push({ key: column, op, value, at: start });
  }
  return { ok: true, conditions };
}

/** A condition as a user types it. A bare word has no key. */
export function condition(key: string, op: Condition["op"], value: string): string {
  const quoted = (text: string, plain: RegExp) => (plain.test(text) ? text : `'${text.replaceAll("'", "''")}'`);
  const word = /^[^\s'=!<>~]+$/;
  return key === "" ? quoted(value, word) : quoted(key, word) + op + quoted(value, /^[^\s'=!<>~][^\s']*$/);
}

/** The known key that a key means, or null. `hp.` may be left out. */
function resolve(key: string, known: ReadonlySet<string>): string | null {
  if (known.has(key)) return key;
  return known.has("hp." + key) ? "hp." + key : null;
}

/** The columns of an address with their full keys. Columns that do not exist are left out. */
export const wholeKeys = (columns: readonly string[], known: ReadonlySet<string>): string[] => [...new Set(columns.flatMap((key) => resolve(key, known) ?? []))];

/** The order of an address, with the full key of its column. */
export function sorting(sort: string, known: ReadonlySet<string>): string {
  const down = sort.startsWith("-") ? "-" : "";
  return down + (resolve(sort.slice(down.length), known) ?? sort.slice(down.length));
}

export function asNumber(x: Cell): number | null {
  if (typeof x !== "string") return typeof x === "number" ? x : null;
  const text = x.replace(/^[ \t]+|[ \t]+$/g, "");
  return decimal.test(text) ? Number(text) : number(text.replace(/^\+(?=Infinity$)/, ""));
}

export function holds(c: Condition, get: (key: string) => Cell, bare: readonly string[]): boolean {
  if (c.key === "")
    return bare.some((key) => {
      const x = get(key);
      return x !== null && x !== undefined && String(x).toLowerCase().includes(c.value.toLowerCase());
    });
  const x = get(c.key);
  if (x === null || x === undefined || x === "" || (typeof x === "number" && Number.isNaN(x))) return false;
  if (c.op === "~") return String(x).toLowerCase().includes(c.value.toLowerCase());
  const a = asNumber(x);
  const b = asNumber(c.value);
  if (a !== null && b !== null) return compared(a, b, c.op);
  if (typeof x === "number") return c.op === "!="; // a number and a word have no order
  return compared(String(x).toLowerCase(), c.value.toLowerCase(), c.op);
}

function compared<T extends number | string>(a: T, b: T, op: Condition["op"]): boolean {
  switch (op) {
    case "=":
      return a === b;
    case "!=":
      return a !== b;
    case "<":
      return a < b;
    case "<=":
      return a <= b;
    case ">":
      return a > b;
    case ">=":
      return a >= b;
    default:
      return false;
  }
}

/** Compares numbers as numbers, also those that are texts. Missing values and NaN come last in both directions. */
export function comparator<R>(get: (row: R) => Cell, descending: boolean): (a: R, b: R) => number {
  const turn = descending ? -1 : 1;
  return (left, right) => {
    const a = get(left);
    const b = get(right);
    const none = (x: Cell) => x === null || x === undefined || x === "" || (typeof x === "number" && Number.isNaN(x)) || x === "NaN";
    if (none(a) || none(b)) return none(a) === none(b) ? 0 : none(a) ? 1 : -1;
    const x = asNumber(a);
    const y = asNumber(b);
    if (x !== null && y !== null) return x === y ? 0 : turn * (x < y ? -1 : 1);
    if (x !== null || y !== null) return turn * (x !== null ? -1 : 1);
    const s = String(a);
    const t = String(b);
    return s === t ? 0 : turn * (s < t ? -1 : 1);
  };
}
