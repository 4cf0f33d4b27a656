// Reading again when the cluster has changed.

import { useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { listen, returns, whenSeen } from "./live";

/** Calls `again` when something under the topics has changed, at most once in `pause` ms, and when a lost connection is back. */
export function useChanges(topics: readonly string[], pause: number, again: () => void): void {
  const newest = useRef(again);
  newest.current = again;
  useEffect(() => {
    if (topics.length === 0) return;
    let due: ReturnType<typeof setTimeout> | undefined;
    let gone = false;
    const call = () => {
      if (!gone) newest.current();
    };
    const stop = listen([...topics], () => {
      due ??= setTimeout(() => {
        due = undefined;
        whenSeen(call);
      }, pause);
    });
    return () => {
      gone = true;
      stop();
      clearTimeout(due);
    };
  }, [topics.join(), pause]);
  useSignalEffect(() => {
    if (returns.value > 0 && topics.length > 0) newest.current();
  });
}
