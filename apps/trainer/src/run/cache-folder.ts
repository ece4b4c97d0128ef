import { homedir } from "node:os";
import { join } from "node:path";

const cachesAtHome = (): string | undefined => {
  try {
    return join(homedir(), ".cache");
  } catch {
    return undefined; // of a user whom the system does not know, in a container
  }
};

/**
 * Folder of this user where what a run has worked out is kept for those that follow: `SKEIN_CACHE_DIR`, else `skein` in
 * `XDG_CACHE_HOME` or `~/.cache`. Whatever is lost of it is worked out again.
 *
 * @returns undefined where there is none, since this user has no home.
 */
export const cacheFolder = (env: NodeJS.ProcessEnv = process.env): string | undefined => {
  if (env["SKEIN_CACHE_DIR"]) return env["SKEIN_CACHE_DIR"];
  const caches = env["XDG_CACHE_HOME"] || cachesAtHome();
  return caches && join(caches, "skein");
};
