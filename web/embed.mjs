// Writes the files of a built page as one assembler source: each file plain and compressed, and a table of them (runtime/web/assets.cpp
// reads it). The same files give the same source.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync, mkdirSync } from "node:fs";
import { extname, join, relative } from "node:path";
import { gzipSync } from "node:zlib";

const [dist, out] = process.argv.slice(2);
const types = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};
const files = readdirSync(dist, { recursive: true, withFileTypes: true })
  .filter((f) => f.isFile())
  .map((f) => join(f.parentPath, f.name))
  .sort();
const zipped = join(out + ".gz");
mkdirSync(zipped, { recursive: true });
const rows = [];
const data = [];
files.forEach((file, i) => {
  const bytes = readFileSync(file);
  const gz = gzipSync(bytes, { level: 9 });
  const smaller = gz.length < bytes.length;
  if (smaller) writeFileSync(join(zipped, `${i}`), gz);
  const type = types[extname(file)];
  if (!type) throw new Error(`${file}: no type is known for this ending`);
  const digest = createHash("sha256").update(bytes).digest("hex");
  const text = (name, s) => data.push(`${name}${i}: .ascii ${JSON.stringify(s)}`, `${name}${i}_end:`);
  text("path", relative(dist, file));
  text("type", type);
  text("digest", digest);
  data.push(`bytes${i}: .incbin ${JSON.stringify(file)}`, `bytes${i}_end:`);
  data.push(`gzip${i}: ${smaller ? `.incbin ${JSON.stringify(join(zipped, `${i}`))}` : ""}`, `gzip${i}_end:`);
  for (const name of ["path", "type", "digest", "bytes", "gzip"])
    rows.push(`    .long ${name}${i} - troupe_web_assets, ${name}${i}_end - ${name}${i}`);
});
writeFileSync(
  out,
  `    .section .rodata.troupe_web, "a"
    .balign 8
    .globl troupe_web_assets
    .hidden troupe_web_assets
troupe_web_assets:
    .long ${files.length}
${rows.join("\n")}
${data.join("\n")}
    .section .note.GNU-stack, "", @progbits
`,
);
