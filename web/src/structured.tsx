// Metrics that are no numbers: matrices, bar charts, tables, and trees of anything else.

import { heat } from "./scales";
import { clean, number, short } from "./text";

export function Structured(props: { value: unknown }) {
  const v = props.value;
  if (number(v) !== null) return <span class="num">{short(number(v), 6)}</span>;
  const m = matrixOf(v);
  if (m) return <Matrix rows={m.rows} labels={m.labels} />;
  const t = tableOf(v);
  if (t) return <TableMetric columns={t.columns} rows={t.rows} />;
  if (Array.isArray(v) && v.length > 0 && v.every((x) => number(x) !== null)) return <Bars values={v.map((x) => number(x)!)} />;
  if (typeof v === "string") return <span>{clean(v)}</span>;
  return <Tree value={v} name="" />;
}

function matrixOf(v: unknown): { rows: number[][]; labels: string[] | null } | null {
  const raw = Array.isArray(v) ? v : v !== null && typeof v === "object" && Array.isArray((v as { matrix?: unknown }).matrix) ? (v as { matrix: unknown[] }).matrix : null;
  if (!raw || raw.length === 0 || !Array.isArray(raw[0])) return null;
  const width = (raw[0] as unknown[]).length;
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
    return { columns, rows: v.map((x) => columns.map((c) => (x as Record<string, unknown>)[c])) };
  }
  const o = v as { columns?: unknown; rows?: unknown } | null;
  if (o && typeof o === "object" && Array.isArray(o.columns) && Array.isArray(o.rows)) return { columns: o.columns.map(String), rows: o.rows.map((r) => (Array.isArray(r) ? r : [r])) };
  return null;
}

/** Rows are the true classes. */
function Matrix(props: { rows: number[][]; labels: string[] | null }) {
  const most = Math.max(1e-12, ...props.rows.flat().filter(Number.isFinite));
  const name = (i: number) => clean(props.labels?.[i] ?? String(i));
  return (
    <div class="tablebox">
      <table class="matrix" data-testid="matrix" data-rows={props.rows.length} data-cols={props.rows[0]!.length}>
        <thead>
          <tr>
            <th scope="col">true \ predicted</th>
            {props.rows[0]!.map((_, i) => (
              <th scope="col" key={i}>
                {name(i)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row, i) => (
            <tr key={i}>
              <th scope="row">{name(i)}</th>
              {row.map((x, j) => (
                <td
                  key={j}
                  class={x / most > 0.6 ? "light" : "deep"}
                  ref={(el) => {
                    if (el) el.style.backgroundColor = heat(x / most);
                  }}
                >
                  {short(x, 3)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function TableMetric(props: { columns: string[]; rows: unknown[][] }) {
  return (
    <div class="tablebox">
      <table data-testid="table-metric" data-rows={props.rows.length}>
        <thead>
          <tr>
            {props.columns.map((c) => (
              <th scope="col" key={c}>
                {clean(c)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.slice(0, 500).map((r, i) => (
            <tr key={i}>
              {props.columns.map((c, j) => (
                <td key={c}>{number(r[j]) !== null ? short(number(r[j]), 6) : clean(typeof r[j] === "string" ? r[j] : (JSON.stringify(r[j]) ?? ""))}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {props.rows.length > 500 && <p class="hint">The first 500 of {props.rows.length} rows.</p>}
    </div>
  );
}

function Bars(props: { values: number[] }) {
  const finite = props.values.filter(Number.isFinite);
  const high = Math.max(0, ...finite);
  const low = Math.min(0, ...finite);
  const span = high - low || 1;
  const width = 600 / props.values.length;
  return (
    <svg class="barchart" data-testid="bars" viewBox="0 0 600 160" role="img" aria-label={`Bar chart of ${props.values.length} numbers, ${short(low)} to ${short(high)}`}>
      {props.values.map((v, i) =>
        Number.isFinite(v) ? <rect key={i} x={i * width + 1} width={Math.max(1, width - 2)} y={150 - ((Math.max(0, v) - low) / span) * 140} height={Math.max(1, (Math.abs(v) / span) * 140)} /> : null,
      )}
    </svg>
  );
}

function Tree(props: { value: unknown; name: string }) {
  const v = props.value;
  if (v === null || typeof v !== "object")
    return (
      <div>
        {props.name && <code>{clean(props.name)}: </code>}
        {number(v) !== null ? short(number(v), 6) : clean(String(v))}
      </div>
    );
  const all = Object.entries(v).slice(0, 200);
  return (
    <details open={props.name === ""}>
      <summary>
        <code>{clean(props.name) || (Array.isArray(v) ? "list" : "map")}</code> {all.length}
      </summary>
      <div class="inner">
        {all.map(([k, x]) => (
          <Tree key={k} name={k} value={x} />
        ))}
      </div>
    </details>
  );
}
