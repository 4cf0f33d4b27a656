// The live actors of all nodes: which owns which, which are busy, and one of them in detail.

import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { explain, get, isUnknown, may, post, request } from "../api";
import { Drain } from "../drain";
import { Files, savePicture } from "../figure";
import { usePage } from "../page";
import { Grid, type Column } from "../grid";
import { paused, returns } from "../live";
import { patched } from "../address";
import { params, place, set } from "../router";
import { zone } from "../settings";
import { clean, flat, moment, short, span, worded } from "../text";
import { Empty, Facts, Failed, question, refused, say, useRead } from "../ui";
import type { GetAgentsResponse, ShellActorRow as Actor, ShellActors, ShellInfo, ShellOrders, ShellState, ShellTree as Branch } from "../api_types";

const columns: Column<Actor>[] = [
  { key: "id", title: "Actor", value: (a) => a.actor, width: 200 },
  { key: "node", title: "Node", value: (a) => a.node, width: 120 },
  { key: "state", title: "State", value: (a) => a.state, width: 100 },
  { key: "backlog", title: "Backlog", value: (a) => a.backlog, width: 110 },
  { key: "rate", title: "Messages/s", value: (a) => a.msg_per_s, width: 140 },
  { key: "messages", title: "Messages", value: (a) => a.messages, width: 120 },
  { key: "run", title: "Run, p99 µs", value: (a) => a.run_us_p99, width: 140 },
  { key: "wait", title: "Wait, p99 µs", value: (a) => a.wait_us_p99, width: 140 },
  { key: "restarts", title: "Restarts", value: (a) => a.restarts, width: 110 },
  { key: "uptime", title: "Up", value: (a) => a.uptime_s, show: (a) => span(a.uptime_s), width: 100 },
];

const pause = 3500; // ms between two reads, which take turns, so that an open page makes at most three in 10 s

const shellKeys = { id: "actor", rate: "msg_per_s", run: "run_us_p99", wait: "wait_us_p99", uptime: "uptime_s" };

export default function Actors() {
  const { now, again } = useRead("actors", (signal) => get<ShellActors>("/troupe/v1/shell/ps", { window: 1 }, signal));
  const rows = useSignal<readonly Actor[] | null>(null);
  useSignalEffect(() => {
    if (now.value.state === "ready") rows.value = now.value.value.rows;
  });
  const others = useRef<(() => void)[]>([]); // the reads of the open actor
  const turn = useRef(0);
  useEffect(() => {
    const due = setInterval(() => {
      if (document.hidden || paused.peek()) return;
      const reads = [again, ...others.current];
      reads[turn.current++ % reads.length]!();
    }, pause);
    return () => clearInterval(due);
  }, []);
  useSignalEffect(() => {
    if (returns.value > 0) again();
  });
  const all = rows.value;
  const at = params.value.text("at");
  usePage("Actors", now.value.state === "error" && !all ? "error" : !all ? "loading" : all.length === 0 ? "empty" : "ready");
  const missing = now.value.state === "ready" ? now.value.value.missing : [];
  return (
    <>
      <h1 tabIndex={-1}>Actors</h1>
      {now.value.state === "error" && <Failed why={now.value.why} again={again} />}
      {missing.length > 0 && (
        <p class="fault" role="status">
          {missing.map((m) => `${clean(m.node)} does not answer: ${clean(m.why)}`).join("; ")}
        </p>
      )}
      {all && (
        <>
          <Topology rows={all} />
          <div class={at ? "split wide" : ""}>
            <Grid name="Actors" rows={all} columns={columns} id={(a) => `${a.actor}@${a.node}`} link={(a) => patched("/actors", place.value.search, { at: named(a, all) })} usualSort="-backlog" bare={["id"]} command="ps" piped={shellKeys} empty={<Empty>No actor answers.</Empty>} height={420} />
            {at && <One key={at} name={at} turns={others.current} />}
          </div>
        </>
      )}
    </>
  );
}

const named = (a: Actor, all: readonly Actor[]): string => (all.some((b) => b !== a && b.actor === a.actor) ? `${a.actor}@${a.node}` : a.actor);

const mostDrawn = 400; // limit of the drawn actors of a node

