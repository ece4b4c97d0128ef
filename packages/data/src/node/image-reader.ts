import { type EncodedRecords, imageState } from "../encoded-records.ts";
import { damagedImage, imageName, isShortOfMemory, noSoundImage, readImage } from "./image-source.ts";
import { cachePixels, cachedPixels } from "./image-cache.ts";
import type { ImageDecoder } from "./decode-image.ts";
import { imageDecoder } from "./image-decoder.ts";
import { Semaphore } from "./semaphore.ts";

/** Decoded image of a sample. */
export interface ReadImage {
  /** Pixels, u8 [rows, columns, channels]. May be a view of the cache, so callers must not write to it. */
  readonly pixels: Uint8Array;
  /** Index of the sample to which the image belongs: a later sample if the image of the requested sample is damaged. */
  readonly sample: number;
  /** Whether the image came from the cache. */
  readonly wasCached: boolean;
}

/**
 * An image that cannot be decoded and is replaced by another image, or a damaged sample of a stream, which is skipped.
 */
export interface DamagedImage {
  /** Location of the image, preceded by the manifest line that lists it. */
  readonly name: string;
  readonly why: string;
  /** Whether the sample is skipped. Absent: another image replaces the damaged image. */
  readonly isLeftOut?: boolean;
}

/**
 * Reads the images of samples from the cache or from their files, with a limited number of concurrent decodes. All
 * threads that read the same samples receive equal images, regardless of the contents of the cache.
 */
export class ImageReader {
  private readonly records: EncodedRecords;
  private readonly decoder: ImageDecoder;
  private readonly damaged: (image: DamagedImage) => void;
  private readonly semaphore: Semaphore;

  /**
   * Creates a reader of the images of `records`.
   *
   * @param damaged Called for each damaged image that no other thread has found before.
   */
  constructor(records: EncodedRecords, damaged: (image: DamagedImage) => void) {
    this.records = records;
    this.decoder = imageDecoder(records.images.from, records.images.decodesBy);
    this.damaged = damaged;
    this.semaphore = new Semaphore(records.images.decodesAtOnce);
  }

  /**
   * Reads the image of a sample. Reads start in the order of the requests. If damaged images are skipped, the next
   * intact image in sample order replaces a damaged image. The replacement depends only on the sample, so it is the
   * same on all ranks, in each epoch, and after a resume.
   *
   * @throws DataError if the image is unreadable, if the image is damaged and damaged images are not skipped, or if no
   * image is intact.
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

  /** Reads the image of exactly this sample. Undefined if the image is damaged. */
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
