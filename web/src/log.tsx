// The log of a trial: any length, of which at most 500 lines are in the document.

import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { explain, get, lines, type LogLine } from "./api";
import { searchBoxes } from "./keys";
import { listen, returns } from "./live";
import { logQuery } from "./queries";
import { params, set } from "./router";
import { zone } from "./settings";
import { lastStates, segments } from "./terminal";
import { clean, moment } from "./text";
import { CopyLink } from "./ui";
import type { LogHit, LogPage, LogSearchEnd } from "./api_types";

const page = 400; // lines that are read at once as one scrolls on
const most = 500; // in the document

export function LogLineView(props: { line: LogLine; marked?: boolean }) {
  const l = props.line;
  return (
    <div class={`logline${props.marked ? " marked" : ""}${/ERROR|CRITICAL/.test(l.level) ? " bad" : l.level === "WARNING" ? " odd" : ""}`} data-line={l.line}>
      <a class="number" href={`?line=${l.line}`} onClick={(e) => (e.preventDefault(), set({ line: l.line }))} aria-label={`Line ${l.line}`}>
        {l.line}
      </a>
      <span class="at">{moment(l.at, zone.value).slice(11)}</span>
      <span class="what">
        {segments(l.text).map((s, i) => (
          <bdi key={i} class={s.classes}>
            {s.text}
          </bdi>
        ))}
      </span>
    </div>
  );
}

export function Log(props: { trial: number }) {
  const at = params.value.text("line");
  const shown = useSignal<LogLine[]>([]);
  const ends = useSignal({ first: 0, last: 0 });
  const follow = useSignal(at === "");
  const fault = useSignal("");
  const ready = useSignal(false);
  const box = useRef<HTMLDivElement>(null);
  const busy = useRef(false);
  const keep = useRef<{ line: number; y: number } | null>(null);
  const mark = useRef<string | null>(null);

  const read = async (query: { from?: number; limit: number }): Promise<LogLine[]> => {
    const got = await get<LogPage>(`/troupe/v1/trials/${props.trial}/log`, query);
    ends.value = { first: got.first, last: Math.max(got.last, ends.peek().last) };
    return got.lines;
  };
  const open = async (line: string) => {
    busy.current = true;
    try {
      shown.value = await read(logQuery(line));
      fault.value = "";
      mark.current = line;
    } catch (why) {
      fault.value = explain(why);
    }
    ready.value = true;
    busy.current = false;
  };
  useLayoutEffect(() => {
    if (mark.current !== null && (at === "" || shown.peek().some((l) => String(l.line) === at))) {
      mark.current = at;
      reveal(at);
      return;
    }
    void open(at);
  }, [props.trial, at]);

  const reveal = (line: string) => {
    const el = box.current?.querySelector<HTMLElement>(`[data-line="${CSS.escape(line)}"]`);
    el?.scrollIntoView({ block: "center" });
  };
  const bottom = () => {
    const el = box.current;
    if (el) el.scrollTop = el.scrollHeight;
  };
  // New lines while one follows.
  useEffect(() => {
    let pending: LogLine[] = [];
    let due = 0;
    const stop = listen([`logs/${props.trial}`], (e) => {
      if (e.name !== "line") return;
      const line = e.data as unknown as LogLine;
      ends.value = { first: ends.peek().first || line.line, last: Math.max(ends.peek().last, line.line) };
      pending.push(line);
      due ||= requestAnimationFrame(() => {
        due = 0;
        const fresh = pending;
        pending = [];
        const now = shown.peek();
        const newest = now[now.length - 1]?.line ?? 0;
        if (!follow.peek() || !ready.peek()) return;
        const next = now.concat(fresh.filter((l) => l.line > newest));
        shown.value = next.length > most ? next.slice(next.length - page) : next;
      });
    });
    return () => {
      stop();
      cancelAnimationFrame(due);
    };
  }, [props.trial]);
  useSignalEffect(() => {
    if (returns.value > 0 && follow.peek()) void open("");
  });

  useLayoutEffect(() => {
    const el = box.current;
    if (!el || shown.value.length === 0) return;
    if (keep.current) {
      const row = el.querySelector<HTMLElement>(`[data-line="${keep.current.line}"]`);
      if (row) el.scrollTop += row.getBoundingClientRect().top - keep.current.y;
      keep.current = null;
    } else if (follow.peek()) bottom();
    else if (mark.current) {
      reveal(mark.current);
      mark.current = "";
    }
  }, [shown.value]);

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
      const row = box.current?.querySelector<HTMLElement>(`[data-line="${edge.line}"]`);
      if (row) keep.current = { line: edge.line, y: row.getBoundingClientRect().top };
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
      <SearchLog where={`trial=${props.trial}`} onHit={(h) => ((follow.value = false), set({ line: h.line }))} />
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
        <span>
          {ends.value.last} {ends.value.last === 1 ? "line" : "lines"}
        </span>
        <CopyLink />
      </div>
      {fault.value && (
        <div class="failed" role="alert">
          <p>{clean(fault.value)}</p>
          <button type="button" onClick={() => void open(at)}>
            Try again
          </button>
        </div>
      )}
      <div class="logbox" role="log" aria-live="off" aria-label="Log" tabIndex={0} ref={box} onScroll={onScroll} data-lines={ends.value.last} data-state={ready.value ? "ready" : "loading"}>
        {lastStates(shown.value).map((l) => (
          <LogLineView key={l.line} line={l} marked={String(l.line) === at} />
        ))}
        {ready.value && shown.value.length === 0 && !fault.value && <p class="empty">No line yet.</p>}
      </div>
    </section>
  );
}

