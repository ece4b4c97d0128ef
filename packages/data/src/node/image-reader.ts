import { type EncodedRecords, imageState } from "../encoded-records.ts";
import { damagedImage, imageName, isShortOfMemory, noSoundImage, readImage } from "./image-source.ts";
import { cachePixels, cachedPixels } from "./image-cache.ts";
import type { ImageDecoder } from "./decode-image.ts";
import { imageDecoder } from "./image-decoder.ts";
import { Semaphore } from "./semaphore.ts";

/** The image of a sample. */
export interface ReadImage {
  /** u8 [rows, columns, channels]; may be a view of the cache, so do not write. */
  readonly pixels: Uint8Array;
  /** Index of the sample that the image belongs to: a later sample if the requested one is damaged. */
  readonly sample: number;
  /** Whether the image came from the cache. */
  readonly wasCached: boolean;
}

/** An image that cannot be decoded and is replaced by another, or a damaged sample of a stream, which is left out. */
export interface DamagedImage {
  /** Its path, preceded by the manifest line that lists it. */
  readonly name: string;
  readonly why: string;
  /** Whether the sample is left out. Default: false, another image replaces it. */
  readonly isLeftOut?: boolean;
}

/**
 * Reads images of samples from the cache or from their files, with a bounded number of concurrent decodes. All threads
 * that read the same samples get the same images, whatever each finds in the cache.
 */
export class ImageReader {
  private readonly records: EncodedRecords;
  private readonly decoder: ImageDecoder;
  private readonly damaged: (image: DamagedImage) => void;
  private readonly semaphore: Semaphore;

  /** @param damaged is called for each damaged image, by the first thread that finds it. */
  constructor(records: EncodedRecords, damaged: (image: DamagedImage) => void) {
    this.records = records;
    this.decoder = imageDecoder(records.images.from, records.images.decodesBy);
    this.damaged = damaged;
    this.semaphore = new Semaphore(records.images.decodesAtOnce);
  }

  /**
   * Reads the image of a sample; requests start in order. If damaged images are to be skipped, the next intact image in
   * sample order replaces a damaged one: a function of the sample only, so that the result is the same on all ranks, in
   * every epoch, and after resuming.
   *
   * @throws DataError for an image that cannot be read, for a damaged image that is not to be skipped, and if no image
   * is intact.
   */
  async read(sample: number): Promise<ReadImage> {
    const { count } = this.records;
    for (let further = 0; further < count; further++) {
      const at = (sample + further) % count;
      const found = await this.readSound(at);
      if (found !== undefined) return { ...found, sample: at };
    }
    throw noSoundImage(this.records.images.source, count);
  }

  /** Reads the image of exactly this sample; undefined if it is damaged. */
  private async readSound(sample: number): Promise<Omit<ReadImage, "sample"> | undefined> {
    const { images, firstImage, order } = this.records;
    const image = order === undefined ? firstImage + sample : order[firstImage + sample]!;
    const kept = cachedPixels(images, image);
    if (kept !== undefined) return { pixels: kept, wasCached: true };
    if (Atomics.load(images.states, image) === imageState.damaged) return undefined;
    return this.semaphore.take(async () => {
      const bytes = await readImage(images.source, image);
      const pixels = await this.decoder.decode(bytes, images.decoding).catch((cause: Error) => {
        if (!images.skipDamaged || isShortOfMemory(cause)) throw damagedImage(imageName(images.source, image), cause);
        this.markDamaged(image, cause.message);
        return undefined;
      });
      if (pixels === undefined) return undefined;
      cachePixels(images, image, pixels);
      return { pixels, wasCached: false };
    });
  }

  private markDamaged(image: number, why: string): void {
    const { states, source } = this.records.images;
    if (Atomics.exchange(states, image, imageState.damaged) === imageState.damaged) return;
    this.damaged({ name: imageName(source, image), why });
  }
}
