// A grid of any number of rows. Only the rows in view are in the document.

import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { stand } from "./asked";
import { listed, piped, typed } from "./command";
import { comparator, holds, parse, sorting, wholeKeys, type Cell, type Condition } from "./filter";
import { hovered } from "./hover";
import { moved, returned, spotFor, standsAt } from "./kept_place";
import { go, params, prefix, set } from "./router";
import { density } from "./settings";
import { topOf } from "./spot";
import { clean, csv, nameOf, plain, short } from "./text";
import { CopyCommand, CopyLink, save, say, tell } from "./ui";

export interface Column<R> {
  key: string;
  title: string;
  value: (row: R) => Cell;
  show?: (row: R) => ComponentChildren;
  file?: ((row: R) => Promise<Cell>) | null; // text for a file, where the grid shows a picture; null where files do not have the column
  width?: number; // pixels
  usual?: boolean; // whether the column is shown where the address names no columns
}

export interface GridProps<R> {
  name: string; // as in "Experiments"
  rows: readonly R[];
  coming?: number; // number of all rows; set where `rows` are only the first ones
  id: (row: R) => string;
  columns: Column<R>[];
  link?: (row: R) => string; // an address below /ui
  usualSort?: string; // as in "-id"
  selectable?: boolean;
  actions?: (selected: string[]) => ComponentChildren;
  command?: string; // the `troupe` command that lists the same rows
  otherOrder?: boolean; // whether `command` lists in another order where the address has none
  within?: string; // conditions of `command` that do what `pass` does
  piped?: Readonly<Record<string, string>>; // set where `command` is one of `troupe shell`: its keys in place of those of the columns
  bare?: string[]; // the columns in which a bare word is searched
  empty?: ComponentChildren;
  hovers?: boolean; // whether rows are trials, which are marked here and in the charts at once
  pass?: (row: R) => boolean; // a condition besides the filter
  loading?: boolean; // whether rows or columns are still loading, so that a filter may name a column that does not exist yet
  height?: number;
}

const overscan = 8; // rows that are drawn above and below the visible ones
const atFirst = 1; // overscan until the first rows are drawn

/** The id of the row that has the focus or selected text, or null. */
function rowInUse(box: HTMLElement): string | null {
  const of = (node: Node | null): string | null => {
    const element = node instanceof Element ? node : (node?.parentElement ?? null);
    return (element && box.contains(element) ? element.closest<HTMLElement>("[role=row][data-id]")?.dataset["id"] : null) ?? null;
  };
  const text = document.getSelection();
  return of(document.activeElement) ?? (text && !text.isCollapsed ? of(text.anchorNode) : null);
}

/** The number of new rows above this row. */
function cameAbove<R>(row: string | null, before: readonly R[], now: readonly R[], id: (row: R) => string): number {
  if (row === null) return 0;
  const was = before.findIndex((r) => id(r) === row);
  return was < 0 ? 0 : Math.max(0, now.findIndex((r) => id(r) === row) - was);
}

export const currentGrid: { move: (by: number) => void; open: () => void; select: () => void; filter: () => void }[] = [];

