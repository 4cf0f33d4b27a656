import { defineConfig } from "vite";

// What the first page asks for is asked for by a script of its own (src/ahead.ts), which starts before the others are there.
const ahead = {
  name: "ahead",
  transformIndexHtml: {
    order: "post" as const,
    handler(html: string, at: { bundle?: Record<string, { name?: string; fileName: string }> }) {
      const file = Object.values(at.bundle ?? {}).find((x) => x.name === "ahead" && x.fileName.endsWith(".js"))?.fileName;
      if (!file) return html; // a server for work on the page: it comes with the others
      const tag = `<script type="module" crossorigin src="/ui/${file}"></script>`;
      if (!html.includes(tag)) throw new Error("src/ahead.ts is no script of its own");
      return html.replace(new RegExp(`\\s*${tag}`), "").replace("<head>", `<head>\n    ${tag}`);
    },
  },
};

// uPlot makes two formats of Intl when it is loaded, which takes 40 ms and more; neither is used here: the page writes the numbers
// of its axes itself, and times are those of the browser.
const formats: [string, string][] = [
  ["const numFormatter = new Intl.NumberFormat(domEnv ? nav.language : 'en-US');\nconst fmtNum = val => numFormatter.format(val);", "const fmtNum = val => val.toLocaleString();"],
  ["const localTz = new Intl.DateTimeFormat().resolvedOptions().timeZone;", ""],
  ["else if (tz == localTz)", "else if (tz == new Intl.DateTimeFormat().resolvedOptions().timeZone)"],
];
const lazy = {
  name: "no-formats-at-start",
  transform(code: string, id: string) {
    if (!/uPlot\.esm\.js/.test(id)) return;
    for (const [from, to] of formats) {
      if (code.split(from).length !== 2) throw new Error("uPlot is another one: see web/vite.config.ts");
      code = code.replace(from, to);
    }
    return { code, map: null };
  },
};

// The page lies below /ui/ of the server that it talks to. Nothing is inlined: its policy allows files of its own alone.
export default defineConfig({
  base: "/ui/",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  plugins: [ahead, lazy],
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    sourcemap: false,
    rollupOptions: {
      input: { index: "index.html" },
      // All that each page needs is one file: each more is a request before the first line is drawn.
      output: { codeSplitting: { groups: [{ name: "ahead", test: /src\/ahead\.ts$/, priority: 2 }, { name: "index", test: /index\.html$/, priority: 1 }] } },
    },
  },
  worker: { format: "es" },
  test: { environment: "node" },
} as Parameters<typeof defineConfig>[0]);
