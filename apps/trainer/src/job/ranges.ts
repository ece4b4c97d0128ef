import { z } from "zod";

/** A count of at least 1. Counts, and many of the things counted, are stored in 32 bits. */
export const count: z.ZodInt = z
  .int()
  .min(1)
  .max(2 ** 31 - 1);

/**
 * Features of a layer. A square matrix of the maximum width takes 4 TiB; whether a machine can hold the model is
 * checked when the size of the parameters is computed.
 */
export const width: z.ZodInt = z
  .int()
  .min(1)
  .max(2 ** 20);

/** Maximum number of layers of a model; each layer is traced. */
export const maxLayers = 1024;

/** Maximum side length of an image, in pixels. */
export const maxSide = 4096;

/** Path of a file or folder. */
export const path: z.ZodString = z.string().min(1).max(4096);
