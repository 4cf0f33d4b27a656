// The log of a trial. It may be of any length, and at most 500 of its lines are in the document.

import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { arrived, stand, stood } from "./asked";
import { explain, get, lines, type LogLine } from "./api";
import { searchBoxes } from "./keys";
import { searched } from "./command";
import { listen, returns, rights } from "./live";
import { asked, lineOf, logQuery } from "./queries";
import { params, place, prefix, set } from "./router";
import { patched } from "./address";
import { zone } from "./settings";
import { before, lastStates, segments, withoutSequences } from "./terminal";
import { clean, moment } from "./text";
import { CopyCommand, CopyLink, Link, tell } from "./ui";
import type { LogHit, LogPage, LogSearchEnd } from "./api_types";

const page = 400; // lines that are read at once while the user scrolls
const most = 500; // limit of the lines in the document
const lineHeight = 40; // pixels of the window for each line in view: the log has 60 % of the window, and a line has 24 pixels

export function LogLineView(props: { line: LogLine; marked?: boolean }) {
  const l = props.line;
  return (
    <div class={`logline${props.marked ? " marked" : ""}${/ERROR|CRITICAL/.test(l.level) ? " bad" : l.level === "WARNING" ? " odd" : ""}`} data-line={l.line}>
      <a class="number" href={prefix + patched(place.peek().path, place.peek().search, { line: l.line })} onClick={(e) => (e.preventDefault(), set({ line: l.line }))} aria-label={`Line ${l.line}`}>
        {l.line}
      </a>
      <span class="at">{moment(l.at, zone.value).slice(11)}</span>
      <span class="what">
        {before(l) && <bdi>{before(l)}</bdi>}
        {segments(l.text).map((s, i) => (
          <bdi key={i} class={s.classes}>
            {s.text}
          </bdi>
        ))}
      </span>
    </div>
  );
}

/** What to say of a line in the address that is no number. */
function unread(): string {
  const said = params.peek().text("line");
  return said === "" || lineOf(said) !== "" ? "" : `There is no line '${clean(said)}' in this log: its lines are numbers from 1 on.`;
}

