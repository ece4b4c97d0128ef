import type { Options } from "tsup";

/** Build settings of a published package: ESM only, declarations beside the code. */
export const library = (options: Options): Options => ({
  format: ["esm"],
  target: "es2023",
  platform: "neutral",
  dts: true,
  clean: true,
  treeshake: true,
  sourcemap: true,
  ...options,
});
