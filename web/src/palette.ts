// What the palette finds.

export interface Findable {
  title: string;
  id?: string; // of an experiment
}

/** The choices whose titles contain all words of the text: the experiment of that id first, then those whose ids begin with it. */
export function offered<T extends Findable>(all: readonly T[], text: string, most: number): T[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const id = text.trim();
  const rank = (c: T) => (id === "" || c.id === undefined ? 2 : c.id === id ? 0 : c.id.startsWith(id) ? 1 : 2);
  return all
    .filter((c) => words.every((w) => c.title.toLowerCase().includes(w)))
    .sort((a, b) => rank(a) - rank(b))
    .slice(0, most);
}
