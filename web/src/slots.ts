// What a slot does, in one word.

import type { Agent, Slot } from "./api_types";

/** Of an agent that drains or is away the slots are no more for new work, whatever still runs there. */
export function slotState(a: Pick<Agent, "draining" | "enabled" | "state">, s: Pick<Slot, "draining" | "enabled" | "container">): "free" | "busy" | "draining" | "disabled" {
  if (a.state === "away" || a.state === "lost") return s.container ? "busy" : "disabled";
  if (a.draining || s.draining) return "draining";
  if (!a.enabled || !s.enabled) return "disabled";
  return s.container ? "busy" : "free";
}
