#!/usr/bin/env node
import { mkdirSync } from "node:fs";
import { enableCompileCache } from "node:module";
import { cacheFolder } from "@skein/cli/start";
import { memberCommand, stayWithController } from "./processes/stay-with-controller.ts";

// Called before the modules below are loaded, which takes time, so that signals and the end of the controller are
// handled immediately.
if (process.argv[2] === memberCommand) stayWithController();

/**
 * Returns the folder of Node's compile cache. Only this user may be able to write to the folder, because Node runs the
 * code in it. Undefined if there is no such folder.
 */
const compiledFolder = (): string | undefined => {
  const folder = cacheFolder("compiled", (line) => {
    if (!process.argv.includes("--quiet")) process.stderr.write(`${line}\n`);
  });
  if (folder === undefined) return undefined;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return folder;
  } catch {
    return undefined; // disk is full or read-only: modules are compiled on each start
  }
};

// Loading and compiling our modules takes half of the time of a short run, in each thread and process. The environment
// variable passes the folder to child processes.
const { env } = process;
const folder = env["NODE_COMPILE_CACHE"] || compiledFolder();
if (folder !== undefined) {
  env["NODE_COMPILE_CACHE"] = folder;
  enableCompileCache(folder);
}
await import("./commands/command-line.ts").catch((error: NodeJS.ErrnoException) => {
  // The modules that explain errors cannot be loaded without free file handles.
  if (error.code !== "EMFILE" && error.code !== "ENFILE") throw error;
  process.stderr.write(
    `no file handle is left (${error.message}); raise the limit before the start, such as with: ulimit -n 4096\n`,
  );
  process.exitCode = 1;
});
