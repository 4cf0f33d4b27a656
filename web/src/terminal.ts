// A line of a log as a terminal would show it.

import { clean } from "./text";

export interface Segment {
  text: string;
  classes: string; // "", "fg1 bold"
}

/** After a carriage return only the last state is seen. */
export function lastState(line: string): string {
  const parts = line.replace(/\r+$/, "").split("\r");
  return parts[parts.length - 1] ?? "";
}

/** The lines without those states of a progress bar that a later line of its rank and stream has written over. */
export function lastStates<T extends { rank: number; stream: string; text: string }>(lines: readonly T[]): T[] {
  const over = new Set<string>();
  const out: T[] = [];
  for (const line of lines.slice().reverse()) {
    const source = `${line.rank} ${line.stream}`;
    if (!line.text.endsWith("\r") || !over.has(source)) out.push(line);
    over.add(source);
  }
  return out.reverse();
}

export function segments(line: string): Segment[] {
  const out: Segment[] = [];
  let fg = "";
  let bold = false;
  let dim = false;
  let under = false;
  const push = (text: string) => {
    if (text === "") return;
    const classes = [fg, bold ? "bold" : "", dim ? "dim" : "", under ? "under" : ""].filter(Boolean).join(" ");
    out.push({ text: clean(text), classes });
  };
  let rest = lastState(line);
  // Escape sequences: those that colour are obeyed, all others are left out.
  const escape = /\u001b(?:\[([0-9;]*)([A-Za-z])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[()][A-Za-z0-9]|.)/;
  for (;;) {
    const found = escape.exec(rest);
    if (!found) break;
    push(rest.slice(0, found.index));
    rest = rest.slice(found.index + found[0].length);
    if (found[2] !== "m") continue;
    const codes = (found[1] || "0").split(";").map(Number);
    for (let i = 0; i < codes.length; ++i) {
      const c = codes[i]!;
      if (c === 0) {
        fg = "";
        bold = dim = under = false;
      } else if (c === 1) bold = true;
      else if (c === 2) dim = true;
      else if (c === 4) under = true;
      else if (c === 22) bold = dim = false;
      else if (c === 24) under = false;
      else if (c >= 30 && c <= 37) fg = `fg${c - 30}`;
      else if (c >= 90 && c <= 97) fg = `fg${c - 90}`;
      else if (c === 39) fg = "";
      else if (c === 38) {
        if (codes[i + 1] === 5) {
          fg = `fg${(codes[i + 2] ?? 7) % 8}`;
          i += 2;
        } else if (codes[i + 1] === 2) i += 4;
      } else if (c === 48) i += codes[i + 1] === 5 ? 2 : 4;
    }
  }
  push(rest);
  return out;
}
