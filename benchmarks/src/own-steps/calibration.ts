import { type EmulatedNetwork, linkFileOf, networkJob, networks } from "../slow-links/links.ts";
import { baseline } from "../slow-links/methods.ts";
import type { SlowLinksRun } from "../slow-links/plan.ts";
import { type JobFile, layJobs } from "../studies/job-file.ts";

/** Network for calibrating machines; no steps are predicted for this network. */
export const calibrationNetwork: EmulatedNetwork = networks.find(({ name }) => name === "10-gbps")!;

/**
 * Returns the calibration jobs of a machine, one per kind of computation. Each job runs over a network that is not used
 * for predictions, and sends all gradients in one message after the backward pass. `calibrate` itself adds the dense
 * job with one message per tensor, with and without overlap. The calibration uses no other buckets, overlap or plans.
 *
 * @param runs Runs with the same model and number of ranks.
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
