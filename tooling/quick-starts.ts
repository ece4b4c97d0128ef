import { join } from "node:path";
import { repository } from "./repository.ts";

/**
 * Environment variables that let processes and threads of tests, guides and examples start quickly. Our TypeScript is
 * loaded from a compile cache, because stripping types and compiling take half of the time of a short run.
 */
export const compiledOnce: Readonly<Record<string, string>> = {
  NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] ?? join(repository, "node_modules/.cache/compiled"),
};

/** Node option that loads the compiled output of packages, which has a few files instead of hundreds of modules. */
export const asBuilt = "--conditions=skein-built";

/**
 * Returns environment variables that let processes start quickly, for processes that cannot be configured by options.
 *
 * @param built Whether the packages have been built from their current sources.
 */
export const quickStarts = (built: boolean): Readonly<Record<string, string>> => ({
  ...compiledOnce,
  ...(built && { NODE_OPTIONS: [process.env["NODE_OPTIONS"], asBuilt].filter(Boolean).join(" ") }),
});
