import { pathToFileURL } from "node:url";
import { ConfigError } from "@skein/cli/node";
import { type Job, moduleKeys, modulesOf, withModules } from "@skein/job/node";
import { loadModule, requireOptions } from "./load-module.ts";
import { requireTrusted } from "./module-trust.ts";
import { contentDigest } from "./module-links.ts";

const digestOf = (file: string): string => contentDigest(pathToFileURL(file).href);

/**
 * Adds the content digest of each module to a job. The digests identify the code of a run, independent of file paths.
 *
 * @param locationOf returns the location of a job key in its file, for errors about options.
 * @throws ModuleError; ConfigError if a module's schema rejects the options.
 */
export const settleModules = async (
  job: Job,
  locationOf?: (path: readonly string[]) => string | undefined,
): Promise<Job> => {
  requireTrusted(job);
  for (const [key, module] of modulesOf(job))
    await requireOptions(key, module, await loadModule(key, module), locationOf);
  // Keys must be in the order of the schema, because the job is hashed as text, and reading the job again restores this
  // order.
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
 * Requires that this process has the same modules as the controller of the run.
 *
 * @throws ConfigError that names the differing module.
 */
export const requireSameModules = async (job: Job): Promise<void> => {
  for (const [key, module] of modulesOf(job)) {
    if (!moduleKeys[key].everywhere) continue;
    await loadModule(key, module);
    const digest = digestOf(module.file);
    if (digest !== module.digest)
      throw new ConfigError([
        `${key}.file ${module.file}: its content, SHA-256 ${digest.slice(0, 16)}…, differs from the controller's, ${module.digest?.slice(0, 16)}…; copy the host's file and its imports, or start the run again`,
      ]);
  }
};
