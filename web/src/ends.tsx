// The ends of a chart's range as fields, which do the same as a drag over the chart.

import { KeptInput } from "./kept_input";
import { set } from "./router";
import { zone } from "./settings";
import { clock, seconds } from "./text";

/** `whole` gives the ends of all values, which are used for an end that is not given. */
export function Ends(props: { time: boolean; range: [number, number] | null; whole: () => [number, number] | null }) {
  const { range, time } = props;
  const change = (i: 0 | 1, text: string) => {
    const whole = props.whole();
    const to = text === "" ? NaN : time ? seconds(text, zone.peek()) : Number(text);
    const ends = (range ?? whole ?? [0, 0]).slice() as [number, number];
    ends[i] = Number.isFinite(to) ? to : (whole?.[i] ?? ends[i]);
    set({ from: String(Math.min(...ends)), to: String(Math.max(...ends)) });
  };
  const field = (i: 0 | 1, label: string) => (
    <label>
      <span>{label}</span>
      <KeptInput
        type={time ? "datetime-local" : "number"}
        step={time ? 1 : "any"}
        value={range ? (time ? clock(range[i], zone.value) : String(range[i])) : ""}
        commit={(text) => change(i, text)}
      />
    </label>
  );
  return (
    <>
      {field(0, "From")}
      {field(1, "To")}
      {range && (
        <button type="button" onClick={() => set({ from: null, to: null })}>
          Whole range
        </button>
      )}
    </>
  );
}

/** The lowest and the highest of some lists of numbers, which need not be sorted. */
export function endsOf(lists: readonly (readonly number[])[]): [number, number] | null {
  let low = Infinity;
  let high = -Infinity;
  for (const list of lists)
    for (const x of list)
      if (Number.isFinite(x)) {
        low = Math.min(low, x);
        high = Math.max(high, x);
      }
  return low <= high ? [low, high] : null;
}
