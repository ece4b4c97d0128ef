import { type EncodedRecords, imageState } from "../encoded-records.ts";
import { damagedImage, imageName, isShortOfMemory, noSoundImage, readImage } from "./image-source.ts";
import { keepPixels, keptPixels } from "./image-cache.ts";
import type { ImageDecoder } from "./decode-image.ts";
import { imageDecoder } from "./image-decoder.ts";
import { Turns } from "./turns.ts";

/** An image of a sample. */
export interface ReadImage {
  /** u8 [rows, columns, channels]; of the cache, not to be written. */
  readonly pixels: Uint8Array;
  /** The sample that it is of: a later one where that which was asked for is damaged. */
  readonly sample: number;
  /** Whether it was decoded before, and kept. */
  readonly wasKept: boolean;
}

/** An image that cannot be decoded, and that another takes the place of; or a sample of a stream that is left out. */
export interface DamagedImage {
  /** Its path, behind the line that names it. */
  readonly name: string;
  readonly why: string;
  /** Whether it is left out. Default: another takes its place. */
  readonly isLeftOut?: boolean;
}

/**
 * Reads images of samples, decoded ones from the cache, so many others at once. Where several threads read the same
 * samples, all get the same images, whatever each finds in the cache.
 */
export class ImageReader {
  private readonly records: EncodedRecords;
  private readonly decoder: ImageDecoder;
  private readonly damaged: (image: DamagedImage) => void;
  private readonly turns: Turns;

  /** @param damaged is told of each damaged image, by the thread that is the first to find it. */
  constructor(records: EncodedRecords, damaged: (image: DamagedImage) => void) {
    this.records = records;
    this.decoder = imageDecoder(records.images.from, records.images.decodesBy);
    this.damaged = damaged;
    this.turns = new Turns(records.images.decodesAtOnce);
  }

  /**
   * Read the image of a sample; those that are asked for first are begun first. In the place of a damaged one, where
   * such are to be skipped, comes the next sound one in the order of the samples: a function of the sample alone, so
   * that it is the same for all ranks, in every epoch, and wherever a run goes on.
   *
   * @throws DataError for an image that cannot be read, for a damaged one that is not to be skipped, and where none is
   * sound.
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

  /** The image of just that sample; undefined where it is damaged. */
  private async readSound(sample: number): Promise<Omit<ReadImage, "sample"> | undefined> {
    const { images, firstImage, order } = this.records;
    const image = order === undefined ? firstImage + sample : order[firstImage + sample]!;
    const kept = keptPixels(images, image);
    if (kept !== undefined) return { pixels: kept, wasKept: true };
    if (Atomics.load(images.states, image) === imageState.damaged) return undefined;
    return this.turns.take(async () => {
      const bytes = await readImage(images.source, image);
      const pixels = await this.decoder.decode(bytes, images.decoding).catch((cause: Error) => {
        if (!images.skipDamaged || isShortOfMemory(cause)) throw damagedImage(imageName(images.source, image), cause);
        this.markDamaged(image, cause.message);
        return undefined;
      });
      if (pixels === undefined) return undefined;
      keepPixels(images, image, pixels);
      return { pixels, wasKept: false };
    });
  }

  private markDamaged(image: number, why: string): void {
    const { states, source } = this.records.images;
    if (Atomics.exchange(states, image, imageState.damaged) === imageState.damaged) return;
    this.damaged({ name: imageName(source, image), why });
  }
}
