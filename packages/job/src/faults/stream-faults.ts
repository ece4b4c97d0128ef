import type { Job } from "../job.ts";
import type { CrossFieldFault } from "./cross-field-fault.ts";

/**
 * Returns the problems found in the options of a job that streams data, such as options that need the number of
 * samples, which is unknown for a stream.
 */
export const streamFaults = ({ data, epochs, evaluation, batch }: Job): CrossFieldFault[] => {
  if (!("stream" in data) || data.stream === undefined) return [];
  const faults: CrossFieldFault[] = [];
  const fault = (path: readonly string[], rule: string): number => faults.push({ path, rule });
  if (epochs !== undefined)
    fault(
      ["epochs"],
      `${epochs} epochs, but the number of samples of a stream (data.stream) is unknown; give steps instead`,
    );
  if (evaluation.everyEpochs !== undefined)
    fault(
      ["evaluation", "everyEpochs"],
      `every ${evaluation.everyEpochs} epochs, but the number of samples of a stream (data.stream) is unknown; give everySteps instead`,
    );
  for (const key of ["validationFraction", "validationFrom", "trainSamples", "judgeBy"] as const)
    if (data[key] !== undefined)
      fault(
        ["data", key],
        `${data[key]}, but samples of a stream (data.stream) are not known in advance; leave ${key} or data.stream out`,
      );
  if (data.kind !== "image-parquet" && data.testFile === undefined)
    fault(
      ["data"],
      "testFile is missing, but samples of a stream (data.stream) cannot be held out; give testFile with samples for evaluation",
    );
  const { shardsAtOnce: numShards } = data.stream;
  if (numShards !== undefined && batch % numShards !== 0)
    fault(
      ["data", "stream", "shardsAtOnce"],
      `${numShards} files cannot provide equal parts of a batch of ${batch} samples; use a divisor of ${batch}`,
    );
  return faults;
};
