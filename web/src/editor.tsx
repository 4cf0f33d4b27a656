// An editor of a configuration. The colours lie over the text field, and each fault is shown at its line.

import { useMemo, useRef } from "preact/hooks";
import type { RefObject } from "preact";
import { clean } from "./text";
import { parts } from "./yaml";

export interface FaultAt {
  line: number;
  text: string;
}

export function Editor(props: { label: string; value: string; faults: readonly FaultAt[]; invalid: boolean; onInput: (text: string) => void; area: RefObject<HTMLTextAreaElement | null> }) {
  const under = useRef<HTMLPreElement>(null);
  const gutter = useRef<HTMLDivElement>(null);
  const lines = useMemo(() => parts(props.value), [props.value]);
  const bad = new Map<number, string>();
  for (const f of props.faults) bad.set(f.line, bad.has(f.line) ? `${bad.get(f.line)}; ${f.text}` : f.text);
  const follow = () => {
    const from = props.area.current;
    if (!from || !under.current || !gutter.current) return;
    under.current.scrollTop = gutter.current.scrollTop = from.scrollTop;
    under.current.scrollLeft = from.scrollLeft;
  };
  return (
    <div class="editor" data-testid="editor">
      <div class="gutter" ref={gutter} aria-hidden="true">
        {lines.map((_, i) => (
          <span key={i} class={bad.has(i + 1) ? "bad" : ""} data-line={i + 1}>
            {i + 1}
          </span>
        ))}
      </div>
      <div class="sheet">
        <pre ref={under} aria-hidden="true">
          {lines.map((line, i) => (
            <code key={i} class={bad.has(i + 1) ? "bad" : ""} data-line={i + 1}>
              {line.map((p, k) => (
                <span key={k} class={`y-${p.kind}`}>
                  {clean(p.text)}
                </span>
              ))}
              {bad.has(i + 1) && <em> ← {clean(bad.get(i + 1)!)}</em>}
              {"\n"}
            </code>
          ))}
        </pre>
        <textarea
          ref={props.area}
          aria-label={props.label}
          aria-describedby="editor-faults"
          aria-invalid={props.invalid}
          rows={20}
          wrap="off"
          spellcheck={false}
          value={props.value}
          onScroll={follow}
          onInput={(e) => {
            props.onInput(e.currentTarget.value);
            follow();
          }}
        />
      </div>
    </div>
  );
}
