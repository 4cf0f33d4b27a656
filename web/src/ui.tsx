// Small parts that all pages use.

import { effect, signal, useSignal, type ReadonlySignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { wholesFailed } from "./page";
import { explain, post } from "./api";
import { hovered } from "./hover";
import { place, prefix } from "./router";
import { zone } from "./settings";
import { clean, moment, nameOf, state } from "./text";

export function Link(props: { to: string; children: ComponentChildren; class?: string; role?: "tab"; current?: boolean; selected?: boolean; label?: string; title?: string; hover?: string }) {
  return (
    <a
      href={prefix + props.to}
      class={props.class}
      role={props.role}
      aria-current={props.current ? "page" : undefined}
      aria-selected={props.selected}
      aria-label={props.label}
      title={props.title}
      onMouseEnter={props.hover === undefined ? undefined : () => (hovered.value = props.hover!)}
      onMouseLeave={props.hover === undefined ? undefined : () => (hovered.value = null)}
    >
      {props.children}
    </a>
  );
}

export function State(props: { of: string }) {
  const text = state(props.of);
  return <span class={`state state-${text.toLowerCase()}`}>{text}</span>;
}

export function Time(props: { at: string | undefined | null }) {
  return <time dateTime={props.at ?? ""}>{moment(props.at, zone.value)}</time>;
}

export function Progress(props: { of: number }) {
  const percent = Math.round(Math.min(1, Math.max(0, props.of || 0)) * 100);
  return (
    <span class="progress">
      <progress max={100} value={percent} aria-label={`${percent} %`} /> {percent} %
    </span>
  );
}

/** A text that screen readers are told, without interrupting them. */
export const said = signal("");
export function tell(text: string): void {
  said.value = "";
  queueMicrotask(() => (said.value = text));
}

/** The outcome of an action. It is shown over the page for a while, or, where it is a refusal, until the user closes it. */
export const note = signal<{ text: string; bad: boolean } | null>(null);
let leaving: ReturnType<typeof setTimeout> | undefined;
function stand(text: string, bad: boolean): void {
  clearTimeout(leaving);
  note.value = { text, bad };
  if (!bad) leaving = setTimeout(() => (note.value = null), 6000);
}
export function say(text: string): void {
  tell(text);
  stand(text, false);
}
export const refused = (why: unknown): void => stand(typeof why === "string" ? why : explain(why), true);

export function Note() {
  const now = note.value;
  if (!now) return null;
  return (
    <div class={`said${now.bad ? " bad" : ""}`} role={now.bad ? "alert" : undefined}>
      {clean(now.text)}{" "}
      {now.bad && (
        <button type="button" onClick={() => (note.value = null)}>
          Close
        </button>
      )}
    </div>
  );
}

/** Sends several requests at once and shows the outcome: which were refused, and why. */
export async function each(ids: readonly string[], kind: string, order: (id: string) => Promise<unknown>, done: string): Promise<void> {
  const all = await Promise.allSettled(ids.map(order));
  const faults = all.flatMap((x, i) => (x.status === "rejected" ? [`${kind} ${ids[i]}: ${explain(x.reason)}`] : []));
  if (faults.length > 0) refused(`${faults.slice(0, 3).join("; ")}${faults.length > 3 ? `; and ${faults.length - 3} more` : ""}`);
  else say(done);
}

/** Copies a text. Where the page has no clipboard, as over plain HTTP, it uses a text field. */
async function copied(text: string, beside: Element): Promise<boolean> {
  if (navigator.clipboard)
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // not allowed; the other way may work
    }
  const before = document.activeElement as HTMLElement | null;
  const field = document.createElement("textarea");
  field.className = "sr";
  field.value = text;
  (beside.closest("dialog") ?? document.body).append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  before?.focus();
  return done;
}

export function Copy(props: { text: () => string; children: ComponentChildren; done?: string }) {
  return (
    <button
      type="button"
      onClick={(e) => void copied(props.text(), e.currentTarget).then((done) => (done ? say(props.done ?? "copied") : refused("this browser does not let the page copy")))}
    >
      {props.children}
    </button>
  );
}

export function CopyLink() {
  return <Copy text={() => location.origin + prefix + place.peek().path + place.peek().search}>Copy link</Copy>;
}

export function CopyCommand(props: { command: string }) {
  return <Copy text={() => props.command}>Copy command</Copy>;
}

/** Lets the browser save `href` as a file. */
export function download(href: string, name: string): void {
  const a = document.createElement("a");
  a.href = href;
  a.download = name;
  a.click();
}

