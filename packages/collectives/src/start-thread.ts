import { existsSync } from "node:fs";
import { Worker, type WorkerOptions } from "node:worker_threads";
import { threadFile, threadFlags } from "@skein/tensor-core/backend";

/**
 * Starts a worker thread from a file of one of this project's packages.
 *
 * @param locate returns the URL of the file, relative to `import.meta.url`. The build rewrites the URL to the .js file
 * next to the caller.
 * @param packageName package that contains the file.
 * @throws ThreadFileError if a bundler has omitted the file.
 */
export const startThread = (
  locate: () => URL,
  options: WorkerOptions,
  packageName: string = "@skein/collectives",
): Worker => new Worker(threadFile(locate, packageName, existsSync), { ...options, ...threadFlags(process.execArgv) });
