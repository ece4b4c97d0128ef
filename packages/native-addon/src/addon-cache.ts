import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { othersWhoWrite, remarkOnCache } from "./private-path.ts";
import { nodeApiVersion } from "./node-api-version.ts";

/** The C++ sources of an addon. */
export class AddonSources {
  readonly #folder: string;

  /** @param folder of the sources, which lies beside `src` and beside `dist` alike. Ends with a slash. */
  constructor(folder: URL) {
    this.#folder = fileURLToPath(folder);
  }

  /** Paths of sources and headers, sorted. */
  files(): string[] {
    return readdirSync(this.#folder)
      .filter((name) => /\.(cc|h)$/.test(name))
      .sort()
      .map((name) => join(this.#folder, name));
  }

  /** What must be equal for a built addon to fit, beside the library: sources, platform, and Node-API. */
  key(): string {
    const hash = createHash("sha256");
    for (const path of this.files())
      hash.update(path.slice(this.#folder.length)).update("\0").update(readFileSync(path)).update("\0");
    return `${process.platform}-${process.arch}-napi${nodeApiVersion}-${hash.digest("hex").slice(0, 16)}`;
  }
}

/** Where builds are kept that no folder was given for: one of the user's, where no package manager cleans up. */
export const cacheFolder = (name: string, environment: NodeJS.ProcessEnv): string =>
  join(environment["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "skein", name);

/** Why a build in a folder is not loaded: others may have put something there. */
const buildFault = (folder: string): string | undefined =>
  [folder, ...readdirSync(folder).map((name) => join(folder, name))]
    .map(othersWhoWrite)
    .find((fault) => fault !== undefined);

/**
 * Folders in `cache` that hold a whole build of `sources` for this platform, the newest first. A build that others may
 * have changed is left out, with a remark.
 *
 * @param lastFile what a build writes last: without it, it is not whole.
 */
export const builtFolders = (cache: string, sources: AddonSources, lastFile: string): string[] => {
  if (!existsSync(cache)) return [];
  const key = sources.key();
  return readdirSync(cache)
    .filter((name) => name.endsWith(`-${key}`) && existsSync(join(cache, name, lastFile)))
    .filter((name) => {
      const fault = buildFault(join(cache, name));
      if (fault !== undefined) remarkOnCache(`the addon in ${join(cache, name)}`, fault);
      return fault === undefined;
    })
    .map((name) => ({ folder: join(cache, name), built: statSync(join(cache, name, lastFile)).mtimeMs }))
    .sort((a, b) => b.built - a.built)
    .map(({ folder }) => folder);
};
