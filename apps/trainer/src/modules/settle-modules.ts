import { pathToFileURL } from "node:url";
import { ConfigError } from "../errors.ts";
import type { Job } from "../job/job.ts";
import { loadModule, requireOptions } from "./load-module.ts";
import { moduleKeys, modulesOf, withModules } from "./module-keys.ts";
import { requireTrusted } from "./module-trust.ts";
import { contentDigest } from "./module-links.ts";

const digestOf = (file: string): string => contentDigest(pathToFileURL(file).href);

/**
 * The same job with the digest of each module that it names: what a run is made of, wherever it lies.
 *
 * @param placeOf says where a key of the job stands, for faults in options.
 * @throws ModuleError, ConfigError for options that a module's schema does not take.
 */
export const settleModules = async (
  job: Job,
  placeOf?: (path: readonly string[]) => string | undefined,
): Promise<Job> => {
  requireTrusted(job);
  for (const [key, module] of modulesOf(job)) await requireOptions(key, module, await loadModule(key, module), placeOf);
  // In the order of the schema, in which whoever reads the job again has its keys: it is hashed as text.
  return withModules(job, ({ kind, file, export: name, options, digest: _, ...others }) => ({
    kind,
    file,
    export: name,
    options,
    digest: digestOf(file),
    ...others,
  }));
};

/**
 * Require that this process has the modules that the controller of the run has.
 *
 * @throws ConfigError that names the one that differs.
 */
export const requireSameModules = async (job: Job): Promise<void> => {
  for (const [key, module] of modulesOf(job)) {
    if (!moduleKeys[key].everywhere) continue;
    await loadModule(key, module);
    const digest = digestOf(module.file);
    if (digest !== module.digest)
      throw new ConfigError([
        `${key}.file ${module.file}: its content, SHA-256 ${digest.slice(0, 16)}…, is not what the controller of the run has, ${module.digest?.slice(0, 16)}…; copy the host's file and what it imports, or start the run again`,
      ]);
  }
};
