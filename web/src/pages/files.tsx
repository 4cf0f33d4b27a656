// The files and the configuration of an experiment, and a new experiment that is made from both.

import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { explain, get, isAway, post, session, type Experiment } from "../api";
import { Download } from "../download";
import { Editor, type FaultAt } from "../editor";
import { KeptInput } from "../kept_input";
import { connection, returns } from "../live";
import { go, params, set } from "../router";
import { bytes, clean, flat } from "../text";
import { keep, kept } from "../typed";
import { Copy, Empty, Failed, NoSuch, question, say, useRead } from "../ui";
import type { DefaultConfig, FileNode as Node, GetExperimentResponse, GetModelDefFileResponse, GetModelDefTreeResponse } from "../api_types";

export function Code(props: { of: Experiment }) {
  const id = props.of.id;
  const { now, again } = useRead(`tree ${id}`, (signal) => get<GetModelDefTreeResponse>(`/api/v1/experiments/${id}/file_tree`, {}, signal));
  const file = params.value.text("file");
  const v = now.value;
  if (v.state === "error") return <Failed whole why={v.why} again={again} />;
  if (v.state === "loading") return null;
  if (v.value.files.length === 0) return <Empty>It was submitted without files.</Empty>;
  return (
    <div class="split">
      <nav aria-label="Files">
        <Tree nodes={v.value.files} at={file} />
      </nav>
      {file ? <FileView id={id} path={file} /> : <p>Choose a file.</p>}
    </div>
  );
}

function Tree(props: { nodes: Node[]; at: string }) {
  return (
    <ul class="tree">
      {props.nodes.map((n) => (
        <li key={n.path}>
          {n.isDir ? (
            <details open={props.at.startsWith(n.path + "/") || props.nodes.length < 20}>
              <summary>
                <bdi>{clean(n.name)}</bdi>/
              </summary>
              <Tree nodes={n.files} at={props.at} />
            </details>
          ) : (
            <button type="button" class="linklike" aria-current={n.path === props.at} onClick={() => set({ file: n.path })}>
              <bdi>{clean(n.name)}</bdi> <small>{bytes(n.contentLength)}</small>
            </button>
          )}
        </li>
      ))}
    </ul>
  );
}

const mostLines = 5000; // limit of the shown lines of a file, because each is an element

function FileView(props: { id: number; path: string }) {
  const { now, again } = useRead(`file ${props.id} ${props.path}`, async () => {
    const got = await post<GetModelDefFileResponse>(`/api/v1/experiments/${props.id}/file`, { path: props.path });
    const raw = Uint8Array.from(atob(got.file), (c) => c.charCodeAt(0));
    return raw.includes(0) || raw.length > 2_000_000 ? null : new TextDecoder().decode(raw);
  });
  const v = now.value;
  const lines = useMemo(() => (v.state === "ready" && v.value !== null ? v.value.split(/\r?\n/) : null), [v]);
  return (
    <div class="file">
      <p>
        <bdi>{clean(props.path)}</bdi>{" "}
        <Download href={`/troupe/v1/experiments/${props.id}/file?path=${encodeURIComponent(props.path)}`} name={props.path.split("/").pop() ?? ""} />
      </p>
      {v.state === "error" && <Failed why={v.why} again={again} />}
      {v.state === "ready" && !lines && <Empty>This file is no text that can be shown here.</Empty>}
      {lines && (
        <pre tabIndex={0}>
          {lines.slice(0, mostLines).map((l, i) => (
            <code key={i} data-number={i + 1}>
              {clean(l) + "\n"}
            </code>
          ))}
        </pre>
      )}
      {lines && lines.length > mostLines && (
        <p class="hint">
          The first {mostLines} of {lines.length} lines; the download has all.
        </p>
      )}
    </div>
  );
}

// ---- configuration

/** The configuration as it was submitted, with the line ends that a text field has. */
const submitted = (e: Experiment): string => (e.originalConfig ?? "").replace(/\r\n?/g, "\n");

const views = [
  ["submitted", "As submitted"],
  ["resolved", "Resolved"],
  ["differences", "Differences"],
] as const;

