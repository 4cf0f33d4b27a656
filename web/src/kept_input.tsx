// A field that keeps the typed text while its value changes live.

import { useSignal } from "@preact/signals";

/** Typed text stays while the field has the focus, whatever arrives live. `commit` gets the text on Enter, and when a changed field
 *  loses the focus. */
export function KeptInput(props: { type: "number" | "datetime-local"; value: string | number; commit: (text: string) => void; min?: number; max?: number; step?: number | "any" }) {
  const { value, commit, ...as } = props;
  const typed = useSignal<string | null>(null);
  return (
    <input
      {...as}
      value={typed.value ?? value}
      onInput={(e) => (typed.value = e.currentTarget.value)}
      onChange={(e) => {
        typed.value = null;
        commit(e.currentTarget.value);
      }}
      onBlur={() => (typed.value = null)}
    />
  );
}
