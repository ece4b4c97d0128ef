import { type EmulatedNetwork, linkFileOf, networkJob, networks } from "../slow-links/links.ts";
import { baseline } from "../slow-links/methods.ts";
import type { SlowLinksRun } from "../slow-links/plan.ts";
import { type JobFile, layJobs } from "../studies/job-file.ts";

/** The network that machines are calibrated on, and none is predicted for. */
export const calibrationNetwork: EmulatedNetwork = networks.find(({ name }) => name === "10-gbps")!;

/**
 * The jobs that a machine is calibrated by: what a method computes, over another network than those that are predicted,
 * with all gradients in one message once they are there. `calibrate` itself adds the dense one with each tensor by
 * itself, after and beside computation. Other buckets, overlap and plans are held out.
 *
 * @param runs of one model and number of ranks.
 */
export const calibrationJobs = (
  runs: readonly SlowLinksRun[],
): { readonly jobs: readonly JobFile[]; readonly files: SlowLinksRun["files"] } => {
  const isCalibrating = ({ method: { name, setting } }: SlowLinksRun): boolean =>
    name === baseline || (setting !== undefined && name === `${baseline}-${setting}`);
  const byMethod = new Map(runs.filter(isCalibrating).map((run) => [run.method.name, run]));
  return {
    jobs: [...byMethod.values()].map(({ job }) => layJobs(job, networkJob(calibrationNetwork))),
    files: { "links.json": linkFileOf(calibrationNetwork, runs[0]!.ranks) },
  };
};
