import { requireMemory } from "./require-memory.ts";

/** Images with more pixels are not decoded: 16384 × 8192, which are 400 MB of colours. */
export const mostPixels: number = 2 ** 27;
/** Images of at most this many pixels are decoded without counting them: 50 MB of colours each. */
export const smallPixels: number = 2 ** 24;

/** Memory of a pixel while its image is decoded: in whole, with copies that are not collected yet, or row by row. */
const pixelBytes = { whole: 12, rows: 2 } as const;

/** Bounds the pixels of large images that this thread decodes at once; who has waited longest comes next. */
class PixelBudget {
  private free = mostPixels;
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
 * Decodes an image once there is room for its pixels beside those of others.
 *
 * @param kept whether the image is in memory as a whole, or its rows one after the other.
 * @throws Error for an image with more than `mostPixels`, DataError if memory is short.
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
  if (pixels > mostPixels)
    throw new Error(`it has ${size} pixels, ${pixels}, but at most ${mostPixels} are decoded; make it smaller`);
  return budget.take(pixels, () => {
    requireMemory(pixelBytes[kept] * pixels, `the pixels of an image of ${size}`, "make it smaller");
    return decode();
  });
};
