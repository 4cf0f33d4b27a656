import { defineConfig } from "vite";

// What the first page asks for is asked for by a script of its own (src/ahead.ts), which is there before the others are.
const ahead = {
  name: "ahead",
  transformIndexHtml: {
    order: "post" as const,
    handler(_html: string, at: { bundle?: Record<string, { name?: string; fileName: string }> }) {
      const file = Object.values(at.bundle ?? {}).find((x) => x.name === "ahead" && x.fileName.endsWith(".js"))?.fileName;
      return [{ tag: "script", attrs: { type: "module", async: true, crossorigin: true, src: file ? "/ui/" + file : "/ui/src/ahead.ts" }, injectTo: "head-prepend" as const }];
    },
  },
};

// uPlot asks for Intl.NumberFormat when it is loaded, which takes 40 ms; the page writes all numbers of its axes itself.
const lazy = {
  name: "lazy-number-format",
  transform(code: string, id: string) {
    if (!/uPlot\.esm\.js/.test(id)) return;
    const at = /const numFormatter = (new Intl\.NumberFormat\([^;]*\));\nconst fmtNum = val => numFormatter\.format\(val\);/;
    if (!at.test(code)) throw new Error("uPlot is another one: see web/vite.config.ts");
    return { code: code.replace(at, "let numFormatter;\nconst fmtNum = val => (numFormatter ??= $1).format(val);"), map: null };
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
    rollupOptions: { input: { index: "index.html", ahead: "src/ahead.ts" } },
  },
  worker: { format: "es" },
  test: { environment: "node" },
} as Parameters<typeof defineConfig>[0]);
