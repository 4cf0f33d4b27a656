// What each page gets from the frame, and what it tells the frame.

import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

export interface PageProps {
  path: string;
  id: number;
  tab: string;
}

/** Set by each page: its title, and whether its content has arrived. */
export const pageState = signal<"loading" | "ready" | "empty" | "error">("loading");
/** How many failed parts are all that an address shows. */
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