export function Grid<R>(props: GridProps<R>) {
  const p = params.value;
  const filterText = useSignal(p.text("q"));
  useSignalEffect(() => {
    const from = params.value.text("q");
    if (from !== filterText.peek()) filterText.value = from;
  });
  const chosen = p.list("cols");
  const keys = useMemo(() => new Set(props.columns.map((c) => c.key)), [props.columns]);
  const early = props.loading || props.rows.length === 0;
  const waits = props.rows.length === 0 && (props.loading === true || props.empty === ""); // nothing is known yet
  const gone = early ? [] : chosen.filter((key) => wholeKeys([key], keys).length === 0); // columns that do not exist
  const shown = useMemo(() => {
    const all = chosen.length > 0 ? wholeKeys(chosen, keys).map((k) => props.columns.find((c) => c.key === k)!) : props.columns.filter((c) => c.usual !== false);
    return all.length > 0 ? all : props.columns.slice(0, 1);
  }, [props.columns, keys, chosen.join("\n")]);
  const parsed = useMemo(() => parse(filterText.value, keys, early), [filterText.value, keys, early]);
  const lastGood = useRef<Condition[]>([]);
  if (parsed.ok && !early) lastGood.current = parsed.conditions;
  const conditions = parsed.ok ? parsed.conditions : lastGood.current;
  const sort = sorting(p.text("sort", props.usualSort ?? ""), keys);
  const unsorted = !early && !keys.has(sort.replace(/^-/, "")) ? p.text("sort") : "";
  const by = useMemo(() => new Map(props.columns.map((c) => [c.key, c])), [props.columns]);
  const rows = useMemo(() => {
    const bare = props.bare ?? ["id", "name"];
    const kept = props.rows.filter(
      (r) => (!props.pass || props.pass(r)) && conditions.every((c) => holds(c, (k) => by.get(k)?.value(r), bare)),
    );
    const column = by.get(sort.replace(/^-/, ""));
    if (!column) return kept;
    return kept.slice().sort(comparator((r) => column.value(r), sort.startsWith("-")));
  }, [props.rows, conditions, sort, by, props.pass]);

  // Screen readers are told how many rows a filter leaves, but not that rows arrive.
  const told = useRef(filterText.value);
  const counts = useRef("");
  const whole = props.coming === undefined;
  const count = props.coming ?? rows.length;
  const all = props.coming ?? props.rows.length;
  counts.current = rows.length === props.rows.length ? `${rows.length} rows` : `${rows.length} of ${props.rows.length} rows`;
  useEffect(() => {
    if (told.current === filterText.value || !parsed.ok) return;
    told.current = filterText.value;
    const due = setTimeout(() => tell(counts.current), 800);
    return () => clearTimeout(due);
  }, [filterText.value, parsed.ok]);

  const chosenRows = p.list("sel");
  // Once all rows are loaded, deleted rows are removed from the selection.
  const complete = whole && !props.loading && props.rows.length > 0;
  const selected = useMemo(() => {
    if (!complete || chosenRows.length === 0) return chosenRows;
    const ids = new Set(props.rows.map(props.id));
    return chosenRows.filter((id) => ids.has(id));
  }, [complete, props.rows, chosenRows.join("\n")]);
  const deselected = selected === chosenRows ? [] : chosenRows.filter((id) => !selected.includes(id)); // rows that do not exist (any more)
  const picked = useMemo(() => new Set(selected), [selected.join(",")]);
  const toggle = (id: string) => {
    const now = params.peek().list("sel"); // keys may be pressed faster than frames are drawn
    set({ sel: now.includes(id) ? now.filter((s) => s !== id) : [...now, id] });
  };
  const order = (by: string) => set({ sort: by === props.usualSort ? null : by });

  // ---- the rows in view
  const scroller = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const room = useSignal(600);
  const rowHeight = density.value === "compact" ? 28 : 36;
  const beyond = useSignal(atFirst);
  const first = useComputed(() => Math.max(0, Math.floor(top.value / rowHeight) - beyond.value));
  const drawn = Math.ceil(room.value / rowHeight) + 2 * beyond.value;
  const active = useSignal<string | null>(null);
  // The visible rows stay in place when rows are added above them. A list at its top shows the newest rows, unless a row of it has the
  // focus.
  const anchor = useRef<{ id: string; offset: number } | null>(null);
  const before = useRef(rows);
  const left = useRef(false); // whether the list has left its top because a row had the focus
  const own = useRef(0); // the place to which this code has scrolled last
  const inside = scroller.current?.contains(document.activeElement) ?? false;
  useLayoutEffect(() => {
    // The row with the focus may have left the rows in view, and with it the document: keys go on in the grid.
    if (inside && (document.activeElement === null || document.activeElement === document.body)) scroller.current?.focus({ preventScroll: true });
  });
  const above = scroller.current?.scrollTop === 0 && before.current !== rows ? cameAbove(rowInUse(scroller.current), before.current, rows, props.id) : 0;
  const from = Math.min(first.value + above, Math.max(0, count - drawn));
  useLayoutEffect(() => {
    before.current = rows;
    const box = scroller.current;
    if (!box) return;
    const scrollTo = (y: number) => {
      box.scrollTop = y;
      own.current = box.scrollTop;
    };
    if (above > 0) {
      left.current = true;
      return scrollTo(above * rowHeight);
    }
    if (left.current && rowInUse(box) === null) {
      left.current = false;
      return scrollTo(0);
    }
    const held = anchor.current;
    if (!held || box.scrollTop === 0) return;
    const at = rows.findIndex((r) => props.id(r) === held.id);
    if (at >= 0 && Math.abs(at * rowHeight - held.offset - box.scrollTop) >= 1) scrollTo(at * rowHeight - held.offset);
  }, [rows]);
  useEffect(() => {
    const box = scroller.current;
    if (!box) return;
    const measure = new ResizeObserver(() => (room.value = box.clientHeight));
    measure.observe(box);
    const due = setTimeout(() => (beyond.value = overscan), 300);
    return () => {
      measure.disconnect();
      clearTimeout(due);
    };
  }, []);
  const onScroll = () => {
    const box = scroller.current!;
    top.value = box.scrollTop;
    if (Math.abs(box.scrollTop - own.current) >= 1) left.current = false;
    const i = Math.floor(box.scrollTop / rowHeight);
    const row = rows[i];
    anchor.current = row ? { id: props.id(row), offset: i * rowHeight - box.scrollTop } : null;
    moved();
  };

  useLayoutEffect(() => {
    if (rows.length > 0) stand();
  }, [rows.length > 0]);

  const state = useRef({ rows, toggle });
  state.current = { rows, toggle };
  const reveal = (i: number, focus: boolean) => {
    const box = scroller.current;
    const row = state.current.rows[i];
    if (!box || !row) return;
    active.value = props.id(row);
    const y = i * rowHeight;
    if (y < box.scrollTop) box.scrollTop = y;
    else if (y + rowHeight * 2 > box.scrollTop + box.clientHeight) box.scrollTop = y + rowHeight * 2 - box.clientHeight;
    if (!focus) return;
    const shown = () => box.querySelector<HTMLElement>(`[role=row][data-id="${CSS.escape(props.id(row))}"]`);
    const drawn = shown();
    (drawn ?? box).focus({ preventScroll: true }); // at once, so that the next key goes to the grid and not to the button that has the focus now
    if (drawn) drawn.scrollIntoView({ block: "nearest", inline: "nearest" }); // the grid itself may be out of view
    else
      requestAnimationFrame(() => {
        if (document.activeElement !== box) return;
        shown()?.focus({ preventScroll: true });
        (shown() ?? box).scrollIntoView({ block: "nearest", inline: "nearest" });
      });
  };
  const filterBox = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const present = () => state.current.rows.find((r) => props.id(r) === active.peek()); // a filter may have hidden the active row
    const mine = {
      move: (by_: number) => {
        const all = state.current.rows;
        const at = all.findIndex((r) => props.id(r) === active.peek());
        const box = scroller.current;
        const first = Math.ceil((box?.scrollTop ?? 0) / rowHeight);
        const last = Math.max(first, Math.floor(((box?.scrollTop ?? 0) + (box?.clientHeight ?? 0)) / rowHeight) - 2);
        const away = at >= 0 && document.activeElement === box && (at < first || at > last); // a key has scrolled away from the row
        const to = away ? (by_ > 0 ? first : last) : at + by_;
        reveal(at < 0 ? 0 : Math.min(all.length - 1, Math.max(0, to)), true);
      },
      open: () => {
        const row = present();
        if (row && props.link) go(props.link(row));
        else if (row) scroller.current?.querySelector<HTMLElement>(`[role=row][data-id="${CSS.escape(props.id(row))}"] a[href]:not([download])`)?.click();
      },
      select: () => {
        const row = present();
        if (!row || !props.selectable) return;
        state.current.toggle(props.id(row));
        reveal(state.current.rows.indexOf(row), false); // a key may have scrolled away from it
      },
      filter: () => filterBox.current?.focus(),
    };
    currentGrid.push(mine);
    return () => void currentGrid.splice(currentGrid.indexOf(mine), 1);
  }, []);

  const command = (of: string): string => {
    const where = [parsed.ok ? filterText.value : typed(conditions), props.within ?? ""].join(" ");
    const asked = { where, conditions, sort: (p.text("sort") !== "" || props.otherOrder) && keys.has(sort.replace(/^-/, "")) ? sort : "" };
    return props.piped ? piped(of, props.piped, asked) : listed(of, asked);
  };
  const write = useRef<(kind: "csv" | "json") => Promise<void>>(async () => undefined);
  write.current = async (kind) => {
    const written = shown.filter((c) => c.file !== null);
    const keys = written.map((c) => c.key);
    const cells = await filed(rows, written);
    const name = props.name.toLowerCase();
    if (kind === "csv") save(`${name}.csv`, "text/csv", csv([keys, ...cells]));
    else save(`${name}.json`, "application/json", JSON.stringify(cells.map((row) => Object.fromEntries(row.map((x, i) => [keys[i], plain(x)]))), null, 1));
  };
  const due = useRef<"csv" | "json" | null>(null); // the format that was asked for before all rows were loaded
  useEffect(() => {
    if (!whole || !due.current) return;
    void write.current(due.current);
    due.current = null;
  }, [whole]);
  const file = (kind: "csv" | "json") => void (whole ? write.current(kind) : (due.current = kind));
  const widths = shown.map((c) => `minmax(${c.width ?? 110}px, ${c.width ?? 110}fr)`).join(" ");
  const template = (props.selectable ? "36px " : "") + widths;
  const lead = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    lead.current?.style.setProperty("--columns", template);
    lead.current?.style.setProperty("--wide", `${shown.reduce((n, c) => n + (c.width ?? 110), props.selectable ? 36 : 0)}px`);
    lead.current?.style.setProperty("--row", `${rowHeight}px`);
    lead.current?.style.setProperty("--rows", `${count * rowHeight}px`);
    lead.current?.style.setProperty("--room", `${props.height ?? Math.max(200, Math.min(640, window.innerHeight - 330))}px`);
  }, [template, count, rowHeight]);

  // Back, forward and a reload return to the row at which the grid was.
  useLayoutEffect(
    () =>
      standsAt(props.name, () => {
        const scrolled = scroller.current?.scrollTop ?? 0;
        const on = active.peek();
        if (scrolled === 0 && on === null) return null;
        const place = scrolled > 0 ? { top: scrolled, row: anchor.current?.id ?? "", above: -(anchor.current?.offset ?? 0) } : { top: 0, row: "", above: 0 };
        return on === null ? place : { ...place, active: on };
      }),
    [],
  );
  const found = useRef(-1); // the number of the return whose place this grid has taken
  const stands = whole && !props.loading && rows.length > 0;
  useLayoutEffect(() => {
    const box = scroller.current;
    if (!box || !stands || found.current === returned.value) return;
    found.current = returned.value;
    const spot = spotFor(props.name);
    if (!spot) return;
    const index = (row: string | undefined) => rows.findIndex((r) => props.id(r) === row);
    box.scrollTop = topOf(spot, index(spot.row), rowHeight);
    active.value = index(spot.active) < 0 ? null : spot.active!;
    top.value = own.current = box.scrollTop;
  }, [stands, returned.value]);

  return (
    <section class="gridbox" ref={lead} aria-label={props.name}>
      <div class="toolbar">
        <label class="grow">
          <span>Filter</span>
          <input
            ref={filterBox}
            type="search"
            spellcheck={false}
            autocomplete="off"
            value={filterText.value}
            aria-invalid={!parsed.ok}
            aria-describedby={parsed.ok ? undefined : `${props.name}-fault`}
            onInput={(e) => {
              const text = e.currentTarget.value;
              filterText.value = text;
              set({ q: text }, true);
            }}
          />
        </label>
        <Chooser columns={props.columns} shown={shown.map((c) => c.key)} />
        <button type="button" onClick={() => file("csv")}>
          Download CSV
        </button>
        <button type="button" onClick={() => file("json")}>
          Download JSON
        </button>
        <CopyLink />
        {props.command && <CopyCommand command={command(props.command)} />}
      </div>
      {!parsed.ok && (
        <p class="fault" id={`${props.name}-fault`} role="alert">
          At {parsed.fault.at + 1}: {clean(parsed.fault.message)}
        </p>
      )}
      {unsorted !== "" && (
        <p class="fault" role="alert">
          There is no column '<bdi>{clean(unsorted.replace(/^-/, ""))}</bdi>' to sort by.
        </p>
      )}
      {gone.length > 0 && (
        <p class="fault" role="alert">
          There is no column <bdi>{clean(gone.join(", "))}</bdi>.
        </p>
      )}
      {deselected.length > 0 && (
        <p class="fault" role="alert">
          Not there (any more), and so not selected: <bdi>{clean(deselected.join(", "))}</bdi>.
        </p>
      )}
      <div class="selection">
        {waits ? "" : rows.length === props.rows.length ? `${count}` : `${rows.length} of ${props.rows.length}`}
        {selected.length > 0 && (
          <span>
            {" "}
            · {selected.length} selected{" "}
            <button type="button" onClick={() => set({ sel: null })}>
              Clear
            </button>
          </span>
        )}
        {props.actions?.(selected)}
      </div>
      <div class="gridscroll" ref={scroller} onScroll={onScroll} tabIndex={0} role="group" aria-label={`${props.name}, scrolls`}>
        <div
          class="grid"
          role="grid"
          aria-label={props.name}
          aria-rowcount={count + 1}
          aria-multiselectable={props.selectable}
          data-rows={count}
          data-all={all}
        >
          <div class="gridhead" role="row" aria-rowindex={1}>
            {props.selectable && (
              <span role="columnheader" data-col="select">
                <span class="sr">Select</span>
              </span>
            )}
            {shown.map((c) => {
              const down = sort === "-" + c.key;
              const up = sort === c.key;
              return (
                <span role="columnheader" key={c.key} data-col={c.key} aria-sort={up ? "ascending" : down ? "descending" : "none"}>
                  <button type="button" onClick={() => order(up ? "-" + c.key : down && props.usualSort !== "-" + c.key ? (props.usualSort ?? "") : c.key)}>
                    {nameOf(c.title)}
                    <span aria-hidden="true">{up ? " ▲" : down ? " ▼" : ""}</span>
                  </button>
                </span>
              );
            })}
          </div>
          <div class="gridbody" role="rowgroup">
            {rows.slice(from, from + drawn).map((row, i) => {
              const id = props.id(row);
              return (
                <div
                  key={id}
                  role="row"
                  class={`gridrow${active.value === id ? " active" : ""}${props.hovers && hovered.value === id ? " hovered" : ""}`}
                  tabIndex={active.value === id ? 0 : -1}
                  aria-rowindex={from + i + 2}
                  aria-selected={props.selectable ? picked.has(id) : undefined}
                  data-id={id}
                  ref={(el) => {
                    el?.style.setProperty("top", `${(from + i) * rowHeight}px`);
                  }}
                  onFocus={() => (active.value = id)}
                  onMouseEnter={props.hovers ? () => (hovered.value = id) : undefined}
                  onMouseLeave={props.hovers ? () => (hovered.value = null) : undefined}
                >
                  {props.selectable && (
                    <span role="gridcell" data-col="select">
                      <input type="checkbox" aria-label={`Select ${id}`} checked={picked.has(id)} onChange={() => toggle(id)} />
                    </span>
                  )}
                  {shown.map((c, k) => {
                    const text = c.show ? c.show(row) : clean(textOf(c.value(row)));
                    return (
                      <span role="gridcell" key={c.key} data-col={c.key} class={typeof c.value(row) === "number" ? "num" : ""} title={c.show ? undefined : clean(String(c.value(row) ?? ""))}>
                        {k === 0 && props.link ? <a href={prefix + props.link(row)}>{text}</a> : text}
                      </span>
                    );
                  })}
                </div>
              );
            })}
          </div>
        </div>
        {rows.length === 0 && <div class="empty">{waits ? "Loading" : props.rows.length === 0 ? (props.empty ?? "Nothing here yet.") : "No row passes the filter."}</div>}
      </div>
    </section>
  );
}

