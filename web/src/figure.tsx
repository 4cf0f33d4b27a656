// What every chart offers beside its picture: the numbers as a table and as CSV, and the picture as PNG.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { hovered } from "./hover";
import { clean, csv, isolated, nameOf, short } from "./text";
import { refused, save } from "./ui";

/** Draws the mark of a number that has no place on an axis, at the edge of the chart where it stands: a triangle towards an infinity, a
 *  cross for NaN. `beside` says that this is the left or the right edge. */
export function edgeMark(c: CanvasRenderingContext2D, x: number, y: number, value: number, size: number, beside = false): void {
  const inwards = (value > 0) === beside ? -size : size; // the way from the right or the lower edge is negative
  const line = (...points: [along: number, into: number][]) => points.forEach(([a, b], i) => c[i > 0 ? "lineTo" : "moveTo"](x + (beside ? b : a), y + (beside ? a : b)));
  const [half, far] = [size / 2, inwards * 1.5];
  c.beginPath();
  if (Number.isNaN(value)) {
    line([-half, far], [half, inwards / 2]);
    line([half, far], [-half, inwards / 2]);
    c.stroke();
  } else {
    line([0, 0], [-half, inwards], [half, inwards]);
    c.fill();
  }
}

/** The content of a chart as rows. The first column names the trial or other subject of each row. */
export interface Table {
  columns: string[];
  rows: () => (string | number | null)[][];
}

const mostShown = 1000;

