// What each page gets from the frame, and what it tells the frame.

import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

export interface PageProps {
  path: string;
  id: number;
  tab: string;
}

/** Set by each page: what it is called, and whether it has what it shows. */
export const pageState = signal<"loading" | "ready" | "empty" | "error">("loading");
/** How many parts that are the whole of what an address shows have failed. */
export const wholesFailed = signal(0);
let speaker: object | null = null; // the page that set pageState: a page that goes does not undo what the next one has set
export function usePage(title: string, state: "loading" | "ready" | "empty" | "error"): void {
  useEffect(() => {
    document.title = `${title} · Troupe`;
  }, [title]);
  const me = useRef({}).current;
  useLayoutEffect(() => {
    speaker = me;
    pageState.value = state;
  }, [state]);
  useLayoutEffect(
    () => () => {
      if (speaker === me) pageState.value = "loading";
    },
    [],
  );
}
