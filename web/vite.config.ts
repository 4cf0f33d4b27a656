import { build, defineConfig } from "vite";

// src/ahead.ts asks for what a page needs first. It is not a module, because modules wait for the style and for the end of the document. It
// has its own build, so that it shares no file with the rest.
const ahead = {
  name: "ahead",
  apply: "build" as const,
  async buildStart(this: { emitFile(file: object): string; addWatchFile(name: string): void }) {
    this.addWatchFile("src/ahead.ts");
    const made = await build({ configFile: false, logLevel: "warn", build: { write: false, target: "es2022", rollupOptions: { input: "src/ahead.ts", output: { format: "iife" } } } });
    const [chunk] = (made as { output: { code: string }[] }).output;
    this.emitFile({ type: "asset", name: "ahead.js", source: chunk!.code });
  },
  transformIndexHtml: {
    order: "post" as const,
    handler(html: string, at: { bundle?: Record<string, unknown> }) {
      const [file, plotter] = ["ahead", "uPlot"].map((part) => Object.keys(at.bundle ?? {}).find((name) => name.startsWith(`assets/${part}`) && name.endsWith(".js")));
      if (!file || !plotter) throw new Error("src/ahead.ts or uPlot was not built");
      const module = '<script type="module"';
      if (html.split(module).length !== 2) throw new Error("index.html has another number of modules than one");
      // An empty frame takes 40 ms from the script that fills it, so none is drawn before that script has run.
      return { html: html.replace(module, module + ' blocking="render"'), tags: [{ tag: "script", attrs: { src: "/ui/" + file, "data-plotter": "/ui/" + plotter }, injectTo: "head-prepend" as const }] };
    },
  },
};

// uPlot makes two formats of Intl when it is loaded, which takes 40 ms and more. Neither is used: the page writes the numbers of its axes
// itself, and times are in the browser's zone.
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

// The page lies below /ui/ of the server that it talks to. Nothing is inlined: its policy allows only its own files.
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
      // The code that each page needs is in one file: each further file is a request before the first line is drawn.
      output: { codeSplitting: { groups: [{ name: "index", test: /index\.html$/ }] } },
    },
  },
  worker: { format: "es" },
  test: { environment: "node" },
} as Parameters<typeof defineConfig>[0]);