export function Log(props: { trial: number }) {
  const at = lineOf(params.value.text("line"));
  const path = `/troupe/v1/trials/${props.trial}/log`;
  // The end of the log is part of the first frame where it is there by then.
  const [there] = useState(() => (at === "" ? arrived<LogPage>(asked(path, logQuery(""))) : undefined));
  const shown = useSignal<LogLine[]>(there?.lines ?? []);
  const ends = useSignal(there ? { first: there.first, last: there.last } : { first: 0, last: 0 });
  const follow = useSignal(at === "");
  const fault = useSignal(unread());
  const ready = useSignal(!!there);
  const box = useRef<HTMLDivElement>(null);
  const busy = useRef(false);
  const turn = useRef(0);
  const given = useRef(!!there);
  const keep = useRef<{ line: number; y: number } | null>(null);
  const toReveal = useRef(""); // the line to show when it is in the document
  const begun = useSignal(false); // false while the document has only those of the last lines that are visible
  useEffect(() => void stood.then(() => (begun.value = true)), []);

  const read = async (query: { from?: number; limit: number }): Promise<LogLine[]> => {
    const got = await get<LogPage>(path, query);
    ends.value = { first: got.first, last: Math.max(got.last, ends.peek().last) };
    return got.lines;
  };
  const open = async (line: string) => {
    const mine = ++turn.current;
    busy.current = true;
    try {
      const got = await read(logQuery(line));
      const there = line === "" || got.some((l) => String(l.line) === line);
      const all = got.length > 0 || ends.peek().last === 0 ? got : await read(logQuery("")); // where the line does not exist, the end of the log is shown
      if (mine !== turn.current) return;
      toReveal.current = there ? line : "";
      shown.value = all;
      fault.value = unread() || (there ? "" : `There is no line ${line} in this log.`);
    } catch (why) {
      if (mine === turn.current) fault.value = explain(why);
    }
    if (mine !== turn.current) return;
    ready.value = true;
    busy.current = false;
    stand();
  };
  useLayoutEffect(() => {
    if (given.current) {
      given.current = false;
      stand();
    } else if (at !== "") {
      follow.value = false;
      if (shown.peek().some((l) => String(l.line) === at)) reveal(at);
      else void open(at);
    } else if (!ready.peek() || follow.peek()) void open("");
  }, [props.trial, at]);

  const rowOf = (line: string | number) => box.current?.querySelector<HTMLElement>(`[data-line="${CSS.escape(String(line))}"]`);
  const reveal = (line: string) => {
    const el = rowOf(line);
    const room = box.current?.getBoundingClientRect();
    const own = el?.getBoundingClientRect();
    if (el && room && own && (own.top < Math.max(0, room.top) || own.bottom > Math.min(innerHeight, room.bottom))) el.scrollIntoView({ block: "center" });
  };
  // Content that appears above the log, such as hits, moves the line that the address names. The line is kept in place until the user
  // scrolls.
  const still = useRef(true);
  useEffect(() => {
    still.current = at !== "";
    const end = () => void (still.current = false);
    const all = ["wheel", "touchstart", "pointerdown", "keydown"];
    for (const name of all) addEventListener(name, end, { passive: true });
    return () => all.forEach((name) => removeEventListener(name, end));
  }, [props.trial, at]);
  const bottom = () => {
    const el = box.current;
    if (el) el.scrollTop = el.scrollHeight;
  };
  // Adds new lines while the log is followed.
  useEffect(() => {
    let pending: LogLine[] = [];
    let due = 0;
    const stop = listen([`logs/${props.trial}`], (e) => {
      if (e.name !== "line" || e.data.trial !== props.trial) return;
      const line = e.data;
      ends.value = { first: ends.peek().first || line.line, last: Math.max(ends.peek().last, line.line) };
      pending.push(line);
      due ||= requestAnimationFrame(add);
    });
    const add = () => {
      due = 0;
      if (!ready.peek() || busy.current) return void (due = requestAnimationFrame(add)); // the answer of the running read may be older
      const fresh = pending;
      pending = [];
      if (!follow.peek()) return;
      const next = shown.peek().slice();
      for (const l of fresh) {
        const newest = next[next.length - 1]?.line ?? 0;
        if (l.line <= newest) continue;
        if (l.line > newest + 1) return void open(""); // some lines were written before the stream began
        next.push(l);
      }
      shown.value = next.length > most ? next.slice(next.length - page) : next;
    };
    return () => {
      stop();
      cancelAnimationFrame(due);
    };
  }, [props.trial]);
  useSignalEffect(() => {
    if (returns.value === 0) return;
    if (follow.peek()) void open("");
    else void read(logQuery("")).catch(() => undefined); // reads how long the log is now
  });

  const all = lastStates(shown.value, at);
  const drawn = begun.value || !follow.value ? all : all.slice(-Math.ceil(innerHeight / lineHeight));
  const partly = drawn.length < all.length; // the style shows the last lines then: to scroll there would lay the page out once more
  useLayoutEffect(() => {
    const el = box.current;
    if (!el || shown.value.length === 0) return;
    if (keep.current) {
      const row = rowOf(keep.current.line);
      if (row) el.scrollTop += row.getBoundingClientRect().top - keep.current.y;
      keep.current = null;
    } else if (follow.peek() && !partly) bottom();
    else if (toReveal.current) {
      rowOf(toReveal.current)?.scrollIntoView({ block: "center" });
      toReveal.current = "";
    }
  }, [shown.value, begun.value]);

  const more = async (older: boolean) => {
    if (busy.current) return;
    const now = shown.peek();
    const edge = older ? now[0] : now[now.length - 1];
    if (!edge) return;
    if (older ? edge.line <= ends.peek().first : edge.line >= ends.peek().last) return;
    busy.current = true;
    try {
      const got = await read({ from: older ? Math.max(1, edge.line - page) : edge.line + 1, limit: page });
      const fresh = got.filter((l) => (older ? l.line < edge.line : l.line > edge.line));
      // The visible text stays in place, by the drawn line at the end where lines are added.
      const drawn = box.current?.querySelectorAll<HTMLElement>("[data-line]");
      const row = drawn?.[older ? 0 : drawn.length - 1];
      if (row) keep.current = { line: Number(row.dataset["line"]), y: row.getBoundingClientRect().top };
      const all = older ? [...fresh, ...now] : [...now, ...fresh];
      shown.value = older ? all.slice(0, most) : all.slice(Math.max(0, all.length - most));
    } catch (why) {
      fault.value = explain(why);
    }
    busy.current = false;
  };
  const onScroll = () => {
    const el = box.current!;
    const low = el.scrollTop + el.clientHeight >= el.scrollHeight - 4;
    if (!low && follow.peek() && el.scrollHeight - el.scrollTop - el.clientHeight > 40) follow.value = false;
    if (el.scrollTop < 200) void more(true);
    else if (el.scrollHeight - el.scrollTop - el.clientHeight < 200) void more(false);
  };

  return (
    <section class="log">
      <SearchLog where={`trial=${props.trial}`} onHit={(h) => ((follow.value = false), set({ line: h.line }))} onGrow={() => at !== "" && still.current && reveal(at)} />
      <div class="toolbar">
        <button
          type="button"
          aria-pressed={follow.value}
          onClick={() => {
            follow.value = !follow.value;
            if (follow.value) {
              if (at !== "") set({ line: null });
              else void open("");
            }
          }}
        >
          Follow
        </button>
        {ready.value && (
          <span>
            {ends.value.last} {ends.value.last === 1 ? "line" : "lines"}
          </span>
        )}
        <CopyLink />
        <CopyCommand command={searched(`troupe trial logs ${props.trial}`, params.value)} />
      </div>
      {fault.value && (
        <div class="failed" role="alert">
          <p>{clean(fault.value)}</p>
          <button type="button" onClick={() => void open(at)}>
            Try again
          </button>
        </div>
      )}
      <div class={partly ? "logbox ending" : "logbox"} role="log" aria-live="off" aria-label="Log" tabIndex={0} ref={box} onScroll={onScroll} data-lines={ends.value.last} data-state={ready.value ? "ready" : "loading"}>
        {drawn.map((l) => (
          <LogLineView key={l.line} line={l} marked={String(l.line) === at} />
        ))}
        {ready.value && shown.value.length === 0 && !fault.value && <p class="empty">No line yet.</p>}
      </div>
    </section>
  );
}

