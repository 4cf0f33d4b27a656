// The keyboard: single keys (which can be switched off), and the palette.

import { signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { get, may, pagesFor, post, session, type Experiment } from "./api";
import { currentGrid } from "./grid";
import { paused } from "./live";
import { offered, type Findable } from "./palette";
import { go, path, params, pastAt } from "./router";
import { singleKeys, theme } from "./settings";
import { clean } from "./text";
import { askToKill, refused, say, tell } from "./ui";
import type { GetExperimentsResponse } from "./api_types";

const shortcutsOpen = signal(false);
const paletteOpen = signal(false);

const places: Record<string, string> = { h: "/", e: "/experiments", c: "/cluster", q: "/queue", a: "/actors", l: "/logs", v: "/events", s: "/settings" };

function typing(target: EventTarget | null): boolean {
  const el = target as HTMLElement | null;
  if (!el?.closest) return false;
  if (el.isContentEditable || el.closest("textarea, select")) return true;
  const input = el.closest("input");
  return input !== null && !["checkbox", "radio", "button", "submit", "range"].includes(input.type);
}

/** Functions that move the focus to a page's own search, for the key "/". */
export const searchBoxes: (() => void)[] = [];

export function useKeys(): void {
  useEffect(() => {
    let went = 0; // the time at which `g` was pressed
    const down = (e: KeyboardEvent) => {
      if ((e.ctrlKey || e.metaKey) && !e.altKey && e.key.toLowerCase() === "k") {
        e.preventDefault();
        if (session.peek() && !document.querySelector("dialog[open]")) paletteOpen.value = true;
        return;
      }
      if (e.ctrlKey || e.metaKey || e.altKey || singleKeys.peek() === "off" || typing(e.target) || document.querySelector("dialog[open]") || !session.peek()) return;
      const grid = currentGrid[currentGrid.length - 1];
      const done = () => e.preventDefault();
      if (went && performance.now() - went < 1500) {
        went = 0;
        const to = places[e.key];
        if (to && pagesFor([["", to]]).length > 0) {
          done();
          go(to);
        }
        return;
      }
      const onButton = (e.target as Element | null)?.closest?.("a, button, summary") != null;
      switch (e.key) {
        case "?":
          done();
          shortcutsOpen.value = true;
          break;
        case "g":
          went = performance.now();
          break;
        case "/":
          done();
          if (searchBoxes.length > 0) searchBoxes[searchBoxes.length - 1]!();
          else grid?.filter();
          break;
        case "j":
        case "k":
          if (grid) {
            done();
            grid.move(e.key === "j" ? 1 : -1);
          }
          break;
        case "x":
          grid?.select();
          break;
        case "Enter":
          if (!onButton) grid?.open();
          break;
        case "c": {
          const sel = params.peek().list("sel");
          const at = path.peek();
          if (sel.length > 0 && at === "/experiments") go(`/compare?experiments=${sel.join(",")}`);
          else if (sel.length > 0) go(`/compare?trials=${sel.join(",")}`);
          break;
        }
        case ".":
          done();
          paused.value = !paused.value;
          tell(paused.value ? "paused" : "live");
          break;
      }
    };
    document.addEventListener("keydown", down);
    return () => document.removeEventListener("keydown", down);
  }, []);
}

const help: [string, string][] = [
  ["?", "This help"],
  ["Ctrl K or ⌘ K", "Palette: pages, experiments, actions"],
  ["/", "Filter or search"],
  ["j, k", "Next and previous row"],
  ["Enter", "Open the row"],
  ["x", "Select the row"],
  ["c", "Compare the selected"],
  [".", "Pause and go on with what is live"],
  ["g h, g e, g c, g q", "Home, experiments, cluster, queue"],
  ["g a, g l, g v, g s", "Actors, logs, events, settings"],
  ["Esc", "Leave a dialog"],
];

/** The keys of the help, without those of pages that the user may not see. */
function helpFor(): [string, string][] {
  if (pagesFor([["Actors", "/actors"]]).length > 0) return help;
  return help.map(([key, what]) => [key.replace("g a, ", ""), what.replace("Actors, logs", "Logs")]);
}

export function Shortcuts() {
  const box = useRef<HTMLDialogElement>(null);
  const open = shortcutsOpen.value;
  useEffect(() => {
    if (open && !box.current?.open) box.current?.showModal();
  }, [open]);
  return (
    <dialog ref={box} aria-label="Keyboard shortcuts" onClose={() => (shortcutsOpen.value = false)}>
      {open && (
        <form method="dialog">
          <h2>Keyboard shortcuts</h2>
          <dl class="keys">
            {helpFor().map(([key, what]) => (
              <div key={key}>
                <dt>
                  <kbd>{key}</kbd>
                </dt>
                <dd>{what}</dd>
              </div>
            ))}
          </dl>
          <p>Single keys can be switched off in Settings.</p>
          <div class="buttons">
            <button type="submit">Close</button>
          </div>
        </form>
      )}
    </dialog>
  );
}

interface Choice extends Findable {
  hint: string;
  go: () => void;
}

function choices(experiments: Experiment[]): Choice[] {
  const pages: [string, string][] = [
    ["Home", "/"],
    ["Experiments", "/experiments"],
    ["Cluster", "/cluster"],
    ["Queue", "/queue"],
    ["Actors", "/actors"],
    ["Logs", "/logs"],
    ["Events", "/events"],
    ["Settings", "/settings"],
  ];
  const all: Choice[] = pagesFor(pages).map(([title, to]) => ({ title, hint: "page", go: () => go(to) }));
  const at = /^\/experiments\/(\d+)/.exec(path.peek())?.[1];
  const current = experiments.find((e) => String(e.id) === at);
  if (current && pastAt.peek() === 0 && may("change experiment", current.workspaceId)) {
    const order = (what: string, done: string) => () => void post(`/api/v1/experiments/${current.id}/${what}`).then(() => say(done), refused);
    if (current.state === "STATE_ACTIVE" && !current.unmanaged) all.push({ title: `Pause experiment ${current.id}`, hint: "action", go: order("pause", "pausing") });
    if (current.state === "STATE_PAUSED" && !current.unmanaged) all.push({ title: `Resume experiment ${current.id}`, hint: "action", go: order("activate", "resumed") });
    if (/^STATE_(?:ACTIVE|PAUSED)$/.test(current.state)) all.push({ title: `Cancel experiment ${current.id}`, hint: "action", go: order("cancel", "canceled") });
  }
  if (current && pastAt.peek() === 0 && may("kill experiment", current.workspaceId) && /^STATE_(?:ACTIVE|PAUSED|STOPPING)/.test(current.state))
    all.push({ title: `Kill experiment ${current.id}`, hint: "action", go: () => askToKill(current) });
  all.push({ title: "Dark theme", hint: "action", go: () => (theme.value = "dark") });
  all.push({ title: "Light theme", hint: "action", go: () => (theme.value = "light") });
  for (const e of experiments) all.push({ id: String(e.id), title: `${e.id} ${e.name}`, hint: "experiment", go: () => go(`/experiments/${e.id}`) });
  return all;
}

export function Palette() {
  const box = useRef<HTMLDialogElement>(null);
  const input = useRef<HTMLInputElement>(null);
  const text = useSignal("");
  const at = useSignal(0);
  const experiments = useSignal<Experiment[]>([]);
  const open = paletteOpen.value;
  useEffect(() => {
    if (!open || box.current?.open) return;
    text.value = "";
    at.value = 0;
    box.current?.showModal();
    input.current?.focus();
    void get<GetExperimentsResponse>("/api/v1/experiments", { limit: 2000, orderBy: "ORDER_BY_DESC" }).then(
      (x) => (experiments.value = x.experiments),
      () => undefined,
    );
  }, [open]);
  // An id may be typed even where its experiment is not among the newest.
  const id = /^[1-9]\d{0,14}$/.exec(text.value.trim())?.[0];
  const byId: Choice[] = id && !experiments.value.some((e) => String(e.id) === id) ? [{ id, title: `Experiment ${id}`, hint: "experiment", go: () => go(`/experiments/${id}`) }] : [];
  const found = offered([...choices(experiments.value), ...byId], text.value, 12);
  const run = (c: Choice | undefined) => {
    box.current?.close();
    c?.go();
  };
  return (
    <dialog ref={box} class="palette" aria-label="Command palette" onClose={() => (paletteOpen.value = false)}>
      {open && (
        <>
          <label>
            <span class="sr">Search pages, experiments and actions</span>
            <input
              ref={input}
              type="text"
              role="combobox"
              aria-expanded="true"
              aria-controls="palette-list"
              aria-activedescendant={found[at.value] ? `palette-${at.value}` : undefined}
              autocomplete="off"
              placeholder="Pages, experiments, actions"
              value={text.value}
              onInput={(e) => {
                text.value = e.currentTarget.value;
                at.value = 0;
              }}
              onKeyDown={(e) => {
                if (e.key === "ArrowDown") at.value = Math.min(found.length - 1, at.value + 1);
                else if (e.key === "ArrowUp") at.value = Math.max(0, at.value - 1);
                else if (e.key === "Enter") run(found[at.value]);
                else return;
                e.preventDefault();
              }}
            />
          </label>
          {found.length === 0 && <p class="hint">Nothing is found.</p>}
          <ul id="palette-list" role="listbox" aria-label="Found">
            {found.map((c, i) => (
              <li key={c.title + c.hint} id={`palette-${i}`} role="option" aria-selected={i === at.value} onClick={() => run(c)}>
                <bdi>{clean(c.title)}</bdi> <small>{c.hint}</small>
              </li>
            ))}
          </ul>
        </>
      )}
    </dialog>
  );
}
