// Takes the answers to what ahead.ts, which runs before all modules, has asked for.

import type { Ahead } from "./ahead";

export const { who, begun, early, framed, firstRows, stood, stand } = (globalThis as unknown as { troupeAhead: Ahead }).troupeAhead;

// The rest of the page starts once the first questions are on their way: starting would delay the answer that they wait for.
await Promise.race([begun, new Promise((go) => setTimeout(go, 100))]);
