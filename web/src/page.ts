// What each page is given, and what it says of itself.

import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect } from "preact/hooks";

export interface PageProps {
  path: string;
  id: number;
  tab: string;
}

/** Set by each page: what it is called, and whether it has what it shows. */
export const pageState = signal<"loading" | "ready" | "empty" | "error">("loading");
export function usePage(title: string, state: "loading" | "ready" | "empty" | "error"): void {
  useEffect(() => {
    document.title = `${title} · Troupe`;
  }, [title]);
  useLayoutEffect(() => {
    pageState.value = state;
  }, [state]);
  useEffect(() => () => void (pageState.value = "loading"), []);
}