export function save(name: string, type: string, text: string | Blob): void {
  const url = URL.createObjectURL(typeof text === "string" ? new Blob([text], { type }) : text);
  download(url, name);
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

export type Loading<T> = { state: "loading" } | { state: "ready"; value: T } | { state: "error"; why: unknown };

/** Reads once for each key, and again on demand. The old value stays meanwhile. */
export function useRead<T>(key: string, read: (signal: AbortSignal) => Promise<T>): { now: ReadonlySignal<Loading<T>>; again: () => void; change: (to: (old: T) => T) => void } {
  const now = useSignal<Loading<T>>({ state: "loading" });
  const turn = useRef(0);
  const abort = useRef<AbortController | null>(null);
  const busy = useRef(false);
  const stale = useRef(false);
  const reading = useRef(read);
  reading.current = read;
  const start = (fresh: boolean) => {
    const mine = ++turn.current;
    abort.current?.abort();
    abort.current = new AbortController();
    busy.current = true;
    stale.current = false;
    if (fresh) now.value = { state: "loading" };
    const over = (to: Loading<T> | null) => {
      if (mine !== turn.current) return;
      busy.current = false;
      if (to) now.value = to;
      if (stale.current) start(false);
    };
    reading.current(abort.current.signal).then(
      (value) => over({ state: "ready", value }),
      (why: unknown) => over(fresh || now.peek().state !== "ready" ? { state: "error", why } : null),
    );
  };
  useLayoutEffect(() => {
    start(true);
    return () => {
      ++turn.current;
      abort.current?.abort();
    };
  }, [key]);
  return {
    now,
    // A running read ends first. Otherwise changes that come faster than answers would let no answer arrive.
    again: () => (busy.current ? void (stale.current = true) : start(now.peek().state !== "ready")),
    change: (to) => {
      const old = now.peek();
      if (old.state === "ready") now.value = { state: "ready", value: to(old.value) };
    },
  };
}

/** A value once it has not changed for a while. */
export function useRested<T>(value: T, ms: number): T {
  const rested = useSignal(value);
  useEffect(() => {
    const due = setTimeout(() => (rested.value = value), ms);
    return () => clearTimeout(due);
  }, [value]);
  return rested.value;
}

/** Like `useSignalEffect`, but runs before the next frame, which then shows what has arrived. */
export function useAtOnce(run: () => void): void {
  const now = useRef(run);
  now.current = run;
  useLayoutEffect(() => effect(() => now.current()), []);
}

/** A part that failed. `whole` says that this part is all that the address names. */
export function Failed(props: { why: unknown; again: () => void; whole?: boolean }) {
  useLayoutEffect(() => {
    if (!props.whole) return;
    ++wholesFailed.value;
    return () => void --wholesFailed.value;
  }, [props.whole]);
  return (
    <div class="failed" role="alert">
      <p>{clean(explain(props.why))}</p>
      <button type="button" onClick={props.again}>
        Try again
      </button>
    </div>
  );
}

/** Says that an address names something that does not exist, and what is shown in its place. */
export function NoSuch(props: { what: string; asked: string; known: readonly string[]; shown: string }) {
  return (
    <p class="fault" role="alert">
      There is no {props.what} '<bdi>{clean(props.asked)}</bdi>'. Known are {props.known.slice(0, -1).join(", ")} and {props.known.at(-1)}; shown is {props.shown}.
    </p>
  );
}

/** Whether a number can be an id, because an address may hold any digits. */
export const isId = (id: number): boolean => id > 0 && Number.isSafeInteger(id);

export function Empty(props: { children: ComponentChildren }) {
  return <div class="empty">{props.children}</div>;
}

/** A list of names and values. */
export function Facts(props: { rows: [string, ComponentChildren][]; testid?: string }) {
  return (
    <dl class="facts" data-testid={props.testid}>
      {props.rows.map(([name, x]) => (
        <div key={name}>
          <dt>{nameOf(name)}</dt>
          <dd>{typeof x === "string" ? clean(x) : x}</dd>
        </div>
      ))}
    </dl>
  );
}

export interface Question {
  title: string;
  text: string;
  button: string;
  go: () => void;
}
export const question = signal<Question | null>(null);

export const askToKill = (e: { id: number; name: string }): void =>
  void (question.value = {
    title: `Kill experiment ${e.id}?`,
    text: `${e.id} ${clean(e.name)}: its trials end at once, and what was not saved in a checkpoint is lost.`,
    button: "Kill",
    go: () => void post(`/api/v1/experiments/${e.id}/kill`).then(() => say(`experiment ${e.id} is killed`), refused),
  });

/** The question before an action that cannot be undone. Esc cancels it. */
export function Confirm() {
  const box = useRef<HTMLDialogElement>(null);
  const asked = question.value;
  const shown = useRef<Question | null>(null);
  useEffect(() => {
    if (asked && !box.current?.open) box.current?.showModal();
    if (!asked && box.current?.open) box.current.close();
    shown.current = asked;
  }, [asked]);
  return (
    <dialog
      ref={box}
      role="alertdialog"
      aria-label={asked?.title}
      aria-describedby="question-text"
      onClose={() => {
        // The event comes late: the next question may be asked by then, or be on the screen.
        if (!box.current?.open && question.peek() === shown.current) question.value = null;
      }}
    >
      {asked && (
        <form method="dialog">
          <h2>{asked.title}</h2>
          <p id="question-text">{asked.text}</p>
          <div class="buttons">
            <button type="submit" value="no">
              Leave it
            </button>
            <button
              type="button"
              class="danger"
              onClick={() => {
                question.value = null;
                box.current?.close(); // before the action, which may close the dialog below and so move the focus
                asked.go();
              }}
            >
              {asked.button}
            </button>
          </div>
        </form>
      )}
    </dialog>
  );
}
