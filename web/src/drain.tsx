// The order that an agent takes no new work, or takes work again.

import { post, type Agent } from "./api";
import { busy } from "./slots";
import { clean } from "./text";
import { question, refused, say } from "./ui";

/** `done` is called after the order. */
export function Drain(props: { of: Agent; done: () => void }) {
  const { id, draining } = props.of;
  const order = (on: boolean) =>
    void post("/troupe/v1/shell/drain", { node: id, on }).then(() => {
      say(on ? `${id} drains` : `${id} takes work again`);
      props.done();
    }, refused);
  const ask = () => {
    const tasks = busy(props.of);
    question.value = {
      title: `Drain ${clean(id)}?`,
      text: `Agent ${clean(id)} gets no new work; ${tasks} running ${tasks === 1 ? "task ends by itself" : "tasks end by themselves"}.`,
      button: "Drain",
      go: () => order(true),
    };
  };
  return draining ? (
    <button type="button" onClick={() => order(false)}>
      Take work again
    </button>
  ) : (
    <button type="button" onClick={ask}>
      Drain
    </button>
  );
}
