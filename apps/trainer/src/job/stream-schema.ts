import { z } from "zod";
import type { CrossFieldFault } from "./cross-field-fault.ts";
import type { Job } from "./job.ts";
import { count } from "./ranges.ts";

const shuffleBuffer: z.ZodDefault<z.ZodInt> = count
  .max(10_000_000)
  .default(1000)
  .describe("Size of the shuffle buffer, in samples; up to twice as many stay in memory, images in encoded form.");
const shardsAtOnce: z.ZodOptional<z.ZodInt> = count
  .max(1024)
  .optional()
  .describe(
    "Number of files that are read concurrently, by all ranks together; each provides an equal part of a batch. Default: the largest number that divides the batch, up to 8 or the number of ranks, whichever is larger.",
  );

// oxlint-disable-next-line typescript/consistent-type-definitions -- an interface has no index signature
type Reading = { readonly shuffleBuffer: typeof shuffleBuffer; readonly shardsAtOnce: typeof shardsAtOnce };

const description =
  "Stream the files during training, several concurrently and repeatedly from beginning to end, instead of reading all of them before; needs steps and testFile. Files may be compressed (.gz). Default: no streaming.";

const className = z.string().min(1).max(200);
const classes: z.ZodOptional<z.ZodUnion<readonly [z.ZodInt, z.ZodArray<z.ZodString>]>> = z
  .union([count.min(2), z.array(className).min(2)])
  .optional()
  .describe(
    "Names of all classes in the order of their numbers, or the number of classes. Default: the classes of testFile.",
  );

/** Schema of the option `stream` of texts. */
export const textStream: z.ZodOptional<z.ZodObject<Reading, z.core.$strict>> = z
  .strictObject({ shuffleBuffer, shardsAtOnce })
  .optional()
  .describe(description);

/** Schema of the option `stream` of images. */
export const imageStream: z.ZodOptional<z.ZodObject<Reading & { readonly classes: typeof classes }, z.core.$strict>> = z
  .strictObject({ shuffleBuffer, shardsAtOnce, classes })
  .optional()
  .describe(description);

/**
 * Returns the faults of a job that streams data. The number and the order of streamed samples are not known in advance.
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
