import { requireMemory } from "./require-memory.ts";

/** Maximum number of pixels of an image: 16384 × 8192, 400 MB of RGB. */
export const maxPixels: number = 2 ** 27;
/** Images of at most this many pixels, 50 MB of RGB each, are not counted by the budget. */
export const smallPixels: number = 2 ** 24;

/**
 * Memory per pixel during decoding, bytes: with the whole image in memory, including copies that are not collected yet,
 * or row by row.
 */
const pixelBytes = { whole: 12, rows: 2 } as const;

/**
 * Limits the total number of pixels of large images that this thread decodes concurrently; first come, first served.
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
 * Decodes an image once its pixels fit into the budget.
 *
 * @param kept whether the decoder holds the whole image in memory, or one row at a time.
 * @throws Error for an image with more than `maxPixels`, DataError if memory is short.
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
