import type { Job } from "./job.ts";
import { settleModules } from "./modules/settle-modules.ts";
import { settlePretrained } from "./pretrained/settle-pretrained.ts";

/**
 * The same job with what is in the modules and the checkpoint that it names, by digests: what a run is made of.
 *
 * @throws ModuleError, PretrainedError.
 */
export const settleJob = async (job: Job): Promise<Job> => settlePretrained(await settleModules(job));
