#!/usr/bin/env node
import { mkdirSync } from "node:fs";
import { enableCompileCache } from "node:module";
import { cacheFolder } from "@skein/cli/start";
import { memberCommand, stayWithController } from "./processes/stay-with-controller.ts";

// Called before the modules below are loaded, which takes a while, so that signals and the end of the controller are
// handled immediately.
if (process.argv[2] === memberCommand) stayWithController();

/**
 * Returns the folder for compiled modules. Only this user can write to it, because anyone who can write there could
 * have code run.
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
    return undefined; // full or read-only disk: modules are compiled on each start
  }
};

// Loading and compiling our modules takes half of the time of a short run, in each of its threads and processes. Child
// processes find the folder by the environment variable.
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
