import { readFileSync } from "node:fs";
import { defineConfig, type UserConfig } from "vite";

const manifest = new URL("../package.json", import.meta.resolve("@jax-js/jax"));

const config: UserConfig = defineConfig({
  define: { __JAX_JS_VERSION__: JSON.stringify(JSON.parse(readFileSync(manifest, "utf8")).version) },
});

export default config;
