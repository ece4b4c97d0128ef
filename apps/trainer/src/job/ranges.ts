import { z } from "zod";

/** A number of things. They are counted, and many of them stored, in 32 bits. */
export const count: z.ZodInt = z
  .int()
  .min(1)
  .max(2 ** 31 - 1);

/**
 * Features of a layer. A square matrix of the largest takes 4 TiB: what a given machine holds is checked when the
 * parameters are priced.
 */
export const width: z.ZodInt = z
  .int()
  .min(1)
  .max(2 ** 20);

/** Layers of a model. Each is traced. */
export const mostLayers = 1024;

/** Pixels of a side of an image. */
export const mostSide = 4096;

/** A file or a folder. */
export const path: z.ZodString = z.string().min(1).max(4096);
