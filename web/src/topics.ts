// The topics of a stream. The server refuses all of them where one is wrong, or where there are too many.

const shape = /^(?:experiments|cluster|(?:experiment|logs)\/[1-9]\d{0,18}|series\/[1-9]\d{0,18}\/[^/]+\/.*)$/s;
const most = 100; // limit of the server
const longest = 12_000; // limit of the address in bytes, because the server reads 16 KiB of headers

/** An element of a list with commas, in the form that the server reads. */
export const element = (name: string): string => name.replace(/[%,]/g, (c) => (c === "," ? "%2C" : "%25"));
export const elements = (names: Iterable<string>): string => Array.from(names, element).join(",");

export const isTopic = (text: string): boolean => shape.test(text);

/** The topics of trials' curves begin with this. */
const ofCurves = "series/";
/** The topic of the experiment whose curve this topic is; "" for any other topic. */
export const experimentOf = (topic: string): string => (topic.startsWith(ofCurves) ? `experiment/${topic.split("/")[1]!}` : "");

/** The topics that a stream can have, in a stable order. Where there are more than the limits allow, experiments come before curves, and
 *  what visible tabs want (`seen`) before the rest. */
export function asked(topics: Iterable<string>, seen: ReadonlySet<string> = new Set()): string[] {
  const rank = (t: string) => (t.startsWith(ofCurves) ? 4 : t.startsWith("experiment/") ? 2 : 0) + (seen.has(t) ? 0 : 1);
  const inOrder = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
  const all = Array.from(new Set(topics)).filter(isTopic);
  all.sort((a, b) => rank(a) - rank(b) || inOrder(a, b));
  const found: string[] = [];
  let bytes = 0;
  for (const t of all) {
    const size = encodeURIComponent(element(t)).length + 3;
    if (found.length === most || bytes + size > longest) continue;
    bytes += size;
    found.push(t);
  }
  return found.sort(inOrder); // a tab that is hidden or shown changes nothing where all have room
}
