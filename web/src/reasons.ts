// Explanations as sentences for readers.

import type { Explanation, ExperimentExplanation } from "./api";
import { segments } from "./terminal";
import { span } from "./text";

/** How many trials of an experiment run, wait and are paused, and why the first waiting one waits. Where there is none of these, the
 *  reason of the experiment. */
export function standing(x: ExperimentExplanation): string {
  const counts = (["running", "waiting", "paused"] as const).filter((k) => x.trials[k] > 0).map((k) => `${x.trials[k]} ${k}`);
  const first = x.waiting[0];
  const text = counts.join(", ") || x.reason.text;
  return first ? `${text}; trial ${first.trial}: ${first.reason.text}${first.advice ? ` (${first.advice})` : ""}` : text;
}

/** What would free slots for a waiting run: each allocation, how, and when where that is known. */
export function wouldFree(x: Explanation): string {
  return x.wouldFree
    .map((f) => {
      const what = `${f.allocation ?? "another run"} (${f.slots} ${f.slots === 1 ? "slot" : "slots"} on ${f.agents.join(", ")}) `;
      if (f.stopping) return `${what}is being preempted${f.preemptedFor === null ? "" : ` for ${f.preemptedFor}`}`;
      return what + (f.how === "preempted" ? "could be preempted" : "ends") + (f.expectedSeconds === null ? "" : ` in about ${span(f.expectedSeconds)}`);
    })
    .join("; ");
}

/** What would free slots for a waiting run, or what its user can do where nothing that runs would. */
export const wayOut = (x: Explanation): string => wouldFree(x) || x.advice;

/** The line among a failed trial's last lines that says what was wrong: the first with the name of an exception, else the first that
 *  sounds like a fault, else the last line of the script. */
export function firstErrorLine<T extends { stream: string; level: string; text: string }>(lines: readonly T[]): T | null {
  const own = lines.filter((l) => l.stream !== "troupe").map((line) => ({ line, text: (line.level ? `${line.level}: ` : "") + segments(line.text).map((s) => s.text).join("") }));
  const found =
    own.find((l) => /^\s*(?:[\w.]+[:\]]\s*)?[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit)\b(?!.*\bin <module>)/.test(l.text)) ??
    own.find((l) => /\b(?:error|fatal|exception|killed|out of memory|segmentation fault|core dumped|assertion|panic(?:ked)?)\b/i.test(l.text)) ??
    own.filter((l) => l.text.trim() !== "" && !/^(?:Traceback \(most recent call last\):|\s+(?:File "|at ))/.test(l.text)).pop();
  return found?.line ?? null;
}
