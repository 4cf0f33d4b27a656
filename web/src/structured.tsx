// Metrics that are not numbers: matrices, bar charts, tables, and trees of anything else.

import { fitting, heat, linear } from "./scales";
import { Files, measure, savePicture } from "./figure";
import { Drawing } from "./plots";
import { clean, csv, number, short } from "./text";
import { save } from "./ui";

/** Shows a metric that is not a number. `name` is the metric's name, which its files get. */
export function Structured(props: { value: unknown; name: string }) {
  const v = props.value;
  if (number(v) !== null) return <span class="num">{short(number(v), 6)}</span>;
  const m = matrixOf(v);
  if (m) return <Matrix rows={m.rows} labels={m.labels} name={props.name} />;
  const t = tableOf(v);
  if (t) return <TableMetric columns={t.columns} rows={t.rows} name={props.name} />;
  if (Array.isArray(v) && v.length > 0 && v.every((x) => number(x) !== null)) return <Bars values={v.map((x) => number(x)!)} name={props.name} />;
  if (typeof v === "string") return <span>{clean(v)}</span>;
  return <Tree value={v} name="" />;
}

function matrixOf(v: unknown): { rows: number[][]; labels: string[] | null } | null {
  const raw = Array.isArray(v) ? v : v !== null && typeof v === "object" && Array.isArray((v as { matrix?: unknown }).matrix) ? (v as { matrix: unknown[] }).matrix : null;
  if (!raw || raw.length === 0 || !Array.isArray(raw[0])) return null;
  const width = (raw[0] as unknown[]).length;
  if (width === 0) return null;
  const rows: number[][] = [];
  for (const r of raw) {
    if (!Array.isArray(r) || r.length !== width) return null;
    const row = r.map((x) => number(x));
    if (row.some((x) => x === null)) return null;
    rows.push(row as number[]);
  }
  const labels = Array.isArray(v) ? null : (v as { labels?: unknown }).labels;
  return { rows, labels: Array.isArray(labels) ? labels.map(String) : null };
}

function tableOf(v: unknown): { columns: string[]; rows: unknown[][] } | null {
  if (Array.isArray(v) && v.length > 0 && v.every((x) => x !== null && typeof x === "object" && !Array.isArray(x))) {
    const columns = Array.from(new Set(v.flatMap((x) => Object.keys(x as object))));
    if (columns.length === 0 || !v.some((x) => Object.keys(x as object).length === columns.length)) return null; // one of the maps must have all keys
    return { columns, rows: v.map((x) => columns.map((c) => (x as Record<string, unknown>)[c])) };
  }
  const o = v as { columns?: unknown; rows?: unknown } | null;
  if (o && typeof o === "object" && Array.isArray(o.columns) && Array.isArray(o.rows)) {
    const rows = o.rows.map((r): unknown[] => (Array.isArray(r) ? r : [r]));
    const names = o.columns.map(String);
    const wide = rows.reduce((most, r) => Math.max(most, r.length), names.length);
    return { columns: names.concat(Array<string>(wide - names.length).fill("")), rows }; // cells without a name stay
  }
  return null;
}

const mostCells = 100; // limit of the cells of a row or a column in the document

const corner = "true \\ predicted";

