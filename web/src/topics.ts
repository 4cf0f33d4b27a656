// The topics of a stream. The server refuses all of them where one is wrong, or where there are too many.

const shape = /^(?:experiments|cluster|(?:experiment|logs)\/[1-9]\d{0,18}|series\/[1-9]\d{0,18}\/[^/]+\/.*)$/s;
const most = 100; // limit of the server
const longest = 12_000; // limit of the address in bytes, because the server reads 16 KiB of headers

/** An element of a list with commas, in the form that the server reads. */
export const element = (name: string): string => name.replace(/[%,]/g, (c) => (c === "," ? "%2C" : "%25"));
export const elements = (names: Iterable<string>): string => Array.from(names, element).join(",");

export const isTopic = (text: string): boolean => shape.test(text);

/** The topics in a stable order, lists and logs before curves. Topics above the limits are left out. */
export function asked(topics: Iterable<string>): string[] {
  const rank = (t: string) => (t.startsWith("series/") ? 1 : 0);
  const all = Array.from(new Set(topics)).filter(isTopic);
  all.sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : a > b ? 1 : 0));
  let bytes = 0;
  return all.slice(0, most).filter((t) => (bytes += encodeURIComponent(element(t)).length + 3) <= longest);
}
