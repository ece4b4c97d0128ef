#!/usr/bin/env node
import { mkdirSync } from "node:fs";
import { enableCompileCache } from "node:module";
import { memberCommand, stayWithController } from "./processes/stay-with-controller.ts";
import { cacheFolder } from "./files/cache-folder.ts";

// Before the modules below are read, which takes a while: signals and the end of the controller do not wait for them.
if (process.argv[2] === memberCommand) stayWithController();

/** Folder for compiled modules, of this user alone: whoever can write there can have code run. */
const compiledFolder = (): string | undefined => {
  const folder = cacheFolder("compiled", (line) => {
    if (!process.argv.includes("--quiet")) process.stderr.write(`${line}\n`);
  });
  if (folder === undefined) return undefined;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return folder;
  } catch {
    return undefined; // a full or read-only disk: modules are compiled each time
  }
};

// Half of the time of a short run is to read and compile our modules, in each of its threads and processes; those that
// follow find the folder by the environment.
const { env } = process;
const folder = env["NODE_COMPILE_CACHE"] || compiledFolder();
if (folder !== undefined) {
  env["NODE_COMPILE_CACHE"] = folder;
  enableCompileCache(folder);
}
await import("./commands/command-line.ts").catch((error: NodeJS.ErrnoException) => {
  // To read modules takes file handles, so that errors cannot be explained by those of ours.
  if (error.code !== "EMFILE" && error.code !== "ENFILE") throw error;
  process.stderr.write(
    `no file handle is left (${error.message}); raise the limit before the start, such as with: ulimit -n 4096\n`,
  );
  process.exitCode = 1;
});
