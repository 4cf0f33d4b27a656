// An experiment as it was after one of its facts: a slider over the facts, and a player.

import { signal, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { get } from "./api";
import { wholesFailed } from "./page";
import { factOf } from "./queries";
import { params, pastAt, set } from "./router";
import { zone } from "./settings";
import { clean, moment as spoken } from "./text";
import { Link, refused, tell, Time } from "./ui";
import type { History, Moment } from "./api_types";

/** The time in ms of the fact after which an experiment is shown; NaN while it is not known. */
export const pastTime = signal(NaN);

const whole = 1000; // number of places of the slider while the facts are not known; the last one is the present

export function TimeSlider(props: { experiment: number }) {
  const history = useSignal<Moment[] | null>(null);
  const reading = useRef<Promise<Moment[]> | null>(null);
  const playing = useSignal(false);
  const at = pastAt.value;
  const load = (): Promise<Moment[]> =>
    (reading.current ??= get<History>(`/troupe/v1/experiments/${props.experiment}/history`).then(
      (x) => (history.value = x.history),
      (why: unknown) => {
        reading.current = null;
        refused(why);
        return [];
      },
    ));
  useEffect(() => {
    if (at > 0) void load();
  }, [at > 0]);
  const all = history.value ?? [];
  /** The index of the last fact at or before this sequence number. */
  const index = (sequence: number) => {
    let i = all.length - 1;
    while (i > 0 && all[i]!.sequence > sequence) --i;
    return i;
  };
  const here = at > 0 && all.length > 0 ? index(at) : all.length - 1;
  const due = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(due.current), []);
  const move = (i: number, list: readonly Moment[]) => {
    const to = list[Math.min(list.length - 1, Math.max(0, i))];
    set({ at: to && i < list.length - 1 ? to.sequence : null }, true);
  };
  const last = all.length > 1 ? all.length - 1 : whole; // a place for each fact, once they are known
  /** The index of the fact at a place. Steps from the present are steps of facts, also while these are not known. */
  const placed = (place: number, count: number) => (last - place <= 10 ? count - 1 - (last - place) : Math.floor((place * (count - 1)) / last));
  const slide = (place: number) => {
    playing.value = false;
    clearTimeout(due.current);
    due.current = setTimeout(() => void load().then((list) => list.length > 0 && move(placed(place, list.length), list)), 120);
  };
  // Plays forward, so that the whole history takes about half a minute.
  useEffect(() => {
    if (!playing.value) return;
    const timer = setInterval(() => {
      const i = index(pastAt.peek() || Infinity);
      if (pastAt.peek() === 0 || i >= all.length - 1) playing.value = false;
      else move(i + Math.max(1, Math.round(all.length / 50)), all);
    }, 600);
    return () => {
      clearInterval(timer);
      const at = pastAt.peek(); // screen readers are told the moment at which the player stopped, and not each one on the way
      tell(at > 0 ? `as of ${all[index(at)]?.at ?? at}` : "now");
    };
  }, [playing.value, all]);
  const moment = at > 0 && wholesFailed.value === 0 ? all[here] : undefined; // undefined where there is no such moment
  useLayoutEffect(() => void (pastTime.value = moment ? Date.parse(moment.at) : NaN), [moment?.at]);
  return (
    <div class={`past${at > 0 ? " on" : ""}`}>
      <label>
        <span>Time</span>
        <input
          type="range"
          data-testid="time-slider"
          min={0}
          max={last}
          value={at > 0 && all.length > 1 ? here : last}
          aria-valuetext={moment ? `as of ${spoken(moment.at, zone.value)}` : "now"}
          onFocus={() => void load()}
          onInput={(e) => slide(Number(e.currentTarget.value))}
        />
      </label>
      {at > 0 && (
        <>
          <span role="status" aria-live={playing.value ? "off" : "polite"} data-testid="as-of">
            {moment ? (
              <>
                as of <Time at={moment.at} /> — {clean(moment.type)}
                {moment.trial ? ` of trial ${moment.trial}` : ""}
              </>
            ) : wholesFailed.value > 0 ? (
              `there is no moment ${at}`
            ) : (
              ""
            )}
          </span>
          <Link to={`/queue?at=${at}`}>Queue then</Link>
          <button type="button" onClick={() => move(here - 1, all)}>
            Back
          </button>
          <button type="button" onClick={() => move(here + 1, all)}>
            Forward
          </button>
          <button type="button" aria-pressed={playing.value} onClick={() => (playing.value = !playing.value)}>
            Play
          </button>
          <button
            type="button"
            onClick={() => {
              playing.value = false;
              set({ at: null });
            }}
          >
            Now
          </button>
        </>
      )}
    </div>
  );
}

/** Removes the moment from the address of a page that shows the present. */
export function useNoMoment(of: unknown[] = [], applies = true) {
  useEffect(() => {
    if (applies && params.peek().text("at") !== "") set({ at: null }, true);
  }, of);
}

/** Says that the moment in the address is not one of a fact, and that the page below shows the present. */
export function UnknownMoment() {
  const said = params.value.text("at");
  if (said === "" || factOf(said) > 0) return null;
  return (
    <p class="fault" role="alert">
      There is no moment '<bdi>{clean(said)}</bdi>': `at` has to be the number of a fact. Shown is now.
    </p>
  );
}
