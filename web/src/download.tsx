// Saves a file of the server.

import { request } from "./api";
import { download, refused } from "./ui";

/** A link that saves a file. A user whose session has ended is asked to sign in first, because a browser does not show that a download
 *  was refused. */
export function Download(props: { href: string; name: string }) {
  return (
    <a
      href={props.href}
      download={props.name}
      onClick={(e) => {
        if (e.ctrlKey || e.metaKey || e.shiftKey || e.altKey) return;
        e.preventDefault();
        request("GET", "/api/v1/me").then(() => download(props.href, props.name), refused);
      }}
    >
      Download
    </a>
  );
}
