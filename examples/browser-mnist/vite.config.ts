import { defineConfig, type UserConfig } from "vite";
import { mnistAssets } from "./mnist-assets.ts";

/**
 * Cross-origin isolation, without which a page has no shared memory and the WebAssembly backend no threads. A host must
 * send them too.
 */
const headers = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" };

const config: UserConfig = defineConfig({
  base: "./",
  plugins: [mnistAssets()],
  worker: { format: "es" }, // the WebAssembly build is chosen at run time, by a dynamic import
  build: { target: "esnext" },
  server: { headers },
  preview: { headers },
});

export default config;
