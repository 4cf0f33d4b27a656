// Makes texts of other users harmless, and writes numbers and times for people.

const control = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;
const bidi = /[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g; // and the two characters that begin a line

/** A user's text as the page may show it: control characters become visible, and none changes the direction of the text. */
export function clean(text: string): string {
  return text
    .replace(control, (c) => (c.charCodeAt(0) < 0x20 ? String.fromCharCode(0x2400 + c.charCodeAt(0)) : "\ufffd"))
    .replace(bidi, "\ufffd");
}

/** A user's text for a canvas, which has no element that would keep its direction apart from that of the texts beside it. */
export const isolated = (text: string): string => `\u2068${clean(text)}\u2069`;

/** A name that a user chose, as it is shown. A name of blanks alone gets quotes, so that it is visible. */
export const nameOf = (name: string): string => (name.trim() === "" ? `'${clean(name)}'` : clean(name));

/** A metric such as "validation.loss" as it is shown. */
export const metricOf = (key: string): string => key.slice(0, key.indexOf(".") + 1) + nameOf(key.slice(key.indexOf(".") + 1));

/** A number of an answer. NaN and the infinities, which JSON lacks, are texts there. */
export function number(x: unknown): number | null {
  if (typeof x === "number") return x;
  if (x === "NaN" || x === "Nan") return NaN;
  if (x === "Infinity") return Infinity;
  if (x === "-Infinity") return -Infinity;
  return null;
}

/** Texts are numbers where they are decimal: `0x10` is a word, as on the command line. */
export const decimal = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

/** A whole number as it is, and any other with at most `digits` significant digits. */
export function short(x: number | null | undefined, digits = 5): string {
  if (x === null || x === undefined) return "";
  return Number.isSafeInteger(x) ? String(x) : rounded(x, digits);
}

/** A number with at most `digits` significant digits, without an exponent where people do not need one. */
export function rounded(x: number, digits: number): string {
  if (Number.isNaN(x)) return "NaN";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  if (Number.isInteger(x) && Math.abs(x) < 1e9) return String(x);
  const size = Math.abs(x);
  if (size >= 1e-4 && size < 1e9) return String(Number(x.toPrecision(digits)));
  return x.toExponential(digits - 1).replace(/\.?0+e/, "e");
}

export function bytes(n: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let i = 0;
  while (n >= 1000 && i < units.length - 1) {
    n /= 1000;
    ++i;
  }
  return `${i === 0 ? n : n.toPrecision(3)} ${units[i]}`;
}

/** A number of seconds as it is shown: "2 h 5 min". */
export function span(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds < 0) return "";
  if (seconds < 60) return `${seconds < 10 ? Math.round(seconds * 10) / 10 : Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** A time as it is shown, in the time zone of the settings. */
export function moment(text: string | undefined | null, zone: "local" | "utc"): string {
  if (!text) return "";
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return "";
  const two = (n: number) => String(n).padStart(2, "0");
  return zone === "utc"
    ? `${at.getUTCFullYear()}-${two(at.getUTCMonth() + 1)}-${two(at.getUTCDate())} ${two(at.getUTCHours())}:${two(at.getUTCMinutes())}:${two(at.getUTCSeconds())}Z`
    : `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** Seconds since 1970 as a field of the browser takes them, "2026-11-24T10:00:05", in the time zone of the settings. "" where it is not
 *  a time. */
export function clock(seconds: number, zone: "local" | "utc"): string {
  const at = new Date(seconds * 1000);
  return Number.isNaN(at.getTime()) ? "" : moment(at.toISOString(), zone).replace(" ", "T").replace("Z", "");
}
/** The seconds since 1970 of a text from `clock`, or NaN. */
export const seconds = (text: string, zone: "local" | "utc"): number => Date.parse(zone === "utc" ? `${text}Z` : text) / 1000;

/** The name of a state without its prefix: "STATE_ACTIVE" is "ACTIVE". */
export function state(text: string | undefined): string {
  return (text ?? "").replace(/^STATE_/, "");
}

/** A nested map as a flat one: {"a": {"b": 1}} becomes {"a.b": 1}. An empty map stays. */
export function flat(x: unknown, prefix = "", into: Record<string, unknown> = Object.create(null) as Record<string, unknown>): Record<string, unknown> {
  const isMap = (one: unknown): one is object => one !== null && typeof one === "object" && !Array.isArray(one);
  if (isMap(x))
    for (const [key, one] of Object.entries(x)) {
      if (isMap(one) && Object.keys(one).length > 0) flat(one, `${prefix}${key}.`, into);
      else into[prefix + key] = one;
    }
  return into;
}

/** A hyperparameter as text. Lists, maps and null become JSON. */
export const worded = (x: unknown): string => (x === undefined ? "—" : typeof x === "string" ? x : JSON.stringify(x));

/** The group and the name, which may be empty, of a metric such as "validation.loss". The group is "" where the text names none. */
export function named(metric: string): { group: string; name: string } {
  const dot = metric.indexOf(".");
  return dot > 0 ? { group: metric.slice(0, dot), name: metric.slice(dot + 1) } : { group: "", name: "" };
}

/** A value for JSON. NaN and the infinities become texts, as in the API. */
export const plain = (x: string | number | boolean | null): string | number | boolean | null => (typeof x === "number" && !Number.isFinite(x) ? String(x) : x);

export function csv(rows: (string | number | boolean | null)[][]): string {
  const cell = (x: string | number | boolean | null) => {
    let text = x === null || (typeof x === "number" && Number.isNaN(x)) ? (x === null ? "" : "NaN") : String(x);
    if (typeof x === "string" && /^[=+\-@\t\r]/.test(text) && !decimal.test(text)) text = "'" + text; // so that a spreadsheet does not read it as a formula
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((r) => r.map(cell).join(",")).join("\r\n") + "\r\n";
}
