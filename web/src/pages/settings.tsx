import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { explain, get, may, post, request, session, signedOut } from "../api";
import { usePage } from "../page";
import { density, singleKeys, theme, zone, type Theme } from "../settings";
import { clean } from "../text";
import { Failed, question, refused, say, useRead } from "../ui";
import type { GetUsersResponse, User } from "../api_types";

export default function Settings() {
  usePage("Settings", "ready");
  return (
    <>
      <h1 tabIndex={-1}>Settings</h1>
      <section class="form">
        <h2>This browser</h2>
        <label>
          <span>Theme</span>
          <select aria-label="Theme" value={theme.value} onChange={(e) => (theme.value = e.currentTarget.value as Theme)}>
            <option value="system">As the system</option>
            <option value="dark">Dark</option>
            <option value="light">Light</option>
          </select>
        </label>
        <label>
          <span>Density</span>
          <select aria-label="Density" value={density.value} onChange={(e) => (density.value = e.currentTarget.value as "comfortable" | "compact")}>
            <option value="comfortable">Comfortable</option>
            <option value="compact">Compact</option>
          </select>
        </label>
        <label>
          <span>Time zone</span>
          <select aria-label="Time zone" value={zone.value} onChange={(e) => (zone.value = e.currentTarget.value as "local" | "utc")}>
            <option value="local">Of this computer</option>
            <option value="utc">UTC</option>
          </select>
        </label>
        <label class="check">
          <input type="checkbox" checked={singleKeys.value === "on"} onChange={(e) => (singleKeys.value = e.currentTarget.checked ? "on" : "off")} /> <span>Single-key shortcuts</span>
        </label>
      </section>
      <OwnPassword />
      {may("create user") && <Users />}
    </>
  );
}

function OwnPassword() {
  const first = useRef<HTMLInputElement>(null);
  const second = useRef<HTMLInputElement>(null);
  const fault = useSignal("");
  const user = session.value?.user;
  if (!user) return null;
  return (
    <form
      class="form"
      onSubmit={(e) => {
        e.preventDefault();
        if (first.current!.value !== second.current!.value) return void (fault.value = "the two are not the same");
        fault.value = "";
        post(`/api/v1/users/${user.id}/password`, first.current!.value).then(
          () => {
            say("the password is changed: sign in with it");
            signedOut();
          },
          (why: unknown) => (fault.value = explain(why)),
        );
      }}
    >
      <h2>Own password</h2>
      <p class="hint">All sessions of <bdi>{clean(user.username)}</bdi> end with it, this one too.</p>
      <label>
        <span>New password</span>
        <input ref={first} type="password" autocomplete="new-password" />
      </label>
      <label>
        <span>New password again</span>
        <input ref={second} type="password" autocomplete="new-password" />
      </label>
      {fault.value && (
        <p class="fault" role="alert">
          {clean(fault.value)}
        </p>
      )}
      <button type="submit">Change password</button>
    </form>
  );
}

function Users() {
  const { now, again } = useRead("users", (signal) => get<GetUsersResponse>("/api/v1/users", {}, signal));
  const name = useRef<HTMLInputElement>(null);
  const word = useRef<HTMLInputElement>(null);
  const admin = useRef<HTMLInputElement>(null);
  const fault = useSignal("");
  const v = now.value;
  /** The form shows its own faults. Other faults are shown over the page. */
  const done = (p: Promise<unknown>, text: string, form = false) =>
    p.then(
      () => {
        fault.value = "";
        say(text);
        again();
      },
      (why: unknown) => (form ? (fault.value = explain(why)) : refused(why)),
    );
  const patch = (u: User, body: object) => request("PATCH", `/api/v1/users/${u.id}`, body);
  return (
    <section>
      <h2>Users</h2>
      {v.state === "error" && <Failed why={v.why} again={again} />}
      {v.state === "ready" && (
        <div class="tablebox" tabIndex={0} role="group" aria-label="Users, scrolls">
          <table>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Role</th>
                <th scope="col">State</th>
                <th scope="col">Change</th>
              </tr>
            </thead>
            <tbody>
              {v.value.users.map((u) => (
                <tr key={u.id} data-user={u.username}>
                  <th scope="row">{clean(u.username)}</th>
                  <td>{u.admin ? "admin" : "user"}</td>
                  <td>{u.active ? "active" : "deactivated"}</td>
                  <td>
                    <button
                      type="button"
                      onClick={() =>
                        u.active
                          ? (question.value = { title: `Deactivate ${clean(u.username)}?`, text: `${clean(u.username)} can no longer sign in, and all sessions of it end.`, button: "Deactivate", go: () => void done(patch(u, { active: false }), `${u.username} is deactivated`) })
                          : void done(patch(u, { active: true }), `${u.username} may sign in again`)
                      }
                    >
                      {u.active ? "Deactivate" : "Activate"}
                    </button>{" "}
                    <NewPassword of={u} onDone={(p) => void done(post(`/api/v1/users/${u.id}/password`, p), `the password of ${u.username} is changed`)} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <form
        class="form"
        onSubmit={(e) => {
          e.preventDefault();
          void done(post("/api/v1/users", { user: { username: name.current!.value, admin: admin.current!.checked, active: true }, password: word.current!.value }), `user ${name.current!.value} is made`, true).then(() => {
            if (fault.peek() !== "") return;
            name.current!.value = word.current!.value = "";
            admin.current!.checked = false;
          });
        }}
      >
        <h3>New user</h3>
        <label>
          <span>Name</span>
          <input ref={name} required autocomplete="off" spellcheck={false} />
        </label>
        <label>
          <span>First password</span>
          <input ref={word} type="password" autocomplete="new-password" />
        </label>
        <label class="check">
          <input ref={admin} type="checkbox" /> <span>Admin</span>
        </label>
        {fault.value && (
          <p class="fault" role="alert">
            {clean(fault.value)}
          </p>
        )}
        <button type="submit">Make user</button>
      </form>
    </section>
  );
}

function NewPassword(props: { of: User; onDone: (p: string) => void }) {
  const open = useSignal(false);
  const input = useRef<HTMLInputElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const used = useRef(false);
  // The pressed element disappears, so the focus moves on, and back later. This happens before the page is drawn anew, so that the next key
  // goes there.
  useLayoutEffect(() => {
    if (open.value) input.current?.focus();
    else if (used.current) button.current?.focus();
    used.current = open.value;
  }, [open.value]);
  if (!open.value)
    return (
      <button type="button" ref={button} onClick={() => (open.value = true)}>
        New password
      </button>
    );
  return (
    <form
      class="inline"
      onKeyDown={(e) => {
        if (e.key === "Escape") open.value = false;
      }}
      onSubmit={(e) => {
        e.preventDefault();
        props.onDone(input.current!.value);
        open.value = false;
      }}
    >
      <label>
        <span class="sr">New password of {clean(props.of.username)}</span>
        <input ref={input} type="password" autocomplete="new-password" />
      </label>
      <button type="submit">Set</button>
    </form>
  );
}
