import { existsSync } from "node:fs";
import { Worker, type WorkerOptions } from "node:worker_threads";
import { threadFile } from "@skein/tensor-core/backend";

/**
 * A program that came through standard input or --eval says what language it is in, which Node refuses to be told for a
 * file.
 */
const ownFlags = (): { execArgv?: string[] } =>
  process.execArgv.some((flag) => flag.startsWith("--input-type")) ? { execArgv: [] } : {};

/**
 * Start a thread of our packages.
 *
 * @param locate gives the file's URL, relative to `import.meta.url`; the build rewrites it to the .js file beside it.
 * @param packageName whose file it is.
 * @throws ThreadFileError where a bundler has left the file behind.
 */
export const startThread = (
  locate: () => URL,
  options: WorkerOptions,
  packageName: string = "@skein/collectives",
): Worker => new Worker(threadFile(locate, packageName, existsSync), { ...options, ...ownFlags() });