export function Config(props: { of: Experiment }) {
  const e = props.of;
  const { now } = useRead(`original ${e.id}`, (signal) => get<GetExperimentResponse>(`/api/v1/experiments/${e.id}`, {}, signal));
  // "defaults" has to be named where the parent would be the default.
  const named = params.value.text("to", e.forkedFrom ? String(e.forkedFrom) : "");
  const other = named === "defaults" ? "" : named;
  const source = now.value.state === "ready" ? submitted(now.value.value.experiment) : "";
  const asked = params.value.text("show", "submitted");
  const tab = views.some(([key]) => key === asked) ? asked : "submitted";
  const resolved = JSON.stringify(e.config, null, 2);
  return (
    <>
      <div class="toolbar">
        <label>
          <span>Show</span>
          <select aria-label="Show" value={tab} onChange={(ev) => set({ show: ev.currentTarget.value === "submitted" ? null : ev.currentTarget.value })}>
            {views.map(([key, name]) => (
              <option key={key} value={key}>
                {name}
              </option>
            ))}
          </select>
        </label>
        {tab === "differences" && (
          <label>
            <span>To experiment (empty: the defaults)</span>
            <KeptInput type="number" min={1} value={other} commit={(text) => set({ to: text || (e.forkedFrom ? "defaults" : null) })} />
          </label>
        )}
        <Copy text={() => (tab === "resolved" ? resolved : source)}>Copy text</Copy>
      </div>
      {asked !== tab && <NoSuch what="view" asked={asked} known={views.map(([key]) => key)} shown={tab} />}
      {tab === "differences" ? (
        <Differences of={e} to={other} />
      ) : (
        <pre data-testid="config" tabIndex={0}>
          {clean(tab === "resolved" ? resolved : source)}
        </pre>
      )}
    </>
  );
}

