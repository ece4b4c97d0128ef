import { z } from "zod";

/**
 * Schema of a count: an integer from 1 to 2³¹ − 1, because counts, and the indices of many counted objects, are stored
 * in 32 bits.
 */
export const count = z
  .int()
  .min(1)
  .max(2 ** 31 - 1);

/**
 * Schema of a layer width, in features. A square matrix of the maximum width needs 4 TiB. Whether a model fits into
 * memory is checked later, when the parameter sizes are computed.
 */
export const width = z
  .int()
  .min(1)
  .max(2 ** 20);

/** Maximum number of layers of a model. Limited because each layer is traced. */
export const maxLayers = 1024;

/** Maximum side length of an image, in pixels. */
export const maxSide = 4096;

/** Schema of the path of a file or folder. */
export const path = z.string().min(1).max(4096);
