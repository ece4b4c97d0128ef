import { join } from "node:path";
import { repository } from "./repository.ts";

/**
 * Environment in which the processes and threads started by tests, guides and examples start quickly: they load our
 * TypeScript from a compile cache, because stripping and compiling it takes half of the time of a short run.
 */
export const compiledOnce: Readonly<Record<string, string>> = {
  NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] ?? join(repository, "node_modules/.cache/compiled"),
};

/** Option of Node that loads other packages in their built form: a few files instead of hundreds of modules. */
export const asBuilt = "--conditions=skein-built";

/**
 * Returns the environment for processes that only environment variables reach. @param built whether the packages have
 * been built in their current state.
 */
export const quickStarts = (built: boolean): Readonly<Record<string, string>> => ({
  ...compiledOnce,
  ...(built && { NODE_OPTIONS: [process.env["NODE_OPTIONS"], asBuilt].filter(Boolean).join(" ") }),
});
