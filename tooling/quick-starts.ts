import { join } from "node:path";
import { repository } from "./repository.ts";

/**
 * Environment in which processes and threads that tests, guides and examples start are quick to begin: they read our
 * TypeScript ready for the machine, since half of the time of a short run is to strip and compile it.
 */
export const compiledOnce: Readonly<Record<string, string>> = {
  NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] ?? join(repository, "node_modules/.cache/compiled"),
};

/** Option of Node with which other packages are read as they ship: hundreds of modules as a few files. */
export const asBuilt = "--conditions=skein-built";

/** The same for what only the environment reaches. @param built whether the packages as they stand were built. */
export const quickStarts = (built: boolean): Readonly<Record<string, string>> => ({
  ...compiledOnce,
  ...(built && { NODE_OPTIONS: [process.env["NODE_OPTIONS"], asBuilt].filter(Boolean).join(" ") }),
});