/** The differences to another experiment, or to the defaults alone, by the values of both configurations. */
function Differences(props: { of: Experiment; to: string }) {
  const { now, again } = useRead(`other ${props.of.id} ${props.to}`, (signal) =>
    props.to
      ? get<GetExperimentResponse>(`/api/v1/experiments/${encodeURIComponent(props.to)}`, {}, signal).then((x) => x.experiment.config)
      : get<DefaultConfig>(`/troupe/v1/experiments/${props.of.id}/defaults`, {}, signal).then((x) => x.config),
  );
  const v = now.value;
  if (v.state === "error") return <Failed whole why={v.why} again={again} />;
  if (v.state === "loading") return null;
  const mine = flat(props.of.config);
  const theirs = flat(v.value);
  const keys = Array.from(new Set([...Object.keys(mine), ...Object.keys(theirs)])).sort();
  // An empty map needs no row, because rows for the keys in the other map show the difference.
  const told = (one: Record<string, unknown>, other: Record<string, unknown>, k: string) => JSON.stringify(one[k]) === "{}" && Object.keys(other).some((o) => o.startsWith(`${k}.`));
  const rows = keys.filter((k) => !told(mine, theirs, k) && !told(theirs, mine, k) && JSON.stringify(mine[k] ?? null) !== JSON.stringify(theirs[k] ?? null));
  return (
    <div data-testid="differences" class="tablebox" tabIndex={0} role="group" aria-label="Differences, scrolls">
      <table>
        <thead>
          <tr>
            <th scope="col">Key</th>
            <th scope="col">Experiment {props.of.id}</th>
            <th scope="col">{props.to ? `Experiment ${clean(props.to)}` : "Default"}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((k) => (
            <tr key={k} data-key={k}>
              <th scope="row">{clean(k)}</th>
              <td>{clean(JSON.stringify(mine[k]) ?? "—")}</td>
              <td>{clean(JSON.stringify(theirs[k] ?? undefined) ?? "—")}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length === 0 && <Empty>There is no difference.</Empty>}
    </div>
  );
}

// ---- fork

/** The faults in a refusal, with their lines: "<config>:3:5: unknown key" is in line 3. */
function faultsIn(text: string): FaultAt[] {
  return text
    .split("\n")
    .map((l) => /:(\d+):\d+: (.*)$/.exec(l))
    .flatMap((m) => (m ? [{ line: Number(m[1]), text: m[2] ?? "" }] : []));
}

/** Where the text names no place, the new experiment gets the place of its parent. */
const placed = (config: string, of: Experiment) => (/^(["']?)(?:workspace|project)\1\s*:/m.test(config) ? { config } : { config, projectId: of.projectId });

export function Fork(props: { of: Experiment; onClose: () => void }) {
  const e = props.of;
  const box = useRef<HTMLDialogElement>(null);
  const me = useRef(session.peek()?.user.id ?? 0).current;
  const what = `fork ${e.id}`;
  const text = useSignal(kept(me, what));
  const faults = useSignal<FaultAt[]>([]);
  const fault = useSignal("");
  const checked = useSignal(false);
  const away = useSignal(false); // whether the server could not be reached when it was last asked; then nothing is known about faults
  const turn = useSignal(0); // number of tries that the user has made
  const loaded = useRef(false);
  const before = useRef(""); // the text that was loaded
  const busy = useSignal(false);
  const area = useRef<HTMLTextAreaElement>(null);
  const failed = (why: unknown) => {
    fault.value = explain(why);
    faults.value = faultsIn(fault.value);
    away.value = isAway(why);
  };
  useEffect(() => box.current?.showModal(), []);
  useEffect(() => {
    if (loaded.current) return;
    let over = false;
    void get<GetExperimentResponse>(`/api/v1/experiments/${e.id}`).then(
      (x) => {
        if (over || loaded.current) return;
        loaded.current = true;
        away.value = false;
        before.current = submitted(x.experiment);
        if (text.peek() === "") text.value = before.current;
      },
      (why: unknown) => void (over || failed(why)),
    );
    return () => void (over = true);
  }, [turn.value]);
  useEffect(() => {
    checked.value = false;
    if (text.value === "") {
      if (away.peek() && !loaded.current) return; // the text is empty because nothing was loaded
      away.value = false;
      faults.value = []; // these faults belong to a former text
      fault.value = loaded.current ? "the configuration is empty: there is nothing to submit" : "";
      return;
    }
    const mine = text.value;
    let over = false; // whether a later text or try has replaced this one
    const due = setTimeout(() => {
      post("/api/v1/experiments", { ...placed(mine, e), validateOnly: true }).then(
        () => {
          if (over) return;
          faults.value = [];
          fault.value = "";
          away.value = false;
          checked.value = true;
        },
        (why: unknown) => void (over || failed(why)),
      );
    }, 300);
    return () => {
      over = true;
      clearTimeout(due);
    };
  }, [text.value, turn.value]);
  // Asks again when the server can be reached, whether live updates are paused or not.
  useSignalEffect(() => {
    returns.value;
    if (connection.value === "live" && away.peek()) turn.value = turn.peek() + 1;
  });
  const close = () => {
    keep(me, what, "");
    props.onClose();
  };
  /** Closes the editor. What was changed is lost, so that this is asked before. */
  const leave = () => {
    if (text.peek() === before.current) return box.current?.close();
    question.value = {
      title: "Discard the changes?",
      text: `Experiment ${e.id} is not forked, and what was changed in its configuration is lost.`,
      button: "Discard",
      go: () => box.current?.close(),
    };
  };
  const submit = async () => {
    busy.value = true;
    try {
      const made = await post<{ experiment: { id: number } }>("/api/v1/experiments", { ...placed(text.value, e), parentId: e.id, activate: true });
      say(`experiment ${made.experiment.id}`);
      close();
      go(`/experiments/${made.experiment.id}`);
    } catch (why) {
      failed(why);
    }
    busy.value = false;
  };
  const typed = (to: string) => {
    text.value = to;
    keep(me, what, to === before.current ? "" : to);
  };
  const toLine = (line: number) => {
    const el = area.current;
    if (!el) return;
    const lines = text.value.split("\n");
    const from = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    el.focus();
    el.setSelectionRange(from, from + (lines[line - 1]?.length ?? 0));
  };
  return (
    <dialog
      ref={box}
      class="wide"
      aria-label={`Fork experiment ${e.id}`}
      onClose={close}
      onCancel={(ev) => {
        ev.preventDefault();
        leave();
      }}
      onKeyDown={(ev) => {
        // A browser lets only the first of several keys Esc be refused where it closes a dialog.
        if (ev.key !== "Escape" || ev.isComposing) return;
        ev.preventDefault();
        leave();
      }}
    >
      <h2>Fork experiment {e.id}</h2>
      <p>A new experiment with the same files and this configuration.</p>
      <Editor label="Configuration" area={area} value={text.value} faults={faults.value} invalid={fault.value !== ""} onInput={typed} />
      <div role="status" id="editor-faults" class={fault.value ? "fault" : "hint"}>
        {fault.value === "" ? (
          checked.value ? (
            "The server accepts it."
          ) : (
            ""
          )
        ) : faults.value.length > 0 ? (
          <ul>
            {faults.value.map((f, i) => (
              <li key={i}>
                <button type="button" class="linklike" onClick={() => toLine(f.line)}>
                  Line {f.line}
                </button>
                : {clean(f.text)}
              </li>
            ))}
          </ul>
        ) : (
          clean(fault.value)
        )}
      </div>
      {away.value && (
        <button type="button" onClick={() => (++turn.value, area.current?.focus())}>
          Try again
        </button>
      )}
      <div class="buttons">
        <button type="button" onClick={leave}>
          Leave it
        </button>
        <button type="button" disabled={busy.value || !checked.value} onClick={() => void submit()}>
          Submit
        </button>
      </div>
    </dialog>
  );
}
