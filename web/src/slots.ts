// The state of a slot in one word.

import type { Agent, Slot } from "./api_types";

export const slots = (a: Pick<Agent, "slots">): Slot[] => Object.values(a.slots).sort((x, y) => Number(x.id) - Number(y.id));
/** The number of slots of an agent that are held. */
export const busy = (a: Pick<Agent, "slots">): number => slots(a).filter((s) => s.container).length;

/** The state of a slot as a short word. "" for a free slot. */
export const slotWord = (state: "free" | "busy" | "draining" | "disabled"): string => ({ free: "", busy: "busy", draining: "drain", disabled: "off" })[state];

/** The holder of a slot: a trial, a task, or something that the user may not see and that the server does not name. */
export function holderOf(s: Pick<Slot, "container">): { kind: "none" | "trial" | "task" | "hidden"; id: string } {
  const id = s.container?.id.split(".")[0] ?? "";
  if (id === "") return { kind: "none", id };
  if (/^hidden-/.test(id)) return { kind: "hidden", id: "" };
  return { kind: /^\d+$/.test(id) ? "trial" : "task", id };
}

/** The holder of a slot in words: "trial 7 of ada", "of another". "" for a free slot. */
export function heldBy(s: Pick<Slot, "container">, user: string): string {
  const { kind, id } = holderOf(s);
  return kind === "none" ? "" : kind === "hidden" ? "of another" : `${kind} ${id}${user ? ` of ${user}` : ""}`;
}

/** The state of a slot. Slots of an agent that drains or is away take no new work, whatever still runs on them. */
export function slotState(a: Pick<Agent, "draining" | "enabled" | "state">, s: Pick<Slot, "draining" | "enabled" | "container">): "free" | "busy" | "draining" | "disabled" {
  if (a.state === "away" || a.state === "lost") return s.container ? "busy" : "disabled";
  if (a.draining || s.draining) return "draining";
  if (!a.enabled || !s.enabled) return "disabled";
  return s.container ? "busy" : "free";
}