/** Full-text search over one log or many; hits come as they are found. */
export function SearchLog(props: { where: string; onHit: (h: LogLine) => void; wide?: boolean }) {
  const q = params.value.text("q");
  const regex = params.value.flag("regex");
  const typed = useSignal(q);
  const hits = useSignal<LogLine[]>([]);
  const end = useSignal<LogSearchEnd | null>(null);
  const fault = useSignal("");
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const mine = () => input.current?.focus();
    searchBoxes.push(mine);
    return () => void searchBoxes.splice(searchBoxes.indexOf(mine), 1);
  }, []);
  useEffect(() => {
    typed.value = q;
    hits.value = [];
    end.value = null;
    fault.value = "";
    if (q === "") return;
    const abort = new AbortController();
    let found: LogLine[] = [];
    let due = 0;
    lines(
      `/troupe/v1/logs/search?q=${encodeURIComponent(q)}${regex ? "&regex=true" : ""}${props.where ? "&" + props.where : ""}&limit=1000`,
      (x: LogHit) => {
        if (x.result) found.push(x.result);
        if (x.end) end.value = x.end;
        due ||= requestAnimationFrame(() => {
          due = 0;
          hits.value = hits.peek().concat(found);
          found = [];
        });
      },
      abort.signal,
    ).catch((why: unknown) => {
      if (!abort.signal.aborted) fault.value = explain(why);
    });
    return () => {
      abort.abort();
      cancelAnimationFrame(due);
    };
  }, [q, regex, props.where]);
  const list = hits.value.slice(0, props.wide ? 500 : 100);
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
        <label>
          <input type="checkbox" checked={regex} onChange={(e) => set({ regex: e.currentTarget.checked })} /> <span>Regular expression</span>
        </label>
        <button type="submit">Search</button>
      </form>
      {fault.value && (
        <p class="fault" role="alert">
          {clean(fault.value)}
        </p>
      )}
      {q !== "" && (
        <div data-testid="hits" data-hits={end.value?.hits ?? hits.value.length} data-state={end.value ? "ready" : "loading"}>
          <p role="status">
            {end.value ? `${end.value.hits} ${end.value.hits === 1 ? "line" : "lines"} of ${end.value.scanned}` : `${hits.value.length} so far`}
          </p>
          <ol class="hits">
            {list.map((h) => (
              <li key={`${h.trial}:${h.line}`}>
                <button type="button" onClick={() => props.onHit(h)}>
                  {props.wide && <span>trial {h.trial}, </span>}
                  <span class="number">{h.line}</span> <Marked text={h.text} spans={h.spans ?? []} />
                </button>
              </li>
            ))}
          </ol>
        </div>
      )}
    </section>
  );
}

/** Spans count bytes of UTF-8, as the server finds them. */
function Marked(props: { text: string; spans: [number, number][] }) {
  const raw = new TextEncoder().encode(props.text);
  const decoder = new TextDecoder();
  const out: preact.VNode[] = [];
  let from = 0;
  props.spans.forEach(([a, b], i) => {
    out.push(<bdi key={`t${i}`}>{clean(decoder.decode(raw.slice(from, a)))}</bdi>, <mark key={`m${i}`}>{clean(decoder.decode(raw.slice(a, b)))}</mark>);
    from = b;
  });
  out.push(<bdi key="end">{clean(decoder.decode(raw.slice(from)))}</bdi>);
  return <span class="what">{out}</span>;
}
