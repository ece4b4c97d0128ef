import { z } from "zod";
import { count } from "./ranges.ts";

const shuffleBuffer = count
  .max(10_000_000)
  .default(1000)
  .describe("Size of the shuffle buffer, in samples; up to twice as many stay in memory, images in encoded form.");
const shardsAtOnce = count
  .max(1024)
  .optional()
  .describe(
    "Number of files that are read concurrently, by all ranks together; each provides an equal part of a batch. Default: the largest number that divides the batch, up to 8 or the number of ranks, whichever is larger.",
  );

const description =
  "Stream the files during training, several concurrently and repeatedly from beginning to end, instead of reading all of them before; needs steps and testFile. Files may be compressed (.gz). Default: no streaming.";

const className = z.string().min(1).max(200);
const classes = z
  .union([count.min(2), z.array(className).min(2)])
  .optional()
  .describe(
    "Names of all classes in the order of their numbers, or the number of classes. Default: the classes of testFile.",
  );

/** Schema of the option `stream` of texts. */
export const textStream = z.strictObject({ shuffleBuffer, shardsAtOnce }).optional().describe(description);

/** Schema of the option `stream` of images. */
export const imageStream = z.strictObject({ shuffleBuffer, shardsAtOnce, classes }).optional().describe(description);
