// The address is the view: all that a page shows can be read from it, and what is a default is left out.

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
    list: (key) => (all.get(key) ?? "").split(",").filter(Boolean),
    number: (key, usual, least, most) => {
      const x = Number(all.get(key) ?? usual);
      return Number.isFinite(x) ? Math.min(most, Math.max(least, x)) : usual;
    },
    flag: (key) => all.get(key) === "1",
  };
}

/** The address with some parameters set; null, false, "" and an empty list take one out. */
export function patched(path: string, search: string, changes: Record<string, string | number | boolean | string[] | null>): string {
  const all = new URLSearchParams(search);
  for (const [key, to] of Object.entries(changes)) {
    const text = to === null || to === false ? "" : to === true ? "1" : Array.isArray(to) ? to.join(",") : String(to);
    if (text === "") all.delete(key);
    else all.set(key, text);
  }
  const rest = all.toString().replaceAll("%2C", ",");
  return path + (rest ? "?" + rest : "");
}