function Numbers(props: { name: string; table: Table }) {
  const rows = props.table.rows();
  return (
    <div class="tablebox" tabIndex={0} role="group" aria-label={`${props.name} as numbers, scrolls`}>
      <table data-rows={rows.length}>
        <thead>
          <tr>
            {props.table.columns.map((c) => (
              <th scope="col" key={c}>
                {clean(c)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, mostShown).map((r, i) => (
            <tr key={i}>
              {r.map((x, k) => (
                <td key={k} class={typeof x === "number" ? "num" : ""}>
                  {typeof x === "number" ? short(x, 6) : clean(x ?? "")}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > mostShown && <p class="hint">The first {mostShown} of {rows.length} rows; the CSV has all.</p>}
    </div>
  );
}

/** The trial under the pointer in words. Screen readers do not say it, because it changes with each move. */
export function Spot(props: { text: (id: string) => string }) {
  const id = hovered.value;
  return (
    <span class="spot" aria-hidden="true">
      {id === null ? "" : props.text(id)}
    </span>
  );
}

/** The row of a trial in words; "" where the table is not one of trials, or has no such row. */
export function rowText(table: Table, id: string): string {
  const row = table.columns[0] === "trial" ? table.rows().find((r) => String(r[0]) === id) : undefined;
  const cell = (x: string | number | null) => (typeof x === "number" ? short(x, 6) : clean(x ?? "—"));
  return row ? `Trial ${id}: ${table.columns.slice(1).map((c, i) => `${nameOf(c)} ${cell(row[i + 1]!)}`).join(", ")}` : "";
}

/** The part below a chart. `name` is the name of its files and `title` that of its table. `listed` says that the chart is a table
 *  already. */
export function Files(props: { name: string; title: string; table: Table; picture: () => void; listed?: boolean; children?: ComponentChildren }) {
  const open = useSignal(false);
  return (
    <>
      <figcaption>
        {props.children}
        {!props.listed && (
          <button type="button" aria-expanded={open.value} onClick={() => (open.value = !open.value)}>
            Show as table
          </button>
        )}
        <button type="button" onClick={() => save(`${props.name}.csv`, "text/csv", csv([props.table.columns, ...props.table.rows()]))}>
          Download CSV
        </button>
        <button type="button" onClick={props.picture}>
          Download PNG
        </button>
      </figcaption>
      {open.value && <Numbers name={props.title} table={props.table} />}
    </>
  );
}

export interface Ink {
  text: string;
  line: string;
  faint: string;
  accent: string;
  onAccent: string;
}
export function ink(): Ink {
  const s = getComputedStyle(document.documentElement);
  const of = (name: string) => s.getPropertyValue(name).trim();
  return { text: of("--text"), line: of("--line"), faint: of("--faint"), accent: of("--accent"), onAccent: of("--on-accent") };
}

export const font = "12px system-ui, sans-serif";

const widths = new Map<string, number>(); // the widths of texts in that font, kept because charts are drawn at each move of the pointer
let ruler: CanvasRenderingContext2D | null = null;
export function measure(text: string): number {
  const known = widths.get(text);
  if (known !== undefined) return known;
  if (widths.size > 5000) widths.clear();
  if (!ruler) {
    ruler = document.createElement("canvas").getContext("2d")!;
    ruler.font = font;
  }
  const wide = ruler.measureText(text).width;
  widths.set(text, wide);
  return wide;
}

const mostPixels = 16_000; // limit of one side: browsers make no larger canvas

/** Saves a picture that is drawn for the file only, with a title above it. */
export function savePicture(name: string, title: string, width: number, height: number, draw: (c: CanvasRenderingContext2D, ink: Ink) => void): void {
  const canvas = document.createElement("canvas");
  const ratio = Math.min(2, mostPixels / width, mostPixels / height);
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  const c = canvas.getContext("2d")!;
  c.scale(ratio, ratio);
  c.font = font;
  c.textBaseline = "middle";
  draw(c, ink());
  canvas.style.width = `${width}px`;
  saveCanvas(name, canvas, title);
}

export interface Named {
  label: string;
  group?: [name: string, value: string, curves: number];
  colour: string;
  dash: number[];
}

/** Saves a canvas of the page as a picture, with a title above it and the names of the curves below, so that the picture explains
 *  itself. It has the background of the page, because light letters would be invisible without that. */
export function saveCanvas(name: string, from: HTMLCanvasElement, title: string, curves: readonly Named[] = []): void {
  const canvas = document.createElement("canvas");
  const ratio = from.width / (from.clientWidth || parseFloat(from.style.width) || from.width); // pixels of the canvas for one pixel of the page
  const [head, row, each] = [28, 20, 200];
  const columns = Math.max(1, Math.floor(from.width / ratio / each));
  const foot = curves.length > 0 ? Math.ceil(curves.length / columns) * row + 12 : 0;
  canvas.width = from.width;
  canvas.height = from.height + Math.round((head + foot) * ratio);
  const c = canvas.getContext("2d")!;
  const k = ink();
  c.fillStyle = getComputedStyle(document.body).backgroundColor;
  c.fillRect(0, 0, canvas.width, canvas.height);
  c.drawImage(from, 0, Math.round(head * ratio));
  c.scale(ratio, ratio);
  c.textBaseline = "middle";
  c.fillStyle = k.text;
  c.font = `bold ${font}`;
  c.fillText(clean(title), 8, head / 2, from.width / ratio - 16);
  c.font = font;
  c.lineWidth = 2;
  curves.forEach((one, i) => {
    const x = 8 + (i % columns) * each;
    const y = head + from.height / ratio + 6 + (Math.floor(i / columns) + 0.5) * row;
    c.strokeStyle = one.colour;
    c.setLineDash(one.dash);
    c.beginPath();
    c.moveTo(x, y);
    c.lineTo(x + 24, y);
    c.stroke();
    c.fillText(one.group ? `${isolated(one.group[0])}=${isolated(one.group[1])} (${one.group[2]})` : clean(one.label), x + 30, y, each - 44);
  });
  canvas.toBlob((png) => (png ? save(`${name}.png`, "image/png", png) : refused("this picture is too large for the browser")));
}

/** Saves a picture of a list of the page: each part as a bar, with a name and a text. */
export function saveBars(name: string, title: string, bars: readonly { name: string; part: number; text: string }[]): void {
  const [row, left, wide] = [24, 240, 720];
  savePicture(name, title, wide, bars.length * row + 16, (c, k) =>
    bars.forEach((b, i) => {
      const y = 8 + (i + 0.5) * row;
      const long = (wide - left - 200) * Math.min(1, Math.max(0, b.part));
      c.fillStyle = k.accent;
      c.fillRect(left, y - 7, long, 14);
      c.fillStyle = k.text;
      c.textAlign = "right";
      c.fillText(clean(b.name), left - 8, y, left - 16);
      c.textAlign = "left";
      c.fillText(clean(b.text), left + long + 8, y, 180);
    }),
  );
}
