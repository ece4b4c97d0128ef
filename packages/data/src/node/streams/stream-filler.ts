import { setImmediate } from "node:timers/promises";
import { type Augmentation, augmentImage, augmentationKey, type ImageSize, cropCenter } from "../../augment.ts";
import { DataError } from "../../errors.ts";
import { shardRange } from "../../order.ts";
import { batchLayout, sampleBytes } from "../../records.ts";
import { type Drawn, Lane } from "../../streams/lane.ts";
import { lanePartsOf } from "../../streams/lane-parts.ts";
import type { Tokens } from "../../streams/pack-windows.ts";
import type { ShardReader } from "../../streams/shard-position.ts";
import {
  blockSizeOf,
  type ImageShards,
  type PlacedLane,
  type StreamedRecords,
} from "../../streams/streamed-records.ts";
import type { DamagedImage } from "../image-reader.ts";
import { imageDecoder } from "../image-decoder.ts";
import { damagedImage, isShortOfMemory } from "../image-source.ts";
import { Semaphore } from "../semaphore.ts";
import { imageReader, type StreamedImage } from "./read-images.ts";
import { textReader } from "./read-texts.ts";

/** Parameters for filling batches from a stream. */
export interface StreamFillerOptions {
  readonly batchSize: number;
  readonly seed: number;
  readonly rank: number;
  readonly worldSize: number;
  readonly numLanes: number;
  /** Positions of the lanes. Undefined: lanes start at their beginnings. */
  readonly lanes?: readonly PlacedLane[] | undefined;
  readonly augmentation: Augmentation | undefined;
  readonly damaged: (image: DamagedImage) => void;
}

/** Writes a sample as element `i` of a batch. */
type Writer<Of> = (drawn: Drawn<Of>, lane: number, target: Uint8Array, i: number) => Promise<void> | void;

/** Fills batches from a stream. */
export interface StreamFiller {
  /**
   * Writes the next batch. Resolves with the positions of this rank's lanes after the batch. Several calls may be
   * pending at the same time.
   */
  fill(target: Uint8Array): Promise<readonly PlacedLane[]>;
  /** Resolves when a pending read of a lane ends. Undefined: no read is pending. */
  readonly reading: Promise<unknown> | undefined;
}

/** Maximum time in milliseconds for which a thread reads without yielding to its event loop. */
const turnMilliseconds = 5;

/** Wraps a reader, so that it periodically yields to the event loop. */
const yielding = <Of>(read: ShardReader<Of>): ShardReader<Of> => {
  let began = performance.now();
  return async function* (shard, from) {
    for await (const sample of read(shard, from)) {
      if (performance.now() - began > turnMilliseconds) {
        await setImmediate();
        began = performance.now();
      }
      yield sample;
    }
  };
};

const fillerOf = <Of>(
  records: StreamedRecords,
  { batchSize, seed, rank, worldSize, numLanes, lanes: positions = [] }: StreamFillerOptions,
  read: ShardReader<Of>,
  write: Writer<Of>,
): StreamFiller => {
  const { stream } = records;
  const width = batchSize / numLanes;
  const options = { seed, numShards: stream.shards.length, numLanes, blockSize: blockSizeOf(stream, numLanes) };
  const parts = lanePartsOf(shardRange(batchSize, { rank, worldSize }), width, numLanes).map((part) => ({
    ...part,
    source: new Lane(yielding(read), part.lane, options, positions.find(({ lane }) => lane === part.lane)?.position),
  }));
  return {
    fill: (target) =>
      Promise.all(
        parts.map(async ({ lane, begin, end, at, source }) => {
          const { samples, position } = await source.draw(width);
          await Promise.all(samples.slice(begin, end).map((drawn, i) => write(drawn, lane, target, at + i)));
          return { lane, position };
        }),
      ),
    get reading() {
      const all = parts.flatMap(({ source }) => source.reading ?? []);
      return all.length === 0 ? undefined : Promise.race(all);
    },
  };
};

const numSamplesOf = ({ batchSize, worldSize }: StreamFillerOptions): number => batchSize / worldSize;