/** Full-text search in one log, where `onHit` is called for a hit, or else in many. Hits are shown as they are found. */
export function SearchLog(props: { where: string; onHit?: (h: LogLine) => void; onGrow?: () => void; waits?: boolean }) {
  const wide = !props.onHit;
  const q = params.value.text("q");
  const regex = params.value.flag("regex");
  const typed = useSignal(q);
  const hits = useSignal<LogLine[]>([]);
  const end = useSignal<LogSearchEnd | null>(null);
  const scanned = useRef(0); // lines that earlier searches have looked at, before the one of `end`
  const fault = useSignal("");
  const seen = useSignal(0); // number of hits in the document
  const from = useSignal(""); // where the search continues
  const input = useRef<HTMLInputElement>(null);
  const atOnce = wide ? 500 : 100;
  const turn = useSignal(0); // number of searches that began anew as hits may be of an experiment that has gone
  useEffect(() => {
    let due: ReturnType<typeof setTimeout> | undefined;
    const stop = listen(wide ? ["experiments"] : [], (e) => {
      if (e.name === "gone" && hits.peek().length > 0) due ??= setTimeout(() => ((due = undefined), ++turn.value), 400);
    });
    return () => {
      stop();
      clearTimeout(due);
    };
  }, [wide]);
  useEffect(() => {
    const mine = () => input.current?.focus();
    searchBoxes.push(mine);
    return () => void searchBoxes.splice(searchBoxes.indexOf(mine), 1);
  }, []);
  useEffect(() => {
    typed.value = q;
  }, [q]);
  useEffect(() => {
    hits.value = [];
    scanned.current = 0;
    seen.value = atOnce;
    from.value = "";
  }, [q, regex, props.where, rights.value, turn.value]);
  useEffect(() => {
    end.value = null;
    fault.value = "";
    if (q === "" || props.waits) return;
    const abort = new AbortController();
    let found: LogLine[] = [];
    let due = 0;
    const show = () => {
      due = 0;
      hits.value = hits.peek().concat(found);
      found = [];
    };
    lines(
      `/troupe/v1/logs/search?q=${encodeURIComponent(q)}${regex ? "&regex=true" : ""}${props.where ? "&" + props.where : ""}&limit=1000${from.value ? `&after=${encodeURIComponent(from.value)}` : ""}`,
      (x: LogHit) => {
        if (x.result) found.push(x.result);
        if (x.end) {
          cancelAnimationFrame(due);
          show();
          scanned.current += x.end.scanned;
          end.value = x.end;
          tell(`${hits.peek().length} hits`);
        } else due ||= requestAnimationFrame(show);
      },
      abort.signal,
    ).catch((why: unknown) => {
      if (!abort.signal.aborted) fault.value = explain(why);
    });
    return () => {
      abort.abort();
      cancelAnimationFrame(due);
    };
  }, [q, regex, props.where, props.waits, from.value, rights.value, turn.value]);
  const list = hits.value.slice(0, seen.value);
  const count = hits.value.length;
  const further = end.value?.after ?? "";
  useLayoutEffect(() => props.onGrow?.(), [list.length, end.value]);
  return (
    <section class="search" aria-label="Search">
      <form
        class="toolbar"
        role="search"
        onSubmit={(e) => {
          e.preventDefault();
          set({ q: typed.value });
        }}
      >
        <label class="grow">
          <span>Search log</span>
          <input ref={input} type="search" value={typed.value} onInput={(e) => (typed.value = e.currentTarget.value)} spellcheck={false} />
        </label>
        <label class="check">
          <input type="checkbox" checked={regex} onChange={(e) => set({ regex: e.currentTarget.checked, q: typed.value })} /> <span>Regular expression</span>
        </label>
        <button type="submit">Search</button>
      </form>
      {fault.value && (
        <p class="fault" role="alert">
          {clean(fault.value)}
        </p>
      )}
      {q !== "" && (
        <div data-testid="hits" data-hits={count} data-state={fault.value ? "error" : end.value ? "ready" : "loading"}>
          <p>
            {end.value ? `${count} ${count === 1 ? "line" : "lines"} of ${scanned.current}${further ? "; there may be more behind them" : ""}` : `${count} so far`}
            {count > list.length && `; the first ${list.length} are shown`}
          </p>
          <ol class="hits">
            {list.map((h) => {
              const hit = (
                <>
                  {wide && <span>trial {h.trial}, </span>}
                  <span class="number">{h.line}</span> <Marked before={before(h)} text={h.text} spans={h.spans ?? []} />
                </>
              );
              return (
                <li key={`${h.trial}:${h.line}`}>
                  {wide ? (
                    <Link to={`/trials/${h.trial}/logs?line=${h.line}`}>{hit}</Link>
                  ) : (
                    <button type="button" onClick={() => props.onHit?.(h)}>
                      {hit}
                    </button>
                  )}
                </li>
              );
            })}
          </ol>
          {(count > list.length || (end.value && further)) && (
            <button
              type="button"
              onClick={() => {
                seen.value += atOnce;
                if (count <= list.length && further) from.value = further;
              }}
            >
              More hits
            </button>
          )}
        </div>
      )}
    </section>
  );
}

/** Shows a text with marks. `spans` count bytes of UTF-8 from the beginning of `text`, as the server does. */
function Marked(props: { before: string; text: string; spans: [number, number][] }) {
  const raw = new TextEncoder().encode(props.text);
  const decoder = new TextDecoder();
  const text = (a: number, b: number) => withoutSequences(decoder.decode(raw.slice(a, b)));
  const out: preact.VNode[] = props.before ? [<bdi key="before">{props.before}</bdi>] : [];
  let from = 0;
  props.spans.forEach(([a, b], i) => {
    out.push(<bdi key={`t${i}`}>{clean(text(from, a))}</bdi>, <mark key={`m${i}`}>{clean(text(a, b))}</mark>);
    from = b;
  });
  out.push(<bdi key="end">{clean(text(from, raw.length))}</bdi>);
  return <span class="what">{out}</span>;
}
