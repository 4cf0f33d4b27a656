// A file of the server's, to be kept.

import { request } from "./api";
import { refused } from "./ui";

function fetchFile(href: string, name: string): void {
  const a = document.createElement("a");
  a.href = href;
  a.download = name;
  a.click();
}

/** Whoever is no longer signed in is asked first: a browser says nothing of a download that is refused. */
export function Download(props: { href: string; name: string }) {
  return (
    <a
      href={props.href}
      download={props.name}
      onClick={(e) => {
        if (e.ctrlKey || e.metaKey || e.shiftKey || e.altKey) return;
        e.preventDefault();
        request("GET", "/api/v1/me").then(() => fetchFile(props.href, props.name), refused);
      }}
    >
      Download
    </a>
  );
}
