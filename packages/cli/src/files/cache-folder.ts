import { readdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { otherWriters, warnAboutCache } from "@skein/native-addon/node";

const cachesAtHome = (): string | undefined => {
  try {
    return join(homedir(), ".cache");
  } catch {
    return undefined; // the system has no entry for the user, as in some containers
  }
};

const cachesOf = (env: NodeJS.ProcessEnv): string | undefined => {
  if (env["SKEIN_CACHE_DIR"]) return env["SKEIN_CACHE_DIR"];
  const caches = env["XDG_CACHE_HOME"] || cachesAtHome();
  return caches && join(caches, "skein");
};

const entriesOf = (folder: string): string[] => {
  try {
    return readdirSync(folder).map((name) => join(folder, name));
  } catch {
    return []; // the folder does not exist yet
  }
};

/**
 * Returns this user's folder that caches results for later runs: a folder below `SKEIN_CACHE_DIR`, or below `skein` in
 * `XDG_CACHE_HOME` or `~/.cache`. Lost results are computed again.
 *
 * @param report called with a line that says why the folder cannot be used. Default: emits a process warning.
 * @returns undefined if this user has no home folder, or if other users can write to the cache folder and could have
 * put files there.
 */
export const cacheFolder = (
  name: "compiled" | "digests",
  report?: (line: string) => void,
  env: NodeJS.ProcessEnv = process.env,
): string | undefined => {
  const caches = cachesOf(env);
  if (caches === undefined) return undefined;
  const folder = join(caches, name);
  for (const path of [folder, ...entriesOf(folder)]) {
    const fault = otherWriters(path);
    if (fault === undefined) continue;
    warnAboutCache(`the cache ${folder}`, fault, report);
    return undefined;
  }
  return folder;
};
