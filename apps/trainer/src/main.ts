#!/usr/bin/env node
import { enableCompileCache } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";

// Half of the time of a short run is to read and compile our modules, in each of its threads and processes; those that
// follow find the folder by the environment. A folder of this user alone: whoever can write there can have code run.
const { env } = process;
env["NODE_COMPILE_CACHE"] ||= join(
  env["SKEIN_CACHE_DIR"] || join(env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "skein"),
  "compiled",
);
enableCompileCache(env["NODE_COMPILE_CACHE"]);
await import("./commands/command-line.ts");
