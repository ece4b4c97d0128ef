import { existsSync } from "node:fs";
import { Worker, type WorkerOptions } from "node:worker_threads";
import { threadFile, threadFlags } from "@skein/tensor-core/backend";

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
): Worker => new Worker(threadFile(locate, packageName, existsSync), { ...options, ...threadFlags(process.execArgv) });
