import { render } from "preact";
import "./style.css";
import { framed } from "./asked";
import { App } from "./app";

void framed(30).then(() => render(<App />, document.getElementById("app")!));
