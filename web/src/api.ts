// The documented routes, as calls.

import { signal } from "@preact/signals";

export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

export interface Session {
  user: { id: number; username: string; displayName: string; admin: boolean };
  rights: string[];
  clusterName: string;
  clusterId: string;
  masterId: string;
  version: string;
}

/** undefined: not known yet; null: nobody is signed in. */
export const session = signal<Session | null | undefined>(undefined);
/** Set where the server stopped knowing who one is while a page was open: the password is asked for over the page. */
export const askAgain = signal(false);

let waiting: (() => void)[] = [];
export function signedIn(as: Session): void {
  session.value = as;
  askAgain.value = false;
  const all = waiting;
  waiting = [];
  all.forEach((go) => go());
}

export function may(what: string): boolean {
  return session.value?.rights.includes(what) ?? false;
}

export function explain(why: unknown): string {
  if (why instanceof Refused) return why.message;
  if (why instanceof TypeError) return "the server cannot be reached";
  return why instanceof Error ? why.message : String(why);
}

async function refusal(answer: Response): Promise<Refused> {
  let text = `${answer.status} ${answer.statusText}`;
  try {
    const body = (await answer.json()) as { message?: string; error?: { error?: string; message?: string } };
    text = body.message ?? body.error?.error ?? body.error?.message ?? text;
  } catch {
    // not ours: its status has to do
  }
  return new Refused(answer.status, text);
}

/** One request. A 401 in the middle of a page waits until one has signed in again, and is then repeated. */
export async function request(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  for (;;) {
    const answer = await fetch(path, {
      method,
      credentials: "same-origin",
      cache: "no-store",
      signal: signal ?? null,
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? null : JSON.stringify(body),
    });
    if (answer.status !== 401 || path.startsWith("/troupe/v1/session") || session.peek() === null) {
      if (!answer.ok) throw await refusal(answer);
      return answer;
    }
    askAgain.value = true;
    await new Promise<void>((go) => waiting.push(go));
  }
}

export async function get<T>(path: string, query: Record<string, string | number | boolean | undefined> = {}, signal?: AbortSignal): Promise<T> {
  const all = new URLSearchParams();
  for (const [key, x] of Object.entries(query)) if (x !== undefined && x !== "") all.set(key, String(x));
  const text = all.toString();
  return (await request("GET", path + (text ? "?" + text : ""), undefined, signal)).json() as Promise<T>;
}

export async function post<T>(path: string, body: unknown = {}): Promise<T> {
  return (await request("POST", path, body)).json() as Promise<T>;
}

/** Newline-delimited JSON, value by value. */
export async function lines(path: string, each: (x: never) => void, signal: AbortSignal): Promise<void> {
  const answer = await request("GET", path, undefined, signal);
  const reader = answer.body!.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    rest += decoder.decode(value, { stream: !done });
    const parts = rest.split("\n");
    rest = parts.pop() ?? "";
    for (const part of parts) if (part) each(JSON.parse(part) as never);
    if (done) return;
  }
}

// ---- what the page reads

export interface Experiment {
  id: number;
  name: string;
  state: string;
  username: string;
  startTime: string;
  endTime?: string;
  progress: number;
  numTrials: number;
  bestTrialId?: number;
  bestTrialSearcherMetric?: number | string;
  searcherType: string;
  searcherMetric: string;
  forkedFrom: number | null;
  config: Record<string, unknown>;
  originalConfig?: string;
  labels: string[];
}

export interface Validation {
  totalBatches: number;
  metric: number | string;
  units?: number;
}
export interface Trial {
  id: number;
  experimentId: number;
  state: string;
  hparams: Record<string, unknown>;
  restarts: number;
  runs: number;
  totalBatches: number;
  best: Validation | null;
  latest: Validation | null;
  stop: { why: string; rung: number; units: number; metric: number | string; needed: number | string } | null;
  latestCheckpoint: string;
  startTime: string;
  endTime?: string;
  agents: string[];
  why: string;
  metrics?: Record<string, { last: number | string; min: number | string; max: number | string }>;
}
export interface SeriesLine {
  trial: number;
  row: number;
  count: number;
  x: (number | string)[];
  y: (number | string)[];
}
export interface Series {
  sequence: number;
  group: string;
  metric: string;
  x: string;
  series: SeriesLine[];
}
export interface MetricInfo {
  group: string;
  name: string;
  kind: "number" | "matrix" | "table" | "vector" | "text" | "other";
  trials: number;
  reports: number;
}
export interface Explanation {
  state: string;
  since: string;
  reason: { code: string; text: string };
  wouldFree: { allocation: string; agents: string[]; slots: number; how: "ends" | "preempted"; costSeconds: number | null; expectedSeconds: number | null }[];
  advice: string;
  log?: number[]; // of a failed trial: the numbers of its last lines
  runs?: { run: number; agents: string[]; fromSteps: number; fromCheckpoint: string; startTime: string; endTime: string | null }[]; // of a trial
}
/** What of an experiment runs, waits and is paused; `waiting` has at most 20 of its trials. */
export interface ExperimentExplanation {
  state: string;
  trials: { running: number; waiting: number; paused: number };
  waiting: (Explanation & { trial: number })[];
}
export interface Checkpoint {
  uuid: string;
  trialId: number;
  state: string;
  reportTime: string;
  resources: Record<string, string>;
  metadata: { steps_completed?: number };
  training: { searcherMetric?: number | string };
}
export interface Slot {
  id: string;
  enabled: boolean;
  draining: boolean;
  device: { brand: string; type: string; uuid: string };
  container: { id: string } | null;
  usage?: { utilization_percent?: number; memory_bytes?: number; memory_used_bytes?: number; temperature_celsius?: number; fault?: string };
}
export interface Agent {
  id: string;
  enabled: boolean;
  draining: boolean;
  state: string;
  addresses: string[];
  resourcePools: string[];
  registeredTime: string;
  version: string;
  slots: Record<string, Slot>;
}
export interface Waiting {
  allocation: string;
  slots: number;
  pool: string;
}
export interface LogLine {
  trial?: number;
  line: number;
  at: string;
  level: string;
  rank: number;
  agent: string;
  run: number;
  stream: string;
  text: string;
}
