// A line of a log as a terminal would show it.

import { clean } from "./text";

export interface Segment {
  text: string;
  classes: string; // "", "fg1 bold", "bg4", "grey0" (the background), "reverse" (the background has the colour of usual letters)
}

/** One of the six colours, or one of four greys from black to white. null is the colour of the page. */
type Colour = { hue: number } | { grey: number } | null;

/** What a terminal showed before the text of a line: the agent has taken the rank and the level off the text. The rank 0 is left out,
 *  because lines of programs without ranks have it too, and so is a level with which the text begins. */
export function before(line: { rank: number; level: string; stream: string; text: string }): string {
  const rank = line.rank > 0 && line.stream !== "troupe" ? `[rank=${line.rank}] ` : "";
  return clean(rank + (line.level === "" || line.text.startsWith(`${line.level}:`) ? "" : `${line.level}: `));
}

/** The visible text of a line: after a carriage return only the last state, and what is written after the cursor went back in place of
 *  the text before it. */
export function lastState(line: string): string {
  const parts = line.replace(/\r+$/, "").split("\r");
  const last = parts[parts.length - 1] ?? "";
  return /[\b]|\u001b\[[0-9]*[CDGK]/.test(last) ? writtenOver(last) : last;
}

const widest = 10_000; // columns, because a program may send the cursor anywhere
const usual: readonly string[] = []; // no code: the colours of the page
const mostCodes = 16; // newest codes for colours that a character keeps, because a line may never put them back

/** A line with what moves the cursor in it and what erases applied. Each character keeps the colours that it was written in. */
function writtenOver(line: string): string {
  const cells: { style: readonly string[]; char: string }[] = [];
  let at = 0;
  let style = usual;
  const put = (char: string) => {
    while (cells.length < at) cells.push({ style: usual, char: " " });
    cells[at++] = { style, char };
  };
  const follow = (parameter: string, letter: string) => {
    const count = Math.max(1, parseInt(parameter, 10) || 1);
    if (letter === "m") {
      const code = `\u001b[${parameter}m`;
      style = /^0*$/.test(parameter) ? usual : /^0*;/.test(parameter) ? [code] : [...style, code].slice(-mostCodes);
    } else if (letter === "D") at = Math.max(0, at - count);
    else if (letter === "C") at = Math.min(widest, at + count);
    else if (letter === "G") at = Math.min(widest, count) - 1;
    else if (letter === "K") {
      if (/^0*$/.test(parameter)) cells.length = Math.min(cells.length, at);
      else if (parameter === "1" || parameter === "2") for (let i = 0; i < cells.length && (parameter === "2" || i <= at); ++i) cells[i] = { style: usual, char: " " };
    }
  };
  let rest = line;
  while (rest !== "") {
    const found = sequence.exec(rest);
    for (const char of found ? rest.slice(0, found.index) : rest) {
      if (char === "\b") at = Math.max(0, at - 1);
      else put(char);
    }
    if (!found) break;
    if (found[2] !== undefined && !/[<=>?]/.test(found[1] ?? "")) follow(found[1] ?? "", found[2]);
    rest = rest.slice(found.index + found[0].length);
  }
  let last = usual;
  return cells
    .map((c) => {
      const change = c.style === last ? "" : `\u001b[0m${c.style.join("")}`;
      last = c.style;
      return change + c.char;
    })
    .join("");
}

/** The lines without the states of a progress bar that a later line of the same rank and stream replaces. The line that the address
 *  names stays. */
export function lastStates<T extends { line?: number; rank: number; stream: string; text: string }>(lines: readonly T[], pointed = ""): T[] {
  const over = new Set<string>();
  const out: T[] = [];
  for (const line of lines.slice().reverse()) {
    const source = `${line.rank} ${line.stream}`;
    if (!line.text.endsWith("\r") || !over.has(source) || (pointed !== "" && String(line.line) === pointed)) out.push(line);
    over.add(source);
  }
  return out.reverse();
}

/** The grey for a lightness. There are few greys, so that letters on each can be read. */
const greyOf = (level: number): Colour => ({ grey: level < 40 ? 0 : level < 128 ? 1 : level < 220 ? 2 : 3 });

/** The nearest colour that the page has for a colour of a terminal. */
function nearest(r: number, g: number, b: number): Colour {
  const high = Math.max(r, g, b);
  const low = Math.min(r, g, b);
  if (high - low < 48) return greyOf(high);
  const on = (c: number) => (c - low > (high - low) / 2 ? 1 : 0);
  return { hue: on(r) + 2 * on(g) + 4 * on(b) };
}

const ofEight = (n: number, bright: boolean): Colour => (n === 0 ? { grey: bright ? 1 : 0 } : n === 7 ? { grey: bright ? 3 : 2 } : { hue: n });

function of256(n: number): Colour {
  if (n < 16) return ofEight(n % 8, n >= 8);
  if (n >= 232) return greyOf(8 + 10 * (n - 232));
  const level = (x: number) => (x === 0 ? 0 : 55 + 40 * x);
  return nearest(level(Math.floor((n - 16) / 36)), level(Math.floor((n - 16) / 6) % 6), level((n - 16) % 6));
}

/** An escape sequence. Colours are applied, and all others are dropped. */
const sequence = /\u001b(?:\[([0-?]*)[ -/]*([@-~])|[\]P^_X][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/]+[0-~]|[0-~])/;

/** A part of a line without control sequences for a terminal. */
export const withoutSequences = (text: string): string => text.replace(new RegExp(sequence, "g"), "").replace(/\r+$/, "");

export function segments(line: string): Segment[] {
  const out: Segment[] = [];
  let fg: Colour = null;
  let bg: Colour = null;
  let bold = false;
  let dim = false;
  let under = false;
  let reverse = false;
  const push = (text: string) => {
    if (text === "") return;
    // Grey letters look like the rest of the text.
    const [letters, ground] = reverse ? [bg, fg] : [fg, bg];
    const classes = [letters && "hue" in letters ? `fg${letters.hue}` : "", ground === null ? (reverse ? "reverse" : "") : "hue" in ground ? `bg${ground.hue}` : `grey${ground.grey}`, bold ? "bold" : "", dim ? "dim" : "", under ? "under" : ""].filter(Boolean).join(" ");
    out.push({ text: clean(text), classes });
  };
  let rest = lastState(line);
  for (;;) {
    const found = sequence.exec(rest);
    if (!found) break;
    push(rest.slice(0, found.index));
    rest = rest.slice(found.index + found[0].length);
    if (found[2] !== "m" || /[<=>?]/.test(found[1] ?? "")) continue;
    // Colons separate the parts of one colour. The part for the colour space may be empty.
    const codes = (found[1] || "0").replace(/([34]8):2:[0-9]*:(?=[0-9]+:[0-9]+:[0-9]+)/g, "$1:2:").replace(/[34]8:[0-9:]*/g, (x) => x.replaceAll(":", ";")).replace(/:[0-9]*/g, "").split(";").map(Number);
    for (let i = 0; i < codes.length; ++i) {
      const c = codes[i]!;
      if (c === 0) {
        fg = bg = null;
        bold = dim = under = reverse = false;
      } else if (c === 1) bold = true;
      else if (c === 2) dim = true;
      else if (c === 4) under = true;
      else if (c === 7) reverse = true;
      else if (c === 27) reverse = false;
      else if (c === 22) bold = dim = false;
      else if (c === 24) under = false;
      else if ((c >= 30 && c <= 37) || (c >= 90 && c <= 97)) fg = ofEight(c % 10, c >= 90);
      else if ((c >= 40 && c <= 47) || (c >= 100 && c <= 107)) bg = ofEight(c % 10, c >= 100);
      else if (c === 39) fg = null;
      else if (c === 49) bg = null;
      else if (c === 38 || c === 48) {
        const short = codes[i + 1] === 5;
        const colour = short ? of256(codes[i + 2] ?? 7) : nearest(codes[i + 2] ?? 0, codes[i + 3] ?? 0, codes[i + 4] ?? 0);
        if (short || codes[i + 1] === 2) {
          if (c === 38) fg = colour;
          else bg = colour;
          i += short ? 2 : 4;
        }
      }
    }
  }
  push(rest);
  return out;
}
