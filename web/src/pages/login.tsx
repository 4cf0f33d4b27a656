import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { explain, request, session, signedIn, sessionIn } from "../api";
import { usePage } from "../page";
import { go, params, place } from "../router";
import { clean } from "../text";
import { typeInto } from "../typed";

/** The address to go to after the login: only one below /ui/ of this server. */
function next(): string {
  const to = params.peek().text("next");
  if ((!to.startsWith("/ui/") && to !== "/ui") || /^\/ui\/+login\b/.test(to)) return "/";
  const url = new URL(to, location.origin);
  return url.origin === location.origin && url.pathname.startsWith("/ui") ? url.pathname.slice(3).replace(/^\/?/, "/") + url.search : "/";
}

/** What the user was doing when the password was asked for over a page: the field, and the text that was typed. */
export interface Interrupted {
  typing: boolean;
  field: HTMLInputElement | HTMLTextAreaElement | null;
}

/** The form for signing in. With `over` it is shown over a page. If the user was typing, the heading gets the focus and keys still go to
 *  the field, until the user moves to the password. */
export function SignIn(props: { over: boolean; interrupted?: Interrupted }) {
  const { typing, field } = props.interrupted ?? { typing: false, field: null };
  if (!props.over) usePage("Sign in", "ready");
  const fault = useSignal("");
  const busy = useSignal(false);
  const name = useRef<HTMLInputElement>(null);
  const word = useRef<HTMLInputElement>(null);
  const enter = async (body: object) => {
    busy.value = true;
    fault.value = "";
    try {
      signedIn(sessionIn((await (await request("POST", "/troupe/v1/session", body)).json()) as never)!);
      if (!props.over) go(next(), true);
    } catch (why) {
      if (!props.over && "code" in body && session.peek()) go(next(), true); // an old link; the user is signed in anyway
      else fault.value = explain(why);
    }
    busy.value = false;
  };
  const code = props.over ? undefined : /(?:^#|&)code=([^&]*)/.exec(place.value.hash)?.[1];
  useEffect(() => {
    if (props.over || code !== undefined) return;
    if (session.peek()) go(next(), true);
    else name.current?.focus();
  }, []);
  useEffect(() => {
    if (code === undefined) return;
    history.replaceState(null, "", location.pathname + location.search); // the code is removed from the address before anything else
    place.value = { ...place.peek(), hash: "" }; // so that the next link is seen as well, which changes the fragment alone
    void enter({ code });
  }, [code]);
  return (
    <form
      class="signin"
      onSubmit={(e) => {
        e.preventDefault();
        void enter({ username: name.current!.value, password: word.current!.value });
      }}
    >
      {props.over ? (
        <h2
          tabIndex={-1}
          autofocus={typing}
          onKeyDown={(e) => {
            const on = e.key === "Tab" && !e.shiftKey;
            if (on) word.current?.focus();
            if (on || (field && typeInto(field, e))) e.preventDefault();
          }}
        >
          Sign in again
        </h2>
      ) : (
        <h1 tabIndex={-1}>Sign in</h1>
      )}
      {props.over && <p>The server asks who you are. What you typed stays as it is{field ? ", and what you type goes on there until you press Tab or click into a field here" : typing ? "; Tab goes to the password" : ""}.</p>}
      <label>
        <span>Username</span>
        <input ref={name} name="username" autocomplete="username" spellcheck={false} autocapitalize="none" defaultValue={session.peek()?.user.username ?? ""} />
      </label>
      <label>
        <span>Password</span>
        <input ref={word} name="password" type="password" autocomplete="current-password" autofocus={props.over && !typing} />
      </label>
      {fault.value && (
        <p class="fault" role="alert">
          {clean(fault.value)}
        </p>
      )}
      <button type="submit" disabled={busy.value}>
        Sign in
      </button>
      {!props.over && (
        <p class="hint">
          <code>troupe web</code> on the command line prints a link that signs you in.
        </p>
      )}
    </form>
  );
}
