import type { Job } from "../job/job.ts";
import { settleModules } from "../modules/settle-modules.ts";
import { settlePretrained } from "../pretrained/settle-pretrained.ts";

/**
 * The same job with what is in the modules and the checkpoint that it names, by digests: what a run is made of.
 *
 * @param placeOf says where a key of the job stands, for faults in the options of modules.
 * @throws ConfigError, ModuleError, PretrainedError.
 */
export const settleJob = async (job: Job, placeOf?: (path: readonly string[]) => string | undefined): Promise<Job> =>
  settlePretrained(await settleModules(job, placeOf));
