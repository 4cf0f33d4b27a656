// The address holds the view: it names everything that a page shows, and leaves out defaults.

/** The parts of a list. A separator within a part has a backslash before it. */
export function pieces(text: string, separator: string): string[] {
  const out: string[] = [];
  let part = "";
  for (let i = 0; i < text.length; ++i) {
    const c = text[i]!;
    const next = text[i + 1];
    if (c === "\\" && next !== undefined && (next === "\\" || next === separator)) {
      part += next;
      ++i;
    } else if (c === separator) {
      out.push(part);
      part = "";
    } else part += c;
  }
  out.push(part);
  return out.filter(Boolean);
}

/** Joins parts to one text, which `pieces` splits again. */
export const joined = (parts: readonly string[], separator: string): string => parts.map((p) => p.replaceAll("\\", "\\\\").replaceAll(separator, "\\" + separator)).join(separator);

export interface Params {
  text(key: string, usual?: string): string;
  list(key: string): string[];
  number(key: string, usual: number, least: number, most: number): number;
  flag(key: string): boolean;
}

export function read(search: string): Params {
  const all = new URLSearchParams(search);
  return {
    text: (key, usual = "") => all.get(key) ?? usual,
    list: (key) => pieces(all.get(key) ?? "", ","),
    number: (key, usual, least, most) => {
      const x = Number(all.get(key) ?? usual);
      return Number.isFinite(x) ? Math.min(most, Math.max(least, x)) : usual;
    },
    flag: (key) => all.get(key) === "1",
  };
}

/** The address with some parameters changed. null, false, "" and an empty list each remove a parameter. */
export function patched(path: string, search: string, changes: Record<string, string | number | boolean | string[] | null>): string {
  const all = new URLSearchParams(search);
  for (const [key, to] of Object.entries(changes)) {
    const text = to === null || to === false ? "" : to === true ? "1" : Array.isArray(to) ? joined(to, ",") : String(to);
    if (text === "") all.delete(key);
    else all.set(key, text);
  }
  const rest = all.toString().replaceAll("%2C", ",");
  return path + (rest ? "?" + rest : "");
}
