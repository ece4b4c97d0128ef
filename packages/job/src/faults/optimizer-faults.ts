import type { Job } from "../job.ts";
import { hasGrid } from "../mesh.ts";
import type { CrossFieldFault } from "./cross-field-fault.ts";

/** Returns the problems found in the options of a second-order optimizer. */
export const curvatureFaults = ({ optimizer, batch, ranks, overlap }: Job): CrossFieldFault[] => {
  const faults: CrossFieldFault[] = [];
  const fault = (field: string, rule: string): void => void faults.push({ path: ["optimizer", field], rule });
  if ((optimizer.kind === "shampoo" || optimizer.kind === "soap") && overlap === "dear")
    fault(
      "kind",
      `${optimizer.kind} computes ${optimizer.kind === "soap" ? "bases" : "roots"} in its update, which overlap: dear defers to the next step; use wait-free`,
    );
  if (!("curvatureDecay" in optimizer)) return faults;
  const { statisticsSamples } = optimizer;
  if (statisticsSamples !== undefined && statisticsSamples > batch / ranks)
    fault(
      "statisticsSamples",
      `statistics need ${statisticsSamples} samples, but a rank's share of a batch has ${batch / ranks}; use at most ${batch / ranks}`,
    );
  if (optimizer.kind === "kfac" && optimizer.inverseEvery % optimizer.factorEvery !== 0)
    fault(
      "inverseEvery",
      `inverses are computed every ${optimizer.inverseEvery} steps, but factors change every ${optimizer.factorEvery}; use a multiple of factorEvery`,
    );
  if (optimizer.kind === "kfac" && optimizer.form === "dp-hybrid" && optimizer.blockSize === undefined)
    fault(
      "form",
      "dp-hybrid distributes blocks of factors, but factors are not divided into blocks; give blockSize, such as 512, or use dp",
    );
  const { form, factorBuckets: buckets } = optimizer.kind === "kfac" ? optimizer : {};
  if (buckets !== undefined && (form === "dp" || form === "dp-hybrid"))
    fault(
      "factorBuckets",
      `with form: ${form} no factors are sent; leave factorBuckets out or use another form, such as mpd`,
    );
  if (buckets !== undefined && buckets.kind !== "planned" && form === "auto")
    fault(
      "factorBuckets",
      `with form: auto buckets are planned together with the form, not ${buckets.kind}; leave factorBuckets out or use another form, such as mpd`,
    );
  if (optimizer.kind === "kfac" && hasGrid(optimizer)) {
    const { gradientWorkers } = optimizer;
    const workers = Math.max(1, ranks * gradientWorkers);
    if (!Number.isInteger(workers) || ranks % workers !== 0)
      fault(
        "gradientWorkers",
        `a share of ${gradientWorkers} of ${ranks} ranks is ${ranks * gradientWorkers} gradient workers, which does not divide ${ranks}; use 1, 0, or another share that gives a divisor`,
      );
  }
  return faults;
};

/** Returns the problems found in a job's learning-rate options. */
export const learningRateFaults = ({ learningRate }: Job): CrossFieldFault[] => {
  const faults: CrossFieldFault[] = [];
  const fault = (path: readonly string[], rule: string): void => void faults.push({ path, rule });
  const { decay, everySteps, peak, final, warmupSteps, schedule } = learningRate;
  if (schedule !== undefined && decay !== "constant")
    fault(
      ["learningRate", "decay"],
      `decay: ${decay} and a schedule both determine the learning rate after the warm-up; give one of them`,
    );
  if (decay === "step" && everySteps === undefined)
    fault(
      ["learningRate"],
      "decay: step needs everySteps, the steps between two drops, but everySteps is missing; give everySteps",
    );
  const only = { everySteps: "step", power: "polynomial", decayShare: "wsd", riseShare: "one-cycle" } as const;
  for (const [key, kind] of Object.entries(only))
    if (decay !== kind && learningRate[key as keyof typeof only] !== undefined)
      fault(["learningRate", key], `${key} has no effect with decay: ${decay}; leave it out or use decay: ${kind}`);
  if (decay === "one-cycle" && warmupSteps > 0)
    fault(
      ["learningRate", "warmupSteps"],
      `warmupSteps is ${warmupSteps}, but one-cycle has its own warm-up; leave warmupSteps out, and set the length of the increase with riseShare`,
    );
  if (final > peak)
    fault(["learningRate", "final"], `the final rate ${final} is above the peak ${peak}; use at most the peak`);
  return faults;
};
