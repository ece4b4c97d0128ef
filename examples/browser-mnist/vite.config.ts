import { defineConfig, type UserConfig } from "vite";
import { mnistAssets } from "./mnist-assets.ts";

/**
 * HTTP headers for cross-origin isolation, which shared memory and thus the threads of the WebAssembly backend require.
 * A production host must also send these headers.
 */
const headers = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" };

const config: UserConfig = defineConfig({
  base: "./",
  plugins: [mnistAssets()],
  worker: { format: "es" }, // the worker imports the WebAssembly build dynamically
  build: { target: "esnext" },
  server: { headers },
  preview: { headers },
});

export default config;