const cellOf = (x: Cell): string | number | boolean | null => (x === undefined || x === null ? null : typeof x === "number" || typeof x === "boolean" ? x : String(x));
const textOf = (x: Cell): string => (x === null || x === undefined ? "" : typeof x === "number" ? short(x) : String(x));

const atOnce = 4; // number of rows whose cells for a file are read at once

/** The rows as they are written to a file. */
async function filed<R>(rows: readonly R[], columns: readonly Column<R>[]): Promise<(string | number | boolean | null)[][]> {
  const cells = rows.map((r) => columns.map((c) => cellOf(c.value(r))));
  const read = columns.flatMap((c, k) => (c.file ? [[c.file, k] as const] : []));
  if (read.length > 0 && rows.length > 100) say(`reading ${rows.length} rows for the file`);
  for (const [of, k] of read) {
    let next = 0;
    const some = async () => {
      for (let i = next++; i < rows.length; i = next++) cells[i]![k] = await of(rows[i]!).then(cellOf, () => null);
    };
    await Promise.all(Array.from({ length: atOnce }, some));
  }
  return cells;
}

const mostChoices = 200;

function Chooser<R>(props: { columns: Column<R>[]; shown: string[] }) {
  const box = useRef<HTMLDialogElement>(null);
  const look = useSignal("");
  const open = useSignal(false);
  const change = (key: string, on: boolean) => {
    const next = on ? [...props.shown, key] : props.shown.filter((k) => k !== key);
    const usual = props.columns.filter((c) => c.usual !== false).map((c) => c.key);
    set({ cols: next.join("\n") === usual.join("\n") ? null : next });
  };
  return (
    <>
      <button
        type="button"
        onClick={() => {
          open.value = true;
          box.current?.showModal();
        }}
      >
        Columns
      </button>
      <dialog ref={box} aria-label="Columns" onClose={() => (open.value = false)}>
        {open.value && (
          <form method="dialog">
            <h2>Columns</h2>
            <label>
              <span>Search</span>
              <input type="search" value={look.value} onInput={(e) => (look.value = e.currentTarget.value)} />
            </label>
            <ul class="choices">
              {props.columns
                .filter((c) => (c.key + c.title).toLowerCase().includes(look.value.toLowerCase()))
                .slice(0, mostChoices)
                .map((c) => (
                  <li key={c.key}>
                    <label>
                      <input type="checkbox" checked={props.shown.includes(c.key)} onChange={(e) => change(c.key, e.currentTarget.checked)} /> <bdi>{nameOf(c.title)}</bdi> <code>{clean(c.key)}</code>
                    </label>
                  </li>
                ))}
            </ul>
            {props.columns.length > mostChoices && <p class="hint">The first {mostChoices}: search for others.</p>}
            <div class="buttons">
              <button type="button" onClick={() => set({ cols: null })}>
                As usual
              </button>
              <button type="submit">Close</button>
            </div>
          </form>
        )}
      </dialog>
    </>
  );
}
