// The state that each page shares with the frame.

import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

export interface PageProps {
  path: string;
  id: number;
  tab: string;
}

/** Each page sets it: whether its content has arrived. */
export const pageState = signal<"loading" | "ready" | "empty" | "error">("loading");
/** The number of failed parts that are all that their address shows. */
export const wholesFailed = signal(0);
let speaker: object | null = null; // the page that has set pageState, so that a page which is removed does not undo what the next page has set
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
