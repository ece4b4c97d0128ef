import type { Job } from "../job.ts";
import { numBatchParts } from "../mesh.ts";
import type { CrossFieldFault } from "./cross-field-fault.ts";
import { dataFaults } from "./data-faults.ts";
import { exchangeFaults } from "./exchange-faults.ts";
import { memoryFaults } from "./memory-faults.ts";
import { meshFaults } from "./mesh-faults.ts";
import { modelFaults } from "./model-faults.ts";
import { networkFaults } from "./network-faults.ts";
import { curvatureFaults, learningRateFaults } from "./optimizer-faults.ts";
import { parameterFaults } from "./parameter-faults.ts";
import { streamFaults } from "./stream-faults.ts";

/**
 * Returns the violated rules between fields of a job. Rules that need the size of the data set are checked when the
 * data is loaded.
 */
export const crossFieldFaults = (job: Job): CrossFieldFault[] => {
  const faults: CrossFieldFault[] = [];
  const fault = (path: readonly string[], rule: string): void => void faults.push({ path, rule });
  const numParts = numBatchParts(job);
  const divides = (path: readonly string[], batch: number): void => {
    if (!Number.isInteger(numParts)) return; // meshFaults reports this fault
    const [unit, units] =
      job.mesh.tensor > 1 ? ["group", `${numParts} groups of ${job.mesh.tensor} ranks`] : ["rank", `${numParts} ranks`];
    if (batch < numParts)
      fault(
        path,
        `${batch} samples cannot be shared among ${units}, each ${unit} needs at least one; use a batch of at least ${numParts}, or fewer ranks`,
      );
    else if (batch % numParts !== 0) {
      const below = batch - (batch % numParts);
      fault(
        path,
        `${batch} samples are not divisible by ${units}; use a multiple of ${numParts}, such as ${below} or ${below + numParts}`,
      );
    }
  };
  divides(["batch"], job.batch);
  const { accumulate = 1 } = job;
  if (job.batch % numParts === 0 && job.batch % (numParts * accumulate) !== 0)
    fault(
      ["accumulate"],
      `${job.batch / numParts} samples of a batch on each rank are not divisible into ${accumulate} parts; use a divisor of ${job.batch / numParts}, or a batch of ${Math.ceil(job.batch / numParts / accumulate) * accumulate * numParts}`,
    );
  if (job.metrics !== undefined && job.mesh.tensor > 1)
    fault(
      ["metrics"],
      `user metrics need the whole model output of a sample, but ranks along mesh.tensor hold it in ${job.mesh.tensor} parts; use mesh.tensor: 1, or leave metrics out`,
    );
  if (job.epochs === undefined && job.steps === undefined)
    fault([], "neither epochs nor steps is given, so the run would have no end; give one of them");
  if (job.epochs !== undefined && job.steps !== undefined)
    fault(["steps"], `both epochs (${job.epochs}) and steps (${job.steps}) are given; give one of them`);
  faults.push(
    ...dataFaults(job),
    ...streamFaults(job),
    ...meshFaults(job),
    ...modelFaults(job),
    ...exchangeFaults(job),
    ...memoryFaults(job),
    ...networkFaults(job),
    ...learningRateFaults(job),
    ...curvatureFaults(job),
    ...parameterFaults(job),
  );
  return faults;
};