/** The nodes, and in each its actors below their owners. The colour shows the load, and the number the backlog. */
function Topology(props: { rows: readonly Actor[] }) {
  const who = props.rows
    .map((a) => a.actor)
    .sort()
    .join();
  const { now } = useRead(`tree ${who}`, (signal) => get<Branch>("/troupe/v1/shell/tree", {}, signal));
  const kept = useRef<Branch | null>(null);
  if (now.value.state === "ready") kept.current = now.value.value;
  const tree = kept.current;
  const nodes = useMemo(() => {
    const by = new Map<string, Actor[]>();
    for (const a of props.rows) by.set(a.node, [...(by.get(a.node) ?? []), a]);
    return Array.from(by).sort(([a], [b]) => a.localeCompare(b));
  }, [props.rows]);
  const most = Math.max(1, ...props.rows.map((a) => a.msg_per_s));
  const table = {
    columns: ["node", "actor", "depth", "state", "messages_per_s", "backlog"],
    rows: () => nodes.flatMap(([node, actors]) => owned(actors, tree).map(([a, depth]) => [node, a.actor, depth, a.state, a.msg_per_s, a.backlog])),
  };
  const picture = () => {
    const [wide, tall] = [360, 22];
    const shown = nodes.map(([node, actors]) => [node, owned(actors, tree).slice(0, mostDrawn)] as const);
    savePicture("topology", `Actors of ${shown.length} ${shown.length === 1 ? "node" : "nodes"} below their owners, with their backlog`, wide * shown.length, tall * (2 + Math.max(0, ...shown.map(([, all]) => all.length))), (c, k) =>
      shown.forEach(([node, all], i) => {
        c.fillStyle = k.text;
        c.fillText(clean(node), i * wide + 8, tall, wide - 16);
        all.forEach(([a, depth], j) => {
          const [x, y] = [i * wide + 8 + depth * 14, tall * (2 + j)];
          c.fillStyle = k.line;
          c.fillRect(x, y + 2, 6, tall - 4);
          c.fillStyle = k.accent;
          c.globalAlpha = Math.sqrt(a.msg_per_s / most);
          c.fillRect(x, y + 2, 6, tall - 4);
          c.globalAlpha = 1;
          c.fillStyle = k.text;
          c.fillText(`${clean(a.actor)}${a.backlog > 0 ? ` ${a.backlog}` : ""}`, x + 12, y + tall / 2, wide - depth * 14 - 28);
        });
      }),
    );
  };
  return (
    <figure class="chart" data-testid="topology">
      <div class="topology">
        {nodes.map(([node, actors]) => (
          <section key={node} data-node={node} aria-label={`Node ${clean(node)}`}>
            <h2>{clean(node)}</h2>
            <ul>
              {owned(actors, tree)
                .slice(0, mostDrawn)
                .map(([a, depth]) => (
                  <li
                    key={a.actor}
                    ref={(el) => {
                      el?.style.setProperty("--depth", String(depth));
                      el?.style.setProperty("--load", String(Math.sqrt(a.msg_per_s / most)));
                    }}
                  >
                    <button type="button" data-actor={a.actor} aria-current={params.value.text("at") === named(a, props.rows)} onClick={() => set({ at: named(a, props.rows) })} title={`${clean(a.actor)}: ${short(a.msg_per_s, 3)} messages a second, backlog ${a.backlog}`}>
                      {clean(a.actor)}
                      {a.backlog > 0 && <b> {a.backlog}</b>}
                    </button>
                  </li>
                ))}
            </ul>
          </section>
        ))}
      </div>
      <Files name="topology" title="Actors of each node" table={table} picture={picture} />
    </figure>
  );
}

/** The actors with their depths: each below its owner in `tree`, and behind these the actors that the tree does not have. */
function owned(actors: Actor[], tree: Branch | null): [Actor, number][] {
  const left = new Map(actors.map((a) => [a.actor, a]));
  const out: [Actor, number][] = [];
  const walk = (b: Branch, depth: number) => {
    const here = left.get(b.actor);
    if (here) out.push([here, depth]);
    left.delete(b.actor);
    for (const c of b.children.slice().sort((x, y) => x.actor.localeCompare(y.actor, undefined, { numeric: true }))) walk(c, here ? depth + 1 : depth);
  };
  if (tree) walk(tree, 0);
  const rest = Array.from(left.values()).sort((a, b) => a.actor.localeCompare(b.actor, undefined, { numeric: true }));
  return [...out, ...rest.map((a) => [a, 0] as [Actor, number])];
}

