// Splits YAML into parts for colours. It is good enough for reading, but does not judge what is right; the server does.

export type Kind = "key" | "string" | "number" | "word" | "comment" | "mark" | "plain";
export interface Part {
  text: string;
  kind: Kind;
}

const numeric = /^[-+]?(?:\d[\d_]*(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|\.inf|0x[0-9a-fA-F]+|0o[0-7]+)$|^\.nan$/i;
const word = /^(?:true|false|null|~|yes|no|on|off)$/i;

function scalar(text: string): Kind {
  if (numeric.test(text)) return "number";
  if (word.test(text)) return "word";
  return /^[&*!]/.test(text) ? "mark" : "string";
}

/** The lines of a text, each split into parts. The parts of a line, joined, are the line. */
export function parts(text: string): Part[][] {
  let flow = 0; // depth of nested [ and {
  let block = -1; // indentation of the line that began a block of text; -1 outside of one
  return text.split("\n").map((line) => {
    const out: Part[] = [];
    const push = (t: string, kind: Kind) => {
      if (t !== "") out.push({ text: t, kind });
    };
    const indent = line.length - line.trimStart().length;
    if (block >= 0) {
      if (line.trim() === "" || indent > block) {
        push(line, "string");
        return out;
      }
      block = -1;
    }
    let i = 0;
    while (i < line.length) {
      const rest = line.slice(i);
      const blank = /^\s+/.exec(rest);
      if (blank) {
        push(blank[0], "plain");
        i += blank[0].length;
        continue;
      }
      if (rest[0] === "#" && (i === 0 || /\s/.test(line[i - 1]!))) {
        push(rest, "comment");
        break;
      }
      if (flow === 0 && /^(?:---|\.\.\.)\s*$/.test(line)) {
        push(rest, "mark");
        break;
      }
      if (flow === 0 && /^[-?](?=\s|$)/.test(rest)) {
        push(rest[0]!, "mark");
        ++i;
        continue;
      }
      if (/^[[\]{},]/.test(rest) && (flow > 0 || /^[[{]/.test(rest))) {
        if (/[[{]/.test(rest[0]!)) ++flow;
        else if (/[\]}]/.test(rest[0]!)) flow = Math.max(0, flow - 1);
        push(rest[0]!, "mark");
        ++i;
        continue;
      }
      if (flow === 0 && /^[|>][-+\d]*\s*(?:#.*)?$/.test(rest)) {
        block = indent;
        push(rest, "mark");
        break;
      }
      const quoted = /^"(?:[^"\\]|\\.)*"?|^'(?:[^']|'')*'?/.exec(rest);
      const plain = quoted ?? (flow > 0 ? /^(?:[^\s,[\]{}:#]|:(?=\S)(?![,[\]{}])|(?<=\S)#|[ \t]+(?![\s#]|$))+/ : /^(?:[^\s:#]|:(?=\S)|(?<=\S)#|[ \t]+(?![\s#]|$))+/).exec(rest);
      if (!plain) {
        push(rest[0]!, "mark"); // a colon that stands alone
        ++i;
        continue;
      }
      i += plain[0].length;
      const colon = /^\s*:(?=\s|$|[,[\]{}])/.exec(line.slice(i));
      if (colon) {
        push(plain[0], "key");
        push(colon[0], "mark");
        i += colon[0].length;
      } else push(plain[0], quoted ? "string" : scalar(plain[0]));
    }
    return out;
  });
}
