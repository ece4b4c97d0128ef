import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { otherWriters, warnAboutCache } from "./private-path.ts";
import { nodeApiVersion } from "./node-api-version.ts";

/** C++ sources of an addon. */
export class AddonSources {
  readonly #folder: string;

  /**
   * Stores the folder of the sources, without reading it.
   *
   * @param folder folder of the sources, next to both `src` and `dist`. Ends with a slash.
   */
  constructor(folder: URL) {
    this.#folder = fileURLToPath(folder);
  }

  /** Returns the paths of sources and headers, sorted. */
  files(): string[] {
    return readdirSync(this.#folder)
      .filter((name) => /\.(cc|h)$/.test(name))
      .sort()
      .map((name) => join(this.#folder, name));
  }

  /**
   * Returns a key that identifies the sources, the platform and the Node-API version. A cached addon is used only if it
   * was built with the same key. The key does not identify the library that the addon uses.
   */
  key(): string {
    const hash = createHash("sha256");
    for (const path of this.files())
      hash.update(path.slice(this.#folder.length)).update("\0").update(readFileSync(path)).update("\0");
    return `${process.platform}-${process.arch}-napi${nodeApiVersion}-${hash.digest("hex").slice(0, 16)}`;
  }
}

/**
 * Returns the default cache folder for builds: in `XDG_CACHE_HOME`, or in `.cache` of the user's home folder. Package
 * managers do not clean up these folders.
 */
export const cacheFolder = (name: string, environment: NodeJS.ProcessEnv): string =>
  join(environment["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "skein", name);

/**
 * Returns the reason why a build in a folder must not be loaded: other users may have written to the folder. Returns
 * undefined if the build may be loaded.
 */
const buildFault = (folder: string): string | undefined =>
  [folder, ...readdirSync(folder).map((name) => join(folder, name))]
    .map(otherWriters)
    .find((fault) => fault !== undefined);

/**
 * Returns the folders in `cache` with a complete build of `sources` for this platform, newest first. Builds that other
 * users may have changed are skipped with a warning.
 *
 * @param lastFile file that a build writes last. Without this file, the build is incomplete.
 */
export const builtFolders = (cache: string, sources: AddonSources, lastFile: string): string[] => {
  if (!existsSync(cache)) return [];
  const key = sources.key();
  return readdirSync(cache)
    .filter((name) => name.endsWith(`-${key}`) && existsSync(join(cache, name, lastFile)))
    .filter((name) => {
      const fault = buildFault(join(cache, name));
      if (fault !== undefined) warnAboutCache(`the addon in ${join(cache, name)}`, fault);
      return fault === undefined;
    })
    .map((name) => ({ folder: join(cache, name), built: statSync(join(cache, name, lastFile)).mtimeMs }))
    .sort((a, b) => b.built - a.built)
    .map(({ folder }) => folder);
};
