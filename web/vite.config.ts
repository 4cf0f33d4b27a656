import { defineConfig } from "vite";

// The page lies below /ui/ of the server that it talks to. Nothing is inlined: its policy allows files of its own alone.
export default defineConfig({
  base: "/ui/",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    sourcemap: false,
    rollupOptions: { input: { index: "index.html" } },
  },
  worker: { format: "es" },
  test: { environment: "node" },
} as Parameters<typeof defineConfig>[0]);