/** A confusion matrix, whose rows are the true classes. */
function Matrix(props: { rows: number[][]; labels: string[] | null; name: string }) {
  let high = 0;
  let low = 0;
  for (const row of props.rows)
    for (const x of row)
      if (Number.isFinite(x)) {
        high = Math.max(high, x);
        low = Math.min(low, x);
      }
  const of = linear(low, high > low ? high : low + 1);
  const shade = (x: number) => (x === Infinity ? 1 : Number.isFinite(x) ? of.at(x) : 0);
  const wide = props.rows[0]!.length;
  const name = (i: number) => clean(props.labels?.[i] ?? String(i));
  const picture = () => {
    const [cw, ch] = [64, 24];
    savePicture(props.name, props.name, cw * (wide + 1), ch * (props.rows.length + 1), (c, k) => {
      c.textAlign = "center";
      const cell = (i: number, j: number, text: string) => c.fillText(text, (j + 1.5) * cw, (i + 1.5) * ch, cw - 6);
      c.fillStyle = k.text;
      cell(-1, -1, corner);
      for (let j = 0; j < wide; ++j) cell(-1, j, name(j));
      props.rows.forEach((row, i) => {
        c.fillStyle = k.text;
        cell(i, -1, name(i));
        row.forEach((x, j) => {
          c.fillStyle = heat(shade(x));
          if (!Number.isNaN(x)) c.fillRect((j + 1) * cw, (i + 1) * ch, cw - 1, ch - 1);
          c.fillStyle = Number.isNaN(x) ? k.text : shade(x) > 0.6 ? "#000000" : "#ffffff";
          cell(i, j, short(x, 3));
        });
      });
    });
  };
  const table = { columns: [corner, ...props.rows[0]!.map((_, j) => name(j))], rows: () => props.rows.map((row, i) => [name(i), ...row]) };
  return (
    <figure class="chart" data-testid="matrix" data-rows={props.rows.length} data-cols={wide}>
      <div class="tablebox" tabIndex={0} role="group" aria-label="Matrix, scrolls">
        <table class="matrix">
          <thead>
            <tr>
              <th scope="col">{corner}</th>
              {props.rows[0]!.slice(0, mostCells).map((_, i) => (
                <th scope="col" key={i}>
                  {name(i)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {props.rows.slice(0, mostCells).map((row, i) => (
              <tr key={i}>
                <th scope="row">{name(i)}</th>
                {row.slice(0, mostCells).map((x, j) => (
                  <td
                    key={j}
                    class={Number.isNaN(x) ? "" : shade(x) > 0.6 ? "light" : "deep"}
                    ref={(el) => {
                      if (el) el.style.backgroundColor = Number.isNaN(x) ? "" : heat(shade(x));
                    }}
                  >
                    {short(x, 3)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
        {(props.rows.length > mostCells || wide > mostCells) && (
          <p class="hint">
            The first {Math.min(mostCells, props.rows.length)} × {Math.min(mostCells, wide)} of {props.rows.length} × {wide}.
          </p>
        )}
      </div>
      <Files name={props.name} title="Matrix" table={table} picture={picture} listed />
    </figure>
  );
}

function TableMetric(props: { columns: string[]; rows: unknown[][]; name: string }) {
  const cell = (x: unknown) => number(x) ?? (typeof x === "string" ? x : (JSON.stringify(x) ?? ""));
  const shown = (x: string | number) => (typeof x === "number" ? short(x, 6) : clean(x));
  const cells = () => [props.columns, ...props.rows.map((r) => props.columns.map((_, j) => cell(r[j])))];
  return (
    <div data-testid="table-metric" data-rows={props.rows.length}>
      <div class="tablebox" tabIndex={0} role="group" aria-label="Table, scrolls">
        <table>
          <thead>
            <tr>
              {props.columns.map((c, j) => (
                <th scope="col" key={j}>
                  {clean(c)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {props.rows.slice(0, 500).map((r, i) => (
              <tr key={i}>
                {props.columns.map((_, j) => (
                  <td key={j}>{shown(cell(r[j]))}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
        {props.rows.length > 500 && <p class="hint">The first 500 of {props.rows.length} rows.</p>}
      </div>
      <button type="button" onClick={() => save(`${props.name}.csv`, "text/csv", csv(cells()))}>
        Download CSV
      </button>
    </div>
  );
}

function Bars(props: { values: number[]; name: string }) {
  const { values } = props;
  const scale = fitting([...values.filter(Number.isFinite), 0], false);
  return (
    <Drawing
      testid="bars"
      file={props.name}
      name={`Bar chart of ${values.length} numbers`}
      height={160}
      depends={[values]}
      data={{ bars: values.length }}
      table={{ columns: ["index", "value"], rows: () => values.map((v, i) => [i, v]) }}
      draw={(c, w, h, k) => {
        const y = (v: number) => 8 + (1 - scale.at(v)) * (h - 16);
        const ends = [scale.back(1), scale.back(0)].map((v) => short(v, 4));
        const left = Math.max(...ends.map(measure)) + 10;
        const width = (w - left) / values.length;
        c.fillStyle = k.accent;
        values.forEach((v, i) => {
          if (Number.isFinite(v)) c.fillRect(left + i * width + Math.min(1, width / 4), Math.min(y(v), y(0)), Math.max(1, width - Math.min(2, width / 2)), Math.max(1, Math.abs(y(v) - y(0))));
        });
        c.fillStyle = k.text;
        c.textAlign = "center";
        values.forEach((v, i) => {
          if (!Number.isFinite(v)) c.fillText(v === Infinity ? "▲" : v === -Infinity ? "▼" : "×", left + (i + 0.5) * width, v === Infinity ? 12 : h - 2); // the same signs as at the edges of curves
        });
        c.textAlign = "left";
        c.fillText(ends[0]!, 4, 12);
        c.fillText(ends[1]!, 4, h - 4);
      }}
    />
  );
}

const mostBranches = 200;

function Tree(props: { value: unknown; name: string; deep?: boolean }) {
  const v = props.value;
  if (v === null || typeof v !== "object")
    return (
      <div>
        {props.name && <code>{clean(props.name)}: </code>}
        {number(v) !== null ? short(number(v), 6) : clean(String(v))}
      </div>
    );
  const all = Object.entries(v);
  return (
    <details open={!props.deep}>
      <summary>
        <code>{clean(props.name) || (Array.isArray(v) ? "list" : "map")}</code> {all.length}
      </summary>
      <div class="inner">
        {all.slice(0, mostBranches).map(([k, x]) => (
          <Tree key={k} name={k} value={x} deep />
        ))}
        {all.length > mostBranches && <p class="hint">The first {mostBranches}.</p>}
      </div>
    </details>
  );
}