/** Returns a writer of windows: `inputs` are all tokens except the last, `labels` all tokens except the first. */
const windowWriter = ({ fields }: StreamedRecords, numSamples: number): Writer<Tokens> => {
  const bytes = sampleBytes(fields["inputs"]!);
  const { offsets } = batchLayout({ count: numSamples, fields }, numSamples);
  return ({ sample }, _, target, i) => {
    const row = new Uint8Array(sample.buffer, sample.byteOffset, sample.byteLength);
    target.set(row.subarray(0, bytes), offsets["inputs"]! + i * bytes);
    target.set(row.subarray(row.length - bytes), offsets["labels"]! + i * bytes);
  };
};

/**
 * Returns a writer of decoded images. If damaged images are skipped, the next intact image of the same block replaces a
 * damaged image, so that the result is equal on all ranks and after a resume.
 */
const imageWriter = (
  { fields, stream }: StreamedRecords,
  { decoding, decodesBy, decodesAtOnce, from }: ImageShards,
  options: StreamFillerOptions,
): Writer<StreamedImage> => {
  const { augmentation, seed, damaged } = options;
  const decoder = imageDecoder(from, decodesBy);
  const semaphore = new Semaphore(decodesAtOnce);
  const bytes = sampleBytes(fields["inputs"]!);
  const size = fields["inputs"]!.shape as unknown as ImageSize;
  const decodedSize: ImageSize = [...decoding.size, decoding.channels];
  const count = numSamplesOf(options);
  const { offsets } = batchLayout({ count, fields }, count);
  const [inputs, labels] = [offsets["inputs"]!, offsets["labels"]!];
  const pixelsOf = (image: StreamedImage): Promise<Uint8Array | undefined> =>
    semaphore.take(async () => {
      try {
        return await decoder.decode(image.bytes, decoding);
      } catch (cause) {
        if (!stream.skipDamaged || isShortOfMemory(cause)) throw damagedImage(image.name, cause as Error);
        damaged({ name: image.name, why: (cause as Error).message });
        return undefined;
      }
    });
  return async ({ block, index, ordinal }, lane, target, i) => {
    for (let further = 0; further < block.length; further++) {
      const image = block[(index + further) % block.length]!;
      const pixels = await pixelsOf(image);
      if (pixels === undefined) continue;
      const shown = target.subarray(inputs + i * bytes, inputs + (i + 1) * bytes);
      // The random key depends on the drawn sample, so that an image that replaces several damaged images is augmented
      // differently for each damaged image.
      if (augmentation === undefined) cropCenter(pixels, decodedSize, shown, size);
      else augmentImage(pixels, decodedSize, shown, size, augmentation, augmentationKey(seed, lane, ordinal));
      new DataView(target.buffer, target.byteOffset + labels + 4 * i, 4).setInt32(0, image.label, true);
      return;
    }
    throw new DataError(
      `none of ${block.length} images, the first of which is ${block[0]!.name}, can be decoded; restore them, or raise stream.shuffleBuffer`,
    );
  };
};

/** Wraps a callback, so that each damaged image is reported only once, even if it is read again. */
const reportOnce = (damaged: (image: DamagedImage) => void): ((image: DamagedImage) => void) => {
  const reported = new Set<string>();
  return (image) => {
    if (!reported.has(image.name)) damaged(image);
    reported.add(image.name);
  };
};

/** Returns the batch filler of a stream. @throws DataError if a package is missing. */
export const streamFiller = (records: StreamedRecords, given: StreamFillerOptions): StreamFiller => {
  const { stream } = records;
  const { samples } = stream;
  const damaged = reportOnce(given.damaged);
  const options = { ...given, damaged };
  const reportSkipped = (name: string, why: string): void => damaged({ name, why, isLeftOut: true });
  return samples.of === "texts"
    ? fillerOf(
        records,
        options,
        textReader(stream, samples, reportSkipped),
        windowWriter(records, numSamplesOf(options)),
      )
    : fillerOf(records, options, imageReader(stream, samples, reportSkipped), imageWriter(records, samples, options));
};
