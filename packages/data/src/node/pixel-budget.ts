import { requireMemory } from "./require-memory.ts";

/** Maximum number of pixels of an image: 16384 × 8192, which need 400 MB as RGB. */
export const maxPixels: number = 2 ** 27;
/** Maximum number of pixels of an image that is not counted by the budget: 50 MB as RGB. */
export const smallPixels: number = 2 ** 24;

/**
 * Memory in bytes per pixel during decoding, including copies not yet garbage-collected. `whole`: the decoder stores
 * the complete image in memory. `rows`: the decoder works row by row.
 */
const pixelBytes = { whole: 12, rows: 2 } as const;

/**
 * Limits the total number of pixels of large images that this thread decodes concurrently. Waiting images are decoded
 * in order of arrival.
 */
class PixelBudget {
  private free = maxPixels;
  private readonly waiting: { readonly pixels: number; readonly begin: () => void }[] = [];

  async take<Result>(pixels: number, work: () => Promise<Result>): Promise<Result> {
    if (this.waiting.length > 0 || pixels > this.free)
      await new Promise<void>((begin) => this.waiting.push({ pixels, begin }));
    else this.free -= pixels;
    try {
      return await work();
    } finally {
      this.free += pixels;
      while (this.waiting.length > 0 && this.waiting[0]!.pixels <= this.free) {
        const next = this.waiting.shift()!;
        this.free -= next.pixels;
        next.begin();
      }
    }
  }
}

const budget = new PixelBudget();

/**
 * Decodes an image as soon as its pixels fit into the budget.
 *
 * @param kept Whether the decoder stores the complete image in memory, or one row at a time.
 * @throws Error if the image has more than `maxPixels` pixels; DataError if memory is insufficient.
 */
export const withinPixels = async <Result>(
  rows: number,
  columns: number,
  kept: keyof typeof pixelBytes,
  decode: () => Promise<Result>,
): Promise<Result> => {
  const pixels = rows * columns;
  if (pixels <= smallPixels) return decode();
  const size = `${columns}×${rows}`;
  if (pixels > maxPixels)
    throw new Error(`it has ${size} = ${pixels} pixels, but the maximum is ${maxPixels}; make it smaller`);
  return budget.take(pixels, () => {
    requireMemory(pixelBytes[kept] * pixels, `the pixels of an image of ${size}`, "make it smaller");
    return decode();
  });
};
