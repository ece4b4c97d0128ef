import { z } from "zod";
import type { CrossFieldFault } from "./cross-field-fault.ts";
import type { Job } from "./job.ts";
import { count } from "./ranges.ts";

const shuffleBuffer: z.ZodDefault<z.ZodInt> = count
  .max(10_000_000)
  .default(1000)
  .describe("Samples that are shuffled together; up to twice as many stay in memory, images as they are encoded.");
const shardsAtOnce: z.ZodOptional<z.ZodInt> = count
  .max(1024)
  .optional()
  .describe(
    "Files that are read at once, by all ranks together; each gives the same part of a batch. Default: as many as divide the batch, up to 8, or up to as many as there are ranks.",
  );

// oxlint-disable-next-line typescript/consistent-type-definitions -- an interface has no index signature
type Reading = { readonly shuffleBuffer: typeof shuffleBuffer; readonly shardsAtOnce: typeof shardsAtOnce };

const description =
  "Read files from beginning to end while training, over and over, a few at once, instead of all of them before; give steps, and testFile. Files may be compressed (.gz). Default: not so.";

const className = z.string().min(1).max(200);
const classes: z.ZodOptional<z.ZodUnion<readonly [z.ZodInt, z.ZodArray<z.ZodString>]>> = z
  .union([count.min(2), z.array(className).min(2)])
  .optional()
  .describe("Names of all classes in the order of their numbers, or how many numbers. Default: those of testFile.");

/** Key `stream` of texts. */
export const textStream: z.ZodOptional<z.ZodObject<Reading, z.core.$strict>> = z
  .strictObject({ shuffleBuffer, shardsAtOnce })
  .optional()
  .describe(description);

/** Key `stream` of images. */
export const imageStream: z.ZodOptional<z.ZodObject<Reading & { readonly classes: typeof classes }, z.core.$strict>> = z
  .strictObject({ shuffleBuffer, shardsAtOnce, classes })
  .optional()
  .describe(description);

/** What a stream cannot give: nobody knows how many samples it has, or which come. */
export const streamFaults = ({ data, epochs, evaluation, batch }: Job): CrossFieldFault[] => {
  if (!("stream" in data) || data.stream === undefined) return [];
  const faults: CrossFieldFault[] = [];
  const fault = (path: readonly string[], rule: string): number => faults.push({ path, rule });
  if (epochs !== undefined)
    fault(["epochs"], `${epochs}, but nobody knows how many samples a stream has (data.stream); give steps instead`);
  if (evaluation.everyEpochs !== undefined)
    fault(
      ["evaluation", "everyEpochs"],
      `${evaluation.everyEpochs}, but nobody knows how many samples a stream has (data.stream); give everySteps instead`,
    );
  for (const key of ["validationFraction", "validationFrom", "trainSamples", "judgeBy"] as const)
    if (data[key] !== undefined)
      fault(
        ["data", key],
        `${data[key]}, but samples of a stream (data.stream) are not known before they come; leave one of the two out`,
      );
  if (data.kind !== "image-parquet" && data.testFile === undefined)
    fault(
      ["data"],
      "testFile is missing: of a stream (data.stream) nothing can be held out; name files with samples to judge by",
    );
  const { shardsAtOnce: wanted } = data.stream;
  if (wanted !== undefined && batch % wanted !== 0)
    fault(
      ["data", "stream", "shardsAtOnce"],
      `${wanted} files cannot give equal parts of a batch of ${batch} samples; use a divisor of ${batch}`,
    );
  return faults;
};