/** One actor in detail. `turns` gets its reads, so that the page repeats them. */
function One(props: { name: string; turns: (() => void)[] }) {
  const q = { actor: props.name };
  const info = useRead(`info ${props.name}`, (signal) => get<ShellInfo>("/troupe/v1/shell/info", q, signal));
  const state = useRead(`state ${props.name}`, (signal) => get<ShellState>("/troupe/v1/shell/state", q, signal));
  const agent = may("change agent") ? /^agent\/([^@]+)/.exec(props.name)?.[1] : undefined;
  const asAgent = useRead(`agent ${agent ?? ""}`, (signal) => (agent ? get<GetAgentsResponse>("/api/v1/agents", {}, signal) : Promise.resolve(null)));
  const both = () => {
    info.again();
    state.again();
  };
  useEffect(() => {
    props.turns.push(info.again, state.again, ...(agent ? [asAgent.again] : []));
    return () => void props.turns.splice(0);
  }, [props.name]);
  const order = (path: string, done: string) =>
    post(`/troupe/v1/shell/${path}`, { actor: props.name }).then(
      () => (say(done), both()),
      refused,
    );
  const ask = (what: "kill" | "restart") =>
    (question.value = {
      title: `${what === "kill" ? "Kill" : "Restart"} actor ${clean(props.name)}?`,
      text: `Actor ${clean(props.name)} ends now; ${what === "kill" ? "whoever watches it decides what follows" : "it is made again from the journal"}.`,
      button: what === "kill" ? "Kill" : "Restart",
      go: () => void order(what, what === "kill" ? "killed" : "restarted"),
    });
  const failed = info.now.value;
  const known = failed.state === "ready" ? failed.value : null;
  const gone = failed.state === "error" && isUnknown(failed.why);
  const drainable = asAgent.now.value.state === "ready" && asAgent.now.value.value?.agents.find((a) => a.id === agent);
  return (
    <section class="box actor" aria-label={`Actor ${clean(props.name)}`}>
      <h2>{clean(props.name)}</h2>
      <div class="buttons">
        {!gone && may("kill actor") && (
          <button type="button" class="danger" onClick={() => ask("kill")}>
            Kill
          </button>
        )}
        {!gone && may("change actor") && (
          <button type="button" class="danger" onClick={() => ask("restart")}>
            Restart
          </button>
        )}
        {drainable && <Drain of={drainable} done={asAgent.again} />}
        <button type="button" onClick={both}>
          Read again
        </button>
        <button type="button" onClick={() => set({ at: null })}>
          Close
        </button>
      </div>
      {!gone && may("change actor") && <Send name={props.name} kind={String(known?.identity["kind"] ?? "")} />}
      {failed.state === "error" && <Failed why={failed.why} again={info.again} />}
      {known && (
        <Facts
          rows={Object.entries(flat({ ...known.identity, ...known.work, ...known.memory, ...(known.waits_for.length > 0 ? { waits_for: known.waits_for } : {}) }))
            .filter(([key]) => !["actor", "id"].includes(key))
            .map(([key, x]) => [key, typeof x === "number" ? short(x, 6) : worded(x ?? undefined)])}
        />
      )}
      {!gone && <Detail name={props.name} of={known} state={state.now.value.state === "ready" ? state.now.value.value.state : undefined} />}
    </section>
  );
}

