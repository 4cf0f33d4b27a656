// A user who types while a dialog opens continues in the field: no key goes into the dialog, and none is lost.

type Field = HTMLInputElement | HTMLTextAreaElement;

/** The field that the user types into, or null. */
export function fieldOf(el: Element | null): Field | null {
  if (el instanceof HTMLTextAreaElement) return el;
  return el instanceof HTMLInputElement && /^(text|search|number|email|url|tel|password)$/.test(el.type) ? el : null;
}

let pressed = -Infinity; // the time in ms at which a key was last pressed
globalThis.addEventListener?.("keydown", () => (pressed = performance.now()), true);
/** Whether a key was pressed within the last second, wherever it went. */
export const typesNow = (): boolean => performance.now() - pressed < 1000;

export interface Text {
  value: string;
  from: number; // begin of the selection
  to: number;
}

/** The text of a field after a key. null for a key that writes nothing. */
export function after(key: string, now: Text, multiline: boolean): Text | null {
  const put = (text: string, from = now.from, to = now.to): Text => ({ value: now.value.slice(0, from) + text + now.value.slice(to), from: from + text.length, to: from + text.length });
  const selected = now.to > now.from;
  const before = Array.from(now.value.slice(0, now.from)).pop()?.length ?? 0;
  const behind = Array.from(now.value.slice(now.to))[0]?.length ?? 0;
  if (key === "Enter") return multiline ? put("\n") : null;
  if (key === "Backspace") return put("", selected ? now.from : now.from - before);
  if (key === "Delete") return put("", now.from, selected ? now.to : now.to + behind);
  return Array.from(key).length === 1 ? put(key) : null;
}

/** A function that gives the field the focus again, with the present cursor, when a dialog over it has closed. The dialog would do so
 *  itself, but where the field could not have the focus a moment before, Chromium then loses the cursor, and the next keys. */
export function goesBack(field: Field): () => void {
  const [from, to] = [field.selectionStart, field.selectionEnd];
  return () => {
    field.blur();
    void field.offsetWidth; // from here on the field can have the focus
    field.focus({ preventScroll: true });
    if (from !== null) field.setSelectionRange(from, to);
  };
}

/** Keeps a text that a user has typed and not sent, for this tab and this user alone: a tab begins anew when another user signs in. An empty
 *  text is forgotten. */
export function keep(user: number, what: string, text: string): void {
  try {
    if (text === "") sessionStorage.removeItem(keyOf(user, what));
    else sessionStorage.setItem(keyOf(user, what), text);
  } catch {
    // the browser stores nothing
  }
}

/** The text that is kept, or "". */
export function kept(user: number, what: string): string {
  try {
    return sessionStorage.getItem(keyOf(user, what)) ?? "";
  } catch {
    return "";
  }
}

const keyOf = (user: number, what: string): string => `troupe.typed ${user} ${what}`;

/** Writes a key into a field that does not have the focus. Returns whether the key was used. */
export function typeInto(field: Field, e: KeyboardEvent): boolean {
  const altGr = e.getModifierState("AltGraph");
  if (((e.ctrlKey || e.altKey) && !altGr) || e.metaKey || e.isComposing || field.disabled || field.readOnly) return false;
  const value = field.value;
  const to = after(e.key, { value, from: field.selectionStart ?? value.length, to: field.selectionEnd ?? value.length }, field instanceof HTMLTextAreaElement);
  if (!to) return false;
  if (field.type === "number" && Number.isNaN(Number(to.value))) return true; // otherwise the field would lose its whole content
  field.value = to.value;
  if (field.selectionStart !== null) field.setSelectionRange(to.from, to.to);
  field.dispatchEvent(new InputEvent("input", { bubbles: true }));
  return true;
}
