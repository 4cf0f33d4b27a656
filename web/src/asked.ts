// Takes the answers that ahead.ts, which runs before all modules, has asked for.

import type { Ahead } from "./ahead";

export const { who, begun, early, arrived, framed, firstRows, stood, stand, included } = (globalThis as unknown as { troupeAhead: Ahead }).troupeAhead;

// The rest of the page starts when the first requests are sent, because starting takes time that would delay them.
await Promise.race([begun, new Promise((go) => setTimeout(go, 100))]);
