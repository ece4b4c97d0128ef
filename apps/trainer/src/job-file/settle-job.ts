import type { Job } from "@skein/job/node";
import { settleModules } from "../modules/settle-modules.ts";
import { settlePretrained } from "../pretrained/settle-pretrained.ts";

/**
 * Adds the digests of the modules and the checkpoint that a job names, so that the job identifies all inputs of a run.
 *
 * @param locationOf returns the location of a job key in its file, for errors about module options.
 * @throws ConfigError, ModuleError, PretrainedError.
 */
export const settleJob = async (job: Job, locationOf?: (path: readonly string[]) => string | undefined): Promise<Job> =>
  settlePretrained(await settleModules(job, locationOf));
