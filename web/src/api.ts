// The documented routes as functions.

import { signal } from "@preact/signals";
import { early } from "./asked";
import { answerTime, asked } from "./queries";
import type { Session as Answer, User } from "./api_types";

export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** The session of a signed-in user. */
export type Session = Required<Answer> & { user: User };

/** The session in an answer; null where the server says that nobody is signed in. */
export const sessionIn = (answer: Answer): Session | null => (answer.user ? (answer as Session) : null);

/** The present session: undefined while it is not known, null where nobody is signed in. */
export const session = signal<Session | null | undefined>(undefined);
/** Set when the session has ended while a page is open. The page then asks for the password in a dialog. */
export const askAgain = signal(false);

/** The newest fact that the first answer to the page's own code includes; what is asked for later includes it too. */
export const firstSequence = signal(0);

/** Tells the other tabs of this browser the id of the user who is signed in, or 0: they have the same cookie. */
export const signs = new BroadcastChannel("troupe-session");

let waiting: (() => void)[] = [];
function goOn(): void {
  const all = waiting;
  waiting = [];
  all.forEach((go) => go());
}
/** Notes who has signed in. A page that shows what another user may see begins anew. */
export function signedIn(as: Session): void {
  signs.postMessage(as.user.id);
  if (isOther(as) && location.pathname !== "/ui/login") return location.reload();
  session.value = as;
  askAgain.value = false;
  goOn();
}
/** Whether the session is that of another user than the one of the page. */
export const isOther = (now: Session): boolean => session.peek() != null && session.peek()!.user.id !== now.user.id;
export function signedOut(): void {
  signs.postMessage(0);
  session.value = null;
  goOn();
}

/** Whether the session has a right in one of these workspaces, because roles may give a right in some workspaces only. */
export function may(what: string, ...workspaces: readonly (number | undefined)[]): boolean {
  const me = session.value;
  const only = me?.rightsIn?.[what];
  return (me?.rights.includes(what) ?? false) && (!only || workspaces.every((one) => one !== undefined && only.includes(one)));
}

/** The pages, as [title, address], that the session may see. All of them while the session is not known. */
export const pagesFor = (all: readonly [string, string][]): readonly [string, string][] => all.filter(([, to]) => to !== "/actors" || !session.value || may("view actor"));

export function explain(why: unknown): string {
  if (why instanceof Refused) return why.message;
  if (why instanceof TypeError) return "the server cannot be reached";
  if (why instanceof DOMException && why.name === "TimeoutError") return "the server did not answer in time";
  return why instanceof Error ? why.message : String(why);
}

/** Whether the server could not be reached or could not answer, so that a later try may succeed. */
export const isAway = (why: unknown): boolean => !(why instanceof Refused) || why.status >= 500;

/** Whether the server has answered that the thing does not exist. */
export const isUnknown = (why: unknown): boolean => why instanceof Refused && why.status === 404;

async function refusal(answer: Response): Promise<Refused> {
  let text = `${answer.status} ${answer.statusText}`;
  try {
    const body = (await answer.json()) as { message?: string; error?: { error?: string; message?: string } };
    text = body.message ?? body.error?.error ?? body.error?.message ?? text;
  } catch {
    // not an answer of our server: only its status is known
  }
  return new Refused(answer.status, text);
}

/** Sends one request, once the session is known. After a 401 it waits until the user has signed in again, and repeats the request. An
 *  answer has to be complete in time, unless it is one that grows (`endless`). */
export async function request(method: string, path: string, body?: unknown, signal?: AbortSignal, endless = false): Promise<Response> {
  const own = path.startsWith("/troupe/v1/session");
  if (!own && session.peek() === undefined) {
    await new Promise<void>((go) => waiting.push(go));
    if (session.peek() === null) throw new Refused(401, "nobody is signed in");
  }
  for (;;) {
    const answer = await fetch(path, {
      method,
      credentials: "same-origin",
      cache: "no-store",
      signal: AbortSignal.any([...(signal ? [signal] : []), ...(endless ? [] : [AbortSignal.timeout(answerTime)])]),
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? null : JSON.stringify(body),
    });
    if (firstSequence.peek() === 0) firstSequence.value = Number(answer.headers.get("Troupe-Sequence")) || 0;
    if (answer.status !== 401 || own || session.peek() === null) {
      if (!answer.ok) throw await refusal(answer);
      return answer;
    }
    askAgain.value = true;
    await new Promise<void>((go) => waiting.push(go));
  }
}

export async function get<T>(path: string, query: Record<string, string | number | boolean | undefined> = {}, signal?: AbortSignal): Promise<T> {
  const to = asked(path, query);
  return (await early<T>(to)) ?? ((await request("GET", to, undefined, signal)).json() as Promise<T>);
}

/** The answer, or null where the thing does not exist (any more). */
export const ifThere = <T>(answer: Promise<T>): Promise<T | null> =>
  answer.catch((why: unknown) => {
    if (isUnknown(why)) return null;
    throw why;
  });

export async function post<T>(path: string, body: unknown = {}): Promise<T> {
  return (await request("POST", path, body)).json() as Promise<T>;
}

/** Reads newline-delimited JSON and calls `each` with each value. */
export async function lines(path: string, each: (x: never) => void, signal: AbortSignal): Promise<void> {
  const answer = await request("GET", path, undefined, signal, true);
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

// ---- types of answers, under the names that the page uses

export type {
  Experiment,
  TrialProgress as Trial,
  Series,
  SeriesLine,
  MetricInfo,
  Explanation,
  ExperimentExplanation,
  CheckpointRow as Checkpoint,
  Slot,
  Agent,
  Waiting,
  LogLine,
} from "./api_types";
