// The trial under the pointer, which every chart and the grid mark.

import { signal } from "@preact/signals";

export const hovered = signal<string | null>(null);
