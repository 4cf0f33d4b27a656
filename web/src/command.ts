// The `troupe` command that lists the rows of a grid, to be pasted into a shell.

import type { Params } from "./address";
import { dimension, full, keeps, type Brush, type Row } from "./brush";
import { condition, type Condition } from "./filter";

/** A text as one word of a POSIX shell, and of `troupe shell`. */
export const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** The filter and the order of a grid. Both may be empty. */
export interface Asked {
  where: string;
  conditions: readonly Condition[]; // conditions for `where`
  sort: string; // "-best" means descending
}

/** A verb with the filter and order of the grid. */
export function listed(verb: string, asked: Asked): string {
  return [verb, ...(asked.where.trim() ? ["--where", quoted(asked.where.trim())] : []), ...(asked.sort ? ["--sort", quoted(asked.sort)] : [])].join(" ");
}

/** A command of `troupe shell`, whose rows have other keys than the columns. A bare word is searched in the first of them. */
export function piped(command: string, keys: Readonly<Record<string, string>>, asked: Asked): string {
  const key = (of: string) => keys[of] ?? of;
  const where = asked.conditions.map((c) => quoted(`${key(c.key === "" ? "id" : c.key)}${c.op}${c.value}`));
  const order = asked.sort.startsWith("-") ? `-${key(asked.sort.slice(1))}` : key(asked.sort);
  return `troupe shell -e ${quoted([command, ...(where.length > 0 ? [`where ${where.join(" ")}`] : []), ...(asked.sort ? [`order ${quoted(order)}`] : [])].join(" | "))}`;
}

/** Conditions as a user types them. */
export const typed = (all: readonly Condition[]): string => all.map((c) => condition(c.key, c.op, c.value)).join(" ");

/** What brushes keep of the rows as conditions of the filter. These have no order of numbers and words, so that the choices outside a brush
 *  are named. */
export function brushes(all: readonly Brush[], rows: readonly Row[]): string {
  return all
    .map((b) => {
      const key = full(b.key);
      if (b.from === b.to) return condition(key, "=", String(b.from));
      const choices = dimension(rows, key).choices;
      if (!choices?.length) return `${condition(key, ">=", String(b.from))} ${condition(key, "<=", String(b.to))}`;
      const outside = choices.filter((c) => !keeps(b, c));
      return (outside.length > 0 ? outside : [""]).map((c) => condition(key, "!=", c)).join(" "); // what is missing is not kept in any case
    })
    .join(" ");
}

/** The command for a log, or for the lines that the search in the address finds. */
export const searched = (verb: string, p: Params): string => (p.text("q") === "" ? verb : `${verb} --search ${quoted(p.text("q"))}${p.flag("regex") ? " --regex" : ""}`);
