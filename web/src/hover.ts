// The trial under the pointer, which is marked in every chart and in the grid.

import { signal } from "@preact/signals";

export const hovered = signal<string | null>(null);