function Detail(props: { name: string; of: ShellInfo | null; state: unknown }) {
  const known = props.of;
  return (
    <>
      <h3>Owner and children</h3>
      {known && (
        <ul class="columns">
          {known.links.slice(0, 60).map((l, i) => (
            <li key={i}>
              {clean(l.how)}{" "}
              <button type="button" class="linklike" onClick={() => set({ at: l.peer })}>
                {clean(l.peer)}
              </button>
            </li>
          ))}
        </ul>
      )}
      <h3>State</h3>
      <pre tabIndex={0}>{props.state === undefined ? "" : clean(JSON.stringify(props.state, null, 2)).slice(0, 20_000)}</pre>
      <h3>Last messages</h3>
      {known && (
        <div class="tablebox" tabIndex={0} role="group" aria-label="Last messages, scrolls">
          <table>
            <thead>
              <tr>
                <th scope="col">At</th>
                <th scope="col">From</th>
                <th scope="col">Message</th>
                <th scope="col">Run, µs</th>
              </tr>
            </thead>
            <tbody>
              {known.recent.map((m, i) => (
                <tr key={i}>
                  <td>
                    {moment(m.at, zone.value).slice(11, 19)}
                    {clean(m.at).slice(19, 23)}
                  </td>
                  <td>{clean(m.from)}</td>
                  <td title={clean(m.text)}>{clean(m.type)}</td>
                  <td class="num">{m.run_us === null ? "" : short(m.run_us, 3)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <Trace name={props.name} />
    </>
  );
}

/** A form for an operator's message: its name, and its fields as JSON. `kind` is that of the actor, which decides the messages that it
 *  takes. It is "" while it is not known. */
function Send(props: { name: string; kind: string }) {
  const known = useRead(`messages ${props.name}`, (signal) => get<ShellOrders>("/troupe/v1/shell/messages", { actor: props.name }, signal));
  const message = useSignal("");
  const fields = useSignal("");
  const answer = useSignal("");
  const words = known.now.value.state === "ready" ? known.now.value.value.rows.filter((r) => props.kind === "" || r.kinds.length === 0 || r.kinds.includes(props.kind)).map((r) => r.name) : [];
  const send = () => {
    let given: unknown = {};
    try {
      given = fields.value.trim() === "" ? {} : JSON.parse(fields.value);
    } catch (why) {
      answer.value = `these fields are no JSON: ${explain(why)}`;
      return;
    }
    question.value = {
      title: `Send ${clean(message.value)} to ${clean(props.name)}?`,
      text: `Actor ${clean(props.name)} gets the message ${clean(message.value)}.`,
      button: "Send",
      go: () =>
        void post<{ answer?: unknown }>("/troupe/v1/shell/send", { actor: props.name, message: message.value, fields: given }).then(
          (x) => (answer.value = x.answer === undefined || x.answer === null ? "done" : JSON.stringify(x.answer)),
          (why: unknown) => (answer.value = explain(why)),
        ),
    };
  };
  return (
    <>
      <h3>Send</h3>
      <form
        class="toolbar"
        onSubmit={(e) => {
          e.preventDefault();
          send();
        }}
      >
        <label>
          <span>Message</span>
          <input type="text" list="messages" required spellcheck={false} value={message.value} onInput={(e) => (message.value = e.currentTarget.value)} />
          <datalist id="messages">
            {words.map((w) => (
              <option key={w} value={w} />
            ))}
          </datalist>
        </label>
        <label class="grow">
          <span>Fields (JSON)</span>
          <input type="text" spellcheck={false} placeholder="{}" value={fields.value} onInput={(e) => (fields.value = e.currentTarget.value)} />
        </label>
        <button type="submit" class="danger">
          Send
        </button>
      </form>
      <p role="status" data-testid="answer">
        {clean(answer.value)}
      </p>
    </>
  );
}

/** A trace of an actor: at most 100 messages in 10 s. */
function Trace(props: { name: string }) {
  const rows = useSignal<string[]>([]);
  const running = useSignal(false);
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), []);
  const start = async () => {
    running.value = true;
    rows.value = [];
    abort.current = new AbortController();
    try {
      const answer = await request("GET", `/troupe/v1/shell/trace?actor=${encodeURIComponent(props.name)}&max=100&rate=50&for=10`, undefined, abort.current.signal);
      const reader = answer.body!.getReader();
      const decoder = new TextDecoder();
      let rest = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        rest += decoder.decode(value, { stream: true });
        const parts = rest.split("\n");
        rest = parts.pop() ?? "";
        rows.value = rows.peek().concat(parts.filter((l) => l.startsWith("data: ")).map((l) => l.slice(6)));
      }
    } catch (why) {
      if (!abort.current.signal.aborted) refused(why);
    }
    running.value = false;
  };
  return (
    <>
      <h3>Trace</h3>
      <button type="button" aria-disabled={running.value} onClick={() => void (running.value || start())}>
        {running.value ? "Tracing for 10 s" : "Trace for 10 s"}
      </button>
      {rows.value.length > 0 && <pre tabIndex={0}>{clean(rows.value.join("\n"))}</pre>}
    </>
  );
}
