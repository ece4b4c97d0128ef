import { pathToFileURL } from "node:url";
import { ConfigError } from "../errors.ts";
import type { Job } from "../job.ts";
import { loadModule } from "./load-module.ts";
import { contentDigest } from "./module-links.ts";

const keys = ["data", "model"] as const;

/**
 * The same job with the digest of each module that it names: what a run is made of, wherever it lies.
 *
 * @throws ModuleError.
 */
export const settleModules = async (job: Job): Promise<Job> => {
  const settled = structuredClone(job);
  for (const key of keys) {
    const part = job[key];
    if (part.kind !== "module") continue;
    await loadModule(key, part);
    Object.assign(settled[key], { digest: contentDigest(pathToFileURL(part.file).href) });
  }
  return settled;
};

/**
 * Require that this process has the modules that the controller of the run has.
 *
 * @throws ConfigError that names the one that differs.
 */
export const requireSameModules = async (job: Job): Promise<void> => {
  const own = await settleModules(job);
  for (const key of keys) {
    const [theirs, ours] = [job[key], own[key]];
    if (theirs.kind !== "module" || ours.kind !== "module" || theirs.digest === ours.digest) continue;
    throw new ConfigError([
      `${key}.file ${ours.file}: its content, SHA-256 ${ours.digest!.slice(0, 16)}…, is not what the controller of the run has, ${theirs.digest?.slice(0, 16)}…; copy the host's file and what it imports, or start the run again`,
    ]);
  }
};
